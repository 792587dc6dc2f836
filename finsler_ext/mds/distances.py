"""Checks of directed dissimilarities and weights before a stress is made of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from finsler_ext._messages import warn
from finsler_ext.asymmetry import distance_skew, is_symmetric, knows_one_way
from finsler_ext.directed.data import complete_paths, read_matrix
from finsler_ext.directed.digraph import (
    MOSTLY_TWO_WAY,
    both_ways,
    compares_lengths,
    digraph_edges,
    edge_strengths,
    is_digraph,
)
from finsler_ext.directed.read import as_matrix, check_range, fill_missing
from finsler_ext.validation import check_diagonal

MISSING = ("auto", "ignore", "geodesic")
# Share of all weight that the edges of a graph have with weights="adjacent": direction of held-out
# edges of mail, AUC 0.83 without and 0.86 with 0.3; more costs planted digraphs (0.78 at 0.9).
ADJACENT_SHARE = 1 / 3
# A sample stands for all points if this share of it has known pairs among each other.
SAMPLED_SHARE = 0.5


@dataclass(frozen=True)
class DirectedInput:
    """Finite dissimilarities, and weights where not all pairs count the same."""

    distances: np.ndarray
    weights: np.ndarray | None = None

    @property
    def dtype(self) -> np.dtype:
        return self.distances.dtype

    @property
    def uneven(self) -> bool:
        """Whether the two directions of some pair have different weights, both of them positive."""
        if self.weights is None:
            return False
        back = self.weights.T
        return bool(((self.weights != back) & (self.weights > 0) & (back > 0)).any())

    def even_weights(self) -> np.ndarray | None:
        """The weights, with the mean of both directions where they differ; as they are if even."""
        if not self.uneven or self.weights is None:
            return self.weights
        both = (self.weights > 0) & (self.weights.T > 0)
        return np.where(both, (self.weights + self.weights.T) / 2, self.weights)

    @property
    def connected(self) -> np.ndarray:
        """The rows with a known pair, in ascending order."""
        if self.weights is None:
            return np.arange(len(self.distances))
        return np.flatnonzero((self.weights > 0).any(axis=0) | (self.weights > 0).any(axis=1))

    def subset(self, rows: np.ndarray) -> DirectedInput:
        chosen = np.ix_(rows, rows)
        weights = None if self.weights is None else self.weights[chosen]
        return DirectedInput(self.distances[chosen], weights)

    def sample(self, size: int, rng) -> tuple[DirectedInput, np.ndarray]:
        """At most ``size`` points, and their rows; all of them where pairs are too few to sample.

        Points of the sample without a known pair in it are left out.
        """
        n = len(self.distances)
        if n <= size:
            return self, np.arange(n)
        rows = np.sort(rng.permutation(n)[:size])
        rows = rows[self.subset(rows).connected]
        if len(rows) < SAMPLED_SHARE * size:
            return self, np.arange(n)
        return self.subset(rows), rows

    def with_nan(self) -> np.ndarray:
        """The dissimilarities with nan where nothing counts; no copy where all pairs do."""
        if self.weights is None:
            return self.distances
        unknown = self.weights == 0
        np.fill_diagonal(unknown, False)
        return np.where(unknown, self.distances.dtype.type(np.nan), self.distances)


def checked_dissimilarities(
    D, weights=None, *, missing: str = "ignore", strengths: bool = False
) -> DirectedInput:
    """Dissimilarities as the stress needs them: finite, with weight 0 where unknown.

    ``weights`` and ``missing`` are as in `finsler_ext.FinslerMDS`; D is not modified. Paths are
    longer than distances, and more so against the drift: on lists of the 8 nearest of 400 points in
    a plane, a drift of 0.3 comes out as 0.5, and as 0.30 where unknown pairs are left out.

    Parameters
    ----------
    strengths : bool
        Whether D is of strengths. Then missing="auto" has the weights "adjacent" if most edges
        have no reverse.
    """
    if missing not in MISSING:
        raise ValueError(f"missing must be one of {MISSING}, got {missing!r}.")
    D = as_matrix(D, precomputed=True).X
    check_range(D)
    unread, D = D, read_matrix(D)
    n = D.shape[0]
    if n < 3:
        raise ValueError(f"MDS needs at least 3 points, got n_samples = {n}.")
    check_diagonal(unread if scipy.sparse.issparse(unread) else D)  # D lost a sparse one
    D = fill_missing(D)
    if np.fmax.reduce(D, axis=None) == 0:
        raise ValueError("All dissimilarities are 0: there is nothing to embed.")
    if weights is None and missing == "auto" and _is_digraph(D, strengths):
        weights = "adjacent"
    if isinstance(weights, str):
        D, weights = _of_graph(D, weights, missing)
    elif missing == "geodesic" or (missing == "auto" and _all_equal(D)):
        D = read_matrix(complete_paths(D))
    incomplete = bool(np.isnan(D.min()))
    given = _checked_weights(weights, D.shape, D.dtype)
    if incomplete:
        unknown = np.isnan(D)
        given = np.ones_like(D) if given is None else given
        given[unknown] = 0.0
        D = np.where(unknown, D.dtype.type(0), D)
    if given is not None:
        np.fill_diagonal(given, 0.0)
    directed = DirectedInput(np.ascontiguousarray(D), given)
    if len(directed.connected) < 3:
        raise ValueError(
            f"MDS needs at least 3 points with a known dissimilarity to or from another, got "
            f"{len(directed.connected)} of {n}."
        )
    return directed


def digraph_strengths(X, strengths=None, weights=None):
    """Strengths of the edges if X is a digraph whose direction counts; None if of distances."""
    if strengths is not None:
        return strengths
    edges = digraph_edges(X)
    if compares_lengths(edges):
        return None
    if not isinstance(weights, str):
        if edges.length.size == 0 or np.ptp(edges.length) > 0:
            return None
        known = edge_strengths(edges)
        if (known != known.T).nnz == 0:
            return None
    return edge_strengths(edges)


def warn_of_edges(D, strengths=None) -> None:
    """Where the potential is that of edges with lengths, and the height is not."""
    if strengths is None and is_digraph(D) and knows_one_way(D, distance_skew(D)):
        warn(
            "Most distances are known one way only. They are fitted as distances, whose way "
            "back is unknown. If they are edges of a digraph and should lead down, use FinslerUMAP "
            "or fit(X, weights='adjacent'); potential_ follows the edges in any case."
        )


def _of_graph(D: np.ndarray, weights: str, missing: str) -> tuple[np.ndarray, np.ndarray]:
    """All distances along a graph, and weights that favour its edges."""
    if weights != "adjacent":
        raise ValueError(f"weights must be an array or 'adjacent', got {weights!r}.")
    known = _known_pairs(D)
    adjacent = known | known.T
    if missing == "ignore":
        raise ValueError(
            "weights='adjacent' completes a graph along shortest paths, and missing='ignore' does "
            "not: pass missing='geodesic'."
        )
    if known.sum() == D.size - len(D):
        raise ValueError("weights='adjacent' is for a graph; here all pairs are known.")
    source, target = np.nonzero(known)
    graph = scipy.sparse.coo_array((D[source, target], (source, target)), shape=D.shape)
    paths = read_matrix(complete_paths(both_ways(graph))).astype(D.dtype)
    share = adjacent.sum() / (np.count_nonzero(np.isfinite(paths)) - len(D))
    # w adjacent / (w adjacent + others) = ADJACENT_SHARE; never less than the others
    favour = max(1.0, ADJACENT_SHARE / (1.0 - ADJACENT_SHARE) * (1.0 - share) / share)
    favoured = np.where(adjacent, D.dtype.type(favour), D.dtype.type(1))
    return paths, favoured


def _is_digraph(D: np.ndarray, strengths: bool) -> bool:
    """Whether D is of edges whose direction counts, rather than of distances."""
    known = _known_pairs(D)
    both, edges = int(np.count_nonzero(known & known.T)), int(np.count_nonzero(known))
    if strengths:
        return both < MOSTLY_TWO_WAY * edges
    return both < edges and _all_equal(D)


def _all_equal(D: np.ndarray) -> bool:
    """Whether all known distances are the same; the diagonal is not looked at."""
    lengths = D[_known_pairs(D)]
    return bool(lengths.min() == lengths.max())


def _known_pairs(D: np.ndarray) -> np.ndarray:
    known = np.isfinite(D)
    np.fill_diagonal(known, False)
    return known


def _checked_weights(weights, shape, dtype):
    if weights is None:
        return None
    weights = np.array(weights, dtype=dtype)
    if weights.shape != shape:
        raise ValueError(
            f"weights must have a weight for every pair, shape {shape}; got {weights.shape}."
        )
    if not np.all(np.isfinite(weights)) or weights.min() < 0:
        raise ValueError("weights must be finite and not negative.")
    if is_symmetric(weights) and not is_symmetric(weights, rtol=0.0):
        weights = (weights + weights.T) / 2
    return weights
