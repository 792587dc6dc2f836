"""Geodesic extension: directed shortest paths, cut off at the k⁺ nearest."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import dijkstra

from finsler_ext._blocks import row_blocks
from finsler_ext.construct.connectivity import strongly_connected
from finsler_ext.construct.neighbors import DirectedNeighbors

__all__ = ["geodesic_neighbors", "neighbor_graph"]

# csgraph takes a stored zero for "no edge"; such edges get this share of the median length.
ZERO_LENGTH = 1e-9
# Where all neighbours are duplicates there is no median: shorter than any distance in any unit.
SHORTEST = 1e-290


def neighbor_graph(neighbors: DirectedNeighbors) -> scipy.sparse.csr_array:
    """Directed distances on the neighbour edges, rows being sources, lengths positive."""
    indices = neighbors.indices[:, 1:]
    row, column = np.nonzero(indices >= 0)
    length = neighbors.distances[:, 1:][row, column].astype(np.float64)
    positive = length[length > 0]
    least = ZERO_LENGTH * np.median(positive) if positive.size else SHORTEST
    length = np.maximum(length, least)
    n = indices.shape[0]
    return scipy.sparse.coo_array((length, (row, indices[row, column])), shape=(n, n)).tocsr()


def geodesic_neighbors(
    neighbors: DirectedNeighbors, n_neighbors: int, X=None, *, distances=None
) -> DirectedNeighbors:
    """The ``n_neighbors`` (itself included) nearest points along the directed neighbour graph.

    The graph is first made strongly connected (see `strongly_connected`, which explains ``X``
    and ``distances``). Shortest paths are searched no further than needed, block by block.
    """
    n, k = neighbors.indices.shape
    if not k <= n_neighbors <= n:
        raise ValueError(
            f"geodesic_neighbors must lie between n_neighbors ({k}) and the number of points "
            f"({n}), got {n_neighbors}."
        )
    graph = strongly_connected(neighbor_graph(neighbors), X, distances=distances)
    indices = np.empty((n, n_neighbors), dtype=np.int32)
    lengths = np.empty((n, n_neighbors), dtype=np.float64)
    reach = np.inf
    for rows in row_blocks(n):
        sources = np.arange(rows.start, rows.stop)
        along = dijkstra(graph, indices=sources, limit=reach)
        short = np.isfinite(along).sum(axis=1) < n_neighbors
        if short.any():  # the limit learnt from earlier blocks was too tight for these
            along[short] = dijkstra(graph, indices=sources[short])
        along[np.arange(sources.size), sources] = -1.0
        near = np.argpartition(along, n_neighbors - 1, axis=1)[:, :n_neighbors]
        values = np.take_along_axis(along, near, axis=1)
        order = np.lexsort((near, values), axis=1)
        indices[sources] = np.take_along_axis(near, order, axis=1)
        lengths[sources] = np.take_along_axis(values, order, axis=1)
        reach = 2.0 * lengths[: sources[-1] + 1, -1].max()
    lengths[:, 0] = 0.0
    return DirectedNeighbors(indices, lengths.astype(np.float32), None)
