"""Frames of pandas and polars, and dicts of columns: square matrices or edge lists by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse

from finsler_ext.construct.edge_lists import find_ends, path_lengths, read_columns
from finsler_ext.construct.readers import DirectedData

__all__ = ["column_names", "frame_columns", "matrix_lengths", "read_frame"]


# A square frame of numbers with more columns than this is a matrix, whatever they are called.
MOST_EDGE_COLUMNS = 4


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
    """A square matrix or an edge list by its columns; ``said`` is as in `read_directed`."""
    said = dict.fromkeys(("source", "target", "weight", "weights")) | said
    names = list(columns)
    if not names:
        raise ValueError("The frame has no columns.")
    if rows is None:
        columns, rows = _without_row_names(columns)
    if said["source"] is not None or said["target"] is not None:
        return DirectedData(*read_columns(columns, **said))
    if not _is_matrix(columns, rows) and find_ends(names) is not None:
        return DirectedData(*read_columns(columns, **said))
    return _read_square(columns, rows, said["weights"])


def _without_row_names(columns: dict) -> tuple[dict, list | None]:
    """Take off a first column that holds the names of the others; without one, no row names."""
    first, *others = columns
    names = _cells(columns[first])
    if len(names) == len(others) and set(names) == set(others):
        return {name: columns[name] for name in others}, names
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


def _read_square(columns: dict, rows: list | None, weights: str | None) -> DirectedData:
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
        values = np.column_stack([_numbers(columns[name]) for name in order])
    except (TypeError, ValueError):
        raise ValueError(
            f"The frame with the columns {', '.join(map(repr, names[:8]))} is neither a matrix of "
            "numbers nor an edge list: none of them is known as the source and none as the target "
            "of an edge. Say which they are: finsler_ext.read_directed(frame, source=..., "
            "target=...)."
        ) from None
    found = rows if rows is not None else (None if numbered else names)
    return DirectedData(matrix_lengths(values, weights), found)


def _cells(column) -> list:
    for method in ("to_list", "tolist"):
        if hasattr(column, method):
            return getattr(column, method)()
    return list(column)


def _numbers(column) -> np.ndarray:
    values = np.asarray(getattr(column, "values", column))
    if values.dtype in (np.float32, np.float64):
        return values
    cells = [np.nan if _is_null(cell) else cell for cell in _cells(column)]
    return np.array(cells, dtype=np.float64)


def _is_null(cell) -> bool:
    return cell is None or type(cell).__name__ == "NAType"
