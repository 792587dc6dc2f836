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

from finsler_ext._blocks import row_blocks
from finsler_ext.construct.connectivity import strongly_connected
from finsler_ext.construct.geodesics import neighbor_graph
from finsler_ext.construct.neighbors import (
    EUCLIDEAN,
    DirectedNeighbors,
    block_function,
    exact_neighbors,
)
from finsler_ext.construct.source_scales import SourceScale, scale_of_new, source_scale

__all__ = [
    "DirectedDistances",
    "directed_distances",
    "distances_of_new",
    "metric_between",
    "shortest_paths",
]


class DirectedDistances(NamedTuple):
    """Directed distances between all points, and what they were made from."""

    distances: np.ndarray
    """Of shape (n, n), rows being sources."""
    graph: scipy.sparse.csr_array
    """Scaled edges, strongly connected."""
    scale: SourceScale
    """Scale of each source, relative to all."""
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
        As in `finsler_ext.construct.exact_neighbors`.
    local_scale : {"mean", "none", "kth", "umap", "perplexity"} or array of shape (n,)
        See `finsler_ext.construct.source_scales`. With an array, edges count in both
        directions, because the choice of neighbours depends on density.
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
    graph = _scaled_rows(graph, scale.values)
    between = None
    if metric not in EUCLIDEAN:
        between = partial(metric_between, X, metric, metric_kwds or {})
    graph = strongly_connected(graph, X, distances=between, source_scale=scale.values)
    return DirectedDistances(shortest_paths(graph, dtype), graph, scale, neighbors)


def _scaled_rows(graph, scale) -> scipy.sparse.csr_array:
    graph = scipy.sparse.csr_array(graph, dtype=np.float64, copy=True)
    graph.data /= np.repeat(scale, np.diff(graph.indptr))
    return graph


def shortest_paths(graph, dtype=np.float64) -> np.ndarray:
    """Lengths of the shortest directed paths between all points; inf where there is none.

    Computed in blocks of rows, so that a float32 result needs no float64 matrix beside it.
    """
    n = graph.shape[0]
    lengths = np.empty((n, n), dtype=dtype)
    for rows in row_blocks(n):
        lengths[rows] = dijkstra(graph, indices=np.arange(rows.start, rows.stop))
    return lengths


def metric_between(X, metric, kwds, rows, columns) -> np.ndarray:
    """Directed distances from rows to columns of X, or of a pair (rows of one, of another)."""
    sources, targets = X if isinstance(X, tuple) else (X, X)
    return block_function(sources[rows], targets[columns], metric, kwds)(0, len(rows))


def distances_of_new(
    X_new,
    X,
    known: DirectedDistances,
    *,
    metric: str | Callable = "euclidean",
    metric_kwds: dict | None = None,
    local_scale="mean",
    new_scale: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Directed distances from new points to the known ones, and back.

    A new point has an edge to each of its nearest known points, by its own scale, and an edge
    from every known point that would have it among its neighbours, by that point's scale (or,
    if there is none, from its own neighbours). Each of the paths goes on along the known ones.

    Parameters
    ----------
    X_new : array of shape (n_new, features)
    X, known, metric, metric_kwds, local_scale
        What the distances of the known points were made from.
    new_scale : array of shape (n_new,), optional
        Scale of the new points, if ``local_scale`` is an array: in the same units.

    Returns
    -------
    outgoing, incoming : arrays of shape (n_new, n)
    """
    kwds = metric_kwds or {}
    k = known.neighbors.indices.shape[1] - 1
    furthest = np.where(np.isfinite(known.neighbors.distances), known.neighbors.distances, 0.0)
    reach = furthest.max(axis=1)
    n_new, n = X_new.shape[0], X.shape[0]
    outgoing, incoming = np.empty((n_new, n)), np.empty((n_new, n))
    everything = np.arange(n)
    for row in range(n_new):
        there = metric_between((X_new, X), metric, kwds, [row], everything)[0]
        back = there
        if callable(metric):
            back = metric_between((X, X_new), metric, kwds, everything, [row])[:, 0]
        near = np.argsort(there, kind="stable")[:k]
        if new_scale is None:
            own = scale_of_new(local_scale, np.append(0.0, there[near])[None, :], known.scale)[0]
        else:
            own = new_scale[row]
        first = there[near] / own
        outgoing[row] = (first[:, None] + known.distances[near]).min(axis=0)
        sources = np.flatnonzero(back <= reach)
        if sources.size == 0:
            sources = near
        last = back[sources] / known.scale.values[sources]
        incoming[row] = (known.distances[:, sources] + last).min(axis=1)
    return outgoing, incoming
