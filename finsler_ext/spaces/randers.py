"""The canonical Randers space: a Euclidean space with a constant wind.

Points y live in R^m. A constant drift ω = omega_norm · e_m with ‖ω‖ < 1 blows
along the last axis, and the distance from y_i to y_j is

    F(y_i, y_j) = ‖y_j − y_i‖ + ω · (y_j − y_i),

so that going up (with growing last coordinate) costs more than coming down.
The first m − 1 columns of an embedding are its *map*, the last is its *height*.

Arrays go through the vectorised functions; the compiled scalar functions at the
end of the module are the ones every layout calls.
"""

from __future__ import annotations

from numbers import Real

import numpy as np
from numba import njit

__all__ = [
    "check_omega_norm",
    "drift",
    "height",
    "map_columns",
    "randers_distance",
    "randers_distances",
    "randers_gradient",
]


def check_omega_norm(omega_norm) -> float:
    """Return ``omega_norm`` as a float in [0, 1), or raise a ValueError."""
    if isinstance(omega_norm, bool) or not isinstance(omega_norm, Real):
        raise ValueError(f"omega_norm must be a number in [0, 1), got {omega_norm!r}.")
    if not 0.0 <= float(omega_norm) < 1.0:
        raise ValueError(
            f"omega_norm must lie in [0, 1), got {omega_norm!r}: at 1 and beyond, "
            "distances along the drift stop being positive. Try 0.5."
        )
    return float(omega_norm)


def drift(omega_norm: float, n_components: int) -> np.ndarray:
    """The drift vector ω = omega_norm · e_m of an m-dimensional Randers space."""
    omega = np.zeros(n_components)
    omega[-1] = check_omega_norm(omega_norm)
    return omega


def map_columns(embedding) -> np.ndarray:
    """All columns but the last: the usual map."""
    return np.asarray(embedding)[:, :-1]


def height(embedding) -> np.ndarray:
    """The last column: the axis of the drift."""
    return np.asarray(embedding)[:, -1]


def randers_distance(source, target, omega_norm: float) -> np.ndarray:
    """Distance F from ``source`` to ``target`` along the last array axis.

    Examples
    --------
    >>> float(randers_distance([0.0, 0.0], [0.0, 1.0], 0.5))
    1.5
    >>> float(randers_distance([0.0, 1.0], [0.0, 0.0], 0.5))
    0.5
    """
    step = np.asarray(target, dtype=float) - np.asarray(source, dtype=float)
    return np.linalg.norm(step, axis=-1) + check_omega_norm(omega_norm) * step[..., -1]


def randers_distances(embedding, omega_norm: float) -> np.ndarray:
    """The directed N × N matrix of F, rows being sources."""
    embedding = np.asarray(embedding, dtype=float)
    return randers_distance(embedding[:, None, :], embedding[None, :, :], omega_norm)


def randers_gradient(source, target, omega_norm: float) -> np.ndarray:
    """∂F(source, target)/∂source = (source − target)/d − ω; the target's is its negative.

    Where the two points coincide the direction is undefined and 0 is returned.
    """
    back = np.asarray(source, dtype=float) - np.asarray(target, dtype=float)
    length = np.linalg.norm(back, axis=-1, keepdims=True)
    apart = length > 0
    unit = np.divide(back, length, out=np.zeros_like(back), where=apart)
    return np.where(apart, unit - drift(omega_norm, back.shape[-1]), 0.0)


@njit(inline="always", cache=True)
def outgoing(length, rise, omega):
    """F from the point at hand to another, ``rise`` = own height − other height."""
    return length - omega * rise


@njit(inline="always", cache=True)
def incoming(length, rise, omega):
    """F from another point to the point at hand, ``rise`` = own height − other height."""
    return length + omega * rise
