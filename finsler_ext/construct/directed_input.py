"""Directed data in any container: all estimators and the command read it here.

`read_directed` is for users who have something to say about their data; the estimators call
`opened`, which calls it with nothing said. Pairs are missing where a dense matrix has nan or inf
or a mask, and where a sparse one has no entry; this is decided in the dtype of the caller.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from finsler_ext.construct.edge_lists import check_weights, find_ends
from finsler_ext.construct.frames import (
    column_names,
    frame_columns,
    matrix_lengths,
    read_frame,
)
from finsler_ext.construct.readers import (
    DirectedData,
    canonical,
    graph_matrix,
    is_digraph,
)

__all__ = [
    "Opened",
    "check_range",
    "marked",
    "named_output",
    "opened",
    "plain",
    "read_anndata",
    "read_directed",
]

# Squares of larger numbers, which every stress and affinity needs, overflow in double precision.
LARGEST = 1e150
# Ends of an edge by these names are hardly ever features of points; u and v, for example, may be.
EDGES_FOR_SURE = (
    "source", "target", "src", "dst", "from", "to", "origin", "destination", "tail", "head",
)  # fmt: skip


class Opened(NamedTuple):
    """What an estimator fits: X, the names of its rows, and of its columns if X was a frame."""

    X: Any
    names: list | None = None
    columns: list | None = None

    def name_points(self, model) -> None:
        """Set ``node_names_`` and, for a frame, scikit-learn's ``feature_names_in_``."""
        model.node_names_ = None
        if self.names is not None:
            model.node_names_ = np.fromiter(self.names, dtype=object, count=len(self.names))
        if self.columns is not None and all(isinstance(name, str) for name in self.columns):
            model.feature_names_in_ = np.asarray(self.columns, dtype=object)


def read_directed(
    data,
    *,
    weights: str | None = None,
    source=None,
    target=None,
    weight=None,
) -> DirectedData:
    """Directed distances and names of the points, from whatever holds them.

    The result goes into ``fit`` of every estimator with ``metric="precomputed"``; so does the
    data itself, where there is nothing to say about it.

    Parameters
    ----------
    data : one of

        - a square array, masked array or sparse matrix, rows being sources. Unknown pairs are
          nan, inf, masked, or not stored; duplicate entries of a sparse matrix are summed;
        - a square pandas or polars frame. Columns are put in the order of the rows by their
          names; where the rows have no names, they are in the order of the columns;
        - an edge list: a frame or a dict of columns with names such as source and target, from
          and to, tail and head, origin and destination, pre and post, u and v, in any order, and
          at most one more column with a length. Without one, every edge counts 1. Of several
          edges from one node to another the cheapest counts (or the sum of their strengths).
          Rows of the result are sorted by name, numbers as numbers;
        - a networkx or igraph graph; the length is the edge attribute "weight". An undirected
          graph counts in both directions;
        - an AnnData: the transition probabilities of CellRank (``obsp["T_fwd"]``) or scvelo
          (``velocity_graph``), or ``obsp[weight]``.
    weights : {"cost", "strength", "transitions"}, optional
        What the numbers are. Costs (default): the more, the further. Strengths (synapses, clicks,
        counts): the more, the closer; the length is −log of the share of all that leaves the
        source. Transition probabilities: the same, and rows must sum to 1. Columns called
        "count", "synapses" and the like are refused unless this is said.
    source, target, weight : names of columns or attributes, optional
        Where the names do not say it.

    Returns
    -------
    DirectedData

    Examples
    --------
    >>> roads = {"to": ["up", "down"], "minutes": [9.0, 5.0], "from": ["down", "up"]}
    >>> D, names = read_directed(roads)
    >>> names
    ['down', 'up']
    >>> D.toarray()
    array([[0., 9.],
           [5., 0.]])
    """
    check_weights(weights)
    said = {"source": source, "target": target, "weight": weight, "weights": weights}
    if isinstance(data, DirectedData):
        return data
    if _package(data) == "anndata":
        return read_anndata(data, weight)[0]
    if is_digraph(data):
        edges = data.edges(data=True)
        return DirectedData(
            *graph_matrix(list(data.nodes), edges, data.is_directed(), weight, weights)
        )
    if _package(data) == "igraph":
        return DirectedData(*_igraph_matrix(data, weight, weights))
    if column_names(data) is not None:
        return read_frame(*frame_columns(data), **said)
    for name in ("source", "target", "weight"):
        if said[name] is not None:
            raise ValueError(
                f"{name}={said[name]!r} names a column of an edge list; the data is a "
                f"{type(data).__name__}."
            )
    return DirectedData(matrix_lengths(_matrix(data), weights), None)


def opened(X, *, precomputed: bool) -> Opened:
    """What ``fit`` or ``transform`` got, as an array or sparse matrix that can be validated.

    Arrays, lists and whatever else is not directed data pass as they are. Without
    ``metric="precomputed"`` graphs and edge lists are refused.
    """
    kind = _kind(X)
    if not precomputed:
        if kind is not None:
            raise ValueError(
                f"X is {kind}, which needs metric='precomputed': it says how far it is from one "
                "point to another, and has no features."
            )
        return Opened(X)
    if kind is None and column_names(X) is None:
        if _lists_edges(X):
            raise ValueError(
                f"X lists edges, {X[0]!r} being the first. Read them with "
                "finsler_ext.construct.readers.read_edge_list, or give them named columns."
            )
        return Opened(plain(X))
    data = read_directed(X)
    square = kind is None and not _is_sparse(data.distances)
    return Opened(data.distances, data.names, data.names if square else None)


