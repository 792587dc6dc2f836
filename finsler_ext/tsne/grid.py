"""Repulsion by a regular grid and the FFT, in one or two dimensions.

The repulsion sees only the even kernel W (see `finsler_ext.geometry.randers`). Between nodes a and
b of a grid, W is replaced by a spline in both of its ends,

    W(y − y') ≈ Σ_ab M(y − a) c(a − b) M(y' − b),

M the B-spline of order six, the product of one along each axis, c such that both sides agree where
y and y' are nodes. So points are spread over the nodes by M, convolved with c (one forward and one
inverse real FFT, the transform of c is kept from step to step), and the potential is read off by M,
its gradient by ∇M. Rows of the grid belong to one thread each, and every node adds up its points
in the same order: sums do not depend on the number of threads.

* The spacing of nodes is a quarter of the kernel's length: `kernel_length` across the drift, and
  1/(1 + ω) of it along the drift. The force of a spline at distance 0 is not quite 0 between nodes,
  which moves a tight cluster by itself: under exaggeration and in layouts that are still narrow the
  spacing is a sixth. (`benchmarks/tsne_grid.py` measures the error of the force.)
* The share of a point in its own sum is subtracted as the splines have it, so that it cancels
  within 1e-7 of W(0).
* A layout of fewer than 50 spacings has a finer grid. There W differs from W(0) only in late
  digits, so W − W(0) is convolved, in double precision. Larger layouts have the larger grids,
  and single precision is enough.
"""

from __future__ import annotations

from collections.abc import Callable
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
FACTORIAL = 1.0 / 120.0


@njit(nogil=True, cache=True)
def sort_by_row(point, low, spacing, n_rows):
    """Points of shape (m, n) in units of the grid, stably sorted by its rows.

    Returns the row and column of each (shape (2, n), a line has one row), the order, and where
    each row begins.
    """
    m, n = point.shape
    first = np.zeros(n_rows + 1, dtype=np.int64)
    for i in range(n if m > 1 else 0):
        first[int((point[0, i] - low[0]) / spacing[0]) + 1] += 1
    for r in range(n_rows if m > 1 else 0):
        first[r + 1] += first[r]
    first[n_rows] = n
    place = first[:-1].copy()
    at = np.zeros((2, n))
    order = np.empty(n, dtype=np.int64)
    for i in range(n):
        x = (point[0, i] - low[0]) / spacing[0] if m > 1 else 0.0
        e = place[int(x)]
        place[int(x)] += 1
        order[e], at[0, e], at[1, e] = i, x, (point[m - 1, i] - low[1]) / spacing[1]
    return at, order, first


@njit(inline="always", cache=True)
def spline(u):
    """M at the six nodes around a point u behind the first of the middle two."""
    v = 1.0 - u
    uu, vv = u * u, v * v
    return (
        vv * vv * v * FACTORIAL,
        (26.0 + u * (-50.0 + u * (20.0 + u * (20.0 + u * (-20.0 + u * 5.0))))) * FACTORIAL,
        (66.0 + uu * (-60.0 + uu * (30.0 - u * 10.0))) * FACTORIAL,
        (66.0 + vv * (-60.0 + vv * (30.0 - v * 10.0))) * FACTORIAL,
        (26.0 + v * (-50.0 + v * (20.0 + v * (20.0 + v * (-20.0 + v * 5.0))))) * FACTORIAL,
        uu * uu * u * FACTORIAL,
    )


@njit(inline="always", cache=True)
def spline_slope(u):
    """Its derivative there."""
    v = 1.0 - u
    uu, vv = u * u, v * v
    return (
        -vv * vv * (5.0 * FACTORIAL),
        (-50.0 + u * (40.0 + u * (60.0 + u * (-80.0 + u * 25.0)))) * FACTORIAL,
        u * (-120.0 + uu * (120.0 - u * 50.0)) * FACTORIAL,
        -v * (-120.0 + vv * (120.0 - v * 50.0)) * FACTORIAL,
        -(-50.0 + v * (40.0 + v * (60.0 + v * (-80.0 + v * 25.0)))) * FACTORIAL,
        uu * uu * (5.0 * FACTORIAL),
    )


# A point's own share in its potential is Σ c(a − b) M(y − a) M(y − b). Along each axis the sums of
# M M over nodes some lag apart hardly depend on y: they are cubics, within 1e-7, of
# s = Σ M(y − a)², which lies between two bounds.
OWN_DEGREE = 3


