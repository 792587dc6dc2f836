"""Large arrays, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["BLOCK_ROWS", "row_blocks"]

# Rows of an N × N matrix that are looked at together: 20 MB of float64 at N = 10,000. Where no
# sum runs over the rows of a block its size changes no bit; where one does, the place has a
# constant of its own.
BLOCK_ROWS = 256


def row_blocks(n: int, size: int | None = None) -> Iterator[slice]:
    """Slices of at most ``size`` rows (BLOCK_ROWS by default) that cover n rows.

    >>> list(row_blocks(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    size = BLOCK_ROWS if size is None else size
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
