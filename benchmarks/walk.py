"""How far a reader walks through the package to follow one fit.

    python -m benchmarks.walk

Counts calls from one function of `finsler_ext` to another, every pair of functions once: between
stages (the first folder or module below the package), between modules, and how many modules are
visited. Compiled code is not followed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

__all__ = ["Walk", "walk"]


class Walk:
    """Pairs of functions that call each other, while a profile is set."""

    def __init__(self, package: str):
        self.package = package
        self.pairs: set[tuple[tuple[str, str], tuple[str, str]]] = set()

    def __call__(self, frame, event: str, _) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(self.package):
            return
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(self.package):
            caller = caller.f_back
        if caller is not None:
            self.pairs.add((_place(caller), _place(frame)))

    def between(self, level: Callable[[str], str]) -> int:
        return sum(level(there[0]) != level(here[0]) for here, there in self.pairs)

    def modules(self) -> int:
        return len({place[0] for pair in self.pairs for place in pair})


def _place(frame) -> tuple[str, str]:
    return frame.f_code.co_filename, frame.f_code.co_qualname


def walk(fit: Callable[[], object]) -> Walk:
    """Follow one fit; it runs once before, so that imports and compilation are not counted."""
    fit()
    found = Walk(str(_package()))
    sys.setprofile(found)
    try:
        fit()
    finally:
        sys.setprofile(None)
    return found


def _package() -> Path:
    import finsler_ext

    return Path(str(finsler_ext.__file__)).parent


def _stage(file: str) -> str:
    return Path(file).relative_to(_package()).parts[0]


def main() -> None:
    from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP

    X = np.random.default_rng(0).normal(size=(150, 5))
    fits = {
        "FinslerUMAP": lambda: FinslerUMAP(n_epochs=20, random_state=0).fit(X),
        "FinslerTSNE": lambda: FinslerTSNE(n_iter=20, random_state=0, n_jobs=1).fit(X),
        "FinslerMDS": lambda: FinslerMDS(max_iter=20).fit(X),
    }
    print(f"{'':12s} {'stages':>8s} {'modules':>8s} {'visited':>8s}")
    for name, fit in fits.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = walk(fit)
        stages, modules = found.between(_stage), found.between(str)
        print(f"{name:12s} {stages:8d} {modules:8d} {found.modules():8d}")


if __name__ == "__main__":
    main()
