"""Directed data in any container: all estimators and the command read it here.

`read_directed` is for users who have something to say about their data; the estimators call
`as_matrix`, which calls it with nothing said. Pairs are missing where a dense matrix has nan or inf
or a mask, and where a sparse one has no entry; this is decided in the dtype of the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from finsler_ext.directed.data import (
    DirectedData,
    check_values,
    directed_data,
    refuse_adjacency,
    without_duplicates,
)
from finsler_ext.directed.edge_lists import (
    choose_length,
    edge_data,
    find_ends,
    is_nameless,
    read_columns,
    read_names,
)
from finsler_ext.validation import checked_structure

# Squares of larger numbers, which every stress and affinity needs, overflow in double precision.
LARGEST = 1e150
# What is smaller has few digits left.
SMALLEST = float(np.finfo(np.float64).tiny / np.finfo(np.float64).eps)
# Ends of an edge by these names are hardly ever features of points; u and v, for example, may be.
EDGES_FOR_SURE = ("source", "target", "from", "to", "origin", "destination", "tail", "head")
# A square frame of numbers with more columns than this is a matrix, whatever they are called.
MOST_EDGE_COLUMNS = 4


class MatrixInput(NamedTuple):
    """What an estimator fits: X, the names of its rows, and of its columns if X was a frame.

    strengths : sparse array of the strengths or transitions that X was made of, or None
    """

    X: Any
    names: list | None = None
    columns: list | None = None
    strengths: Any = None

    def name_points(self, model) -> None:
        """Set ``node_names_`` and, for a frame, scikit-learn's ``feature_names_in_``."""
        model.node_names_ = None
        if self.names is not None:
            model.node_names_ = np.fromiter(self.names, dtype=object, count=len(self.names))
        if self.columns is not None and all(isinstance(name, str) for name in self.columns):
            model.feature_names_in_ = np.asarray(self.columns, dtype=object)


