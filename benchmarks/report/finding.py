"""What a claim is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from benchmarks.summary import values

__all__ = ["FOLLOWS", "NOT_YET", "Finding", "Runs", "joined", "middle", "middles"]

Runs = dict[str, pd.DataFrame]
NOT_YET = "not tested here yet"
# Correlations (Spearman's, Kendall's τ) that a reader would call "follows".
FOLLOWS = 0.8


class Finding(NamedTuple):
    """What came out, in words and numbers, and the verdict."""

    ours: str
    verdict: str


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
