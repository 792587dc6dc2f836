"""Directed t-SNE affinities, as openTSNE's affinity objects.

One class per kind of row: of a given perplexity, of one bandwidth, flat, or given as a matrix.
See `finsler_ext.construct.directed_affinities` for what they share.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from openTSNE.affinity import Affinities

from finsler_ext._threads import resolve_n_jobs
from finsler_ext._warn import warn
from finsler_ext.construct.directed_affinities import DirectedAffinities, normalised
from finsler_ext.construct.gaussian import NEIGHBORS_PER_PERPLEXITY, gaussian_scales

__all__ = [
    "DirectedFixedSigma",
    "DirectedPerplexity",
    "DirectedUniform",
    "PrecomputedDirected",
]


class DirectedPerplexity(DirectedAffinities):
    """p_{j|i}/N of a given perplexity, openTSNE's PerplexityBasedNN without its averaging.

    Parameters
    ----------
    data : array or sparse matrix of shape (n, features), or directed distances (n, n)
    perplexity : float or sequence of float
        Several perplexities are averaged row by row, as in openTSNE's Multiscale.
    method, metric, metric_params, n_jobs, random_state, verbose, knn_kwargs, knn_index
        As in openTSNE; see `neighbor_index` for the default method.
    k_neighbors : int or "auto"
        Three times the largest perplexity by default.
    affinity : {"directed", "harmonic", "symmetrized"}
    geodesic_neighbors : int, optional
        Extend the neighbours to this many (itself included) along directed shortest paths.
    local_scale : array of shape (n,), optional
        Positive scale of each point as a source; only ratios matter.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> affinities = DirectedPerplexity(load_iris().data, perplexity=15)
    >>> bool(abs(affinities.P.sum(axis=1) - 1 / 150).max() < 1e-9)
    True
    """

    def __init__(self, data=None, perplexity: Any = 30, *, k_neighbors="auto", **kwds):
        n = data.shape[0] if data is not None else kwds["knn_index"].n_samples
        self.perplexity = perplexity
        usable = usable_perplexities(perplexity, n)
        k = k_neighbors
        if k == "auto":
            k = min(n - 1, max(1, int(NEIGHBORS_PER_PERPLEXITY * max(usable))))
        super().__init__(data, k, **kwds)

    def _row_scales(self, distances, perplexity=None):
        perplexities = usable_perplexities(
            self.perplexity if perplexity is None else perplexity, self.n_samples
        )
        threads = resolve_n_jobs(self.n_jobs)
        return np.column_stack(
            [gaussian_scales(distances, p, n_threads=threads) for p in perplexities]
        )

    def to_new(self, data, perplexity=None, return_distances=False, local_scale=None):
        k = None
        if perplexity is not None:
            largest = max(usable_perplexities(perplexity, self.n_samples))
            k = max(1, int(NEIGHBORS_PER_PERPLEXITY * largest))
        return super().to_new(
            data, return_distances, perplexity=perplexity, k=k, local_scale=local_scale
        )

    to_new.__doc__ = DirectedAffinities.to_new.__doc__


class DirectedFixedSigma(DirectedAffinities):
    """p_{j|i}/N with one bandwidth for all points, openTSNE's FixedSigmaNN without averaging."""

    def __init__(self, data=None, sigma=None, k=30, **kwds):
        if sigma is None or not sigma > 0:
            raise ValueError(f"sigma must be a positive bandwidth, got {sigma!r}.")
        self.sigma = float(sigma)
        super().__init__(data, _checked_k("k", k, data, kwds), **kwds)

    def _row_scales(self, distances):
        return np.full((len(distances), 1), self.sigma)

    def to_new(self, data, k=None, return_distances=False):
        return super().to_new(data, return_distances, k=k)

    to_new.__doc__ = DirectedAffinities.to_new.__doc__


class DirectedUniform(DirectedAffinities):
    """The same affinity for all neighbours, openTSNE's Uniform without averaging."""

    def __init__(self, data=None, k_neighbors=30, **kwds):
        super().__init__(data, _checked_k("k_neighbors", k_neighbors, data, kwds), **kwds)

    def _row_scales(self, distances):
        return None

    def to_new(self, data, k_neighbors=None, return_distances=False):
        return super().to_new(data, return_distances, k=k_neighbors)

    to_new.__doc__ = DirectedAffinities.to_new.__doc__


class PrecomputedDirected(Affinities):
    """Affinities given as a matrix, rows being sources; the matrix itself is not changed."""

    def __init__(self, affinities, normalize=True):
        super().__init__()
        P = scipy.sparse.csr_matrix(affinities, dtype=np.float64, copy=True)
        if P.shape[0] != P.shape[1] or not np.isfinite(P.data).all() or P.data.min(initial=0) < 0:
            raise ValueError(
                "affinities must be a square matrix of finite values that are not negative, "
                f"got shape {P.shape}."
            )
        P.setdiag(0)
        P.eliminate_zeros()
        self.P = normalised(P) if normalize else P

    def to_new(self, data, return_distances=False):
        raise RuntimeError(
            "Affinities given as a matrix say nothing about new points. Fit all rows together."
        )


def usable_perplexities(perplexity, n_samples: int) -> list[float]:
    """Perplexities as a sorted list; those too large for the data are lowered, with a warning."""
    values = sorted({float(p) for p in np.atleast_1d(perplexity)})
    if not values or not all(0 < p < np.inf for p in values):
        raise ValueError(f"perplexity must be positive, got {perplexity!r}.")
    largest = max(1.0, (n_samples - 1) / NEIGHBORS_PER_PERPLEXITY)
    if values[-1] > largest:
        warn(
            f"perplexity={values[-1]:g} is too large for {n_samples} points; {largest:.4g} is used "
            f"instead, a third of the other points."
        )
    return sorted({min(p, largest) for p in values})


def _checked_k(name, k, data, kwds):
    n = data.shape[0] if data is not None else kwds["knn_index"].n_samples
    if not 1 <= k < n:
        raise ValueError(f"{name} must lie between 1 and n − 1 = {n - 1}, got {k}.")
    return k
