"""Attraction of Finsler t-SNE: the only place where the direction of an affinity shows.

Every point sees its out-edges and its in-edges side by side, on the union of both patterns:

    ∂/∂y_i = (ν+1)/ν Σ_j { p_ij t_ij F_ij [(y_i − y_j)/d_ij − ω]
                         + p_ji t_ji F_ji [(y_i − y_j)/d_ij + ω] },

with t = 1/(1 + F²/ν). The brackets are ∂F/∂y_i in a Randers space. Rows write only their own
gradient.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit

from finsler_ext._threads import resolve_n_jobs, run_rows
from finsler_ext.geometry import RANDERS, SPACES, Space, find_space
from finsler_ext.schema import SPACE, number, one_of, saved
from finsler_ext.tsne.exact import exact_repulsion
from finsler_ext.tsne.grid import GRID_DIMENSIONS, GridPlan, KernelStore, grid_repulsion, plan_grid
from finsler_ext.tsne.tree import TINY, build_octree, kernel_constants, padded, tree_repulsion


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
        padded = np.empty(len(data) + 1, dtype)
        np.multiply(data, self.share, out=padded[:-1], casting="same_kind")
        padded[-1] = 0.0
        return padded[self.out_at], padded[self.in_at]


def edge_pairs(P: scipy.sparse.csr_matrix) -> EdgePairs:
    """Out- and in-edges of a square matrix of affinities, rows being sources."""
    whole = np.int32 if P.nnz < np.iinfo(np.int32).max else np.int64
    place = scipy.sparse.csr_array(
        (np.arange(P.nnz, dtype=whole), P.indices, P.indptr), shape=P.shape
    )
    back = place.tocsc()
    there = back.tocsr()  # rows sorted by column
    indptr = _union_lengths(there.indptr, there.indices, back.indptr, back.indices)
    other = np.empty(indptr[-1], dtype=np.uint32)
    out_at, in_at = np.full((2, indptr[-1]), -1, dtype=whole)
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
    pairs: EdgePairs | Edges,
    out: np.ndarray,
    into: np.ndarray | None,
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
        Pattern, and p_ij and p_ji on it. Two columns without a drift feel only the sum of both,
        which may be given as ``out``, ``into`` being None.
    with_cost : bool
        Otherwise the cost is 0; its logarithms take as long as the gradient.

    Returns
    -------
    gradient : array of shape (m, n)
    cost : array of shape (n,)
    """
    m = len(point)
    cost = np.zeros(at.shape[1])
    constants = kernel_constants(dof, omega_norm, at.dtype)
    if m == PLANE and omega_norm == 0:
        # both coordinates of a point side by side: one look-up for an edge
        place = np.ascontiguousarray(point.T)
        own = place if at is point else np.ascontiguousarray(at.T)
        weight = out if into is None else out + into
        flat = (own, place, pairs.indptr, pairs.other, weight, constants)
        gradient = np.empty_like(at)
        run_rows(attract_in_plane, at.shape[1], n_threads, *flat, gradient)
        if with_cost:
            run_rows(cost_in_plane, at.shape[1], n_threads, *flat, cost)
        return gradient, cost
    if m < 3:
        at, point = padded(at.T, at.dtype), padded(point.T, point.dtype)
    gradient = np.empty_like(at)
    edges = (at, point, pairs.indptr, pairs.other, out, into, constants)
    kernel = attract_kernel_3d if len(point) == 3 else attract_kernel
    run_rows(kernel(space.forward), at.shape[1], n_threads, *edges, gradient)
    if with_cost:
        run_rows(cost_kernel(space.forward), at.shape[1], n_threads, *edges, cost)
    return gradient if len(at) == m else gradient[[*range(m - 1), 2]], cost