def read_directed(
    data, *, source=None, target=None, weight=None, values: str | None = None
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
        - a list of tuples (source, target) or (source, target, length);
        - a networkx or igraph graph; the length is the edge attribute "weight". An undirected
          graph counts in both directions;
        - an AnnData: the transition probabilities of CellRank (``obsp["T_fwd"]``) or scvelo
          (``velocity_graph``), or ``obsp[weight]``.
    source, target, weight : names of columns or attributes, optional
        Where the names do not say it.
    values : {"cost", "strength", "transitions"}, optional
        What the numbers are. Costs (default): the more, the further. Strengths (synapses, clicks,
        counts): the more, the closer; the length is −log of the share of all that leaves the
        source. Transition probabilities: the same, and rows must sum to 1, or to less where
        transitions from a state to itself are left out. Columns called "count", "synapses" and the
        like are refused unless this is said.

    Returns
    -------
    DirectedData
        ``print`` says what was read.

    Examples
    --------
    >>> roads = {"to": ["up", "down"], "minutes": [9.0, 5.0], "from": ["down", "up"]}
    >>> data = read_directed(roads)
    >>> print(data)
    source = from, target = to, length = minutes; 2 nodes, 2 edges, 0 % one-way
    >>> data.names
    ['down', 'up']
    >>> data.distances.toarray()
    array([[0., 9.],
           [5., 0.]])
    """
    check_values(values)
    if isinstance(data, DirectedData):
        return data
    said = {"source": source, "target": target, "weight": weight, "values": values}
    if _package(data) == "anndata":
        return read_anndata(data, weight)[0]
    if _is_graph(data):
        edges = data.edges(data=True)
        return _graph_data(list(data.nodes), edges, data.is_directed(), weight, values)
    if _package(data) == "igraph":
        return _igraph_data(data, weight, values)
    if column_names(data) is not None:
        return read_frame(*frame_columns(data), **said)
    if _lists_edges(data) or _lists_numbered_edges(data):
        if any(len(edge) not in (2, 3) for edge in data):
            raise ValueError("An edge must be (source, target) or (source, target, length).")
        sources, targets, numbers = zip(*((*edge, 1.0)[:3] for edge in data), strict=True)
        ends = read_names(sources, "source"), read_names(targets, "target")
        return edge_data(*ends, numbers, values=values)
    if isinstance(data, (list, tuple)) and len(data) in (2, 3):
        lengths = {len(part) for part in data if np.ndim(part) == 1}
        if all(np.ndim(part) == 1 for part in data) and lengths != {len(data)}:
            raise ValueError(
                "Separate sequences of sources, targets and lengths: pass a list of edges, "
                "list(zip(sources, targets, lengths)), or a dict with the keys source, target "
                "and weight."
            )
    for name in ("source", "target", "weight"):
        if said[name] is not None:
            raise ValueError(
                f"{name}={said[name]!r} names a column of an edge list; the data is a "
                f"{type(data).__name__}."
            )
    matrix = unmask(data)
    if not scipy.sparse.issparse(matrix):
        matrix = _numeric(matrix)
        if matrix.dtype.kind not in "biuf":
            raise ValueError(
                f"The data must be numbers, got {type(data).__name__} of {matrix.dtype}. A list of "
                "edges has tuples: [(source, target), ...]."
            )
    return directed_data(matrix, None, values)


def _numeric(matrix) -> np.ndarray:
    """Objects as numbers, if they are some; otherwise as they are."""
    try:
        matrix = np.asarray(matrix)
        return matrix.astype(np.float64) if matrix.dtype.kind == "O" else matrix
    except (TypeError, ValueError):
        return np.asarray(matrix, dtype=object) if not isinstance(matrix, np.ndarray) else matrix


def as_matrix(X, *, precomputed: bool) -> MatrixInput:
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
        return MatrixInput(X)
    if kind is None and column_names(X) is None and not _lists_numbered_edges(X):
        X = unmask(X)
        if isinstance(X, (np.ndarray, list, tuple)):
            refuse_adjacency(_numeric(X))
        return MatrixInput(X)
    data = read_directed(X)
    square = kind is None and not scipy.sparse.issparse(data.distances)
    return MatrixInput(data.distances, data.names, data.names if square else None, data.strengths)


def unmask(X):
    """A masked array as one with nan, a sparse matrix without duplicates; others as they are."""
    if scipy.sparse.issparse(X):
        return without_duplicates(X)
    if isinstance(X, np.ma.MaskedArray):
        return X.astype(X.dtype if X.dtype.kind == "f" else np.float64).filled(np.nan)
    return X


def check_node_names(model, X) -> None:
    """Refuse new distances in a frame whose columns are not the points of the fit, in order."""
    columns, nodes = column_names(X), getattr(model, "node_names_", None)
    if columns is None or nodes is None or columns == list(range(len(columns))):
        return
    if [str(name) for name in columns] != [str(name) for name in nodes]:
        raise ValueError(
            "The columns of new distances must be the points that the model was fitted to, in "
            "their order. The feature names should match: use frame[list(model.node_names_)]."
        )


def check_row_names(X, incoming) -> None:
    """Refuse distances of new points whose rows have other names in one direction."""
    if any(column_names(D) is None for D in (X, incoming)):
        return
    there, back = (frame_columns(D)[1] for D in (X, incoming))
    if None not in (there, back) and there != back:
        raise ValueError(
            "incoming: its rows are not named as those of X, or are in another order. The same "
            "row is the same new point: use incoming.loc[X.index]."
        )


def check_range(X) -> None:
    """Refuse negative distances, and finite ones that would be infinite (or 0) for us."""
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    values = X.data if scipy.sparse.issparse(X) else X
    if isinstance(values, (list, tuple)) or getattr(values, "dtype", np.dtype(float)).kind == "O":
        try:
            values = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            return  # said when X is validated
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu" or values.size == 0:
        return
    values = np.asarray(values)
    finite = np.isfinite(values)
    if not finite.all() and np.isneginf(values).any():
        raise ValueError(
            "X has distances of −inf: distances are not negative. Pairs that are not known are nan "
            "or inf."
        )
    lowest = float(values.min(initial=0, where=finite))
    if lowest < 0:
        at = np.argwhere(values == lowest)[0].tolist() if values.ndim == 2 else "some pairs"
        raise ValueError(
            f"Negative values in data: distances must not be negative, got {lowest:g} at {at}. "
            "Turn similarities into distances first; for counts and probabilities use "
            "finsler_ext.read_directed(data, values='strength')."
        )
    largest = float(values.max(initial=0, where=finite))
    if largest > LARGEST:
        raise ValueError(
            f"X has distances up to {largest:.3g}, which float64 cannot hold: use another unit, so "
            f"that they stay below {LARGEST:.0e}."
        )
    if 0 < largest < SMALLEST:
        raise ValueError(
            f"X has no distance above {largest:.3g}, which float64 takes for 0: use another unit."
        )


def fill_missing(X, missing: float = np.nan, *, square: bool = True):
    """Directed distances with one mark for missing pairs: ``missing``, or absent if sparse.

    A missing diagonal is 0. A validated array is copied only if there is something to change.
    """
    square = square and X.shape[0] == X.shape[1]
    n_pairs = X.shape[0] * (X.shape[0] - 1)
    if scipy.sparse.issparse(X):
        X = without_duplicates(X)
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


def _kind(X) -> str | None:
    """What X is in words, if it cannot be anything but directed data."""
    if isinstance(X, DirectedData):
        return "directed data"
    if _is_graph(X) or _package(X) == "igraph":
        return f"a graph ({_package(X)} {type(X).__name__})"
    if _package(X) == "anndata":
        return "an AnnData"
    if _lists_edges(X):
        return f"a list of edges, {X[0]!r} being the first"
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


def _lists_numbered_edges(X) -> bool:
    """Whether X is a list of tuples that cannot be the rows of a square matrix."""
    if not isinstance(X, list) or not X or not all(isinstance(edge, tuple) for edge in X):
        return False
    sizes = {len(edge) for edge in X}
    if not sizes <= {2, 3}:
        return False
    return sizes != {len(X)} or any(edge[place] != 0 for place, edge in enumerate(X))


def _is_graph(data) -> bool:
    """True for networkx graphs and what quacks like them."""
    return hasattr(data, "nodes") and hasattr(data, "edges") and hasattr(data, "is_directed")


def _graph_data(nodes, edges, directed: bool, weight, values: str | None) -> DirectedData:
    """A graph given by its nodes and its edges (u, v, attributes).

    The length is the attribute ``weight``, or the only one whose name says that it is one; edges
    without it count 1, as in networkx. An undirected graph counts in both directions.
    """
    edges = list(edges)
    attributes = list(dict.fromkeys(name for _, _, given in edges for name in given))
    if weight is None and "weight" in attributes:
        weight = "weight"
    name = choose_length(attributes, weight, values, lone=False)
    numbers = [1.0 if name is None else given.get(name, 1.0) for _, _, given in edges]
    sources, targets = [u for u, _, _ in edges], [v for _, v, _ in edges]
    if not directed:
        sources, targets, numbers = sources + targets, targets + sources, numbers + numbers
    how = "every edge counts 1" if name is None else f"length = {name}"
    return edge_data(sources, targets, numbers, nodes, values=values, how=how)


def _igraph_data(graph, weight, values: str | None) -> DirectedData:
    names = graph.vs["name"] if "name" in graph.vs.attributes() else list(range(graph.vcount()))
    if len(set(names)) < len(names):
        names = list(range(graph.vcount()))
    edges = ((names[e.source], names[e.target], e.attributes()) for e in graph.es)
    return _graph_data(names, edges, graph.is_directed(), weight, values)


# Frames of pandas and polars, and dicts of columns: square matrices or edge lists by name.


def is_polars(X) -> bool:
    return type(X).__module__.partition(".")[0] == "polars" and hasattr(X, "get_columns")


def column_names(X) -> list | None:
    """Of a frame or a dict of columns."""
    # scipy's dictionary of keys is a Mapping
    if isinstance(X, Mapping) and not scipy.sparse.issparse(X):
        return list(X)
    if is_polars(X):
        return list(X.columns)
    return list(X.columns) if hasattr(X, "iloc") and hasattr(X, "columns") else None


def frame_columns(data) -> tuple[dict, list | None]:
    """Columns by name, and the names of the rows; None if they have none."""
    if isinstance(data, Mapping):
        return dict(data), None
    if is_polars(data):
        return {column.name: column for column in data.get_columns()}, None
    names = list(data.columns)
    if len(set(names)) < len(names):
        raise ValueError("The frame has several columns of the same name. Rename them.")
    rows = data.index.tolist()
    # an index that only counts names nothing, unless the columns are these numbers
    counted = rows == list(range(len(rows))) and (set(rows) != set(names) or rows == names)
    return {name: data[name] for name in names}, None if counted else rows


def read_frame(columns: dict, rows: list | None = None, **said) -> DirectedData:
    """A square matrix or an edge list by its columns; ``said`` is as in `read_directed`."""
    said = dict.fromkeys(("source", "target", "weight", "values")) | said
    names = list(columns)
    if not names:
        raise ValueError("The frame has no columns.")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"The columns have different lengths: {lengths}.")
    if rows is None:
        columns, rows = _without_row_names(columns)
    if said["source"] is not None or said["target"] is not None:
        return read_columns(columns, **said)
    if not _is_matrix(columns, rows) and find_ends(names) is not None:
        return read_columns(columns, **said)
    return _read_square(columns, rows, said["values"])


def _without_row_names(columns: dict) -> tuple[dict, list | None]:
    """Take off a first column that holds the names of the others; without one, no row names."""
    first, *others = columns
    names = _cells(columns[first])
    if len(names) == len(others) and set(names) == set(others):
        return {name: columns[name] for name in others}, names
    # pandas reads numbers that name columns as text, and those that name rows as numbers
    text = [str(name) for name in names]
    if is_nameless(first) and len(text) == len(others) and set(text) == set(others):
        return {name: columns[name] for name in others}, text
    return columns, None


def _is_matrix(columns: dict, rows: list | None) -> bool:
    """Whether a frame is a matrix even if some of its columns are called source and target."""
    if rows is not None and set(rows) == set(columns):
        return True
    n = len(columns)
    numbers = (np.asarray(column).dtype.kind in "fiu" for column in columns.values())
    return (
        n > MOST_EDGE_COLUMNS
        and all(len(column) == n for column in columns.values())
        and all(numbers)
    )


def _read_square(columns: dict, rows: list | None, values: str | None) -> DirectedData:
    names = list(columns)
    n = len(columns[names[0]])
    if n != len(names):
        raise ValueError(
            f"The frame is neither square ({n} rows, {len(names)} columns) nor an edge list: its "
            f"columns are {', '.join(map(repr, names[:8]))}{', ...' if len(names) > 8 else ''}. "
            "Columns called source and target would make it one; or say which they are, "
            "finsler_ext.read_directed(frame, source=..., target=...)."
        )
    numbered = names == list(range(n))
    order = names
    if rows is not None and not numbered:
        lost = [name for name in rows if name not in set(names)]
        if lost or len(set(rows)) < n:
            cause = "some rows have the same name"
            if lost:
                cause = f"{lost[0]!r} is a row and not a column ({len(lost)} such rows)"
            raise ValueError(
                f"The columns of the frame are not the names of its rows: {cause}. Name both "
                "alike, each once, or pass the values alone."
            )
        order = rows
    elif rows is not None and set(rows) == set(names):
        order = rows
    try:
        numbers = np.column_stack([_numbers(columns[name]) for name in order])
    except (TypeError, ValueError):
        raise ValueError(
            f"The frame with the columns {', '.join(map(repr, names[:8]))} is neither a matrix of "
            "numbers nor an edge list: none of them is known as the source and none as the target "
            "of an edge. Say which they are: finsler_ext.read_directed(frame, source=..., "
            "target=...)."
        ) from None
    found = rows if rows is not None else (None if numbered else names)
    return directed_data(numbers, found, values)


def _cells(column) -> list:
    method = getattr(column, "to_list", getattr(column, "tolist", None))
    return list(column) if method is None else method()


def _numbers(column) -> np.ndarray:
    values = np.asarray(getattr(column, "values", column))
    if values.dtype in (np.float32, np.float64):
        return values
    cells = _cells(column)
    missing = (cell is None or type(cell).__name__ == "NAType" for cell in cells)
    known = [np.nan if gone else cell for cell, gone in zip(cells, missing, strict=True)]
    return np.array(known, dtype=np.float64)


# Weight of the cosines in a velocity graph: scvelo's own, p_ij ∝ exp(10 cos_ij).
VELOCITY_SCALE = 10.0


def read_anndata(adata, transitions=None) -> tuple[DirectedData, str]:
    """The transitions between cells, and where their probabilities are from.

    ``transitions`` is a matrix, a key of ``obsp``, or None for CellRank's or scvelo's.
    """
    probabilities, source = read_transitions(adata, transitions)
    names = getattr(adata, "obs_names", None)
    names = None if names is None else [str(name) for name in names]
    return directed_data(probabilities, names, "transitions", f"transitions = {source}"), source


def read_transitions(adata, transitions):
    """A sparse matrix of transition probabilities, and where it is from."""
    if transitions is None:
        if "T_fwd" not in adata.obsp:
            return _softmax(_velocity_graph(adata)), "velocity_graph"
        transitions = "T_fwd"
    name = "given"
    if isinstance(transitions, str):
        name = transitions
        if name not in adata.obsp:
            raise ValueError(
                f"transitions={name!r} is not in obsp ({', '.join(adata.obsp) or 'empty'})."
            )
        transitions = adata.obsp[name]
    if scipy.sparse.issparse(transitions):
        checked_structure(transitions, "transitions")
    T = scipy.sparse.csr_matrix(transitions, dtype=np.float64)
    if T.shape != (adata.n_obs, adata.n_obs):
        raise ValueError(
            f"transitions must have shape ({adata.n_obs}, {adata.n_obs}), got {T.shape}."
        )
    if T.nnz == 0 or not np.isfinite(T.data).all() or T.data.min() < 0:
        raise ValueError("transitions must be numbers ≥ 0, not all of them 0.")
    return T, name


def _velocity_graph(adata):
    """Cosines of scvelo's velocity graph, positive and negative ones together."""
    for place in (adata.uns, adata.obsp):
        if "velocity_graph" in place:
            negative = place.get("velocity_graph_neg")
            cosines = scipy.sparse.csr_matrix(place["velocity_graph"], dtype=np.float64)
            return cosines if negative is None else cosines + scipy.sparse.csr_matrix(negative)
    raise ValueError(
        "adata has neither obsp['T_fwd'] (CellRank) nor a velocity_graph (scvelo). Run "
        "scv.tl.velocity_graph(adata), or give transitions."
    )


def _softmax(cosines):
    """Probabilities of moving; staying is no transition."""
    entries = scipy.sparse.coo_matrix(cosines)
    away = (entries.row != entries.col) & (entries.data != 0)
    kept = (entries.data[away], (entries.row[away], entries.col[away]))
    T = scipy.sparse.csr_matrix(kept, shape=entries.shape)
    T.data = np.exp(VELOCITY_SCALE * T.data)
    T.data /= np.repeat(np.asarray(T.sum(axis=1)).ravel(), np.diff(T.indptr))
    return T
