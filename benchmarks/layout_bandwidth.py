"""How near an epoch of the UMAP layout comes to what the memory allows.

    python -m benchmarks.layout_bandwidth
    python -m benchmarks.layout_bandwidth --rows 10000 100000 --repeats 7

Three measurements, taking turns in one process, with one and two threads; medians of the repeats.
Time is processor time over the number of threads: waiting for memory counts, waiting for a turn on
a shared machine does not.

    triad     a = b + s c over arrays that no cache holds, 24 bytes per element: what streams
    gather    rows of a table of N × 3 float32 at random places, by the generator that draws the
              layout's partners: what is looked up, rows per second
    layout    an epoch of the layout, on the 15 nearest neighbours of points in a cube, whose rows
              are in no order

From the graph it is counted what an epoch must touch. Streams: every edge twice, by either end,
with 4 bytes each for the two ends, its rate and its phase; the four steps' row pointers; and in
every step the snapshot of a vertex, its new position, its number and two factors. Look-ups: the
other end of every sampled edge, from either side, and the partners of every step. The limit is the
time for the streams at the speed of the triad and the look-ups at the speed of the gather, one
after the other; "limit / time" is its share of the time that the epoch takes. What is missing to 1
is arithmetic: roots, divisions, forces.

The last three columns are where that time goes, by epochs that do less: one in which no edge is due
(scan), the rest of one without partners (pull), and what the partners add (push).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from copy import copy
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit
from scipy.spatial import KDTree

from finsler_ext._threads import RowPool
from finsler_ext.umap.kernels import N_STEPS, LossShape, schedule
from finsler_ext.umap.layout import UmapDescent

__all__ = ["Traffic", "limit_seconds", "nearest_graph", "traffic"]

COLUMNS, NEIGHBORS, NEGATIVES, EPOCHS = 3, 15, 5, 200
# umap-learn's a and b for a minimal distance of 0.1.
SHAPE = (1.577, 0.895)
TRIAD_ELEMENTS = 10_000_000
GATHERED_ROWS = 4_000_000
# Edges that an epoch's measurement passes at least, so that short epochs are repeated.
LEAST_EDGES = 6_000_000


class Traffic(NamedTuple):
    """What an epoch touches: bytes that stream, and rows that are looked up."""

    edges: int
    streamed: int
    looked_up: float


@njit(nogil=True, cache=True)
def _triad(start, stop, a, b, c, s):
    for i in range(start, stop):
        a[i] = b[i] + s * c[i]


@njit(nogil=True, cache=True)
def _gather(start, stop, table, sums, seed):
    """Sums of rows at places that are drawn as `finsler_ext.umap.kernels` draws partners."""
    n = np.uint64(table.shape[0])
    state = np.uint64(seed) + np.uint64(start)
    x = y = z = np.float32(0.0)
    for _ in range(start, stop):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        k = np.int64(((state >> np.uint64(32)) * n) >> np.uint64(32))
        x += table[k, 0]
        y += table[k, 1]
        z += table[k, 2]
    sums[start] = x + y + z


def nearest_graph(points: np.ndarray, k: int = NEIGHBORS) -> scipy.sparse.csr_array:
    """k edges from every point to the nearest; memberships fall as in UMAP, to a sum of log₂ k.

    The decay is found by bisection, as UMAP finds the scale of a vertex.
    """
    ranks, low, high = np.arange(k), 1e-3, 1e3
    for _ in range(60):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if np.exp(-ranks / middle).sum() < np.log2(k) else (low, middle)
    n = len(points)
    target = KDTree(points).query(points, k + 1)[1][:, 1:]
    weight = np.tile(np.exp(-ranks / low).astype(np.float32), n)
    given = weight, target.astype(np.int32).ravel(), np.arange(0, n * k + 1, k)
    graph = scipy.sparse.csr_array(given, shape=(n, n))
    graph.sort_indices()
    return graph


def traffic(graph, n_epochs: int = EPOCHS) -> Traffic:
    """What an epoch of the layout of a graph touches, on average."""
    stored, n = schedule(graph, n_epochs), graph.shape[0]
    entries = sum(a.nbytes for a in (stored.owner, stored.other, stored.rate, stored.phase))
    rows = N_STEPS * sum(a.nbytes for a in (stored.row, stored.sampled, stored.step_share))
    # In every step a vertex is read, and written to the other copy.
    positions = N_STEPS * 2 * n * COLUMNS * np.dtype(np.float32).itemsize
    sampled = stored.rate.sum(dtype=np.float64) / 2**32
    partners = N_STEPS * np.ceil(NEGATIVES * stored.sampled).sum(dtype=np.float64)
    streamed = entries + stored.first.nbytes + rows + positions
    return Traffic(len(stored.rate) // 2, streamed, sampled + partners)


def limit_seconds(touched: Traffic, triad: float, gather: float) -> float:
    """Of an epoch, with ``triad`` bytes and ``gather`` rows per second."""
    return touched.streamed / triad + touched.looked_up / gather


def _seconds(call: Callable[[], object], threads: int) -> float:
    started = time.process_time()
    call()
    return (time.process_time() - started) / threads


class Bench:
    """The three measurements for one number of rows, ready to take turns."""

    def __init__(self, n: int, triad_arrays: tuple[np.ndarray, ...]):
        self.triad_arrays = triad_arrays
        rng = np.random.default_rng(1)
        # As far apart as points of a layout are: forces are neither 0 nor limited.
        self.table = (n ** (1 / COLUMNS) * rng.uniform(size=(n, COLUMNS))).astype(np.float32)
        graph = nearest_graph(self.table)
        self.traffic = traffic(graph)
        shape = LossShape(*SHAPE, negative_sample_rate=NEGATIVES)
        whole = UmapDescent(graph, shape, n_epochs=EPOCHS, seed=0)
        whole._schedule(self.table)
        pulls = copy(whole)
        pulls._forces = (*whole._forces[:-1], np.float32(0.0))
        scan = copy(pulls)
        scan._stored = whole._stored._replace(rate=np.zeros_like(whole._stored.rate))
        self.descents = {"whole": whole, "pulls": pulls, "scan": scan}
        self.epochs = max(1, -(-LEAST_EDGES // self.traffic.edges))

    def triad(self, threads: int) -> float:
        """Bytes per second."""
        a, b, c = self.triad_arrays
        with RowPool(len(a), threads) as pool:
            return 24 * len(a) / _seconds(lambda: pool.run(_triad, a, b, c, 3.0), threads)

    def gather(self, threads: int) -> float:
        """Rows per second."""
        sums = np.zeros(GATHERED_ROWS, dtype=np.float32)
        with RowPool(GATHERED_ROWS, threads) as pool:
            return GATHERED_ROWS / _seconds(lambda: pool.run(_gather, self.table, sums, 7), threads)

    def layout(self, threads: int, kind: str = "whole") -> float:
        """Seconds per epoch."""
        descent, epochs = self.descents[kind], range(self.epochs)
        descent.n_threads = threads
        run = _seconds(lambda: descent.run(self.table, epochs, omega_norm=0.5), threads)
        return run / self.epochs


def measure(n: int, threads: list[int], repeats: int, triad_arrays) -> None:
    """Print a line for every number of threads; the first round compiles and is not counted."""
    bench = Bench(n, triad_arrays)
    found: dict[int, list[tuple[float, ...]]] = {t: [] for t in threads}
    for turn in range(repeats + 1):
        for t in threads:
            epochs = [bench.layout(t, kind) for kind in bench.descents]
            values = bench.triad(t), bench.gather(t), *epochs
            if turn:
                found[t].append(values)
    touched = bench.traffic
    edges = touched.edges
    for t in threads:
        triad, gather, *times = (statistics.median(v) for v in zip(*found[t], strict=True))
        limit = 1e9 * limit_seconds(touched, triad, gather) / edges
        epoch, pulls, scan = (1e9 * seconds / edges for seconds in times)
        print(
            f"| {n:,} | {t} | {triad / 1e9:.1f} | {gather / 1e6:.0f} "
            f"| {touched.streamed / edges:.0f} | {touched.looked_up / edges:.2f} "
            f"| {epoch:.1f} | {limit:.1f} | {limit / epoch:.2f} "
            f"| {scan:.1f} | {pulls - scan:.1f} | {epoch - pulls:.1f} |",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    arrays = tuple(np.full(TRIAD_ELEMENTS, float(i)) for i in range(3))
    print(
        "| rows | threads | triad GB/s | gather 10⁶ rows/s | bytes per edge | look-ups per edge "
        "| ns per edge | limit | limit / time | scan | pull | push |"
    )
    print("|" + " --- |" * 12, flush=True)
    for n in options.rows:
        measure(n, options.threads, options.repeats, arrays)


if __name__ == "__main__":
    main()
