"""Metrics that are functions of a Euclidean distance between transformed rows.

=============  ==============================  ==========
metric         rows                            value
=============  ==============================  ==========
euclidean, l2  x                               d
sqeuclidean    x                               d²
cosine         x / ‖x‖                         d²/2
correlation    the same of x − mean(x)         d²/2
hellinger      √(x / Σx)                       d/√2
=============  ==============================  ==========

As in umap-learn, rows without a direction (zeros, or constants for the correlation) have distance 0
from each other and 1 from all others: they get a direction of their own in one more column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse

from finsler_ext._blocks import row_blocks

__all__ = ["REDUCIBLE", "Reduction", "reduction_of"]


class Reduction(NamedTuple):
    """Transformed rows, how to transform others, and the metric as a function of the distance."""

    rows: np.ndarray
    transform: Callable[[np.ndarray], np.ndarray]
    value: Callable[[np.ndarray], np.ndarray]

    def of(self, new: np.ndarray) -> np.ndarray | None:
        """New rows, transformed; None if they are not finite."""
        return self.transform(new) if _is_finite(new) else None


def reduction_of(metric: str | None, X, metric_kwds=None) -> Reduction | None:
    """How to find neighbours by Euclidean distances, or None where that is not possible."""
    if metric not in REDUCIBLE or metric_kwds or scipy.sparse.issparse(X) or X.dtype.kind != "f":
        return None
    if not _is_finite(X) or (metric == "hellinger" and X.min(initial=0.0) < 0):
        return None
    transform, value = REDUCIBLE[metric]
    return Reduction(transform(X), transform, value)


def _is_finite(X) -> bool:
    """Without a copy of the data: a sum of finite numbers may overflow, their extremes do not."""
    return bool(X.size == 0 or (np.isfinite(X.min()) and np.isfinite(X.max())))


def _plain(X):
    return np.ascontiguousarray(X)


def _unit(X, centred=False):
    unit = np.empty((X.shape[0], X.shape[1] + 1), dtype=X.dtype)
    for block in row_blocks(len(X)):
        rows = X[block].astype(np.float64)
        if centred:
            rows -= rows.mean(axis=1, keepdims=True)
        largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
        rows /= np.where(largest > 0, largest, 1.0)  # squares must not vanish
        norm = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        unit[block, -1] = norm == 0
        unit[block, :-1] = rows / np.where(norm > 0, norm, 1.0)[:, None]
    return unit


def _deviations(X):
    return _unit(X, centred=True)


def _root_shares(X):
    roots = np.empty((X.shape[0], X.shape[1] + 1), dtype=X.dtype)
    for block in row_blocks(len(X)):
        rows = X[block].astype(np.float64)
        total = rows.sum(axis=1)
        roots[block, -1] = total == 0
        roots[block, :-1] = np.sqrt(rows / np.where(total > 0, total, 1.0)[:, None])
    return roots


def _half_square(d):
    return 0.5 * d * d


REDUCIBLE: dict[str | None, tuple[Callable, Callable]] = {
    "euclidean": (_plain, lambda d: d),
    "l2": (_plain, lambda d: d),
    "sqeuclidean": (_plain, lambda d: d * d),
    "cosine": (_unit, _half_square),
    "correlation": (_deviations, _half_square),
    "hellinger": (_root_shares, lambda d: d * np.sqrt(0.5)),
}
