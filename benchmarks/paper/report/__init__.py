"""RESULTS.md, written from the ledgers: ten lines, verdicts, then every table behind them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.ledger import Ledger, read_runs
from benchmarks.markdown import table
from benchmarks.paper import FROZEN_AT
from benchmarks.paper.experiments import EXPERIMENTS, cells
from benchmarks.paper.processor import AVX512
from benchmarks.paper.report import (
    ablation_tables,
    class_tables,
    drop_in_tables,
    failed_tables,
    height_tables,
    side_by_side,
    speed_tables,
)
from benchmarks.paper.report.claims import CLAIMS
from benchmarks.paper.report.finding import Finding, joined
from benchmarks.paper.report.first_screen import first_screen
from benchmarks.paper.report.opening import OPENING
from benchmarks.paper.runner import ledger_path
from benchmarks.summary import failures

__all__ = ["write"]

COMMAND = "python -m benchmarks.paper"


def write(results: Path, output: Path) -> None:
    """Write the report of whatever has been run."""
    runs = {name: _in_order(name, read_runs([ledger_path(name, results)])) for name in EXPERIMENTS}
    times = results / "speed_all.csv"
    runs["speed_all"] = pd.read_csv(times) if times.is_file() else pd.DataFrame()
    found = {claim.name: claim.judge(runs) for claim in CLAIMS}
    sections = [
        first_screen(runs, found),
        _verdicts(found),
        OPENING,
        failed_tables.failed_in_the_paper(runs, results),
        side_by_side.side_by_side(runs),
        side_by_side.corrections(runs),
        _evidence(found),
        drop_in_tables.drop_in(runs),
        height_tables.synthetic(runs),
        height_tables.places(runs),
        height_tables.directed(runs),
        class_tables.classification(runs, "umap"),
        class_tables.classification(runs, "tsne"),
        class_tables.full_size(runs),
        ablation_tables.ablations(runs),
        class_tables.default_drift(runs),
        speed_tables.speed(runs),
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


def _verdicts(found: dict[str, Finding]) -> str:
    """One short line per claim."""
    rows = [
        (c.group, c.statement, c.place, f"**{found[c.name].verdict}**", f"[more](#{_anchor(c)})")
        for c in CLAIMS
    ]
    return "## Verdicts\n\n" + table(("about", "claim", "place", "verdict", "detail"), rows)


def _anchor(claim) -> str:
    return f"claim-{claim.name}"


def _evidence(found: dict[str, Finding]) -> str:
    """What stands behind each verdict."""
    parts = ["## Evidence, claim by claim\n"]
    for claim in CLAIMS:
        finding = found[claim.name]
        note = f" ({finding.note})" if finding.note else ""
        lines = [
            f"### Claim: {claim.name}\n\n{claim.statement} *{claim.place}.* "
            f"**{finding.verdict}**{note}.",
            f"- Paper: {claim.paper}.",
        ]
        if finding.ours:
            lines.append(f"- Here: {finding.ours.rstrip('.')}.")
        if claim.look:
            lines.append(f"- See: {claim.look}.")
        parts.append("\n".join([lines[0], "", *lines[1:]]) + "\n")
    return "\n".join(parts)


def _failed(runs: dict[str, pd.DataFrame]) -> str:
    kept = [runs[name] for name in EXPERIMENTS]
    lost = joined(*(failures(found) for found in kept))
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


def _with_avx512(runs: dict[str, pd.DataFrame]) -> str:
    """How many runs of which experiments were not held to AVX2."""
    parts = []
    for name in EXPERIMENTS:
        marked = runs[name][runs[name].note == AVX512]
        if len(marked):
            parts.append(f"{len(marked.drop_duplicates(['data', 'method', 'seed']))} of {name}")
    return ", ".join(parts) or "none"


def _commands(runs: dict[str, pd.DataFrame], results: Path) -> str:
    rows = []
    for name, experiment in EXPERIMENTS.items():
        planned = sum(1 for _ in cells(name))
        done = len(Ledger(ledger_path(name, results)))
        rows.append((f"`{COMMAND} run {name}`", experiment.question, f"{done} of {planned}"))
    return (
        "## Commands\n\nEach goes on where it stopped; `--data-dir DIR` names the folder with "
        "the data that are not generated, and `--workers 2` runs on two cores. A run that is "
        f"repeated on a checkout of {FROZEN_AT} gives the same numbers; later versions lay out "
        f"with other bits. `{COMMAND} recheck --runs 20 --data-dir DIR` (there `python -m "
        "benchmarks recheck`) repeats some, drawn at random, and compares all their scores. Runs "
        "are held to AVX2 (see `benchmarks/paper/processor.py`), but for "
        f"{_with_avx512(runs)}, which the CSV files mark “{AVX512}”: those repeat on a processor "
        "with AVX-512 only, and on another give what "
        "another seed would.\n\n"
        + table(("command", "question", "runs here"), rows)
        + f"\n\n    {COMMAND} figures --data-dir DIR\n    {COMMAND} report\n    {COMMAND}.published"
    )
