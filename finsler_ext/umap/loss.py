"""The loss of a Finsler UMAP layout: what the sampling kernel descends, as a number.

An edge i → j is sampled in proportion to its membership p_ij, and each time its source draws r
negatives, which push the source only. The potential of these moves is

    L(Y) = Σ p_ij A(F_ij) + (r/2n) Σ_{i≠k} ½ (K_i + K_k) R(F_ik),   K_i = Σ_j p_ij,

with A = −ln q and R = −ln(1 − q), both softened and limited as in the kernel, and read from a
table. Where the K_i are equal, as in a membership graph, the expected move is −∇L up to a factor;
a negative moves one end only, hence r/2. Edges are summed exactly. The second sum goes over all
pairs of few points and over a random sample of many, with its standard error beside it.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit

from finsler_ext._threads import run_rows
from finsler_ext.schema import number, saved
from finsler_ext.umap.kernels import (
    _GOLDEN,
    FORCE_LIMIT,
    HIGHEST_OCTAVE,
    LOWEST_OCTAVE,
    LossShape,
    attraction,
    mix,
    repulsion,
)

# Partners that every point draws: all others if they are as few, and fewer from MANY_PAIRS on.
MOST_PARTNERS, FEWEST_PARTNERS = 200, 16
MANY_PAIRS = 300_000
# Terms summed together, whatever the number of threads, so that rounding does not depend on it.
BLOCK = 256


@saved(
    value=number(nan=True),
    attraction=number(nan=True),
    repulsion=number(nan=True),
    error=number("[0, inf)", nan=True),
)
class UmapLoss(NamedTuple):
    """The loss of a layout.

    value : attraction + repulsion
    attraction : Σ p_ij A(F_ij), exact
    repulsion : the second sum
    error : standard error of the repulsion; 0 where all pairs were summed
    """

    value: float
    attraction: float
    repulsion: float
    error: float

    def __float__(self) -> float:
        return self.value


def umap_loss(
    position, graph, shape: LossShape, *, omega_norm: float, seed: int = 0, n_threads: int = 1
) -> UmapLoss:
    """The loss above, at positions whose last column is the axis of the drift.

    Parameters
    ----------
    position : array of shape (n, m)
    graph : sparse array of shape (n, n)
        Memberships p_ij, rows being sources.
    seed : int
        Of the partners drawn where there are too many pairs.
    """
    at = AxisLoss(position, graph, shape, omega_norm=omega_norm, seed=seed, n_threads=n_threads)
    return at.loss(np.eye(at.position.shape[1])[-1])


class AxisLoss:
    """The loss as a function of the direction of the drift, on the same pairs for all directions.

    Called with a unit vector, it returns the loss and its derivative by the vector.
    """

    def __init__(
        self,
        position,
        graph,
        shape: LossShape,
        *,
        omega_norm,
        seed=0,
        n_threads=1,
        most_edges=None,
        partners=MOST_PARTNERS,
    ):
        self.position = np.ascontiguousarray(position, dtype=np.float32)
        self.omega_norm, self.n_threads = float(omega_norm), n_threads
        self.kernel = sum_kernel(shape.space.forward)
        self.forces = force_table(shape.a, shape.b, shape.repulsion_strength)
        self.potentials = potential_table(shape.a, shape.b, shape.repulsion_strength)
        edges = scipy.sparse.coo_array(graph)
        weight = edges.data.astype(np.float64)
        n = graph.shape[0]
        strength = np.bincount(edges.coords[0], weight, n)
        stride = 1 if most_edges is None else max(1, -(-weight.size // most_edges))
        source, target = (c[::stride].astype(np.int64) for c in edges.coords)
        self.edges = source, target, weight[::stride] * stride
        self.pairs = _pairs(n, seed, partners)
        source, target = self.pairs
        share = n * (n - 1) / max(source.size, 1)
        self.pair_weight = (
            share * shape.negative_sample_rate / (4.0 * n) * (strength[source] + strength[target])
        )
        self.exact = source.size == n * (n - 1)

    def __call__(self, axis) -> tuple[float, np.ndarray]:
        pull, push = self._sums(axis)
        return pull[0] + push[0], pull[2:] + push[2:]

    def loss(self, axis) -> UmapLoss:
        pull, push = (sums[:2] for sums in self._sums(axis))
        count = max(self.pairs[0].size, 1)
        error = 0.0 if self.exact else float(np.sqrt(max(push[1] - push[0] ** 2 / count, 0.0)))
        return UmapLoss(float(pull[0] + push[0]), float(pull[0]), float(push[0]), error)

    def _sums(self, axis):
        axis = np.asarray(axis, dtype=np.float64)
        source, target, weight = self.edges
        pull = self._blocks(source, target, weight, axis, True)
        return pull, self._blocks(*self.pairs, self.pair_weight, axis, False)

    def _blocks(self, source, target, weight, axis, attract):
        """Sum of w·c, of (w·c)², and the derivative of the first by the axis."""
        n_blocks = -(-source.size // BLOCK)
        sums = np.zeros((n_blocks, 2 + axis.size))
        if n_blocks:
            tables = self.forces, self.potentials
            run_rows(
                self.kernel, n_blocks, self.n_threads, self.position, source, target, weight,
                axis, self.omega_norm, *tables, attract, sums, heavy=True,
            )  # fmt: skip
        return sums.sum(axis=0)


def _pairs(n: int, seed: int, most: int):
    if n - 1 <= most:
        source, target = np.nonzero(~np.eye(n, dtype=bool))
        return source.astype(np.int64), target.astype(np.int64)
    partners = int(np.clip(MANY_PAIRS // n, min(most, FEWEST_PARTNERS), most))
    source = np.repeat(np.arange(n, dtype=np.int64), partners)
    target = np.empty_like(source)
    _draw(source, np.uint64(seed), n, target)
    return source, target


@njit(nogil=True, cache=True)
def _draw(source, seed, n, target):
    """A partner other than the point itself, for every entry of ``source``."""
    for e in range(source.size):
        draw = mix(seed ^ (np.uint64(e + 1) * _GOLDEN)) >> np.uint64(32)
        other = np.int64((draw * np.uint64(n - 1)) >> np.uint64(32))
        target[e] = other + (other >= source[e])


@cache
def sum_kernel(forward):
    """The sums of blocks of pairs for one space; see `AxisLoss._blocks`."""

    @njit(nogil=True, cache=True)
    def sum_blocks(
        start, stop, position, source, target, weight, axis, omega, forces, potentials, attract,
        sums,
    ):  # fmt: skip
        m = position.shape[1]
        step = np.zeros(m)
        column = 0 if attract else 2
        for block in range(start, stop):
            for e in range(block * BLOCK, min((block + 1) * BLOCK, source.size)):
                square, rise = 0.0, 0.0
                for c in range(m):
                    step[c] = np.float64(position[target[e], c]) - position[source[e], c]
                    square += step[c] * step[c]
                    rise += axis[c] * step[c]
                length = np.sqrt(square)
                there, _, up_there = forward(length, rise, omega)
                back, _, up_back = forward(length, -rise, omega)
                w = weight[e]
                if attract:
                    cost = potential_at(potentials, forces, column, there)
                    slope = look_up(forces, column, np.float32(there)) * up_there
                else:  # both directions of a pair, whichever was drawn
                    cost = 0.5 * (
                        potential_at(potentials, forces, column, there)
                        + potential_at(potentials, forces, column, back)
                    )
                    slope = 0.5 * (
                        look_up(forces, column, np.float32(back)) * up_back
                        - look_up(forces, column, np.float32(there)) * up_there
                    )
                sums[block, 0] += w * cost
                sums[block, 1] += (w * cost) ** 2
                for c in range(m):
                    sums[block, 2 + c] += w * slope * omega * step[c]

    return sum_blocks


# Forces and potentials as tables that are addressed by the leading bits of a float32.

# F from 2^-16 to 2^16, 2^6 cells per octave, linear in each cell (relative error below 1e-4).
_CELL_BITS, _MANTISSA_BITS, _EXPONENT_BIAS = 6, 23, 127
_SHIFT = _MANTISSA_BITS - _CELL_BITS
_FIRST_CELL = (LOWEST_OCTAVE + _EXPONENT_BIAS) << _CELL_BITS
_N_CELLS = (HIGHEST_OCTAVE - LOWEST_OCTAVE) << _CELL_BITS
_FRACTION_MASK = (1 << _SHIFT) - 1
_FRACTION_UNIT = np.float32(1.0 / (1 << _SHIFT))


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
    octave = 2.0 ** np.arange(LOWEST_OCTAVE, HIGHEST_OCTAVE)
    within = 1.0 + np.arange(1 << _CELL_BITS) / (1 << _CELL_BITS)
    return np.append((octave[:, None] * within).ravel(), 2.0**HIGHEST_OCTAVE)


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
    below = np.log1p(a * nodes[0] ** (2.0 * b))  # −ln q
    table[:, 0] = below + np.concatenate([[0.0], np.cumsum(gained[:-1])])
    lost = width * (forces[:, 2] + 0.5 * forces[:, 3])
    table[:, 2] = np.cumsum(lost[::-1])[::-1]
    return table


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
