"""Reading directed data: a square matrix of costs, or an edge list."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from finsler_ext.cli.tables import (
    format_of,
    load_npy,
    load_npz,
    load_parquet,
    npz_label,
    read_anndata,
)
from finsler_ext.cli.text import MISSING, is_number, numbers_of, read_cells
from finsler_ext.cli.usage import UsageError, listed

__all__ = ["Directed", "read_directed"]

# A dense matrix of more rows than this does not fit into memory.
MOST_ROWS = 20_000
# As many lines as columns, all numbers, and more columns than this: a matrix, whatever the header.
# As in `finsler_ext.construct.frames`, which a command that reads a table does not import.
MOST_EDGE_COLUMNS = 4


class Directed(NamedTuple):
    """Directed costs, nan or absent where unknown; and how a file without names was read."""

    D: Any
    rows: list
    label: np.ndarray | None
    how: str = ""

    @property
    def n_known(self) -> int:
        """Ordered pairs whose distance is known."""
        if scipy.sparse.issparse(self.D):
            entries = self.D.tocoo()
            return int(np.count_nonzero(entries.coords[0] != entries.coords[1]))
        known = np.isfinite(self.D)
        return int(known.sum() - known.diagonal().sum())


def read_directed(path: Path, options) -> Directed:
    kind = format_of(path)
    _check_options(path, kind, options)
    if kind in ("csv", "tsv"):
        data = _from_text(path, options)
    elif kind == "parquet":
        data = _from_parquet(path, options)
    elif kind == "h5ad":
        data = _from_h5ad(path, options)
    elif kind == "npz":
        data = _from_npz(path, options)
    else:
        data = _from_array(path, load_npy(path), options)
    _check_size(path, len(data.rows))
    if len(data.rows) < 4:
        raise UsageError(f"{path} has {len(data.rows)} points; an embedding needs at least 4")
    if data.n_known == 0:
        raise UsageError(f"{path} has no distance between any two points")
    values = data.D.data if scipy.sparse.issparse(data.D) else data.D
    if np.nanmin(values) < 0:
        raise UsageError(f"{path} has negative entries; costs must be numbers ≥ 0")
    return data


def _check_options(path: Path, kind: str, options) -> None:
    for name in ("metric", "drop", "drop_missing", "standardize"):
        if getattr(options, name):
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{option} is for rows of points; it has no meaning with --directed")
    if options.array and kind != "npz":
        raise UsageError(f"--array names an array of an npz file; {path} is {kind}")
    if options.label is not None and kind != "npz":
        raise UsageError("--label with --directed needs an npz file with an array of that name")


def _door(path: Path, function, *arguments, **keywords):
    """Call a reader of the package; its errors name the options of the command."""
    try:
        return function(*arguments, **keywords)
    except ValueError as error:
        named = str(error)
        for name in ("source", "target", "weights", "weight"):
            named = named.replace(f"{name}=", f"--{name} ")
        raise UsageError(f"{path}: {named}") from None


def _said(options) -> dict:
    """What the user says about the columns of an edge list."""
    return {name: getattr(options, name) for name in ("source", "target", "weight", "weights")}


def _from_columns(path: Path, columns: dict, options) -> Directed:
    from finsler_ext.construct.edge_lists import read_columns

    matrix, names = _door(path, read_columns, columns, **_said(options))
    return Directed(matrix, names, None)


def _from_matrix(path: Path, matrix, rows, options, how: str = "") -> Directed:
    """A square matrix; its numbers may be strengths."""
    from finsler_ext.construct.directed_input import read_directed as read

    _check_size(path, matrix.shape[0])
    found = _door(path, read, matrix, **_said(options)).distances
    if not scipy.sparse.issparse(found):
        found = np.where(np.isinf(found), np.nan, found.astype(np.float64, copy=False))
    return Directed(found, list(range(found.shape[0])) if rows is None else list(rows), None, how)


def _from_npz(path: Path, options) -> Directed:
    matrix, others = load_npz(path, options.array, "D")
    data = _from_array(path, matrix, options)
    names = others.get("names")
    if names is not None and names.shape == (len(data.rows),):
        data = data._replace(rows=[str(name) for name in names], how="")
    if options.label is not None:
        label = npz_label(path, options.label, others, len(data.rows))
        data = data._replace(label=label)
    return data


def _from_array(path: Path, matrix, options) -> Directed:
    if matrix.shape[0] == matrix.shape[1]:
        return _from_matrix(path, matrix, None, options)
    if scipy.sparse.issparse(matrix) or matrix.shape[1] not in (2, 3):
        raise _neither(path, *matrix.shape)
    ends = matrix[:, :2]
    if not np.isfinite(ends).all() or (ends != np.round(ends)).any():
        raise UsageError(f"{path}: the first two columns of an edge list must be whole numbers")
    columns: dict[str, Any] = dict(zip(("source", "target"), ends.T.astype(np.int64), strict=True))
    if matrix.shape[1] == 3:
        columns["weight"] = matrix[:, 2]
    data = _from_columns(path, columns, options)
    return data._replace(how=_without_header(columns))


def _without_header(columns: dict) -> str:
    source, target = columns["source"][0], columns["target"][0]
    order = ", ".join("length" if name == "weight" else name for name in columns)
    return (
        f"an edge list without a header, in the order {order}: {len(columns['source'])} edges, the "
        f"first from {source} to {target}"
    )


def _from_parquet(path: Path, options) -> Directed:
    from finsler_ext.construct.frames import read_frame

    columns, rows = load_parquet(path)
    rows = None if rows is None else rows.tolist()
    found = _door(path, read_frame, columns, rows, **_said(options))
    names = list(range(found.distances.shape[0])) if found.names is None else found.names
    return Directed(found.distances, names, None)


def _from_h5ad(path: Path, options) -> Directed:
    from finsler_ext.construct.directed_input import read_directed as read

    adata = read_anndata(path)
    found = _door(path, read, adata, weight=options.weight)
    return Directed(found.distances, found.names or [], None)


def _from_text(path: Path, options) -> Directed:
    lines = [cells for _, cells in read_cells(path)]
    if not lines:
        raise UsageError(f"{path} is empty")
    if not _is_named_matrix(lines, options) and _has_edge_header(lines, options):
        header = lines[0]
        twice = [name for name in header if header.count(name) > 1]
        if twice:
            raise UsageError(f"{path} has several columns {twice[0]!r}; rename them")
        return _edges(path, header, lines[1:], options)
    found = _matrix(path, lines, options)
    if found is not None:
        return found
    width = len(lines[0])
    if width not in (2, 3):
        raise _neither(path, len(lines), width)
    if width == 3 and len(lines) > 1 and _is_text(lines[0][2]) and not _is_text(lines[1][2]):
        return _edges(path, lines[0], lines[1:], options)  # says that it knows no such columns
    names = ["source", "target", "weight"][:width]
    data = _edges(path, names, lines, options)
    first = {name: [cell] * len(lines) for name, cell in zip(names, lines[0], strict=True)}
    return data._replace(how=_without_header(first))


def _is_text(cell: str) -> bool:
    return not is_number(cell) and cell.lower() not in MISSING


def _is_named_matrix(lines, options) -> bool:
    """Whether nodes called source and target, or u and v, are those of a square matrix."""
    n, width = len(lines), len(lines[0])
    if options.source is not None or options.target is not None or n not in (width, width + 1):
        return False
    named = n == width and {line[0] for line in lines[1:]} == set(lines[0][1:])
    body = [line[1:] for line in lines[1:]] if n == width else lines[1:]
    return named or (width > MOST_EDGE_COLUMNS and _all_numbers(body))


def _has_edge_header(lines, options) -> bool:
    """Whether the first line names a source and a target, and is not an edge between such nodes."""
    from finsler_ext.construct.edge_lists import find_ends

    header = lines[0]
    if options.source is not None or options.target is not None:
        return True
    if any(is_number(cell) for cell in header):
        return False
    try:
        ends = find_ends(header)
    except ValueError:
        return True  # more than one source: said when the columns are read
    if ends is None:
        return False
    places = [header.index(str(end)) for end in ends]
    nodes = {line[place] for line in lines[1:] for place in places}
    return not nodes & {str(end) for end in ends}


def _edges(path: Path, header, lines, options) -> Directed:
    from finsler_ext.construct.edge_lists import choose_length, find_ends

    ends = _door(path, find_ends, header, options.source, options.target)
    columns: dict[str, Any] = dict(zip(header, zip(*lines, strict=True), strict=True))
    if ends is not None and lines:
        others = [name for name in header if name not in ends]
        length = _door(path, choose_length, others, options.weight, options.weights)
        if length is not None:
            columns[length] = _edge_lengths(path, columns[length])
    return _from_columns(path, columns, options)


def _edge_lengths(path: Path, cells) -> np.ndarray:
    lengths = np.empty(len(cells))
    wrong = numbers_of(list(cells), lengths)
    if wrong is not None:
        raise UsageError(f"{path}: edge {wrong + 1} has the length {cells[wrong]!r}, not a number")
    return lengths


def _matrix(path: Path, lines, options) -> Directed | None:
    """The data if the lines are a square matrix, with or without names; or None."""
    n, width = len(lines), len(lines[0])
    if n == width and _all_numbers(lines):
        how = "a square matrix without names, rows being sources"
        return _parsed(path, lines, None, None, options)._replace(how=how)
    if n == width and n > 1:  # names in the first line and in the first column
        rows, body = [line[0] for line in lines[1:]], [line[1:] for line in lines[1:]]
        if _all_numbers(body):
            return _parsed(path, body, rows, lines[0][1:], options)
    if n == width + 1 and _all_numbers(lines[1:]):  # names in the first line
        return _parsed(path, lines[1:], None, lines[0], options)
    if n + 1 == width and _all_numbers([line[1:] for line in lines]):  # in the first column
        rows = [line[0] for line in lines]
        return _parsed(path, [line[1:] for line in lines], rows, None, options)
    return None


def _all_numbers(lines) -> bool:
    return all(is_number(cell) or cell.lower() in MISSING for line in lines for cell in line)


def _parsed(path: Path, lines, rows, columns, options) -> Directed:
    """Numbers with their columns in the order of the rows, by name."""
    _check_size(path, len(lines))
    D = np.empty((len(lines), len(lines)))
    for place, cells in enumerate(lines):
        numbers_of(cells, D[place])
    for names in (rows, columns):
        if names is not None and len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise UsageError(f"{path} has several rows or columns {twice!r}; rename them")
    if rows is not None and columns is not None:
        lost = [name for name in rows if name not in set(columns)]
        if lost:
            raise UsageError(
                f"{path}: the columns are not named as the rows are; {listed(lost)} "
                f"{'is a row' if len(lost) == 1 else 'are rows'} and no column"
            )
        place_of = {name: place for place, name in enumerate(columns)}
        D = D[:, [place_of[name] for name in rows]]
    return _from_matrix(path, D, columns if rows is None else rows, options)


def _check_size(path: Path, n: int) -> None:
    if n > MOST_ROWS:
        raise UsageError(f"{path} has {n} points; at most {MOST_ROWS} with --directed")


def _neither(path: Path, n: int, width: int) -> UsageError:
    return UsageError(
        f"{path} is neither a square matrix nor an edge list: it has {n} lines of {width} cells, "
        "and no columns called source and target (say which they are with --source and --target). "
        "If its rows are points, leave --directed out"
    )
