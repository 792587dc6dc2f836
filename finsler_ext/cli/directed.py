"""Reading directed data: a square matrix of costs, or an edge list."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

from finsler_ext.cli.tables import format_of, load_npy, load_npz, load_parquet, npz_label
from finsler_ext.cli.text import MISSING, is_number, numbers_of, read_cells
from finsler_ext.cli.usage import UsageError

__all__ = ["Directed", "read_directed"]

# A dense matrix of more rows than this does not fit into memory.
MOST_ROWS = 20_000
SOURCE_WORDS = frozenset({"source", "from", "src", "start", "head"})


class Directed(NamedTuple):
    """Directed costs, nan where unknown; ``edges`` says whether they were listed one by one."""

    D: np.ndarray
    rows: list
    label: np.ndarray | None
    edges: bool


def read_directed(path: Path, options) -> Directed:
    kind = format_of(path)
    for name in ("metric", "drop", "drop_missing", "standardize"):
        if getattr(options, name):
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{option} is for rows of points; it has no meaning with --directed")
    if options.array and kind != "npz":
        raise UsageError(f"--array names an array of an npz file; {path} is {kind}")
    if options.label is not None and kind != "npz":
        raise UsageError("--label with --directed needs an npz file with an array of that name")
    if kind == "h5ad":
        raise UsageError(
            f"{path}: for transitions between cells use finsler_ext.scanpy.velocity in Python"
        )
    label = None
    if kind in ("csv", "tsv"):
        D, rows, edges = _from_text(path)
    elif kind == "parquet":
        columns, _ = load_parquet(path)
        arrays = list(columns.values())
        if len(arrays) == len(arrays[0]) and all(a.dtype.kind in "fiu" for a in arrays):
            D, rows, edges = np.column_stack(arrays).astype(float), list(columns), False
        else:
            D, rows = _from_edges(path, list(zip(*arrays, strict=True)))
            edges = True
    else:
        others: dict = {}
        if kind == "npz":
            matrix, others = load_npz(path, options.array, "D")
        else:
            matrix = load_npy(path)
        D, rows, edges = _from_array(path, matrix)
        names = others.get("names")
        if names is not None and names.shape == (len(rows),):
            rows = [str(name) for name in names]
        if options.label is not None:
            label = npz_label(path, options.label, others, len(rows))
    if D.shape[0] < 4:
        raise UsageError(f"{path} has {D.shape[0]} points; an embedding needs at least 4")
    if np.isnan(D[~np.eye(len(D), dtype=bool)]).all():
        raise UsageError(f"{path} has no distance between any two points")
    if np.nanmin(D) < 0:
        raise UsageError(f"{path} has negative entries; costs must be numbers ≥ 0")
    return Directed(D, rows, label, edges)


def _from_array(path, matrix):
    from finsler_ext.dissimilarity.readers import read_matrix

    if matrix.shape[0] == matrix.shape[1]:
        _check_size(path, matrix.shape[0])
        return read_matrix(matrix).astype(float), list(range(matrix.shape[0])), False
    if scipy.sparse.issparse(matrix) or matrix.shape[1] not in (2, 3):
        raise _neither(path, *matrix.shape)
    if not np.isfinite(matrix[:, :2]).all():
        raise UsageError(f"{path}: the first two columns of an edge list must be whole numbers")
    ends = matrix[:, :2].astype(np.int64).tolist()
    lengths = matrix[:, 2:].tolist()
    D, rows = _from_edges(path, [(*e, *length) for e, length in zip(ends, lengths, strict=True)])
    return D, rows, True


def _from_text(path):
    lines = [cells for _, cells in read_cells(path)]
    if not lines:
        raise UsageError(f"{path} is empty")
    found = _matrix(path, lines)
    if found is not None:
        return (*found, False)
    if len(lines[0]) not in (2, 3):
        raise _neither(path, len(lines), len(lines[0]))
    if _edge_header(lines[0]):
        lines = lines[1:]
    edges = []
    for number, (source, target, *length) in enumerate(lines, 1):
        if length and not is_number(length[0]):
            raise UsageError(f"{path}: edge {number} has the length {length[0]!r}, not a number")
        edges.append((source, target, *(float(cell) for cell in length)))
    D, rows = _from_edges(path, edges)
    return D, rows, True


def _edge_header(cells) -> bool:
    if len(cells) == 3:
        return not is_number(cells[2])
    return cells[0].lower() in SOURCE_WORDS


def _matrix(path, lines):
    """Costs and names if the lines are a square matrix, with or without names; or None."""
    n, width = len(lines), len(lines[0])
    if n == width and _all_numbers(lines):
        return _parsed(path, lines, range(n)), list(range(n))
    if n == width and n > 1:  # names in the first line and in the first column
        rows, body = [line[0] for line in lines[1:]], [line[1:] for line in lines[1:]]
        if _all_numbers(body):
            return _parsed(path, body, rows), rows
    if n == width + 1 and _all_numbers(lines[1:]):  # names in the first line
        return _parsed(path, lines[1:], lines[0]), lines[0]
    if n + 1 == width and _all_numbers([line[1:] for line in lines]):  # in the first column
        rows = [line[0] for line in lines]
        return _parsed(path, [line[1:] for line in lines], rows), rows
    return None


def _all_numbers(lines) -> bool:
    return all(is_number(cell) or cell.lower() in MISSING for line in lines for cell in line)


def _parsed(path, lines, rows) -> np.ndarray:
    _check_size(path, len(lines))
    D = np.empty((len(lines), len(lines)))
    for place, cells in enumerate(lines):
        numbers_of(cells, D[place])
    D[np.isinf(D)] = np.nan
    return D


def _from_edges(path, edges):
    from finsler_ext.dissimilarity.readers import read_edge_list

    ends = {end for edge in edges for end in edge[:2]}
    _check_size(path, len(ends))
    return read_edge_list(edges)


def _check_size(path, n: int) -> None:
    if n > MOST_ROWS:
        raise UsageError(f"{path} has {n} points; at most {MOST_ROWS} with --directed")


def _neither(path, n, width) -> UsageError:
    return UsageError(
        f"{path} is neither a square matrix nor an edge list of 2 or 3 columns: it has {n} lines "
        f"of {width} cells. If its rows are points, leave --directed out"
    )
