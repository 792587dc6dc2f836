"""Repulsion by summing over all pairs: the reference, and the fastest way for a few points.

Any number of dimensions; the sums are those of `finsler_ext.layout.tsne_tree`.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit

from finsler_ext._threads import RowPool
from finsler_ext.layout.tsne_kernel import even_kernel, kernel_constants, kernel_kind

__all__ = ["exact_repulsion"]


def exact_repulsion(
    point: np.ndarray,
    *,
    omega_norm: float,
    dof: float,
    targets: np.ndarray | None = None,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Sums Σ_j W(y_i − y_j) and Σ_j ∇W(y_i − y_j) over all j ≠ i.

    Parameters
    ----------
    point : array of shape (m, n)
        Positions, one row per coordinate, the height last.
    omega_norm, dof : float
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
    value = np.empty(at.shape[1], dtype=point.dtype)
    force = np.empty(at.shape, dtype=point.dtype)
    constants = kernel_constants(dof, omega_norm, point.dtype)
    with RowPool(at.shape[1], n_threads, heavy=True) as pool:
        pool.run(all_pairs_kernel(kernel_kind(dof)), at, point, constants, value, force)
    if targets is None:
        value -= 2.0  # W(0), each point's own share
    return value, force


@cache
def all_pairs_kernel(kind: int):
    """``kernel(start, stop, at, point, constants, value, force)`` for one form of W."""

    @njit(
        nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"}
    )
    def sum_all(start, stop, at, point, constants, value, force):
        m, n = point.shape
        omega, inverse_dof, power, one = constants
        square, along, up = np.empty(n, point.dtype), np.empty(n, point.dtype), one - one
        for i in range(start, stop):
            square[:] = 0
            for c in range(m):
                place = at[c, i]
                for j in range(n):
                    square[j] += (place - point[c, j]) * (place - point[c, j])
            total, up = one - one, one - one
            place = at[m - 1, i]
            for j in range(n):
                part, along[j], lift = even_kernel(
                    kind, square[j], place - point[m - 1, j], omega, inverse_dof, power, one
                )
                total += part
                up += lift
            value[i] = total
            for c in range(m):
                place, push = at[c, i], one - one
                for j in range(n):
                    push += along[j] * (place - point[c, j])
                force[c, i] = push
            force[m - 1, i] += up

    return sum_all
