"""Nearest rows by Euclidean distance, and by what is a function of one, from products of blocks.

‖x − y‖²/2 = ‖x‖²/2 + ‖y‖²/2 − x·y. Products of blocks in single precision are the fastest way
there is to compare all pairs, but they round. So they only choose candidates: every pair that is
within the rounding error of being among the k nearest is compared again, by the differences of its
entries in double precision. What is returned is the answer of comparing all pairs that way, ties by
row number, for any number of threads, any size of blocks and any other rows asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit

from finsler_ext._messages import step
from finsler_ext._threads import one_blas_thread, row_blocks

# A tile of products: large enough for BLAS, small enough for the second-level cache.
QUERIES_PER_TILE, ROWS_PER_TILE = 256, 1024
# Candidates of a row that are kept before they are compared exactly, beyond 2k.
SPARE_CANDIDATES = 64
# The scale of data whose squares single precision holds without loss.
SMALLEST, LARGEST = 2.0**-20, 2.0**20
# Data are centred where their mean is longer than their spread: rounding grows with the norm.
FAR_FROM_ZERO = 1.0
# Rows whose candidates are counted beforehand, and how many candidates per neighbour are too many
# for products in single precision.
TRIAL_ROWS, MANY_CANDIDATES = 64, 16


class DenseRows:
    """Rows of dense data, ready for products: near the origin, of order one; or ``like`` others."""

    def __init__(self, X: np.ndarray, like: DenseRows | None = None):
        self.X = X
        if like is None:
            self.shift, self.factor = _shift_and_factor(X)
        else:
            self.shift, self.factor = like.shift, like.factor

    def __len__(self) -> int:
        return self.X.shape[0]

    def part(self, chosen: slice, dtype) -> np.ndarray:
        rows = self.X[chosen]
        if self.shift is not None:
            rows = rows.astype(np.float64) - self.shift
        if self.factor != 1.0:
            rows = rows * rows.dtype.type(self.factor)
        return np.ascontiguousarray(rows, dtype=dtype)

    def taken(self, chosen: np.ndarray) -> DenseRows:
        return DenseRows(np.ascontiguousarray(self.X[chosen]), like=self)

    def prepared(self, dtype) -> tuple[np.ndarray, np.ndarray]:
        """All rows for products, and half their squared norms."""
        if self.shift is None and self.factor == 1.0 and self.X.dtype == dtype:
            rows = self.X
        else:
            rows = np.empty(self.X.shape, dtype=dtype)
            for part in row_blocks(len(self), ROWS_PER_TILE):
                rows[part] = self.part(part, dtype)
        half = np.empty(len(rows), dtype=rows.dtype)
        for part in row_blocks(len(rows), ROWS_PER_TILE):
            block = rows[part].astype(np.float64)
            half[part] = 0.5 * np.einsum("ij,ij->i", block, block)
        return rows, half


def _shift_and_factor(X):
    low, high = float(X.min(initial=0.0)), float(X.max(initial=0.0))
    largest = max(abs(low), abs(high))
    factor = 1.0
    if largest > 0.0 and not SMALLEST < largest < LARGEST:
        factor = 2.0 ** -int(np.frexp(largest)[1])
    mean = np.zeros(X.shape[1])
    square = 0.0
    for part in row_blocks(len(X), ROWS_PER_TILE):
        block = X[part].astype(np.float64) * factor
        mean += block.sum(axis=0)
        square += float(np.einsum("ij,ij->", block, block))
    mean /= max(len(X), 1)
    from_zero = float(mean @ mean)
    spread = square / max(len(X), 1) - from_zero
    return (mean / factor if from_zero > FAR_FROM_ZERO * spread else None), factor


def nearest_rows(
    queries: DenseRows, rows: DenseRows, k: int, *, n_threads: int = 1, same: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers and distances of the k nearest ``rows`` of every query, nearest first.

    With ``same``, queries and rows are the same, and no row is its own neighbour.
    """
    k = min(k, len(rows) - same)
    if k < 1:
        return np.empty((len(queries), 0), dtype=np.int64), np.empty((len(queries), 0))
    dtype = _precision(queries, rows, k, same)
    found = np.empty((len(queries), k), dtype=np.int64), np.empty((len(queries), k))
    _search(queries, rows, k, dtype, n_threads, same, np.arange(len(queries)), *found)
    return found


