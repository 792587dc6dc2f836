"""Making a directed neighbour graph strongly connected, so that geodesics exist both ways."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

__all__ = ["strongly_connected"]

# Nearest pairs between weak components are searched through at most this many points of each.
MAX_POINTS_PER_COMPONENT = 2000


def strongly_connected(
    graph,
    X=None,
    *,
    distances: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
    source_scale: np.ndarray | None = None,
) -> scipy.sparse.csr_array:
    """Add the fewest natural edges until every point can reach every other.

    Weakly connected components are joined by their closest pair of points, each to the nearest
    component not yet joined; then, where strong connectivity still fails, existing edges
    between strong components get their reverse.

    Parameters
    ----------
    graph : sparse array of shape (n, n)
        Positive edge lengths, rows being sources.
    X : array, optional
        Points, for Euclidean closest pairs.
    distances : callable, optional
        ``distances(rows, columns)`` → directed distances between two sets of points; takes
        precedence over X. inf means that there is none.
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
    there = measure_pairs(measure, i, j)
    back = measure_pairs(measure, j, i)
    # A direction without a distance of its own takes the other's.
    there, back = np.where(np.isfinite(there), there, d), np.where(np.isfinite(back), back, d)
    return _with_edges(
        graph,
        np.concatenate([i, j]),
        np.concatenate([j, i]),
        np.concatenate([there / scale[i], back / scale[j]]),
    )


def measure_pairs(measure, rows, columns) -> np.ndarray:
    return np.array([measure(rows[[e]], columns[[e]])[0, 0] for e in range(len(rows))])


def _reverse_one_way_edges(graph, label, scale):
    edges = graph.tocoo()
    source, target = edges.coords
    between = label[source] != label[target]
    source, target, length = source[between], target[between], edges.data[between]
    return _with_edges(graph, target, source, length * scale[source] / scale[target])


def _with_edges(graph, source, target, length):
    """Add edges, keeping the shorter where one exists; zero lengths stay edges."""
    old = graph.tocoo()
    row = np.concatenate([old.coords[0], source])
    column = np.concatenate([old.coords[1], target])
    value = np.concatenate([old.data, length])
    order = np.lexsort((value, column, row))
    row, column, value = row[order], column[order], value[order]
    first = np.ones(row.size, dtype=bool)
    first[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
    return scipy.sparse.csr_array((value[first], (row[first], column[first])), shape=graph.shape)
