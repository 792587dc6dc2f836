"""New points and their neighbours among the training points, in both directions.

A new point has edges to its nearest training points, by its own scale, and edges from them,
by the scales they were fitted with: with edges of one direction only, new points would slide
along the drift. What is found for a row depends on nothing but that row and the training
points, bit for bit, however many other rows are asked for at the same time.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit

from finsler_ext._threads import plain_interrupt, refuse_after_fork
from finsler_ext.construct.neighbors import BLOCK_ROWS, EUCLIDEAN, block_function

__all__ = [
    "NewNeighbors",
    "exact_new_neighbors",
    "extended_new_neighbors",
    "precomputed_new_neighbors",
    "searched_new_neighbors",
    "training_rows",
]

# Distances held at once by a thread that compares all pairs.
MAX_BLOCK = 2**22
# How far beyond the nearest an approximate search looks; umap-learn's figures.
EPSILON, EPSILON_ANGULAR = 0.12, 0.24
# 2⁶⁴ divided by the golden ratio: multiples of it are spread evenly (Knuth).
ODD = np.uint64(0x9E3779B97F4A7C15)


class NewNeighbors(NamedTuple):
    """The nearest training points of every new point; −1 and inf where missing.

    indices : array of shape (n_new, k)
    outgoing : distances from the new point to them, ascending
    incoming : distances from them to the new point
    """

    indices: np.ndarray
    outgoing: np.ndarray
    incoming: np.ndarray


def exact_new_neighbors(
    new, X, k: int, *, metric="euclidean", metric_kwds=None, symmetric=True, n_threads=1
) -> NewNeighbors:
    """Compare every new row with every training row; ``metric`` as in `exact_neighbors`.

    An asymmetric metric is evaluated in both directions.
    """
    kwds = metric_kwds or {}
    euclidean = isinstance(metric, str) and metric in EUCLIDEAN
    if euclidean and not scipy.sparse.issparse(X):
        # Not by matrix products: their rounding depends on the number of rows.
        def there(lo, hi):
            return _euclidean_block(new, X, lo, hi)
    else:
        there = block_function(new, X, metric, kwds)

    n_rows = max(1, min(BLOCK_ROWS, MAX_BLOCK // X.shape[0]))

    def nearest(start: int):
        stop = min(start + n_rows, new.shape[0])
        distances = there(start, stop)
        indices = _smallest(distances, k)
        outgoing = np.take_along_axis(distances, indices, axis=1)
        if symmetric:
            return indices, outgoing, outgoing
        back = block_function(X, new[start:stop], metric, kwds)(0, X.shape[0]).T
        return indices, outgoing, np.take_along_axis(back, indices, axis=1)

    with ThreadPoolExecutor(n_threads) as pool:
        blocks = list(pool.map(nearest, range(0, new.shape[0], n_rows)))
    return _marked(*(np.concatenate(part) for part in zip(*blocks, strict=True)))


def searched_new_neighbors(index, new, k: int) -> NewNeighbors:
    """Ask the search index of a symmetric metric.

    One row at a time: within a call pynndescent carries a random state from row to row. That
    costs a seventh of the search itself.
    """
    refuse_after_fork()
    epsilon = EPSILON_ANGULAR if getattr(index, "_angular_trees", False) else EPSILON
    indices = np.empty((new.shape[0], k), dtype=np.int64)
    distances = np.empty((new.shape[0], k))
    with plain_interrupt():
        for i in range(new.shape[0]):
            row = slice(i, i + 1)
            indices[row], distances[row] = index.query(new[row], k, epsilon=epsilon)
    return _marked(indices, distances, distances)


def precomputed_new_neighbors(outgoing, incoming, k: int) -> NewNeighbors:
    """Neighbours from given distances of shape (n_new, n): from new points, and to them."""
    if scipy.sparse.issparse(outgoing):
        indices, there, back = _sparse_rows(outgoing, incoming, k)
    else:
        there = np.asarray(outgoing, dtype=np.float64)
        indices = _smallest(there, k)
        back = np.take_along_axis(np.asarray(incoming, dtype=np.float64), indices, axis=1)
        there = np.take_along_axis(there, indices, axis=1)
    return _marked(indices, there, back)


def _sparse_rows(outgoing, incoming, k):
    out, into = (scipy.sparse.csr_array(D, dtype=np.float64) for D in (outgoing, incoming))
    n_new = out.shape[0]
    row = np.repeat(np.arange(n_new), np.diff(out.indptr))
    order = np.lexsort((out.indices, out.data, row))
    row, column, value = row[order], out.indices[order], out.data[order]
    place = np.arange(row.size) - out.indptr[row]
    near = (place < k) & np.isfinite(value)
    indices = np.full((n_new, k), -1, dtype=np.int64)
    there, back = (np.full((n_new, k), np.inf) for _ in range(2))
    if not near.any():
        return indices, there, back
    indices[row[near], place[near]] = column[near]
    there[row[near], place[near]] = value[near]
    stored = scipy.sparse.csr_array(
        (np.ones_like(into.data), into.indices, into.indptr), into.shape
    )
    has_way_back = np.asarray(stored[row[near], column[near]]).ravel() > 0
    way_back = np.asarray(into[row[near], column[near]]).ravel()
    back[row[near], place[near]] = np.where(has_way_back, way_back, np.inf)
    return indices, there, back


def extended_new_neighbors(
    found: NewNeighbors, indices: np.ndarray, lengths: np.ndarray, k: int
) -> NewNeighbors:
    """The ``k`` nearest along directed paths: one edge, then a geodesic of a training point.

    ``indices`` and ``lengths`` are the geodesic neighbours of the training points, themselves
    first. The way back leads along a geodesic and then an edge, and is missing where no
    geodesic that was kept leads to one of the new point's neighbours.
    """
    n_new = found.indices.shape[0]
    out = NewNeighbors(
        np.full((n_new, k), -1, dtype=np.int64),
        np.full((n_new, k), np.inf),
        np.full((n_new, k), np.inf),
    )
    lengths = np.asarray(lengths, dtype=np.float64)
    _extend(*found, indices, lengths, np.full(len(indices), np.inf), *out)
    return out


@njit(cache=True)
def _extend(near, outgoing, incoming, indices, lengths, shortest, to, there, back):
    k = to.shape[1]
    touched = np.empty(near.shape[1] * indices.shape[1], dtype=np.int64)
    for row in range(near.shape[0]):
        n_touched = 0
        for e in range(near.shape[1]):
            j = near[row, e]
            if j >= 0:
                for s in range(indices.shape[1]):
                    target = indices[j, s]
                    if target >= 0:
                        if shortest[target] == np.inf:
                            touched[n_touched] = target
                            n_touched += 1
                        length = outgoing[row, e] + lengths[j, s]
                        shortest[target] = min(shortest[target], length)
        reached = np.sort(touched[:n_touched])
        order = np.argsort(shortest[reached], kind="mergesort")
        for place in range(min(k, n_touched)):
            target = reached[order[place]]
            to[row, place] = target
            there[row, place] = shortest[target]
            for s in range(indices.shape[1]):
                for e in range(near.shape[1]):
                    if near[row, e] >= 0 and indices[target, s] == near[row, e]:
                        length = lengths[target, s] + incoming[row, e]
                        back[row, place] = min(back[row, place], length)
        shortest[reached] = np.inf


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
        for start in range(0, len(X), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            hashes[rows] = _stirred(bits[rows].astype(np.uint64) * factor).sum(
                axis=1, dtype=np.uint64
            )
        return hashes
    terms = _stirred(_bits(X.data).astype(np.uint64) * _factors(X.indices))
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return total[X.indptr[1:]] - total[X.indptr[:-1]]


def _factors(columns: np.ndarray) -> np.ndarray:
    """An odd number per column; made from its index, as there may be more columns than memory."""
    return _stirred((columns.astype(np.uint64) + np.uint64(1)) * ODD) | np.uint64(1)


def _stirred(terms: np.ndarray) -> np.ndarray:
    """Spread the bits (round numbers end in many zeros); 0 stays 0."""
    terms ^= terms >> np.uint64(31)
    terms *= ODD
    terms ^= terms >> np.uint64(29)
    return terms


def _bits(values: np.ndarray) -> np.ndarray:
    if values.dtype != np.float32:
        return values
    return (values + np.float32(0.0)).view(np.uint32)  # −0.0 and 0.0 are equal


def _smallest(distances: np.ndarray, k: int) -> np.ndarray:
    """Columns of the k smallest entries of every row, ascending, ties by column."""
    near = np.argpartition(distances, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(distances, near, axis=1)
    return np.take_along_axis(near, np.lexsort((near, values), axis=1), axis=1)


def _marked(indices, outgoing, incoming) -> NewNeighbors:
    missing = ~np.isfinite(outgoing) | (indices < 0)
    return NewNeighbors(
        np.where(missing, -1, indices),
        np.where(missing, np.inf, outgoing),
        np.where(missing, np.inf, incoming),
    )


@njit(nogil=True, cache=True, fastmath=True)
def _euclidean_block(new, X, start, stop):
    out = np.empty((stop - start, X.shape[0]))
    for i in range(start, stop):
        for j in range(X.shape[0]):
            total = 0.0
            for c in range(X.shape[1]):
                step = np.float64(new[i, c] - X[j, c])
                total += step * step
            out[i - start, j] = np.sqrt(total)
    return out
