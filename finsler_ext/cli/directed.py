"""Reading directed data: a square matrix of costs, or an edge list.

Which of the two a text file is, and what names its points, follows from rules that a person can
state (`finsler-ext embed --help`); the reading is printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from finsler_ext.cli.messages import UsageError
from finsler_ext.cli.tables import (
    FEWEST,
    MOST_ROWS,
    Table,
    format_of,
    load_npy,
    load_npz,
    load_parquet,
    npz_label,
    open_h5ad,
)
from finsler_ext.cli.text import is_missing, is_number, is_text, numbers_of, read_cells
from finsler_ext.directed.data import DirectedData
from finsler_ext.directed.digraph import is_digraph
from finsler_ext.directed.edge_lists import choose_length, find_ends, read_columns
from finsler_ext.directed.read import read_directed, read_frame

# FinslerMDS embeds distances between all pairs. FinslerUMAP, which embeds neighbours, is proposed
# where most edges have no way back, or nodes are many.
MOSTLY_ONE_WAY, MOST_MDS_NODES = 0.5, 5000


def read_directed_file(path: Path, options) -> Table:
    """A table whose X is a `DirectedData`, with nan for unknown pairs of a dense matrix."""
    kind, label = format_of(path, options), None
    _check_options(kind, options)
    columns_said = {n: getattr(options, n) for n in ("source", "target", "weight", "values")}
    with _complaints_about(path):
        if kind in ("csv", "tsv"):
            data = _from_text(path, options.header, columns_said)
        elif kind == "parquet":
            columns, names, _ = load_parquet(path)
            data = read_frame(columns, None if names is None else names.tolist(), **columns_said)
        elif kind == "h5ad":
            data = read_directed(open_h5ad(path), weight=options.weight)
        else:
            data, label = _from_array(path, kind, options, columns_said)
    D = data.distances
    if not scipy.sparse.issparse(D):
        D = np.where(np.isposinf(D), np.nan, D.astype(np.float64, copy=False))
    n = D.shape[0]
    if n < FEWEST:
        read = f", read as {data.how}" if data.how else ""
        raise UsageError(f"{path} has {n} points{read}; an embedding needs at least {FEWEST}")
    n_known = data.n_known
    if n_known == 0:
        raise UsageError(f"{path} has no distance between any two points")
    if np.nanmin(D.data if scipy.sparse.issparse(D) else D) < 0:
        raise UsageError(f"{path} has negative entries; costs must be numbers ≥ 0")
    rows = list(range(n)) if data.names is None else list(data.names)
    source = f"{n} points with {n_known} directed distances"
    return Table(replace(data, distances=D), None, rows, label, source)


def method_for(data) -> tuple[str, str]:
    """The estimator for a `DirectedData`, and why, if it is not the usual one."""
    if data.strengths is not None:
        return "umap", "strengths and transitions say who is near, and not how far apart all are"
    D = data.distances
    if scipy.sparse.issparse(D) and is_digraph(D):
        one_way = data.one_way_share
        if one_way > MOSTLY_ONE_WAY:
            return "umap", f"{100 * one_way:.0f} % of the edges are one-way"
        if D.shape[0] > MOST_MDS_NODES:
            return "umap", f"{D.shape[0]} nodes are many"
    return "mds", ""


def _check_options(kind: str, options) -> None:
    for name in ("metric", "drop", "drop_missing", "standardize", "index"):
        if getattr(options, name):
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{option} is for rows of points; it has no meaning with --directed")
    if options.label is not None and kind != "npz":
        raise UsageError("--label with --directed needs an npz file with an array of that name")


@contextmanager
def _complaints_about(path: Path) -> Iterator[None]:
    """Errors of the package's readers name the file, and the options of the command."""
    try:
        yield
    except (ValueError, TypeError, IndexError, KeyError, AttributeError) as error:
        text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        text = re.sub(r"finsler_ext\.read_directed\(\w+, (.*?)\)", r"\1", text)
        text = re.sub(r"\b(source|target|weight|values)=", r"--\1 ", text)
        raise UsageError(f"{path}: {text}") from None


def _from_array(path: Path, kind: str, options, said: dict):
    """Directed data, and the label of each point or None."""
    others: dict = {}
    if kind == "npz":
        matrix, others = load_npz(path, options.array, "D")
    else:
        matrix = load_npy(path)
    if matrix.shape[0] == matrix.shape[1]:
        _check_size(path, matrix.shape[0])
        data = read_directed(matrix, **said)
    elif scipy.sparse.issparse(matrix) or matrix.shape[1] not in (2, 3):
        raise _neither(path, *matrix.shape)
    else:
        ends = matrix[:, :2]
        if not np.isfinite(ends).all() or (ends != np.round(ends)).any():
            raise UsageError(f"{path}: the first two columns of an edge list must be whole numbers")
        data = _without_header([*ends.T.astype(np.int64), *matrix.T[2:]], said)
    names, n = others.get("names"), data.distances.shape[0]
    if names is not None and names.shape == (n,):
        data = replace(data, names=[str(name) for name in names], how="")
    label = None if options.label is None else npz_label(path, options.label, others, n)
    return data, label


def _without_header(cells: list, said: dict) -> DirectedData:
    """An edge list by the order of its columns."""
    order = ["source", "target", "length"][: len(cells)]
    how = f"an edge list without a header, in the order {', '.join(order)}, the first edge from "
    how += f"{cells[0][0]} to {cells[1][0]}"
    columns = dict(zip(("source", "target", "weight"), cells, strict=False))
    return replace(read_frame(columns, **said), how=how)


# ------------------------------------------------------------------ text


