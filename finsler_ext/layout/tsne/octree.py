"""A linear octree over points in up to three dimensions.

Points are sorted along the Morton curve; a node of the tree is a range of the sorted points,
and nodes are stored in the order of a depth-first walk, each with the place to go on from when
its subtree is skipped. Fewer than three dimensions are padded with zeros, which leaves a
quadtree or a binary tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = ["Octree", "build_octree", "padded"]

# Bits of a Morton key per axis; three axes fill 63 bits.
MORTON_BITS = 21
# Points of a leaf, and of a group that shares one walk. With 32 to 128 points to a group the
# walk takes the same time at 10,000 and 50,000 points within the noise, and the error falls.
LEAF_SIZE = 8
GROUP_SIZE = 128


class Octree(NamedTuple):
    """Sorted points and the nodes over them, in depth-first order."""

    order: np.ndarray  # row of each sorted point
    point: np.ndarray  # (3, n) sorted positions
    start: np.ndarray  # range of each node
    stop: np.ndarray
    skip: np.ndarray  # next node outside the subtree
    centre: np.ndarray  # (n_nodes, 3)
    side2: np.ndarray  # square of the side, were the cell filled evenly
    reach: np.ndarray  # bound on the distance of any point to the centre
    root: np.ndarray  # Cholesky factor of the covariance, row by row
    group: np.ndarray  # nodes whose points share a walk


def padded(position: np.ndarray, dtype) -> np.ndarray:
    """Positions as three contiguous rows (map, map, height), zero where there are fewer."""
    n, m = position.shape
    out = np.zeros((3, n), dtype=dtype)
    out[2] = position[:, m - 1]
    for c in range(m - 1):
        out[c] = position[:, c]
    return out


def build_octree(point: np.ndarray, group_size: int = GROUP_SIZE) -> Octree:
    """The tree over padded positions of shape (3, n)."""
    n = point.shape[1]
    low = point.min(axis=1).astype(np.float64)
    side = float((point.max(axis=1).astype(np.float64) - low).max())
    key = np.empty(n, dtype=np.uint64)
    _morton_keys(point, low, side, key)
    order = np.argsort(key, kind="stable")
    point = np.ascontiguousarray(point[:, order])
    return Octree(order, point, *_build(key[order], point, group_size))


@njit(inline="always", cache=True)
def _spread(x):
    """Bits of a 21-bit integer, three apart."""
    x = (x | (x << np.uint64(32))) & np.uint64(0x1F00000000FFFF)
    x = (x | (x << np.uint64(16))) & np.uint64(0x1F0000FF0000FF)
    x = (x | (x << np.uint64(8))) & np.uint64(0x100F00F00F00F00F)
    x = (x | (x << np.uint64(4))) & np.uint64(0x10C30C30C30C30C3)
    return (x | (x << np.uint64(2))) & np.uint64(0x1249249249249249)


@njit(nogil=True, cache=True)
def _morton_keys(point, low, side, key):
    cells = float(1 << MORTON_BITS)
    scale = cells / side if side > 0.0 else 0.0
    top = np.uint64((1 << MORTON_BITS) - 1)
    for i in range(point.shape[1]):
        x = min(np.uint64((point[0, i] - low[0]) * scale), top)
        y = min(np.uint64((point[1, i] - low[1]) * scale), top)
        z = min(np.uint64((point[2, i] - low[2]) * scale), top)
        key[i] = _spread(x) | (_spread(y) << np.uint64(1)) | (_spread(z) << np.uint64(2))


@njit(nogil=True, cache=True)
def _build(key, point, group_size):
    n = key.shape[0]
    capacity = 2 * n + 1
    start = np.empty(capacity, dtype=np.int32)
    stop = np.empty(capacity, dtype=np.int32)
    level = np.empty(capacity, dtype=np.int32)
    parent = np.empty(capacity, dtype=np.int32)
    skip = np.empty(capacity, dtype=np.int32)
    group = np.empty(n, dtype=np.int32)
    todo = np.empty((8 * (MORTON_BITS + 2), 4), dtype=np.int64)
    todo[0] = 0, n, 0, -1
    n_todo, n_nodes, n_groups = 1, 0, 0
    while n_todo > 0:
        n_todo -= 1
        lo, hi, depth, above = todo[n_todo]
        node = n_nodes
        n_nodes += 1
        start[node], stop[node], level[node], parent[node] = lo, hi, depth, above
        grouped = above >= 0 and (stop[above] - start[above]) <= group_size
        if not grouped and (hi - lo <= group_size or depth == MORTON_BITS):
            group[n_groups] = node
            n_groups += 1
        if hi - lo <= LEAF_SIZE or depth == MORTON_BITS:
            continue
        # chains of cells with a single child are passed over in one go
        while True:
            shift = np.uint64(3 * (MORTON_BITS - 1 - depth))
            if depth == MORTON_BITS - 1 or (key[lo] >> shift) != (key[hi - 1] >> shift):
                break
            depth += 1
        end = hi
        while end > lo:
            digit = key[end - 1] >> shift
            begin = lo + np.searchsorted(key[lo:end], digit << shift)
            todo[n_todo] = begin, end, depth + 1, node
            n_todo += 1
            end = begin
    for k in range(n_nodes):
        skip[k] = k + 1
    for k in range(n_nodes - 1, 0, -1):  # children come after their parent
        skip[parent[k]] = max(skip[parent[k]], skip[k])
    centre, side2, reach, root = _moments(point, start[:n_nodes], stop, skip)
    return (
        start[:n_nodes].copy(), stop[:n_nodes].copy(), skip[:n_nodes].copy(), centre, side2,
        reach, root, group[:n_groups].copy(),
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _moments(point, start, stop, skip):
    n_nodes = start.shape[0]
    centre = np.zeros((n_nodes, 3), dtype=np.float64)
    side2 = np.zeros(n_nodes, dtype=np.float64)
    reach = np.zeros(n_nodes, dtype=np.float64)
    root = np.zeros((n_nodes, 6), dtype=np.float64)  # first the covariance, then its factor
    step = np.zeros(3, dtype=np.float64)
    for k in range(n_nodes - 1, -1, -1):
        count = stop[k] - start[k]
        if skip[k] == k + 1:  # a leaf
            for j in range(start[k], stop[k]):
                for c in range(3):
                    centre[k, c] += point[c, j]
            for c in range(3):
                centre[k, c] /= count
            for j in range(start[k], stop[k]):
                for c in range(3):
                    step[c] = point[c, j] - centre[k, c]
                _add_square(root, k, step, 1.0)
                reach[k] = max(reach[k], np.sqrt(step[0] ** 2 + step[1] ** 2 + step[2] ** 2))
        else:
            child = k + 1
            while child < skip[k]:
                for c in range(3):
                    centre[k, c] += centre[child, c] * (stop[child] - start[child])
                child = skip[child]
            for c in range(3):
                centre[k, c] /= count
            child = k + 1
            while child < skip[k]:
                share = float(stop[child] - start[child])
                for c in range(3):
                    step[c] = centre[child, c] - centre[k, c]
                for c in range(6):
                    root[k, c] += share * root[child, c]
                _add_square(root, k, step, share)
                length = np.sqrt(step[0] ** 2 + step[1] ** 2 + step[2] ** 2)
                reach[k] = max(reach[k], length + reach[child])
                child = skip[child]
        for c in range(6):
            root[k, c] /= count
        side2[k] = 12.0 * max(root[k, 0], root[k, 2], root[k, 5])
    for k in range(n_nodes):
        xx, yx, yy, zx, zy, zz = root[k]
        a = np.sqrt(xx)
        b, d = (yx / a, zx / a) if a > 0.0 else (0.0, 0.0)
        c = np.sqrt(max(yy - b * b, 0.0))
        e = (zy - d * b) / c if c > 0.0 else 0.0
        root[k] = a, b, c, d, e, np.sqrt(max(zz - d * d - e * e, 0.0))
    return centre, side2, reach, root


@njit(inline="always", cache=True)
def _add_square(covariance, k, step, weight):
    covariance[k, 0] += weight * step[0] * step[0]
    covariance[k, 1] += weight * step[1] * step[0]
    covariance[k, 2] += weight * step[1] * step[1]
    covariance[k, 3] += weight * step[2] * step[0]
    covariance[k, 4] += weight * step[2] * step[1]
    covariance[k, 5] += weight * step[2] * step[2]
