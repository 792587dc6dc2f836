"""The even kernel: all that the repulsion of Finsler t-SNE sees.

With F the Randers length of a step u and w(u) = (1 + F(u)²/ν)^{−(ν+1)/2}, the normaliser of
t-SNE sums over ordered pairs, so it depends on the directions only through

    W(u) = w(u) + w(−u),        Z = ½ Σ_{i≠j} W(y_i − y_j).

With A = 1 + (d² + ω²z²)/ν and B = 2ωdz/ν, where d = ‖u‖ and z is the last coordinate of u,

    W = (A − B)^{−(ν+1)/2} + (A + B)^{−(ν+1)/2}:

even in every coordinate, smooth at 0, and for ν = 1 and 3 a rational function of d² and z².
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["even_kernel", "kernel_constants", "kernel_kind"]

# A general power costs some thirty times as much as the closed forms of these.
CLOSED_FORMS = (1, 2, 3)
TINY = np.float32(1e-30)


def kernel_kind(dof: float) -> int:
    """The closed form for this ν, or 0 where there is none."""
    return int(dof) if dof in CLOSED_FORMS else 0


def kernel_constants(dof: float, omega_norm: float, dtype) -> np.ndarray:
    """ω, 1/ν, (ν + 1)/2 and 1, in the precision of the loop that uses them."""
    return np.array([omega_norm, 1.0 / dof, (dof + 1.0) / 2.0, 1.0], dtype=dtype)


@njit(inline="always", cache=True)
def even_kernel(kind, square, rise, omega, inverse_dof, power, one):
    """W at a step u and its gradient ∇W = along · u + up · e_m.

    ``square`` = ‖u‖², ``rise`` = z. Constants come in as arguments of the loop's own
    precision (see `kernel_constants`); a literal would turn single precision into double.
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
