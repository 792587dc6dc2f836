"""Places for new points: the same stress against fixed ones, and the distances it is made of.

For one new point y, with F the distance of the space,

    L(y) = Σ_j (F(y, y_j) − D_out_j)² + Σ_j (F(y_j, y) − D_in_j)²

is minimised by damped Gauss–Newton steps (Levenberg–Marquardt), which only ever lower it. Where
both directions are known, the sum of the residuals has weight ½ and their difference λ/2, as in
`finsler_ext.mds.stress`.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.sparse
from numba import njit
from numba.extending import register_jitable

from finsler_ext._threads import run_rows
from finsler_ext.asymmetry import is_directed
from finsler_ext.directed.read import fill_missing
from finsler_ext.geometry import RANDERS, Space
from finsler_ext.mds.stress import TINY
from finsler_ext.neighbors.geodesics import distances_of_new
from finsler_ext.scales import checked_new_scale
from finsler_ext.validation import as_stored, refuse_one_way, refuse_placeless

# Gauss–Newton took 5 to 8 on planted distances with 20 % noise; a bound for contradictory ones.
MAX_STEPS = 200
# A step that gains less than this share of the stress, or of the extent, is the last.
GAIN = 1e-12
# New points start at the centre of this many nearest fixed points.
NEAREST = 3
# Embeddings of another extent are brought to 1 first, so that TINY is tiny.
SMALL, LARGE = 1e-9, 1e9


def place_points(
    embedding: np.ndarray,
    outgoing: np.ndarray,
    incoming: np.ndarray,
    omega_norm: float,
    n_threads: int = 1,
    space: Space = RANDERS,
    skew_weight: float = 1.0,
) -> np.ndarray:
    """Positions of new points, of shape (n_new, m), among those of ``embedding``, which are fixed.

    ``outgoing`` and ``incoming``, of shape (n_new, n), are dissimilarities from the new to the
    fixed points and back, nan where unknown; ``skew_weight`` is λ.
    """
    fixed = np.ascontiguousarray(embedding, dtype=np.float64)
    outgoing = np.ascontiguousarray(outgoing, dtype=np.float64)
    incoming = np.ascontiguousarray(incoming, dtype=np.float64)
    extent = float(np.abs(fixed).max(initial=0.0))
    unit = 1.0
    if extent > 0 and not SMALL < extent < LARGE:
        unit = 2.0 ** int(np.frexp(extent)[1])  # rounds nothing
    placed = np.empty((len(outgoing), fixed.shape[1]))
    numbers = float(omega_norm), float(np.sqrt(skew_weight))
    given = fixed / unit, outgoing / unit, incoming / unit, *numbers
    run_rows(_place_kernel(space.forward), len(outgoing), n_threads, *given, placed)
    return unit * placed


@cache
def _place_kernel(forward):
    """``kernel(start, stop, …)`` places rows ``start:stop`` in one space."""

    @njit(nogil=True, cache=True)
    def place(start, stop, fixed, outgoing, incoming, omega, root_weight, placed):
        n, m = fixed.shape
        nearness = np.empty(n)
        for i in range(start, stop):
            out, into = outgoing[i], incoming[i]
            for j in range(n):
                total, count = 0.0, 0
                if not np.isnan(out[j]):
                    total, count = total + out[j], count + 1
                if not np.isnan(into[j]):
                    total, count = total + into[j], count + 1
                nearness[j] = total / count if count > 0 else np.inf
            nearest = np.argsort(nearness)[:NEAREST]
            y, near = np.zeros(m), 0
            if nearness[nearest[0]] == 0.0:  # a twin: start where it is
                y += fixed[nearest[0]]
            else:
                for j in nearest:
                    if nearness[j] < np.inf:
                        y += fixed[j]
                        near += 1
                y /= max(near, 1)
            _descend(forward, y, fixed, out, into, omega, root_weight)
            placed[i] = y

    return place


@register_jitable
def _descend(forward, y, fixed, out, into, omega, root_weight):
    m = fixed.shape[1]
    normal, matrix, normal_there = np.empty((m, m)), np.empty((m, m)), np.empty((m, m))
    gradient, gradient_there = np.empty(m), np.empty(m)
    stress = _linearise(forward, y, fixed, out, into, omega, root_weight, normal, gradient)
    damping = 1e-3
    for _ in range(MAX_STEPS):
        for a in range(m):
            for b in range(m):
                matrix[a, b] = normal[a, b]
            matrix[a, a] += damping * normal[a, a] + TINY
        there = y - np.linalg.solve(matrix, gradient)
        reached = _linearise(
            forward, there, fixed, out, into, omega, root_weight, normal_there, gradient_there
        )
        if reached < stress:
            gain = stress - reached
            stress = reached
            y[:], normal[:], gradient[:] = there, normal_there, gradient_there
            damping = max(0.1 * damping, 1e-12)
            if gain <= GAIN * stress:
                return
        else:
            damping *= 10.0
            if damping > 1e12:
                return


@register_jitable
def _linearise(forward, y, fixed, out, into, omega, root_weight, normal, gradient):
    """Σ J Jᵀ and Σ J f over the residuals f, and the stress."""
    n, m = fixed.shape
    normal[:], gradient[:] = 0.0, 0.0
    residual, jacobian = np.empty(2), np.empty((2, m))
    total = 0.0
    for j in range(n):
        square = 0.0
        for c in range(m):
            square += (y[c] - fixed[j, c]) ** 2
        length = np.sqrt(square)
        rise = fixed[j, m - 1] - y[m - 1]
        for way in range(2):
            sign = 1.0 - 2.0 * way
            wanted = out[j] if way == 0 else into[j]
            distance, along, up = forward(length, sign * rise, omega)
            known = not np.isnan(wanted)
            residual[way] = distance - wanted if known else 0.0
            for c in range(m):
                unit = along * (y[c] - fixed[j, c]) / (length + TINY)
                jacobian[way, c] = unit if known else 0.0
            if known:
                jacobian[way, m - 1] -= sign * omega * up
        if not np.isnan(out[j] + into[j]):
            both = residual[0] + residual[1]
            residual[1] = np.sqrt(0.5) * root_weight * (residual[0] - residual[1])
            residual[0] = np.sqrt(0.5) * both
            for c in range(m):
                both = jacobian[0, c] + jacobian[1, c]
                jacobian[1, c] = np.sqrt(0.5) * root_weight * (jacobian[0, c] - jacobian[1, c])
                jacobian[0, c] = np.sqrt(0.5) * both
        for way in range(2):
            total += residual[way] ** 2
            for a in range(m):
                gradient[a] += jacobian[way, a] * residual[way]
                for b in range(m):
                    normal[a, b] += jacobian[way, a] * jacobian[way, b]
    return total


def given_distances(model, X, incoming, local_scale) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``metric="precomputed"``: fixed points, and distances to and from them, nan where unknown.

    With the pivots of a large graph, X and incoming are edges, and the pivots are the fixed points.
    """
    if local_scale is not None:
        raise ValueError("local_scale is for features; metric='precomputed' has no scales.")
    if incoming is not None:
        shape = getattr(incoming, "shape", None) or np.shape(incoming)
        if shape != X.shape:
            raise ValueError(f"incoming must have the shape of X, {X.shape}, got {shape}.")
        incoming = model._validated(incoming, reset=False)
    fixed, pivots = model.embedding_, model._pivots
    if pivots is not None:
        if incoming is None:
            raise ValueError(
                "incoming: new nodes of a graph need the edges from the training nodes, too. Pass "
                "transform(X, incoming=E) with E[i, j] the length of the edge from j to i."
            )
        if not (scipy.sparse.issparse(X) and scipy.sparse.issparse(incoming)):
            raise ValueError("X and incoming: edges of new nodes must be sparse, as the graph was.")
        fixed = fixed[pivots.nodes]
        there = _through_edges(X, pivots.outgoing)
        back = _through_edges(incoming, pivots.incoming)
    else:
        there = _with_nan(X)
        if incoming is not None:
            back = _with_nan(incoming)
        elif is_directed(model.dissimilarity_matrix_):
            refuse_one_way()
        else:
            back = there.copy()
    refuse_placeless(there, back)
    # points without a place of their own place no others
    placed = np.isfinite(fixed).all(axis=1)
    return fixed[placed], there[:, placed], back[:, placed]


