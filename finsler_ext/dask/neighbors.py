"""Nearest neighbours by parts on a cluster.

Rows are divided into parts by their number, whatever the chunks of the collection. Every part is
compared with every other, and what was found is merged by distance, then by row number. All pairs
are compared exactly, so the result is that of one machine, for any number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from finsler_ext.neighbors import EXACT, make_index
from finsler_ext.neighbors.search import SearchSettings

# Bytes of a part in single precision, and the rows of it that one task looks up.
PART_BYTES, QUERY_ROWS = 2**25, 2**14
EUCLIDEAN = SearchSettings()


def nearest_by_parts(
    blocks,
    runner,
    k: int,
    settings: SearchSettings = EUCLIDEAN,
    *,
    chosen=None,
    prepare=np.asarray,
    rows_per_part: int | None = None,
    query_rows: int = QUERY_ROWS,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Row numbers and distances of the k nearest others of every row, by blocks of rows.

    Of the ``chosen`` rows, all by default; ``prepare`` is applied to every part on the cluster.
    """
    import dask

    n = blocks.n_rows if chosen is None else len(chosen)
    rows = np.arange(n) if chosen is None else chosen
    step = rows_per_part or max(QUERY_ROWS, PART_BYTES // (4 * blocks.n_columns))
    starts = range(0, n, step)
    parts = runner.persist(
        [dask.delayed(prepare)(blocks.rows(rows[start : start + step])) for start in starts]
    )
    k = min(k, n - 1)
    search = dask.delayed(_nearest)

    def tasks() -> Iterator[Any]:
        for here, queries in zip(starts, parts, strict=True):
            size = min(step, n - here)
            for lo in range(0, size, query_rows):
                some = slice(lo, min(lo + query_rows, size))
                found = [
                    search(queries, some, part, start, k, settings, same=start == here)
                    for start, part in zip(starts, parts, strict=True)
                ]
                yield dask.delayed(merged)(found, k)

    return runner.in_order(tasks())


def _nearest(queries, rows: slice, part, start: int, k: int, settings, *, same: bool):
    """The k nearest rows of a part of some of the queries; no row is its own neighbour."""
    index: Any = make_index(EXACT, settings)
    wanted = min(k + same, len(part))
    found = index.over(part).query(np.ascontiguousarray(queries[rows]), wanted)
    indices, distances = found.indices, found.outgoing
    if same:
        own = np.arange(rows.start, rows.stop)[:, None]
        indices, distances = _without(indices, distances, own)
    return np.where(indices < 0, -1, indices + start), distances


def _without(indices, distances, own):
    """Leave the row itself out, or the last where copies of it came first."""
    here = indices == own
    last = indices.shape[1] - 1
    at = np.where(here.any(axis=1), here.argmax(axis=1), last)[:, None]
    keep = np.arange(last)[None, :]
    keep = keep + (keep >= at)
    return np.take_along_axis(indices, keep, axis=1), np.take_along_axis(distances, keep, axis=1)


def merged(found: list, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of several answers, by distance, then by row number; −1 and inf come last."""
    indices = np.concatenate([f[0] for f in found], axis=1)
    distances = np.concatenate([f[1] for f in found], axis=1)
    distances = np.where(indices < 0, np.inf, distances)
    order = np.lexsort((indices, distances), axis=1)[:, :k]
    return np.take_along_axis(indices, order, axis=1), np.take_along_axis(distances, order, axis=1)
