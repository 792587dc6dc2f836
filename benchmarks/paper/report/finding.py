"""What a claim is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from benchmarks.summary import values

__all__ = [
    "DOES_NOT",
    "FOLLOWS",
    "HOLDS",
    "NOT_TESTED",
    "NOT_YET",
    "ONLY_2D",
    "PARTLY",
    "Finding",
    "Runs",
    "joined",
    "middle",
    "middles",
    "of_cases",
]

Runs = dict[str, pd.DataFrame]
# What a verdict can say.
HOLDS, ONLY_2D, PARTLY = "holds", "holds only against 2-D", "holds in part"
DOES_NOT, NOT_TESTED, NOT_YET = "does not hold", "not tested", "not tested here yet"
# Correlations (Spearman's, Kendall's τ) that a reader would call "follows".
FOLLOWS = 0.8


class Finding(NamedTuple):
    """What came out, in words and numbers, the verdict in a few words, and what it depends on."""

    ours: str
    verdict: str
    note: str = ""


def of_cases(good: Sequence[bool]) -> str:
    """The verdict on something that holds in some cases and not in others."""
    if not len(good):
        return NOT_YET
    if all(good):
        return HOLDS
    return PARTLY if any(good) else DOES_NOT


def joined(*parts: pd.DataFrame) -> pd.DataFrame:
    """All runs of several tables, of which some may be empty."""
    return pd.concat([part for part in parts if not part.empty] or list(parts[:1]))


def middle(runs: pd.DataFrame, data: str, method: str, score: str) -> float:
    """Median over seeds; nan where there is no run."""
    found = values(runs, data, method, score)
    return float(found.median()) if len(found) else float("nan")


def middles(runs: pd.DataFrame, data: str, methods: Sequence[str], score: str) -> list[float]:
    """Medians of several methods over the seeds that all of them have; nan where there are none."""
    by_method = pd.concat([values(runs, data, m, score) for m in methods], axis=1, join="inner")
    return (
        [float(v) for v in by_method.median()] if len(by_method) else [float("nan")] * len(methods)
    )
