"""What every neighbour search offers and returns; neighbours from distances that are given.

Rows are sources: an edge i → j says that j is among the nearest of i. Missing neighbours have
index −1 and distance inf, so rows may hold fewer neighbours than others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy.sparse

from finsler_ext._threads import row_blocks
from finsler_ext.schema import NONE, array, part, saved
from finsler_ext.validation import as_dense, check_diagonal

# 2⁶⁴ divided by the golden ratio: multiples of it are spread evenly (Knuth).
ODD = np.uint64(0x9E3779B97F4A7C15)


@saved(
    indices=array("i4 i8", "n k", "[-1, n)"),
    distances=array("f4 f8", "n k", "[0, inf]"),
    search_index=NONE | part("KMeansGraphIndex", "pynndescent.NNDescent", n="n"),
)
class DirectedNeighbors(NamedTuple):
    """k nearest neighbours of every point, itself first."""

    indices: np.ndarray
    distances: np.ndarray
    search_index: Any = None

    def edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sources, targets and distances; no point is its own neighbour here."""
        source, column = np.nonzero(self.indices[:, 1:] >= 0)
        return source, self.indices[source, column + 1], self.distances[source, column + 1]

    def matrix(self) -> scipy.sparse.csr_array:
        """The distances, rows being sources."""
        source, target, distance = self.edges()
        n = len(self.indices)
        return scipy.sparse.csr_array((distance, (source, target)), shape=(n, n))


class NewNeighbors(NamedTuple):
    """The nearest training points of every new point; −1 and inf where missing.

    indices : array of shape (n_new, k)
    outgoing : distances from the new point to them, ascending
    incoming : distances from them to the new point
    """

    indices: np.ndarray
    outgoing: np.ndarray
    incoming: np.ndarray


@runtime_checkable
class NeighborIndex(Protocol):
    """Nearest neighbours of the rows it is built on, and of new rows among them.

    Both answers follow from the data and the parameters (with ``random_state`` among them) and
    are the same for any number of threads. What is found for a new row depends on no other new
    row, bit for bit.
    """

    name: str

    def build(self, X, k: int) -> DirectedNeighbors:
        """The k nearest of every row of X, the row itself included and first."""

    def query(self, new, k: int) -> NewNeighbors:
        """The k nearest rows of X of every new row, and the distances both ways."""


def with_self_first(indices, distances, search_index=None, dtype=np.float32) -> DirectedNeighbors:
    """Put every point first in its own row, whatever ties and duplicates did to the order."""
    indices = np.array(indices, dtype=np.int32)
    distances = np.array(distances, dtype=dtype)
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


def with_self(indices, distances, dtype=np.float32) -> DirectedNeighbors:
    """Every point in front of its neighbours, among which it is not."""
    n = len(indices)
    indices = np.hstack([np.arange(n)[:, None], indices])
    return with_self_first(indices, np.hstack([np.zeros((n, 1)), distances]), dtype=dtype)


def with_missing(indices, outgoing, incoming) -> NewNeighbors:
    """Neighbours of new points, with −1 and inf where there is none."""
    missing = ~np.isfinite(outgoing) | (indices < 0)
    return NewNeighbors(
        np.where(missing, -1, indices),
        np.where(missing, np.inf, outgoing),
        np.where(missing, np.inf, incoming),
    )


class SearchSettings(NamedTuple):
    """What a search may need to know; each takes what concerns it.

    metric, metric_kwds : as the user gave them
    function, function_kwds : compiled metric for searches that do not know its name, and its
        keyword arguments, which may be more than those of the user
    symmetric : whether the metric is
    seeded : whether results must not depend on the number of threads
    low_memory, verbose : of pynndescent
    """

    metric: str | Callable = "euclidean"
    metric_kwds: dict | None = None
    function: Callable | None = None
    function_kwds: dict | None = None
    symmetric: bool = True
    random_state: Any = None
    n_threads: int = 1
    seeded: bool = True
    low_memory: bool = True
    verbose: bool = False
    dtype: type = np.float32


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
    n = D.shape[0]
    if scipy.sparse.issparse(D):
        source, target, value = _stored(D)
        others = source != target
        edges = source[others], target[others], value[others]
        return with_self(*_nearest_stored(*edges, n, n_neighbors - 1))
    indices = np.empty((n, n_neighbors), dtype=np.int64)
    distances = np.empty((n, n_neighbors), dtype=np.float64)
    for rows in row_blocks(n):
        block = np.array(D[rows], dtype=np.float64)
        own = np.arange(len(block))
        block[own, rows.start + own] = -1.0
        near = indices[rows] = smallest(block, n_neighbors)
        distances[rows] = np.take_along_axis(block, near, axis=1)
    return with_self_first(indices, distances)


def _stored(D) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and values of the entries of a sparse matrix, row by row."""
    D = scipy.sparse.csr_array(D)
    return np.repeat(np.arange(D.shape[0]), np.diff(D.indptr)), D.indices, D.data


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
    indices, there = _nearest_stored(*_stored(out), out.shape[0], k)
    back = np.full(there.shape, np.inf)
    row, place = np.nonzero(indices >= 0)
    if row.size:
        column = indices[row, place]
        stored = into.copy()
        stored.data[:] = 1.0
        length, known = (np.asarray(D[row, column]).ravel() for D in (into, stored))
        back[row, place] = np.where(known > 0, length, np.inf)
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
    if scipy.sparse.issparse(D):
        return as_dense(D[rows][:, columns], np.inf)
    return np.asarray(D[np.ix_(rows, columns)], dtype=np.float64)


def training_rows(new, X) -> np.ndarray:
    """For every new row the number of the first training row equal to it, or −1."""
    known = _row_hashes(X)
    order = np.argsort(known, kind="stable")
    asked = _row_hashes(new)
    place = np.minimum(np.searchsorted(known[order], asked), len(known) - 1)
    candidate = order[place]
    alike = np.flatnonzero(known[candidate] == asked)
    result = np.full(len(asked), -1, dtype=np.int64)
    same = X[candidate[alike]] != new[alike]
    if scipy.sparse.issparse(same):
        different = np.diff(scipy.sparse.csr_matrix(same).indptr) > 0
    else:
        different = np.asarray(same).any(axis=1)
    result[alike[~different]] = candidate[alike[~different]]
    return result


def _row_hashes(X) -> np.ndarray:
    """64 bits per row, the same for dense and sparse storage."""
    if not scipy.sparse.issparse(X):
        factor, bits = _factors(np.arange(X.shape[1])), _bits(X)
        hashes = np.empty(len(X), dtype=np.uint64)
        for rows in row_blocks(len(X)):
            hashes[rows] = _mixed(bits[rows].astype(np.uint64) * factor).sum(
                axis=1, dtype=np.uint64
            )
        return hashes
    terms = _mixed(_bits(X.data).astype(np.uint64) * _factors(X.indices))
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return total[X.indptr[1:]] - total[X.indptr[:-1]]


def _factors(columns: np.ndarray) -> np.ndarray:
    """An odd number per column; made from its index, as there may be more columns than memory."""
    return _mixed((columns.astype(np.uint64) + np.uint64(1)) * ODD) | np.uint64(1)


def _mixed(terms: np.ndarray) -> np.ndarray:
    """Spread the bits (round numbers end in many zeros); 0 stays 0."""
    terms ^= terms >> np.uint64(31)
    terms *= ODD
    terms ^= terms >> np.uint64(29)
    return terms


def _bits(values: np.ndarray) -> np.ndarray:
    if values.dtype != np.float32:
        return values
    return (values + np.float32(0.0)).view(np.uint32)  # −0.0 and 0.0 are equal