def _squares(u: np.ndarray) -> np.ndarray:
    """Sums of M M over nodes 0 to 5 apart, either way, for points u behind a node."""
    weight = np.array(spline.py_func(u))
    sums = [(weight[: ORDER - lag] * weight[lag:]).sum(axis=0) for lag in range(ORDER)]
    return np.array(sums) * np.array([1.0] + [2.0] * (ORDER - 1))[:, None]


def _own_cubics() -> tuple[np.ndarray, float, float]:
    """Coefficients of the cubics, one row per lag, in x = (s − middle) · steep; middle; steep."""
    sums = _squares(np.linspace(0.0, 0.5, 65))
    middle, half = 0.5 * (sums[0].max() + sums[0].min()), 0.5 * np.ptp(sums[0])
    x = (sums[0] - middle) / half
    return (
        np.polynomial.polynomial.polyfit(x, sums.T, OWN_DEGREE).T,
        float(middle),
        float(1.0 / half),
    )


OWN, MIDDLE, STEEP = _own_cubics()


@cache
def grid_kernels(dimensions: int):
    """``spread(start, stop, at, first, grid)`` and ``gather(start, stop, at, order, grid, …)``.

    Both serve a range of the points as sorted by row. Of the nodes, a range owns those from
    the row of its first point to the row of the next range's first point; it adds to no others,
    but from all points, in their order.
    """
    rows = ORDER if dimensions == GRID_DIMENSIONS else 1
    top = OWN_DEGREE if rows > 1 else 0

    @njit(nogil=True, cache=True, error_model="numpy")
    def spread(start, stop, at, first, grid):
        n = at.shape[1]
        own = 0 if start == 0 else int(at[0, start])
        end = grid.shape[0] if stop == n else int(at[0, stop])
        wx = np.ones(ORDER)
        for i in range(first[max(0, own - rows + 1)], first[min(end, first.shape[0] - 1)]):
            row, column = int(at[0, i]), int(at[1, i])
            if rows > 1:
                wx[0], wx[1], wx[2], wx[3], wx[4], wx[5] = spline(at[0, i] - row)
            z0, z1, z2, z3, z4, z5 = spline(at[1, i] - column)
            for a in range(max(0, own - row), min(rows, end - row)):
                r, w = row + a, wx[a]
                grid[r, column] += w * z0
                grid[r, column + 1] += w * z1
                grid[r, column + 2] += w * z2
                grid[r, column + 3] += w * z3
                grid[r, column + 4] += w * z4
                grid[r, column + 5] += w * z5

    @njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
    def gather(start, stop, at, order, grid, own, value, force):
        wx, sx = np.ones(ORDER), np.zeros(ORDER)
        for i in range(start, stop):
            row, column = int(at[0, i]), int(at[1, i])
            x, rise = 0.0, 0.0
            if rows > 1:
                w0, w1, w2, w3, w4, w5 = spline(at[0, i] - row)
                s0, s1, s2, s3, s4, s5 = spline_slope(at[0, i] - row)
                wx[0], wx[1], wx[2], wx[3], wx[4], wx[5] = w0, w1, w2, w3, w4, w5
                sx[0], sx[1], sx[2], sx[3], sx[4], sx[5] = s0, s1, s2, s3, s4, s5
                x = w0 * w0 + w1 * w1 + w2 * w2 + w3 * w3 + w4 * w4 + w5 * w5
                x = (x - MIDDLE) * STEEP
                rise = (w0 * s0 + w1 * s1 + w2 * s2 + w3 * s3 + w4 * s4 + w5 * s5) * STEEP
            w0, w1, w2, w3, w4, w5 = spline(at[1, i] - column)
            s0, s1, s2, s3, s4, s5 = spline_slope(at[1, i] - column)
            total, fx, fz = 0.0, 0.0, 0.0
            for a in range(rows):
                r = row + a
                p0, p1, p2 = grid[r, column], grid[r, column + 1], grid[r, column + 2]
                p3, p4, p5 = grid[r, column + 3], grid[r, column + 4], grid[r, column + 5]
                level = (w0 * p0 + w1 * p1) + (w2 * p2 + w3 * p3) + (w4 * p4 + w5 * p5)
                slope = (s0 * p0 + s1 * p1) + (s2 * p2 + s3 * p3) + (s4 * p4 + s5 * p5)
                total += wx[a] * level
                fx += sx[a] * level
                fz += wx[a] * slope
            z = w0 * w0 + w1 * w1 + w2 * w2 + w3 * w3 + w4 * w4 + w5 * w5
            z = (z - MIDDLE) * STEEP
            climb = (w0 * s0 + w1 * s1 + w2 * s2 + w3 * s3 + w4 * s4 + w5 * s5) * STEEP
            share, by_x, by_z = 0.0, 0.0, 0.0
            for a in range(top, -1, -1):
                level = own[a, 0] + z * (own[a, 1] + z * (own[a, 2] + z * own[a, 3]))
                slope = own[a, 1] + z * (2.0 * own[a, 2] + z * 3.0 * own[a, 3])
                by_x = by_x * x + share
                share = share * x + level
                by_z = by_z * x + slope
            j = order[i]
            value[j] = total - share
            force[0, j] = fx - by_x * rise
            force[1, j] = fz - by_z * climb

    return spread, gather


