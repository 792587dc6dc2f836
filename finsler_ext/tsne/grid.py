"""Points on a regular grid of one or two dimensions: spread over the nodes, and read off there.

Both by B-splines of order six, the product of one along each axis. Rows of the grid belong to
one thread each, and every node adds up its points in the same order: sums do not depend on the
number of threads.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.fft
from numba import njit

from finsler_ext._threads import run_rows
from finsler_ext.geometry import RANDERS, Space

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


# Repulsion by a regular grid and the FFT, in one or two dimensions.
#
# The repulsion sees only the even kernel W (see `finsler_ext.geometry.randers`). Between nodes
# a and b of a grid, W is replaced by a spline in both of its ends,
#
#     W(y − y') ≈ Σ_ab M(y − a) c(a − b) M(y' − b),
#
# M the B-spline of order six, c such that both sides agree where y and y' are nodes. So points are
# spread over the nodes by M, convolved with c (one forward and one inverse real FFT, the transform
# of c is kept from step to step), and the potential is read off by M, its gradient by ∇M.
#
# * The spacing of nodes is a quarter of the kernel's length: `kernel_length` across the drift, and
#   1/(1 + ω) of it along the drift. A sixth where clusters are tight, that is under exaggeration
#   and
#   in layouts that are still narrow. For the force of a spline at distance 0 is not quite 0 between
#   nodes (0.006 at a third), which moves a tight cluster by itself. 5000 points after early
#   exaggeration, error of the force: 2.9 % at a third, 0.55 % at a quarter, 0.04 % at a sixth;
#   finished layouts have 0.11, 0.014 and 0.001 %. (A third would do for these, but fits of 2000
#   points then end 0.6 % above exact ones.) Convolving with ∂W in place of reading off by ∇M has
#   0.6 % at a third and needs two more FFTs, for which closer nodes are the better use.
# * The share of a point in its own sum is subtracted as the splines have it, so that it cancels
#   exactly.
# * A layout of fewer than 50 spacings has a finer grid. There W differs from W(0) only in late
#   digits, so W − W(0) is convolved, in double precision. Larger layouts have the larger grids,
#   and single precision is enough.

# openTSNE's defaults: three nodes in every interval, intervals of length 1, at least 50.
NODES_PER_INTERVAL, INTERVALS, MIN_INTERVALS = 3, 1.0, 50
# Length of an interval of 1, in kernel lengths: nodes are a quarter apart at the defaults, and a
# sixth where clusters are tight.
UNIT, TIGHT_UNIT = 0.75, 0.5
# Layouts of fewer kernel lengths than this are, or were a few steps ago, exaggerated: fits to blobs
# span 28 to 34 then, at 5000 to 50,000 points, and 140 at the end.
WIDE = 100
# W(0)
PEAK = 2.0
# The square of a smaller number is zero.
VANISHING = float(np.sqrt(np.finfo(np.float64).tiny))
# Lengths of transforms are these times a power of two: coarse steps, so that a growing layout
# changes its grid, and needs another transform of the kernel, some twenty times and not always.
LENGTH_STEPS = (8, 9, 10, 12, 15)
# A layout whose extent goes up and down uses a few grids in turn.
KEPT_KERNELS = 4


class GridPlan(NamedTuple):
    """Where the nodes are. Kernels depend on ``spacing`` and ``length`` only."""

    low: np.ndarray
    spacing: np.ndarray
    nodes: tuple[int, int]
    length: tuple[int, int]  # of the transforms; 1 for a missing axis
    single: bool  # precision of the transforms

    @property
    def size(self) -> int:
        return self.length[0] * self.length[1]


def kernel_length(dof: float) -> float:
    """Distance of w to its nearest singularity, √ν, or, where that says too little because w
    is nearly Gaussian, where the parabola that touches w at its peak reaches zero."""
    return float(np.sqrt(min(dof, 2.0 * dof / (dof + 1.0))))


def plan_grid(
    point: np.ndarray,
    *,
    omega_norm: float,
    dof: float,
    space: Space = RANDERS,
    n_interpolation_points: int = NODES_PER_INTERVAL,
    ints_in_interval: float = INTERVALS,
    min_num_intervals: int = MIN_INTERVALS,
    tight: bool = False,
) -> GridPlan | None:
    """The grid for a layout of shape (m, n), or None if its extent is nothing or not finite.

    Spacing is 0.75 ``ints_in_interval / n_interpolation_points`` kernel lengths, 0.5 in place of
    0.75 if the layout is narrow or on a line, or ``tight`` clusters are announced. Nodes come
    closer by powers of two until the longer side has at least ``min_num_intervals`` spacings.
    """
    if not (n_interpolation_points >= 1 and ints_in_interval > 0 and min_num_intervals >= 1):
        raise ValueError(
            "n_interpolation_points and min_num_intervals must be at least 1 and ints_in_interval "
            f"positive, got {n_interpolation_points!r}, {min_num_intervals!r} and "
            f"{ints_in_interval!r}. The defaults are {NODES_PER_INTERVAL}, {MIN_INTERVALS} and "
            f"{INTERVALS:g}."
        )
    axes = [*range(GRID_DIMENSIONS - len(point), GRID_DIMENSIONS)]
    spacing = np.full(GRID_DIMENSIONS, kernel_length(dof))
    spacing[-1] /= space.forward(1.0, 1.0, omega_norm)[0]
    low, extent = np.zeros(GRID_DIMENSIONS), np.zeros(GRID_DIMENSIONS)
    low[axes], extent[axes] = point.min(axis=1), np.ptp(point, axis=1)
    sides = float((extent / spacing).max())
    if not VANISHING < sides < np.inf:
        return None
    share = ints_in_interval / n_interpolation_points
    # nodes on a line cost next to nothing
    share *= TIGHT_UNIT if tight or sides < WIDE or len(point) == 1 else UNIT
    finer = max(0, int(np.ceil(np.log2(min_num_intervals * share / sides))))
    spacing *= share / 2.0**finer
    rows, columns = (int(side) + ORDER for side in extent / spacing)
    # The kernel has a kink where it is continued periodically; its spline feels that for a few
    # nodes around.
    length = (_length(2 * (rows + ORDER)), _length(2 * (columns + ORDER)))
    if len(point) == 1:
        rows, length = 1, (1, length[1])
    return GridPlan(low, spacing, (rows, columns), length, finer == 0)


def _length(least: int) -> int:
    octave = 2
    while octave * LENGTH_STEPS[-1] < least:
        octave *= 2
    return next(octave * step for step in LENGTH_STEPS if octave * step >= least)


class Kernel(NamedTuple):
    transform: np.ndarray  # of c: real, because c is even
    near: np.ndarray  # c at the offsets of nodes that one point reaches
    rest: float  # what was subtracted from W


class KernelStore:
    """Transforms of the kernel for the grids used last."""

    def __init__(self):
        self._kept: OrderedDict[tuple, Kernel] = OrderedDict()

    def get(
        self, plan: GridPlan, space: Space, omega_norm: float, dof: float, n_threads: int
    ) -> Kernel:
        key = (*plan.spacing, *plan.length, plan.single, space, omega_norm, dof)
        if key not in self._kept:
            while len(self._kept) >= KEPT_KERNELS:
                self._kept.popitem(last=False)
            self._kept[key] = kernel_transform(plan, space, omega_norm, dof, n_threads)
        self._kept.move_to_end(key)
        return self._kept[key]


def kernel_transform(
    plan: GridPlan, space: Space, omega_norm: float, dof: float, n_threads: int
) -> Kernel:
    """Transform of the spline coefficients c on one period of the grid."""
    x, z = (
        np.arange(length // 2 + 1) * spacing
        for length, spacing in zip(plan.length, plan.spacing, strict=True)
    )
    d = np.hypot(x[:, None], z)
    c = np.zeros_like(d)
    for rise in (z, -z):  # w − 1 to full precision
        F = space.forward(d, rise, omega_norm)[0]
        c += np.expm1(-0.5 * (dof + 1.0) * np.log1p(F**2 / dof))
    rest = PEAK
    if plan.single:
        c += PEAK
        rest = 0.0
    axes = [k for k in range(GRID_DIMENSIONS) if plan.length[k] > 1]
    # the discrete Fourier transform of an even sequence, from one half of it
    c = scipy.fft.dctn(c, type=1, axes=axes, workers=n_threads)
    for axis in axes:
        shape = [1] * GRID_DIMENSIONS
        shape[axis] = -1
        c /= _spline_spectrum(plan.length[axis]).reshape(shape) ** 2
    near = scipy.fft.idctn(c, type=1, axes=axes, workers=n_threads)[:ORDER, :ORDER].copy()
    both = np.concatenate([c, c[-2:0:-1]])
    return Kernel(both.astype(np.float32) if plan.single else both, near, rest)


def _spline_spectrum(length: int) -> np.ndarray:
    """Transform of M at the nodes."""
    weight, slope = np.empty(ORDER), np.empty(ORDER)
    spline(0.0, ORDER, weight, slope)
    middle = np.arange(ORDER) - (ORDER // 2 - 1)
    phase = 2.0 * np.pi / length * np.arange(length // 2 + 1)
    return np.cos(phase[:, None] * middle) @ weight


def grid_repulsion(
    point: np.ndarray,
    plan: GridPlan,
    *,
    omega_norm: float,
    dof: float,
    space: Space = RANDERS,
    store: KernelStore | None = None,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Sums Σ_j W(y_i − y_j) and Σ_j ∇W(y_i − y_j) over all j ≠ i.

    Parameters
    ----------
    point : array of shape (m, n), m = 1 or 2
        Positions in double precision, one row per coordinate, the height last.
    plan : GridPlan
        From `plan_grid`, with the same drift and dof.
    omega_norm, dof : float
    space : Space
        It must have an even kernel.
    store : KernelStore, optional
        Keeps transforms of the kernel from call to call.
    n_threads : int
        Changes the time taken, never the result.

    Returns
    -------
    value : array of shape (n,)
    force : array of shape (m, n)
    """
    m, n = point.shape
    store = KernelStore() if store is None else store
    kernel = store.get(plan, space, omega_norm, dof, n_threads)
    at = np.zeros((GRID_DIMENSIONS, n))
    at[GRID_DIMENSIONS - m :] = point
    at -= plan.low[:, None]
    at /= plan.spacing[:, None]
    order, first = sort_by_row(at[0], plan.nodes[0])
    at = np.ascontiguousarray(at[:, order])
    spread, gather = grid_kernels(m)
    dtype = np.float32 if plan.single else np.float64
    grid = np.zeros(plan.nodes, dtype=dtype)
    value, force = np.empty(n), np.empty((GRID_DIMENSIONS, n))
    run_rows(spread, n, n_threads if m > 1 else 1, at, first, grid)
    grid = _convolve(grid, plan, kernel.transform, n_threads)
    run_rows(gather, n, n_threads, at, order, grid, kernel.near, value, force)
    value += kernel.rest * (n - 1)
    return value, force[GRID_DIMENSIONS - m :] / plan.spacing[-m:, None]


def _convolve(grid, plan: GridPlan, transform, workers: int) -> np.ndarray:
    """Rows of zeros are neither transformed nor kept."""
    rows, columns = plan.length
    wave = scipy.fft.rfft(grid, n=columns, axis=1, workers=workers)
    if rows > 1:
        wave = scipy.fft.fft(wave, n=rows, axis=0, workers=workers, overwrite_x=True)
    wave *= transform
    if rows > 1:
        wave = scipy.fft.ifft(wave, axis=0, workers=workers, overwrite_x=True)[: plan.nodes[0]]
    return scipy.fft.irfft(wave, n=columns, axis=1, workers=workers)
