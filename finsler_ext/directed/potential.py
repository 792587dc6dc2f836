"""The potential of directed data: one number per point that depends on no map and no drift.

Of a digraph with strengths s_ij ≥ 0 from i to j it solves

    Σ_j (s_ij + s_ji) (φ_i − φ_j) + α φ_i = Σ_j (s_ij − s_ji),

the minimum of Σ s_ij (φ_i − φ_j − 1)² + α Σ φ_i² (SpringRank; De Bacco, Larremore and Moore 2018):
edges lead downhill. Of directed distances it has the least Σ (φ_j − φ_i − (D_ij − D_ji))²: what is
costly to reach lies high.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.stats import rankdata

from finsler_ext._threads import one_blas_thread
from finsler_ext.directed.laplacian import solve_laplacian
from finsler_ext.schema import array, saved

# What "auto" chooses from, relative to the mean degree. With inf, φ is what leaves a node less what
# enters it.
RIDGES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, np.inf)
# Of the one-way edges this share is held out at a time, at least three times and until as many
# edges as this have been (small graphs: at most 20 times).
HELD_OUT, HELD_EDGES, FEWEST_ROUNDS, MOST_ROUNDS = 0.2, 2000, 3, 20


@saved(values=array("f8", "n", nan=True), component=array("i4 i8", "n", "[-1, n)"))
class Potential(NamedTuple):
    """A potential, and which of its values compare.

    values : array of shape (n,); nan for isolated points
    component : array of shape (n,)
        Nothing relates points of different components, and each component has zero mean; −1 for
        isolated points.
    """

    values: np.ndarray
    component: np.ndarray


def graph_potential(strengths, ridge: float | str = 0.0) -> Potential:
    """φ of each node of a digraph, sources above targets.

    Parameters
    ----------
    strengths : matrix of shape (n, n)
        s_ij ≥ 0, rows being sources. The diagonal does not count.
    ridge : float or "auto", default=0.0
        α as a multiple of the mean degree Σ_j (s_ij + s_ji). It draws all values to zero, those of
        nodes with few edges most. 0 gives the best order of distant nodes, a ridge tells the
        direction of single edges better; "auto" is the one that does so on edges held out
        (`choose_ridge`).

    Examples
    --------
    >>> chain = scipy.sparse.csr_array(np.diag(np.ones(3), k=1))
    >>> graph_potential(chain).values
    array([ 1.5,  0.5, -0.5, -1.5])
    """
    edges = _edges(strengths)
    return _ridged(edges, choose_ridge(edges) if ridge == "auto" else float(ridge))


def _edges(strengths) -> scipy.sparse.coo_array:
    """Positive entries off the diagonal."""
    entries = scipy.sparse.coo_array(scipy.sparse.csr_array(strengths, dtype=np.float64))
    source, target = entries.coords
    proper = (source != target) & (entries.data > 0)
    kept = entries.data[proper], (source[proper], target[proper])
    return scipy.sparse.coo_array(kept, shape=entries.shape)


def _ridged(edges: scipy.sparse.coo_array, ridge: float) -> Potential:
    n = edges.shape[0]
    out, into = (np.bincount(end, edges.data, n) for end in edges.coords)
    degree = out + into
    strengths = scipy.sparse.csr_array(edges)
    return _held(strengths + strengths.T, out - into, degree, ridge)


def _held(springs, flow, degree, ridge: float) -> Potential:
    """(L + α) φ = flow with α = ridge · mean degree; of an infinite ridge its direction."""
    mean_degree = float(degree[degree > 0].mean()) if degree.any() else 1.0
    alpha = 0.0 if np.isinf(ridge) else ridge * mean_degree
    values, component = solve_laplacian(springs, flow, alpha)
    if np.isinf(ridge):
        values = flow / mean_degree
    return _marked(values, component, degree > 0)


def _marked(values, component, related) -> Potential:
    return Potential(np.where(related, values, np.nan), np.where(related, component, -1))


@one_blas_thread()
def choose_ridge(strengths) -> float:
    """The ridge of `RIDGES` that best tells the direction of one-way edges held out.

    A fifth of the one-way edges is left out at a time, and every ridge is judged by the area under
    the ROC curve of φ_i − φ_j on them and their reverses. 0 where no edge is one-way.

    Examples
    --------
    >>> chain = scipy.sparse.csr_array(np.diag(np.ones(30), k=1))
    >>> choose_ridge(chain + chain.T)
    0.0
    """
    edges = _edges(strengths)
    source, target = edges.coords
    n = np.int64(edges.shape[0])
    one_way = np.flatnonzero(~np.isin(source * n + target, target * n + source))
    n_held = int(HELD_OUT * one_way.size)
    if n_held == 0:
        return 0.0
    rng = np.random.default_rng(0)
    rounds = int(np.clip(-(-HELD_EDGES // n_held), FEWEST_ROUNDS, MOST_ROUNDS))
    areas = np.zeros(len(RIDGES))
    for _ in range(rounds):
        held = rng.permutation(one_way)[:n_held]
        rest = np.ones(edges.nnz, dtype=bool)
        rest[held] = False
        kept = edges.data[rest], (source[rest], target[rest])
        known = scipy.sparse.coo_array(kept, shape=edges.shape)
        for place, ridge in enumerate(RIDGES):
            values = np.nan_to_num(_ridged(known, ridge).values)
            areas[place] += direction_auc(values[source[held]] - values[target[held]])
    return RIDGES[int(areas.argmax())]


def direction_auc(fall) -> float:
    """Area under the ROC curve that tells edges from their reverses by φ_i − φ_j; 0.5 is chance.

    Where it is not known (nan), it tells nothing.
    """
    fall = np.nan_to_num(np.asarray(fall, dtype=np.float64))
    n = fall.size
    rank = rankdata(np.concatenate([fall, -fall]))[:n].sum()
    return float((rank - n * (n + 1) / 2) / n**2)


def pair_potential(source, target, skew, n: int, ridge: float = 0.0) -> Potential:
    """φ of n points with the least Σ (φ_target − φ_source − skew)² over pairs of points.

    The ridge is a multiple of the mean number of pairs that a point is in.

    Examples
    --------
    >>> pair_potential(np.array([0, 1]), np.array([1, 2]), np.array([2.0, 4.0]), 4).values
    array([-2.66666667, -0.66666667,  3.33333333,         nan])
    """
    once = scipy.sparse.csr_array((np.ones(len(source)), (source, target)), shape=(n, n))
    springs = once + once.T
    flow = np.bincount(target, skew, n) - np.bincount(source, skew, n)
    degree = np.asarray(springs.sum(axis=1)).ravel()
    return _held(springs, flow, degree, ridge)
