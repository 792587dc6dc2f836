"""How large the package is, and how far a reader walks through it to follow one fit.

    python -m benchmarks.walk

The size: modules besides ``__init__.py`` and lines of all files, by folder. A fit: the modules and
functions of `finsler_ext` that it visits, how deep they call each other, and the calls between
modules, every pair of functions once. Compiled code is not followed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import finsler_ext

__all__ = ["Walk", "sizes", "walk"]

PACKAGE = Path(str(finsler_ext.__file__)).parent


class Walk:
    """Pairs of functions that call each other, and the deepest call, while a profile is set."""

    def __init__(self):
        self.pairs: set[tuple[tuple[str, str], tuple[str, str]]] = set()
        self.depth = 0

    def __call__(self, frame, event: str, _) -> None:
        if event != "call" or not _is_ours(frame):
            return
        stack, outer = [_place(frame)], frame.f_back
        while outer is not None:
            if _is_ours(outer):
                stack.append(_place(outer))
            outer = outer.f_back
        self.depth = max(self.depth, len(stack))
        if len(stack) > 1:
            self.pairs.add((stack[1], stack[0]))

    def functions(self) -> set[tuple[str, str]]:
        return {place for pair in self.pairs for place in pair}

    def modules(self) -> set[str]:
        return {file for file, _ in self.functions()}

    def crossings(self) -> int:
        return sum(here[0] != there[0] for here, there in self.pairs)


def _is_ours(frame) -> bool:
    return frame.f_code.co_filename.startswith(str(PACKAGE))


def _place(frame) -> tuple[str, str]:
    return frame.f_code.co_filename, f"{frame.f_code.co_name}:{frame.f_code.co_firstlineno}"


def walk(fit: Callable[[], object]) -> Walk:
    """Follow one fit; it runs once before, so that imports and compilation are not counted."""
    fit()
    found = Walk()
    sys.setprofile(found)
    try:
        fit()
    finally:
        sys.setprofile(None)
    return found


def sizes() -> dict[str, tuple[int, int]]:
    """Modules besides ``__init__.py`` and lines, by folder or module below the package."""
    found: dict[str, tuple[int, int]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).parts[0]
        modules, lines = found.get(name, (0, 0))
        n_lines = len(path.read_text(encoding="utf-8").splitlines())
        found[name] = (modules + (path.name != "__init__.py"), lines + n_lines)
    return found


def main() -> None:
    from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP

    found = sizes()
    for name, (modules, lines) in found.items():
        print(f"{name:20s} {modules:4d} modules {lines:6d} lines")
    totals = [sum(part) for part in zip(*found.values(), strict=True)]
    print(f"{'all':20s} {totals[0]:4d} modules {totals[1]:6d} lines\n")
    X = np.random.default_rng(0).normal(size=(150, 5))
    fits = {
        "FinslerUMAP": lambda: FinslerUMAP(n_epochs=20, random_state=0).fit(X),
        "FinslerTSNE": lambda: FinslerTSNE(n_iter=20, random_state=0, n_jobs=1).fit(X),
        "FinslerMDS": lambda: FinslerMDS(max_iter=20).fit(X),
    }
    print(f"{'':12s} {'modules':>8s} {'functions':>10s} {'depth':>6s} {'crossings':>10s}")
    for name, fit in fits.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one = walk(fit)
        print(f"{name:12s} {len(one.modules()):8d} {len(one.functions()):10d} {one.depth:6d} "
              f"{one.crossings():10d}")  # fmt: skip


if __name__ == "__main__":
    main()
