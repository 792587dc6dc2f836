"""A collection as blocks of rows, whatever it is made of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from finsler_ext._collections import is_collection

__all__ = ["Blocks", "blocks_of", "matrix_of", "taken"]


class Blocks(NamedTuple):
    """Blocks of rows as delayed tasks.

    tasks : one per block; an array, or a data frame
    sizes : rows of each block
    columns : names of the columns to embed, None for arrays
    n_columns : int
    """

    tasks: list
    sizes: np.ndarray
    columns: list | None
    n_columns: int

    @property
    def n_rows(self) -> int:
        return int(self.sizes.sum())

    @property
    def starts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def rows(self, chosen: np.ndarray) -> Any:
        """A task that gives the rows of the given numbers, in ascending order, as an array."""
        import dask

        starts = self.starts
        block = np.searchsorted(starts, chosen, side="right") - 1
        pieces = [
            dask.delayed(taken)(self.tasks[b], chosen[block == b] - starts[b], self.columns)
            for b in np.unique(block)
        ]
        return dask.delayed(_stacked)(pieces)


def blocks_of(X, runner, columns: list | None = None, sizes=None) -> Blocks:
    """The blocks of a Dask array of two dimensions, or of a Dask data frame.

    ``columns`` names the columns of a frame to embed; all of them by default. ``sizes`` are the
    rows of its partitions; without them it is read once to count.
    """
    import dask

    if not is_collection(X):
        raise ValueError(f"X must be a Dask array or data frame, got a {type(X).__name__}.")
    if hasattr(X, "npartitions") and hasattr(X, "columns"):
        columns = list(X.columns) if columns is None else columns
        _check_numeric(X, columns)
        tasks = X.to_delayed()
        if sizes is None or len(sizes) != len(tasks):
            sizes = list(runner.in_order([dask.delayed(len)(task) for task in tasks]))
        return Blocks(list(tasks), np.array(sizes, dtype=np.int64), columns, len(columns))
    if getattr(X, "ndim", None) != 2:
        raise ValueError(f"X must have two dimensions, got shape {getattr(X, 'shape', None)}.")
    X = X.rechunk({1: -1})
    tasks = list(X.to_delayed().ravel())
    sizes = list(X.chunks[0])
    if any(size != size for size in sizes):  # nan: Dask does not know them
        sizes = list(runner.in_order([dask.delayed(len)(task) for task in tasks]))
    return Blocks(tasks, np.array(sizes, dtype=np.int64), None, int(X.shape[1]))


def _check_numeric(X, columns: list) -> None:
    missing = [name for name in columns if name not in X.columns]
    if missing:
        raise ValueError(f"X has no column {missing[0]!r}; it has {list(X.columns)}.")
    text = [name for name in columns if getattr(X.dtypes[name], "kind", "O") not in "fiub"]
    if text:
        raise ValueError(f"X: column {text[0]!r} is not numeric. Leave it out: X.drop(columns=…).")


def matrix_of(block, columns: list | None = None) -> np.ndarray:
    """A block as an array of numbers."""
    if columns is not None:
        block = block[columns].to_numpy()
    matrix = np.asarray(block)
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"X must hold numbers, got {matrix.dtype}.")
    return matrix


def taken(block, rows: np.ndarray, columns: list | None = None) -> np.ndarray:
    """Rows of a block by number, as a matrix that does not hold on to the block."""
    return np.ascontiguousarray(matrix_of(block, columns)[rows])


def _stacked(pieces: list) -> np.ndarray:
    return np.concatenate(pieces)
