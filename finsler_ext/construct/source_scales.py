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

from typing import NamedTuple

import numpy as np
from numba import njit

from finsler_ext._threads import RowPool
from finsler_ext.construct.scales import relative_scale, umap_scales

__all__ = [
    "SCALES",
    "SourceScale",
    "named_scale",
    "perplexity_scale",
    "scale_of_new",
    "source_scale",
]

SCALES = ("mean", "none", "kth", "umap", "perplexity")
# t-SNE looks at three times as many neighbours as its perplexity; so the other way round here.
NEIGHBORS_PER_PERPLEXITY = 3.0
ENTROPY_TOLERANCE = 1e-6
MAX_HALVINGS = 100
# As for the other scales: none is below a thousandth of the median.
SCALE_FLOOR = 1e-3


class SourceScale(NamedTuple):
    """Scale of every source, and what a new point needs to get its own."""

    values: np.ndarray
    """Positive, with geometric mean 1."""
    floor: float
    """Least scale allowed, in the units of the distances."""
    unit: float
    """Geometric mean of the scales, in the units of the distances."""


def source_scale(kind, distances: np.ndarray, n_threads: int = 1) -> SourceScale:
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
        # Brought to level 1: only ratios of a user's scale matter.
        scale = relative_scale(kind, np.ones(len(distances)))
    positive = scale[scale > 0]
    floor = SCALE_FLOOR * float(np.median(positive)) if positive.size else 1.0
    scale = np.maximum(scale, floor)
    unit = float(np.exp(np.log(scale).mean()))
    return SourceScale(scale / unit, floor, unit)


def scale_of_new(kind: str, distances: np.ndarray, known: SourceScale) -> np.ndarray:
    """Scale of new points, from their own distances and by the measure of the known ones."""
    return np.maximum(named_scale(kind, distances), known.floor) / known.unit


def named_scale(kind: str, distances: np.ndarray, n_threads: int = 1) -> np.ndarray:
    """The scale of that name, row by row, in the units of the distances; may be zero."""
    if kind not in SCALES:
        raise ValueError(
            f"source_scale must be one of {SCALES}; a scale per point is local_scale; got {kind!r}."
        )
    if kind == "none":
        return np.ones(len(distances))
    if kind == "umap":
        return umap_scales(distances, n_threads=n_threads)[0].astype(np.float64)
    if kind == "perplexity":
        return perplexity_scale(distances, n_threads=n_threads)
    others = np.asarray(distances, dtype=np.float64)[:, 1:]
    known = np.isfinite(others)
    others = np.where(known, others, 0.0)
    if kind == "kth":
        return others.max(axis=1)
    return others.sum(axis=1) / np.maximum(known.sum(axis=1), 1)


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
