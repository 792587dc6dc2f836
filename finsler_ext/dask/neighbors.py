"""Nearest neighbours by parts on a cluster.

Rows are divided into parts by their number, whatever the chunks of the collection. Every part is
compared with every other, and what was found is merged by distance, then by row number. All pairs
are compared exactly, so the result is that of one machine, for any number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from finsler_ext.neighbors import EXACT, make_index
from finsler_ext.neighbors.search import SearchSettings

# Bytes of a part in single precision, and the rows of it that one task looks up.
PART_BYTES, QUERY_ROWS = 2**25, 2**14
EUCLIDEAN = SearchSettings()


class Parts(NamedTuple):
    """Rows on the cluster, divided by their number.

    tasks : one per part, an array of float32
    starts : first row of each part, and the number of rows
    """

    tasks: list
    starts: np.ndarray


def parts_of(blocks, chosen, prepare, runner, rows_per_part: int | None = None) -> Parts:
    """The chosen rows (all if None) as parts; ``prepare`` is applied to each on the cluster."""
    import dask

    n = blocks.n_rows if chosen is None else len(chosen)
    step = rows_per_part or max(QUERY_ROWS, PART_BYTES // (4 * blocks.n_columns))
    starts = np.append(np.arange(0, n, step), n)
    numbers = [
        np.arange(lo, hi) if chosen is None else chosen[lo:hi] for lo, hi in pairwise(starts)
    ]
    tasks = [dask.delayed(prepare)(blocks.rows(rows)) for rows in numbers]
    return Parts(runner.persist(tasks), starts)


def nearest_by_parts(
    parts: Parts, k: int, runner, settings: SearchSettings = EUCLIDEAN, *, query_rows=QUERY_ROWS
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Row numbers and distances of the k nearest others of every row, by blocks of rows."""
    import dask

    n = int(parts.starts[-1])
    k = min(k, n - 1)
    search = dask.delayed(_nearest)

    def tasks() -> Iterator[Any]:
        for q, queries in enumerate(parts.tasks):
            size = int(parts.starts[q + 1] - parts.starts[q])
            for lo in range(0, size, query_rows):
                rows = slice(lo, min(lo + query_rows, size))
                found = [
                    search(queries, rows, part, int(parts.starts[p]), k, settings, same=p == q)
                    for p, part in enumerate(parts.tasks)
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
