"""Directed nearest neighbours: an edge i → j says that j is among the nearest of i.

Rows are sources. Column 0 of a result is the point itself, as umap-learn counts; missing
neighbours have index −1 and distance inf. No direction is ever averaged or mirrored.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numba import njit
from numba.core.registry import CPUDispatcher
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from finsler_ext._threads import numba_threads, one_blas_thread
from finsler_ext.construct.input import large_offset

__all__ = [
    "DirectedNeighbors",
    "approximate_neighbors",
    "exact_neighbors",
    "is_asymmetric",
    "precomputed_neighbors",
    "with_self_first",
]

# Rows per block of the exact search. The same whatever the number of threads, so that
# sums inside BLAS come out the same too.
BLOCK_ROWS = 512
# Distances from a point to itself below this share of the largest distance are rounding.
DIAGONAL_ROUNDING = 1e-6
# Pairs on which a callable metric is tried for symmetry.
SYMMETRY_TRIALS = 32

EUCLIDEAN = ("euclidean", "l2")


class DirectedNeighbors(NamedTuple):
    """k nearest neighbours of every point, itself first."""

    indices: np.ndarray
    distances: np.ndarray
    search_index: Any = None


def with_self_first(indices, distances, search_index=None) -> DirectedNeighbors:
    """Put every point first in its own row, whatever ties and duplicates did to the order."""
    indices = np.array(indices, dtype=np.int32)
    distances = np.array(distances, dtype=np.float32)
    own = np.arange(indices.shape[0], dtype=np.int32)
    moved = np.flatnonzero(indices[:, 0] != own)
    if moved.size:
        # Either the point stands further right, or duplicates crowded it out: drop the last.
        columns = np.arange(indices.shape[1])
        here = indices[moved] == own[moved, None]
        stop = np.where(here.any(axis=1), here.argmax(axis=1), columns[-1])
        take = np.where(columns <= stop[:, None], np.maximum(columns - 1, 0), columns)
        indices[moved] = np.take_along_axis(indices[moved], take, axis=1)
        distances[moved] = np.take_along_axis(distances[moved], take, axis=1)
    indices[:, 0] = own
    distances[:, 0] = 0.0
    indices[~np.isfinite(distances)] = -1
    distances[indices < 0] = np.inf
    return DirectedNeighbors(indices, distances, search_index)


def exact_neighbors(
    X,
    n_neighbors: int,
    *,
    metric: str | Callable = "euclidean",
    metric_kwds=None,
    n_threads=1,
    name: str | None = None,
) -> DirectedNeighbors:
    """Nearest neighbours by comparing all ordered pairs, one block of rows at a time.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, features)
    n_neighbors : int
        Columns of the result, the point itself included.
    metric : str or callable
        A name known to scikit-learn, or a function of two rows. Numba functions are compiled
        into the loop; they and plain functions are called as metric(source, target), in both
        orders, so an asymmetric metric keeps its direction.
    metric_kwds : dict, optional
    n_threads : int
    name : str, optional
        What the user calls the metric. A metric with a name (such as "ll_dirichlet" on negative
        numbers) must not give NaN for finite rows; a function without one may, and the pair is
        then missing.
    """
    n = X.shape[0]
    name = metric if isinstance(metric, str) else name
    euclidean = isinstance(metric, str) and metric in EUCLIDEAN
    searched = X
    if euclidean:
        X = _used_columns(X)
        offset = large_offset(X)
        searched = _of_order_one(X if offset is None else X - offset)
    block_distances = block_function(searched, searched, metric, metric_kwds or {})

    def nearest(start: int):
        distances = block_distances(start, min(start + BLOCK_ROWS, n))
        rows = np.arange(distances.shape[0])
        distances[rows, start + rows] = -1.0  # the point itself, before all duplicates
        near = np.argpartition(distances, n_neighbors - 1, axis=1)[:, :n_neighbors]
        values = np.take_along_axis(distances, near, axis=1)
        refuse_nan(values, name, X)  # nan comes last: there are too few other neighbours
        order = np.lexsort((near, values), axis=1)
        return np.take_along_axis(near, order, axis=1), np.take_along_axis(values, order, axis=1)

    with one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        blocks = list(pool.map(nearest, range(0, n, BLOCK_ROWS)))
    indices = np.concatenate([b[0] for b in blocks])
    distances = np.concatenate([b[1] for b in blocks])
    if euclidean:
        distances = _exact_euclidean(X, indices)
        order = np.lexsort((indices, distances), axis=1)
        indices = np.take_along_axis(indices, order, axis=1)
        distances = np.take_along_axis(distances, order, axis=1)
    return with_self_first(indices, distances)


def refuse_nan(distances, name: str | None, X) -> None:
    """Finite rows without a distance between them: the metric is not meant for these data."""
    if name is None or not np.isnan(distances).any():
        return
    if np.isfinite(X.data if scipy.sparse.issparse(X) else X).all():
        raise ValueError(
            f"metric={name!r} gives NaN for some pairs of rows: it is not meant for such data "
            "(some metrics need numbers > 0), or needs parameters. Choose another metric."
        )


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


def block_function(sources, targets, metric, kwds) -> Callable[[int, int], np.ndarray]:
    """A function (start, stop) → distances from those sources to all targets."""
    if isinstance(metric, str):
        return lambda lo, hi: named_distances(sources[lo:hi], targets, metric, kwds)
    if not isinstance(metric, CPUDispatcher):
        if scipy.sparse.issparse(targets):
            raise ValueError(
                "metric: a plain Python function cannot be used on sparse data. Compile it with "
                "numba.njit, or pass dense data."
            )
        return lambda lo, hi: cdist(sources[lo:hi], targets, lambda u, v: metric(u, v, **kwds))
    args = positional_arguments(metric, kwds, 4 if scipy.sparse.issparse(targets) else 2)
    if scipy.sparse.issparse(targets):
        S, T = sources, targets
        return lambda lo, hi: _sparse_block(
            S.indptr, S.indices, S.data, T.indptr, T.indices, T.data, lo, hi, metric, args
        )
    return lambda lo, hi: _dense_block(sources, targets, lo, hi, metric, args)


def named_distances(sources, targets, metric: str, kwds) -> np.ndarray:
    """scikit-learn's distances; what it has for dense data only is refused with the way out."""
    try:
        return np.asarray(pairwise_distances(sources, targets, metric=metric, **kwds))
    except TypeError:
        if not scipy.sparse.issparse(targets):
            raise
        raise ValueError(
            f"metric={metric!r} is not available for sparse data here. Pass dense data "
            "(X.toarray()), or use 'euclidean', 'manhattan' or 'cosine'."
        ) from None


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


