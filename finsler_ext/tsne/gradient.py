"""The Finsler t-SNE objective, in the form that openTSNE's optimiser calls.

    L(Y) = Σ p_ij ln(p_ij/q_ij),   q_ij = (1 + F_ij²/ν)^{−(ν+1)/2}/Z

The gradient is attraction over the sparse edges, both directions side by side, plus ∇ ln Z, which
sees the drift only through an even kernel. A space without a smooth one is summed over all pairs.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit

from finsler_ext._threads import resolve_n_jobs, run_light_rows
from finsler_ext.geometry import RANDERS, SPACES, Space, find_space
from finsler_ext.schema import SPACE, number, one_of, saved
from finsler_ext.tsne.attraction import Edges, attraction, edges_of, edges_to_new
from finsler_ext.tsne.exact import exact_repulsion, padded
from finsler_ext.tsne.grid import (
    GRID_DIMENSIONS,
    KEPT_KERNELS,
    GridPlan,
    grid_repulsion,
    kernel_transform,
    plan_grid,
)
from finsler_ext.tsne.tree import Octree, build_octree, tree_repulsion

METHODS = ("auto", "exact", "bh", "fft")
ALIASES = {"BH": "bh", "barnes-hut": "bh", "FFT": "fft", "interpolation": "fft"}
# Below this many points the sum over all pairs, without any error and in double precision, takes
# at most a millisecond more per step than the tree.
EXACT_BELOW = 1000
# More than three dimensions have no tree; beyond this size a step would take seconds.
EXACT_UP_TO = 20_000
TREE_DIMENSIONS = 3
# From this many points on, by number of columns, "auto" takes the grid: it is faster than the tree
# (`benchmarks/tsne_grid.py`), or, below 20,000 points in two columns, more exact on exaggerated
# layouts, where the tree errs by up to 0.9 %. In three, transforms alone take longer than the tree.
GRID_FROM = {1: 2000, 2: 5000}
# A point costs the grid 100 to 250 ns and a node 6 to 8; the tree takes some 650 ns for a point of
# final layouts. With more nodes for each, "auto" leaves a step to the tree.
GRID_NODES_PER_POINT = 60
# Of two columns the tree is built in the plane, where θ = 0.5 may err by more than 0.5 %.
PLANE_THETA_SHARE = 0.8
# From twice as many points on, a loss that need not be exact is that of so many.
SAMPLED_ROWS = 20_000
# A grid that was asked for may be slow, but must fit into memory: half a gigabyte.
MAX_GRID_NODES = 2**25
# Affinities sum to 1, and exaggerated ones to more.
EXAGGERATED = 1.01
PLANE = 2
# openTSNE's step is a quarter of the gradient of L, and half of it where single points are
# placed among fixed ones; learning rates mean what they mean there.
WHOLE_SHARE, PARTIAL_SHARE = 0.25, 0.5
# From this many points on, rows near each other in the map lie near each other in memory: most of a
# row's neighbours are then in the cache. The edges of a row keep their order, so where rows are
# stored changes no bit.
SORT_FROM = 20_000
# Steps after which rows are sorted again: the map changes most at the beginning.
SORT_AFTER = (30, 120, 300)


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


class HeldAffinities:
    """Affinities that nobody changes while this lives, exaggerated by a factor beside them.

    Their sums are taken once, and not before every step.
    """

    def __init__(self, P):
        self.P, self.factor = P, 1.0
        # two sums by which a change of values is noticed
        self.total, self.squares = float(P.data.sum()), float(np.einsum("i,i->", P.data, P.data))

    def __imul__(self, factor: float) -> HeldAffinities:
        self.factor *= factor
        return self

    def __itruediv__(self, factor: float) -> HeldAffinities:
        self.factor /= factor
        return self


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

    "exact" computes in double precision, "bh" in single precision: its own error is thousands of
    times larger than the rounding. "fft" is a grid, in one or two dimensions; a step whose layout
    would need too large a grid is computed by "bh", and so is the placing of new points, whose sums
    must not depend on each other. "auto" takes what is fastest, decided by the number of points
    and, for every step, the extent of the layout. ``used`` counts the steps by each method.
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
        """Free the memory of edges, kernels and a tree; the next call makes them again."""
        self._kept: tuple = (None, None, None, None)
        self._sample: Edges | None = None
        self._tree: tuple = (None, None)
        self._steps = 0
        self._transform = lru_cache(KEPT_KERNELS)(kernel_transform)

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
        edges = self._edges(held, fixed, partial, dtype, n_threads)
        kernel = {"omega_norm": self.omega_norm, "dof": dof, "space": self.space}
        point = self._stored(fixed, edges, dtype, n_threads)
        pull, cost = attraction(
            position.astype(dtype, order="C") if partial else point, point, edges, **kernel,
            with_cost=should_eval_error, n_threads=n_threads,
        )  # fmt: skip
        plan = None
        if method == "fft" and not partial:
            whole = np.ascontiguousarray(position.T, dtype=np.float64)
            settings = {**(fft_params or {}), "tight": held.factor * held.total > EXAGGERATED}
            plan = self._affordable(plan_grid(whole, **kernel, **settings), len(position))
        if method == "exact":
            rows, among = (np.ascontiguousarray(p.T, dtype=dtype) for p in (position, fixed))
            value, push = exact_repulsion(
                among, **kernel, targets=rows if partial else None, n_threads=n_threads
            )
        elif plan is not None:
            value, push = grid_repulsion(
                whole, plan, **kernel, transform=self._transform, n_threads=n_threads
            )
        else:
            method = "bh"
            theta = 0.5 if bh_params is None else bh_params["theta"]
            tree = self._tree_of(fixed) if partial else build_octree(padded(fixed, np.float32))
            targets = position if partial else None
            value, push = _by_tree(tree, position.shape[1], targets, kernel, theta, n_threads)

        self.used[method] += 1
        value = value.astype(np.float64, copy=False)
        Z = value if partial else 0.5 * value.sum()
        if partial:
            gradient = PARTIAL_SHARE * (held.factor * pull.astype(np.float64) + (push / Z).T)
        else:
            gradient = np.empty(position.shape)
            sums = pull, push, held.factor, Z
            run_light_rows(_whole_gradient, len(position), n_threads, *sums, gradient)
        error = 0.0
        if should_eval_error:
            error = _divergence(held, edges.entropy, cost, Z, partial)
        return error, gradient

    def sampled_divergence(self, position, held, dof, theta: float, n_jobs) -> float:
        """The divergence but for a constant, from some rows and the pairs among them."""
        n_threads = resolve_n_jobs(n_jobs)
        edges = self._edges(held, position, False, np.float32, n_threads)
        rows = np.arange(0, len(position), len(position) // SAMPLED_ROWS)
        if self._sample is None:
            self._sample = edges.some(rows)
        kernel: dict[str, Any] = {"omega_norm": self.omega_norm, "space": self.space}
        kernel["dof"] = check_dof(dof)
        point = self._stored(position, edges, np.float32, n_threads)
        _, cost = attraction(
            point[rows], point, self._sample, **kernel, with_cost=True, n_threads=n_threads
        )
        tree = build_octree(padded(point[rows], np.float32))
        value, _ = _by_tree(tree, position.shape[1], None, kernel, theta, n_threads)
        mean = 0.5 * len(position) * float(cost.mean())
        return mean + held.total * float(np.log(value.sum(dtype=np.float64)))

    def _stored(self, position, edges: Edges, dtype, n_threads) -> np.ndarray:
        """Positions in the order of the edges."""
        if edges.order is None:
            return np.ascontiguousarray(position, dtype=dtype)
        stored = np.empty(position.shape, dtype=dtype)
        run_light_rows(_placed, len(position), n_threads, position, edges.order, stored)
        return stored

    def _affordable(self, plan: GridPlan | None, n_samples: int) -> GridPlan | None:
        """The plan, unless it is too large: a grid covers also what is empty."""
        most = MAX_GRID_NODES
        if self.method == "auto":
            most = min(most, GRID_NODES_PER_POINT * n_samples)
        return None if plan is None or plan.size > most else plan

    def _edges(self, held: HeldAffinities, fixed, partial: bool, dtype, n_threads) -> Edges:
        """Edges of P, kept as long as its pattern and its values have not changed.

        openTSNE multiplies a P that is not held in place while it exaggerates.
        """
        P = held.P
        name = (held.total, held.squares, dtype, partial)
        indices, indptr, known, edges = self._kept
        if indices is not P.indices or indptr is not P.indptr or known != name:
            self.forget_edges()
            if partial:
                edges = edges_to_new(P, len(fixed), dtype)
            else:
                merged = fixed.shape[1] == PLANE and self.omega_norm == 0
                edges = edges_of(P, dtype, merged=merged, n_threads=n_threads)
            self._kept = (P.indices, P.indptr, name, edges)
        if not partial and len(fixed) >= SORT_FROM and self._steps in (0, *SORT_AFTER):
            edges.sort_by(fixed, n_threads)
            self._sample = None
        self._steps += 1
        return edges

    def _tree_of(self, fixed):
        """The tree over points that stay where they are, while new ones are placed."""
        name = (fixed.shape, float(fixed.sum()), float(np.einsum("nc,nc->", fixed, fixed)))
        known, tree = self._tree
        if known != name:
            tree = build_octree(padded(fixed, np.float32))
            self._tree = name, tree
        return tree


@njit(nogil=True, cache=True)
def _placed(start, stop, position, order, out):
    """Rows in their order, in another precision."""
    for i in range(start, stop):
        for c in range(position.shape[1]):
            out[i, c] = position[order[i], c]


@njit(nogil=True, cache=True, error_model="numpy")
def _whole_gradient(start, stop, pull, push, factor, Z, out):
    for i in range(start, stop):
        for c in range(out.shape[1]):
            out[i, c] = WHOLE_SHARE * (factor * np.float64(pull[i, c]) + push[c, i] / Z)


def _by_tree(tree: Octree, m: int, targets, kernel, theta, n_threads):
    if m == PLANE:
        theta = PLANE_THETA_SHARE * theta
    if targets is not None:
        targets = padded(targets, np.float32)
    value, force = tree_repulsion(tree, **kernel, theta=theta, targets=targets, n_threads=n_threads)
    return value, force[[*range(m - 1), 2]]


def _divergence(held: HeldAffinities, entropy, cost, Z, partial) -> float:
    factor, total = held.factor, held.total
    entropy += total * float(np.log(factor))
    if partial:
        weight = np.asarray(held.P.sum(axis=1)).ravel()
        spread = float(np.einsum("i,i->", weight, np.log(Z)))
        return factor * (entropy + float(cost.sum()) + spread)
    # an edge shows in the row of its source and in that of its target
    return factor * (entropy + 0.5 * float(cost.sum()) + total * float(np.log(Z)))
