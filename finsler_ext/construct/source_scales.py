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

from finsler_ext.construct.gaussian import NEIGHBORS_PER_PERPLEXITY, gaussian_scales
from finsler_ext.construct.scales import SCALE_FLOOR, relative_scale, umap_scales

__all__ = [
    "SCALES",
    "SourceScale",
    "named_scale",
    "perplexity_scale",
    "scale_of_new",
    "source_scale",
]

SCALES = ("mean", "none", "kth", "umap", "perplexity")


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
    """t-SNE's σ of every source; a third as many as there are neighbours by default.

    At most the distance to the furthest neighbour, and 0 where all are duplicates.
    """
    others = np.asarray(distances[:, 1:], dtype=np.float64)
    if perplexity is None:
        perplexity = max(others.shape[1] / NEIGHBORS_PER_PERPLEXITY, 1.0)
    furthest = np.where(np.isfinite(others), others, 0.0).max(axis=1)
    return np.minimum(gaussian_scales(others, perplexity, n_threads=n_threads), furthest)
