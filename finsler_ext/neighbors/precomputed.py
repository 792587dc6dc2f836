"""Neighbours from directed distances that are given."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from finsler_ext._threads import row_blocks
from finsler_ext.neighbors.search import (
    DirectedNeighbors,
    NewNeighbors,
    with_missing,
    with_self_first,
)
from finsler_ext.validation import check_diagonal


def precomputed_neighbors(D, n_neighbors: int) -> DirectedNeighbors:
    """The ``n_neighbors`` nearest of every point, itself included, from directed distances.

    A pair is missing where a dense D has inf, and where a sparse one stores nothing.
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
    check_diagonal(D)
    if scipy.sparse.issparse(D):
        return _sparse_precomputed(scipy.sparse.csr_array(D), n_neighbors)
    n = D.shape[0]
    indices = np.empty((n, n_neighbors), dtype=np.int64)
    distances = np.empty((n, n_neighbors), dtype=np.float64)
    for rows in row_blocks(n):
        block = np.array(D[rows], dtype=np.float64)
        own = np.arange(len(block))
        block[own, rows.start + own] = -1.0
        near = np.argsort(block, axis=1, kind="stable")[:, :n_neighbors]
        indices[rows] = near
        distances[rows] = np.take_along_axis(block, near, axis=1)
    return with_self_first(indices, distances)


def _sparse_precomputed(D: scipy.sparse.csr_array, n_neighbors: int) -> DirectedNeighbors:
    n = D.shape[0]
    source = np.repeat(np.arange(n), np.diff(D.indptr))
    others = source != D.indices
    edges = source[others], D.indices[others], D.data[others]
    indices, distances = _nearest_stored(*edges, n, n_neighbors - 1)
    own = np.arange(n)[:, None]
    return with_self_first(np.hstack([own, indices]), np.hstack([np.zeros((n, 1)), distances]))


def _nearest_stored(row, column, value, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of every row among finite entries; −1 and inf where there are fewer."""
    known = np.isfinite(value)
    row, column, value = row[known], column[known], value[known]
    order = np.lexsort((column, value, row))
    row, column, value = row[order], column[order], value[order]
    place = np.arange(row.size) - np.searchsorted(row, np.arange(n))[row]
    near = place < k
    row, place = row[near], place[near]
    indices, distances = np.full((n, k), -1, dtype=np.int64), np.full((n, k), np.inf)
    indices[row, place], distances[row, place] = column[near], value[near]
    return indices, distances


def precomputed_new_neighbors(outgoing, incoming, k: int) -> NewNeighbors:
    """Neighbours from given distances of shape (n_new, n): from new points, and to them."""
    if scipy.sparse.issparse(outgoing):
        indices, there, back = _sparse_rows(outgoing, incoming, k)
    else:
        there = np.asarray(outgoing, dtype=np.float64)
        indices = smallest(there, k)
        back = np.take_along_axis(np.asarray(incoming, dtype=np.float64), indices, axis=1)
        there = np.take_along_axis(there, indices, axis=1)
    return with_missing(indices, there, back)


def _sparse_rows(outgoing, incoming, k):
    out, into = (scipy.sparse.csr_array(D, dtype=np.float64) for D in (outgoing, incoming))
    n_new = out.shape[0]
    source = np.repeat(np.arange(n_new), np.diff(out.indptr))
    indices, there = _nearest_stored(source, out.indices, out.data, n_new, k)
    back = np.full((n_new, k), np.inf)
    row, place = np.nonzero(indices >= 0)
    column = indices[row, place]
    if row.size == 0:
        return indices, there, back
    stored = scipy.sparse.csr_array(
        (np.ones_like(into.data), into.indices, into.indptr), into.shape
    )
    has_way_back = np.asarray(stored[row, column]).ravel() > 0
    back[row, place] = np.where(has_way_back, np.asarray(into[row, column]).ravel(), np.inf)
    return indices, there, back


def smallest(distances: np.ndarray, k: int) -> np.ndarray:
    """Columns of the k smallest entries of every row, ascending, ties by column."""
    near = np.argpartition(distances, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(distances, near, axis=1)
    near = np.take_along_axis(near, np.lexsort((near, values), axis=1), axis=1)
    # of columns that are equal to the last one taken, the partition takes any
    tied = np.flatnonzero((distances <= values.max(axis=1)[:, None]).sum(axis=1) > k)
    near[tied] = np.argsort(distances[tied], axis=1, kind="stable")[:, :k]
    return near


def distances_between(D, rows, columns) -> np.ndarray:
    """Given distances from rows to columns, dense; inf where a sparse D stores none."""
    if not scipy.sparse.issparse(D):
        return np.asarray(D[np.ix_(rows, columns)], dtype=np.float64)
    block = scipy.sparse.coo_array(D[rows][:, columns])
    dense = np.full(block.shape, np.inf)
    dense[block.coords] = block.data
    return dense
