"""Command line: ``python -m patches check [project] [--full]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .catalogue import PROJECTS, releases
from .check import check
from .source import CheckError


def main(arguments: list[str] | None = None) -> int:
    """Check the patches of one project or of all; 0 if everything is green."""
    parser = argparse.ArgumentParser(prog="python -m patches", description=main.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser("check", help="apply, build and test in temporary folders")
    checking.add_argument("project", nargs="?", choices=PROJECTS, help="default: all of them")
    checking.add_argument(
        "--full", action="store_true", help="build scikit-learn as a whole, not one extension"
    )
    options = parser.parse_args(arguments)
    chosen = (options.project,) if options.project else PROJECTS

    reports = []
    try:
        for release in releases(chosen):
            with tempfile.TemporaryDirectory(prefix="patches-") as folder:
                report = check(release, Path(folder), options.full, say=_say)
            reports.append(report)
            print(f"\n{report.table()}\n", flush=True)
    except CheckError as error:
        print(f"patches: {error}", file=sys.stderr)
        return 2
    green = all(report.green for report in reports)
    print("everything is green" if green else "not everything is green: see PROBLEM above")
    return 0 if green else 1


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