# Reductions may be reordered for speed only in a loop that stores nothing: where a loop stores,
# the compiler keeps a second version of it for arrays that might overlap, which one runs depends
# on where they lie in memory, and the two differ in the last bits.
@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})
def attract_in_plane(start, stop, at, point, indptr, other, weight, constants, gradient):
    """The gradient of a map of two columns without a drift: F = d, whatever the space."""
    _, inverse_dof, power, one = constants
    scale = (power + power) * inverse_dof
    for i in range(start, stop):
        x, y = at[i, 0], at[i, 1]
        gx = gy = one - one
        for e in range(indptr[i], indptr[i + 1]):
            dx, dy = x - point[other[e], 0], y - point[other[e], 1]
            pull = weight[e] / (one + (dx * dx + dy * dy) * inverse_dof)
            gx += pull * dx
            gy += pull * dy
        gradient[0, i] = scale * gx
        gradient[1, i] = scale * gy


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


# Rows near each other in the map lie near each other in memory: most of a row's neighbours are then
# in the cache. The edges of a row keep their order, so where rows are stored changes no bit.

# Fewer points than this are in the cache anyway.
SORT_FROM = 20_000
# Steps after which rows are sorted again: the map changes most at the beginning.
SORT_AFTER = (30, 120, 300)


class HeldAffinities:
    """Affinities that nobody changes while this lives, exaggerated by a factor beside them.

    Their sums are taken once, and not before every step.
    """

    def __init__(self, P):
        self.P, self.factor = P, 1.0
        self.print = print_of(P)

    def __imul__(self, factor: float) -> HeldAffinities:
        self.factor *= factor
        return self

    def __itruediv__(self, factor: float) -> HeldAffinities:
        self.factor /= factor
        return self


def print_of(P) -> tuple[float, float]:
    """Two sums by which a change of values is noticed."""
    return float(P.data.sum()), float(np.einsum("i,i->", P.data, P.data))


class Edges(NamedTuple):
    """Edges as attraction reads them; row r is point ``order[r]``, or r if order is None."""

    indptr: np.ndarray
    other: np.ndarray
    out: np.ndarray
    into: np.ndarray | None
    order: np.ndarray | None
    entropy: float  # Σ p ln p

    def sorted_by(self, position: np.ndarray, n_threads: int) -> Edges:
        """The same, rows along a curve through the first two columns of a layout."""
        order = _along_curve(position)
        if order is None:
            return self
        n = len(order)
        place = np.empty(n, dtype=np.uint32)
        place[order] = np.arange(n, dtype=np.uint32)
        source, name = order, place
        if self.order is not None:
            source, name = np.empty(n, dtype=np.int64), place[self.order]
            source[self.order] = np.arange(n)
            source = source[order]
        indptr = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(np.diff(self.indptr)[source], out=indptr[1:])
        out = np.empty_like(self.out)
        run_rows(_move, n, n_threads, self.indptr, self.out, source, indptr, out)
        into = None
        if self.into is not None:
            into = np.empty_like(self.into)
            run_rows(_move, n, n_threads, self.indptr, self.into, source, indptr, into)
        other = np.empty_like(self.other)
        run_rows(_move_named, n, n_threads, self.indptr, self.other, name, source, indptr, other)
        return Edges(indptr, other, out, into, order, self.entropy)


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


# The Finsler t-SNE objective, in the form that openTSNE's optimiser calls.
#
#     L(Y) = Σ p_ij ln(p_ij/q_ij),   q_ij = (1 + F_ij²/ν)^{−(ν+1)/2}/Z
#
# The gradient is attraction over the sparse edges, both directions side by side, plus ∇ ln Z,
# which sees the drift only through an even kernel. A space without a smooth one is summed over all
# pairs.

