"""Reading csv and tsv: cells, header, numbers; every complaint names the line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from finsler_ext.cli.header import MISSING, has_header, is_number
from finsler_ext.cli.usage import UsageError, listed

__all__ = ["MISSING", "TextTable", "is_number", "numbers_of", "read_cells", "read_text_table"]

# Rows that are turned into numbers together; more would only take memory.
CHUNK = 20_000
# Lines that are looked at to tell a header from a row.
LOOKED_AT = 1000
# Columns that a complaint offers to leave out.
MOST_DROPPED = 8


class TextTable(NamedTuple):
    """Columns of numbers, the label as text, the names of the rows if the file has any.

    ``how`` says how the file was read: with or without a header, and what names the rows.
    """

    names: list[str]
    values: np.ndarray
    label: list[str] | None
    row_names: list[str] | None
    how: str


class Columns(NamedTuple):
    """Names of all columns, and the numbers of those that are used for something."""

    names: list[str]
    used: list[int]
    label: int | None
    row_names: int | None
    header: bool


def read_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every line; all have equally many cells.

    Blank lines are skipped. Lines of nothing but separators are rows of missing values.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            delimiter = "\t" if path.suffix.lower() in (".tsv", ".tab") else _delimiter(first)
            reader = csv.reader(file, delimiter=delimiter)
            width = None
            for cells in reader:
                if not cells or (len(cells) == 1 and cells[0] and not cells[0].strip()):
                    continue  # a quoted "" is a cell
                cells = [cell.strip() for cell in cells]
                if width is None:
                    width = len(cells)
                elif len(cells) != width:
                    raise UsageError(
                        f"{path}: line {reader.line_num} has {len(cells)} cells, the first line "
                        f"has {width}"
                    )
                yield reader.line_num, cells
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not a text file in UTF-8") from None
    except csv.Error as error:
        raise UsageError(f"{path}: {error}") from None


def _delimiter(line: str) -> str:
    return max(",;\t", key=line.count)


def read_text_table(
    path: Path,
    label: str | None,
    drop: list[str],
    *,
    header: bool | None = None,
    index: str | None = None,
) -> TextTable:
    """A table of numbers; ``label`` is kept as text, ``drop`` is not looked at.

    Parameters
    ----------
    header : bool, optional
        Whether the first line names the columns; by default `has_header` tells. Columns without a
        name are numbered from 1.
    index : str, optional
        The column that names the rows; by default the first one if the header leaves its name
        empty, as pandas does.
    """
    lines = read_cells(path)
    start = list(islice(lines, LOOKED_AT))
    if not start:
        raise UsageError(f"{path} is empty")
    if header is None:
        header = has_header(path, start[0][1], [cells for _, cells in start[1:]])
    columns = _columns(path, start[0][1], header, label, drop, index)
    kept: list[str] = []
    row_names: list[str] = []
    blocks: list[np.ndarray] = []
    rows = chain(start[1:] if header else start, lines)
    while chunk := list(islice(rows, CHUNK)):
        blocks.append(_numbers(path, columns, chunk))
        if columns.label is not None:
            kept += [cells[columns.label] for _, cells in chunk]
        if columns.row_names is not None:
            row_names += [cells[columns.row_names] for _, cells in chunk]
    if not blocks:
        raise UsageError(f"{path} has a header but no rows")
    return TextTable(
        [columns.names[c] for c in columns.used],
        np.concatenate(blocks),
        None if columns.label is None else kept,
        None if columns.row_names is None else row_names,
        _how(columns),
    )


def _columns(path, first, header, label, drop, index) -> Columns:
    """What each column is for; a complaint if one that was named is not there, or not alone."""
    width = len(first)
    names = [(header and name) or str(c) for c, name in enumerate(first, 1)]
    numbered = "" if header else " (the file has no header, columns are numbered from 1)"
    single = [name for name in (label, index) if name is not None]
    for wanted in [*drop, *single]:
        if wanted not in names:
            raise UsageError(f"{path} has no column {wanted!r}; it has {listed(names)}{numbered}")
    for wanted in single:
        if names.count(wanted) > 1:
            count = names.count(wanted)
            raise UsageError(f"{path} has {count} columns {wanted!r}; rename one of them")
    label_at = None if label is None else names.index(label)
    index_at = 0 if header and first[0] == "" and width > 1 else None
    index_at = index_at if index is None else names.index(index)
    if label_at is not None and label_at == index_at:
        index_at = None if index is None else index_at
    used = [c for c, name in enumerate(names) if c not in (index_at, label_at) and name not in drop]
    if not used:
        raise UsageError(f"{path}: no column is left to embed")
    return Columns(names, used, label_at, index_at, header)


def _how(columns: Columns) -> str:
    how = "header" if columns.header else "no header"
    if columns.row_names is not None:
        how += f", rows named by column {columns.names[columns.row_names]}"
    return how


def _numbers(path, columns: Columns, chunk) -> np.ndarray:
    block = np.empty((len(chunk), len(columns.used)))
    bad: list[tuple[str, str, int]] = []
    for place, c in enumerate(columns.used):
        cells = [cells[c] for _, cells in chunk]
        wrong = _convert(cells, block[:, place])
        if wrong is not None:
            bad.append((columns.names[c], cells[wrong], chunk[wrong][0]))
    if bad:
        name, cell, line = bad[0]
        more, drop = "", f"it out with --drop {name!r}"
        if len(bad) > 1:
            names = [repr(other[0]) for other in bad]
            more = f" (and {len(bad) - 1} more such columns: {listed(names[1:])})"
            drop = "them out with " + " ".join(f"--drop {name}" for name in names[:MOST_DROPPED])
        raise UsageError(
            f"{path}: column {name!r} is not numeric ({cell!r} in line {line}){more}; colour by "
            f"it with --label {name!r} or leave {drop}"
        )
    return block


def _convert(cells: list[str], out: np.ndarray) -> int | None:
    """`numbers_of`, all cells at once where they are nothing but numbers."""
    if not any("_" in cell for cell in cells):
        try:
            out[:] = cells
            return None
        except ValueError:
            pass
    return numbers_of(cells, out)


def numbers_of(cells: list[str], out: np.ndarray) -> int | None:
    """Write numbers, and nan for missing cells; the place of the first other cell, if any."""
    for place, cell in enumerate(cells):
        if cell.lower() in MISSING:
            out[place] = np.nan
        elif is_number(cell):
            out[place] = float(cell)
        else:
            return place
    return None
