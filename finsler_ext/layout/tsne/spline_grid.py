"""Points on a regular grid of one or two dimensions: spread over the nodes, and read off there.

Both by B-splines of order six, the product of one along each axis. Rows of the grid belong to
one thread each, and every node adds up its points in the same order: sums do not depend on the
number of threads.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit

__all__ = ["GRID_DIMENSIONS", "ORDER", "grid_kernels", "sort_by_row", "spline"]

GRID_DIMENSIONS = 2
# Nodes that a point reaches along each axis.
ORDER = 6


@njit(nogil=True, cache=True)
def sort_by_row(row, n_rows):
    """Stable order of the points by row of the grid, and where each row begins."""
    n = row.shape[0]
    first = np.zeros(n_rows + 1, dtype=np.int64)
    for i in range(n):
        first[int(row[i]) + 1] += 1
    for r in range(n_rows):
        first[r + 1] += first[r]
    place = first[:-1].copy()
    order = np.empty(n, dtype=np.int64)
    for i in range(n):
        r = int(row[i])
        order[place[r]] = i
        place[r] += 1
    return order, first


@njit(inline="always", cache=True)
def spline(u, order, weight, slope):
    """Values of M, and of its derivative, at the nodes around a point u behind its node."""
    weight[0], slope[0] = 1.0, 0.0
    for q in range(2, order + 1):
        if q == order:
            slope[0] = -weight[0]
            for j in range(1, q - 1):
                slope[j] = weight[j - 1] - weight[j]
            slope[q - 1] = weight[q - 2]
        share = 1.0 / (q - 1)
        weight[q - 1] = share * u * weight[q - 2]
        for j in range(q - 2, 0, -1):
            weight[j] = share * ((u + q - 1 - j) * weight[j - 1] + (1 + j - u) * weight[j])
        weight[0] = share * (1.0 - u) * weight[0]


@cache
def grid_kernels(dimensions: int):
    """``spread(start, stop, at, first, grid)`` and ``gather(start, stop, at, order, grid, …)``.

    Both serve a range of the points as sorted by row. Of the nodes, a range owns those from
    the row of its first point to the row of the next range's first point; it adds to no others,
    but from all points, in their order.
    """
    rows = ORDER if dimensions == GRID_DIMENSIONS else 1

    @njit(nogil=True, cache=True, error_model="numpy")
    def spread(start, stop, at, first, grid):
        n = at.shape[1]
        own = 0 if start == 0 else int(at[0, start])
        end = grid.shape[0] if stop == n else int(at[0, stop])
        wx, wz, unused = np.empty(ORDER), np.empty(ORDER), np.empty(ORDER)
        for i in range(first[max(0, own - rows + 1)], first[min(end, first.shape[0] - 1)]):
            row, column = int(at[0, i]), int(at[1, i])
            spline(at[0, i] - row, rows, wx, unused)
            spline(at[1, i] - column, ORDER, wz, unused)
            for a in range(max(0, own - row), min(rows, end - row)):
                for b in range(ORDER):
                    grid[row + a, column + b] += wx[a] * wz[b]

    @njit(nogil=True, cache=True, error_model="numpy")
    def gather(start, stop, at, order, grid, near, value, force):
        wx, sx, wz, sz = np.empty(ORDER), np.empty(ORDER), np.empty(ORDER), np.empty(ORDER)
        bz, tz = np.empty(ORDER), np.empty(ORDER)
        for i in range(start, stop):
            row, column = int(at[0, i]), int(at[1, i])
            spline(at[0, i] - row, rows, wx, sx)
            spline(at[1, i] - column, ORDER, wz, sz)
            total, fx, fz = 0.0, 0.0, 0.0
            for a in range(rows):
                level, slope = 0.0, 0.0
                for b in range(ORDER):
                    potential = grid[row + a, column + b]
                    level += wz[b] * potential
                    slope += sz[b] * potential
                total += wx[a] * level
                fx += sx[a] * level
                fz += wx[a] * slope
            # the point's own share: c over all pairs of nodes that it reaches
            _overlaps(wz, sz, ORDER, bz, tz)
            for lag in range(rows):
                ax, tx = _overlap(wx, sx, rows, lag)
                level, slope = 0.0, 0.0
                for b in range(ORDER):
                    level += near[lag, b] * bz[b]
                    slope += near[lag, b] * tz[b]
                total -= ax * level
                fx -= tx * level
                fz -= ax * slope
            j = order[i]
            value[j], force[0, j], force[1, j] = total, fx, fz

    return spread, gather


@njit(inline="always", cache=True)
def _overlap(weight, slope, order, lag):
    """Σ M(y − a) M(y − b) over nodes ``lag`` apart either way, and its slope by one of both."""
    both, rise = 0.0, 0.0
    for k in range(order - lag):
        both += weight[k] * weight[k + lag]
        rise += slope[k] * weight[k + lag] + weight[k] * slope[k + lag]
    if lag == 0:
        return both, 0.5 * rise
    return 2.0 * both, rise


@njit(inline="always", cache=True)
def _overlaps(weight, slope, order, both, rise):
    for lag in range(order):
        both[lag], rise[lag] = _overlap(weight, slope, order, lag)
