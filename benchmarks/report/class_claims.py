"""Judges of what the paper says about labels, dimensions, size and other methods."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.experiments import PAPER_DRIFTS
from benchmarks.report.comparisons import (
    DOES_NOT,
    HOLDS,
    ONLY_2D,
    compare,
    finsler_name,
    tally,
    verdict,
)
from benchmarks.report.finding import NOT_YET, Finding, Runs, middle
from benchmarks.report.markdown import with_interval
from benchmarks.summary import mean_difference

# A change of AMI, or of the share of pairs in order, that a reader would call little.
LITTLE = 0.05


def agreement(family: str, score: str = "ami"):
    """Judge of a score on data with classes, at fixed drifts and at the best of four."""

    def judge(all_runs: Runs) -> Finding:
        runs = all_runs[family]
        if runs.empty:
            return Finding("", NOT_YET)
        parts, verdicts = [], []
        for title, drift in (("ω = 0.01", 0.01), ("ω = 0.5", 0.5), ("best of four", None)):
            two = tally(runs, family, drift, f"{family}_2d", score)
            three = tally(runs, family, drift, f"{family}_3d", score)
            parts.append(f"{title}: to 2-D {two}; to 3-D {three}")
            verdicts.append(verdict(two, three))
        *fixed, chosen = verdicts
        parts.append(f"{_seeds(runs, f'finsler_{family}_0.5_3d')} seeds")
        if chosen in (HOLDS, ONLY_2D) and chosen not in fixed:
            chosen += ", and only with ω chosen on the labels"
        return Finding(". ".join(parts) + ".", chosen)

    return judge


def _seeds(runs: pd.DataFrame, method: str) -> str:
    """How many seeds the data sets have."""
    counts = runs[runs.method == method].groupby("data").seed.nunique()
    low, high = counts.min(), counts.max()
    return f"{low}" if low == high else f"{low} to {high}"


def consistency(all_runs: Runs) -> Finding:
    """ "Consistently superior": every agreement score, both families, best of four."""
    parts, verdicts = [], []
    for family in ("umap", "tsne"):
        runs = all_runs[family]
        if runs.empty:
            return Finding("", NOT_YET)
        for score in ("ami", "silhouette", "knn5"):
            two, three = (tally(runs, family, None, f"{family}_{d}d", score) for d in (2, 3))
            parts.append(f"{family} {score}: to 2-D {two}; to 3-D {three}")
            verdicts.append(verdict(two, three))
    worst = DOES_NOT if DOES_NOT in verdicts else max(verdicts, key=len)
    return Finding(". ".join(parts) + ".", worst)


def third_dimension(all_runs: Runs) -> Finding:
    """How much of the gain over two dimensions the Euclidean parent has in three, too."""
    parts, verdicts = [], []
    for family in ("umap", "tsne"):
        runs = all_runs[family]
        gains, control = [], []
        for data in dict.fromkeys(runs.data):
            ours = compare(runs, data, finsler_name(family, 0.5), f"{family}_2d", "ami")
            plain = compare(runs, data, f"{family}_3d", f"{family}_2d", "ami")
            if ours.pairs and plain.pairs:
                gains.append(ours)
                control.append(plain)
        if gains:
            gain, plain_gain = mean_difference(gains), mean_difference(control)
            parts.append(
                f"{family}: mean AMI gain over 2-D {with_interval(gain)} for Finsler at ω = 0.5, "
                f"{with_interval(plain_gain)} for the Euclidean parent in 3-D ({gain.pairs} sets)"
            )
            verdicts.append(tally(runs, family, 0.5, f"{family}_3d", "ami").holds)
    if not parts:
        return Finding("", NOT_YET)
    return Finding(". ".join(parts), HOLDS if all(verdicts) else DOES_NOT)


def dimension(all_runs: Runs) -> Finding:
    runs = pd.concat([all_runs["dimension"], all_runs["umap"]])
    parts, signs = [], []
    for data in dict.fromkeys(all_runs["dimension"].data):
        for d in (5, 10, 50):
            for drift in (0.01, 0.5):
                gap = compare(runs, data, finsler_name("umap", drift, d), f"umap_{d}d", "ami")
                if gap.pairs > 1:
                    signs.append(np.sign(gap.low) + np.sign(gap.high))
                    parts.append(f"{data} {d}-D, ω = {drift:g}: {with_interval(gap)}")
    if not parts:
        return Finding("", NOT_YET)
    won, lost = signs.count(2.0), signs.count(-2.0)
    result = HOLDS if lost == 0 and 2 * won > len(signs) else DOES_NOT
    return Finding("AMI against UMAP with as many columns: " + "; ".join(parts), result)


def plane(all_runs: Runs) -> Finding:
    runs = pd.concat([all_runs["dimension"], all_runs["umap"]])
    parts, lows = [], []
    for data in dict.fromkeys(all_runs["dimension"].data):
        for drift in (0.0, 0.01, 0.5):
            gap = compare(runs, data, finsler_name("umap", drift, 2), "umap_2d", "ami")
            if gap.pairs > 1:
                lows.append(gap.low)
                parts.append(f"{data}, ω = {drift:g}: {with_interval(gap)}")
    if not parts:
        return Finding("", NOT_YET)
    return Finding(
        "Finsler UMAP in R² against UMAP in R², AMI: " + "; ".join(parts),
        HOLDS if min(lows) > 0 else DOES_NOT,
    )


def drift_effect(all_runs: Runs) -> Finding:
    runs, spreads, signs = all_runs["umap"], [], {}
    names = dict.fromkeys(runs.data)
    for data in names:
        scores = [middle(runs, data, finsler_name("umap", w), "ami") for w in PAPER_DRIFTS]
        if np.isfinite(scores).all():
            spreads.append(max(scores) - min(scores))
    if not spreads:
        return Finding("", NOT_YET)
    for w in PAPER_DRIFTS:
        found = [middle(runs, data, finsler_name("umap", w), "sign") for data in names]
        signs[w] = float(np.nanmedian(found)) if np.isfinite(found).any() else float("nan")
    return Finding(
        f"AMI over the four drifts of the paper differs by {np.median(spreads):.3f} (median over "
        f"{len(spreads)} data sets, at most {max(spreads):.3f}); the share of neighbour pairs in "
        "the right order of height is "
        + ", ".join(f"{v:.2f} at {w:g}" for w, v in signs.items())
        + " (0.5 is chance).",
        f"labels: {HOLDS if np.median(spreads) <= LITTLE else DOES_NOT}; "
        f"height: {HOLDS if np.ptp(list(signs.values())) <= LITTLE else DOES_NOT}",
    )


def poincare(all_runs: Runs) -> Finding:
    runs = pd.concat([all_runs["poincare"], all_runs["tsne"]])
    theirs = middle(runs, "imagenette", "poincare_2d", "ami")
    ours = middle(runs, "imagenette", "finsler_tsne_0.5_3d", "ami")
    if not np.isfinite([theirs, ours]).all():
        return Finding("", NOT_YET)
    return Finding(
        f"Imagenette, AMI: Poincaré map {theirs:.3f} (k-means in the plane of the disc, one run), "
        f"Finsler t-SNE {ours:.3f}",
        HOLDS if ours > theirs else DOES_NOT,
    )


def large(all_runs: Runs) -> Finding:
    done = all_runs["full_size"]
    sizes = dict.fromkeys(done.data)
    if not len(sizes):
        return Finding("1,000,000 × 50: see ESTIMATORS.md", HOLDS)
    text = "; ".join(
        f"{d}: {middle(done, d, 'finsler_umap_0.5_3d', 'seconds'):.0f} s (UMAP 2-D "
        f"{middle(done, d, 'umap_2d', 'seconds'):.0f} s)"
        for d in sizes
    )
    return Finding(f"60,000 rows on one core, graph given: {text}. 1,000,000 × 50 finishes in "
                   "3.3 GiB (ESTIMATORS.md).", HOLDS)  # fmt: skip