def _from_text(path: Path, is_header: bool | None, said: dict) -> DirectedData:
    lines = [cells for _, cells in read_cells(path)]
    if not lines:
        raise UsageError(f"{path} is empty")
    n, width = len(lines), len(lines[0])
    matrix = _matrix_names(path, lines, is_header)
    if _has_edge_header(lines, said) and (matrix is None or not _surely_matrix(matrix, width)):
        header = lines[0]
        twice = [name for name in header if header.count(name) > 1]
        if twice:
            raise UsageError(f"{path} has several columns {twice[0]!r}; rename them")
        return _edges(path, header, lines[1:], said)
    if matrix is not None and width >= FEWEST:
        return _matrix(path, lines, matrix, said)
    if width not in (2, 3):
        raise _neither(path, n, width)
    if n > 1 and any(is_text(a) and not is_text(b) for a, b in zip(*lines[:2], strict=True)):
        return _edges(path, lines[0], lines[1:], said)  # says that it knows no such columns
    cells: list[Any] = list(zip(*lines, strict=True))
    if width == 3:
        cells[2] = _edge_lengths(path, cells[2])
    return _without_header(cells, said)


class _Names(NamedTuple):
    """What names the points of a square matrix."""

    columns: list[str] | None
    rows: list[str] | None


def _matrix_names(path: Path, lines, header: bool | None) -> _Names | None:
    """The names of a square matrix of numbers; None if the lines are no such matrix."""
    n, width = len(lines), len(lines[0])
    first, side = lines[0], [line[0] for line in lines]
    corner = first[0] == ""
    if n == width and n > 1:
        named = header
        if named is None:
            named = any(map(is_text, first[1:])) or any(map(is_text, side[1:]))
            if not named and corner:
                named = _corner_says_names(path, lines)
        if named:
            body = [line[1:] for line in lines[1:]]
            return _Names(first[1:], side[1:]) if _all_numbers(body) else None
        return _Names(None, None) if _all_numbers(lines) else None
    if n == width + 1 and _all_numbers(lines[1:]) and (header or any(map(is_text, first))):
        return _Names(first, None)
    if n + 1 == width and not header and any(map(is_text, side)):
        return _Names(None, side) if _all_numbers([line[1:] for line in lines]) else None
    return None


def _corner_says_names(path: Path, lines) -> bool:
    """Whether numbers around an empty first cell are names, and not distances."""
    first, side = lines[0][1:], [line[0] for line in lines[1:]]
    alike = set(first) == set(side) and len(set(first)) == len(first)
    empty_diagonal = all(is_missing(line[place]) for place, line in enumerate(lines))
    if alike and empty_diagonal:
        raise UsageError(
            f"{path}: the first cell is empty, and so is the diagonal; say --header if the first "
            "line and the first column are names, or --no-header if they are distances"
        )
    return alike or not empty_diagonal


def _surely_matrix(names: _Names, width: int) -> bool:
    """Whether nodes called source and target, or u and v, are those of a square matrix."""
    if names.rows is None:
        return names.columns is not None and width > FEWEST
    return names.columns is not None and set(names.rows) == set(names.columns)


def _has_edge_header(lines, said: dict) -> bool:
    """Whether the first line names a source and a target, and is not an edge between such nodes."""
    header = lines[0]
    if said["source"] is not None or said["target"] is not None:
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


def _edges(path: Path, header, lines, said: dict) -> DirectedData:
    if not lines:
        raise UsageError(f"{path} has a header but no edges")
    columns: dict[str, Any] = dict(zip(header, zip(*lines, strict=True), strict=True))
    ends = find_ends(header, said["source"], said["target"])
    if ends is not None:
        others = [name for name in header if name not in ends]
        length = choose_length(others, said["weight"], said["values"])
        if length is not None:
            columns[length] = _edge_lengths(path, columns[length])
    return read_columns(columns, **said)


def _edge_lengths(path: Path, cells) -> np.ndarray:
    lengths = np.empty(len(cells))
    wrong = numbers_of(list(cells), lengths)
    if wrong is not None:
        raise UsageError(f"{path}: edge {wrong + 1} has the length {cells[wrong]!r}, not a number")
    return lengths


def _all_numbers(lines) -> bool:
    return all(is_number(cell) or is_missing(cell) for line in lines for cell in line)


def _matrix(path: Path, lines, found: _Names, said: dict) -> DirectedData:
    columns, rows = found
    body = lines if columns is None else lines[1:]
    body = body if rows is None else [line[1:] for line in body]
    _check_size(path, len(body))
    D = np.empty((len(body), len(body)))
    for place, cells in enumerate(body):
        numbers_of(cells, D[place])
    where = " and ".join(
        side for side, given in (("line", columns), ("column", rows)) if given is not None
    )
    names = f"named by the first {where}" if where else "without names"
    how = f"a square matrix {names}, rows being sources"
    if not where:
        return replace(read_directed(D, **said), how=how)
    for given in (rows, columns):
        if given is not None and len(set(given)) < len(given):
            twice = next(name for name in given if given.count(name) > 1)
            raise UsageError(f"{path} has several rows or columns {twice!r}; rename them")
    by_name = dict(zip(columns or rows or (), D.T, strict=True))
    found_data = read_frame(by_name, list(by_name) if rows is None else rows, **said)
    return replace(found_data, how=how)


def _check_size(path: Path, n: int) -> None:
    if n > MOST_ROWS:
        raise UsageError(
            f"{path} is a matrix of {n} points, at most {MOST_ROWS} are possible; an edge list may "
            "have more"
        )


def _neither(path: Path, n: int, width: int) -> UsageError:
    return UsageError(
        f"{path} is neither a square matrix nor an edge list: it has {n} lines of {width} cells, "
        "and no columns called source and target (say which they are with --source and --target; "
        "say --header if its first line names the points). If its rows are points, leave "
        "--directed out"
    )