def approximate_neighbors(
    X,
    n_neighbors: int,
    *,
    metric: str | Callable = "euclidean",
    metric_kwds=None,
    random_state=None,
    n_threads: int = 1,
    low_memory: bool = True,
    verbose: bool = False,
) -> DirectedNeighbors:
    """Nearest neighbours by pynndescent's NN-descent, with umap-learn's settings.

    NN-descent depends on its number of threads; pass ``n_threads=1`` for a result that
    follows from ``random_state`` alone.
    """
    from pynndescent import NNDescent

    n = X.shape[0]
    n_trees = min(64, 5 + round(n**0.5 / 20.0))
    n_iters = max(5, round(np.log2(n)))
    with numba_threads(n_threads):
        index = NNDescent(
            X,
            n_neighbors=n_neighbors,
            metric=metric,
            metric_kwds=dict(metric_kwds or {}),
            random_state=random_state,
            n_trees=n_trees,
            n_iters=n_iters,
            max_candidates=60,
            low_memory=low_memory,
            n_jobs=-1,  # the limit just set
            verbose=verbose,
            compressed=False,
        )
    indices, distances = index.neighbor_graph
    refuse_nan(distances, metric if isinstance(metric, str) else None, X)
    return with_self_first(indices, distances, index)


def precomputed_neighbors(D, n_neighbors: int) -> DirectedNeighbors:
    """Nearest neighbours from directed distances, D[i, j] being the distance from i to j.

    Parameters
    ----------
    D : array or sparse matrix of shape (n, n)
        Dense: inf marks a missing pair. Sparse: pairs not stored are missing, stored zeros
        are zero distances.
    n_neighbors : int
        Columns of the result, the point itself included.
    """
    if D.shape[0] != D.shape[1]:
        raise ValueError(
            f"metric='precomputed' needs a square matrix of directed distances (rows are "
            f"sources), got shape {D.shape}."
        )
    values = D.data if scipy.sparse.issparse(D) else D
    if np.isnan(values).any():
        raise ValueError(
            "metric='precomputed': the distances contain NaN. Mark missing pairs with inf in a "
            "dense matrix, or leave them out of a sparse one."
        )
    if values.size and values.min() < 0:
        raise ValueError(
            f"metric='precomputed': distances must not be negative, got {values.min()}. "
            "Affinities or similarities have to be turned into distances first."
        )
    largest = values[np.isfinite(values)].max(initial=0.0) if values.size else 0.0
    if np.any(np.abs(D.diagonal()) > DIAGONAL_ROUNDING * largest):
        raise ValueError(
            "metric='precomputed': the distance from a point to itself must be 0; set the "
            "diagonal of the matrix to 0."
        )
    if scipy.sparse.issparse(D):
        return _sparse_precomputed(scipy.sparse.csr_array(D), n_neighbors)
    n = D.shape[0]
    indices = np.empty((n, n_neighbors), dtype=np.int64)
    distances = np.empty((n, n_neighbors), dtype=np.float64)
    for start in range(0, n, BLOCK_ROWS):
        block = np.array(D[start : start + BLOCK_ROWS], dtype=np.float64)
        rows = np.arange(block.shape[0])
        block[rows, start + rows] = -1.0
        near = np.argsort(block, axis=1, kind="stable")[:, :n_neighbors]
        indices[start : start + BLOCK_ROWS] = near
        distances[start : start + BLOCK_ROWS] = np.take_along_axis(block, near, axis=1)
    return with_self_first(indices, distances)


def _sparse_precomputed(D: scipy.sparse.csr_array, n_neighbors: int) -> DirectedNeighbors:
    n = D.shape[0]
    source = np.repeat(np.arange(n), np.diff(D.indptr))
    proper = (source != D.indices) & np.isfinite(D.data)
    source, target, value = source[proper], D.indices[proper], D.data[proper]
    order = np.lexsort((target, value, source))
    source, target, value = source[order], target[order], value[order]
    first = np.searchsorted(source, np.arange(n))
    column = np.arange(source.size) - first[source] + 1
    near = column < n_neighbors
    indices = np.full((n, n_neighbors), -1, dtype=np.int64)
    distances = np.full((n, n_neighbors), np.inf)
    indices[:, 0], distances[:, 0] = np.arange(n), 0.0
    indices[source[near], column[near]] = target[near]
    distances[source[near], column[near]] = value[near]
    return with_self_first(indices, distances)


def is_asymmetric(metric: Callable, X, metric_kwds=None) -> bool:
    """Try a callable metric on a few pairs of rows in both directions."""
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
