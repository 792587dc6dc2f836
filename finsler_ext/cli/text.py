"""Reading csv and tsv: cells, header, numbers; every complaint names the line.

The first line is a header if it has text above numbers. It is a row if it has no text. Two kinds of
lines could be either, and the user is asked: text only where the lines below have text, too, beside
numbers; and numbers in rising or falling order, like those of a scale, that stand out from the
lines below.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from finsler_ext.cli.messages import UsageError, listed

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
# With fewer lines than this below the first, order says nothing.
LEAST_LINES = 3
# Wavelengths of 400.1, 405.2 and 410.3 are evenly spaced, as they are written.
STEP_ROUNDING = 1e-6


def read_cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every line; all have equally many cells.

    Blank lines are skipped. Lines of nothing but separators are rows of missing values.
    """
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            tabs = path.suffix.lower() in (".tsv", ".tab")
            reader = csv.reader(file, delimiter="\t" if tabs else max(",;\t", key=first.count))
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


def is_missing(cell: str) -> bool:
    return cell.lower() in MISSING


def is_number(cell: str) -> bool:
    if "_" in cell:  # Python reads 2019_12 as a number, nobody else does
        return False
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_text(cell: str) -> bool:
    return not is_missing(cell) and not is_number(cell)


def numbers_of(cells: Sequence[str], out: np.ndarray) -> int | None:
    """Write numbers, and nan for missing cells; the place of the first other cell, if any."""
    if not any("_" in cell for cell in cells):
        try:
            out[:] = cells  # all at once where they are nothing but numbers
            return None
        except ValueError:
            pass
    for place, cell in enumerate(cells):
        if is_missing(cell):
            out[place] = np.nan
        elif is_number(cell):
            out[place] = float(cell)
        else:
            return place
    return None


def has_header(path, first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether ``first`` is a header, going by the lines below it; UsageError where it may be."""
    texts = [c for c, cell in enumerate(first) if is_text(cell)]
    if texts:
        numbers = any(_holds_number(cell) for cell in first)
        if not numbers or any(_holds_number(row[c]) for c in texts for row in below):
            return True
        raise _unclear(path, first, "it has text only where the lines below have text, too")
    why = _like_a_scale(first, below) if len(below) >= LEAST_LINES else ""
    if why:
        raise _unclear(path, first, why)
    return False


def _like_a_scale(first, below) -> str:
    """Why the numbers of the first line may be names (years, wavelengths), or nothing."""
    direction = _direction(first)
    if not direction:
        return ""
    rise = "rise" if direction > 0 else "fall"
    if direction not in map(_direction, below):
        return f"its numbers {rise} from left to right, as in no other line"
    if _evenly(first) and not any(_evenly(row) and _direction(row) == direction for row in below):
        return f"its numbers {rise} in even steps, as in no other line"
    if _apart(first, below):
        return f"its numbers {rise} from left to right, and none is in the range of its column"
    return ""


def _holds_number(cell: str) -> bool:
    return not is_missing(cell) and is_number(cell)


def _steps(cells: Sequence[str]) -> list[float]:
    values = [float(cell) for cell in cells if _holds_number(cell)]
    return [later - earlier for earlier, later in pairwise(values)]


def _direction(cells: Sequence[str]) -> int:
    """1 if the numbers rise from left to right, −1 if they fall, 0 otherwise."""
    steps = _steps(cells)
    if steps and all(step > 0 for step in steps):
        return 1
    return -1 if steps and all(step < 0 for step in steps) else 0


def _evenly(cells: Sequence[str]) -> bool:
    """Three numbers or more, all steps between them the same but for rounding."""
    steps = _steps(cells)
    return len(steps) > 1 and max(steps) - min(steps) <= STEP_ROUNDING * abs(steps[0])


def _apart(first, below) -> bool:
    for c, cell in enumerate(first):
        column = [float(row[c]) for row in below if _holds_number(row[c])]
        if _holds_number(cell) and column and min(column) <= float(cell) <= max(column):
            return False
    return True


def _unclear(path, first, why) -> UsageError:
    return UsageError(
        f"{path}: line 1 ({listed(first)}) may be a header or a row: {why}; say --header or "
        "--no-header"
    )
