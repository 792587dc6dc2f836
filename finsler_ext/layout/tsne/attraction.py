"""Attraction of Finsler t-SNE: the only place where the direction of an affinity shows.

Every point sees its out-edges and its in-edges side by side, on the union of both patterns:

    ∂/∂y_i = (ν+1)/ν Σ_j { p_ij t_ij F_ij [(y_i − y_j)/d_ij − ω]
                         + p_ji t_ji F_ji [(y_i − y_j)/d_ij + ω] },

with t = 1/(1 + F²/ν). The brackets are ∂F/∂y_i in a Randers space. Rows write only their own
gradient.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit

from finsler_ext._threads import run_rows
from finsler_ext.layout.tsne.kernel import TINY, kernel_constants
from finsler_ext.layout.tsne.octree import padded
from finsler_ext.spaces import RANDERS, Space

__all__ = ["EdgePairs", "attraction", "edge_pairs", "edge_pairs_to_new"]


class EdgePairs(NamedTuple):
    """Row i lists the others j that i has an edge to or from.

    ``out_at`` and ``in_at`` are the places of p_ij and p_ji in the data of the affinity
    matrix, −1 where there is none: the pattern stays valid when the values change.
    """

    indptr: np.ndarray
    other: np.ndarray
    out_at: np.ndarray
    in_at: np.ndarray
    share: float = 1.0

    def values(self, data: np.ndarray, dtype) -> tuple[np.ndarray, np.ndarray]:
        """p_ij and p_ji on the pattern."""
        padded = np.append(data * self.share, 0.0).astype(dtype)
        return padded[self.out_at], padded[self.in_at]


def edge_pairs(P: scipy.sparse.csr_matrix) -> EdgePairs:
    """Out- and in-edges of a square matrix of affinities, rows being sources."""
    place = scipy.sparse.csr_array(
        (np.arange(P.nnz, dtype=np.int64), P.indices, P.indptr), shape=P.shape
    )
    back = place.tocsc()
    there = back.tocsr()  # rows sorted by column
    indptr = _union_lengths(there.indptr, there.indices, back.indptr, back.indices)
    other = np.empty(indptr[-1], dtype=np.uint32)
    out_at, in_at = np.full(indptr[-1], -1), np.full(indptr[-1], -1)
    _merge(
        there.indptr, there.indices, there.data, back.indptr, back.indices, back.data, indptr,
        other, out_at, in_at,
    )  # fmt: skip
    return EdgePairs(indptr, other, out_at, in_at)


def edge_pairs_to_new(P: scipy.sparse.csr_matrix, n_reference: int) -> EdgePairs:
    """Edges of new points (rows): columns j are out-edges to j, columns n + j in-edges from j.

    A matrix with n columns only says nothing about direction; both get half of it.
    """
    indptr = P.indptr.astype(np.int64)
    place = np.arange(P.nnz, dtype=np.int64)
    if P.shape[1] == n_reference:
        return EdgePairs(indptr, P.indices.astype(np.uint32), place, place, 0.5)
    outwards = P.indices < n_reference
    other = np.where(outwards, P.indices, P.indices - n_reference).astype(np.uint32)
    return EdgePairs(indptr, other, np.where(outwards, place, -1), np.where(outwards, -1, place))


@njit(nogil=True, cache=True)
def _union_lengths(a_indptr, a_indices, b_indptr, b_indices):
    n = a_indptr.shape[0] - 1
    indptr = np.zeros(n + 1, dtype=np.int64)
    for i in range(n):
        a, b, count = a_indptr[i], b_indptr[i], 0
        while a < a_indptr[i + 1] or b < b_indptr[i + 1]:
            first_a = a_indices[a] if a < a_indptr[i + 1] else n
            first_b = b_indices[b] if b < b_indptr[i + 1] else n
            a += first_a <= first_b
            b += first_b <= first_a
            count += 1
        indptr[i + 1] = indptr[i] + count
    return indptr


@njit(nogil=True, cache=True)
def _merge(
    a_indptr, a_indices, a_place, b_indptr, b_indices, b_place, indptr, other, a_at, b_at
):  # fmt: skip
    n = a_indptr.shape[0] - 1
    for i in range(n):
        a, b = a_indptr[i], b_indptr[i]
        for e in range(indptr[i], indptr[i + 1]):
            first_a = a_indices[a] if a < a_indptr[i + 1] else n
            first_b = b_indices[b] if b < b_indptr[i + 1] else n
            other[e] = min(first_a, first_b)
            if first_a <= first_b:
                a_at[e] = a_place[a]
                a += 1
            if first_b <= first_a:
                b_at[e] = b_place[b]
                b += 1


def attraction(
    at: np.ndarray,
    point: np.ndarray,
    pairs: EdgePairs,
    out: np.ndarray,
    into: np.ndarray,
    *,
    omega_norm: float,
    dof: float,
    space: Space = RANDERS,
    with_cost: bool = False,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """The gradient above, and the cost −Σ_j (p_ij ln w_ij + p_ji ln w_ji) of every row.

    Parameters
    ----------
    at : array of shape (m, n)
        Places of the rows, one array row per coordinate, the height last.
    point : array of shape (m, N)
        Places of the others; ``at`` itself unless new points are placed among old ones.
    pairs, out, into
        Pattern, and p_ij and p_ji on it.
    with_cost : bool
        Otherwise the cost is 0; its logarithms take as long as the gradient.

    Returns
    -------
    gradient : array of shape (m, n)
    cost : array of shape (n,)
    """
    m = len(point)
    if m < 3:
        at, point = padded(at.T, at.dtype), padded(point.T, point.dtype)
    gradient = np.empty_like(at)
    cost = np.zeros(at.shape[1])
    constants = kernel_constants(dof, omega_norm, at.dtype)
    kernel = attract_kernel_3d if len(point) == 3 else attract_kernel
    edges = (at, point, pairs.indptr, pairs.other, out, into, constants)
    run_rows(kernel(space.forward), at.shape[1], n_threads, *edges, gradient)
    if with_cost:
        run_rows(cost_kernel(space.forward), at.shape[1], n_threads, *edges, cost)
    return gradient if m >= 3 else gradient[[*range(m - 1), 2]], cost


# Reductions may be reordered for speed only in a loop that stores nothing: where a loop stores,
# the compiler keeps a second version of it for arrays that might overlap, which one runs depends
# on where they lie in memory, and the two differ in the last bits.
@cache
def attract_kernel_3d(forward):
    """The gradient in three dimensions, for one space."""

    @njit(
        nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"}
    )
    def attract(start, stop, at, point, indptr, other, out, into, constants, gradient):
        omega, inverse_dof, power, one = constants
        px, py, pz = point[0], point[1], point[2]
        scale = (power + power) * inverse_dof
        for i in range(start, stop):
            x, y, z = at[0, i], at[1, i], at[2, i]
            gx = gy = gz = up = one - one
            for e in range(indptr[i], indptr[i + 1]):
                j = other[e]
                dx, dy, rise = x - px[j], y - py[j], z - pz[j]
                d = np.sqrt(dx * dx + dy * dy + rise * rise)
                there, along_out, up_out = forward(d, -rise, omega)
                back, along_in, up_in = forward(d, rise, omega)
                pull_out = out[e] * there / (one + there * there * inverse_dof)
                pull_in = into[e] * back / (one + back * back * inverse_dof)
                along = (pull_out * along_out + pull_in * along_in) / (d + TINY * one)
                gx += along * dx
                gy += along * dy
                gz += along * rise
                up += pull_in * up_in - pull_out * up_out
            gradient[0, i] = scale * gx
            gradient[1, i] = scale * gy
            gradient[2, i] = scale * (gz + omega * up)

    return attract


@cache
def attract_kernel(forward):
    """The same in any dimension."""

    @njit(nogil=True, cache=True, error_model="numpy")
    def attract(start, stop, at, point, indptr, other, out, into, constants, gradient):
        m = point.shape[0]
        omega, inverse_dof, power, one = constants
        scale = (power + power) * inverse_dof
        for i in range(start, stop):
            for c in range(m):
                gradient[c, i] = 0
            for e in range(indptr[i], indptr[i + 1]):
                j = other[e]
                square = one - one
                for c in range(m):
                    square += (at[c, i] - point[c, j]) ** 2
                d = np.sqrt(square)
                rise = at[m - 1, i] - point[m - 1, j]
                there, along_out, up_out = forward(d, -rise, omega)
                back, along_in, up_in = forward(d, rise, omega)
                pull_out = out[e] * there / (one + there * there * inverse_dof)
                pull_in = into[e] * back / (one + back * back * inverse_dof)
                along = scale * (pull_out * along_out + pull_in * along_in) / (d + TINY * one)
                for c in range(m):
                    gradient[c, i] += along * (at[c, i] - point[c, j])
                gradient[m - 1, i] += scale * omega * (pull_in * up_in - pull_out * up_out)

    return attract


@cache
def cost_kernel(forward):
    """The cost of every row, for one space."""

    @njit(nogil=True, cache=True, error_model="numpy")
    def sum_cost(start, stop, at, point, indptr, other, out, into, constants, cost):
        m = point.shape[0]
        omega, inverse_dof, power, _ = constants
        for i in range(start, stop):
            total = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                square = 0.0
                for c in range(m):
                    square += (at[c, i] - point[c, other[e]]) ** 2
                d = np.sqrt(square)
                rise = at[m - 1, i] - point[m - 1, other[e]]
                there, back = forward(d, -rise, omega)[0], forward(d, rise, omega)[0]
                total += out[e] * np.log1p(there * there * inverse_dof)
                total += into[e] * np.log1p(back * back * inverse_dof)
            cost[i] = power * total

    return sum_cost
