"""The two forces of UMAP as functions of a distance, exact and as a fast table.

With q(F) = 1/(1 + a F^{2b}), an edge pulls with d(−ln q)/dF and a random partner pushes
with −d(−ln(1 − q))/dF. Both contain a power that would take half the time of a layout, so
the layout reads them from a table that is addressed by the leading bits of a float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit

from finsler_ext._threads import RowPool
from finsler_ext.geometry import RANDERS, Space

# Keeps the repulsion finite where two points meet; umap-learn uses the same figure.
REPULSION_SOFTENING = 1e-3
# umap-learn limits every component of a single force to 4; here the force's factor is limited.
FORCE_LIMIT = 4.0

# F from 2^-16 to 2^16, 2^6 cells per octave, linear in each cell (relative error below 1e-4).
_LOWEST_OCTAVE, _HIGHEST_OCTAVE, _CELL_BITS = -16, 16, 6
_MANTISSA_BITS, _EXPONENT_BIAS = 23, 127
_SHIFT = _MANTISSA_BITS - _CELL_BITS
_FIRST_CELL = (_LOWEST_OCTAVE + _EXPONENT_BIAS) << _CELL_BITS
_N_CELLS = (_HIGHEST_OCTAVE - _LOWEST_OCTAVE) << _CELL_BITS
_FRACTION_MASK = (1 << _SHIFT) - 1
_FRACTION_UNIT = np.float32(1.0 / (1 << _SHIFT))


class LossShape(NamedTuple):
    """What the loss of UMAP is made of.

    a, b : of q(F) = 1/(1 + a F^{2b})
    repulsion_strength, negative_sample_rate : as in umap-learn
    space : how F is measured
    """

    a: float
    b: float
    repulsion_strength: float = 1.0
    negative_sample_rate: float = 5
    space: Space = RANDERS


def attraction(distance, a: float, b: float) -> np.ndarray:
    """d/dF of −ln q(F): 2ab F^{2b−1} q."""
    distance = np.asarray(distance, dtype=float)
    with np.errstate(divide="ignore"):
        slope = 2.0 * a * b * distance ** (2.0 * b - 1.0)
    return slope / (1.0 + a * distance ** (2.0 * b))


def repulsion(distance, a: float, b: float) -> np.ndarray:
    """−d/dF of −ln(1 − q(F)), softened near 0: 2b q F/(ε + F²)."""
    distance = np.asarray(distance, dtype=float)
    softened = distance / (REPULSION_SOFTENING + distance**2)
    return 2.0 * b * softened / (1.0 + a * distance ** (2.0 * b))


def force_table(a: float, b: float, repulsion_strength: float = 1.0) -> np.ndarray:
    """Value and increment per cell of the attraction (columns 0, 1) and repulsion (2, 3)."""
    nodes = _nodes()
    table = np.empty((_N_CELLS, 4), dtype=np.float32)
    for column, force in (
        (0, attraction(nodes, a, b)),
        (2, repulsion_strength * repulsion(nodes, a, b)),
    ):
        force = np.minimum(force, FORCE_LIMIT)
        table[:, column] = force[:-1]
        table[:, column + 1] = np.diff(force)
    return table


def _nodes() -> np.ndarray:
    octave = 2.0 ** np.arange(_LOWEST_OCTAVE, _HIGHEST_OCTAVE)
    within = 1.0 + np.arange(1 << _CELL_BITS) / (1 << _CELL_BITS)
    return np.append((octave[:, None] * within).ravel(), 2.0**_HIGHEST_OCTAVE)


def potential_table(a: float, b: float, repulsion_strength: float = 1.0) -> np.ndarray:
    """Width of each cell (column 1), and the potentials of the forces at its lower end.

    Column 0 is the attraction's, which rises from 0 at F = 0; column 2 the repulsion's, which
    falls to 0 at the upper end of the table. Between nodes forces are linear, so the potentials are
    the integrals of what `look_up` returns.
    """
    forces = force_table(a, b, repulsion_strength).astype(np.float64)
    nodes = _nodes()
    width = np.diff(nodes)
    table = np.empty((_N_CELLS, 3))
    table[:, 1] = width
    gained = width * (forces[:, 0] + 0.5 * forces[:, 1])
    below = attraction_cost(nodes[0], a, b)
    table[:, 0] = below + np.concatenate([[0.0], np.cumsum(gained[:-1])])
    lost = width * (forces[:, 2] + 0.5 * forces[:, 3])
    table[:, 2] = np.cumsum(lost[::-1])[::-1]
    return table


def attraction_cost(distance: float, a: float, b: float) -> float:
    """−ln q(F)."""
    return float(np.log1p(a * distance ** (2.0 * b)))


@njit(inline="always", cache=True)
def potential_at(potentials, forces, column, distance):
    """The potential in ``column`` (0: attraction, 2: repulsion) at a positive distance."""
    bits = np.float32(distance).view(np.int32)
    cell = (bits >> _SHIFT) - _FIRST_CELL
    fraction = np.float64(bits & _FRACTION_MASK) * _FRACTION_UNIT
    if cell < 0:
        cell = 0
        fraction = 0.0
    elif cell >= _N_CELLS:
        cell = _N_CELLS - 1
        fraction = 1.0
    inside = fraction * forces[cell, column] + 0.5 * fraction * fraction * forces[cell, column + 1]
    inside *= potentials[cell, 1]
    return potentials[cell, column] + (inside if column == 0 else -inside)


@njit(inline="always", cache=True)
def look_up(table, column, distance):
    """The force in ``column`` of a force table at a positive float32 distance."""
    bits = np.float32(distance).view(np.int32)
    cell = (bits >> _SHIFT) - _FIRST_CELL
    fraction = np.float32(bits & _FRACTION_MASK) * _FRACTION_UNIT
    if cell < 0:
        cell = 0
        fraction = np.float32(0.0)
    elif cell >= _N_CELLS:
        cell = _N_CELLS - 1
        fraction = np.float32(1.0)
    return table[cell, column] + fraction * table[cell, column + 1]


# Stochastic gradient descent of the Finsler UMAP loss.
#
# With memberships p_ij on the directed edges i → j, F the distance of the space and
# q = 1/(1 + a F^{2b}), the loss is
#
#     L(Y) = − Σ p_ij ln q_ij − Σ (1 − p_ij) ln(1 − q_ij).
#
# Edges are sampled in proportion to p; the second sum is estimated by a few random
# partners ("negatives") for every sampled out-edge.
#
# * **Owner computes.** In a step each vertex reads a snapshot of all positions and writes
#   only its own new position, looking at its out-edges and its in-edges. Both ends of an
#   edge see the same snapshot and take the same sampling decision, so attraction conserves
#   momentum, and the result depends neither on the number of threads nor on the order of
#   the rows (a sequential sweep over sorted rows invents a height along the sorting).
# * **Two-sided negatives.** A random partner k pushes vertex i by the mean of the forces
#   of i → k and of k → i. Taking i → k alone leaves out half of the gradient and
#   pushes everything along −ω, the more the denser the place.
# * **Steps smaller than an epoch.** The edges are dealt into N_STEPS groups, one per step.
#   Moving by all forces of an epoch at once overshoots and lets the layout get stuck.
# * **No state.** Whether an edge is sampled in an epoch, and which partners are drawn,
#   follow from integer arithmetic on (seed, epoch, vertex); nothing is stored per edge.

# Steps per epoch. On the digits, k-means AMI of 2-D layouts: 0.88 with one, 0.90 with four,
# 0.91 with sixteen steps, which take 1, 1.4 and 3 times as long.
N_STEPS = 4
# Edges in and out of a vertex that an epoch samples, beyond which its steps become shorter. A
# membership graph of 15 neighbours has 8 on average.
MOST_SAMPLED = 32.0

_ALWAYS = np.uint64(0xFFFFFFFF)
_HALF = np.float32(0.5)
# 2⁶⁴ divided by the golden ratio, and the second prime of xxHash: multiples of them are spread.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_DEAL = np.uint64(0xC2B2AE3D27D4EB4F)


@njit(inline="always", cache=True)
def mix(state):
    """A bijection of 64 bits that leaves no visible pattern (splitmix64's finaliser)."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@njit(inline="always", cache=True)
def _is_sampled(source, target, rate, epoch):
    """True in a share rate/2^32 of the epochs, evenly spaced, from an edge's own phase."""
    phase = np.uint64(source) * _GOLDEN
    phase = (phase ^ np.uint64(target)) * np.uint64(0xD6E8FEB86659FD93)
    phase = phase ^ (phase >> np.uint64(32))
    return ((phase + np.uint64(epoch) * np.uint64(rate)) & _ALWAYS) < np.uint64(rate)


@cache
def step_kernel(forward, n_components: int):
    """The kernel of one step for one space and dimension, so that its inner loops unroll.

    ``kernel(start, stop, position, moved, *edge_sampler, table, step, epoch, step_share,
    map_rate, height_rate, omega, negatives, both_ways, seed)`` writes ``moved[start:stop]``;
    ``forward`` is that of a `finsler_ext.geometry.Space`. Negatives need not be taken both ways
    where there is no drift: the two are the same then.
    """
    last = n_components - 1

    @njit(nogil=True, cache=True, fastmath=True)
    def take_step(
        start,
        stop,
        position,
        moved,
        out_indptr,
        out_target,
        out_rate,
        in_indptr,
        in_source,
        in_rate,
        table,
        step,
        epoch,
        step_share,
        map_rate,
        height_rate,
        omega,
        negatives,
        both_ways,
        seed,
    ):
        n_vertices = np.uint64(position.shape[0])
        force = np.zeros(n_components, dtype=np.float32)
        offset = np.zeros(n_components, dtype=np.float32)
        longest = 0
        for row in range(start * N_STEPS + step, stop * N_STEPS, N_STEPS):
            longest = max(longest, out_indptr[row + 1] - out_indptr[row])
            longest = max(longest, in_indptr[row + 1] - in_indptr[row])
        sampled = np.empty(longest + 1, dtype=np.int32)
        stream = mix(seed + np.uint64(epoch * N_STEPS + step) * _GOLDEN)

        for i in range(start, stop):
            row = i * N_STEPS + step
            for c in range(n_components):
                force[c] = 0.0

            n_out = 0
            for e in range(out_indptr[row], out_indptr[row + 1]):
                sampled[n_out] = out_target[e]
                n_out += _is_sampled(i, out_target[e], out_rate[e], epoch)
            for s in range(n_out):
                j = sampled[s]
                square = np.float32(0.0)
                for c in range(n_components):
                    offset[c] = position[i, c] - position[j, c]
                    square += offset[c] * offset[c]
                if square > 0.0:
                    length = np.sqrt(square)
                    distance, by_length, by_rise = forward(length, -offset[last], omega)
                    pull = look_up(table, 0, distance)
                    along = pull * by_length / length
                    for c in range(n_components):
                        force[c] -= along * offset[c]
                    force[last] += pull * by_rise * omega

            n_in = 0
            for e in range(in_indptr[row], in_indptr[row + 1]):
                sampled[n_in] = in_source[e]
                n_in += _is_sampled(in_source[e], i, in_rate[e], epoch)
            for s in range(n_in):
                j = sampled[s]
                square = np.float32(0.0)
                for c in range(n_components):
                    offset[c] = position[i, c] - position[j, c]
                    square += offset[c] * offset[c]
                if square > 0.0:
                    length = np.sqrt(square)
                    distance, by_length, by_rise = forward(length, offset[last], omega)
                    pull = look_up(table, 0, distance)
                    along = pull * by_length / length
                    for c in range(n_components):
                        force[c] -= along * offset[c]
                    force[last] -= pull * by_rise * omega

            if n_out > 0:
                state = mix(stream ^ np.uint64(i))
                chance = np.float64(state >> np.uint64(40)) / 16777216.0
                for _ in range(int(n_out * negatives + chance)):
                    state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                    k = np.int64(((state >> np.uint64(32)) * n_vertices) >> np.uint64(32))
                    square = np.float32(0.0)
                    for c in range(n_components):
                        offset[c] = position[i, c] - position[k, c]
                        square += offset[c] * offset[c]
                    if square > 0.0:
                        length = np.sqrt(square)
                        distance, along_out, up_out = forward(length, -offset[last], omega)
                        push_out = look_up(table, 2, distance)
                        push_in, along_in = push_out, along_out
                        lift = -push_out * up_out
                        if both_ways:
                            distance, along_in, up_in = forward(length, offset[last], omega)
                            push_in = look_up(table, 2, distance)
                            lift = (push_in * up_in - push_out * up_out) * _HALF
                        along = (push_out * along_out + push_in * along_in) * _HALF / length
                        for c in range(n_components):
                            force[c] += along * offset[c]
                        force[last] += lift * omega

            for c in range(last):
                moved[i, c] = position[i, c] + step_share[i] * map_rate * force[c]
            moved[i, last] = position[i, last] + step_share[i] * height_rate * force[last]

    return take_step


class EdgeSampler(NamedTuple):
    """Out- and in-edges by (owner, step), with sampling rates in units of 2^-32 per epoch.

    Row ``i * N_STEPS + step`` of each CSR structure holds the edges that vertex i looks at
    in that step; an edge is in the same step for both of its ends.
    """

    out_indptr: np.ndarray
    out_target: np.ndarray
    out_rate: np.ndarray
    in_indptr: np.ndarray
    in_source: np.ndarray
    in_rate: np.ndarray


def edge_sampler(graph, n_epochs: int) -> EdgeSampler:
    """Deal the edges of a membership graph into steps; those due less than once are left out."""
    edges = scipy.sparse.coo_array(graph)
    weight = edges.data
    strongest = weight.max(initial=0.0)
    due = weight > strongest / max(n_epochs, 1) if n_epochs > 1 else weight > 0
    source, target = (c[due].astype(np.int64) for c in edges.coords)
    share = weight[due].astype(np.float64) / (strongest or 1.0)
    rate = (share * float(_ALWAYS)).astype(np.uint32)
    mixed = (source.astype(np.uint64) * _GOLDEN ^ target.astype(np.uint64)) * _DEAL
    step = (mixed >> np.uint64(40)).astype(np.int64) % N_STEPS
    n = graph.shape[0]
    return EdgeSampler(
        *_by_owner(source, target, step, rate, n), *_by_owner(target, source, step, rate, n)
    )


def step_share(graph) -> np.ndarray:
    """What the steps of each vertex are multiplied by, so that they do not depend on its degree.

    A vertex moves by all edges sampled in a step at once: those of a hub, and those of a digraph
    with a hundred neighbours each, add up.
    """
    strongest = graph.data.max(initial=0.0) or 1.0
    out, into = (np.asarray(graph.sum(axis=axis)).ravel() for axis in (1, 0))
    sampled = np.maximum((out + into) / strongest, 1e-9)
    return np.minimum(1.0, MOST_SAMPLED / sampled).astype(np.float32)


def _by_owner(owner, other, step, rate, n):
    by_step = scipy.sparse.coo_array(
        (rate, (owner * N_STEPS + step, other)), shape=(n * N_STEPS, n)
    ).tocsr()
    return by_step.indptr.astype(np.int64), by_step.indices.astype(np.int32), by_step.data


# Epochs of the UMAP kernel: how long the steps are, and what is shown after each epoch.


class UmapDescent:
    """Stochastic descent of the Finsler UMAP loss of one graph, epoch by epoch.

    An epoch's random numbers follow from the seed and the number of the epoch alone, so a descent
    may stop after any epoch and go on from there.

    Parameters
    ----------
    graph : sparse array of shape (n, n)
        Directed memberships, rows being sources.
    shape : LossShape
    n_epochs, learning_rate
        As in umap-learn; the learning rate falls linearly to 0.
    seed : int
        Everything random follows from it.
    n_threads : int
        Changes the time taken, never the result.
    """

    def __init__(
        self,
        graph,
        shape: LossShape,
        *,
        n_epochs: int,
        seed: int,
        learning_rate: float = 1.0,
        n_threads: int = 1,
    ):
        self.graph, self.shape, self.n_epochs = graph, shape, n_epochs
        self.learning_rate, self.n_threads = learning_rate, n_threads
        self._edges = edge_sampler(graph, n_epochs)
        self._table = force_table(shape.a, shape.b, shape.repulsion_strength)
        self._negatives = float(shape.negative_sample_rate)
        self._seed = np.uint64(seed)
        self._step_share = step_share(graph)

    def run(
        self,
        position: np.ndarray,
        epochs: Iterable[int],
        *,
        omega_norm: float,
        rates: tuple[float, float] = (1.0, 1.0),
        rate_until: int | None = None,
        fixed: np.ndarray | None = None,
        after_epoch: Callable[[int, np.ndarray], object] | None = None,
    ) -> np.ndarray:
        """Positions after the given epochs, counted from 0; the start is not modified.

        Parameters
        ----------
        position : array of shape (n, m)
        epochs : iterable of int
        omega_norm : float
        rates : pair of floats
            What multiplies the learning rate of the map and that of the height.
        rate_until : int, optional
            The epoch at which the learning rate has fallen to 0; the last one by default.
        fixed : boolean array of shape (n, m), optional
            Entries that do not move.
        after_epoch : callable, optional
            Called as ``after_epoch(epoch, position)``, epochs counted from 1.
        """
        position = np.array(position, dtype=np.float32, order="C")
        moved = np.empty_like(position)
        until = self.n_epochs if rate_until is None else rate_until
        kernel = step_kernel(self.shape.space.forward, position.shape[1])
        with RowPool(position.shape[0], self.n_threads) as pool:
            for epoch in epochs:
                rate = self.learning_rate * (1.0 - epoch / until)
                for step in range(N_STEPS):
                    pool.run(
                        kernel,
                        position,
                        moved,
                        *self._edges,
                        self._table,
                        step,
                        epoch + 1,
                        self._step_share,
                        np.float32(rate * rates[0]),
                        np.float32(rate * rates[1]),
                        np.float32(omega_norm),
                        self._negatives,
                        self._both_ways(omega_norm),
                        self._seed,
                    )
                    if fixed is not None:
                        np.copyto(moved, position, where=fixed)
                    position, moved = moved, position
                if after_epoch is not None:
                    after_epoch(epoch + 1, position)
        return position

    def _both_ways(self, omega_norm: float) -> bool:
        """Whether a negative pushes by i → k and by k → i; without a drift the two are the same."""
        return omega_norm > 0


def centred(position: np.ndarray, pins: np.ndarray | None = None) -> np.ndarray:
    """The loss does not see translations, so a drift of the whole must not leak out.

    Columns with a pin stay as they are.
    """
    mean = position.mean(axis=0, dtype=np.float64)
    if pins is not None:
        mean[np.isfinite(pins).any(axis=0)] = 0.0
    return position - mean.astype(np.float32)
