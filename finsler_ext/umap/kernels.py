"""The two forces of UMAP as functions of a distance: compiled steps down the loss, and its sums.

With q(F) = 1/(1 + a F^{2b}), an edge pulls with d(−ln q)/dF and a random partner pushes
with −d(−ln(1 − q))/dF.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit

from finsler_ext.geometry import RANDERS, Space

# Keeps the repulsion finite where two points meet; umap-learn uses the same figure.
REPULSION_SOFTENING = 1e-3
# umap-learn limits every component of a single force to 4; here the force's factor is limited.
FORCE_LIMIT = 4.0

# Beyond these powers of two forces stay as they are there.
LOWEST_OCTAVE, HIGHEST_OCTAVE = -16, 16


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


# The descent. With memberships p_ij on the directed edges i → j the loss is
#
#     L(Y) = − Σ p_ij ln q_ij − Σ (1 − p_ij) ln(1 − q_ij).
#
# Edges are sampled in proportion to p; random partners ("negatives") of every vertex with
# out-edges stand for the second sum.
#
# * **Owner computes.** In a step each vertex reads a snapshot of all positions and writes its own
#   new one, looking at its out-edges and its in-edges. Both ends of an edge take the same sampling
#   decision, so attraction conserves momentum, and neither the number of threads nor the order of
#   the rows matters (a sequential sweep over sorted rows invents a height along the sorting).
# * **Two-sided negatives.** A random partner k pushes vertex i by the mean of the forces of i → k
#   and of k → i. Taking i → k alone leaves out half of the gradient and pushes everything along
#   −ω, the more the denser the place.
# * **Steps smaller than an epoch.** The edges are dealt into N_STEPS groups, one per step: moving
#   by all forces of an epoch at once overshoots and lets the layout get stuck.
# * **No state.** Whether an edge is sampled in an epoch, and which partners are drawn, follow from
#   integer arithmetic on (seed, epoch, vertex).
# * **Vectors.** Forces are computed for BLOCK pairs at a time, always as many, so that no bit
#   depends on how rows are divided. Every vertex draws its own partners: a pool for all cost less,
#   but left a loss 1.5 % higher.
# * **Near in memory.** Large layouts are stored in an order in which neighbours are near each
#   other. Whatever is random, and the order of sums, follows the rows of the graph instead.

# Steps per epoch. On the digits, k-means AMI of 2-D layouts: 0.88 with one, 0.90 with four,
# 0.91 with sixteen steps, which take 1, 1.4 and 3 times as long.
N_STEPS = 4
# Edges in and out of a vertex that an epoch samples, beyond which its steps become shorter. A
# membership graph of 15 neighbours has 8 on average.
MOST_SAMPLED = 32.0
# Pairs whose forces are computed at once, and rows that are moved at once.
BLOCK = 64
# Layouts of more rows are stored along a curve; smaller ones fit the caches in any order.
ROWS_IN_CACHE = 30_000
# Cells of the curve along a column, as a power of two.
CURVE_BITS = 10

_ALWAYS = np.uint64(0xFFFFFFFF)
_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
# 2⁶⁴ divided by the golden ratio, and the second prime of xxHash: multiples of them are spread.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_DEAL = np.uint64(0xC2B2AE3D27D4EB4F)
# Knuth's linear congruential generator of 64 bits; its upper half is used.
_MULTIPLIER, _INCREMENT = np.uint64(6364136223846793005), np.uint64(1442695040888963407)
# Without reciprocal estimates, which vectors would take and single numbers would not.
_FAST = {"nnan", "ninf", "nsz", "contract", "reassoc"}
_NEAREST, _FARTHEST = np.float32(2.0**LOWEST_OCTAVE), np.float32(2.0**HIGHEST_OCTAVE)
_LIMIT, _SOFTENING = np.float32(FORCE_LIMIT), np.float32(REPULSION_SOFTENING)
_SMALLEST, _MIDDLE, _MOST_OCTAVES = np.float32(1e-30), np.float32(1.5), np.float32(60.0)
# Chebyshev fits of log₂ between 1 and 2, about 1.5, to 2e-6, and of 2^x between 0 and 1, to 4e-6.
_L0, _L1, _L2 = np.float32(0.58496277), np.float32(0.96182123), np.float32(-0.32063233)
_L3, _L4, _L5 = np.float32(0.14171816), np.float32(-0.07058968), np.float32(0.04392863)
_L6 = np.float32(-0.0251232)
_E0, _E1, _E2 = np.float32(1.0000036), np.float32(0.69296955), np.float32(0.24162132)
_E3, _E4 = np.float32(0.05171774), np.float32(0.01368398)


@njit(inline="always", cache=True)
def mix(state):
    """A bijection of 64 bits that leaves no visible pattern (splitmix64's finaliser)."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@njit(inline="always", cache=True)
def is_due(phase, rate, epoch):
    """True in a share rate/2^32 of the epochs, evenly spaced, from an edge's own phase."""
    return np.uint32(phase + np.uint32(epoch) * rate) < rate


@njit(inline="always", cache=True)
def power_of(distance, exponent):
    """distance^exponent of float32 to 1e-5, by two polynomials, which vectors can do."""
    bits = np.float32(distance).view(np.int32)
    octave = np.float32(np.int32((bits >> 23) - 127))
    x = np.int32((bits & 0x7FFFFF) | 0x3F800000).view(np.float32) - _MIDDLE
    logarithm = ((_L6 * x + _L5) * x + _L4) * x + _L3
    logarithm = octave + (((logarithm * x + _L2) * x + _L1) * x + _L0)
    y = min(max(exponent * logarithm, -_MOST_OCTAVES), _MOST_OCTAVES)
    whole = np.floor(y)
    x = y - whole
    scale = np.int32((np.int32(whole) + 127) << 23).view(np.float32)
    return scale * ((((_E4 * x + _E3) * x + _E2) * x + _E1) * x + _E0)


@njit(inline="always", cache=True)
def pull_at(distance, a, two_b):
    """`attraction`, limited."""
    distance = min(max(distance, _NEAREST), _FARTHEST)
    power = a * power_of(distance, two_b)
    return min(two_b * power / (distance * (_ONE + power)), _LIMIT)


@njit(inline="always", cache=True)
def push_at(distance, a, two_b, strength):
    """`repulsion` times its strength, limited."""
    distance = min(max(distance, _NEAREST), _FARTHEST)
    power = a * power_of(distance, two_b)
    softened = (_SOFTENING + distance * distance) * (_ONE + power)
    return min(strength * two_b * distance / softened, _LIMIT)


@cache
def step_kernel(forward, n_components: int):
    """The kernel of one step for one space and dimension, so that its inner loops unroll.

    ``kernel(start, stop, position, moved, *schedule, forces, step, epoch, rates, omega,
    both_ways, seed)`` writes ``moved[start:stop]``; ``forward`` is that of a
    `finsler_ext.geometry.Space`, ``forces`` are a, 2b, the strength of the repulsion and the
    number of negatives per sampled edge, ``rates`` those of the map and of the height, all
    float32. Negatives need not be taken both ways where there is no drift: the two are the same.
    """
    last = n_components - 1
    shape = (n_components, BLOCK)

    @njit(nogil=True, cache=True, fastmath=_FAST, error_model="numpy")
    def take_step(
        start, stop, position, moved, first, owner, other, rate, phase, row, place, sampled,
        step_share, forces, step, epoch, rates, omega, both_ways, seed,
    ):  # fmt: skip
        a, two_b, strength, negatives = forces
        entry, n_rows = first[step * place.size :], np.uint64(place.size)
        map_rate, height_rate = rates
        stream = mix(seed + np.uint64(epoch * N_STEPS + step) * _GOLDEN)
        force = np.zeros(shape, dtype=np.float32)
        here = np.zeros(shape, dtype=np.float32)
        offset = np.zeros(shape, dtype=np.float32)
        along = np.zeros(BLOCK, dtype=np.float32)
        lift = np.zeros(BLOCK, dtype=np.float32)
        direction = np.ones(BLOCK, dtype=np.float32)
        weight = np.zeros(BLOCK, dtype=np.float32)
        partners = np.zeros(BLOCK, dtype=np.int32)
        state = np.zeros(BLOCK, dtype=np.uint64)
        longest = 0
        for begin in range(start, stop, BLOCK):
            longest = max(longest, entry[min(begin + BLOCK, stop)] - entry[begin])
        due = np.empty(longest + 1, dtype=np.int64)

        for begin in range(start, stop, BLOCK):
            end = min(begin + BLOCK, stop)
            for i in range(begin, end):
                for c in range(n_components):
                    here[c, i - begin] = position[i, c]
                    force[c, i - begin] = _ZERO

            n_due = 0
            for e in range(entry[begin], entry[end]):
                due[n_due] = e
                n_due += is_due(phase[e], rate[e], epoch)
            for t in range(0, n_due, BLOCK):
                n_pairs = min(BLOCK, n_due - t)
                for p in range(n_pairs):
                    i, j = owner[due[t + p]], other[due[t + p]]
                    direction[p] = _ONE if j >= 0 else -_ONE
                    j = j if j >= 0 else ~j
                    for c in range(n_components):
                        offset[c, p] = position[i, c] - position[j, c]
                for p in range(BLOCK):
                    square = _ZERO
                    for c in range(n_components):
                        square += offset[c, p] * offset[c, p]
                    length = np.sqrt(square)
                    rise = -direction[p] * offset[last, p]
                    distance, by_length, by_rise = forward(length, rise, omega)
                    pull = pull_at(distance, a, two_b) if square > _ZERO else _ZERO
                    along[p] = pull * by_length / max(length, _SMALLEST)
                    lift[p] = direction[p] * pull * by_rise * omega
                for p in range(n_pairs):
                    i = owner[due[t + p]] - begin
                    for c in range(n_components):
                        force[c, i] -= along[p] * offset[c, p]
                    force[last, i] += lift[p]

            most = 0
            for i in range(begin, end):
                wanted = negatives * sampled[i]
                partners[i - begin] = np.int32(np.ceil(wanted))
                weight[i - begin] = wanted / max(np.ceil(wanted), _ONE)
                state[i - begin] = mix(stream ^ np.uint64(row[i]))
                most = max(most, partners[i - begin])
            for q in range(most):
                for i in range(end - begin):
                    state[i] = state[i] * _MULTIPLIER + _INCREMENT
                    k = place[np.int64(((state[i] >> np.uint64(32)) * n_rows) >> np.uint64(32))]
                    for c in range(n_components):
                        offset[c, i] = here[c, i] - position[k, c]
                for i in range(BLOCK):
                    square = _ZERO
                    for c in range(n_components):
                        square += offset[c, i] * offset[c, i]
                    length = np.sqrt(square)
                    distance, along_out, up_out = forward(length, -offset[last, i], omega)
                    push = push_at(distance, a, two_b, strength)
                    along_both = push * along_out
                    lift_both = -push * up_out
                    if both_ways:
                        distance, along_in, up_in = forward(length, offset[last, i], omega)
                        push = push_at(distance, a, two_b, strength)
                        along_both = (along_both + push * along_in) * _HALF
                        lift_both = (lift_both + push * up_in) * _HALF
                    share = weight[i] if q < partners[i] and square > _ZERO else _ZERO
                    along_both *= share / max(length, _SMALLEST)
                    for c in range(n_components):
                        force[c, i] += along_both * offset[c, i]
                    force[last, i] += share * lift_both * omega

            for i in range(begin, end):
                g = i - begin
                for c in range(last):
                    moved[i, c] = here[c, g] + step_share[i] * map_rate * force[c, g]
                moved[i, last] = here[last, g] + step_share[i] * height_rate * force[last, g]

    return take_step


class Schedule(NamedTuple):
    """Edges as their ends look at them, by step and owner, and what each row needs besides.

    Rows are numbered as they are stored. Entries ``first[step n + i]`` to ``first[step n + i + 1]``
    are those that row i of n looks at in that step; an edge is in the same step for both its ends.

    owner, other : the row that moves, and the one at the other end; ~other if that is the source
    rate, phase : see `is_due`
    row, place : number of each stored row in the graph, and where each row of the graph is stored
    sampled : out-edges that a step samples, on average
    step_share : see `step_share`
    """

    first: np.ndarray
    owner: np.ndarray
    other: np.ndarray
    rate: np.ndarray
    phase: np.ndarray
    row: np.ndarray
    place: np.ndarray
    sampled: np.ndarray
    step_share: np.ndarray


def schedule(graph, n_epochs: int, position: np.ndarray | None = None) -> Schedule:
    """Deal the edges of a membership graph into steps; those due less than once are left out.

    Rows are stored along a curve through the positions, if there are many.
    """
    graph = scipy.sparse.csr_array(graph)
    n = graph.shape[0]
    order = np.arange(n)
    if position is not None and n > ROWS_IN_CACHE:
        order = along_curve(position)
    place = np.argsort(order).astype(np.int32)
    strongest = float(graph.data.max(initial=0.0)) or 1.0
    least = strongest / n_epochs if n_epochs > 1 else 0.0
    edges = (
        graph.indptr.astype(np.int64), graph.indices.astype(np.int32),
        graph.data.astype(np.float32), place, strongest, least,
    )  # fmt: skip
    first, sampled = np.zeros(N_STEPS * n + 1, dtype=np.int64), np.zeros(n, dtype=np.float32)
    counted = (*edges, first[1:], *(np.empty(0, dtype) for dtype in _ENTRY), sampled, True)
    _deal(*counted)
    np.cumsum(first, out=first)
    owner, other, rate, phase = (np.empty(first[-1], dtype) for dtype in _ENTRY)
    dealt = (*edges, first[:-1].copy(), owner, other, rate, phase, sampled, False)
    _deal(*dealt)
    row, share = order.astype(np.int32), step_share(graph)[order]
    return Schedule(first, owner, other, rate, phase, row, place, sampled, share)


# owner, other, rate and phase of an entry.
_ENTRY = (np.int32, np.int32, np.uint32, np.uint32)


@njit(cache=True)
def _deal(
    indptr, indices, weight, place, strongest, least, first, owner, other, rate, phase, sampled,
    only_count,
):  # fmt: skip
    """Count the entries of every step and row in ``first``, or put them where it points."""
    n = indptr.size - 1
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            if weight[e] > least:
                mixed = np.uint64(i) * _GOLDEN ^ np.uint64(indices[e])
                step = np.int64(((mixed * _DEAL) >> np.uint64(40)) % np.uint64(N_STEPS)) * n
                source, target = place[i], place[indices[e]]
                if only_count:
                    first[step + source] += 1
                    first[step + target] += 1
                    continue
                share = weight[e] / strongest
                sampled[source] += np.float32(share / N_STEPS)
                mixed *= np.uint64(0xD6E8FEB86659FD93)
                for end in range(2):
                    mine = source if end == 0 else target
                    at = first[step + mine]
                    first[step + mine] += 1
                    owner[at] = mine
                    other[at] = target if end == 0 else ~source
                    rate[at] = np.uint32(share * np.float64(_ALWAYS))
                    phase[at] = np.uint32((mixed ^ (mixed >> np.uint64(32))) & _ALWAYS)


def along_curve(position: np.ndarray) -> np.ndarray:
    """Rows in the order of a Morton curve through the first three columns that vary."""
    spread = np.ptp(position, axis=0)
    columns = np.flatnonzero(spread > 0)[:3]
    code = np.zeros(len(position), dtype=np.int64)
    for number, c in enumerate(columns):
        cells = (position[:, c] - position[:, c].min()) * (((1 << CURVE_BITS) - 1) / spread[c])
        cells = cells.astype(np.int64)
        for bit in range(CURVE_BITS):
            code |= ((cells >> bit) & 1) << (bit * len(columns) + number)
    return np.argsort(code, kind="stable")


def step_share(graph) -> np.ndarray:
    """What the steps of each vertex are multiplied by, so that they do not depend on its degree.

    A vertex moves by all edges sampled in a step at once: those of a hub, and those of a digraph
    with a hundred neighbours each, add up.
    """
    strongest = graph.data.max(initial=0.0) or 1.0
    out, into = (np.asarray(graph.sum(axis=axis)).ravel() for axis in (1, 0))
    sampled = np.maximum((out + into) / strongest, 1e-9)
    return np.minimum(1.0, MOST_SAMPLED / sampled).astype(np.float32)


# The loss as a number: forces and potentials are tables, addressed by the first bits of a float32.

# Terms summed together, whatever the number of threads, so that rounding does not depend on it.
SUMMED = 256
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
    forces = attraction(nodes, a, b), repulsion_strength * repulsion(nodes, a, b)
    limited = [np.minimum(force, FORCE_LIMIT) for force in forces]
    columns = [column for force in limited for column in (force[:-1], np.diff(force))]
    return np.stack(columns, axis=1).astype(np.float32)


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
def _cell_of(distance):
    """The cell of a positive distance, and where in it the distance lies, from 0 to 1."""
    bits = np.float32(distance).view(np.int32)
    cell = (bits >> _SHIFT) - _FIRST_CELL
    fraction = np.float32(bits & _FRACTION_MASK) * _FRACTION_UNIT
    if cell < 0:
        cell = 0
        fraction = np.float32(0.0)
    elif cell >= _N_CELLS:
        cell = _N_CELLS - 1
        fraction = np.float32(1.0)
    return cell, fraction


@njit(inline="always", cache=True)
def potential_at(potentials, forces, column, distance):
    """The potential in ``column`` (0: attraction, 2: repulsion) at a positive distance."""
    cell, fraction = _cell_of(distance)
    x = np.float64(fraction)
    inside = x * forces[cell, column] + 0.5 * x * x * forces[cell, column + 1]
    inside *= potentials[cell, 1]
    return potentials[cell, column] + (inside if column == 0 else -inside)


@njit(inline="always", cache=True)
def look_up(table, column, distance):
    """The force in ``column`` of a force table at a positive float32 distance."""
    cell, fraction = _cell_of(distance)
    return table[cell, column] + fraction * table[cell, column + 1]


@njit(nogil=True, cache=True)
def draw_partners(source, seed, n, target):
    """A partner other than the point itself, for every entry of ``source``."""
    for e in range(source.size):
        draw = mix(seed ^ (np.uint64(e + 1) * _GOLDEN)) >> np.uint64(32)
        other = np.int64((draw * np.uint64(n - 1)) >> np.uint64(32))
        target[e] = other + (other >= source[e])


@cache
def sum_kernel(forward):
    """The loss of blocks of pairs for one space; see `finsler_ext.umap.layout.AxisLoss`."""

    @njit(nogil=True, cache=True)
    def sum_blocks(
        start, stop, position, source, target, weight, axis, omega, forces, potentials, attract,
        sums,
    ):  # fmt: skip
        m = position.shape[1]
        step = np.zeros(m)
        column = 0 if attract else 2
        for block in range(start, stop):
            for e in range(block * SUMMED, min((block + 1) * SUMMED, source.size)):
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
