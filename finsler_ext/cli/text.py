"""Reading csv and tsv: cells, header, numbers; every complaint names the line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from finsler_ext.cli.usage import UsageError, listed

__all__ = ["MISSING", "TextTable", "is_number", "numbers_of", "read_cells", "read_text_table"]

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
# Rows that are turned into numbers together; more would only take memory.
CHUNK = 20_000


class TextTable(NamedTuple):
    """Columns of numbers, those kept as text, and the names of the rows if the file has any."""

    names: list[str]
    values: np.ndarray
    kept: dict[str, list[str]]
    row_names: list[str] | None


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def read_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every line that is not empty; all have equally many cells."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            delimiter = "\t" if path.suffix.lower() == ".tsv" else _delimiter(first)
            reader = csv.reader(file, delimiter=delimiter)
            width = None
            for cells in reader:
                if not any(cell.strip() for cell in cells):
                    continue
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


def _has_header(cells: list[str]) -> bool:
    """A first line is a header if it is not all numbers, or counts the columns."""
    if not all(is_number(cell) for cell in cells):
        return True
    return len(cells) > 1 and any(
        cells == [str(c) for c in range(start, start + len(cells))] for start in (0, 1)
    )


def read_text_table(path: Path, label: str | None, drop: list[str]) -> TextTable:
    """A table of numbers; ``label`` is kept as text, ``drop`` is not looked at.

    Columns without a name are numbered from 1; a first column whose name is empty (as pandas
    writes its index) names the rows.
    """
    lines = read_cells(path)
    first = next(lines, None)
    if first is None:
        raise UsageError(f"{path} is empty")
    cells = first[1]
    header = _has_header(cells)
    names = [name or str(c) for c, name in enumerate(cells, 1)]
    if not header:
        names = [str(c) for c in range(1, len(cells) + 1)]
    index = 0 if header and cells[0] == "" and len(cells) > 1 else None
    for wanted in [*drop, *([] if label is None else [label])]:
        if wanted not in names:
            numbered = "" if header else " (the file has no header, columns are numbered from 1)"
            raise UsageError(f"{path} has no column {wanted!r}; it has {listed(names)}{numbered}")
    if label is not None and names.count(label) > 1:
        raise UsageError(f"{path} has {names.count(label)} columns {label!r}; rename one of them")
    used = [c for c, n in enumerate(names) if c != index and n != label and n not in drop]
    if not used:
        raise UsageError(f"{path}: no column is left to embed")
    kept: dict[str, list[str]] = {} if label is None else {label: []}
    row_names: list[str] = []
    blocks: list[np.ndarray] = []
    chunk: list[tuple[int, list[str]]] = [] if header else [first]

    def convert():
        blocks.append(_numbers(path, names, used, chunk))
        if label is not None:
            kept[label] += [row[names.index(label)] for _, row in chunk]
        if index is not None:
            row_names.extend(row[index] for _, row in chunk)
        chunk.clear()

    for line in lines:
        chunk.append(line)
        if len(chunk) == CHUNK:
            convert()
    if chunk:
        convert()
    if not blocks:
        raise UsageError(f"{path} has a header but no rows")
    found = [names[c] for c in used]
    return TextTable(found, np.concatenate(blocks), kept, row_names if index == 0 else None)


def _numbers(path, names, used, chunk) -> np.ndarray:
    block = np.empty((len(chunk), len(used)))
    bad: list[tuple[str, str, int]] = []
    for column, c in enumerate(used):
        cells = [row[c] for _, row in chunk]
        try:
            block[:, column] = cells
        except ValueError:
            wrong = numbers_of(cells, block[:, column])
            if wrong is not None:
                bad.append((names[c], cells[wrong], chunk[wrong][0]))
    if bad:
        name, cell, line = bad[0]
        more = (
            ""
            if len(bad) == 1
            else f" (and {len(bad) - 1} more such columns: "
            + (listed(repr(other[0]) for other in bad[1:]) + ")")
        )
        raise UsageError(
            f"{path}: column {name!r} is not numeric ({cell!r} in line {line}){more}; colour by "
            f"it with --label {name!r} or leave it out with --drop {name!r}"
        )
    return block


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
