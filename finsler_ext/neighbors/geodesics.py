"""Geodesic extension: directed shortest paths, cut off at the k⁺ nearest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit
from scipy.sparse.csgraph import connected_components, dijkstra

from finsler_ext._threads import row_blocks
from finsler_ext.neighbors.exact import EUCLIDEAN, block_function, exact_neighbors
from finsler_ext.neighbors.search import DirectedNeighbors, NewNeighbors
from finsler_ext.scales import SourceScale, scale_of_new, source_scale
from finsler_ext.schema import array, part, saved, sparse

# csgraph takes a stored zero for "no edge"; such edges get this share of the median length.
ZERO_LENGTH = 1e-9
# Where all neighbours are duplicates there is no median: shorter than any distance in any unit.
SHORTEST = 1e-290


def neighbor_graph(neighbors: DirectedNeighbors) -> scipy.sparse.csr_array:
    """Directed distances on the neighbour edges, rows being sources, lengths positive."""
    graph = neighbors.matrix().astype(np.float64)
    positive = graph.data[graph.data > 0]
    least = ZERO_LENGTH * np.median(positive) if positive.size else SHORTEST
    graph.data = np.maximum(graph.data, least)
    return graph


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


# Making a directed neighbour graph strongly connected, so that geodesics exist both ways.

# Nearest pairs between weak components are searched through at most this many points of each.
MAX_POINTS_PER_COMPONENT = 2000


def strongly_connected(
    graph,
    X=None,
    *,
    distances: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
    source_scale: np.ndarray | None = None,
) -> scipy.sparse.csr_array:
    """Add a few edges, so that every point can reach every other.

    Weakly connected components are joined by their closest pair of points, each to the nearest
    component not yet joined; then, where strong connectivity still fails, existing edges
    between strong components get their reverse.

    Parameters
    ----------
    graph : sparse array of positive edge lengths
    X : array, optional
        Points, for Euclidean closest pairs.
    distances : callable, optional
        ``distances(rows, columns)`` → directed distances between two sets of points, inf where
        there is none; takes precedence over X.
    source_scale : array, optional
        Where the graph's lengths are distances divided by the scale of the source: an added
        edge is divided by the scale of its own source.
    """
    graph = scipy.sparse.csr_array(graph, dtype=np.float64)
    scale = np.ones(graph.shape[0]) if source_scale is None else np.asarray(source_scale)
    n_weak, weak = connected_components(graph, connection="weak")
    if n_weak > 1:
        measure = distances or _euclidean_between(X)
        graph = _join(graph, weak, n_weak, measure, scale)
    n_strong, strong = connected_components(graph, connection="strong")
    if n_strong > 1:
        graph = _reverse_one_way_edges(graph, strong, scale)
    return graph


def _euclidean_between(X):
    if X is None:
        raise ValueError(
            "The neighbour graph falls apart into components with no known distance between "
            "them. Increase n_neighbors, or give distances for more pairs."
        )
    from sklearn.metrics import pairwise_distances

    return lambda rows, columns: pairwise_distances(X[rows], X[columns])


def _join(graph, label, n_components, measure, scale):
    """Grow one component by its closest neighbour component until all are in (Prim)."""
    members = [np.flatnonzero(label == c) for c in range(n_components)]
    rng = np.random.RandomState(0)
    sample = [
        m
        if m.size <= MAX_POINTS_PER_COMPONENT
        else np.sort(rng.choice(m, MAX_POINTS_PER_COMPONENT, replace=False))
        for m in members
    ]
    joined = np.zeros(n_components, dtype=bool)
    best = np.full(n_components, np.inf)
    best_pair = np.zeros((n_components, 2), dtype=np.int64)
    newest = int(np.argmax([m.size for m in members]))
    added = []
    for _ in range(n_components - 1):
        joined[newest] = True
        outside = np.flatnonzero(~joined)
        columns = np.concatenate([sample[c] for c in outside])
        between = np.minimum(measure(sample[newest], columns), measure(columns, sample[newest]).T)
        row = between.argmin(axis=0)
        value = between[row, np.arange(columns.size)]
        start = 0
        for c in outside:
            stop = start + sample[c].size
            at = start + int(value[start:stop].argmin())
            if value[at] < best[c]:
                best[c] = value[at]
                best_pair[c] = sample[newest][row[at]], columns[at]
            start = stop
        newest = int(outside[best[outside].argmin()])
        if not np.isfinite(best[newest]):
            raise ValueError(
                "The directed graph falls apart into components with no distance between them "
                "in either direction; a geodesic extension is not defined. Increase "
                "n_neighbors, give distances for more pairs, or set geodesic_neighbors=None."
            )
        added.append((*best_pair[newest], best[newest]))
    i, j, d = (np.array(column) for column in zip(*added, strict=True))
    i, j = i.astype(np.int64), j.astype(np.int64)
    there, back = (
        np.array([measure(a[[e]], b[[e]])[0, 0] for e in range(len(a))])
        for a, b in ((i, j), (j, i))
    )
    # A direction without a distance of its own takes the other's.
    there, back = np.where(np.isfinite(there), there, d), np.where(np.isfinite(back), back, d)
    return _with_edges(
        graph,
        np.concatenate([i, j]),
        np.concatenate([j, i]),
        np.concatenate([there / scale[i], back / scale[j]]),
    )


def _reverse_one_way_edges(graph, label, scale):
    edges = graph.tocoo()
    source, target = edges.coords
    between = label[source] != label[target]
    source, target, length = source[between], target[between], edges.data[between]
    return _with_edges(graph, target, source, length * scale[source] / scale[target])


def _with_edges(graph, source, target, length):
    """Add edges, keeping the shorter where one exists."""
    old = graph.tocoo()
    row = np.concatenate([old.coords[0], source])
    column = np.concatenate([old.coords[1], target])
    return shortest_edges(row, column, np.concatenate([old.data, length]), graph.shape)


def shortest_edges(source, target, length, shape) -> scipy.sparse.csr_array:
    """The shortest of all edges between the same two points; zero lengths stay edges."""
    source, target, length = shortest_pairs(source, target, length)
    return scipy.sparse.csr_array((length, (source, target)), shape=shape)


def shortest_pairs(source, target, length) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every pair of source and target once, sorted, with the shortest of its lengths."""
    order = np.lexsort((length, target, source))
    source, target, length = source[order], target[order], length[order]
    first = np.ones(source.size, dtype=bool)
    first[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    return source[first], target[first], length[first]


def extended_new_neighbors(
    found: NewNeighbors, indices: np.ndarray, lengths: np.ndarray, k: int
) -> NewNeighbors:
    """The ``k`` nearest along directed paths: one edge, then a geodesic of a training point.

    ``indices`` and ``lengths`` are the geodesic neighbours of the training points, themselves
    first. The way back leads along a geodesic and then an edge, and is missing where no
    geodesic that was kept leads to one of the new point's neighbours.
    """
    n_new = found.indices.shape[0]
    out = NewNeighbors(
        np.full((n_new, k), -1, dtype=np.int64),
        np.full((n_new, k), np.inf),
        np.full((n_new, k), np.inf),
    )
    lengths = np.asarray(lengths, dtype=np.float64)
    _extend(*found, indices, lengths, np.full(len(indices), np.inf), *out)
    return out


@njit(cache=True)
def _extend(near, outgoing, incoming, indices, lengths, shortest, to, there, back):
    k = to.shape[1]
    touched = np.empty(near.shape[1] * indices.shape[1], dtype=np.int64)
    for row in range(near.shape[0]):
        n_touched = 0
        for e in range(near.shape[1]):
            j = near[row, e]
            if j >= 0:
                for s in range(indices.shape[1]):
                    target = indices[j, s]
                    if target >= 0:
                        if shortest[target] == np.inf:
                            touched[n_touched] = target
                            n_touched += 1
                        length = outgoing[row, e] + lengths[j, s]
                        shortest[target] = min(shortest[target], length)
        reached = np.sort(touched[:n_touched])
        order = np.argsort(shortest[reached], kind="mergesort")
        for place in range(min(k, n_touched)):
            target = reached[order[place]]
            to[row, place] = target
            there[row, place] = shortest[target]
            for s in range(indices.shape[1]):
                for e in range(near.shape[1]):
                    if near[row, e] >= 0 and indices[target, s] == near[row, e]:
                        length = lengths[target, s] + incoming[row, e]
                        back[row, place] = min(back[row, place], length)
        shortest[reached] = np.inf


# Directed distances between all points, for MDS: ‖x_j − x_i‖/σ_i along the neighbour graph.
#
# Every edge i → j of the directed kNN graph is as long as the distance divided by the scale of
# its source, so leaving a dense region costs more than entering it. The graph is made strongly
# connected, and all other distances follow as directed shortest paths.


@saved(
    distances=array("f4 f8", "n n", "[0, inf]"),
    graph=sparse("f8", "n n", "[0, inf)"),
    scale=part("SourceScale", n="n"),
    neighbors=part("DirectedNeighbors", n="n"),
)
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
    n_neighbors : int
        Neighbours of each point, itself not counted.
    local_scale : {"mean", "none", "kth", "umap", "perplexity"} or array of shape (n,)
        See `finsler_ext.scales`. With an array, edges count in both
        directions, because the choice of neighbours depends on density.

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
    graph = scipy.sparse.csr_array(graph, dtype=np.float64, copy=True)
    graph.data /= np.repeat(scale.values, np.diff(graph.indptr))
    other = metric not in EUCLIDEAN
    between = partial(metric_between, X, metric, metric_kwds or {}) if other else None
    graph = strongly_connected(graph, X, distances=between, source_scale=scale.values)
    if graph.nnz and graph.data.max() <= SHORTEST:
        raise ValueError(
            f"metric={metric!r} gives 0 for all rows: there are no distances to embed. Choose "
            "another metric."
        )
    return DirectedDistances(shortest_paths(graph, dtype), graph, scale, neighbors)


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

    ``new_scale`` is the scale of the new points, in the same units, if ``local_scale`` is an array.
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
