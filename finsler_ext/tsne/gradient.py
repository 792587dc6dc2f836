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

__all__ = [
    "METHODS",
    "EdgePairs",
    "FinslerGradient",
    "attraction",
    "check_dof",
    "choose_method",
    "edge_pairs",
    "edge_pairs_to_new",
]


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
    in_plane = m == PLANE and omega_norm == 0
    if m < 3 and not in_plane:
        at, point = padded(at.T, at.dtype), padded(point.T, point.dtype)
    gradient = np.empty_like(at)
    cost = np.zeros(at.shape[1])
    constants = kernel_constants(dof, omega_norm, at.dtype)
    edges = (at, point, pairs.indptr, pairs.other, out, into, constants)
    kernel = attract_kernel_3d if len(point) == 3 else attract_kernel
    attract = attract_in_plane if in_plane else kernel(space.forward)
    run_rows(attract, at.shape[1], n_threads, *edges, gradient)
    if with_cost:
        run_rows(cost_kernel(space.forward), at.shape[1], n_threads, *edges, cost)
    return gradient if len(at) == m else gradient[[*range(m - 1), 2]], cost


# Reductions may be reordered for speed only in a loop that stores nothing: where a loop stores,
# the compiler keeps a second version of it for arrays that might overlap, which one runs depends
# on where they lie in memory, and the two differ in the last bits.
@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})
def attract_in_plane(start, stop, at, point, indptr, other, out, into, constants, gradient):
    """The gradient of a map of two columns without a drift: F = d, whatever the space."""
    _, inverse_dof, power, one = constants
    px, py = point[0], point[1]
    scale = (power + power) * inverse_dof
    for i in range(start, stop):
        x, y = at[0, i], at[1, i]
        gx = gy = one - one
        for e in range(indptr[i], indptr[i + 1]):
            dx, dy = x - px[other[e]], y - py[other[e]]
            pull = (out[e] + into[e]) / (one + (dx * dx + dy * dy) * inverse_dof)
            gx += pull * dx
            gy += pull * dy
        gradient[0, i] = scale * gx
        gradient[1, i] = scale * gy


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
        self._pattern: tuple = (None, None, None)
        self._values: tuple = (None, None)
        self._kernels = KernelStore()
        self.used: Counter[str] = Counter()

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

        point = np.ascontiguousarray(fixed.T, dtype=dtype)
        at = np.ascontiguousarray(position.T, dtype=dtype) if partial else point
        kernel = {"omega_norm": self.omega_norm, "dof": dof, "space": self.space}
        pairs, out, into = self._edges(P, len(fixed) if partial else None, dtype)
        pull, cost = attraction(
            at, point, pairs, out, into, **kernel, with_cost=should_eval_error, n_threads=n_threads
        )
        targets = at if partial else None
        plan = None
        if method == "fft" and not partial:
            whole = np.ascontiguousarray(position.T, dtype=np.float64)
            settings = {**(fft_params or {}), "tight": float(P.data.sum()) > EXAGGERATED}
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
        gradient = (share * (pull.astype(np.float64) + push / Z)).T
        error = 0.0
        if should_eval_error:
            error = _divergence(P, cost, Z, partial)
        return error, np.ascontiguousarray(gradient)

    def _affordable(self, plan: GridPlan | None, n_samples: int) -> GridPlan | None:
        """The plan, unless it is too large: a grid covers also what is empty."""
        most = MAX_GRID_NODES
        if self.method == "auto":
            most = min(most, GRID_NODES_PER_POINT * n_samples)
        return None if plan is None or plan.size > most else plan

    def _edges(self, P, n_reference, dtype) -> tuple[EdgePairs, np.ndarray, np.ndarray]:
        """Edge pairs of P; the pattern is kept, values only as long as P's own have not changed.

        openTSNE multiplies P in place while it exaggerates.
        """
        indices, indptr, pairs = self._pattern
        if indices is not P.indices or indptr is not P.indptr:
            pairs = edge_pairs(P) if n_reference is None else edge_pairs_to_new(P, n_reference)
            self._pattern = (P.indices, P.indptr, pairs)
            self._values = (None, None)
        print_of_values = (float(P.data.sum()), float(np.einsum("i,i->", P.data, P.data)), dtype)
        if self._values[0] != print_of_values:
            self._values = (print_of_values, pairs.values(P.data, dtype))
        return (pairs, *self._values[1])


def _by_tree(point, targets, kernel, theta, n_threads):
    m = len(point)
    tree = build_octree(padded(point.T, np.float32))
    if m == PLANE:
        theta = PLANE_THETA_SHARE * theta
    if targets is not None:
        targets = padded(targets.T, np.float32)
    value, force = tree_repulsion(tree, **kernel, theta=theta, targets=targets, n_threads=n_threads)
    return value, force[[*range(m - 1), 2]]


def _divergence(P, cost, Z, partial) -> float:
    positive = P.data[P.data > 0]
    # Sums of einsum do not depend on the number of threads, as those of BLAS do.
    entropy = float(np.einsum("i,i->", positive, np.log(positive)))
    if partial:
        weight = np.asarray(P.sum(axis=1)).ravel()
        return entropy + float(cost.sum()) + float(np.einsum("i,i->", weight, np.log(Z)))
    # an edge shows in the row of its source and in that of its target
    return entropy + 0.5 * float(cost.sum()) + float(P.data.sum()) * float(np.log(Z))
