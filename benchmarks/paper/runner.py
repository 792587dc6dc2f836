"""Runs cells in worker processes, keeps what they found, and says how long it will take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from benchmarks.ledger import FAILED, Ledger, read_runs
from benchmarks.paper import RESULTS
from benchmarks.paper.experiments import EXPERIMENTS, Cell, cells
from benchmarks.paper.methods import family_of
from benchmarks.paper.processor import worker_environment

__all__ = ["clock", "expected_seconds", "ledger_path", "open_cells", "run", "run_cell"]

# Rows of the data sets that are named without a size, for the estimate of what a run costs.
ROWS = {
    "iris": 150, "digits": 1797, "dtd10": 1200, "emnist_balanced": 9424, "imagenette": 9469,
    "caltech101": 9144, "flowers102": 8189, "mnist": 60_000, "fashion_mnist": 60_000,
    "swiss_roll": 1887, "clusters": 500, "us_cities": 2000, "flights": 281, "morse": 36,
    "polblogs": 793, "velocity": 200,
}  # fmt: skip
# Scores take about as long as this for every thousand rows.
SCORING_SECONDS = 0.4


def ledger_path(experiment: str, folder: Path = RESULTS) -> Path:
    return folder / f"runs_{experiment}.csv"


def open_cells(
    names: Sequence[str], folder: Path = RESULTS, *, quick: bool = False, seeds: int | None = None
) -> list[Cell]:
    """What is still to be run."""
    todo = []
    for name in names:
        ledger = Ledger(ledger_path(name, folder))
        for cell in cells(name, quick=quick, seeds=seeds):
            if not ledger.has(cell.data, cell.method, cell.seed):
                todo.append(cell)
    return todo


def expected_seconds(todo: Sequence[Cell], folder: Path = RESULTS) -> list[float]:
    """Time of each cell on one core: as measured where it ran before, or by its family."""
    paths = [ledger_path(name, folder) for name in EXPERIMENTS]
    runs = read_runs(paths)
    seconds = runs[runs.score == "seconds"].groupby(["data", "method"]).value.median()
    return [_expected(cell, seconds) for cell in todo]


def _expected(cell: Cell, measured: pd.Series) -> float:
    name, _, size = cell.data.partition(":")
    thousands = (int(size) if size else ROWS.get(name, 1000)) / 1000
    family = family_of(cell.method)
    known = measured.get((cell.data, cell.method), family.seconds * thousands**family.growth)
    return float(known) + SCORING_SECONDS * thousands


def run_cell(cell: Cell, data_dir: str | None, n_threads: int = 1) -> tuple[dict, str]:
    """Scores of a cell, or why it has none."""
    # Imported here: the parent process only plans and waits.
    from benchmarks.paper.methods import embed
    from benchmarks.paper.problem import problem_of
    from benchmarks.paper.scores import degenerate, drop_in_scores, score

    problem = problem_of(cell.data, data_dir, cell.data_seed, n_threads)
    _ = problem.neighbors  # made once for all methods, so none of them pays for it
    started = time.perf_counter()
    try:
        embedded = embed(cell.method, problem, cell.seed)
    except (ValueError, RuntimeError, ArithmeticError, MemoryError) as error:
        reason = " ".join(str(error).split())
        return {FAILED: 1.0}, f"{type(error).__name__}: {reason}"
    seconds = time.perf_counter() - started
    reason = degenerate(embedded.embedding)
    if reason:
        return {FAILED: 1.0}, f"degenerate: {reason}"
    scores = drop_in_scores if EXPERIMENTS[cell.experiment].drop_in else score
    return scores(embedded, problem) | {"seconds": seconds}, ""


def run(
    todo: Sequence[Cell],
    *,
    data_dir: str | None = None,
    folder: Path = RESULTS,
    workers: int = 1,
    avx512: bool = False,
    times: Path | None = None,
    say=print,
) -> None:
    """Run cells and append them to the ledgers of their experiments as they finish.

    ``avx512`` allows workers the instructions that they are held from otherwise. ``times`` is the
    folder whose ledgers tell how long runs take, if not ``folder``.
    """
    ledgers = {name: Ledger(ledger_path(name, folder)) for name in {c.experiment for c in todo}}
    cost = dict(zip(todo, expected_seconds(todo, times or folder), strict=True))
    total = sum(cost.values())
    say(f"{len(todo)} runs, about {clock(total / workers)} on {workers} core(s)")
    if not todo:
        return
    with (
        worker_environment(avx512=avx512),
        ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool,
        tqdm(total=total, unit="s", bar_format=BAR) as bar,
    ):
        waiting = {}
        queue = iter(todo)
        for cell in queue:
            waiting[pool.submit(run_cell, cell, data_dir)] = cell
            if len(waiting) < workers:
                continue
            _collect(waiting, ledgers, cost, bar)
        while waiting:
            _collect(waiting, ledgers, cost, bar)


BAR = "{desc}{percentage:3.0f} %|{bar:20}| {elapsed} gone, {remaining} left"


def _collect(waiting: dict, ledgers: dict[str, Ledger], cost: dict, bar) -> None:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        cell = waiting.pop(future)
        scores, note = future.result()
        ledgers[cell.experiment].add(cell.data, cell.method, cell.seed, scores, note)
        bar.set_description_str(f"{cell.data} {cell.method} #{cell.seed} ")
        bar.update(min(cost[cell], bar.total - bar.n))


def clock(seconds: float) -> str:
    """Minutes or hours, in words."""
    minutes = seconds / 60
    return f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"
