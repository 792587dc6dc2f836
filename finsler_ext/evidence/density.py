"""Does density vary? Split halves of the rows tell.

Divide all points at random into halves A and B, and let a_i and b_i be the log mean distance of
point i to its nearest k points of A and of B. If density does not vary, a and b are independent;
where it does, they agree. Points are not independent of each other: two points that share s of
their k neighbours in A have a correlation of about s/k in a. So under "density does not vary"

    Var(Σ a_i b_i) = σ_a² σ_b² Σ_ij s^A_ij s^B_ij / k² = σ_a² σ_b² ‖M_Aᵀ M_B‖² / k²,

M_A being the 0/1 matrix of points and their neighbours in A. All this needs no search: of the K
neighbours that a fit has anyway, about half are in A and half in B, so the first K/4 of each half
are nearly always among them.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.special import ndtr

from finsler_ext._threads import one_blas_thread, row_blocks
from finsler_ext.asymmetry import DENSITY, compare_skew
from finsler_ext.evidence.verdict import Evidence, HeightError, HeldOutPairs, Reliability, longer
from finsler_ext.scales import SCALE_FLOOR

# Random halves; the test takes the mean of their statistics, which is a little conservative.
N_SPLITS = 5
# Nearest points of each half, at most; t-SNE has 90 neighbours.
MOST_NEAREST = 7
# A list of neighbours is this many times as long as what is taken of each half; the few points
# (0.6 %) with fewer than that in one half are left out.
LIST_FACTOR = 4
# Correlation of the halves between neighbours below which points are spaced as on a grid: what is
# in one half is missing in the other. Random points are above −0.38, grids at −0.6 and below.
EVENLY_SPACED = -0.4
EVEN = "points are spaced more evenly than random ones, so there is no chance to compare with"
# Neighbours that a point is compared with, to see whether it differs from them.
SURROUNDINGS = 14
# With more points than this, the correlation of a point with its neighbours is the mean of some.
EACH_CORRELATED = 20_000
# Rows whose errors are computed at a time.
ROWS = 4096
# Points that are looked at: anchors, and some neighbours of each.
MAX_POINTS, ANCHOR_SHARE = 4000, 4


def density_evidence(indices, distances, *, random_state: int = 0) -> Evidence:
    """Evidence that the density of some points varies.

    Parameters
    ----------
    indices, distances : arrays of shape (n, K)
        Neighbours of each point, sorted, the point itself left out; −1 and inf where missing.
    random_state : int
        Decides on the halves.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import NearestNeighbors
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> search = NearestNeighbors(n_neighbors=14)
    >>> distances, indices = search.fit(X).kneighbors()
    >>> density_evidence(indices, distances).more_than_chance
    True
    >>> sphere = X / np.linalg.norm(X, axis=1, keepdims=True)
    >>> distances, indices = search.fit(sphere).kneighbors()
    >>> density_evidence(indices, distances).more_than_chance
    False
    """
    return density_findings(indices, distances, random_state=random_state)[0]


def density_findings(
    indices, distances, *, random_state: int = 0
) -> tuple[Evidence, HeldOutPairs | None]:
    """`density_evidence`, and the pairs that were held out."""
    indices, distances = np.asarray(indices), np.asarray(distances, dtype=np.float64)
    n, n_listed = indices.shape
    k = min(MOST_NEAREST, n_listed // LIST_FACTOR)
    if k < 1 or n < 4 * LIST_FACTOR:
        few = f"{n} points with {n_listed} neighbours are too few"
        return Evidence(DENSITY, reason=few), None
    rng = np.random.default_rng(random_state)
    rows = _looked_at(indices, rng)
    indices, distances = indices[rows], distances[rows]
    with one_blas_thread():
        splits = [
            _Split(indices, distances, rows, rng.permutation(n) < n // 2, k)
            for _ in range(N_SPLITS)
        ]
        splits = [split for split in splits if split.varies]
        if not splits:
            return Evidence(DENSITY, reason="all points have the same scale"), None
        z = float(np.mean([split.z for split in splits]))
        made = np.concatenate([split.made for split in splits])
        held = np.concatenate([split.held for split in splits])
        fidelity = compare_skew(held, made, float(np.mean([split.slope for split in splits])))
    even = _mean(splits, "near") < EVENLY_SPACED
    # noise falls with the number of neighbours: from k to K of them
    near, far = (longer(_mean(splits, name), n_listed / k) for name in ("near", "far"))
    p_value, reason = (float("nan"), EVEN) if even else (float(ndtr(-z)), "")
    evidence = Evidence(DENSITY, p_value, Reliability(near, far), fidelity, reason=reason)
    return evidence, HeldOutPairs.some_of(held, made)


def scale_error(indices, distances) -> HeightError:
    """Error of the log mean distance to K neighbours, and whether a point differs from them.

    In a ball of dimension d with K points at distances r_1 ≤ … ≤ r_K, the relative variance of
    the mean distance over other draws of the points is 1/(K d²) + 1/(K d (d + 2)): that of the
    ball's radius, and that of the places within it. 1/d is the mean of log(r_K/r_j). Errors of
    neighbours are correlated as in `density_evidence`.
    """
    indices, distances = np.asarray(indices), np.asarray(distances, dtype=np.float64)
    n = len(indices)
    known = (indices >= 0) & np.isfinite(distances)
    count = known.sum(axis=1)
    middle = np.median(distances[known], overwrite_input=True) if known.any() else 1.0
    floor = max(SCALE_FLOOR * middle, 1e-300)
    error, potential = np.empty(n), np.empty(n)
    for rows in row_blocks(n, ROWS):
        lengths = np.where(known[rows], np.maximum(distances[rows], floor), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            radius = np.fmax.reduce(lengths, axis=1)
            inverse = np.nansum(np.log(radius[:, None] / lengths), axis=1) / (count[rows] - 1)
            # 1/d² + 1/(d (d + 2)), with v = 1/d
            square = inverse**2 + inverse**2 / (1.0 + 2.0 * inverse)
            error[rows] = np.sqrt(square / count[rows])
            potential[rows] = np.log(np.nansum(lengths, axis=1) / count[rows])
    error[count <= 1] = np.nan
    # of longer lists the nearest: they share more, which would make points surer
    near, known = indices[:, :SURROUNDINGS], known[:, :SURROUNDINGS]
    count = np.maximum(known.sum(axis=1), 1)
    members = _incidence(near, known, n)
    mean = scipy.sparse.dia_array((1.0 / count[None, :], [0]), shape=(n, n)) @ members
    few = slice(None, None, 1 if n <= EACH_CORRELATED else n // MAX_POINTS)
    apart = scipy.sparse.csr_array(members[few] - mean[few] @ members)
    correlated = np.sqrt(np.asarray(apart.power(2).sum(axis=1)).ravel() / count[few])
    if n > EACH_CORRELATED:
        correlated = correlated.mean()
    deviation = potential - mean @ np.nan_to_num(potential)
    with np.errstate(invalid="ignore"):
        unsure = ~(np.abs(deviation) > 1.645 * error * correlated)
    return HeightError(potential, error, unsure)


def _looked_at(indices, rng) -> np.ndarray:
    """All points, or random ones with some of their neighbours."""
    n = len(indices)
    if n <= MAX_POINTS:
        return np.arange(n)
    anchors = rng.choice(n, MAX_POINTS // ANCHOR_SHARE, replace=False)
    near = indices[anchors, : 2 * (ANCHOR_SHARE - 1)]
    return np.unique(np.concatenate([anchors, near[near >= 0]]))


class _Split:
    """One random division of the points, as seen from some rows."""

    def __init__(self, indices, distances, rows, half, k):
        known = (indices >= 0) & np.isfinite(distances)
        own, member = half[rows], half[indices]
        taken = [_first(known & (member == side), k) for side in (False, True)]
        kept = np.logical_and(*(first.sum(axis=1) == k for first in taken))
        a, b = (_centred_log(distances, first, kept, own) for first in taken)
        self.varies = kept.sum() > 2 and float(a @ a) > 0 and float(b @ b) > 0
        if not self.varies:
            return
        n = len(half)
        shared = [_incidence(indices, first & kept[:, None], n) for first in taken]
        shared = shared[0].T @ shared[1]
        agreement, size = float(a @ b), float(np.sqrt((a @ a) * (b @ b)))
        spread = size / kept.sum() / k * np.sqrt(float((shared.data**2).sum()))
        self.z, self.far = agreement / spread, agreement / size
        # pairs of neighbours in one half: the scale in it has seen them, that in the other not
        place = np.full(n, -1)
        place[rows[kept]] = np.flatnonzero(kept)
        pairs = np.where(own[:, None], taken[1], taken[0]) & kept[:, None]
        source, column = np.nonzero(pairs)
        target = place[indices[source, column]]
        source, target = source[target >= 0], target[target >= 0]
        in_a = ~own[source]
        of_a, of_b = a[target] - a[source], b[target] - b[source]
        self.made, self.held = np.where(in_a, of_a, of_b), np.where(in_a, of_b, of_a)
        squares = float((self.made @ self.made) * (self.held @ self.held))
        self.near = float(self.made @ self.held) / np.sqrt(squares) if squares > 0 else 0.0
        made_square = float(self.made @ self.made)
        self.slope = float(self.made @ self.held) / made_square if made_square > 0 else 0.0


def _first(chosen, k) -> np.ndarray:
    return chosen & (np.cumsum(chosen, axis=1) <= k)


def _centred_log(distances, taken, kept, own) -> np.ndarray:
    """Log mean distance, with zero mean over the kept points of either half; 0 elsewhere."""
    scale = np.where(taken, distances, 0.0).sum(axis=1) / np.maximum(taken.sum(axis=1), 1)
    positive = scale[kept & (scale > 0)]
    level = np.zeros(len(scale))
    if positive.size:
        level[kept] = np.log(np.maximum(scale[kept], SCALE_FLOOR * np.median(positive)))
    for side in (False, True):  # a point of A has one point less of A around it
        here = kept & (own == side)
        if here.any():
            level[here] -= level[here].mean()
    return level


def _incidence(indices, chosen, n) -> scipy.sparse.csr_array:
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))])
    return scipy.sparse.csr_array(
        (np.ones(indptr[-1]), indices[chosen], indptr), shape=(len(indices), n)
    )


def _mean(splits, name: str) -> float:
    return float(np.mean([getattr(split, name) for split in splits]))
