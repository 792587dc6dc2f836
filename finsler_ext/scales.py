"""Local scales: what a unit of distance means at each source.

The scale of point i belongs to the edges that leave i, so p_ij uses i's scale and p_ji uses
j's. That is where the asymmetry of ordinary data comes from: leaving a dense region, whose
scale is small, costs more than entering it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from finsler_ext._threads import run_rows
from finsler_ext.schema import array, number, saved

# Bisection stops when the row sum is this close to log2(k); umap-learn's figure.
SUM_TOLERANCE = 1e-5
# umap-learn's figure.
UMAP_HALVINGS = 64
# No scale is smaller than this share of the mean neighbour distance; umap-learn's figure.
SCALE_FLOOR = 1e-3
# Scales of duplicates are zero; a level is floored at this share of the median scale.
SMALLEST_SCALE = 1e-6


def umap_scales(
    distances: np.ndarray,
    *,
    local_connectivity: float = 1.0,
    n_neighbors: float | None = None,
    row_sum: float | None = None,
    overall: float | None = None,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """UMAP's (σ, ρ) of every source: Σ_j exp(−max(0, d_ij − ρ_i)/σ_i) = log2(k).

    Parameters
    ----------
    distances : array of shape (n, k)
        Sorted distances to the k neighbours, the point itself first; inf where missing.
    local_connectivity : float
        ρ_i is the distance at which this many neighbours are fully connected.
    n_neighbors, row_sum : float, optional
        k, if it is not the number of columns; or what takes the place of log2(k).
    overall : float, optional
        Mean distance of the data, which bounds the scale of a row of zeros; that of these
        rows by default.
    """
    distances = np.ascontiguousarray(distances, dtype=np.float32)
    n, k = distances.shape
    sigma = np.empty(n, dtype=np.float32)
    rho = np.empty(n, dtype=np.float32)
    overall = mean_distance(distances) if overall is None else overall
    target = np.log2(float(n_neighbors or k)) if row_sum is None else float(row_sum)
    connected = float(local_connectivity)
    run_rows(_fit_scales, n, n_threads, distances, target, connected, overall, sigma, rho)
    return sigma, rho


def mean_distance(distances: np.ndarray) -> float:
    """Mean of the finite distances; 0 if there are none."""
    finite = np.isfinite(distances)
    return float(distances.mean(where=finite, dtype=np.float64)) if finite.any() else 0.0


@njit(nogil=True, cache=True)
def _fit_scales(start, stop, distances, target, local_connectivity, overall, sigma, rho):
    whole = int(np.floor(local_connectivity))
    part = local_connectivity - whole
    for i in range(start, stop):
        n_positive, n_finite, total = 0, 0, 0.0
        lower, upper, largest = 0.0, 0.0, 0.0
        for d in distances[i]:
            if np.isfinite(d):
                n_finite += 1
                total += d
                if d > 0.0:
                    n_positive += 1
                    largest = d
                    if n_positive == whole:
                        lower = d
                    if n_positive == whole + 1:
                        upper = d
        if n_positive >= local_connectivity:
            rho[i] = lower + part * (upper - lower) if part > SUM_TOLERANCE else lower
        else:
            rho[i] = largest

        typical = total / max(n_finite, 1)
        # Powers of two on the way to σ are the same from any of them, so that the search gives
        # the same σ in any unit, and that of a search from 1.
        unit = 2.0 ** np.floor(np.log2(typical)) if typical > 0.0 else 1.0
        lo, hi, mid = 0.0, np.inf, unit
        for _ in range(UMAP_HALVINGS):
            row_sum = 0.0
            for j in range(1, distances.shape[1]):
                excess = distances[i, j] - rho[i]
                if excess <= 0.0:
                    row_sum += 1.0
                elif np.isfinite(excess):
                    row_sum += np.exp(-excess / mid)
            if abs(row_sum - target) < SUM_TOLERANCE:
                break
            if row_sum > target:
                hi = mid
                mid = (lo + hi) / 2.0
            elif np.isinf(hi):
                lo = mid
                mid *= 2.0  # to the end where there are too few neighbours: all count fully
            else:
                lo = mid
                mid = (lo + hi) / 2.0
        sigma[i] = max(mid, SCALE_FLOOR * (typical if rho[i] > 0.0 else overall))


def mean_neighbor_distance(distances: np.ndarray) -> np.ndarray:
    """Mean distance to the (finite) neighbours of each point, the point itself left out.

    Points without neighbours get nan. Scales are floored at a thousandth of the median
    positive one, so that duplicates cannot make them zero.
    """
    others = np.asarray(distances, dtype=np.float64)[:, 1:]
    finite = np.isfinite(others)
    count = finite.sum(axis=1)
    scale = np.divide(
        np.where(finite, others, 0.0).sum(axis=1),
        count,
        out=np.full(len(others), np.nan),
        where=count > 0,
    )
    return _floored(scale)


def relative_scale(given, density_scale: np.ndarray, *, among=None) -> np.ndarray:
    """A user's scale per point, brought to the level of the density scales.

    The scale used is σ̄ · s_i / gmean(s) with σ̄ the geometric mean of the density scales. For
    new points, ``among`` holds the s of the training points, and gmean is taken over those.
    """
    given = _checked_scale(given, len(density_scale) if among is None else None)
    reference = given if among is None else np.asarray(among, dtype=np.float64)
    level = np.exp(np.log(density_scale[density_scale > 0]).mean())
    level /= np.exp(np.log(reference).mean())
    return _floored(level * given, level * reference).astype(density_scale.dtype)


def checked_new_scale(local_scale, n_rows: int, *, fitted: bool) -> np.ndarray:
    """The scale of new points, which they need if the model was ``fitted`` with one."""
    if not fitted:
        raise ValueError("local_scale: the model was fitted without one.")
    if local_scale is None:
        raise ValueError(
            "local_scale: the model was fitted with a scale per point, and new points need one, "
            "too. Pass transform(X, local_scale=s) with one positive entry per row of X."
        )
    return _checked_scale(local_scale, n_rows)


def _checked_scale(local_scale, n_rows: int | None) -> np.ndarray:
    scale = np.asarray(local_scale, dtype=np.float64)
    if n_rows is not None and scale.shape != (n_rows,):
        raise ValueError(
            f"local_scale must have one entry per row of X, shape ({n_rows},); got shape "
            f"{scale.shape}."
        )
    if not np.all(np.isfinite(scale)) or np.any(scale <= 0):
        raise ValueError("local_scale must be positive and finite for every point.")
    return scale


def _floored(scale: np.ndarray, reference: np.ndarray | None = None) -> np.ndarray:
    reference = scale if reference is None else reference
    positive = reference[reference > 0]
    if positive.size == 0:
        return np.where(np.isnan(scale), scale, 1.0)
    return np.maximum(scale, SCALE_FLOOR * np.median(positive))


def log_level(scale) -> np.ndarray:
    """The level that density or a given scale has: its logarithm; nan where there is none."""
    scale = np.asarray(scale, dtype=np.float64)
    known = np.isfinite(scale) & (scale > 0)
    if not known.any():
        return np.full(scale.shape, np.nan)
    lowest = SMALLEST_SCALE * np.median(scale[known])
    return np.log(np.where(np.isnan(scale), np.nan, np.clip(scale, lowest, None)))


# Bisection stops when the entropy is this close to its target.
ENTROPY_TOLERANCE = 1e-6
# After some 60, double precision has no digits left to halve.
MAX_HALVINGS = 100
# A row needs this many neighbours per unit of perplexity, openTSNE's rule; with fewer, its
# perplexity is lowered.
NEIGHBORS_PER_PERPLEXITY = 3.0


def gaussian_scales(distances: np.ndarray, perplexity: float, *, n_threads: int = 1) -> np.ndarray:
    """t-SNE's σ_i: row i of p_{j|i} ∝ exp(−d_ij²/2σ_i²) has the entropy ln(perplexity).

    ``distances``, of shape (n, k), are those to the neighbours, the point itself left out; inf
    where missing.

    Examples
    --------
    >>> import numpy as np
    >>> near, far = gaussian_scales(np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]), 1.0)
    >>> bool(np.isclose(far, 2 * near))
    True
    """
    distances = np.ascontiguousarray(distances, dtype=np.float64)
    scale = np.empty(len(distances))
    finite = np.isfinite(distances)
    overall = float(distances.mean(where=finite)) if finite.any() else 1.0
    overall = overall if overall > 0 else 1.0
    run_rows(_fit, len(distances), n_threads, distances, float(perplexity), overall, scale)
    return scale


@njit(nogil=True, cache=True)
def _fit(start, stop, distances, perplexity, overall, scale):
    k = distances.shape[1]
    for i in range(start, stop):
        count, total, nearest = 0, 0.0, np.inf
        for d in distances[i]:
            if np.isfinite(d):
                count += 1
                total += d
                nearest = min(nearest, d)
        if count == 0:
            scale[i] = overall
            continue
        typical = total / count if total > 0.0 else overall
        target = np.log(max(1.0, min(perplexity, count / NEIGHBORS_PER_PERPLEXITY)))
        beta, low, high = 0.5 / typical**2, 0.0, np.inf
        floor = SCALE_FLOOR * typical
        for _ in range(MAX_HALVINGS):
            row_sum, moment = 0.0, 0.0
            for j in range(k):
                if np.isfinite(distances[i, j]):
                    excess = distances[i, j] ** 2 - nearest**2
                    weight = np.exp(-beta * excess)
                    row_sum += weight
                    moment += weight * excess
            entropy = np.log(row_sum) + beta * moment / row_sum
            if abs(entropy - target) < ENTROPY_TOLERANCE or beta * floor**2 > 0.5:
                break
            if entropy > target:
                low = beta
                beta = 2.0 * beta if np.isinf(high) else 0.5 * (low + high)
            else:
                high = beta
                beta = 0.5 * (low + high)
        scale[i] = max(np.sqrt(0.5 / beta), floor) if beta > 0.0 else overall


# The scale of each source for directed distances: mean distance to the neighbours, 1, distance to
# the furthest, UMAP's σ, t-SNE's σ at the perplexity k/3, or any positive feature. All are divided
# by their geometric mean, so that directed distances stay in the units of the data.
SCALES = ("mean", "none", "kth", "umap", "perplexity")


@saved(
    values=array("f8", "n", "(0, inf)"),
    floor=number("(0, inf)"),
    unit=number("(0, inf)"),
)
class SourceScale(NamedTuple):
    """Scale of every source, and what a new point needs to get its own."""

    values: np.ndarray
    """Positive, with geometric mean 1."""
    floor: float
    """Least scale allowed, in the units of the distances."""
    unit: float
    """Geometric mean of the scales, in the units of the distances."""


def source_scale(kind, distances: np.ndarray, n_threads: int = 1) -> SourceScale:
    """Positive scale of every source, with geometric mean 1, by its name or a value per point.

    ``distances``, of shape (n, k + 1), are sorted, the point itself first; inf where missing.
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
    others = np.asarray(distances, dtype=np.float64)[:, 1:]
    known = np.isfinite(others)
    lengths = np.where(known, others, 0.0)
    if kind == "mean":
        return lengths.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    furthest = lengths.max(axis=1)
    if kind == "kth":
        return furthest
    perplexity = max(others.shape[1] / NEIGHBORS_PER_PERPLEXITY, 1.0)
    # 0 where all are duplicates
    return np.minimum(gaussian_scales(others, perplexity, n_threads=n_threads), furthest)