def _through_edges(edges, lengths: np.ndarray) -> np.ndarray:
    """Distances of new nodes to (or from) the pivots: one edge, then the shortest path known.

    ``edges`` is sparse, of shape (n_new, n); ``lengths`` of shape (n, k). nan where there is none.
    """
    edges = scipy.sparse.csr_array(edges)
    found = np.full((edges.shape[0], lengths.shape[1]), np.nan)
    for i in range(edges.shape[0]):
        row = slice(edges.indptr[i], edges.indptr[i + 1])
        if row.stop > row.start:
            paths = edges.data[row, None] + lengths[edges.indices[row]]
            found[i] = np.fmin.reduce(paths, axis=0)
    return found


def _with_nan(X) -> np.ndarray:
    """A dense copy with nan for missing pairs."""
    dense = as_stored(X, None, pairs=True)
    return fill_missing(np.array(dense, dtype=np.float64), square=False)


def constructed_distances(
    model, X, incoming, local_scale
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of new rows, whose distances are made as those of the training rows were."""
    if incoming is not None:
        raise ValueError("incoming is for metric='precomputed'; other metrics give it themselves.")
    new_scale = None
    rule = model._source_scale()
    fitted = not isinstance(rule, str)
    if fitted or local_scale is not None:
        level = np.exp(np.log(np.asarray(rule, dtype=np.float64)).mean()) if fitted else 1.0
        new_scale = checked_new_scale(local_scale, X.shape[0], fitted=fitted) / level
    there, back = distances_of_new(
        X,
        model._X,
        model._known,
        metric=model.metric,
        metric_kwds=model.metric_params,
        local_scale=rule,
        new_scale=new_scale,
    )
    return model.embedding_, there, back
