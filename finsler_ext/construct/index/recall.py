"""How many of the nearest neighbours an approximate search has found."""

from __future__ import annotations

import numpy as np

from finsler_ext.construct.index.exact import ExactIndex

__all__ = ["sampled_recall"]

# Distances are equal up to the rounding of single precision.
DISTANCE_ROUNDING = 1e-5


def sampled_recall(exact: ExactIndex, X, distances: np.ndarray, n_rows: int = 100) -> float:
    """The share of neighbours no further than the k-th nearest, on evenly spaced rows.

    Parameters
    ----------
    exact : ExactIndex
        In the metric of the search.
    X : array or CSR matrix of shape (n, features)
    distances : array of shape (n, k)
        Distances to the neighbours that were found, those of the rows from themselves included.
    n_rows : int
    """
    n, k = distances.shape
    rows = np.unique(np.linspace(0, n - 1, n_rows).astype(np.int64))
    nearest = exact.over(X).query(X[rows], k).outgoing
    return float(np.mean(distances[rows] <= nearest[:, -1:] * (1.0 + DISTANCE_ROUNDING)))
