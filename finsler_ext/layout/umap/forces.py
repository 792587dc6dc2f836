"""The two forces of UMAP as functions of a distance, exact and as a fast table.

With q(F) = 1/(1 + a F^{2b}), an edge pulls with d(−ln q)/dF and a random partner pushes
with −d(−ln(1 − q))/dF. Both contain a power that would take half the time of a layout, so
the layout reads them from a table that is addressed by the leading bits of a float32.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from finsler_ext.spaces import RANDERS, Space

__all__ = [
    "FORCE_LIMIT",
    "LossShape",
    "attraction",
    "force_table",
    "look_up",
    "potential_at",
    "potential_table",
    "repulsion",
]

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