METHODS = ("auto", "exact", "bh", "fft")
ALIASES = {"BH": "bh", "barnes-hut": "bh", "FFT": "fft", "interpolation": "fft"}
# Below this many points the sum over all pairs, without any error and in double precision, takes
# at most a millisecond more per step than the tree (500 points: 0.4 against 0.25 ms, 1000: 1.6
# against 0.8, 3000: 18 against 5; one thread).
EXACT_BELOW = 1000
# More than three dimensions have no tree; beyond this size a step would take seconds.
EXACT_UP_TO = 20_000
TREE_DIMENSIONS = 3
PLANE = 2
# From this many points on, by number of columns, "auto" takes the grid. Milliseconds of one
# processor, grid and tree, on exaggerated and on final layouts of fits to blobs. One column:
# 2000 points (drawn from 5000) 0.3, 0.4 and 0.4, 0.5; 5000 points 0.6, 1.0 and 0.6, 1.4; 50,000
# points 7, 18 and 7, 18. Two: 5000 points 2.4, 1.5 and 14, 2.2; 10,000 points 3.4, 2.9 and 19,
# 5.6; 20,000 points 5.7, 6.6 and 17, 13; 50,000 points 13, 21 and 23, 40. Below 20,000 points
# in two columns it is for the sake of exaggerated layouts, on which the tree errs by up to 0.9 %;
# wide layouts are left to the tree, see below. In three, transforms alone take longer than
# the tree.
GRID_FROM = {1: 2000, 2: 5000}
# A point costs the grid 100 to 250 ns and a node 6 to 8; the tree takes some 650 ns for a point of
# final layouts. With more nodes for each, "auto" leaves a step to the tree.
GRID_NODES_PER_POINT = 60
# Of two columns the tree is built in the plane, where θ = 0.5 erred by 0.54 % on one of sixteen
# layouts of fits; 0.4 by 0.01 %, in one and a half times the time.
PLANE_THETA_SHARE = 0.8
# A grid that was asked for may be slow, but must fit into memory: half a gigabyte.
MAX_GRID_NODES = 2**25
# Affinities sum to 1, and exaggerated ones to more.
EXAGGERATED = 1.01
# openTSNE's step is a quarter of the gradient of L, and half of it where single points are
# placed among fixed ones; learning rates mean what they mean there.
WHOLE_SHARE, PARTIAL_SHARE = 0.25, 0.5


def check_dof(dof) -> float:
    """Return ``dof`` as a positive finite float, or raise a ValueError."""
    try:
        value = float(dof)
    except (TypeError, ValueError):
        value = np.nan
    if not 0.0 < value < np.inf:
        raise ValueError(
            f"dof must be a positive number, got {dof!r}: it is ν of the kernel "
            "(1 + F²/ν)^{−(ν+1)/2}. The usual t-SNE has dof=1."
        )
    return value


def choose_method(method: str, n_samples: int, n_components: int, space: Space = RANDERS) -> str:
    """Resolve "auto" and refuse what cannot be done."""
    method = ALIASES.get(method, method)
    if method not in METHODS:
        raise ValueError(
            f"negative_gradient_method must be one of {METHODS} or a callable, got {method!r}."
        )
    if space.even_kernel is None:
        return _all_pairs(method, n_samples, f"space={space.name!r}")
    if method == "fft" and n_components > GRID_DIMENSIONS:
        raise ValueError(
            f"negative_gradient_method='fft' works in up to {GRID_DIMENSIONS} dimensions, got "
            f"n_components={n_components}; beyond that the transforms alone take longer than the "
            "tree. Use 'auto'."
        )
    if n_components > TREE_DIMENSIONS:
        return _all_pairs(
            method,
            n_samples,
            f"n_components={n_components} (more than {TREE_DIMENSIONS} dimensions)",
        )
    if method == "auto":
        if n_samples < EXACT_BELOW:
            return "exact"
        return "fft" if n_samples >= GRID_FROM.get(n_components, np.inf) else "bh"
    return method


