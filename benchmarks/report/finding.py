"""What a claim is judged by."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from benchmarks.summary import values

__all__ = ["FOLLOWS", "NOT_YET", "Finding", "Runs", "middle"]

Runs = dict[str, pd.DataFrame]
NOT_YET = "not tested here yet"
# Spearman correlations that a reader would call "follows".
FOLLOWS = 0.8


class Finding(NamedTuple):
    """What came out, in words and numbers, and the verdict."""

    ours: str
    verdict: str


def middle(runs: pd.DataFrame, data: str, method: str, score: str) -> float:
    """Median over seeds; nan where there is no run."""
    found = values(runs, data, method, score)
    return float(found.median()) if len(found) else float("nan")
