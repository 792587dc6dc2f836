"""Finsler methods against their Euclidean parents: wins, losses and the verdict they add up to.

A data set counts as won where the 95 % interval of the paired difference lies above 0 (in the
direction in which the score is better), as lost where it lies below, and as even otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from benchmarks.markdown import with_interval
from benchmarks.paper.experiments import PAPER_DRIFTS
from benchmarks.paper.methods import family_of
from benchmarks.paper.report.finding import DOES_NOT, HOLDS, NOT_YET, ONLY_2D
from benchmarks.paper.scores import SCORES
from benchmarks.summary import Difference, difference, mean_difference, values

__all__ = [
    "BEST",
    "CHOICES",
    "DOES_NOT",
    "HOLDS",
    "MIN_PAIRS",
    "ONLY_2D",
    "OTHER_SEEDS",
    "SURE_PAIRS",
    "Tally",
    "best_of_four",
    "choice_title",
    "chosen_scores",
    "compare",
    "finsler_name",
    "rank",
    "tally",
    "verdict",
]

# Fewer pairs of runs than this decide nothing. The interval of up to five pairs is their range,
# which covers the median in 75, 87.5 and 94 % of cases for three, four and five; from six to ten
# pairs it covers it in 94, 87, 92, 96 and 94 % (simulated).
MIN_PAIRS, SURE_PAIRS = 3, 6
# How a drift is chosen, where it is not fixed: the best of the paper's four by AMI on the labels,
# over all seeds as in the paper, or for every seed over the other seeds.
BEST, OTHER_SEEDS = "best of four", "best of four, chosen on other seeds"
Choice = float | str
CHOICES: tuple[Choice, ...] = (0.0, 0.01, 0.5, BEST, OTHER_SEEDS)


class Tally(NamedTuple):
    """On how many data sets a method is better, worse and even.

    left_out : data sets that have too few pairs of runs
    least : the smallest number of pairs on any data set that counts
    mean : mean over these data sets of the median difference, with its interval over data sets
    """

    won: int
    lost: int
    even: int
    left_out: int = 0
    least: int = 0
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
        if self.left_out:
            words += f", {self.left_out} with too few runs"
        if self.mean is None or not self.mean.pairs:
            return words
        return f"{words}, mean {with_interval(self.mean)}"


def finsler_name(family: str, drift: float, dimension: int = 3) -> str:
    return f"finsler_{family}_{drift:g}_{dimension}d"


def choice_title(choice: Choice) -> str:
    return f"ω = {choice:g}" if isinstance(choice, float) else choice


def best_of_four(
    runs: pd.DataFrame,
    family: str,
    data: str,
    without: int | None = None,
    layout: str = "finsler",
) -> str | None:
    """The paper's choice: of its four drifts, the one with the highest mean AMI on the labels.

    ``without`` leaves a seed out of the choice. ``layout = "paper"`` chooses among the runs of
    the paper's own update rules. None where one of the four has no runs.
    """
    means = {}
    for drift in PAPER_DRIFTS:
        name = f"{layout}_{family}_{drift:g}_3d"
        scores = values(runs, data, name, "ami")
        means[name] = scores[scores.index != without].mean()
    return None if any(pd.isna(v) for v in means.values()) else max(means, key=means.__getitem__)


def chosen_scores(
    runs: pd.DataFrame, family: str, data: str, choice: Choice, score: str
) -> pd.Series:
    """A score by seed, at a fixed drift or at the one that is chosen."""
    if isinstance(choice, float):
        return values(runs, data, finsler_name(family, choice), score)
    if choice == BEST:
        best = best_of_four(runs, family, data)
        return pd.Series(dtype=float) if best is None else values(runs, data, best, score)
    found = {}
    for seed in values(runs, data, finsler_name(family, PAPER_DRIFTS[0]), score).index:
        best = best_of_four(runs, family, data, without=seed)
        if best is not None:
            found[seed] = values(runs, data, best, score).get(seed)
    return pd.Series(found, dtype=float)


def compare(runs: pd.DataFrame, data: str, ours: str, theirs: str, score: str) -> Difference:
    """Paired difference of two methods, turned so that more is better."""
    once = not (family_of(ours).random and family_of(theirs).random)
    return _turned(values(runs, data, ours, score), values(runs, data, theirs, score), score, once)


def _turned(ours: pd.Series, theirs: pd.Series, score: str, once: bool = False) -> Difference:
    gap = difference(ours, theirs, once=once)
    if SCORES[score][1] < 0:
        return Difference(-gap.median, -gap.high, -gap.low, gap.pairs)
    return gap


def tally(
    runs: pd.DataFrame,
    family: str,
    choice: Choice,
    parent: str,
    score: str,
    parent_score: str | None = None,
) -> Tally:
    """Over all data sets that have enough runs; the parent's score may be another one."""
    won = lost = even = left_out = 0
    gaps = []
    for data in dict.fromkeys(runs.data):
        ours = chosen_scores(runs, family, data, choice, score)
        gap = _turned(ours, values(runs, data, parent, parent_score or score), score)
        if gap.pairs < MIN_PAIRS:
            left_out += 1
            continue
        gaps.append(gap)
        won += gap.low > 0
        lost += gap.high < 0
        even += gap.low <= 0 <= gap.high
    least = min((gap.pairs for gap in gaps), default=0)
    return Tally(won, lost, even, left_out, least, mean_difference(gaps))


def verdict(against_2d: Tally, against_3d: Tally) -> str:
    """What two tallies add up to; nothing, where one of the parents has not been run."""
    if not (against_2d.total and against_3d.total):
        return NOT_YET
    if against_2d.holds and against_3d.holds:
        return HOLDS
    return ONLY_2D if against_2d.holds else DOES_NOT


def rank(words: str) -> int:
    """How much a verdict grants."""
    return {HOLDS: 2, ONLY_2D: 1}.get(words, 0)
