"""Statistics of runs: middle values, spread, failures, and paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import bootstrap

from benchmarks.ledger import FAILED

__all__ = [
    "Difference",
    "difference",
    "failures",
    "mean_difference",
    "print_medians",
    "summary",
    "values",
]

RESAMPLES = 5000
CONFIDENCE = 0.95


class Difference(NamedTuple):
    """Median of paired differences, and its 95 % bootstrap interval; nan with fewer than two.

    Of several data sets: the mean of such medians, ``pairs`` being their number.
    """

    median: float
    low: float
    high: float
    pairs: int


def values(runs: pd.DataFrame, data: str, method: str, score: str) -> pd.Series:
    """A score by seed."""
    chosen = (runs.data == data) & (runs.method == method) & (runs.score == score)
    rows = np.flatnonzero(chosen)
    seeds, first = np.unique(runs.seed.to_numpy()[rows], return_index=True)
    found = runs.value.to_numpy(dtype=float)[rows[first]]
    return pd.Series(found, index=pd.Index(seeds, name="seed"), name="value")


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs, mean, median and standard deviation by data, method and score.

    Failed and degenerate runs have no scores, so nothing of them is averaged in; see `failures`.
    """
    scored = runs[runs.score != FAILED].drop_duplicates(["data", "method", "seed", "score"])
    grouped = scored.groupby(["data", "method", "score"], sort=False).value
    return grouped.agg(["count", "mean", "median", "std"]).reset_index()


def failures(runs: pd.DataFrame) -> pd.DataFrame:
    """Failed and degenerate runs: data, method, seed and why."""
    return runs[runs.score == FAILED][["data", "method", "seed", "note"]].reset_index(drop=True)


def difference(ours: pd.Series, theirs: pd.Series, *, once: bool = False) -> Difference:
    """Paired difference of two scores by seed.

    With ``once``, a score that was measured once, because its method does not depend on the
    seed, is paired with every seed of the other; without, a single run is a single pair.
    """
    if once and len(theirs) == 1:
        theirs = pd.Series(theirs.iloc[0], index=ours.index)
    elif once and len(ours) == 1:
        ours = pd.Series(ours.iloc[0], index=theirs.index)
    gaps = (ours - theirs).dropna().to_numpy(dtype=float)
    if len(gaps) == 0:
        return Difference(np.nan, np.nan, np.nan, 0)
    middle = float(np.median(gaps))
    if len(gaps) < 2:
        return Difference(middle, np.nan, np.nan, len(gaps))
    return Difference(middle, *_interval(gaps, np.median), len(gaps))


def mean_difference(gaps: Sequence[Difference]) -> Difference:
    """Mean of the median differences of several data sets, which are what is resampled."""
    medians = np.array([gap.median for gap in gaps if gap.pairs])
    if len(medians) < 2:
        return Difference(medians.mean() if len(medians) else np.nan, np.nan, np.nan, len(medians))
    return Difference(float(medians.mean()), *_interval(medians, np.mean), len(medians))


def _interval(sample: np.ndarray, statistic) -> tuple[float, float]:
    if np.ptp(sample) == 0:
        return float(sample[0]), float(sample[0])
    found = bootstrap(
        (sample,),
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)


def print_medians(runs: pd.DataFrame, controls: tuple[str, ...]) -> None:
    """A line for every data set and score: medians, and intervals of the difference to controls."""
    for (data, score), found in runs.groupby(["data", "score"], sort=False):
        parts = []
        for method in dict.fromkeys(runs[runs.data == data].method):
            ours = values(found, data, method, score)
            if ours.empty:
                continue
            text = f"{method} {ours.median():.4f} (n={len(ours)})"
            for control in controls:
                gap = difference(ours, values(found, data, control, score))
                if gap.pairs and method not in controls:
                    low, high = (gap.median, gap.median) if gap.pairs == 1 else (gap.low, gap.high)
                    text += f" [{low:+.4f}, {high:+.4f} to {control}]"
            parts.append(text)
        print(f"{data:16s} {score:14s} " + "; ".join(parts))
