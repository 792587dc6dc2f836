"""Finished runs, run again: do they give the numbers that the ledgers have?

The numbers are those of one commit, `benchmarks.paper.FROZEN_AT`. Later versions change bits on
purpose; there a run that differs is no defect.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from benchmarks.ledger import Ledger, read_runs
from benchmarks.paper import RESULTS
from benchmarks.paper.experiments import Cell, cells
from benchmarks.paper.processor import AVX512
from benchmarks.paper.runner import ledger_path, run

__all__ = ["differences", "finished_cells", "recheck", "sample", "with_avx512"]

# What may differ: time is not a result.
NOT_COMPARED = ("seconds",)
RUN = ["experiment", "data", "method", "seed", "score"]


def finished_cells(names: Sequence[str], folder: Path = RESULTS) -> list[Cell]:
    """The planned runs that are in the ledgers."""
    done = []
    for name in names:
        ledger = Ledger(ledger_path(name, folder))
        done += [cell for cell in cells(name) if ledger.has(cell.data, cell.method, cell.seed)]
    return done


def sample(done: Sequence[Cell], size: int, seed: int = 0) -> list[Cell]:
    """That many of the runs, drawn at random, in their order."""
    drawn = np.random.default_rng(seed).choice(len(done), min(size, len(done)), replace=False)
    return [done[i] for i in np.sort(drawn)]


def recheck(
    chosen: Sequence[Cell],
    *,
    data_dir: str | None = None,
    folder: Path = RESULTS,
    workers: int = 1,
    say=print,
) -> pd.DataFrame:
    """Run cells again, beside the ledgers, and return the scores that differ: was and is."""
    marked = with_avx512(chosen, folder)
    with TemporaryDirectory() as again:
        for avx512 in (False, True):
            todo = [cell for cell in chosen if (cell in marked) == avx512]
            if todo:
                options: dict = {"workers": workers, "avx512": avx512, "say": say}
                run(todo, data_dir=data_dir, folder=Path(again), **options)
        return differences(chosen, folder, Path(again))


def with_avx512(chosen: Sequence[Cell], folder: Path) -> set[Cell]:
    """The cells that were run with AVX-512; they repeat on a processor that has it only."""
    marked = set()
    for name in {cell.experiment for cell in chosen}:
        runs = read_runs([ledger_path(name, folder)])
        runs = runs[runs.note == AVX512]
        keys = set(zip(runs.data, runs.method, runs.seed, strict=True))
        marked |= {
            cell
            for cell in chosen
            if cell.experiment == name and (cell.data, cell.method, cell.seed) in keys
        }
    return marked


def differences(chosen: Sequence[Cell], before: Path, after: Path) -> pd.DataFrame:
    """Scores of some cells that are not the same, or missing, in one of two folders."""
    tables = []
    for folder in (before, after):
        found = {
            name: read_runs([ledger_path(name, folder)]) for name in {c.experiment for c in chosen}
        }
        runs = pd.concat(found, names=["experiment"]).reset_index("experiment")
        runs = runs[~runs.score.isin(NOT_COMPARED)]
        tables.append(runs.drop_duplicates(RUN).set_index(RUN).value)
    both = pd.concat(tables, axis=1, keys=["was", "is"])
    wanted = {(c.experiment, c.data, c.method, c.seed) for c in chosen}
    both = both[[key[:-1] in wanted for key in both.index]]
    same = (both["was"] == both["is"]) | both.isna().all(axis=1)
    return both[~same].reset_index()
