"""Repulsion by summing over all pairs: the reference, and the fastest way for a few points.

Any space and any number of dimensions. Tree, grid and attraction share its constants.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit

from finsler_ext._threads import run_rows
from finsler_ext.geometry import RANDERS, Space
from finsler_ext.geometry.space import TINY

# ν for which the kernel w(F) = (1 + F²/ν)^{−(ν+1)/2} has a closed form; a general power costs some
# thirty times as much.
CLOSED_FORMS = (1, 2, 3)


def kernel_kind(dof: float) -> int:
    """The closed form for this ν, or 0 where there is none."""
    return int(dof) if dof in CLOSED_FORMS else 0


def kernel_constants(dof: float, omega_norm: float, dtype) -> np.ndarray:
    """ω, 1/ν, (ν + 1)/2 and 1, in the precision of the loop that uses them."""
    return np.array([omega_norm, 1.0 / dof, (dof + 1.0) / 2.0, 1.0], dtype=dtype)


def padded(position: np.ndarray, dtype) -> np.ndarray:
    """Positions as three contiguous rows (map, map, height), zero where there are fewer."""
    n, m = position.shape
    out = np.zeros((3, n), dtype=dtype)
    out[2] = position[:, m - 1]
    for c in range(m - 1):
        out[c] = position[:, c]
    return out


def exact_repulsion(
    point: np.ndarray,
    *,
    omega_norm: float,
    dof: float,
    space: Space = RANDERS,
    targets: np.ndarray | None = None,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Sums Σ_j W(y_i − y_j) and Σ_j ∇W(y_i − y_j) over all j ≠ i, of shapes (n,) and (m, n).

    ``point`` is of shape (m, n): one row per coordinate, the height last. With ``targets`` of shape
    (m, n_targets), the sums over all points at these positions instead. In a space without an even
    kernel both directions of every pair are computed.
    """
    at = point if targets is None else targets
    m = len(point)
    value = np.empty(at.shape[1], dtype=point.dtype)
    force = np.empty((max(m, 3), at.shape[1]), dtype=point.dtype)
    constants = kernel_constants(dof, omega_norm, point.dtype)
    if space.even_kernel is None:
        kernel = both_ways_kernel(space.forward)
    else:
        kernel = all_pairs_kernel(space.even_kernel, kernel_kind(dof))
    if m <= 3:
        at, point = padded(at.T, point.dtype), padded(point.T, point.dtype)
        if space.even_kernel is not None:
            kernel = all_pairs_kernel_3d(space.even_kernel, kernel_kind(dof))
    run_rows(kernel, at.shape[1], n_threads, at, point, constants, value, force, heavy=True)
    if targets is None:
        value -= 2.0  # W(0), each point's own share
    return value, force if m >= 3 else force[[*range(m - 1), 2]]


# As in `attraction.py`: sums are reordered only in a loop that stores nothing.
@cache
def all_pairs_kernel_3d(even_kernel, kind: int):
    """``kernel(start, stop, at, point, constants, value, force)`` for one form of W."""

    @njit(
        nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"}
    )
    def sum_all(start, stop, at, point, constants, value, force):
        omega, inverse_dof, power, one = constants
        x, y, z = point[0], point[1], point[2]
        for i in range(start, stop):
            px, py, pz = at[0, i], at[1, i], at[2, i]
            total, fx, fy, fz = one - one, one - one, one - one, one - one
            for j in range(point.shape[1]):
                ex, ey, ez = px - x[j], py - y[j], pz - z[j]
                part, along, up = even_kernel(
                    kind, ex * ex + ey * ey + ez * ez, ez, omega, inverse_dof, power, one
                )
                total += part
                fx += along * ex
                fy += along * ey
                fz += along * ez + up
            value[i], force[0, i], force[1, i], force[2, i] = total, fx, fy, fz

    return sum_all


@cache
def all_pairs_kernel(even_kernel, kind: int):
    """The same in any dimension."""

    @njit(nogil=True, cache=True, error_model="numpy")
    def sum_all(start, stop, at, point, constants, value, force):
        m, n = point.shape
        omega, inverse_dof, power, one = constants
        for i in range(start, stop):
            total = one - one
            for c in range(m):
                force[c, i] = 0
            for j in range(n):
                square = one - one
                for c in range(m):
                    square += (at[c, i] - point[c, j]) ** 2
                part, along, up = even_kernel(
                    kind, square, at[m - 1, i] - point[m - 1, j], omega, inverse_dof, power, one
                )
                total += part
                for c in range(m):
                    force[c, i] += along * (at[c, i] - point[c, j])
                force[m - 1, i] += up
            value[i] = total

    return sum_all


@cache
def both_ways_kernel(forward):
    """The same for a space without an even kernel: W and ∇W from either direction."""

    @njit(nogil=True, cache=True, error_model="numpy")
    def sum_all(start, stop, at, point, constants, value, force):
        m, n = point.shape
        omega, inverse_dof, power, one = constants
        scale = (power + power) * inverse_dof
        for i in range(start, stop):
            total = one - one
            for c in range(m):
                force[c, i] = 0
            for j in range(n):
                square = one - one
                for c in range(m):
                    square += (at[c, i] - point[c, j]) ** 2
                d = np.sqrt(square)
                rise = at[m - 1, i] - point[m - 1, j]
                out, along_out, up_out = forward(d, -rise, omega)
                into, along_in, up_in = forward(d, rise, omega)
                near_out = one / (one + out * out * inverse_dof)
                near_in = one / (one + into * into * inverse_dof)
                w_out, w_in = near_out**power, near_in**power
                total += w_out + w_in
                # dw/dF = −(ν+1)/ν F w/(1 + F²/ν)
                w_out, w_in = scale * out * w_out * near_out, scale * into * w_in * near_in
                along = (w_out * along_out + w_in * along_in) / (d + TINY * one)
                for c in range(m):
                    force[c, i] -= along * (at[c, i] - point[c, j])
                force[m - 1, i] += omega * (w_out * up_out - w_in * up_in)
            value[i] = total

    return sum_all
