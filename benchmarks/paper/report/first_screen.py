"""The first screen of RESULTS.md: ten lines, with the numbers of the runs."""

from __future__ import annotations

import numpy as np

from benchmarks.markdown import signed
from benchmarks.paper.experiments import PAPER_DRIFTS
from benchmarks.paper.published import failed_runs
from benchmarks.paper.report.claims import CLAIMS, THEORY
from benchmarks.paper.report.class_claims import written_runs
from benchmarks.paper.report.comparisons import BEST, finsler_name, tally
from benchmarks.paper.report.finding import (
    DOES_NOT,
    HOLDS,
    NOT_TESTED,
    NOT_YET,
    PARTLY,
    Runs,
    middle,
)
from benchmarks.paper.report.published_claims import as_written
from benchmarks.paper.report.speed_tables import fit_ratio

__all__ = ["first_screen"]


def first_screen(runs: Runs, found: dict) -> str:
    """``found``: the finding on every claim, by its name."""
    lines = [_failed(), _labels(runs, "umap"), _labels(runs, "tsne"), _third(runs, found),
             _heights(runs), _drift(runs), _relief(runs), _written(runs, found), _cost(runs, found),
             _maths(found)]  # fmt: skip
    body = "\n".join(f"{i}. {line}" for i, line in enumerate(filter(None, lines), 1))
    return (
        "# Results\n\n"
        f"The paper (arXiv 2603.11396) makes {len(CLAIMS)} claims that are judged here: "
        f"{_counts(found)}. In ten lines:\n\n{body}\n\n"
        f"**For a user.** {_advice(found)}"
    )


def _advice(found: dict) -> str:
    text = (
        "Use it to see which regions are dense, or which way directed distances lean, with "
        "ω around 0.5; read the height locally."
    )
    if found["third-column"].verdict == DOES_NOT:
        text += " Do not expect better clusters from it: the parent in three columns gives as much."
    return text


def _counts(found: dict) -> str:
    verdicts = [f.verdict for f in found.values()]
    full = sum(v == HOLDS for v in verdicts)
    none = sum(v == DOES_NOT for v in verdicts)
    open_ = sum(v in (NOT_YET, NOT_TESTED) for v in verdicts)
    rest = len(verdicts) - full - none - open_
    return f"{full} hold, {rest} hold in part, {none} do not hold, {open_} are not tested"


def _failed() -> str:
    gains = failed_runs.gains()
    return (
        "**The paper's gain of Finsler UMAP is mostly failed runs.** Its deviations (up to "
        "± 0.375) are just those of one or two runs in ten at AMI 0. "
        f"Without them the mean gain over 16 sets falls from {signed(gains.printed.mean())} to "
        f"{signed(gains.same_drift.mean())}, and {int((gains.same_drift > 0).sum())} sets gain "
        "instead of 16 ([why](#failed-runs-in-the-papers-tables))."
    )


def _labels(runs: Runs, family: str) -> str:
    title = {"umap": "UMAP", "tsne": "t-SNE"}[family]
    two, three = (tally(runs[family], family, BEST, f"{family}_{d}d", "ami") for d in (2, 3))
    if not two.total:
        return f"**Labels, {title}:** {NOT_YET}."
    text = f"**Labels, {title}.** Best of four ω by AMI, against {title} in 2-D: {two}"
    return text + (f"; against 3-D: {three}." if three.total else ".")


def _third(runs: Runs, found: dict) -> str:
    finding = found["third-column"]
    if finding.verdict == NOT_YET:
        return ""
    as_well = finding.verdict == DOES_NOT
    title = "A third Euclidean column gains as much" if as_well else "The third column"
    return f"**{title}.** {finding.ours}."


def _heights(runs: Runs) -> str:
    names = [d for d in dict.fromkeys(runs["umap"].data)]
    signs = [middle(runs["umap"], d, finsler_name("umap", 0.5), "sign") for d in names]
    disk = [middle(runs["disk"], "disk:300", f"finsler_{f}_0.5_3d", "density_height")
            for f in ("mds", "umap", "tsne")]  # fmt: skip
    if not (np.isfinite(disk).all() and np.isfinite(signs).any()):
        return f"**The height shows density:** {NOT_YET}."
    return (
        "**The height does show density.** Disk of 300 points, ω = 0.5, Spearman with the local "
        f"scale: MDS {disk[0]:.2f}, UMAP {disk[1]:.2f}, t-SNE {disk[2]:.2f}; on data with classes "
        f"UMAP orders {100 * np.nanmedian(signs):.0f} % of neighbour pairs rightly (chance 50 %)."
    )


def _drift(runs: Runs) -> str:
    names = list(dict.fromkeys(runs["umap"].data))
    signs = {
        w: [middle(runs["umap"], d, finsler_name("umap", w), "sign") for d in names]
        for w in PAPER_DRIFTS
    }
    known = {w: np.nanmedian(v) for w, v in signs.items() if np.isfinite(v).any()}
    if not known:
        return ""
    return (
        "**The drift matters for the height, not for labels.** The paper's small drifts give a "
        "height that means little: pairs in the right order "
        + ", ".join(f"{100 * v:.0f} % at ω = {w:g}" for w, v in known.items())
        + "."
    )


def _relief(runs: Runs) -> str:
    relief = [middle(runs["us_cities"], "us_cities", f"finsler_{f}_0.5_3d", "height_elevation")
              for f in ("mds", "umap", "tsne")]  # fmt: skip
    if not np.isfinite(relief).all():
        return ""
    return (
        "**The height is not the terrain.** US cities, Spearman of height and elevation: "
        f"MDS {relief[0]:.2f}, UMAP {relief[1]:.2f}, t-SNE {relief[2]:.2f}. It shows where cities "
        "are sparse, of which mountains are one cause among others."
    )


def _written(runs: Runs, found: dict) -> str:
    words = as_written(runs)
    if not words:
        return f"**The paper's own update rules:** {NOT_YET}."
    parts, named = [], written_runs(runs, "umap")
    tallies = [tally(named, "umap", BEST, f"umap_{d}d", "ami") for d in (2, 3)]
    if all(t.total for t in tallies):
        parts.append(
            f"UMAP, best of four ω, chosen on the labels, to 2-D {tallies[0]}; to 3-D {tallies[1]}"
        )
    if found["tsne-written"].ours:
        parts.append(f"t-SNE, {found['tsne-written'].ours}")
    return f"**The paper's own update rules, run here.** {'. '.join([*parts, words])}."


def _cost(runs: Runs, found: dict) -> str:
    ratios = [fit_ratio(runs, *pair) for pair in (("finsler_umap", "umap_2d"),
                                                  ("finsler_tsne", "opentsne_2d"))]  # fmt: skip
    if not np.isfinite(ratios).all():
        return ""
    return (
        f"**Cost.** A whole fit takes {ratios[0]:.2f} times UMAP's time and {ratios[1]:.2f} times "
        "openTSNE's; Finsler MDS does not need N² × N² matrices and runs on 20,000 points."
    )


def _maths(found: dict) -> str:
    names = [c.name for c in CLAIMS if c.group == THEORY]
    good = sum(found[n].verdict == HOLDS for n in names)
    part = sum(found[n].verdict == PARTLY for n in names)
    return (
        f"**Formulas.** {good} of {len(names)} statements hold, {part} in part. Wrong as printed: "
        "the gradient of Finsler t-SNE in the theorem (its proof is right), the SMACOF update, the "
        "recipe of the clusters. Right: the error in scikit-learn's t-SNE gradient for ν ≠ 1, "
        "which is not a constant factor."
    )
