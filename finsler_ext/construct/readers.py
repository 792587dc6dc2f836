"""Directed data as it comes: matrices, digraphs, edge lists, transition probabilities.

Every reader gives a dense matrix D, D[i, j] being the dissimilarity from i to j, with nan for
pairs that are not known. One rule says which those are: nan and inf in a dense matrix, absent
entries in a sparse one. The stress leaves them out (weight 0); `complete_paths` fills them in
along shortest directed paths instead. `finsler_ext.read_directed` takes all kinds of data.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from finsler_ext.construct.directed_distances import shortest_paths
from finsler_ext.construct.edge_lists import choose_length, edge_matrix, path_lengths
from finsler_ext.construct.geodesics import ZERO_LENGTH
from finsler_ext.construct.input import checked_structure

__all__ = [
    "MOSTLY_KNOWN",
    "DirectedData",
    "canonical",
    "complete_paths",
    "graph_matrix",
    "is_digraph",
    "mostly_known",
    "read_digraph",
    "read_edge_list",
    "read_matrix",
    "read_transition_probabilities",
]

# With fewer pairs known than this share, distances say little about the whole without the paths
# that they are parts of: on direct flights (5 % of the pairs) a descent from a start along shortest
# paths ends at less than half the stress.
MOSTLY_KNOWN = 0.5


class DirectedData(NamedTuple):
    """Directed distances between points, and their names.

    distances : array with nan for unknown pairs, or sparse array that stores the known ones
    names : of the rows; None where the data has none
    """

    distances: np.ndarray | scipy.sparse.csr_array
    names: list | None


def read_matrix(D, dtype=None) -> np.ndarray:
    """A dense or sparse matrix; entries that a sparse one does not store are unknown.

    Duplicate entries of a sparse matrix are summed, as scipy does. Dense floating-point matrices
    without inf are returned as they are, not copied.

    Examples
    --------
    >>> import scipy.sparse
    >>> read_matrix(scipy.sparse.csr_array([[0.0, 2.0], [0.0, 0.0]]))
    array([[ 0.,  2.],
           [nan,  0.]])
    """
    if scipy.sparse.issparse(D):
        _check_square(D.shape)
        entries = canonical(D).tocoo()
        dtype = dtype or (entries.dtype if entries.dtype == np.float32 else np.float64)
        dense = np.full(entries.shape, np.nan, dtype=dtype)
        dense[entries.coords] = entries.data
        np.fill_diagonal(dense, 0.0)
    else:
        dense = D.filled(np.nan) if _has_mask(D) else np.asarray(D)
        if dtype is None:
            dtype = dense.dtype if dense.dtype in (np.float32, np.float64) else np.float64
        dense = np.asarray(dense, dtype=dtype)
        _check_square(dense.shape)
    infinite = np.isinf(dense)
    if infinite.any():
        dense = np.where(infinite, dense.dtype.type(np.nan), dense)
    return dense


def canonical(matrix) -> scipy.sparse.csr_array:
    """The matrix in CSR format with its duplicates summed; the caller's is not changed."""
    matrix = scipy.sparse.csr_array(checked_structure(matrix))
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _has_mask(D) -> bool:
    return isinstance(D, np.ma.MaskedArray) and D.dtype.kind == "f"


def _check_square(shape) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"Directed dissimilarities must be a square matrix (rows are sources), got shape "
            f"{tuple(shape)}. For features use metric='euclidean' or another name; for an edge "
            "list use finsler_ext.read_directed (columns with names) or "
            "finsler_ext.construct.readers.read_edge_list (tuples)."
        )


def is_digraph(data) -> bool:
    """True for networkx graphs and what quacks like them."""
    return hasattr(data, "nodes") and hasattr(data, "edges") and hasattr(data, "is_directed")


def read_digraph(graph, weight: str | None = "weight") -> DirectedData:
    """A networkx graph: edge u → v with attribute ``weight`` as its length (1 if it has none).

    An undirected graph counts in both directions; of parallel edges the shortest one counts.
    """
    edges = [
        (u, v, 1.0 if weight is None else data.get(weight, 1.0))
        for u, v, data in graph.edges(data=True)
    ]
    if not graph.is_directed():
        edges += [(v, u, length) for u, v, length in edges]
    return read_edge_list(edges, list(graph.nodes))


def graph_matrix(nodes, edges, directed: bool, weight=None, weights: str | None = None):
    """Sparse distances of a graph given by its nodes and its edges (u, v, attributes).

    The length is the attribute ``weight``, or the only one whose name says that it is one; edges
    without it count 1, as in networkx. An undirected graph counts in both directions.
    """
    edges = list(edges)
    attributes = list(dict.fromkeys(name for _, _, given in edges for name in given))
    if weight is None and "weight" in attributes:
        weight = "weight"
    name = choose_length(attributes, weight, weights, lone=False)
    lengths = [1.0 if name is None else given.get(name, 1.0) for _, _, given in edges]
    sources, targets = [u for u, _, _ in edges], [v for _, v, _ in edges]
    if not directed:
        sources, targets, lengths = sources + targets, targets + sources, lengths + lengths
    return edge_matrix(sources, targets, lengths, nodes, weights=weights)


def read_edge_list(
    edges: Iterable[Sequence], names: Sequence[Hashable] | None = None
) -> DirectedData:
    """Tuples (source, target) or (source, target, length); without a length it is 1.

    Parameters
    ----------
    edges : iterable of tuples, or array of shape (n_edges, 2 or 3)
        Of several edges from one node to another the shortest counts; nan and inf are no edge.
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
    matrix, names = edge_matrix(
        [edge[0] for edge in edges],
        [edge[1] for edge in edges],
        [float(edge[2]) if len(edge) == 3 else 1.0 for edge in edges],
        names,
    )
    return DirectedData(read_matrix(matrix), names)


def read_transition_probabilities(T) -> np.ndarray:
    """−log of a row-stochastic matrix: a path is then as long as its probability is small.

    Transitions of probability 0 are unknown pairs; the diagonal (staying) is not looked at.
    """
    T = scipy.sparse.csr_array(T, dtype=np.float64)
    _check_square(T.shape)
    return read_matrix(path_lengths(T, stochastic=True))


def mostly_known(D: np.ndarray) -> bool:
    """Whether at least half of the ordered pairs of a dense matrix are known."""
    n = D.shape[0]
    known = np.isfinite(D)
    return np.count_nonzero(known) - np.count_nonzero(known.diagonal()) >= MOSTLY_KNOWN * n * (
        n - 1
    )


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
