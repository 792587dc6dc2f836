"""Nearest neighbours by comparing all ordered pairs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse

from finsler_ext._messages import stage, step
from finsler_ext._threads import one_blas_thread, row_blocks
from finsler_ext.neighbors.distances import DenseRows, nearest_rows
from finsler_ext.neighbors.metrics import EUCLIDEAN, block_function, refuse_nan, refuse_negative
from finsler_ext.neighbors.precomputed import smallest
from finsler_ext.neighbors.search import (
    DirectedNeighbors,
    NewNeighbors,
    with_missing,
    with_self_first,
)
from finsler_ext.validation import large_offset

# Rows per block where distances cannot come from products. The same whatever the number of
# threads, so that sums inside BLAS come out the same too.
COMPARED_ROWS = 512
# Distances held at once by a thread that compares new rows with all others.
MAX_BLOCK = 2**22


class ExactIndex:
    """A `NeighborIndex` that compares all ordered pairs.

    Parameters
    ----------
    metric : str or callable
        A name known to scikit-learn, or a function of two rows. Numba functions are compiled
        into the loop; they and plain functions are called as metric(source, target), in both
        orders, so an asymmetric metric keeps its direction.
    metric_kwds : dict, optional
    symmetric : bool
        False if new rows need distances in both directions.
    n_threads : int
    named : str, optional
        What the user calls the metric. A metric with a name (such as "ll_dirichlet" on negative
        numbers) must not give NaN for finite rows; a function without one may, and the pair is
        then missing. Dense rows under a name that `reduction_of` knows are compared by products.
    dtype : type of the distances
    """

    name = "exact"

    def __init__(
        self,
        metric: str | Callable = "euclidean",
        metric_kwds=None,
        *,
        symmetric: bool = True,
        n_threads: int = 1,
        named: str | None = None,
        dtype=np.float32,
    ):
        self.metric = metric
        self.metric_kwds = dict(metric_kwds or {})
        self.symmetric = symmetric
        self.n_threads = n_threads
        self.named = metric if isinstance(metric, str) else named
        self.dtype = dtype

    def over(self, X) -> ExactIndex:
        """This index, to be asked for new rows only."""
        self.X = X
        self._reduction = reduction_of(self.named, X, self.metric_kwds)
        return self

    def build(self, X, k: int) -> DirectedNeighbors:
        stage("finding neighbours among all pairs")
        self.over(X)
        if self._reduction is None:
            return self._build_by_blocks(X, k)
        rows = DenseRows(self._reduction.rows)
        indices, distances = nearest_rows(rows, rows, k - 1, n_threads=self.n_threads, same=True)
        n = len(rows)
        own = np.arange(n)[:, None]
        indices = np.hstack([own, indices])
        distances = np.hstack([np.zeros((n, 1)), self._reduction.value(distances)])
        return with_self_first(indices, distances, dtype=self.dtype)

    def _build_by_blocks(self, X, k: int) -> DirectedNeighbors:
        n = X.shape[0]
        euclidean = isinstance(self.metric, str) and self.metric in EUCLIDEAN
        searched = X
        if euclidean:
            X = _used_columns(X)
            offset = large_offset(X)
            searched = _of_order_one(X if offset is None else X - offset)
        block_distances = self._between(searched, searched)

        def nearest(start: int):
            distances = block_distances(start, min(start + COMPARED_ROWS, n))
            refuse_negative(distances, self.named or self.metric)
            rows = np.arange(distances.shape[0])
            distances[rows, start + rows] = -1.0  # the point itself, before all duplicates
            near = smallest(distances, k)
            values = np.take_along_axis(distances, near, axis=1)
            # nan comes last: too few other neighbours
            refuse_nan(values, self.named or self.metric, X)
            return near, values

        with one_blas_thread(), ThreadPoolExecutor(self.n_threads) as pool:
            blocks = []
            for block in pool.map(nearest, range(0, n, COMPARED_ROWS)):
                blocks.append(block)
                step(len(blocks) * COMPARED_ROWS, n)
        indices = np.concatenate([b[0] for b in blocks])
        distances = np.concatenate([b[1] for b in blocks])
        if euclidean:
            distances = _exact_euclidean(X, indices)
            order = np.lexsort((indices, distances), axis=1)
            indices = np.take_along_axis(indices, order, axis=1)
            distances = np.take_along_axis(distances, order, axis=1)
        return with_self_first(indices, distances, dtype=self.dtype)

    def _between(self, sources, targets) -> Callable[[int, int], np.ndarray]:
        """`block_function` of the metric; one that divides by zero is refused by its name."""
        distances = block_function(sources, targets, self.metric, self.metric_kwds)

        def checked(start: int, stop: int) -> np.ndarray:
            try:
                return distances(start, stop)
            except ZeroDivisionError:
                raise ValueError(
                    f"metric={self.named or self.metric!r} divides by zero on some rows, probably "
                    "on rows of zeros or of equal entries. Leave them out, or choose another "
                    "metric."
                ) from None

        return checked

    def query(self, new, k: int) -> NewNeighbors:
        if self._reduction is not None:
            # the training rows were finite, the new ones may not be
            asked = self._reduction.of(new)
            if asked is not None:
                rows = DenseRows(self._reduction.rows)
                indices, distances = nearest_rows(
                    DenseRows(asked, like=rows), rows, k, n_threads=self.n_threads
                )
                distances = self._reduction.value(distances)
                return with_missing(indices, distances, distances)
        return self._query_by_blocks(new, k)

    def _query_by_blocks(self, new, k: int) -> NewNeighbors:
        X = self.X
        there = self._between(new, X)
        n_rows = max(1, min(COMPARED_ROWS, MAX_BLOCK // X.shape[0]))

        def nearest(start: int):
            stop = min(start + n_rows, new.shape[0])
            distances = there(start, stop)
            indices = smallest(distances, k)
            outgoing = np.take_along_axis(distances, indices, axis=1)
            if self.symmetric:
                return indices, outgoing, outgoing
            back = self._between(X, new[start:stop])(0, X.shape[0]).T
            return indices, outgoing, np.take_along_axis(back, indices, axis=1)

        with ThreadPoolExecutor(self.n_threads) as pool:
            blocks = list(pool.map(nearest, range(0, new.shape[0], n_rows)))
        return with_missing(*(np.concatenate(part) for part in zip(*blocks, strict=True)))


def exact_neighbors(
    X,
    n_neighbors: int,
    *,
    metric: str | Callable = "euclidean",
    metric_kwds=None,
    n_threads=1,
    name: str | None = None,
) -> DirectedNeighbors:
    """The ``n_neighbors`` nearest rows of every row, itself included; see `ExactIndex`."""
    return ExactIndex(metric, metric_kwds, n_threads=n_threads, named=name).build(X, n_neighbors)


def _used_columns(X):
    """A sparse X without its empty columns, where most are empty: products need them all."""
    if not scipy.sparse.issparse(X) or X.shape[1] <= X.nnz:
        return X
    if X.nnz == 0:
        return X[:, :1]
    used, column = np.unique(X.indices, return_inverse=True)
    return scipy.sparse.csr_matrix((X.data, column, X.indptr), shape=(X.shape[0], used.size))


def _of_order_one(X):
    """X times a power of two, so that squares neither overflow nor vanish; no rounding."""
    values = X.data if scipy.sparse.issparse(X) else X
    largest = float(np.abs(values).max(initial=0.0)) if values.size else 0.0
    if not np.isfinite(largest) or 1e-9 < largest < 1e9:
        return X
    exponent = int(np.frexp(largest)[1]) if largest > 0 else 0
    return X * X.dtype.type(2.0**-exponent) if abs(exponent) < 120 else X / X.dtype.type(largest)


def _exact_euclidean(X, indices) -> np.ndarray:
    """Distances to the chosen neighbours without the cancellation of ‖x‖² + ‖y‖² − 2xy.

    Duplicates get exactly 0, which the local scales rely on.
    """
    distances = np.empty(indices.shape, dtype=np.float64)
    for column in range(indices.shape[1]):
        step = X - X[indices[:, column]]
        if scipy.sparse.issparse(step):
            step = step.astype(np.float64)
            distances[:, column] = np.sqrt(np.asarray(step.multiply(step).sum(axis=1)).ravel())
        else:
            distances[:, column] = np.sqrt(np.einsum("ij,ij->i", step, step, dtype=np.float64))
    return distances


# Metrics that are functions of a Euclidean distance between transformed rows.
#
# =============  ==============================  ==========
# metric         rows                            value
# =============  ==============================  ==========
# euclidean, l2  x                               d
# sqeuclidean    x                               d²
# cosine         x / ‖x‖                         d²/2
# correlation    the same of x − mean(x)         d²/2
# hellinger      √(x / Σx)                       d/√2
# =============  ==============================  ==========
#
# As in umap-learn, rows without a direction (zeros, or constants for the correlation) have distance
# 0
# from each other and 1 from all others: they get a direction of their own in one more column.


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
    "euclidean": (np.ascontiguousarray, lambda d: d),
    "l2": (np.ascontiguousarray, lambda d: d),
    "sqeuclidean": (np.ascontiguousarray, lambda d: d * d),
    "cosine": (_unit, _half_square),
    "correlation": (partial(_unit, centred=True), _half_square),
    "hellinger": (_root_shares, lambda d: d * np.sqrt(0.5)),
}


# How many of the nearest neighbours an approximate search has found.

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
