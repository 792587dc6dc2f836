"""The scale of each source for directed distances: a unit of length, relative to all points.

    "mean"        mean distance to the neighbours
    "kth"         distance to the furthest of them
    "umap"        UMAP's σ: Σ_j exp(−max(0, d_ij − ρ_i)/σ_i) = log2(k + 1)
    "perplexity"  t-SNE's σ: the entropy of exp(−d_ij²/2σ_i²) is that of k/3 equal neighbours
    "none"        1: plain distances
    an array      any positive feature, asymmetry then comes from it instead of from density

All are divided by their geometric mean, so that directed distances stay in the units of the
data.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from finsler_ext._threads import RowPool
from finsler_ext.dissimilarity.scales import mean_neighbor_distance, relative_scale, umap_scales

__all__ = ["SCALES", "named_scale", "perplexity_scale", "source_scale"]

SCALES = ("mean", "none", "kth", "umap", "perplexity")
# t-SNE looks at three times as many neighbours as its perplexity; so the other way round here.
NEIGHBORS_PER_PERPLEXITY = 3.0
ENTROPY_TOLERANCE = 1e-6
MAX_HALVINGS = 100
# As for the other scales: none is below a thousandth of the median.
SCALE_FLOOR = 1e-3


def source_scale(kind, distances: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """Positive scale of every source, with geometric mean 1.

    Parameters
    ----------
    kind : str or array of shape (n,)
        One of the names above, or a positive value per point.
    distances : array of shape (n, k + 1)
        Sorted distances to the k neighbours, the point itself first; inf where missing.
    """
    if isinstance(kind, str):
        scale = named_scale(kind, distances, n_threads)
    else:
        scale = relative_scale(kind, np.ones(len(distances)))
    return scale / np.exp(np.log(scale).mean())


def named_scale(kind: str, distances: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """The scale of that name, in the units of the distances; positive everywhere."""
    if kind not in SCALES:
        raise ValueError(
            f"local_scale must be one of {SCALES} or an array with a positive entry per point, "
            f"got {kind!r}."
        )
    if kind == "none":
        return np.ones(len(distances))
    if kind == "mean":
        scale = mean_neighbor_distance(distances)
    elif kind == "kth":
        finite = np.where(np.isfinite(distances), distances, -np.inf)
        scale = finite.max(axis=1).astype(np.float64)
    elif kind == "umap":
        scale = umap_scales(distances, n_threads=n_threads)[0].astype(np.float64)
    else:
        scale = perplexity_scale(distances, n_threads=n_threads)
    usual = np.median(scale[scale > 0]) if np.any(scale > 0) else 1.0
    return np.where(scale > 0, np.maximum(scale, SCALE_FLOOR * usual), SCALE_FLOOR * usual)


def perplexity_scale(
    distances: np.ndarray, perplexity: float | None = None, n_threads: int = 1
) -> np.ndarray:
    """t-SNE's σ of every source; a third as many as there are neighbours by default."""
    distances = np.ascontiguousarray(distances[:, 1:], dtype=np.float64)
    n, k = distances.shape
    if perplexity is None:
        perplexity = max(k / NEIGHBORS_PER_PERPLEXITY, 1.0)
    sigma = np.empty(n)
    with RowPool(n, n_threads) as pool:
        pool.run(_fit_entropy, distances, np.log(float(perplexity)), sigma)
    return sigma


@njit(nogil=True, cache=True)
def _fit_entropy(start, stop, distances, target, sigma):
    for i in range(start, stop):
        nearest, furthest = np.inf, 0.0
        for d in distances[i]:
            if np.isfinite(d):
                nearest, furthest = min(nearest, d), max(furthest, d)
        if furthest == 0.0:  # nothing but duplicates; floored by the caller
            sigma[i] = 0.0
            continue
        low, high, beta = 0.0, np.inf, 1.0 / furthest**2
        for _ in range(MAX_HALVINGS):
            total, weighted = 0.0, 0.0
            for d in distances[i]:
                if np.isfinite(d):
                    excess = d * d - nearest * nearest
                    weight = np.exp(-beta * excess)
                    total += weight
                    weighted += weight * excess
            entropy = np.log(total) + beta * weighted / total
            if abs(entropy - target) < ENTROPY_TOLERANCE:
                break
            if entropy > target:
                low = beta
                beta = 2.0 * beta if np.isinf(high) else 0.5 * (low + high)
            else:
                high = beta
                beta = 0.5 * (low + high)
        # Ties or too few neighbours can leave the entropy out of reach.
        sigma[i] = min(1.0 / np.sqrt(2.0 * beta), furthest) if beta > 0.0 else furthest
