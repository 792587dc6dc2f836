"""Repulsion by summing over all pairs: the reference, and the fastest way for a few points.

Any space and any number of dimensions; the sums are those of `finsler_ext.tsne.tree`.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit

from finsler_ext._threads import run_rows
from finsler_ext.geometry import RANDERS, Space
from finsler_ext.tsne.tree import TINY, kernel_constants, kernel_kind, padded


def exact_repulsion(
    point: np.ndarray,
    *,
    omega_norm: float,
    dof: float,
    space: Space = RANDERS,
    targets: np.ndarray | None = None,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Sums Σ_j W(y_i − y_j) and Σ_j ∇W(y_i − y_j) over all j ≠ i.

    Parameters
    ----------
    point : array of shape (m, n)
        Positions, one row per coordinate, the height last.
    omega_norm, dof : float
    space : Space
        Without an even kernel, both directions of every pair are computed.
    targets : array of shape (m, n_targets), optional
        Sum over all points at these positions instead.
    n_threads : int
        Changes the time taken, never the result.

    Returns
    -------
    value : array of shape (n,)
    force : array of shape (m, n)
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


# As in `tsne_attraction`: sums are reordered only in a loop that stores nothing.
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
