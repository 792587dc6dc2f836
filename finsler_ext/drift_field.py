"""A drift that changes from place to place, over any finished map.

One drift ω for all places says F_ij − F_ji = 2 ω·(y_j − y_i): the asymmetry is a difference of
heights. Where it turns round or runs together, no height shows it, but a field may:

    D_ij − D_ji ≈ 2 ∫ v·dy  from y_i to y_j,      v(y) = Σ_k c_k φ_k(y).

The basis φ is 1, the map coordinates, and Gaussians around a few places of the map, so v has a few
dozen numbers. They follow by least squares with a ridge on the Gaussians, which is chosen on pairs
of its own; the shares reported are those of pairs that neither saw.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state

from finsler_ext._threads import one_blas_thread
from finsler_ext.asymmetry import Asymmetry
from finsler_ext.metrics import asymmetry_between

__all__ = ["DriftField", "fit_drift_field"]

# Places of the map around which the field may bend; three columns then have 57 numbers.
N_CENTERS = 16
# Width of a Gaussian in units of the mean distance between neighbouring centres: neighbouring ones
# overlap, so that the field is smooth between them.
WIDTH = 1.0
# Strengths of the ridge, relative to the mean square of a column; inf leaves an affine field.
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, np.inf)
# More pairs than this add nothing to a few dozen numbers.
MOST_PAIRS = 100_000
# Shares of the pairs to fit, to choose the ridge by, and to judge by.
FITTED, CHOSEN = 0.6, 0.2
# Simpson's rule along the straight line from source to target; exact for fields up to cubic.
NODES, NODE_WEIGHTS = (0.0, 0.5, 1.0), (1 / 6, 4 / 6, 1 / 6)
# Less of the asymmetry than this is not worth a picture.
WORTH_SHOWING = 0.1
# A field must explain this much more than one drift, in shares of the asymmetry.
WORTH_A_FIELD = 0.05
# A part (turning, converging) has this share of the field's changes at least, to be named; a shear
# turns by 0.71.
NAMED_PART = 0.85


@dataclass(frozen=True)
class Basis:
    """1, x, y and Gaussians around some places of the map."""

    centers: np.ndarray
    width: float
    origin: np.ndarray

    def values(self, points) -> np.ndarray:
        """Of shape (n, 3 + number of centres)."""
        offset = points[:, None, :2] - self.centers
        bumps = np.exp(-0.5 * (offset**2).sum(axis=2) / self.width**2)
        return np.column_stack([np.ones(len(points)), points[:, :2] - self.origin, bumps])

    def design(self, positions, source, target) -> np.ndarray:
        """Columns 2 ∫ φ_k dy_c from source to target, k slow and c fast."""
        step = positions[target] - positions[source]
        mean: np.ndarray | float = 0.0
        for node, weight in zip(NODES, NODE_WEIGHTS, strict=True):
            mean = mean + weight * self.values(positions[source, :2] + node * step[:, :2])
        return (2.0 * np.asarray(mean)[:, :, None] * step[:, None, :]).reshape(len(step), -1)


@dataclass(frozen=True)
class DriftField:
    """A smooth drift over a map; call it with points of shape (n, ≥ 2) to get its vectors.

    Moving along a vector costs more than moving back; the cheaper way leads against it.

    Attributes
    ----------
    share : float
        Share of Σ (D_ij − D_ji)² that the field explains on pairs held out.
    one_drift : array of shape (m,)
        The best drift that is the same everywhere.
    one_drift_share : float
        What that one explains on the same pairs.
    case : {"one drift", "field", "none"}
        Which of the two to show, if any.
    verdict : str
        The case in words.
    turning, converging : float
        Mean curl and mean divergence of the field over the points of the map.
    ridge : float
    n_numbers : int
        Coefficients of the field.
    """

    coefficients: np.ndarray
    basis: Basis
    share: float
    one_drift: np.ndarray
    one_drift_share: float
    case: str
    verdict: str
    turning: float
    converging: float
    ridge: float

    @property
    def n_numbers(self) -> int:
        used = self.coefficients[:3] if np.isinf(self.ridge) else self.coefficients
        return int(used.size)

    def __call__(self, points) -> np.ndarray:
        return self.basis.values(np.asarray(points, dtype=np.float64)) @ self.coefficients

    def skew(self, positions, source, target) -> np.ndarray:
        """D_ij − D_ji by the field, for pairs of rows i, j of the map it was fitted over."""
        positions = np.asarray(positions, dtype=np.float64)
        return self.basis.design(positions, source, target) @ self.coefficients.ravel()


def fit_drift_field(
    embedding,
    *,
    distances=None,
    graph=None,
    local_scale=None,
    asymmetry: Asymmetry | None = None,
    n_centers: int = N_CENTERS,
    random_state=0,
) -> DriftField:
    """Fit a drift field to the asymmetry of the data, over a finished map.

    Minimises Σ (D_ij − D_ji − 2∫v·dy)² plus a ridge over pairs of points.

    Parameters
    ----------
    embedding : fitted estimator, or array of shape (n, m ≥ 2)
        Any map of the points: FinslerUMAP's with its height, or a plain UMAP's. The field depends
        on the first two columns and has as many components as there are columns. Rows with nan
        are left out. A fitted estimator also says what its asymmetry is.
    distances : array or sparse matrix of shape (n, n), graph, frame or edge list, optional
        Directed distances, rows being sources (see `finsler_ext.read_directed`): the asymmetry is
        D_ij − D_ji where both are known. Edges of a digraph without a way back count as in a fit.
    graph, local_scale : sparse matrix of shape (n, n) and array of shape (n,), optional
        For ordinary data: log s_j − log s_i on the edges of the graph.
    asymmetry : Asymmetry, optional
        In place of these: ``asymmetry_`` of a fitted estimator.
    n_centers : int, default=16
        Places around which the field may bend.
    random_state : int, RandomState or None, default=0
        Decides which pairs are held out.

    Returns
    -------
    DriftField

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.normal(size=(100, 2))
    >>> turning = Y[:, :1] * Y[:, 1] - Y[:, 1:] * Y[:, 0]  # 2∫v·dy of v = (−y, x)/2
    >>> field = fit_drift_field(Y, distances=5.0 + turning / 2)
    >>> field.case, round(field.turning, 2), round(field.share, 2)
    ('field', 1.0, 1.0)
    """
    positions = np.asarray(getattr(embedding, "embedding_", embedding), dtype=np.float64)
    if positions.ndim != 2 or positions.shape[1] < 2:
        raise ValueError(
            f"embedding must have two map columns at least, got shape {positions.shape}."
        )
    rng = check_random_state(random_state)
    if asymmetry is None and distances is None and graph is None:
        asymmetry = getattr(embedding, "asymmetry_", None)
    if asymmetry is None:
        asymmetry = asymmetry_between(graph, local_scale, distances)
    source, target, skew = asymmetry.pairs
    n = 1 + max(source.max(initial=-1), target.max(initial=-1))
    if n > len(positions):
        raise ValueError(f"embedding has {len(positions)} rows, the data has {n} points.")
    there = np.asarray(np.isfinite(positions).all(axis=1))
    known = np.isfinite(skew) & there[source] & there[target]
    source, target, skew = source[known], target[known], skew[known]
    if skew.size > MOST_PAIRS:
        few = rng.permutation(skew.size)[:MOST_PAIRS]
        source, target, skew = source[few], target[few], skew[few]
    least = 10 * positions.shape[1]
    if skew.size < least:
        raise ValueError(
            f"distances: a drift field needs at least {least} pairs that are known both ways and "
            f"have a place on the map, got {skew.size}."
        )
    if not skew.any():
        raise ValueError("distances: the data has no asymmetry to fit a drift to.")
    places = positions[there]
    with one_blas_thread():
        centers, width = _centers(places[:, :2], n_centers, rng)
        basis = Basis(centers, width, places[:, :2].mean(axis=0))
        design = basis.design(positions, source, target)
        return _fitted(design, skew, basis, places, rng)


def _fitted(design, skew, basis: Basis, places, rng) -> DriftField:
    n_columns = places.shape[1]
    order = rng.permutation(skew.size)
    first, second = int(FITTED * skew.size), int((FITTED + CHOSEN) * skew.size)
    fit, choose, judge = order[:first], order[first:second], order[second:]
    gram, pull = design[fit].T @ design[fit], design[fit].T @ skew[fit]
    constant = slice(0, n_columns)
    one = np.linalg.lstsq(gram[constant, constant], pull[constant], rcond=None)[0]
    best, lowest, chosen = np.zeros(len(pull)), np.inf, np.inf
    for ridge in RIDGES:
        found = _ridge(gram, pull, ridge, 3 * n_columns)
        error = float(((skew[choose] - design[choose] @ found) ** 2).sum())
        if error < lowest:
            best, lowest, chosen = found, error, ridge
    share = _share(skew[judge], design[judge] @ best)
    one_share = _share(skew[judge], design[judge][:, constant] @ one)
    coefficients = best.reshape(-1, n_columns)
    turning, converging, spread = _derivatives(coefficients, basis, places)
    case, verdict = _verdict(share, one_share, turning, converging, spread)
    return DriftField(
        coefficients=coefficients,
        basis=basis,
        share=share,
        one_drift=one,
        one_drift_share=one_share,
        case=case,
        verdict=verdict,
        turning=turning,
        converging=converging,
        ridge=chosen,
    )


def _ridge(gram, pull, ridge: float, n_free: int) -> np.ndarray:
    """Least squares with a ridge on all but the first ``n_free`` numbers."""
    if np.isinf(ridge):
        found, free = np.zeros(len(pull)), slice(0, n_free)
        found[free] = np.linalg.lstsq(gram[free, free], pull[free], rcond=None)[0]
        return found
    penalty = np.full(len(pull), ridge * np.trace(gram) / len(pull))
    penalty[:n_free] *= 1e-6  # columns may be equal, on a line for example
    return np.linalg.solve(gram + np.diag(penalty + 1e-300), pull)


def _share(skew, shown) -> float:
    return float(1.0 - ((skew - shown) ** 2).sum() / max((skew**2).sum(), 1e-300))


def _centers(places, n_centers, rng) -> tuple[np.ndarray, float]:
    distinct = np.unique(places, axis=0)
    k = max(1, min(n_centers, len(distinct) // 4))
    seed = rng.randint(np.iinfo(np.int32).max)
    sample = distinct[rng.permutation(len(distinct))[:5000]]
    centers = KMeans(k, n_init=1, random_state=seed).fit(sample).cluster_centers_
    if k == 1:
        return centers, max(float(places.std()), 1e-12)
    apart = np.linalg.norm(centers[:, None] - centers, axis=2)
    np.fill_diagonal(apart, np.inf)
    return centers, max(WIDTH * float(apart.min(axis=1).mean()), 1e-12)


def _derivatives(coefficients, basis: Basis, places):
    """Mean curl, mean divergence, and how much the field changes over the map."""
    few = places[:: max(1, len(places) // 2000)]
    h = 1e-4 * max(float(places[:, :2].std()), 1e-12)
    slope = []
    for axis in range(2):
        shift = np.zeros(few.shape[1])
        shift[axis] = h
        there, back = (basis.values(few + s * shift) @ coefficients for s in (1, -1))
        slope.append((there - back)[:, :2] / (2 * h))
    by_x, by_y = slope
    curl, divergence = by_x[:, 1] - by_y[:, 0], by_x[:, 0] + by_y[:, 1]
    changes = np.sqrt((by_x**2 + by_y**2).sum(axis=1).mean())
    return float(curl.mean()), float(divergence.mean()), float(changes)


def _verdict(share, one_share, turning, converging, spread) -> tuple[str, str]:
    beside = f"a field explains {share:.0%} of the asymmetry, one drift {one_share:.0%}"
    if max(share, one_share) < WORTH_SHOWING:
        return "none", f"neither one drift nor a smooth field: {beside}"
    if share - one_share < WORTH_A_FIELD:
        return "one drift", f"one drift is enough: {beside}"
    # A field v = a (−y, x) or a (x, y) has changes of size √2 a, and a curl or divergence of 2 a.
    # The cheaper way leads against the drift.
    kind = "the cheaper way changes from place to place"
    if abs(turning) >= NAMED_PART * np.sqrt(2) * spread:
        kind = "the cheaper way turns " + ("clockwise" if turning > 0 else "anticlockwise")
    elif abs(converging) >= NAMED_PART * np.sqrt(2) * spread:
        kind = "the cheaper way runs " + ("together" if converging > 0 else "apart")
    return "field", f"{kind}: {beside}"
