"""Nearest neighbours by comparing all ordered pairs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse

from finsler_ext._progress import stage, step
from finsler_ext._threads import one_blas_thread
from finsler_ext.construct.index.base import (
    DirectedNeighbors,
    NewNeighbors,
    marked,
    with_self_first,
)
from finsler_ext.construct.index.blocks import Rows, nearest_rows
from finsler_ext.construct.index.metrics import EUCLIDEAN, block_function, refuse_nan
from finsler_ext.construct.index.precomputed import smallest
from finsler_ext.construct.index.reductions import reduction_of
from finsler_ext.construct.input import large_offset

__all__ = ["ExactIndex", "exact_neighbors", "exact_new_neighbors"]

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
        rows = Rows(self._reduction.rows)
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
            rows = np.arange(distances.shape[0])
            distances[rows, start + rows] = -1.0  # the point itself, before all duplicates
            near = smallest(distances, k)
            values = np.take_along_axis(distances, near, axis=1)
            refuse_nan(values, self.named, X)  # nan comes last: too few other neighbours
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
                rows = Rows(self._reduction.rows)
                indices, distances = nearest_rows(
                    Rows(asked, like=rows), rows, k, n_threads=self.n_threads
                )
                distances = self._reduction.value(distances)
                return marked(indices, distances, distances)
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
        return marked(*(np.concatenate(part) for part in zip(*blocks, strict=True)))


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


def exact_new_neighbors(
    new, X, k: int, *, metric="euclidean", metric_kwds=None, symmetric=True, n_threads=1, name=None
) -> NewNeighbors:
    """Compare every new row with every training row; see `ExactIndex`."""
    index = ExactIndex(metric, metric_kwds, symmetric=symmetric, n_threads=n_threads, named=name)
    return index.over(X).query(new, k)


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
