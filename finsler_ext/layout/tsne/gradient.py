"""The Finsler t-SNE objective, in the form that openTSNE's optimiser calls.

    L(Y) = Σ p_ij ln(p_ij/q_ij),   q_ij = (1 + F_ij²/ν)^{−(ν+1)/2}/Z

The gradient is attraction over the sparse edges, both directions side by side, plus ∇ ln Z,
which sees the drift only through an even kernel. A space without a smooth one is summed over all
pairs.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from finsler_ext._threads import resolve_n_jobs
from finsler_ext.layout.tsne.attraction import (
    EdgePairs,
    attraction,
    edge_pairs,
    edge_pairs_to_new,
)
from finsler_ext.layout.tsne.exact import exact_repulsion
from finsler_ext.layout.tsne.grid import GridPlan, KernelStore, grid_repulsion, plan_grid
from finsler_ext.layout.tsne.octree import build_octree, padded
from finsler_ext.layout.tsne.spline_grid import GRID_DIMENSIONS
from finsler_ext.layout.tsne.tree import tree_repulsion
from finsler_ext.spaces import RANDERS, SPACES, Space, find_space

__all__ = ["METHODS", "FinslerGradient", "check_dof", "choose_method"]

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
        self.space = find_space(state.get("space", RANDERS))  # version 0.1.0 had no other
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