def _precision(queries, rows, k, same):
    """float32, unless a trial shows that it cannot tell neighbours apart."""
    if len(queries) <= TRIAL_ROWS or len(rows) <= ROWS_PER_TILE:
        return np.float32
    trial = np.unique(np.linspace(0, len(queries) - 1, TRIAL_ROWS).astype(np.int64))
    found = np.empty((len(trial), k), dtype=np.int64), np.empty((len(trial), k))
    compared = _search(queries.taken(trial), rows, k, np.float32, 1, same, trial, *found)
    # k ln(n/k) rows come before the nearest are known, in any precision
    expected = k * (1.0 + np.log(len(rows) / k))
    return np.float64 if compared > MANY_CANDIDATES * len(trial) * expected else np.float32


def _search(queries, rows, k, dtype, n_threads, same, own, indices, distances) -> int:
    """Fill ``indices`` and ``distances``; the number of pairs that were compared exactly."""
    among, half = rows.prepared(dtype)
    own = own if same else np.full(len(queries), -1)

    def block(start: int) -> int:
        part = slice(start, min(start + QUERIES_PER_TILE, len(queries)))
        asked = queries.part(part, dtype)
        found = nearest_of_block(asked, queries.X[part], own[part], rows.X, among, half, k)
        indices[part], distances[part], compared = found
        return compared

    total = 0
    with one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        starts = range(0, len(queries), QUERIES_PER_TILE)
        for done, compared in enumerate(pool.map(block, starts), start=1):
            total += compared
            if len(starts) > 1:  # a trial is one block, and not a share of the search
                step(done, len(starts))
    return total


