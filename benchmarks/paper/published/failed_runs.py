"""Failed runs in the paper's tables, from means and deviations alone.

The paper prints a mean and a deviation over ten runs. If f of ten runs score u and the others v,
the mean is v − (f/10)(v − u) and the deviation √(f/10 · (1 − f/10)) |v − u|. AMI is 0 for clusters
that have nothing to do with the labels, so a row with f such runs has a deviation of √(f/(10 − f))
times its mean: 0.333 for one, 0.500 for two. Given f, u and v follow for every other score of the
row; u then says what the failed runs were.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from benchmarks.paper.published import LABEL_SCORES, SHAPE_SCORES, read

__all__ = ["count_failed", "gains", "good_and_failed", "read_as", "rows", "solved"]

RUNS = 10
# Deviation of the AMI in units of its mean, below which a row is taken to have no failed run: the
# largest such row has 0.035, the smallest with a failed run 0.329.
QUIET = 0.1
# How far the AMI of failed runs may be from 0: chance, rounding, and spread of the good runs.
NEAR_CHANCE = 0.03
KEYS = ["table", "data", "method", "drift", "dimension"]
# Tables of means over runs; the first two tables of the paper repeat rows of drift_umap.
OF_RUNS = ("drift_umap", "dimension")


def good_and_failed(mean, sd, failed: int, *, ddof: int = 0, higher: bool = True):
    """(v, u): the score of good and of failed runs that a mean and a deviation imply.

    ``ddof = 1`` reads the deviation as that of a sample. ``higher`` says that good runs have the
    higher score. Spread of the good runs themselves is neglected: it moves u away from v.
    """
    share = failed / RUNS
    population = np.asarray(sd) * np.sqrt((RUNS - ddof) / RUNS)
    gap = population / np.sqrt(share * (1 - share)) * (1 if higher else -1)
    return mean + share * gap, mean - (1 - share) * gap


def count_failed(mean: float, sd: float, *, ddof: int = 0) -> int | None:
    """How many of ten runs had an AMI of 0; None where no number of them explains the row."""
    if not np.isfinite(sd) or sd < QUIET * mean:
        return 0
    failed = {f: abs(good_and_failed(mean, sd, f, ddof=ddof)[1]) for f in range(1, RUNS)}
    best = min(failed, key=failed.__getitem__)
    return best if failed[best] <= NEAR_CHANCE else None


@cache
def rows(ddof: int = 0) -> pd.DataFrame:
    """Every row over ten runs: mean and deviation of the AMI, failed runs, AMI of the good ones.

    ``good`` takes the AMI of failed runs as 0; ``chance`` is what the row implies instead.
    """
    found = read()
    ami = found[(found.score == "ami") & found.table.isin(OF_RUNS)].drop(columns="score")
    counted = [count_failed(m, s, ddof=ddof) for m, s in zip(ami["mean"], ami.sd, strict=True)]
    ami = ami.assign(failed=counted)
    ami["good"] = ami["mean"] / (1 - ami.failed / RUNS)
    ami["chance"] = [
        good_and_failed(m, s, int(f), ddof=ddof)[1] if f > 0 else np.nan
        for m, s, f in zip(ami["mean"], ami.sd, ami.failed.astype(float), strict=True)
    ]
    return ami.reset_index(drop=True)


def read_as(ddof: int) -> np.ndarray:
    """AMI of the failed runs, in every row that has some, if deviations have this ``ddof``."""
    known = rows()
    known = known[known.failed > 0]
    triples = zip(known["mean"], known.sd, known.failed, strict=True)
    return np.array([good_and_failed(m, s, int(f), ddof=ddof)[1] for m, s, f in triples])


@cache
def solved() -> pd.DataFrame:
    """Good and failed value of every score, for every row that has failed runs."""
    found = read()
    known = rows()
    known = known[known.failed > 0][[*KEYS, "failed"]]
    both = found[found.score.isin((*LABEL_SCORES, *SHAPE_SCORES))].merge(known, on=KEYS)
    pairs = [
        good_and_failed(mean, sd, int(failed), higher=score != "davies_bouldin")
        for mean, sd, failed, score in zip(
            both["mean"], both.sd, both.failed, both.score, strict=True
        )
    ]
    return both.assign(good=[p[0] for p in pairs], bad=[p[1] for p in pairs])


@cache
def gains() -> pd.DataFrame:
    """The paper's gain in AMI, as printed and without failed runs, by data set.

    ``printed``: best of four drifts by mean AMI, less UMAP. ``same_drift``: good runs of both,
    at the drift that the paper chose. ``best_drift``: at the drift whose good runs are best.
    """
    table = rows()
    table = table[table.table == "drift_umap"]
    lines = []
    for data, found in table.groupby("data", sort=False):
        parent = found[found.method == "umap"].iloc[0]
        ours = found[found.method == "finsler_umap"]
        chosen, best = (ours.loc[ours[by].idxmax()] for by in ("mean", "good"))
        lines.append(
            {
                "data": data,
                "umap": parent["mean"],
                "finsler": chosen["mean"],
                "printed": chosen["mean"] - parent["mean"],
                "failed_umap": int(parent.failed),
                "failed_drifts": tuple(int(f) for f in ours.failed),
                "drift": chosen.drift,
                "failed_chosen": int(chosen.failed),
                "good_umap": parent.good,
                "good_finsler": chosen.good,
                "same_drift": chosen.good - parent.good,
                "best_drift": best.good - parent.good,
            }
        )
    return pd.DataFrame(lines)
