"""Does the height mean anything? Label-free scores of a Finsler embedding.

The *skew* of data is what changes sign when source and target are swapped:
log s_j − log s_i on the edges of a neighbour graph with local scales s, or D_ij − D_ji for
directed distances. The skew of an embedding is height_j − height_i, or F_ij − F_ji =
2 ω (height_j − height_i). `skew_fidelity` compares the two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import cg
from scipy.stats import spearmanr

from finsler_ext._threads import one_blas_thread
from finsler_ext.spaces import RANDERS, Space
from finsler_ext.spaces.base import height

__all__ = [
    "SkewFidelity",
    "density_height",
    "explained_share",
    "is_directed",
    "neighborhood_preservation",
    "pair_skew",
    "skew_fidelity",
    "skew_pairs",
    "skew_potential",
]

# More pairs than this are not ranked, and not taken from a dense matrix: an evenly spaced
# selection stands for them.
MAX_RANKED_PAIRS = 1_000_000
MAX_PAIRS = 4_000_000
# Scales (or distances) that differ by less than this share are equal but for rounding.
ROUNDING = 1e-5
# Of the potential of directed distances, relative.
POTENTIAL_TOLERANCE = 1e-6


class SkewFidelity(NamedTuple):
    """How faithfully the height shows the asymmetry of the data.

    sign : share of pairs whose skew has the same sign in data and embedding (0.5 is chance)
    rank : Spearman correlation of the two skews
    explained : 1 − Σ(a − βb)²/Σa²
    reason : why the numbers are nan; empty otherwise
    """

    sign: float
    rank: float
    explained: float
    reason: str = ""

    def __str__(self) -> str:
        if self.reason:
            return f"skew fidelity undefined: {self.reason}"
        return (
            f"skew fidelity: sign {self.sign:.2f} (0.50 is chance), rank {self.rank:.2f}, "
            f"explained {self.explained:.2f}"
        )


def skew_fidelity(
    embedding,
    *,
    graph=None,
    local_scale=None,
    distances=None,
    omega_norm: float | None = None,
    space: Space = RANDERS,
) -> SkewFidelity:
    """Compare the skew of the data with the skew of an embedding.

    Parameters
    ----------
    embedding : array of shape (n, m)
        The last column is the height. Rows with nan are left out.
    graph : sparse matrix of shape (n, n), optional
        Directed edges, for data given by ``local_scale``: a_ij = log s_j − log s_i.
    local_scale : array of shape (n,), optional
    distances : array or sparse matrix of shape (n, n), optional
        Directed distances, rows being sources: a_ij = D_ij − D_ji over all pairs that have
        both.
    omega_norm : float, optional
        With ``distances``: compare with F_ij − F_ji itself (β = 1) instead of with the
        best-fitting multiple of the height difference.
    space : Space
        Whose F it is.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> ring = scipy.sparse.csr_array(np.roll(np.eye(4), 1, axis=1))
    >>> scale = np.array([1.0, 2.0, 3.0, 4.0])
    >>> skew_fidelity(np.log(scale)[:, None], graph=ring, local_scale=scale).sign
    1.0
    """
    data, shown = skew_pairs(
        embedding,
        graph=graph,
        local_scale=local_scale,
        distances=distances,
        omega_norm=omega_norm,
        space=space,
    )
    slope = 1.0 if omega_norm is not None and distances is not None else None
    return _compare(data, shown, slope)


def explained_share(embedding, distances, omega_norm: float, space: Space = RANDERS) -> float:
    """``explained`` of `skew_fidelity` alone: the ranks of all pairs take long."""
    given = {"distances": distances, "omega_norm": omega_norm, "space": space}
    data, shown = skew_pairs(embedding, **given)
    if not data.any() or not shown.any():
        return float("nan")
    rest = data - shown
    return float(1.0 - (rest @ rest) / (data @ data))


def skew_pairs(
    embedding,
    *,
    graph=None,
    local_scale=None,
    distances=None,
    omega_norm: float | None = None,
    space: Space = RANDERS,
) -> tuple[np.ndarray, np.ndarray]:
    """The skew of the data and the skew of the embedding, pair by pair.

    Parameters are those of `skew_fidelity`, which compares the two.
    """
    source, target, data = pair_skew(distances=distances, graph=graph, local_scale=local_scale)
    shown = space.shown_skew(np.asarray(embedding), source, target, omega_norm or 0.0)
    if omega_norm is not None and distances is not None:
        shown = 2.0 * omega_norm * shown
    known = np.isfinite(data) & np.isfinite(shown)
    return data[known], shown[known]


def pair_skew(
    *, distances=None, graph=None, local_scale=None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs (source, target) and the skew of the data on each; see `skew_fidelity`.

    nan where it is not known. Of directed distances every pair comes once.
    """
    if distances is not None:
        return _distance_skew(distances)
    if graph is None or local_scale is None:
        raise ValueError("The skew needs either distances, or graph and local_scale.")
    edges = scipy.sparse.coo_array(graph)
    source, target = edges.coords
    with np.errstate(divide="ignore", invalid="ignore"):
        log_scale = np.log(np.asarray(local_scale, dtype=np.float64))
        data = log_scale[target] - log_scale[source]
    data[np.abs(data) < ROUNDING] = 0.0
    return source, target, data


