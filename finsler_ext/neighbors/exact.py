"""Nearest neighbours by comparing all ordered pairs, in any metric that an estimator accepts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse
from numba import njit
from numba.core.registry import CPUDispatcher
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS

from finsler_ext._messages import stage, step
from finsler_ext._threads import one_blas_thread
from finsler_ext.neighbors.distances import DenseRows, nearest_rows, reduction_of
from finsler_ext.neighbors.search import (
    DirectedNeighbors,
    NewNeighbors,
    smallest,
    with_missing,
    with_self,
    with_self_first,
)

EUCLIDEAN = ("euclidean", "l2")
# Pairs on which a callable metric is tried for symmetry; an asymmetric one is compared on all pairs
# up to so many rows.
SYMMETRY_TRIALS, ASYMMETRIC_UP_TO = 32, 20_000
# Cosines of equal rows are 1 but for rounding.
NEGATIVE_ROUNDING = 1e-5
# Rows per block where distances cannot come from products. The same whatever the number of
# threads, so that sums inside BLAS come out the same too.
COMPARED_ROWS = 512
# Distances held at once by a thread that compares new rows with all others.
MAX_BLOCK = 2**22


class ExactIndex:
    """A `NeighborIndex` that compares all ordered pairs.

    ``metric`` is a name known to scikit-learn, or a function metric(source, target) of two rows,
    called in both orders, so that an asymmetric one keeps its direction; new rows get distances in
    both directions unless it is ``symmetric``. ``named`` is what the user gave as the metric, if
    that is something else: dense rows under a name that `reduction_of` knows are compared by
    products.
    """

    name = "exact"

    def __init__(
        self,
        metric: str | Callable = "euclidean",
        metric_kwds=None,
        *,
        symmetric: bool = True,
        n_threads: int = 1,
        named: str | Callable | None = None,
        dtype=np.float32,
    ):
        self.metric = metric
        self.metric_kwds = dict(metric_kwds or {})
        self.symmetric = symmetric
        self.n_threads = n_threads
        self.named = metric if named is None else named
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
        return with_self(indices, self._reduction.value(distances), dtype=self.dtype)

    def _build_by_blocks(self, X, k: int) -> DirectedNeighbors:
        n = X.shape[0]
        euclidean = self.metric in EUCLIDEAN and scipy.sparse.issparse(X)
        searched = X
        if euclidean:
            X = _used_columns(X)
            searched = _of_order_one(X)
        block_distances = self._between(searched, searched)

        def nearest(start: int):
            distances = block_distances(start, min(start + COMPARED_ROWS, n))
            refuse_negative(distances, self.named)
            rows = np.arange(distances.shape[0])
            distances[rows, start + rows] = -1.0  # the point itself, before all duplicates
            near = smallest(distances, k)
            values = np.take_along_axis(distances, near, axis=1)
            # nan comes last: too few other neighbours
            refuse_nan(values, self.named, X)
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
                    f"metric={self.named!r} divides by zero on some rows, probably "
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
) -> DirectedNeighbors:
    """The ``n_neighbors`` nearest rows of every row, itself included; see `ExactIndex`."""
    return ExactIndex(metric, metric_kwds, n_threads=n_threads).build(X, n_neighbors)


def _used_columns(X):
    """A sparse X without its empty columns, where most are empty: products need them all."""
    if X.shape[1] <= X.nnz:
        return X
    if X.nnz == 0:
        return X[:, :1]
    used, column = np.unique(X.indices, return_inverse=True)
    return scipy.sparse.csr_matrix((X.data, column, X.indptr), shape=(X.shape[0], used.size))


def _of_order_one(X):
    """X times a power of two, so that squares neither overflow nor vanish; no rounding."""
    largest = float(np.abs(X.data).max(initial=0.0))
    if not np.isfinite(largest) or 1e-9 < largest < 1e9:
        return X
    exponent = int(np.frexp(largest)[1]) if largest > 0 else 0
    return X * X.dtype.type(2.0**-exponent) if abs(exponent) < 120 else X / X.dtype.type(largest)


def _exact_euclidean(X, indices) -> np.ndarray:
    """Distances to neighbours in sparse X without the cancellation of ‖x‖² + ‖y‖² − 2xy.

    Duplicates get exactly 0, which the local scales rely on.
    """
    distances = np.empty(indices.shape, dtype=np.float64)
    for column in range(indices.shape[1]):
        step = (X - X[indices[:, column]]).astype(np.float64)
        distances[:, column] = np.sqrt(np.asarray(step.multiply(step).sum(axis=1)).ravel())
    return distances


# Distances are equal up to the rounding of single precision.
DISTANCE_ROUNDING = 1e-5
# Rows whose neighbours are compared with all pairs.
RECALL_ROWS = 100


def sampled_recall(exact: ExactIndex, X, distances: np.ndarray) -> float:
    """The share of neighbours no further than the k-th nearest, on evenly spaced rows.

    ``exact`` is in the metric of the search, which found neighbours at ``distances``, itself
    included.
    """
    n, k = distances.shape
    rows = np.unique(np.linspace(0, n - 1, RECALL_ROWS).astype(np.int64))
    nearest = exact.over(X).query(X[rows], k).outgoing
    return float(np.mean(distances[rows] <= nearest[:, -1:] * (1.0 + DISTANCE_ROUNDING)))


def refuse_nan(distances, metric, X) -> None:
    """Finite rows without a distance between them: the metric is not meant for these data."""
    if not np.isnan(distances).any():
        return
    if np.isfinite(X.data if scipy.sparse.issparse(X) else X).all():
        raise ValueError(
            f"metric={metric!r} gives NaN for some pairs of rows: it is not meant for such data "
            "(some metrics need numbers > 0), or needs parameters. Choose another metric."
        )


def refuse_negative(distances, metric) -> None:
    """Rounding aside, a distance is not negative."""
    lowest = np.fmin.reduce(distances, axis=None)
    if lowest < -NEGATIVE_ROUNDING:
        raise ValueError(
            f"metric={metric!r} gives negative distances, such as {lowest:g}. A metric returns "
            "numbers ≥ 0; turn similarities into distances first."
        )


def block_function(sources, targets, metric, kwds) -> Callable[[int, int], np.ndarray]:
    """A function (start, stop) → distances from those sources to all targets."""
    if isinstance(metric, str):
        return lambda lo, hi: named_distances(sources[lo:hi], targets, metric, kwds)
    if not isinstance(metric, CPUDispatcher):
        refuse_plain_function(metric, targets)
        return lambda lo, hi: cdist(sources[lo:hi], targets, lambda u, v: metric(u, v, **kwds))
    args = positional_arguments(metric, kwds, 4 if scipy.sparse.issparse(targets) else 2)
    if scipy.sparse.issparse(targets):
        S, T = sources, targets
        return lambda lo, hi: _sparse_block(
            S.indptr, S.indices, S.data, T.indptr, T.indices, T.data, lo, hi, metric, args
        )
    return lambda lo, hi: _dense_block(sources, targets, lo, hi, metric, args)


def refuse_plain_function(metric: Callable, X) -> None:
    """On sparse rows a metric takes (indices, values, indices, values), which is for numba."""
    if scipy.sparse.issparse(X) and not isinstance(metric, CPUDispatcher):
        raise ValueError(
            "metric: a plain Python function cannot be used on sparse data. Compile it with "
            "numba.njit, as metric(indices, values, indices, values), or pass dense data."
        )


def named_distances(sources, targets, metric: str, kwds) -> np.ndarray:
    """scikit-learn's distances; what it has for dense data only is refused with the way out.

    Rows of 0 and 1 go to metrics for bits as bits: it warns of any others.
    """
    if metric in PAIRWISE_BOOLEAN_FUNCTIONS and _are_bits(sources) and _are_bits(targets):
        sources, targets = (part.astype(np.bool_) for part in (sources, targets))
    try:
        return np.asarray(pairwise_distances(sources, targets, metric=metric, **kwds))
    except TypeError as error:
        if kwds:
            raise ValueError(
                f"metric={metric!r} does not take the options {kwds!r} with this data: {error}."
            ) from None
        if not scipy.sparse.issparse(targets):
            raise
        raise ValueError(
            f"metric={metric!r} is not available for sparse data here. Pass dense data "
            "(X.toarray()), or use 'euclidean', 'manhattan' or 'cosine'."
        ) from None


def _are_bits(rows) -> bool:
    return not scipy.sparse.issparse(rows) and bool(((rows == 0) | (rows == 1)).all())


def positional_arguments(metric: CPUDispatcher, kwds: dict, n_rows: int) -> tuple:
    """Keyword arguments in the order of a compiled metric, which takes no names.

    ``n_rows`` leading parameters hold the two rows; defaults fill the gaps.
    """
    parameters = list(inspect.signature(metric.py_func).parameters.values())[n_rows:]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return tuple(kwds.values())
    names = [p.name for p in parameters]
    unknown = [name for name in kwds if name not in names]
    if unknown:
        raise ValueError(f"metric_kwds: the metric takes {names}, got {unknown}.")
    needed = max((names.index(name) + 1 for name in kwds), default=0)
    return tuple(kwds.get(p.name, p.default) for p in parameters[:needed])


@njit(nogil=True)
def _dense_block(sources, targets, start, stop, metric, args):
    out = np.empty((stop - start, targets.shape[0]), dtype=np.float64)
    for i in range(start, stop):
        for j in range(targets.shape[0]):
            out[i - start, j] = metric(sources[i], targets[j], *args)
    return out


@njit(nogil=True)
def _sparse_block(
    s_indptr, s_indices, s_data, t_indptr, t_indices, t_data, start, stop, metric, args
):
    n = t_indptr.shape[0] - 1
    out = np.empty((stop - start, n), dtype=np.float64)
    for i in range(start, stop):
        mine = slice(s_indptr[i], s_indptr[i + 1])
        for j in range(n):
            other = slice(t_indptr[j], t_indptr[j + 1])
            out[i - start, j] = metric(
                s_indices[mine], s_data[mine], t_indices[other], t_data[other], *args
            )
    return out


def refuse_large_asymmetric(metric: Callable, X) -> None:
    if X.shape[0] > ASYMMETRIC_UP_TO:
        raise ValueError(
            f"metric: {metric!r} is asymmetric, and approximate neighbour search mixes up "
            f"directions; all pairs are compared up to {ASYMMETRIC_UP_TO} points, X has "
            f"{X.shape[0]}. Compute the directed distances (a sparse matrix of the nearest ones "
            "will do) and pass metric='precomputed'."
        )


def is_asymmetric(metric: Callable, X, metric_kwds=None) -> bool:
    """Try a callable metric on a few pairs of rows in both directions."""
    refuse_plain_function(metric, X)
    kwds = metric_kwds or {}
    rng = np.random.default_rng(0)
    for i, j in rng.integers(0, X.shape[0], size=(SYMMETRY_TRIALS, 2)):
        if scipy.sparse.issparse(X):
            x, y = X[[i]], X[[j]]
            there = metric(x.indices, x.data, y.indices, y.data, **kwds)
            back = metric(y.indices, y.data, x.indices, x.data, **kwds)
        else:
            there, back = metric(X[i], X[j], **kwds), metric(X[j], X[i], **kwds)
        there, back = np.ravel(there)[0], np.ravel(back)[0]
        if not np.isclose(there, back, rtol=1e-4, atol=1e-6):
            return True
    return False
