"""Finsler methods against their Euclidean parents: wins, losses and the verdict they add up to.

A data set counts as won where the 95 % interval of the paired difference lies above 0 (in the
direction in which the score is better), as lost where it lies below, and as even otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from benchmarks.experiments import PAPER_DRIFTS
from benchmarks.report.finding import NOT_YET
from benchmarks.report.markdown import with_interval
from benchmarks.scores import SCORES
from benchmarks.summary import Difference, difference, mean_difference, values

__all__ = [
    "DOES_NOT",
    "HOLDS",
    "ONLY_2D",
    "Tally",
    "best_of_four",
    "compare",
    "finsler_name",
    "tally",
    "verdict",
]

# Fewer pairs of runs than this decide nothing; an interval of three is their range.
MIN_PAIRS = 3
HOLDS, ONLY_2D, DOES_NOT = "holds", "holds only against 2-D", "does not hold"


class Tally(NamedTuple):
    """On how many data sets a method is better, worse and even.

    mean : mean over these data sets of the median difference, with its interval over data sets
    """

    won: int
    lost: int
    even: int
    mean: Difference | None = None

    @property
    def total(self) -> int:
        return self.won + self.lost + self.even

    @property
    def holds(self) -> bool:
        """ "Better" holds where it is won on more than half of the data sets and lost on none."""
        return self.lost == 0 and 2 * self.won > self.total

    def __str__(self) -> str:
        words = f"{self.won} won, {self.lost} lost, {self.even} even"
        if self.mean is None or not self.mean.pairs:
            return words
        return f"{words}, mean {with_interval(self.mean)}"


def finsler_name(family: str, drift: float, dimension: int = 3) -> str:
    return f"finsler_{family}_{drift:g}_{dimension}d"


def best_of_four(runs: pd.DataFrame, family: str, data: str) -> str | None:
    """The paper's choice: of its four drifts, the one with the highest mean AMI on the labels."""
    means = {}
    for drift in PAPER_DRIFTS:
        found = values(runs, data, finsler_name(family, drift), "ami")
        if found.empty:
            return None
        means[finsler_name(family, drift)] = found.mean()
    return max(means, key=means.__getitem__)


def compare(runs: pd.DataFrame, data: str, ours: str, theirs: str, score: str) -> Difference:
    """Paired difference, turned so that more is better."""
    gap = difference(values(runs, data, ours, score), values(runs, data, theirs, score))
    if SCORES[score][1] < 0:
        return Difference(-gap.median, -gap.high, -gap.low, gap.pairs)
    return gap


def tally(runs: pd.DataFrame, family: str, drift: float | None, parent: str, score: str) -> Tally:
    """Over all data sets; with no drift, the best of four by the labels."""
    won = lost = even = 0
    gaps = []
    for data in dict.fromkeys(runs.data):
        ours = best_of_four(runs, family, data) if drift is None else finsler_name(family, drift)
        if ours is None:
            continue
        gap = compare(runs, data, ours, parent, score)
        if gap.pairs < MIN_PAIRS:
            continue
        gaps.append(gap)
        won += gap.low > 0
        lost += gap.high < 0
        even += gap.low <= 0 <= gap.high
    return Tally(won, lost, even, mean_difference(gaps))


def verdict(against_2d: Tally, against_3d: Tally) -> str:
    """What two tallies add up to; nothing, where one of the parents has not been run."""
    if not (against_2d.total and against_3d.total):
        return NOT_YET
    if against_2d.holds and against_3d.holds:
        return HOLDS
    return ONLY_2D if against_2d.holds else DOES_NOT