def plain(X):
    """A masked array as one with nan, a sparse matrix without duplicates; others as they are."""
    return _matrix(X) if isinstance(X, np.ma.MaskedArray) or _is_sparse(X) else X


def check_range(X, dtype=np.float64) -> None:
    """Refuse distances that are finite for the caller and would be infinite (or 0) for us."""
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    elif isinstance(X, (list, tuple)):
        try:
            X = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError):
            return  # said when X is validated
    values = X.data if _is_sparse(X) else X
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu" or values.size == 0:
        return
    values = np.asarray(values)
    finite = np.isfinite(values)
    largest = float(values.max(initial=0, where=finite))
    most = min(LARGEST, float(np.finfo(dtype).max) / 4)
    if largest > most:
        raise ValueError(
            f"X has distances up to {largest:.3g}, which {np.dtype(dtype).name} cannot hold: use "
            f"another unit, so that they stay below {most:.0e}."
        )
    least = float(np.finfo(dtype).tiny) / float(np.finfo(dtype).eps)
    if 0 < largest < least:
        raise ValueError(
            f"X has no distance above {largest:.3g}, which {np.dtype(dtype).name} takes for 0: use "
            "another unit."
        )


def marked(X, missing: float = np.nan, *, square: bool = True):
    """Directed distances with one mark for missing pairs: ``missing``, or absent if sparse.

    A missing diagonal is 0. A validated array is copied only if there is something to change.
    """
    square = square and X.shape[0] == X.shape[1]
    n_pairs = X.shape[0] * (X.shape[0] - 1)
    if _is_sparse(X):
        X = canonical(X)
        known = np.isfinite(X.data)
        source = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        n_known = np.count_nonzero(known & (source != X.indices))
        if not known.all():
            kept = X.data[known], (source[known], X.indices[known])
            X = scipy.sparse.csr_array(kept, shape=X.shape)
    else:
        unknown = ~np.isfinite(X)
        n_known = n_pairs - np.count_nonzero(unknown)
        if unknown.any():
            X = np.where(unknown, X.dtype.type(missing), X)
            if square:
                own = np.diag_indices_from(X)
                n_known += np.count_nonzero(unknown[own])
                X[own] = np.where(unknown[own], 0, X[own])
    if square and n_pairs > 0 and n_known == 0:
        raise ValueError("X has no known distance between any two points.")
    return X


def named_output(model, embedding):
    """The embedding; with ``set_output(transform="pandas")``, a frame that has the names."""
    from sklearn import get_config

    names = getattr(model, "node_names_", None)
    config = getattr(model, "_sklearn_output_config", {})
    if names is None or config.get("transform", get_config()["transform_output"]) != "pandas":
        return embedding
    import pandas

    return pandas.DataFrame(np.asarray(embedding), index=pandas.Index(names))


def _package(data) -> str:
    return type(data).__module__.partition(".")[0]


def _is_sparse(X) -> bool:
    return scipy.sparse.issparse(X)


def _kind(X) -> str | None:
    """What X is in words, if it cannot be anything but directed data."""
    if isinstance(X, DirectedData):
        return "directed data"
    if is_digraph(X) or _package(X) == "igraph":
        return f"a graph ({_package(X)} {type(X).__name__})"
    if _package(X) == "anndata":
        return "an AnnData"
    columns = column_names(X)
    if columns is not None and len(columns) <= 3:
        sure = {str(name).strip().lower() for name in columns} & set(EDGES_FOR_SURE)
        if len(sure) >= 2 and find_ends(columns) is not None:
            return f"an edge list with the columns {', '.join(map(str, columns))}"
    return None


def _lists_edges(X) -> bool:
    """Whether X is a list of tuples that start with the name of a node."""
    first = X[0] if isinstance(X, (list, tuple)) and X else None
    return isinstance(first, tuple) and len(first) in (2, 3) and isinstance(first[0], str)


def _matrix(data):
    """A sparse matrix in canonical form, or an array with nan where it was masked."""
    if _is_sparse(data):
        return canonical(data)
    if isinstance(data, np.ma.MaskedArray):
        kept = data.dtype if data.dtype.kind == "f" else np.float64
        return data.astype(kept).filled(np.nan)
    return np.asarray(data)


def _igraph_matrix(graph, weight, weights):
    names = graph.vs["name"] if "name" in graph.vs.attributes() else list(range(graph.vcount()))
    if len(set(names)) < len(names):
        names = list(range(graph.vcount()))
    edges = ((names[e.source], names[e.target], e.attributes()) for e in graph.es)
    return graph_matrix(names, edges, graph.is_directed(), weight, weights)


def read_anndata(adata, transitions=None) -> tuple[DirectedData, str]:
    """Lengths −log p of the transitions between cells, and where the probabilities are from.

    ``transitions`` is a matrix, a key of ``obsp``, or None for CellRank's or scvelo's.
    """
    from finsler_ext._anndata import read_transitions

    probabilities, source = read_transitions(adata, transitions)
    lengths = scipy.sparse.csr_array(probabilities)
    lengths.data = -np.log(np.minimum(lengths.data, 1.0)) + 0.0  # not −0.0
    names = getattr(adata, "obs_names", None)
    return DirectedData(lengths, None if names is None else [str(name) for name in names]), source