def _distance_skew(distances):
    if scipy.sparse.issparse(distances):
        D = scipy.sparse.csr_array(distances, dtype=np.float64)
        stored = scipy.sparse.csr_array((np.ones_like(D.data), D.indices, D.indptr), shape=D.shape)
        both = scipy.sparse.triu(stored.multiply(stored.T), k=1).tocoo()
        source, target = both.coords
        if source.size == 0:
            return source, target, np.empty(0)
        there = np.asarray(D[source, target]).ravel()
        back = np.asarray(D[target, source]).ravel()
    else:
        D = np.asarray(distances)  # taken as it is: a float64 copy may be larger than all else
        source, target = _pairs(D.shape[0])
        there, back = (D[pair].astype(np.float64) for pair in ((source, target), (target, source)))
    with np.errstate(invalid="ignore"):
        skew = there - back
        skew[np.abs(skew) < ROUNDING * (there + back)] = 0.0
    return source, target, skew


def skew_potential(distances) -> np.ndarray:
    """The levels s with the least Σ (s_j − s_i − (D_ij − D_ji))² over pairs known both ways.

    Points of which no pair is known both ways are nan. Groups of points without a known pair
    between them have zero mean each.

    Examples
    --------
    >>> skew_potential(np.array([[0.0, 3.0], [1.0, 0.0]]))
    array([-1.,  1.])
    """
    source, target, skew = _distance_skew(distances)
    known = np.isfinite(skew)
    source, target, skew = source[known], target[known], skew[known]
    n = distances.shape[0]
    ones = np.ones(source.size)
    pairs = scipy.sparse.coo_array((ones, (source, target)), shape=(n, n)).tocsr()
    pairs = pairs + pairs.T
    degree = np.asarray(pairs.sum(axis=1)).ravel()
    inverse = np.divide(1.0, degree, out=np.zeros(n), where=degree > 0)
    diagonal, scaling = (
        scipy.sparse.dia_array((d[None, :], [0]), shape=(n, n)) for d in (degree, inverse)
    )
    surplus = np.bincount(target, skew, n) - np.bincount(source, skew, n)
    with one_blas_thread():
        level, _ = cg(diagonal - pairs, surplus, M=scaling, rtol=POTENTIAL_TOLERANCE)
    return np.where(degree > 0, level, np.nan)


def is_directed(D) -> bool:
    """True where some pair of distances that has both directions depends on the direction."""
    if scipy.sparse.issparse(D):
        D = scipy.sparse.csr_array(D, dtype=np.float64)
        stored = scipy.sparse.csr_array((np.ones_like(D.data), D.indices, D.indptr), shape=D.shape)
        there = (D.multiply(stored.T)).tocsr()
        back = (D.T.tocsr().multiply(stored)).tocsr()
        differ = abs(there - back) - ROUNDING * (there + back)
        return bool(differ.nnz and differ.max() > 0)
    with np.errstate(invalid="ignore"):  # inf - inf: both directions are missing
        return bool(np.any(np.abs(D - D.T) > ROUNDING * (D + D.T)))


def _pairs(n: int):
    """All pairs of n points, or those at an evenly spaced selection of index offsets."""
    if n * (n - 1) // 2 <= MAX_PAIRS:
        return np.triu_indices(n, k=1)
    offsets = np.unique(np.linspace(1, n // 2, max(1, MAX_PAIRS // n)).astype(np.int64))
    source = np.repeat(np.arange(n), offsets.size)
    return source, (source + np.tile(offsets, n)) % n


def _compare(data, shown, slope) -> SkewFidelity:
    undefined = float("nan")
    if data.size == 0 or not np.any(data):
        reason = "the data has no asymmetry to show"
        return SkewFidelity(undefined, undefined, undefined, reason)
    if not np.any(shown):
        return SkewFidelity(undefined, undefined, undefined, "the height is flat")
    unequal = (data != 0) & (shown != 0)
    same = np.sign(data[unequal]) == np.sign(shown[unequal])
    sign = float(np.mean(same)) if same.size else undefined
    stride = -(-data.size // MAX_RANKED_PAIRS)
    few = slice(None, None, stride)
    constant = np.ptp(data[few]) == 0 or np.ptp(shown[few]) == 0
    rank = undefined if constant else float(spearmanr(data[few], shown[few]).statistic)
    if slope is None:
        slope = float(data @ shown / (shown @ shown))
    rest = data - slope * shown
    return SkewFidelity(sign, rank, float(1.0 - (rest @ rest) / (data @ data)))


def density_height(embedding, local_scale) -> float:
    """Spearman correlation between height and log local scale: sparse above dense is +1."""
    level = np.asarray(height(embedding), dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_scale = np.log(np.asarray(local_scale, dtype=np.float64))
    known = np.isfinite(level) & np.isfinite(log_scale)
    if known.sum() < 3 or np.ptp(level[known]) == 0 or np.ptp(log_scale[known]) == 0:
        return float("nan")
    return float(spearmanr(level[known], log_scale[known]).statistic)


def neighborhood_preservation(neighbors, embedding) -> float:
    """Mean share of each point's data neighbours among as many embedding neighbours.

    Parameters
    ----------
    neighbors : array of shape (n, k)
        Indices of the data neighbours, the point itself left out; −1 where missing.
    embedding : array of shape (n, m)
    """
    from sklearn.neighbors import NearestNeighbors

    neighbors = np.asarray(neighbors)
    known = np.isfinite(embedding).all(axis=1)
    rows = np.flatnonzero(known)
    k = min(neighbors.shape[1], rows.size - 1)
    found = NearestNeighbors(n_neighbors=k).fit(np.asarray(embedding)[rows])
    shown = rows[found.kneighbors(return_distance=False)]
    wanted = neighbors[rows, :k]
    hits = sum((wanted == shown[:, [c]]).any(axis=1).astype(np.float64) for c in range(k))
    present = (wanted >= 0).sum(axis=1)
    return float(np.mean(hits[present > 0] / present[present > 0]))
