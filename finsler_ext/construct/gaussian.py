"""t-SNE's Gaussian scales: how far each source sees.

    p_{j|i} ∝ exp(−d_ij²/2σ_i²),     entropy of row i = ln(perplexity)

The scale σ_i belongs to the edges that leave i.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from finsler_ext._threads import run_rows
from finsler_ext.construct.scales import SCALE_FLOOR

__all__ = ["gaussian_scales"]

# Bisection stops when the entropy is this close to its target.
ENTROPY_TOLERANCE = 1e-6
# After some 60, double precision has no digits left to halve.
MAX_HALVINGS = 100
# A row needs this many neighbours per unit of perplexity, openTSNE's rule; with fewer, its
# perplexity is lowered.
NEIGHBORS_PER_PERPLEXITY = 3.0


def gaussian_scales(distances: np.ndarray, perplexity: float, *, n_threads: int = 1) -> np.ndarray:
    """σ_i such that row i of the conditional affinities has the given perplexity.

    Parameters
    ----------
    distances : array of shape (n, k)
        Distances to the neighbours, the point itself left out; inf where missing.
    perplexity : float
    n_threads : int

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
