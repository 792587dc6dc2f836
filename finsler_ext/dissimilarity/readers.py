"""Directed data as it comes: matrices, digraphs, edge lists, transition probabilities.

Every reader gives a dense matrix D, D[i, j] being the dissimilarity from i to j, with nan for
pairs that are not known. The stress leaves those pairs out (weight 0); `complete_paths` fills
them in along shortest directed paths instead.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from finsler_ext.dissimilarity.directed_distances import shortest_paths

__all__ = [
    "DirectedData",
    "complete_paths",
    "is_digraph",
    "read_digraph",
    "read_edge_list",
    "read_matrix",
    "read_transition_probabilities",
]

# csgraph takes a stored zero for "no edge"; such edges get this share of the median length.
ZERO_LENGTH = 1e-9
# Rows of a transition matrix may miss a sum of 1 by this much (float32 sums of many entries).
STOCHASTIC_TOLERANCE = 1e-3


class DirectedData(NamedTuple):
    """A directed matrix, nan where unknown, and the names of its rows."""

    distances: np.ndarray
    names: list


def read_matrix(D, dtype=None) -> np.ndarray:
    """A dense or sparse matrix; entries that a sparse one does not store are unknown.

    Dense floating-point matrices are returned as they are, not copied.

    Examples
    --------
    >>> import scipy.sparse
    >>> read_matrix(scipy.sparse.csr_array([[0.0, 2.0], [0.0, 0.0]]))
    array([[ 0.,  2.],
           [nan,  0.]])
    """
    if scipy.sparse.issparse(D):
        entries = scipy.sparse.coo_array(D)
        _check_square(entries.shape)
        dtype = dtype or (entries.dtype if entries.dtype == np.float32 else np.float64)
        dense = np.full(entries.shape, np.nan, dtype=dtype)
        dense[entries.coords] = entries.data
        np.fill_diagonal(dense, 0.0)
        return dense
    D = np.asarray(D)
    if dtype is None:
        dtype = D.dtype if D.dtype in (np.float32, np.float64) else np.float64
    D = np.asarray(D, dtype=dtype)
    _check_square(D.shape)
    return D


def _check_square(shape) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"Directed dissimilarities must be a square matrix (rows are sources), got shape "
            f"{tuple(shape)}. For features use metric='euclidean' or another name; for an edge "
            "list use finsler_ext.dissimilarity.readers.read_edge_list."
        )


def is_digraph(data) -> bool:
    """True for networkx graphs and what quacks like them."""
    return hasattr(data, "nodes") and hasattr(data, "edges") and hasattr(data, "is_directed")


def read_digraph(graph, weight: str | None = "weight") -> DirectedData:
    """A networkx graph: edge u → v with attribute ``weight`` as its length (1 if it has none).

    An undirected graph counts in both directions; of parallel edges the shortest one counts.
    """
    names = list(graph.nodes)
    edges = [
        (u, v, 1.0 if weight is None else data.get(weight, 1.0))
        for u, v, data in graph.edges(data=True)
    ]
    if not graph.is_directed():
        edges += [(v, u, length) for u, v, length in edges]
    return read_edge_list(edges, names)


def read_edge_list(
    edges: Iterable[Sequence], names: Sequence[Hashable] | None = None
) -> DirectedData:
    """Tuples (source, target) or (source, target, length); without a length it is 1.

    Parameters
    ----------
    edges : iterable of tuples, or array of shape (n_edges, 2 or 3)
    names : sequence, optional
        Rows of the result; by default the names met, sorted where they can be.

    Examples
    --------
    >>> D, names = read_edge_list([("down", "up", 2.0), ("up", "down", 1.0)])
    >>> names
    ['down', 'up']
    >>> D
    array([[0., 2.],
           [1., 0.]])
    """
    edges = list(edges)
    if any(len(edge) not in (2, 3) for edge in edges):
        raise ValueError("An edge must be (source, target) or (source, target, length).")
    if names is None:
        met = dict.fromkeys(end for edge in edges for end in (edge[0], edge[1]))
        try:
            names = sorted(met)
        except TypeError:
            names = list(met)
    names = list(names)
    place = {name: row for row, name in enumerate(names)}
    D = np.full((len(names), len(names)), np.inf)
    for edge in edges:
        try:
            source, target = place[edge[0]], place[edge[1]]
        except KeyError as unknown:
            raise ValueError(
                f"names does not have {unknown.args[0]!r}, which is in edges."
            ) from None
        length = float(edge[2]) if len(edge) == 3 else 1.0
        if not length >= 0 or np.isinf(length):
            raise ValueError(
                f"The length of an edge must be a number ≥ 0, got {edge[2]!r} on "
                f"{edge[0]!r} → {edge[1]!r}."
            )
        D[source, target] = min(D[source, target], length)
    D[np.isinf(D)] = np.nan
    np.fill_diagonal(D, 0.0)
    return DirectedData(D, names)


def read_transition_probabilities(T) -> np.ndarray:
    """−log of a row-stochastic matrix: a path is then as long as its probability is small.

    Transitions of probability 0 are unknown pairs; the diagonal (staying) is not looked at.
    """
    T = scipy.sparse.csr_array(T, dtype=np.float64)
    _check_square(T.shape)
    if T.nnz and (T.data.min() < 0 or np.isnan(T.data).any()):
        raise ValueError("Transition probabilities must be numbers ≥ 0.")
    rows = np.asarray(T.sum(axis=1)).ravel()
    off = np.flatnonzero(np.abs(rows - 1.0) > STOCHASTIC_TOLERANCE)
    if off.size:
        raise ValueError(
            f"Rows of a transition matrix must sum to 1; row {off[0]} sums to {rows[off[0]]:.4g} "
            f"({off.size} such rows). Divide each row by its sum, and check that rows are sources."
        )
    T.eliminate_zeros()
    lengths = T.copy()
    lengths.data = -np.log(np.minimum(T.data, 1.0)) + 0.0
    return read_matrix(lengths)


def complete_paths(D) -> np.ndarray:
    """Shortest directed paths over the known pairs, of D's dtype; inf where there is none."""
    D = read_matrix(D)
    known = np.isfinite(D)
    np.fill_diagonal(known, False)
    source, target = np.nonzero(known)
    length = D[source, target].astype(np.float64)
    if length.size and length.min() < 0:
        raise ValueError(f"Dissimilarities must not be negative, got {length.min():g}.")
    positive = length[length > 0]
    length = np.maximum(length, ZERO_LENGTH * (np.median(positive) if positive.size else 1.0))
    graph = scipy.sparse.coo_array((length, (source, target)), shape=D.shape).tocsr()
    return shortest_paths(graph, D.dtype)
