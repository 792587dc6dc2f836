"""Directed distances between all points, for MDS: ‖x_j − x_i‖/σ_i along the neighbour graph.

Every edge i → j of the directed kNN graph is as long as the distance divided by the scale of
its source, so leaving a dense region costs more than entering it. The graph is made strongly
connected, and all other distances follow as directed shortest paths.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import dijkstra
from sklearn.metrics import pairwise_distances

from finsler_ext.dissimilarity.connectivity import strongly_connected
from finsler_ext.dissimilarity.geodesics import neighbor_graph
from finsler_ext.dissimilarity.neighbors import (
    EUCLIDEAN,
    DirectedNeighbors,
    exact_neighbors,
)
from finsler_ext.dissimilarity.source_scales import source_scale

__all__ = ["DirectedDistances", "directed_distances", "shortest_paths"]

BLOCK_ROWS = 256


class DirectedDistances(NamedTuple):
    """Directed distances between all points, and what they were made from."""

    distances: np.ndarray
    """Of shape (n, n), rows being sources."""
    graph: scipy.sparse.csr_array
    """Scaled edges, strongly connected."""
    local_scale: np.ndarray
    """Scale of each source, with geometric mean 1."""
    neighbors: DirectedNeighbors


def directed_distances(
    X,
    n_neighbors: int = 15,
    *,
    metric: str | Callable = "euclidean",
    metric_kwds: dict | None = None,
    local_scale="mean",
    dtype=np.float64,
    n_threads: int = 1,
) -> DirectedDistances:
    """Geodesic distances D_ij from every point to every other, at the scale of the sources.

    Parameters
    ----------
    X : array of shape (n, features)
    n_neighbors : int
        Neighbours of each point, itself not counted.
    metric, metric_kwds
        As in `finsler_ext.dissimilarity.exact_neighbors`.
    local_scale : {"mean", "none", "kth", "umap", "perplexity"} or array of shape (n,)
        See `finsler_ext.dissimilarity.source_scales`. With an array, edges count in both
        directions, so that density does not speak through the choice of neighbours.
    dtype : numpy dtype
        Of the distances.
    n_threads : int

    Examples
    --------
    >>> import numpy as np
    >>> X = np.concatenate([np.arange(5.0), 5.0 + 4 * np.arange(5.0)])[:, None]
    >>> D = directed_distances(X, n_neighbors=2).distances
    >>> bool(D[0, 9] > D[9, 0])  # leaving the dense end costs more
    True
    """
    neighbors = exact_neighbors(
        X, n_neighbors + 1, metric=metric, metric_kwds=metric_kwds, n_threads=n_threads
    )
    scale = source_scale(local_scale, neighbors.distances, n_threads)
    graph = neighbor_graph(neighbors)
    if not isinstance(local_scale, str):
        graph = graph.maximum(graph.T)
    graph = scaled_rows(graph, scale)
    between = None
    if metric not in EUCLIDEAN:
        between = partial(_between, X, metric, metric_kwds or {})
    graph = strongly_connected(graph, X, distances=between, source_scale=scale)
    return DirectedDistances(shortest_paths(graph, dtype), graph, scale, neighbors)


def scaled_rows(graph, scale) -> scipy.sparse.csr_array:
    graph = scipy.sparse.csr_array(graph, dtype=np.float64, copy=True)
    graph.data /= np.repeat(scale, np.diff(graph.indptr))
    return graph


def shortest_paths(graph, dtype=np.float64) -> np.ndarray:
    """Lengths of the shortest directed paths between all points; inf where there is none.

    Computed in blocks of rows, so that a float32 result needs no float64 matrix beside it.
    """
    n = graph.shape[0]
    lengths = np.empty((n, n), dtype=dtype)
    for start in range(0, n, BLOCK_ROWS):
        sources = np.arange(start, min(start + BLOCK_ROWS, n))
        lengths[sources] = dijkstra(graph, indices=sources)
    return lengths


def _between(X, metric, kwds, rows, columns) -> np.ndarray:
    if isinstance(metric, str):
        return pairwise_distances(X[rows], X[columns], metric=metric, **kwds)
    return np.array([[metric(x, y, *kwds.values()) for y in X[columns]] for x in X[rows]])
