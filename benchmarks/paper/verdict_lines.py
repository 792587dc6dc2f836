"""Verdicts of a page, read back from its tables: to mark them, and to compare two pages."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["agreement", "marked", "verdicts"]

COLUMN = "verdict"
# How a verdict begins that rests on no run.
UNTESTED = "not tested"
# What tells one verdict from another: the claim, and its place if that is a column of its own.
NAMED_BY = ("claim", "place", "where")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def _is_rule(line: str) -> bool:
    return line.startswith("|") and not set(line) - set("|-: ")


def _rows(lines: list[str]) -> Iterator[tuple[int, list[str], list[str]]]:
    """Line number, header and cells of every row of a table that has verdicts."""
    header: list[str] | None = None
    for number, line in enumerate(lines):
        if not line.startswith("|"):
            header = None
        elif number + 1 < len(lines) and _is_rule(lines[number + 1]):
            names = [name.lower() for name in _cells(line)]
            header = names if COLUMN in names else None
        elif header is not None and not _is_rule(line):
            cells = _cells(line)
            if len(cells) == len(header):
                yield number, header, cells


def verdicts(text: str) -> dict[str, str]:
    """The verdicts of a page by their claims, in its order."""
    found: dict[str, str] = {}
    for _, header, cells in _rows(text.splitlines()):
        named = [cell for name, cell in zip(header, cells, strict=True) if name in NAMED_BY]
        claim = " ".join(named or cells[:1]).replace("*", "")
        found[claim] = cells[header.index(COLUMN)].strip("*")
    return found


def marked(text: str, mark: str, opening: str) -> str:
    """A page with a mark behind every verdict, and words before its first paragraph."""
    lines = text.splitlines()
    for number, header, cells in list(_rows(lines)):
        place = header.index(COLUMN)
        cells[place] += f" ({mark})"
        lines[number] = f"| {' | '.join(cells)} |"
    first = next((i for i, line in enumerate(lines) if line.strip() and line[0] != "#"), len(lines))
    return "\n".join([*lines[:first], *opening.splitlines(), *lines[first:]]) + "\n"


def agreement(theirs: dict[str, str], stored: dict[str, str], mark: str = "") -> Iterator[str]:
    """A line for every verdict: same, different, not tested, or only in one of the pages."""
    counts = dict.fromkeys(("same", "different", "not tested"), 0)
    for claim, verdict in theirs.items():
        plain = verdict.removesuffix(mark).strip("* ")
        if claim not in stored:
            yield f"new{mark}: {claim}: {plain}"
            continue
        kind = "same" if plain == stored[claim] else "different"
        if kind == "different" and plain.startswith(UNTESTED):
            kind = UNTESTED
        counts[kind] += 1
        yield f"{kind}{mark}: {claim}: {plain}" + (
            "" if kind == "same" else f"; stored: {stored[claim]}"
        )
    for claim in stored:
        if claim not in theirs:
            yield f"only in the stored page{mark}: {claim}: {stored[claim]}"
    words = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    yield f"of {len(stored)} stored verdicts: {words}"
