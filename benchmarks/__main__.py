"""The scripts of this folder, each with the question it answers.

    python -m benchmarks

Run one with ``python -m benchmarks.NAME``; ``--help`` says more. The paper's experiments have a
command of their own, ``python -m benchmarks.paper``.
"""

from __future__ import annotations

import argparse
import ast
from pathlib import Path

__all__ = ["main", "scripts"]


def scripts() -> dict[str, str]:
    """First lines of the docstrings of all modules here that are run, by name."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path.name != "__main__.py" and '__name__ == "__main__"' in text:
            found[path.stem] = str(ast.get_docstring(ast.parse(text))).split("\n")[0]
    return found


def main(argv=None) -> int:
    argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args(argv)
    for name, question in (scripts() | {"paper": "The paper's experiments."}).items():
        print(f"python -m benchmarks.{name:18s} {question}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