def _all_pairs(method: str, n_samples: int, why: str) -> str:
    if method not in ("auto", "exact"):
        raise ValueError(
            f"negative_gradient_method={method!r} is not available with {why}, whose repulsion "
            "is summed over all pairs. Use 'exact' or 'auto'."
        )
    if n_samples > EXACT_UP_TO:
        raise ValueError(
            f"{why}: its repulsion is summed over all pairs, which is offered up to "
            f"{EXACT_UP_TO} points; X has {n_samples}. Use n_components={TREE_DIMENSIONS} or fewer "
            "in the space 'randers', or a subset of the points."
        )
    return "exact"


@saved(
    omega_norm=number("[0, 1)"),
    method=one_of("auto", "exact", "bh", "fft"),
    space=SPACE,
)
class FinslerGradient:
    """openTSNE's ``negative_gradient_method`` for a space with a drift.

    Called as ``gradient(embedding, P, dof=…, bh_params=…, n_jobs=…, should_eval_error=…)``;
    returns the KL divergence (0 unless asked for) and a quarter of its gradient, as openTSNE's
    own functions do. With a ``reference_embedding``, rows are new points, each with an objective
    and a normaliser of its own, and P has two blocks of columns: edges to the old points, and
    edges from them.

    Parameters
    ----------
    omega_norm : float
    method : {"auto", "exact", "bh", "fft"}
        "exact" computes in double precision, "bh" in single precision: its own error is
        thousands of times larger than the rounding. "fft" is a grid, in one or two dimensions;
        a step whose layout would need too large a grid is computed by "bh", and so is the
        placing of new points, whose sums must not depend on each other. "auto" takes what is
        fastest, decided by the number of points and, for every step, the extent of the layout.
    space : Space or str

    Attributes
    ----------
    used : Counter
        Steps computed by each method so far.
    """

    def __init__(self, omega_norm: float, method: str = "auto", space: Space | str = RANDERS):
        self.space = find_space(space)
        self.omega_norm = self.space.check_drift(omega_norm)
        self.method = method
        self._forget()

    def _forget(self) -> None:
        self.used: Counter[str] = Counter()
        self.forget_edges()

    def forget_edges(self) -> None:
        """Free the memory of edges and kernels; the next call makes them again."""
        self._kept: tuple = (None, None, None)
        self._edges_kept: Edges | None = None
        self._steps = 0
        self._kernels = KernelStore()

    def __getstate__(self):
        known = SPACES.get(self.space.name) == self.space
        space = self.space.name if known else self.space  # a file holds names, not functions
        return {"omega_norm": self.omega_norm, "method": self.method, "space": space}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.space = find_space(state["space"])
        self._forget()

    def __call__(
        self,
        embedding,
        P,
        dof=1.0,
        bh_params=None,
        fft_params=None,
        reference_embedding=None,
        n_jobs=1,
        should_eval_error=False,
        **_,
    ):
        dof, n_threads = check_dof(dof), resolve_n_jobs(n_jobs)
        position = np.asarray(embedding)
        fixed = position if reference_embedding is None else np.asarray(reference_embedding)
        partial = reference_embedding is not None
        method = choose_method(self.method, len(fixed), position.shape[1], self.space)
        dtype = np.float64 if method == "exact" else np.float32

        held = P if isinstance(P, HeldAffinities) else HeldAffinities(P)
        edges = self._edges(held, fixed, position if partial else None, dtype, n_threads)

        point = np.ascontiguousarray(fixed.T, dtype=dtype)
        at = np.ascontiguousarray(position.T, dtype=dtype) if partial else point
        kernel = {"omega_norm": self.omega_norm, "dof": dof, "space": self.space}
        stored = point if edges.order is None else point[:, edges.order]
        pull, cost = attraction(
            at if partial else stored, stored, edges, edges.out, edges.into, **kernel,
            with_cost=should_eval_error, n_threads=n_threads,
        )  # fmt: skip
        if edges.order is not None:
            pull, moved = np.empty_like(pull), pull
            pull[:, edges.order] = moved
        targets = at if partial else None
        plan = None
        if method == "fft" and not partial:
            whole = np.ascontiguousarray(position.T, dtype=np.float64)
            settings = {**(fft_params or {}), "tight": held.factor * held.print[0] > EXAGGERATED}
            plan = self._affordable(plan_grid(whole, **kernel, **settings), len(position))
        if method == "exact":
            value, push = exact_repulsion(point, **kernel, targets=targets, n_threads=n_threads)
        elif plan is not None:
            value, push = grid_repulsion(
                whole, plan, **kernel, store=self._kernels, n_threads=n_threads
            )
        else:
            method = "bh"
            theta = 0.5 if bh_params is None else bh_params["theta"]
            value, push = _by_tree(point, targets, kernel, theta, n_threads)

        self.used[method] += 1

        value = value.astype(np.float64)
        Z = value if partial else 0.5 * value.sum()
        share = PARTIAL_SHARE if partial else WHOLE_SHARE
        gradient = (share * (held.factor * pull.astype(np.float64) + push / Z)).T
        error = 0.0
        if should_eval_error:
            error = _divergence(held, edges.entropy, cost, Z, partial)
        return error, np.ascontiguousarray(gradient)

    def _affordable(self, plan: GridPlan | None, n_samples: int) -> GridPlan | None:
        """The plan, unless it is too large: a grid covers also what is empty."""
        most = MAX_GRID_NODES
        if self.method == "auto":
            most = min(most, GRID_NODES_PER_POINT * n_samples)
        return None if plan is None or plan.size > most else plan

    def _edges(self, held: HeldAffinities, fixed, new, dtype, n_threads) -> Edges:
        """Edges of P, kept as long as its pattern and its values have not changed.

        openTSNE multiplies a P that is not held in place while it exaggerates.
        """
        P = held.P
        name = (*held.print, dtype, new is not None)
        indices, indptr, known = self._kept
        edges = self._edges_kept
        if edges is None or indices is not P.indices or indptr is not P.indptr or known != name:
            edges = self._edges_kept = None  # not both at once
            pairs = edge_pairs(P) if new is None else edge_pairs_to_new(P, len(fixed))
            edges = _read(pairs, P.data, dtype, self._in_plane(fixed))
            self._kept, self._steps = (P.indices, P.indptr, name), 0
        self._edges_kept = edges
        if new is None and len(fixed) >= SORT_FROM and self._steps in (0, *SORT_AFTER):
            self._edges_kept = edges = edges.sorted_by(fixed, n_threads)
        self._steps += 1
        return edges

    def _in_plane(self, position) -> bool:
        return position.shape[1] == PLANE and self.omega_norm == 0


