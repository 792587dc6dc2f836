"""Directed t-SNE affinities, as openTSNE's affinity objects: `P`, and `to_new` for new points.

directed     p_ij = p_{j|i}/N, p_{j|i} ∝ exp(−d_ij²/2σ_i²): rows sum to 1/N, no averaging
harmonic     ∝ exp(−d_ij²/2σ_ij²), 1/σ_ij = (1/σ_i + 1/σ_j)/2, on the union of both
             directions, with one normalisation for all: a row softmax would bring the
             asymmetry back
symmetrized  (p_ij + p_ji)/2: what openTSNE does

There is one class per kind of row: of a given perplexity, of one bandwidth, flat, or given as a
matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numba import njit
from openTSNE.affinity import Affinities
from scipy.special import expit

from finsler_ext import schema
from finsler_ext._messages import warn
from finsler_ext._threads import plain_interrupt, resolve_n_jobs, row_blocks, run_rows
from finsler_ext.neighbors.exact import is_asymmetric
from finsler_ext.neighbors.geodesics import geodesic_neighbors as extend_along_paths
from finsler_ext.neighbors.search import distances_between, with_self
from finsler_ext.scales import (
    NEIGHBORS_PER_PERPLEXITY,
    gaussian_scales,
    mean_neighbor_distance,
    relative_scale,
)
from finsler_ext.tsne.neighbors import QUERY_ROWS, DirectedIndex, neighbor_index

TSNE_AFFINITIES = ("directed", "harmonic", "symmetrized")
# An approximate index is asked for this many times the neighbours, to find the points that
# would count a new one among theirs.
IN_EDGE_CANDIDATES = 3
# A fitted row given again lies exactly at the reach of some points; rounding must not decide.
REACH_ROUNDING = 1e-9
# What all of them have, as files hold it.
AFFINITIES: dict[str, schema.Field] = {
    "verbose": schema.VERBOSE,
    "affinity": schema.one_of(*TSNE_AFFINITIES),
    "n_jobs": schema.JOBS,
    "directed_input": schema.FLAG,
    "given_scale": schema.FLAG,
    "knn_index": schema.part(
        "DirectedIndex", "GroupedIndex", "openTSNE.Annoy", "openTSNE.NNDescent", "openTSNE.Sklearn",
        n="n",
    ),
    "neighbors": schema.array("i4 i8", "n k", "[-1, n)"),
    "distances": schema.array("f4 f8", "n k", "[0, inf]"),
    "reach": schema.array("f8", "n", "[0, inf)"),
    "scales": schema.NONE | schema.array("f8", "n s", "(0, inf]"),
    "density_scales": schema.maybe(schema.NONE | schema.array("f8", "n s", "(0, inf]")),
    "local_scale": schema.array("f8", "n", "[0, inf)"),
    "nearest2": schema.maybe(schema.array("f8", "n", "[0, inf]")),
    "row_sums": schema.maybe(schema.array("f8", "n s", "[0, inf)")),
    "P": schema.sparse("f8", "n n", "[0, 1]"),
}  # fmt: skip


def _check_scales(state: dict) -> None:
    """Points with neighbours have scales, and are at some distance."""
    known = (state["neighbors"] >= 0).any(axis=1)
    for name in ("scales", "density_scales", "nearest2"):
        values = state.get(name)
        if values is not None and not np.isfinite(values[known]).all():
            raise ValueError(f"affinities.{name} is infinite for a point with neighbours")


class DirectedAffinities(Affinities):
    """Common part of the affinity objects: neighbours, edges, rows, new points.

    A kind of affinity says which scales its rows have (`_row_scales`); None is a flat kernel.

    Attributes
    ----------
    P : csr_matrix of shape (n, n)
        Affinities, rows being sources; they sum to 1.
    neighbors, distances : arrays of shape (n, k)
        Without the point itself; −1 and inf where missing.
    scales : array of shape (n, n_scales) or None
        σ of each source.
    local_scale : array of shape (n,)
        Mean distance to the neighbours, or the scale given.
    """

    def __init__(
        self,
        data,
        k: int,
        *,
        method="auto",
        metric="euclidean",
        metric_params=None,
        n_jobs=1,
        random_state=None,
        verbose=False,
        knn_kwargs=None,
        knn_index=None,
        affinity="directed",
        geodesic_neighbors=None,
        local_scale=None,
    ):
        super().__init__(verbose=verbose)
        if affinity not in TSNE_AFFINITIES:
            raise ValueError(f"affinity must be one of {TSNE_AFFINITIES}, got {affinity!r}.")
        if (data is None) == (knn_index is None):
            raise ValueError("Give either data or knn_index, and not both.")
        self.affinity, self.n_jobs = affinity, n_jobs
        self.directed_input = metric == "precomputed" or (
            callable(metric) and data is not None and is_asymmetric(metric, data, metric_params)
        )
        if knn_index is None:
            knn_index = neighbor_index(
                data, k, method=method, metric=metric, metric_params=metric_params, n_jobs=n_jobs,
                random_state=random_state, verbose=verbose, knn_kwargs=knn_kwargs,
            )  # fmt: skip
        self.knn_index = knn_index
        distances_between = self._distances_between(data, metric)
        with plain_interrupt():
            self.neighbors, self.distances = self.knn_index.build()
        if geodesic_neighbors is not None:
            self._extend(geodesic_neighbors, data, distances_between)
        finite = np.isfinite(self.distances)
        self.reach = self.distances.max(axis=1, initial=0.0, where=finite)
        self.scales = self._row_scales(self.distances)
        self.local_scale = _mean_distance(self.distances)
        self.given_scale = local_scale is not None
        if local_scale is not None:
            self.local_scale = np.asarray(local_scale, dtype=np.float64)
            relative_scale(local_scale, np.ones(self.n_samples))  # checks it
            self.density_scales = self.scales
            if self.scales is not None:
                columns = [relative_scale(local_scale, column) for column in self.scales.T]
                self.scales = np.column_stack(columns)
        self.P = self._affinity_matrix()

    @property
    def n_samples(self) -> int:
        return self.knn_index.n_samples

    def _distances_between(self, data, metric):
        if metric == "precomputed" and data is not None:
            return lambda rows, columns: distances_between(data, rows, columns)
        if isinstance(self.knn_index, DirectedIndex):
            index, points = self.knn_index, self.knn_index.data
            return lambda rows, columns: index.between(points[rows], points[columns])
        return None

    def _extend(self, n_neighbors, data, between):
        near = with_self(self.neighbors, self.distances)
        far = extend_along_paths(near, n_neighbors, data, distances=between)
        self.neighbors, self.distances = far.indices[:, 1:], far.distances[:, 1:].astype(float)

    def neighbor_distances(self) -> scipy.sparse.csr_array:
        """Directed distances on the neighbour edges, rows being sources."""
        row, column = np.nonzero(self.neighbors >= 0)
        edges = (self.distances[row, column], (row, self.neighbors[row, column]))
        return scipy.sparse.csr_array(scipy.sparse.coo_array(edges, (self.n_samples,) * 2))

    def _row_scales(self, distances, **_) -> np.ndarray | None:
        raise NotImplementedError

    def _affinity_matrix(self) -> scipy.sparse.csr_matrix:
        n = self.n_samples
        known = self.neighbors >= 0
        # With a scale of the user's, an edge that either end chose counts for both: the choice of
        # neighbours depends on density.
        both = self.given_scale and not self.directed_input
        if self.affinity == "harmonic" or both:
            row, column = np.nonzero(known)
            target = self.neighbors[row, column].astype(np.int64)
            low, high, square = _undirected(row, target, self.distances[row, column] ** 2)
            if self.affinity == "harmonic":
                return self._harmonic(low, high, square)
            P = _both_ways(low, high, square, n)
        else:
            square = self.distances[known]
            square *= square
            indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
            P = scipy.sparse.csr_matrix((square, self.neighbors[known], indptr), (n, n))
        scales = np.full((n, 1), np.inf) if self.scales is None else self.scales
        self.nearest2, self.row_sums = np.full(n, np.inf), np.zeros(scales.shape)
        threads = resolve_n_jobs(self.n_jobs)
        pattern = P.indptr, P.indices, P.data
        run_rows(_soft_rows, n, threads, *pattern, scales, self.nearest2, self.row_sums)
        P.has_sorted_indices = True
        if self.affinity == "symmetrized":
            P = scipy.sparse.csr_matrix((P + P.T) / 2)
        return normalised(P)

    def _harmonic(self, low, high, square):
        p = np.zeros(low.size)
        for sigma in _columns(self.scales):
            if sigma is not None:
                sigma = 2.0 / (1.0 / sigma[low] + 1.0 / sigma[high])
            p += np.exp(_log_weight(square, sigma))
        return normalised(_both_ways(low, high, p, self.n_samples))

    def to_new(self, data, return_distances=False, *, k=None, local_scale=None, **params):
        """Affinities between new points (rows) and the fitted ones, in both directions.

        Column j is the edge to point j, by the scale of the new point; column n + j the edge
        from point j, by j's stored scale, if j would count the new point among its neighbours.
        Rows sum to 1. Symmetric affinities have the same in both. With a given ``local_scale``,
        new points take that of their neighbours, unless they have their own.
        """
        k = min(self.neighbors.shape[1] if k is None else int(k), self.n_samples)
        if isinstance(self.knn_index, DirectedIndex):
            data = self.knn_index.admitted(data)
        blocks = []
        for rows in row_blocks(data.shape[0], QUERY_ROWS):
            scale = None if local_scale is None else np.asarray(local_scale, np.float64)[rows]
            blocks.append(self._block_to_new(data[rows], k, params, scale))
        P = scipy.sparse.csr_matrix(scipy.sparse.vstack([b[0] for b in blocks], format="csr"))
        if not return_distances:
            return P
        return P, np.concatenate([b[1] for b in blocks]), np.concatenate([b[2] for b in blocks])

    def _block_to_new(self, data, k, params, local_scale):
        n, n_new = self.n_samples, data.shape[0]
        if isinstance(self.knn_index, DirectedIndex):
            there, back = self.knn_index.both_ways(data)
            near = np.argsort(there, axis=1, kind="stable")[:, :k]
            distances = np.take_along_axis(there, near, axis=1)
            row = np.repeat(np.arange(n_new), near.shape[1])
            exact = self.knn_index.refined(data, row, near.ravel(), distances.ravel())
            distances = exact.reshape(near.shape)
            new, old = np.nonzero(back <= self.reach * (1.0 + REACH_ROUNDING))
            square = self.knn_index.refined(data, new, old, back[new, old]) ** 2
        else:
            wanted = min(n, IN_EDGE_CANDIDATES * k)
            candidates, found = self.knn_index.query(data, wanted)
            near, distances = candidates[:, :k], np.asarray(found[:, :k], dtype=np.float64)
            new, column = np.nonzero(found <= self.reach[candidates])
            old, square = candidates[new, column], np.asarray(found)[new, column] ** 2
        scales = self._new_scales(near, distances, params, local_scale)
        out = np.zeros(near.shape)
        finite = np.isfinite(distances)
        with np.errstate(invalid="ignore"):
            excess = np.where(finite, distances**2 - distances[:, :1] ** 2, np.inf)
        row = np.broadcast_to(np.arange(n_new)[:, None], near.shape)
        for sigma in _columns(scales):
            weight = np.exp(_log_weight(excess, None if sigma is None else sigma[row])) * finite
            out += weight / np.maximum(weight.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        out /= np.maximum(out.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        outgoing = scipy.sparse.coo_array((out.ravel(), (row.ravel(), near.ravel())), (n_new, n))
        if self.affinity == "directed":
            strength = self._in_strength(old, square)
            incoming = scipy.sparse.coo_array((strength, (new, old)), (n_new, n))
        else:
            incoming = outgoing
        P = scipy.sparse.csr_matrix(scipy.sparse.hstack([outgoing, incoming], format="csr"))
        total = np.asarray(P.sum(axis=1)).ravel()
        P.data /= np.repeat(np.where(total > 0, total, 1.0), np.diff(P.indptr))
        P.eliminate_zeros()
        return P, near, distances

    def _new_scales(self, near, distances, params, local_scale):
        if self.scales is None or not self.given_scale:
            return self._row_scales(distances, **params)
        if local_scale is not None:
            columns = (
                relative_scale(local_scale, column, among=self.local_scale)
                for column in self.density_scales.T
            )
            return np.column_stack(list(columns))
        # the feature behind a given scale is not known for new points: take their neighbours'
        return np.exp(np.log(self.scales[near]).mean(axis=1))

    def _in_strength(self, old, square):
        """p_{new|j} with the new point joining the neighbours of j."""
        strength = np.zeros(old.size)
        for sigma, row_sum in zip(_columns(self.scales), self.row_sums.T, strict=True):
            own = None if sigma is None else sigma[old]
            log_weight = _log_weight(square - self.nearest2[old], own)
            strength += expit(log_weight - np.log(row_sum[old])) / self.row_sums.shape[1]
        return strength


@njit(nogil=True, cache=True, error_model="numpy")
def _soft_rows(start, stop, indptr, indices, values, scales, nearest2, row_sums):
    """Squares of distances become exp(−d²/2σ²) over its sum, a mean over the scales.

    Rows are sorted by column.
    """
    n_scales = scales.shape[1]
    for i in range(start, stop):
        row = slice(indptr[i], indptr[i + 1])
        order = np.argsort(indices[row])
        target, square = indices[row][order], values[row][order]
        for value in square:
            nearest2[i] = min(nearest2[i], value)
        for s in range(n_scales):
            for value in square:
                row_sums[i, s] += np.exp((nearest2[i] - value) / (2.0 * scales[i, s] ** 2))
        for e in range(len(target)):
            p = 0.0
            for s in range(n_scales):
                weight = np.exp((nearest2[i] - square[e]) / (2.0 * scales[i, s] ** 2))
                p += weight / row_sums[i, s]
            indices[indptr[i] + e], values[indptr[i] + e] = target[e], p


def _columns(scales):
    """σ of every source, scale by scale; None for the one flat kernel."""
    return [None] if scales is None else scales.T


def _log_weight(excess, sigma):
    return np.zeros_like(excess) if sigma is None else -excess / (2.0 * sigma**2)


def _mean_distance(distances):
    return mean_neighbor_distance(np.hstack([np.zeros((len(distances), 1)), distances]))


def _undirected(source, target, square):
    """Every pair once, with the shorter of its distances."""
    low, high = np.minimum(source, target), np.maximum(source, target)
    order = np.lexsort((square, high, low))
    low, high, square = low[order], high[order], square[order]
    first = np.ones(low.size, dtype=bool)
    first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    return low[first], high[first], square[first]


def _both_ways(low, high, p, n):
    ends = np.concatenate([low, high]), np.concatenate([high, low])
    return scipy.sparse.csr_matrix(scipy.sparse.coo_array((np.concatenate([p, p]), ends), (n, n)))


def normalised(P):
    P.data /= P.data.sum() if P.nnz else 1.0
    P.eliminate_zeros()
    return P


@schema.saved(
    AFFINITIES,
    relations=_check_scales,
    perplexity=schema.number("(0, inf)")
    | schema.listed(schema.number("(0, inf)"))
    | schema.array("f8 i8", "p"),
)
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


@schema.saved(AFFINITIES, relations=_check_scales, sigma=schema.number("(0, inf)"))
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


@schema.saved(AFFINITIES, relations=_check_scales)
class DirectedUniform(DirectedAffinities):
    """The same affinity for all neighbours, openTSNE's Uniform without averaging."""

    def __init__(self, data=None, k_neighbors=30, **kwds):
        super().__init__(data, _checked_k("k_neighbors", k_neighbors, data, kwds), **kwds)

    def _row_scales(self, distances):
        return None

    def to_new(self, data, k_neighbors=None, return_distances=False):
        return super().to_new(data, return_distances, k=k_neighbors)

    to_new.__doc__ = DirectedAffinities.to_new.__doc__


@schema.saved(P=schema.sparse("f8", "n n", "[0, inf)"), verbose=schema.VERBOSE)
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
