"""Heights that compare across islands.

Parts of a graph without edges between them, or with next to none, are held apart by repulsion
alone, and that is flat at their distance: the loss does not say which part lies higher. Inside
the parts the heights follow a law, h ≈ slope · level + constant, where the level is the log local
scale or the potential of directed distances. `settle_islands` continues that law across the gaps.
With L the springs of the layout, K their degrees and a small ε, the operator

    S = (L + εK)⁻¹ εK

keeps what varies from part to part and takes away what varies inside them: in terms of the
normalised Laplacian, a mode with eigenvalue λ keeps the share ε/(λ + ε). The slope is that of
h − S h by level − S level, and the heights become h − S h + slope · S level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit

from finsler_ext._threads import one_blas_thread, row_blocks, run_rows
from finsler_ext.schema import TEXT, number, saved, whole

# ε, the smallest that settles linked blobs: a larger one also moves the inside of parts.
ANCHOR = 1e-3
TOLERANCE, MAX_ITERATIONS = 1e-3, 3000
# Edges whose forces are computed at a time.
EDGES = 2**18
# A law needs this many points, and a slope this many times its standard error.
FEWEST_POINTS = 20
SURE = 2.0
# Variance of levels within the parts below which they are the same but for rounding.
FLAT = 1e-12
# Islands of a free layout move only if the loss rises by less than this share of it.
LOSS_RISE = 1e-3
# Coincident points would get an infinite spring; this share of the median length will do.
SHORTEST_SHARE = 1e-3


@saved(n_parts=whole("[0, inf)"), slope=number(nan=True), reason=TEXT)
class Islands(NamedTuple):
    """How heights compare between the parts of a graph.

    n_parts : connected parts of the graph
    slope : height per unit of log local scale (or of the distances' potential) inside the parts
    reason : why heights were left as they are between parts; empty if they were settled
    """

    n_parts: int
    slope: float
    reason: str = ""

    @property
    def settled(self) -> bool:
        return not self.reason

    def __str__(self) -> str:
        parts = "1 part" if self.n_parts == 1 else f"{self.n_parts} parts"
        if self.settled:
            return f"{parts}; heights compare across gaps by the slope within, {self.slope:.3g}"
        return f"{parts}; heights do not compare across gaps: {self.reason}"


NO_DRIFT = Islands(0, float("nan"), "without a drift there is no height")


class Springs(NamedTuple):
    """The attraction of a layout, linearised in the height.

    springs : sparse array of p_ij A(d_ij)/d_ij; the spring constants are this and its transpose
    degree : array, the sums of their rows
    flow : array, Σ_j A(d_ij) (p_ij − p_ji)
    """

    springs: scipy.sparse.csr_array
    degree: np.ndarray
    flow: np.ndarray


def springs_between(position: np.ndarray, graph, pull: Callable) -> Springs:
    """Linearise the attraction of the edges of ``graph``, affinities p_ij, at ``position``.

    ``pull`` is A(d), the derivative of the loss of an edge by its length.
    """
    graph = scipy.sparse.csr_array(graph)
    length = edge_lengths(position, graph)
    shortest = SHORTEST_SHARE * max(np.median(length), 1e-12) if length.size else 1.0
    np.maximum(length, shortest, out=length)
    force = np.empty(graph.nnz)
    for some in row_blocks(graph.nnz, EDGES):
        force[some] = graph.data[some] * pull(length[some])

    springs = scipy.sparse.csr_array((force, graph.indices, graph.indptr), shape=graph.shape)
    out, into = (np.asarray(springs.sum(axis=axis)).ravel() for axis in (1, 0))
    flow = out - into
    springs.data /= length
    out, into = (np.asarray(springs.sum(axis=axis)).ravel() for axis in (1, 0))
    return Springs(springs, out + into, flow)


def edge_lengths(position: np.ndarray, graph) -> np.ndarray:
    """Distances between the ends of the edges, in the order of the graph."""
    length = np.empty(graph.nnz)
    _edge_lengths(graph.indptr, graph.indices, position, length)
    return length


@njit(nogil=True, cache=True)
def _edge_lengths(indptr, indices, position, length):
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            square = 0.0
            for c in range(position.shape[1]):
                square += (np.float64(position[indices[e], c]) - position[i, c]) ** 2
            length[e] = np.sqrt(square)


@njit(nogil=True, cache=True)
def _parts(indptr, indices):
    """The number of connected parts, and that of every node, in a fraction of scipy's memory."""
    part = np.arange(len(indptr) - 1)
    for i in range(len(part)):
        for j in indices[indptr[i] : indptr[i + 1]]:
            a, b = i, j
            while part[a] != a:
                part[a] = part[part[a]]
                a = part[a]
            while part[b] != b:
                part[b] = part[part[b]]
                b = part[b]
            part[max(a, b)] = min(a, b)
    n_parts = 0
    for i in range(len(part)):  # the first of a part comes before the others
        if part[i] == i:
            part[i] = n_parts
            n_parts += 1
        else:
            part[i] = part[part[i]]
    return n_parts, part


@one_blas_thread()
def settle_islands(
    position: np.ndarray,
    height: np.ndarray,
    graph,
    pull: Callable,
    level,
    *,
    whole: bool = False,
    n_threads: int = 1,
) -> tuple[np.ndarray, Islands]:
    """Heights with the law of the inside continued across gaps, and what was done.

    ``position`` is where the springs are taken: the map, or all columns. ``level`` is what the
    height follows, e.g. the log local scale. With ``whole``, a connected part moves as a whole and
    nothing inside changes.
    """
    springs = springs_between(position, graph, pull)
    height = np.asarray(height, dtype=np.float64)
    n_parts, part = _parts(springs.springs.indptr, springs.springs.indices)
    level, reason = _known(level, springs.degree)
    if reason:
        return height, Islands(n_parts, float("nan"), reason)
    values = np.column_stack([level, height])
    if whole:
        between = _part_means(part, springs.degree, values)
    else:
        between = _between_parts(springs, values, n_threads)
    level_between, height_between = between.T
    inside = height - height_between
    islands = _law(level - level_between, inside, springs.degree, n_parts)
    if not islands.settled:
        return height, islands
    settled = inside + islands.slope * level_between
    return settled - settled.mean(), islands


def _part_means(part, degree, values) -> np.ndarray:
    mass = np.maximum(np.bincount(part, degree), np.finfo(float).tiny)
    means = [np.bincount(part, degree * column) / mass for column in values.T]
    return np.column_stack(means)[part]


def _known(level, degree) -> tuple[np.ndarray, str]:
    """Levels without gaps, or why there are none."""
    if level is None:
        return np.empty(0), "there is no scale that the height could follow"
    level = np.asarray(level, dtype=np.float64)
    known = np.isfinite(level) & (degree > 0)
    if np.count_nonzero(known) < FEWEST_POINTS:
        return level, f"fewer than {FEWEST_POINTS} points have a level"
    return np.where(known, level, np.average(level[known], weights=degree[known])), ""


def _between_parts(springs: Springs, values: np.ndarray, n_threads: int) -> np.ndarray:
    """S of the module's docstring, applied to two columns of values whose means are kept.

    Conjugate gradients, for both side by side.
    """
    degree = springs.degree[:, None]
    mean = np.average(values, weights=springs.degree, axis=0)
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    out, into = springs.springs, springs.springs.tocsc()
    pattern = out.indptr, out.indices, out.data, into.indptr, into.indices, into.data
    smooth = np.zeros(values.shape)
    rest = ANCHOR * degree * (values - mean)
    enough = TOLERANCE**2 * _dots(rest, rest)
    step = np.zeros(values.shape)
    before = np.full(values.shape[1], np.inf)
    drawn = np.empty(values.shape)
    for _ in range(MAX_ITERATIONS):
        if (_dots(rest, rest) <= enough).all():
            break
        now = _dots(rest, inverse * rest)
        step = inverse * rest + now / before * step
        run_rows(_draw, len(values), n_threads, *pattern, step, drawn)
        change = (1.0 + ANCHOR) * degree * step - drawn
        length = now / np.maximum(_dots(step, change), np.finfo(float).tiny)
        smooth += length * step
        rest -= length * change
        before = np.maximum(now, np.finfo(float).tiny)
    return mean + smooth


def _dots(a, b) -> np.ndarray:
    return np.einsum("nc,nc->c", a, b)


@njit(nogil=True, cache=True)
def _draw(start, stop, a_indptr, a_indices, a, b_indptr, b_indices, b, x, drawn):
    """Sums of a row's springs, out and in, times two columns x at their other ends."""
    for i in range(start, stop):
        left, right = 0.0, 0.0
        for e in range(a_indptr[i], a_indptr[i + 1]):
            left += a[e] * x[a_indices[e], 0]
            right += a[e] * x[a_indices[e], 1]
        for e in range(b_indptr[i], b_indptr[i + 1]):
            left += b[e] * x[b_indices[e], 0]
            right += b[e] * x[b_indices[e], 1]
        drawn[i, 0], drawn[i, 1] = left, right


def _law(x, y, degree, n_parts: int) -> Islands:
    """Slope of heights y by levels x, both without what varies between parts."""
    spread, rise = float(degree @ (x * x)), float(degree @ (y * y))
    if spread <= FLAT * degree.sum() or rise == 0.0:
        return Islands(n_parts, float("nan"), "heights or scales are flat within the parts")
    slope = float(degree @ (x * y)) / spread
    correlation = min(abs(slope) * float(np.sqrt(spread / rise)), 1.0)
    freedom = max(int(np.count_nonzero(degree)) - n_parts - 1, 1)
    sure = correlation * np.sqrt(freedom) > SURE * np.sqrt(1.0 - correlation**2)
    reason = "" if slope > 0 and sure else "within the parts the height does not follow the scale"
    return Islands(n_parts, slope, reason)