def nearest_of_block(asked, Q, own, X, among, half, k: int):
    """Row numbers and distances of the k nearest, and the number of exact comparisons.

    Queries and rows are multiplied as ``asked`` and ``among``, and compared as Q and X. ``own`` is
    the row that each query is itself, or −1; ``half`` are half the squared norms of ``among``.
    """
    dtype = among.dtype
    longest = float(np.sqrt(2.0 * half.max(initial=0.0)))
    norm = np.sqrt(np.einsum("ij,ij->i", asked, asked, dtype=np.float64))
    rounding = np.finfo(dtype).eps * (among.shape[1] + 8)
    slack = (2.02 * rounding * longest * (norm + longest)).astype(dtype)
    # The k smallest products, candidates, the k nearest so far, and the pairs compared.
    n, room = len(asked), 2 * k + SPARE_CANDIDATES
    state = (
        np.full((n, k), np.inf, dtype=dtype),
        np.zeros(n, dtype=np.int64),
        np.empty((n, room), dtype=np.int64),
        np.empty((n, room), dtype=dtype),
        np.full((n, k), np.inf),
        np.full((n, k), -1, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
    )
    product = np.empty((len(asked), ROWS_PER_TILE), dtype=dtype)
    for first in range(0, len(among), ROWS_PER_TILE):
        part = among[first : first + ROWS_PER_TILE]
        if len(part) < ROWS_PER_TILE:  # not a part of the tile, for which all would compile again
            product = np.empty((len(asked), len(part)), dtype=dtype)
        np.matmul(asked, part.T, out=product)
        _absorb(product, half, first, own, slack, Q, X, *state)
    _finish(slack, Q, X, *state)
    return state[5], np.sqrt(state[4]), int(state[6].sum())


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nnan"})
def _absorb(
    product, half, first, own, slack, Q, X, best, waiting, who, value, square, near, compared
):
    """Take the candidates of one tile."""
    width = product.shape[1]
    k = best.shape[1]
    for i in range(product.shape[0]):
        if square[i, k - 1] == 0.0:  # all neighbours are copies, and later ones come later
            continue
        limit = best[i, 0] + slack[i]
        for start in range(0, width, 32):
            stop = min(start + 32, width)
            least = half[first + start] - product[i, start]
            for c in range(start, stop):
                least = min(least, half[first + c] - product[i, c])
            if least > limit:
                continue
            for c in range(start, stop):
                j = first + c
                s = half[j] - product[i, c]
                if s > limit or j == own[i]:
                    continue
                if s < best[i, 0]:
                    _replace_largest(best[i], s)
                    limit = best[i, 0] + slack[i]
                who[i, waiting[i]], value[i, waiting[i]] = j, s
                waiting[i] += 1
                if waiting[i] == who.shape[1]:
                    waiting[i] = _still_near(who[i], value[i], limit)
                    if 2 * waiting[i] > who.shape[1] + k:  # many are alike
                        _compare(i, limit, Q, X, waiting, who, value, square, near, compared)


@njit(nogil=True, cache=True, inline="always")
def _replace_largest(heap, value):
    """Put a smaller value in the place of the largest, which a heap has first."""
    at, n = 0, heap.shape[0]
    while True:
        child = 2 * at + 1
        if child >= n:
            break
        if child + 1 < n and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value


@njit(nogil=True, cache=True, inline="always")
def _still_near(who, value, limit):
    """Drop the candidates that better ones have overtaken; the number of the others."""
    n = 0
    for w in range(who.shape[0]):
        if value[w] <= limit:
            who[n], value[n] = who[w], value[w]
            n += 1
    return n


@njit(nogil=True, cache=True)
def _finish(slack, Q, X, best, waiting, who, value, square, near, compared):
    for i in range(best.shape[0]):
        limit = best[i, 0] + slack[i]
        _compare(i, limit, Q, X, waiting, who, value, square, near, compared)


@njit(nogil=True, cache=True, fastmath=False)
def _compare(i, limit, Q, X, waiting, who, value, square, near, compared):
    """Compare the waiting candidates of row i exactly."""
    for w in range(waiting[i]):
        if value[i, w] > limit:
            continue
        j = who[i, w]
        total = square_distance(Q, i, X, j)
        compared[i] += 1
        insert(square[i], near[i], total, j)
    waiting[i] = 0


@njit(nogil=True, cache=True, inline="always")
def insert(squares, near, total, j):
    """Put row j among the nearest, ties by row number, if it is nearer than the last."""
    k = near.shape[0]
    at = k
    while at > 0 and (total < squares[at - 1] or (total == squares[at - 1] and j < near[at - 1])):
        at -= 1
    if at < k:
        for e in range(k - 1, at, -1):
            squares[e], near[e] = squares[e - 1], near[e - 1]
        squares[at], near[at] = total, j


# fastmath=False in words: without it numba takes over the setting of the caller that compiles it.
@njit(nogil=True, cache=True, fastmath=False)
def square_distance(A, i, B, j):
    """Squared distance of two rows, from their differences; 0 for copies.

    Squares are added one after the other, which every processor rounds alike.
    """
    total = 0.0
    for c in range(A.shape[1]):
        step = np.float64(A[i, c] - B[j, c])
        total += step * step
    return total


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def quick_square_distance(A, i, B, j):
    """The same in the precision of the rows, in the order that suits the processor."""
    total = A[i, 0] - A[i, 0]
    for c in range(A.shape[1]):
        step = A[i, c] - B[j, c]
        total += step * step
    return total


@njit(nogil=True, cache=True)
def pair_distances(A, B, row, column):
    """Distances from rows of A to rows of B."""
    out = np.empty(row.shape[0])
    for e in range(row.shape[0]):
        out[e] = np.sqrt(square_distance(A, row[e], B, column[e]))
    return out


# Metrics that are functions of a Euclidean distance d between transformed rows: x/‖x‖ for cosines,
# the same of x − mean(x) for correlations, √(x/Σx) for Hellinger's.
#
# As in umap-learn, rows without a direction (zeros, or constants for the correlation) have distance
# 0 from each other and 1 from all others: they get a direction of their own in one more column.


class Reduction(NamedTuple):
    """Transformed rows, how to transform others, and the metric as a function of the distance."""

    rows: np.ndarray
    transform: Callable[[np.ndarray], np.ndarray]
    value: Callable[[np.ndarray], np.ndarray]

    def of(self, new: np.ndarray) -> np.ndarray | None:
        """New rows, transformed; None if they are not finite."""
        return self.transform(new) if _is_finite(new) else None


def reduction_of(metric, X, metric_kwds=None) -> Reduction | None:
    """How to find neighbours by Euclidean distances, or None where that is not possible."""
    if not isinstance(metric, str) or metric not in REDUCIBLE or metric_kwds:
        return None
    if scipy.sparse.issparse(X) or X.dtype.kind != "f":
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


REDUCIBLE: dict[str, tuple[Callable, Callable]] = {
    "euclidean": (np.ascontiguousarray, lambda d: d),
    "l2": (np.ascontiguousarray, lambda d: d),
    "sqeuclidean": (np.ascontiguousarray, lambda d: d * d),
    "cosine": (_unit, _half_square),
    "correlation": (partial(_unit, centred=True), _half_square),
    "hellinger": (_root_shares, lambda d: d * np.sqrt(0.5)),
}
