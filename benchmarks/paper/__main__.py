"""The paper's experiments, one command per table or figure.

    python -m benchmarks.paper                              what there is, and what has been run
    python -m benchmarks.paper run disk clusters            runs, kept in results/
    python -m benchmarks.paper run disk clusters --quick    two seeds, no slow data
    python -m benchmarks.paper run umap --data-dir DIR --workers 2
    python -m benchmarks.paper recheck --runs 20            run some again: the same numbers?
    python -m benchmarks.paper figures disk                 pictures, in figures/
    python -m benchmarks.paper report                       RESULTS.md, from the results
    python -m benchmarks.paper reproduce --data-dir DIR     all of it from nothing, in one night
    python -m benchmarks.paper reproduce --quick            the same verdicts on little data

Finished runs are not repeated: an interrupted command goes on where it stopped. Data that are
neither generated nor bundled with scikit-learn come from --data-dir (or FINSLER_DATA) or, if
there is a public route, are downloaded.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.ledger import Ledger
from benchmarks.paper import FROZEN_AT, RESULTS
from benchmarks.paper.experiments import EXPERIMENTS, cells

FIGURES = Path(__file__).parent / "figures"
REPORT = Path(__file__).parent / "RESULTS.md"
# Where a reproduction begins from nothing.
REPRODUCED = Path("reproduced")


def overview(folder: Path) -> None:
    from benchmarks.paper.runner import ledger_path

    for name, experiment in EXPERIMENTS.items():
        planned = sum(1 for _ in cells(name))
        done = len(Ledger(ledger_path(name, folder)))
        print(f"{name:16s} {done:5d} of {planned:5d} runs   {experiment.question}")


def run(options) -> int:
    from benchmarks.paper.runner import open_cells, run

    todo = open_cells(
        options.experiments, options.results, quick=options.quick, seeds=options.seeds
    )
    if options.data:
        todo = [cell for cell in todo if cell.data in options.data]
    if options.methods:
        todo = [cell for cell in todo if cell.method in options.methods]
    run(todo, data_dir=options.data_dir, folder=options.results, workers=options.workers)
    return 0


def recheck(options) -> int:
    from benchmarks.paper.recheck import RUN, finished_cells, recheck, sample

    names = options.experiments or list(EXPERIMENTS)
    chosen = sample(finished_cells(names, options.results), options.runs, options.seed)
    if not chosen:
        raise FileNotFoundError(f"{options.results} holds no finished runs to repeat.")
    differ = recheck(
        chosen, data_dir=options.data_dir, folder=options.results, workers=options.workers
    )
    for cell in chosen:
        print(f"{cell.experiment:14s} {cell.data:20s} {cell.method} #{cell.seed}")
    same = len(chosen) - len(differ.drop_duplicates(RUN[:-1]))
    print(
        f"{len(differ)} scores of {len(chosen)} runs differ; {same} runs gave the stored numbers, "
        f"which are those of commit {FROZEN_AT}"
    )
    if len(differ):
        print(differ.to_string(index=False))
    return int(len(differ) > 0)


def figures(options) -> int:
    from benchmarks.paper.pictures import draw

    for name in options.experiments or list(EXPERIMENTS):
        draw(name, data_dir=options.data_dir, results=options.results, folder=options.figures)
    return 0


def report(options) -> int:
    from benchmarks.paper.report import write

    write(options.results, options.output)
    return 0


def reproduce(options) -> int:
    from benchmarks.paper.reproduce import reproduce

    return reproduce(
        data_dir=options.data_dir,
        results=options.results,
        page=options.page,
        workers=options.workers,
        quick=options.quick,
        figures=options.figures,
    )


def _experiment(name: str) -> str:
    """Checked here: argparse refuses an empty list where there are choices."""
    if name not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise argparse.ArgumentTypeError(f"unknown experiment {name!r}; known are {known}")
    return name


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _add_reproduce(commands) -> None:
    six = commands.add_parser("reproduce", help="run everything, write the page, compare")
    six.add_argument("--data-dir", help="folder of npz files")
    six.add_argument("--quick", action="store_true", help="some ten minutes, built-in data alone")
    six.add_argument("--workers", type=int, default=_cores(), help="processes (all cores)")
    six.add_argument("--figures", type=Path, help="draw the figures, too, into this folder")
    six.add_argument(
        "--results",
        type=Path,
        default=argparse.SUPPRESS,
        help=f"folder of its CSV files ({REPRODUCED}, or {REPRODUCED}_quick); "
        "benchmarks/paper/results completes the stored ones",
    )
    six.add_argument("--page", type=Path, help="the page (RESULTS.md in the folder)")


def _default_results(options) -> Path:
    if options.command != "reproduce":
        return RESULTS
    return Path(f"{REPRODUCED}_quick") if options.quick else REPRODUCED


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--results", type=Path, help="folder of the CSV files")
    commands = parser.add_subparsers(dest="command")
    one = commands.add_parser("run", help="run experiments")
    one.add_argument("experiments", nargs="+", type=_experiment, metavar="experiment")
    size = one.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="two seeds, no slow data")
    size.add_argument("--full", dest="quick", action="store_false", help="everything (default)")
    one.add_argument("--seeds", type=int, help="another number of seeds")
    one.add_argument("--data", nargs="+", help="only these data sets of the experiments")
    one.add_argument("--methods", nargs="+", help="only these methods of the experiments")
    one.add_argument("--workers", type=int, default=1, help="processes, one core each")
    one.add_argument("--data-dir", help="folder of npz files")
    again = commands.add_parser("recheck", help=f"compare with the runs of {FROZEN_AT}")
    again.add_argument("experiments", nargs="*", type=_experiment, metavar="experiment")
    again.add_argument("--runs", type=int, default=10, help="how many, drawn at random")
    again.add_argument("--seed", type=int, default=0, help="of the draw")
    again.add_argument("--workers", type=int, default=1, help="processes, one core each")
    again.add_argument("--data-dir", help="folder of npz files")
    two = commands.add_parser("figures", help="draw figures")
    two.add_argument("experiments", nargs="*", type=_experiment, metavar="experiment")
    two.add_argument("--data-dir", help="folder of npz files")
    two.add_argument("--figures", type=Path, default=FIGURES)
    three = commands.add_parser("report", help="write RESULTS.md")
    three.add_argument("--output", type=Path, default=REPORT)
    _add_reproduce(commands)
    options = parser.parse_args(argv)
    if options.results is None:
        options.results = _default_results(options)
    if options.command is None:
        overview(options.results)
        return 0
    command = {
        "run": run,
        "recheck": recheck,
        "figures": figures,
        "report": report,
        "reproduce": reproduce,
    }[options.command]
    try:
        return command(options)
    except FileNotFoundError as missing:
        print(missing, file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
