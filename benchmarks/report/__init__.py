"""RESULTS.md, written from the ledgers: verdicts first, then every table behind them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.experiments import EXPERIMENTS, cells
from benchmarks.ledger import Ledger, read_runs
from benchmarks.report import ablation_tables, class_tables, height_tables, speed_tables
from benchmarks.report.claims import CLAIMS
from benchmarks.report.markdown import table
from benchmarks.runner import ledger_path
from benchmarks.summary import failures

__all__ = ["write"]

OPENING = """# Results

What the paper claims (arXiv 2603.11396), what came out here, and a verdict for each. This page
is written by `python -m benchmarks report` from the runs in `benchmarks/results/runs_*.csv`, one
line for every score of every run. What each estimator of this project is worth by itself, with
speed and memory, is in [ESTIMATORS.md](ESTIMATORS.md).

**How to read it.** Medians over seeds. Brackets are 95 % bootstrap intervals of the median
paired difference, seed by seed. All methods of a data set share one neighbour graph, but for
Isomap, MDS and extended neighbours (k⁺), which make their own. A data set
is *won* if the interval lies above 0 and *lost* if it lies below; *mean* is the mean over data
sets of the median difference, its interval that of other draws of data sets. "Better" *holds* if
it is won on more than half of the data sets and lost on none; *holds only against 2-D* if so for
the parent in two dimensions but not for the parent in three, which has as many columns as a map
with a height. Failed and degenerate runs are counted and named at the end, not averaged in.
Methods that do not depend on the seed run once.

On data with classes the verdict is on the paper's own rule, the best of four drifts by AMI on the
labels, and says so where no fixed drift (0.01, 0.5) reaches it, where it fails on seeds other than
those it was chosen on, and where the directed graph does as well without any drift. Three pairs of
runs are the least that decide. With up to five an interval is their range, which covers the median
in 75, 87.5 and 94 % of cases for three, four and five pairs, not 95 %: such verdicts are marked
*weak*. All these qualifications were made after first results were seen.

Heights *follow* something, or order clusters, from a correlation (Spearman's, or Kendall's τ) of
0.8 on, relief from 0.5 on; a change of less than 0.05 is *little*, of time one of less than a
quarter. These limits are ours.

**What of the paper was at hand.** Its abstract, the beginning of its introduction and part of
the caption of Figure 1 in its own words, and notes on its protocol, formulas and a few numbers.
Claims marked † are comparisons the paper makes whose conclusion in its own words was not at
hand: the verdict is on the claim as worded here. Image features come from a smaller backbone
than the paper's, so methods are compared with each other, not scores with the paper's.
"""


def write(results: Path, output: Path) -> None:
    """Write the report of whatever has been run."""
    runs = {name: _in_order(name, read_runs([ledger_path(name, results)])) for name in EXPERIMENTS}
    times = results / "speed_all.csv"
    runs["speed_all"] = pd.read_csv(times) if times.is_file() else pd.DataFrame()
    sections = [
        OPENING,
        _verdicts(runs),
        height_tables.synthetic(runs),
        height_tables.places(runs),
        height_tables.directed(runs),
        class_tables.classification(runs, "umap"),
        class_tables.classification(runs, "tsne"),
        class_tables.full_size(runs),
        ablation_tables.ablations(runs),
        class_tables.default_drift(runs),
        speed_tables.speed(runs),
        class_tables.spread_of_means(runs),
        class_tables.not_run(),
        _failed(runs),
        _commands(runs, results),
    ]
    output.write_text("\n".join(s.strip() + "\n" for s in sections if s.strip()))


def _in_order(name: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Runs as they are planned, rather than as they ended, and quick to search by name."""
    experiment = EXPERIMENTS[name]
    place = {d: i for i, d in enumerate(experiment.data)}
    turn = {m: i for i, m in enumerate(experiment.methods)}
    order = pd.DataFrame({"data": runs.data.map(place), "method": runs.method.map(turn)})
    planned = runs.loc[order.sort_values(["data", "method"], kind="stable").index]
    return planned.astype(dict.fromkeys(("data", "method", "score"), "category"))


def _verdicts(runs: dict[str, pd.DataFrame]) -> str:
    rows = []
    for claim in CLAIMS:
        finding = claim.judge(runs)
        mark = "" if claim.wording else " †"
        statement = f"*{claim.where}.* {claim.statement}{mark}"
        rows.append((statement, claim.paper, finding.ours, f"**{finding.verdict}**"))
    return "## Verdicts\n\n" + table(("claim", "paper", "here", "verdict"), rows)


def _failed(runs: dict[str, pd.DataFrame]) -> str:
    kept = [runs[name] for name in EXPERIMENTS]
    lost = pd.concat([failures(found) for found in kept])
    total = sum(len(found.drop_duplicates(["data", "method", "seed"])) for found in kept)
    text = f"## Failed and degenerate runs\n\n{len(lost)} of {total} runs."
    if lost.empty:
        return text
    rows = []
    for (data, method, note), group in lost.groupby(
        ["data", "method", "note"], sort=False, observed=True
    ):
        seeds = ", ".join(str(s) for s in np.unique(group.seed))
        rows.append((data, method, seeds, note.replace("|", "/")))
    return text + "\n\n" + table(("data", "method", "seeds", "why"), rows)


def _commands(runs: dict[str, pd.DataFrame], results: Path) -> str:
    rows = []
    for name, experiment in EXPERIMENTS.items():
        planned = sum(1 for _ in cells(name))
        done = len(Ledger(ledger_path(name, results)))
        rows.append(
            (f"`python -m benchmarks run {name}`", experiment.question, f"{done} of {planned}")
        )
    return (
        "## Commands\n\nEach goes on where it stopped; `--data-dir DIR` names the folder with "
        "the data "
        "that are not generated, and `--workers 2` runs on two cores. A run that is repeated "
        "gives the same numbers: `python -m benchmarks recheck --runs 20 --data-dir DIR` repeats "
        "some, drawn at random, and compares all their scores.\n\n"
        + table(("command", "question", "runs here"), rows)
        + "\n\n    python -m benchmarks figures --data-dir DIR\n    python -m benchmarks report"
    )
