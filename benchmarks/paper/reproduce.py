"""Everything that can be run, then the page, then a comparison with the stored one.

    python -m benchmarks.paper reproduce --data-dir DIR --workers 2
    python -m benchmarks.paper reproduce --quick

It begins from nothing in a folder of its own (``--results``, "reproduced" unless given), so the
stored results stay as they are, and goes on where it stopped if it is started again. What is
missing for lack of data is named and left out. ``--quick`` runs the data that are generated or come
with scikit-learn, with few seeds: the same verdicts, each marked as quick. It takes six minutes of
processor time, the whole some eleven hours.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import NamedTuple

from benchmarks.data import load
from benchmarks.ledger import Ledger
from benchmarks.paper import FROZEN_AT, RESULTS
from benchmarks.paper.experiments import EXPERIMENTS, Cell, cells
from benchmarks.paper.methods import parse
from benchmarks.paper.runner import ROWS, clock, expected_seconds, ledger_path, run
from benchmarks.paper.verdict_lines import agreement, marked, verdicts

__all__ = ["Plan", "quick_cells", "reproduce", "same_numbers"]

STORED_PAGE = Path(__file__).parent / "RESULTS.md"
QUICK_DATA = ("iris", "digits", "disk:300", "swiss_roll", "clusters")
QUICK_DRIFTS = (None, "auto", 0.0, 0.001, 0.01, 0.1, 0.5, 0.9)
# Fewer pairs of runs than three decide nothing, see `report.comparisons`; heights are judged by
# medians alone.
QUICK_SEEDS = 3
FEWER_SEEDS = {"disk": 2, "swiss_roll": 2}
# Long, and no verdict rests on them.
NOT_QUICK = ("drop_in", "drop_in_tsne", "density")
QUICK_WORDS = (
    "**This page is of a quick run**: data that are generated or come with scikit-learn alone "
    f"({', '.join(QUICK_DATA)}), two or three seeds. Its verdicts are marked *quick*; with so "
    "little data they may differ from those of the whole.\n\n"
)


class Plan(NamedTuple):
    """What can be run.

    todo : cells by experiment
    missing : data that cannot be had, each with the reason
    rows : of the data that can
    """

    todo: dict[str, list[Cell]]
    missing: dict[str, str]
    rows: dict[str, int]

    @property
    def cells(self) -> list[Cell]:
        return [cell for found in self.todo.values() for cell in found]


def quick_cells(name: str) -> Iterator[Cell]:
    """The runs of an experiment that a quick reproduction has."""
    if name in NOT_QUICK:
        return
    seeds = min(FEWER_SEEDS.get(name, QUICK_SEEDS), EXPERIMENTS[name].seeds)
    for cell in cells(name, seeds=seeds):
        if cell.data in QUICK_DATA and parse(cell.method).omega in QUICK_DRIFTS:
            yield cell


def planned(quick: bool) -> dict[str, list[Cell]]:
    """All runs of a reproduction, whether they have been made or not."""
    return {name: list(quick_cells(name) if quick else cells(name)) for name in EXPERIMENTS}


def plan(folder: Path, data_dir: str | None, *, quick: bool) -> Plan:
    """What is open and can be run. Data are looked for once."""
    todo: dict[str, list[Cell]] = {}
    missing: dict[str, str] = {}
    rows: dict[str, int] = {}
    for name, wanted in planned(quick).items():
        ledger = Ledger(ledger_path(name, folder))
        opened = [c for c in wanted if not ledger.has(c.data, c.method, c.seed)]
        for data in dict.fromkeys(cell.data for cell in opened):
            if data not in rows and data not in missing:
                try:
                    rows[data] = len(load(data, data_dir=data_dir).X)
                except FileNotFoundError as error:
                    missing[data] = str(error)
        todo[name] = [cell for cell in opened if cell.data in rows]
    return Plan(todo, missing, rows)


def _announce(found: Plan, workers: int, say) -> None:
    for data, reason in found.missing.items():
        names = [name for name, e in EXPERIMENTS.items() if data in e.data]
        say(f"left out: {data} (of {', '.join(names)}): {reason}")
    for data, rows in found.rows.items():
        if rows != ROWS.get(data, rows):
            say(f"{data} has {rows} rows here, {ROWS[data]} in the stored results")
    seconds = sum(expected_seconds(found.cells, RESULTS))
    say(
        f"{len(found.cells)} runs to make, about {clock(seconds / workers)} on {workers} core(s) "
        "of the machine that the stored times are from"
    )


def _run(found: Plan, folder: Path, data_dir: str | None, workers: int, quick: bool, say) -> int:
    """Run all of it; returns how many experiments stopped before their end.

    Experiment by experiment, so that memory is given back; a quick one all at once, since
    processes take long to start.
    """
    parts = {"the quick run": found.cells} if quick else found.todo
    stopped = 0
    for name, todo in parts.items():
        if not todo:
            continue
        say(f"— {name}")
        options: dict = {"workers": workers, "times": RESULTS, "say": say}
        try:
            run(todo, data_dir=data_dir, folder=folder, **options)
        except BrokenProcessPool as error:
            stopped += 1
            say(f"{name} stopped, what is finished is kept: {error}")
    return stopped


def _draw(folder: Path, results: Path, data_dir: str | None, quick: bool, say) -> None:
    from benchmarks.paper.pictures import draw

    for name, wanted in planned(quick).items():
        if not wanted:
            continue
        try:
            draw(name, data_dir=data_dir, results=results, folder=folder)
        except FileNotFoundError as error:
            say(f"figures of {name} left out: {error}")


def same_numbers(folder: Path, stored: Path, *, quick: bool) -> str:
    """How many of the runs that both folders hold gave the same scores."""
    from benchmarks.paper.recheck import differences, with_avx512

    both = []
    for name, wanted in planned(quick).items():
        ledgers = [Ledger(ledger_path(name, place)) for place in (folder, stored)]
        both += [c for c in wanted if all(x.has(c.data, c.method, c.seed) for x in ledgers)]
    other = with_avx512(both, stored) if both else set()
    both = [cell for cell in both if cell not in other]
    if not both:
        return "no run is in the stored results as well"
    differ = differences(both, stored, folder)
    runs = len(differ.drop_duplicates(["experiment", "data", "method", "seed"]))
    text = f"{len(both) - runs} of {len(both)} runs gave the stored numbers, to the last digit kept"
    text += f" (those of commit {FROZEN_AT})"
    if runs:
        first = differ.iloc[0]
        text += (
            f"; {runs} did not, the first being {first.experiment} {first['data']} {first.method} "
            f"#{first.seed} ({first.score} {first.was:g} → {first['is']:g})"
        )
    return text + (f"; {len(other)} stored with AVX-512 are not compared" if other else "")


def reproduce(
    *,
    data_dir: str | None = None,
    results: Path,
    page: Path | None = None,
    workers: int = 1,
    quick: bool = False,
    figures: Path | None = None,
    stored: Path = RESULTS,
    stored_page: Path = STORED_PAGE,
    say=print,
) -> int:
    """Run, draw if ``figures`` is a folder, write the page, compare. 1 if something stopped."""
    from benchmarks.paper.report import write

    stored_text = stored_page.read_text(encoding="utf-8") if stored_page.is_file() else ""
    found = plan(results, data_dir, quick=quick)
    _announce(found, workers, say)
    results.mkdir(parents=True, exist_ok=True)
    stopped = _run(found, results, data_dir, workers, quick, say)
    if figures is not None:
        _draw(figures, results, data_dir, quick, say)
    own = results.resolve() != stored.resolve()
    page = page or (results / "RESULTS.md" if own else stored_page)
    write(results, page)
    text = page.read_text(encoding="utf-8")
    if quick:
        text = marked(text, "quick", QUICK_WORDS)
        page.write_text(text, encoding="utf-8")
    say(f"\n{page}")
    for line in agreement(verdicts(text), verdicts(stored_text), " (quick)" if quick else ""):
        say(line)
    if own:
        say(same_numbers(results, stored, quick=quick))
    return int(stopped > 0)
