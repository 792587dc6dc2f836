"""Frames of pandas and polars, and dicts of columns: square matrices or edge lists by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse

from finsler_ext.dissimilarity.edge_lists import find_ends, path_lengths, read_columns
from finsler_ext.dissimilarity.readers import DirectedData

__all__ = ["column_names", "frame_columns", "matrix_lengths", "read_frame"]


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


def matrix_lengths(matrix, weights: str | None):
    if weights not in ("strength", "transitions"):
        return matrix
    if not scipy.sparse.issparse(matrix):
        matrix = np.where(np.isfinite(matrix), matrix, 0.0)
    return path_lengths(matrix, stochastic=weights == "transitions")


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
    """A square matrix or an edge list by its columns; ``said`` is what `read_directed` is told."""
    said = dict.fromkeys(("source", "target", "weight", "weights")) | said
    names = list(columns)
    matching = rows is not None and set(rows) == set(names) and len(set(rows)) == len(rows)
    given = said["source"] is not None or said["target"] is not None
    if given or (not matching and find_ends(names) is not None):
        return DirectedData(*read_columns(columns, **said))
    if rows is None and names and len(_cells(columns[names[0]])) == len(names) - 1:
        first = _cells(columns[names[0]])  # a column with the names of the rows
        if set(first) == set(names[1:]) and len(set(first)) == len(first):
            columns = {name: columns[name] for name in names[1:]}
            rows, names, matching = list(first), names[1:], True
    n = len(_cells(columns[names[0]])) if names else 0
    if n != len(names):
        raise ValueError(
            f"The frame is neither square ({n} rows, {len(names)} columns) nor an edge list: its "
            f"columns are {', '.join(map(repr, names[:8]))}{', ...' if len(names) > 8 else ''}. "
            "Columns called source and target would make it one; or say which they are, "
            "finsler_ext.read_directed(frame, source=..., target=...)."
        )
    numbered = names == list(range(n))
    if rows is not None and not matching and not numbered:
        lost = [name for name in rows if name not in set(names)]
        raise ValueError(
            f"The columns of the frame are not the names of its rows: {lost[0]!r} is a row and "
            f"not a column ({len(lost)} such rows). Name both alike, or pass the values alone."
            if lost
            else "The rows of the frame have names that are not unique."
        )
    order = rows if matching and rows is not None else names
    values = np.column_stack([_numbers(columns[name], name) for name in order])
    found = rows if rows is not None else (None if numbered else names)
    return DirectedData(matrix_lengths(values, said["weights"]), found)


def _cells(column) -> list:
    for method in ("to_list", "tolist"):
        if hasattr(column, method):
            return getattr(column, method)()
    return list(column)


def _numbers(column, name) -> np.ndarray:
    values = np.asarray(getattr(column, "values", column))
    if values.dtype in (np.float32, np.float64):
        return values
    try:
        cells = [np.nan if _is_null(cell) else cell for cell in _cells(column)]
        return np.array(cells, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"Column {name!r} of the frame does not hold numbers. A square frame holds distances "
            "only; the columns of an edge list have names such as source and target."
        ) from None


def _is_null(cell) -> bool:
    return cell is None or type(cell).__name__ == "NAType"
