"""Run compiled chunk functions on a few threads, without touching global thread settings."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import numba
from threadpoolctl import ThreadpoolController

# Below this many rows a hand-over between threads costs more than it saves.
MIN_ROWS_PER_THREAD = 1024
# More chunks than threads, so that an unlucky chunk does not hold up the others; but none so
# small that handing it over (some 50 µs) takes a tenth of its work.
CHUNKS_PER_THREAD = 4
MIN_ROWS_PER_CHUNK = 4096
HEAVY_ROWS = 256
# Fewer rows than this that take a few nanoseconds each are not worth a hand-over.
LIGHT_ROWS = 100_000
HEAVY_CHUNKS_PER_THREAD = 16


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Number of threads meant by scikit-learn's ``n_jobs`` (-1: all, None: 1)."""
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ValueError("n_jobs must be a positive integer, or -1 for all cores; got 0.")
    if n_jobs > 0:
        return int(n_jobs)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, int(available or 1) + 1 + int(n_jobs))


class RowPool:
    """Call ``function(start, stop, …)`` over all rows, in parallel.

    The function must write to rows ``start:stop`` only and release the GIL; then the
    result cannot depend on the number of threads.
    """

    def __init__(self, n_rows: int, n_threads: int, *, heavy: bool = False):
        # Heavy rows take microseconds each, and some take much longer than others.
        self.n_rows = n_rows
        per_thread, per_chunk, chunks = MIN_ROWS_PER_THREAD, MIN_ROWS_PER_CHUNK, CHUNKS_PER_THREAD
        if heavy:
            per_thread, per_chunk, chunks = HEAVY_ROWS, HEAVY_ROWS, HEAVY_CHUNKS_PER_THREAD
        n_threads = max(1, min(n_threads, n_rows // per_thread))
        n_chunks = min(n_threads * chunks, max(n_threads, n_rows // per_chunk))
        edges = [n_rows * c // n_chunks for c in range(n_chunks + 1)]
        self._chunks = list(pairwise(edges))
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def run(self, function: Callable, *args) -> None:
        if self._pool is None:
            function(0, self.n_rows, *args)
            return
        futures = [self._pool.submit(function, lo, hi, *args) for lo, hi in self._chunks]
        for future in futures:
            future.result()

    def __enter__(self) -> RowPool:
        return self

    def __exit__(self, *exc_info) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


def run_rows(function: Callable, n_rows: int, n_threads: int, *args, heavy: bool = False) -> None:
    """Call ``function(start, stop, …)`` over all rows once, as `RowPool` does."""
    with RowPool(n_rows, n_threads, heavy=heavy) as pool:
        pool.run(function, *args)


def run_light_rows(function: Callable, n_rows: int, n_threads: int, *args) -> None:
    """The same for a function that takes nanoseconds for a row."""
    run_rows(function, n_rows, 1 if n_rows < LIGHT_ROWS else n_threads, *args)


_process_with_openmp: int | None = None


def refuse_after_fork() -> None:
    """GNU's OpenMP ends a forked process that uses it after its parent did, with no exception."""
    global _process_with_openmp
    if _process_with_openmp not in (None, os.getpid()) and numba.threading_layer() == "omp":
        raise RuntimeError(
            "NN-descent cannot run here: this process was forked from one that had run it, and "
            "OpenMP does not survive a fork. Start processes with multiprocessing's 'spawn' or "
            "'forkserver', or fit fewer than 4096 rows before the fork."
        )
    _process_with_openmp = os.getpid()


@contextmanager
def numba_threads(n_threads: int) -> Iterator[None]:
    """Limit numba's own parallel loops, and restore the limit whatever happens."""
    refuse_after_fork()
    before = numba.get_num_threads()
    numba.set_num_threads(max(1, min(n_threads, numba.get_num_threads())))
    try:
        with plain_interrupt():
            yield
    finally:
        numba.set_num_threads(before)


@contextmanager
def plain_interrupt() -> Iterator[None]:
    """Ctrl-C in a compiled function that holds Python objects comes as a SystemError."""
    try:
        yield
    except SystemError as error:
        earlier: BaseException | None = error
        while earlier is not None and not isinstance(earlier, KeyboardInterrupt):
            earlier = earlier.__cause__ or earlier.__context__
        if earlier is not None:
            raise KeyboardInterrupt from None
        raise


# Who holds BLAS to one thread, and the limits of its libraries before the first of them did.
_blas_lock = threading.Lock()
_blas_limits: list[list] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Sums in BLAS depend on its thread count; a seeded result must not.

    The limit is the process's: the first to enter sets it, the last to leave lifts it.
    threadpoolctl (3.8) lets a single thread set the limit of OpenBLAS, and ignores all others
    without a word.
    """
    with _blas_lock:
        libraries = [] if _blas_limits else ThreadpoolController().lib_controllers
        _blas_limits.append([(library, library.get_num_threads()) for library in libraries])
        for library in libraries:
            _set_threads(library, 1)
    try:
        yield
    finally:
        with _blas_lock:
            # the first limits stay until the last has left
            for library, n_threads in _blas_limits.pop():
                _set_threads(library, n_threads)


def _set_threads(library, n_threads: int) -> None:
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n_threads)


# Large arrays, some rows at a time.

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
