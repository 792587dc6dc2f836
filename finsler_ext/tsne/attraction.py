"""Attraction of Finsler t-SNE: the only place where the direction of an affinity shows.

Every point sees its out-edges and its in-edges side by side, on the union of both patterns:

    ∂/∂y_i = (ν+1)/ν Σ_j { p_ij t_ij F_ij [(y_i − y_j)/d_ij − ω]
                         + p_ji t_ji F_ji [(y_i − y_j)/d_ij + ω] },

with t = 1/(1 + F²/ν). The brackets are ∂F/∂y_i in a Randers space. Rows write only their own
gradient.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.sparse
from numba import njit

from finsler_ext._threads import run_rows
from finsler_ext.geometry import RANDERS, Space
from finsler_ext.geometry.space import TINY
from finsler_ext.tsne.exact import kernel_constants, padded


class Edges:
    """Row i lists the others j that point ``order[i]`` has an edge to or from.

    Points are named by their rows here; without an order, row i is point i. ``out`` and ``into``
    are p_ij and p_ji; two columns without a drift feel only the sum of both, which is ``out`` then,
    and ``into`` is None. ``entropy`` is Σ p ln p.
    """

    def __init__(self, indptr, other, out, into, entropy=0.0):
        self.indptr, self.other, self.out, self.into = indptr, other, out, into
        self.entropy = entropy
        self.order: np.ndarray | None = None

    def sort_by(self, position: np.ndarray, n_threads: int) -> None:
        """Put the rows along a curve through the first two columns of a layout."""
        order = _along_curve(position)
        if order is None:
            return
        n = len(order)
        place = np.empty(n, dtype=np.uint32)
        place[order] = np.arange(n, dtype=np.uint32)
        source, name = order, place
        if self.order is not None:
            source, name = np.empty(n, dtype=np.int64), place[self.order]
            source[self.order] = np.arange(n)
            source = source[order]
        old, self.indptr = self.indptr, np.zeros(n + 1, dtype=np.int64)
        np.cumsum(np.diff(old)[source], out=self.indptr[1:])
        # one after the other: each is as large as all else
        self.out = self._moved(_move, self.out, old, source, n_threads)
        if self.into is not None:
            self.into = self._moved(_move, self.into, old, source, n_threads)
        self.other = self._moved(_move_named, self.other, old, source, n_threads, name)
        self.order = order

    def _moved(self, kernel, values, old, source, n_threads, *name):
        new = np.empty_like(values)
        run_rows(kernel, len(source), n_threads, old, values, *name, source, self.indptr, new)
        return new

    def some(self, rows: np.ndarray) -> Edges:
        """Those of some rows; the others keep their names."""
        length = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(length)])
        at = np.repeat(self.indptr[rows] - indptr[:-1], length) + np.arange(indptr[-1])
        into = None if self.into is None else self.into[at]
        return Edges(indptr, self.other[at], self.out[at], into)


def edges_of(
    P: scipy.sparse.csr_matrix, dtype=np.float32, *, merged: bool = False, n_threads: int = 1
) -> Edges:
    """Out- and in-edges of a square matrix of affinities, rows being sources."""
    n = P.shape[0]
    there = scipy.sparse.csr_array((P.data.astype(dtype), P.indices, P.indptr), shape=P.shape)
    back = there.tocsc()
    if not P.has_sorted_indices:
        there = back.tocsr()
    indptr = np.zeros(n + 1, dtype=np.int64)
    pattern = there.indptr, there.indices, back.indptr, back.indices
    run_rows(_union_lengths, n, n_threads, *pattern, indptr)
    np.cumsum(indptr, out=indptr)
    other = np.empty(indptr[-1], dtype=np.uint32)
    out = np.empty(indptr[-1], dtype=dtype)
    into = out if merged else np.empty_like(out)
    run_rows(
        _merge, n, n_threads, *pattern, there.data, back.data, indptr, other, out, into, merged
    )
    return Edges(indptr, other, out, None if merged else into, _entropy(P.data))


def edges_to_new(P: scipy.sparse.csr_matrix, n_reference: int, dtype=np.float32) -> Edges:
    """Edges of new points (rows): columns j are out-edges to j, columns n + j in-edges from j.

    A matrix with n columns only says nothing about direction; both get half of it.
    """
    indptr = P.indptr.astype(np.int64)
    p = P.data.astype(dtype)
    if P.shape[1] == n_reference:
        p *= 0.5
        return Edges(indptr, P.indices.astype(np.uint32), p, p, _entropy(P.data))
    outwards = P.indices < n_reference
    other = np.where(outwards, P.indices, P.indices - n_reference).astype(np.uint32)
    nothing = p.dtype.type(0)
    out, into = np.where(outwards, p, nothing), np.where(outwards, nothing, p)
    return Edges(indptr, other, out, into, _entropy(P.data))


@njit(nogil=True, cache=True)
def _entropy(p):
    total = 0.0
    for value in p:
        if value > 0.0:
            total += value * np.log(value)
    return total


@njit(nogil=True, cache=True)
def _union_lengths(start, stop, a_indptr, a_indices, b_indptr, b_indices, indptr):
    n = a_indptr.shape[0] - 1
    for i in range(start, stop):
        a, b, count = a_indptr[i], b_indptr[i], 0
        while a < a_indptr[i + 1] or b < b_indptr[i + 1]:
            first_a = a_indices[a] if a < a_indptr[i + 1] else n
            first_b = b_indices[b] if b < b_indptr[i + 1] else n
            a += first_a <= first_b
            b += first_b <= first_a
            count += 1
        indptr[i + 1] = count


@njit(nogil=True, cache=True)
def _merge(
    start, stop, a_indptr, a_indices, b_indptr, b_indices, a_value, b_value, indptr, other, out,
    into, merged,
):  # fmt: skip
    n = a_indptr.shape[0] - 1
    nothing = a_value.dtype.type(0)
    for i in range(start, stop):
        a, b = a_indptr[i], b_indptr[i]
        for e in range(indptr[i], indptr[i + 1]):
            first_a = a_indices[a] if a < a_indptr[i + 1] else n
            first_b = b_indices[b] if b < b_indptr[i + 1] else n
            other[e] = min(first_a, first_b)
            there, back = nothing, nothing
            if first_a <= first_b:
                there = a_value[a]
                a += 1
            if first_b <= first_a:
                back = b_value[b]
                b += 1
            if merged:
                out[e] = there + back
            else:
                out[e], into[e] = there, back


def attraction(
    at: np.ndarray,
    point: np.ndarray,
    edges: Edges,
    *,
    omega_norm: float,
    dof: float,
    space: Space = RANDERS,
    with_cost: bool = False,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """The gradient above, and the cost −Σ_j (p_ij ln w_ij + p_ji ln w_ji) of every row.

    ``at``, of shape (n, m), are the places of the rows of ``edges``; ``point``, of shape (N, m),
    those of the others: ``at`` itself unless new points are placed among old ones. The gradient is
    in the order of the points, the cost in that of the rows; it is 0 unless asked for, because its
    logarithms take as long as the gradient.
    """
    n, m = at.shape
    order = np.arange(n) if edges.order is None else edges.order
    cost = np.zeros(n)
    constants = kernel_constants(dof, omega_norm, at.dtype)
    if edges.into is None:
        pairs = np.complex64 if at.dtype == np.float32 else np.complex128
        flat = (at, point, edges.indptr, edges.other, edges.out, constants)
        gradient = np.empty_like(at)
        packed = point.view(pairs)[:, 0]
        run_rows(attract_in_plane, n, n_threads, *flat, packed, order, gradient)
        if with_cost:
            run_rows(cost_in_plane, n, n_threads, *flat, cost)
        return gradient, cost
    if m < 3:
        at, point = (np.ascontiguousarray(padded(part, at.dtype).T) for part in (at, point))
    gradient = np.empty_like(at)
    both = (at, point, edges.indptr, edges.other, edges.out, edges.into, constants)
    kernel = attract_kernel_3d if point.shape[1] == 3 else attract_kernel
    run_rows(kernel(space.forward), n, n_threads, *both, order, gradient)
    if with_cost:
        run_rows(cost_kernel(space.forward), n, n_threads, *both, cost)
    return gradient if at.shape[1] == m else gradient[:, [*range(m - 1), 2]], cost


# Reductions may be reordered for speed only in a loop that stores nothing: where a loop stores,
# the compiler keeps a second version of it for arrays that might overlap, which one runs depends
# on where they lie in memory, and the two differ in the last bits.
@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})
def attract_in_plane(
    start, stop, at, point, indptr, other, weight, constants, packed, order, gradient
):  # fmt: skip
    """The gradient of a map of two columns without a drift: F = d, whatever the space."""
    _, inverse_dof, power, one = constants
    scale = (power + power) * inverse_dof
    near = np.empty(0, dtype=packed.dtype)  # the others of a row, side by side
    place = near.view(at.dtype)
    for i in range(start, stop):
        first, count = indptr[i], indptr[i + 1] - indptr[i]
        if count > near.shape[0]:
            near = np.empty(2 * count, dtype=packed.dtype)
            place = near.view(at.dtype)
        for e in range(count):
            near[e] = packed[other[first + e]]
        x, y = at[i, 0], at[i, 1]
        gx = gy = one - one
        for e in range(count):
            dx, dy = x - place[2 * e], y - place[2 * e + 1]
            pull = weight[first + e] / (one + (dx * dx + dy * dy) * inverse_dof)
            gx += pull * dx
            gy += pull * dy
        gradient[order[i], 0] = scale * gx
        gradient[order[i], 1] = scale * gy


@njit(nogil=True, cache=True, error_model="numpy")
def cost_in_plane(start, stop, at, point, indptr, other, weight, constants, cost):
    """The cost of every row of such a map."""
    _, inverse_dof, power, _ = constants
    for i in range(start, stop):
        x, y = np.float64(at[i, 0]), np.float64(at[i, 1])
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            dx, dy = x - point[other[e], 0], y - point[other[e], 1]
            total += weight[e] * np.log1p((dx * dx + dy * dy) * inverse_dof)
        cost[i] = power * total


@cache
def attract_kernel_3d(forward):
    """The gradient in three dimensions, for one space."""

    @njit(
        nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"}
    )
    def attract(start, stop, at, point, indptr, other, out, into, constants, order, gradient):
        omega, inverse_dof, power, one = constants
        scale = (power + power) * inverse_dof
        for i in range(start, stop):
            x, y, z = at[i, 0], at[i, 1], at[i, 2]
            gx = gy = gz = up = one - one
            for e in range(indptr[i], indptr[i + 1]):
                j = other[e]
                dx, dy, rise = x - point[j, 0], y - point[j, 1], z - point[j, 2]
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
            gradient[order[i], 0] = scale * gx
            gradient[order[i], 1] = scale * gy
            gradient[order[i], 2] = scale * (gz + omega * up)

    return attract


@cache
def attract_kernel(forward):
    """The same in any dimension."""

    @njit(nogil=True, cache=True, error_model="numpy")
    def attract(start, stop, at, point, indptr, other, out, into, constants, order, gradient):
        m = point.shape[1]
        omega, inverse_dof, power, one = constants
        scale = (power + power) * inverse_dof
        for i in range(start, stop):
            own = gradient[order[i]]
            own[:] = 0
            for e in range(indptr[i], indptr[i + 1]):
                j = other[e]
                square = one - one
                for c in range(m):
                    square += (at[i, c] - point[j, c]) ** 2
                d = np.sqrt(square)
                rise = at[i, m - 1] - point[j, m - 1]
                there, along_out, up_out = forward(d, -rise, omega)
                back, along_in, up_in = forward(d, rise, omega)
                pull_out = out[e] * there / (one + there * there * inverse_dof)
                pull_in = into[e] * back / (one + back * back * inverse_dof)
                along = scale * (pull_out * along_out + pull_in * along_in) / (d + TINY * one)
                for c in range(m):
                    own[c] += along * (at[i, c] - point[j, c])
                own[m - 1] += scale * omega * (pull_in * up_in - pull_out * up_out)

    return attract


@cache
def cost_kernel(forward):
    """The cost of every row, for one space."""

    @njit(nogil=True, cache=True, error_model="numpy")
    def sum_cost(start, stop, at, point, indptr, other, out, into, constants, cost):
        m = point.shape[1]
        omega, inverse_dof, power, _ = constants
        for i in range(start, stop):
            total = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                square = 0.0
                for c in range(m):
                    square += (at[i, c] - point[other[e], c]) ** 2
                d = np.sqrt(square)
                rise = at[i, m - 1] - point[other[e], m - 1]
                there, back = forward(d, -rise, omega)[0], forward(d, rise, omega)[0]
                total += out[e] * np.log1p(there * there * inverse_dof)
                total += into[e] * np.log1p(back * back * inverse_dof)
            cost[i] = power * total

    return sum_cost


@njit(nogil=True, cache=True)
def _move(start, stop, indptr, old, source, new_indptr, new):
    for i in range(start, stop):
        shift = indptr[source[i]] - new_indptr[i]
        for e in range(new_indptr[i], new_indptr[i + 1]):
            new[e] = old[e + shift]


@njit(nogil=True, cache=True)
def _move_named(start, stop, indptr, old, name, source, new_indptr, new):
    for i in range(start, stop):
        shift = indptr[source[i]] - new_indptr[i]
        for e in range(new_indptr[i], new_indptr[i + 1]):
            new[e] = name[old[e + shift]]


def _along_curve(position: np.ndarray) -> np.ndarray | None:
    """Rows along Morton's curve; None if a place is not finite."""
    plane = position[:, :2]
    low, extent = plane.min(axis=0), np.ptp(plane, axis=0)
    if not np.isfinite(extent).all():
        return None
    cell = (plane - low) / np.where(extent > 0, extent, 1.0) * 65535
    key = np.zeros(len(plane), dtype=np.uint32)
    for c, bits in enumerate(cell.T.astype(np.uint32)):
        for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
            bits = (bits | (bits << np.uint32(shift))) & np.uint32(mask)
        key |= bits << np.uint32(c)
    return np.argsort(key, kind="stable")