# openTSNE's defaults: three nodes in every interval, intervals of length 1, at least 50.
NODES_PER_INTERVAL, INTERVALS, MIN_INTERVALS = 3, 1.0, 50
# Length of an interval of 1, in kernel lengths: nodes are a quarter apart at the defaults, and a
# sixth where clusters are tight.
UNIT, TIGHT_UNIT = 0.75, 0.5
# Layouts of fewer kernel lengths than this are, or were a few steps ago, exaggerated: fits to blobs
# span 34 at most then, and 140 at the end.
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
    """Where the nodes are."""

    low: np.ndarray
    spacing: np.ndarray
    nodes: tuple[int, int]
    length: tuple[int, int]  # of the transforms; 1 for a missing axis
    single: bool  # precision of the transforms

    @property
    def size(self) -> int:
        return self.length[0] * self.length[1]

    @property
    def period(self) -> tuple:
        """What the transform of a kernel depends on."""
        return tuple(self.spacing), self.length, self.single


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
    own: np.ndarray  # a point's share in its own potential, by powers of x and z (`OWN`)
    rest: float  # what was subtracted from W


def kernel_transform(
    period: tuple, space: Space, omega_norm: float, dof: float, n_threads: int
) -> Kernel:
    """Transform of the spline coefficients c on one period of the grid."""
    spacing, length, single = period
    x, z = (np.arange(n // 2 + 1) * step for n, step in zip(length, spacing, strict=True))
    d = np.hypot(x[:, None], z)
    c = np.zeros_like(d)
    for rise in (z, -z):  # w − 1 to full precision
        F = space.forward(d, rise, omega_norm)[0]
        c += np.expm1(-0.5 * (dof + 1.0) * np.log1p(F**2 / dof))
    rest = PEAK
    if single:
        c += PEAK
        rest = 0.0
    axes = [k for k in range(GRID_DIMENSIONS) if length[k] > 1]
    # the discrete Fourier transform of an even sequence, from one half of it
    c = scipy.fft.dctn(c, type=1, axes=axes, workers=n_threads)
    for axis in axes:
        shape = [1] * GRID_DIMENSIONS
        shape[axis] = -1
        c /= _spline_spectrum(length[axis]).reshape(shape) ** 2
    near = scipy.fft.idctn(c, type=1, axes=axes, workers=n_threads)[:ORDER, :ORDER]
    own = (OWN.T @ near if len(axes) > 1 else near) @ OWN
    both = np.concatenate([c, c[-2:0:-1]])
    return Kernel(both.astype(np.float32) if single else both, own, rest)


def _spline_spectrum(length: int) -> np.ndarray:
    """Transform of M at the nodes."""
    middle = np.arange(ORDER) - (ORDER // 2 - 1)
    phase = 2.0 * np.pi / length * np.arange(length // 2 + 1)
    return np.cos(phase[:, None] * middle) @ np.array(spline.py_func(0.0))


def grid_repulsion(
    point: np.ndarray,
    plan: GridPlan,
    *,
    omega_norm: float,
    dof: float,
    space: Space = RANDERS,
    transform: Callable[..., Kernel] = kernel_transform,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """The sums of `finsler_ext.tsne.exact.exact_repulsion`, in a space with an even kernel.

    ``point`` is in double precision, of shape (1, n) or (2, n), ``plan`` made by `plan_grid` with
    the same drift and dof; ``transform`` may be `kernel_transform` with a cache.
    """
    m, n = point.shape
    kernel = transform(plan.period, space, omega_norm, dof, n_threads)
    at, order, first = sort_by_row(point, plan.low, plan.spacing, plan.nodes[0])
    spread, gather = grid_kernels(m)
    dtype = np.float32 if plan.single else np.float64
    grid = np.zeros(plan.nodes, dtype=dtype)
    value, force = np.empty(n), np.empty((GRID_DIMENSIONS, n))
    run_rows(spread, n, n_threads if m > 1 else 1, at, first, grid)
    grid = _convolve(grid, plan, kernel.transform, n_threads)
    run_rows(gather, n, n_threads, at, order, grid, kernel.own, value, force)
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