def _read(pairs: EdgePairs, data, dtype, in_plane: bool) -> Edges:
    out, into = pairs.values(data, dtype)
    if in_plane:
        out += into
    positive = data[data > 0]
    # Sums of einsum do not depend on the number of threads, as those of BLAS do.
    entropy = float(np.einsum("i,i->", positive, np.log(positive)))
    return Edges(pairs.indptr, pairs.other, out, None if in_plane else into, None, entropy)


def _by_tree(point, targets, kernel, theta, n_threads):
    m = len(point)
    tree = build_octree(padded(point.T, np.float32))
    if m == PLANE:
        theta = PLANE_THETA_SHARE * theta
    if targets is not None:
        targets = padded(targets.T, np.float32)
    value, force = tree_repulsion(tree, **kernel, theta=theta, targets=targets, n_threads=n_threads)
    return value, force[[*range(m - 1), 2]]


def _divergence(held: HeldAffinities, entropy, cost, Z, partial) -> float:
    factor, total = held.factor, held.print[0]
    entropy += total * float(np.log(factor))
    if partial:
        weight = np.asarray(held.P.sum(axis=1)).ravel()
        spread = float(np.einsum("i,i->", weight, np.log(Z)))
        return factor * (entropy + float(cost.sum()) + spread)
    # an edge shows in the row of its source and in that of its target
    return factor * (entropy + 0.5 * float(cost.sum()) + total * float(np.log(Z)))
