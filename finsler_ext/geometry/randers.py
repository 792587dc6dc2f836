"""The canonical Randers space: a Euclidean space with a constant drift.

A constant drift ω = omega_norm · e_m with ‖ω‖ < 1 acts along the last axis, and the distance from
y_i to y_j is

    F(y_i, y_j) = ‖y_j − y_i‖ + ω · (y_j − y_i),

so that going up (with growing last coordinate) costs more than coming down.

The t-SNE kernel. With w(u) = (1 + F(u)²/ν)^{−(ν+1)/2}, the normaliser of t-SNE sums over ordered
pairs, so it depends on the directions only through

    W(u) = w(u) + w(−u),        Z = ½ Σ_{i≠j} W(y_i − y_j).

With A = 1 + (d² + ω²z²)/ν and B = 2ωdz/ν, where d = ‖u‖ and z is the last coordinate of u,

    W = (A − B)^{−(ν+1)/2} + (A + B)^{−(ν+1)/2}:

even in every coordinate, smooth at 0, and for ν = 1 and 3 a rational function of d² and z².
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from finsler_ext.geometry.space import ONE, TINY, Majoriser, Space, height_difference


@register_jitable(inline="always")
def forward(length, rise, omega):
    """F, ∂F/∂d and ∂F/∂z divided by ω; see `finsler_ext.geometry.space.Space`."""
    return length + omega * rise, ONE, ONE


@register_jitable(inline="always")
def even_kernel(kind, square, rise, omega, inverse_dof, power, one):
    """W at a step u and its gradient ∇W = along · u + up · e_m.

    ``square`` = ‖u‖², ``rise`` = z. Constants come in as arguments of the loop's own
    precision (see `finsler_ext.tsne.exact`); a literal would turn single precision into
    double.
    """
    two = one + one
    four = two + two
    omega2 = omega * omega
    level = omega2 * rise * rise
    if kind == 1:
        a = one + square + level
        denominator = a * a - four * square * level
        inverse = one / denominator
        value = two * a * inverse
        inverse = four * inverse * inverse
        bend = denominator - two * a * a
        along = (bend + four * a * level) * inverse
        up = omega2 * rise * (bend + four * a * square) * inverse
    elif kind == 3:
        a = one + (square + level) * inverse_dof
        b2 = four * inverse_dof * inverse_dof * square * level
        inverse = one / (a * a - b2)
        both = two * (a * a + b2)
        cube = inverse * inverse * inverse
        value = both * inverse * inverse
        by_a = four * a * (a * a - b2 - both) * cube
        by_b2 = two * (a * a - b2 + both) * cube
        slope = two * inverse_dof * by_a
        curve = two * four * inverse_dof * inverse_dof * by_b2
        along = slope + curve * level
        up = omega2 * rise * (slope + curve * square)
    else:
        length = np.sqrt(square)
        half_b = omega * inverse_dof * length * rise
        a = one + (square + level) * inverse_dof
        low = one / (a - two * half_b)
        high = one / (a + two * half_b)
        if kind == 2:
            low_power, high_power = low * np.sqrt(low), high * np.sqrt(high)
        else:
            low_power, high_power = low**power, high**power
        value = low_power + high_power
        low_power, high_power = power * low * low_power, power * high * high_power
        slope = -two * inverse_dof * (low_power + high_power)
        twist = two * omega * inverse_dof * (low_power - high_power)
        # at 0 the twist vanishes, whatever rise/length is taken to be
        along = slope + twist * rise / (length + TINY * one)
        up = omega2 * rise * slope + twist * length
    return value, along, up


def _height_curvature(omega: float) -> float:
    """The cross term of F² is antisymmetric and sums to zero for symmetric weights."""
    return 1.0 + omega**2


def _bound(omega: float) -> float:
    """Of the Hessian of F²/2 = (d + ω z)²/2."""
    return (1.0 + omega) ** 2


RANDERS = Space(
    "randers",
    forward,
    height_difference,
    limit=1.0,
    even_kernel=even_kernel,
    majoriser=Majoriser(_height_curvature, _bound),
)


def drift(omega_norm: float, n_components: int) -> np.ndarray:
    """The drift vector ω = omega_norm · e_m of an m-dimensional Randers space."""
    omega = np.zeros(n_components)
    omega[-1] = RANDERS.check_drift(omega_norm)
    return omega


def randers_distance(source, target, omega_norm: float) -> np.ndarray:
    """Distance F from ``source`` to ``target`` along the last array axis.

    Examples
    --------
    >>> float(randers_distance([0.0, 0.0], [0.0, 1.0], 0.5))
    1.5
    >>> float(randers_distance([0.0, 1.0], [0.0, 0.0], 0.5))
    0.5
    """
    return RANDERS.distance(source, target, omega_norm)


def randers_distances(embedding, omega_norm: float) -> np.ndarray:
    """The directed N × N matrix of F, rows being sources."""
    return RANDERS.distances(embedding, omega_norm)


def randers_gradient(source, target, omega_norm: float) -> np.ndarray:
    """∂F(source, target)/∂source = (source − target)/d − ω; the target's is its negative.

    Where the two points coincide the direction is undefined and 0 is returned.
    """
    return RANDERS.gradient(source, target, omega_norm)
