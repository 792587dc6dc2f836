"""A collection as blocks of rows, and tasks on a cluster.

Results come in order, few at a time, with one clear error if the cluster is lost.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from finsler_ext._messages import without_foreign
from finsler_ext.base import is_collection

# Seconds to wait for a scheduler to answer, and for workers to come back before giving up.
CONNECT_SECONDS, WORKERLESS_SECONDS = 20.0, 60.0
# A level of logs that nothing reaches.
NOTHING = logging.CRITICAL + 1
# Seconds between two looks at the cluster while a result is awaited.
GLANCE = 1.0
# Tasks under way per worker: one runs, one waits.
TASKS_PER_WORKER = 2


class ClusterError(RuntimeError):
    """The cluster cannot be reached, or was lost."""


class Runner:
    """Runs delayed tasks: on the cluster of a client, or with Dask's own scheduler."""

    def __init__(self, client=None):
        self.client = client

    def window(self) -> int:
        workers = 1 if self.client is None else len(self._workers())
        return TASKS_PER_WORKER * max(workers, 1)

    def held(self, value) -> Any:
        """A value as a task, sent to the cluster once; workers that are new get it again."""
        import dask
        from dask.base import tokenize

        name = f"held-{tokenize(id(value), time.time_ns())}"
        task = dask.delayed(value, name=name, traverse=False)
        return self.persist([task])[0]

    def persist(self, tasks: list) -> list:
        """Tasks whose results stay on the cluster."""
        import dask

        if self.client is None:
            return list(dask.persist(*tasks))
        with without_foreign("large graph"):
            return list(self.client.persist(tasks))

    def in_order(self, tasks: Iterable) -> Iterator[Any]:
        """Results of tasks in their order; only a few are under way at a time."""
        if self.client is None:
            import dask

            for task in tasks:
                yield dask.compute(task)[0]
            return
        rest = iter(tasks)
        waiting = deque(self._submit(task) for task in islice(rest, self.window()))
        try:
            while waiting:
                value = self._result(waiting.popleft())
                waiting.extend(self._submit(task) for task in islice(rest, 1))
                yield value
        finally:
            for future in waiting:
                future.release()

    def _submit(self, task):
        with self._translate_errors(), without_foreign("large graph"):
            return self.client.compute(task)

    def _result(self, future):
        alone_since = None
        while True:
            try:
                with self._translate_errors():
                    return future.result(timeout=GLANCE)
            except TimeoutError:
                if future.status == "error":  # raised by the task itself
                    raise
            if self._workers():
                alone_since = None
            elif alone_since is None:
                alone_since = time.monotonic()
            elif time.monotonic() - alone_since > WORKERLESS_SECONDS:
                raise ClusterError(f"{self._lost()}: it has no workers left.")

    def _workers(self) -> dict:
        if self.client.status not in ("running", "connecting"):
            raise ClusterError(f"{self._lost()}.")
        try:
            return self.client.scheduler_info(n_workers=-1)["workers"]
        except TypeError:  # older versions of distributed tell all of them anyway
            return self.client.scheduler_info()["workers"]

    def _lost(self) -> str:
        address = getattr(getattr(self.client, "scheduler", None), "address", "")
        return f"the Dask cluster{f' at {address}' if address else ''} was lost"

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        from asyncio import CancelledError
        from concurrent.futures import CancelledError as Cancelled

        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        try:
            yield
        except KilledWorker as error:
            raise ClusterError(
                f"workers of the Dask cluster died again and again on one task ({error.task}), "
                "probably for want of memory. Give them more, or use smaller chunks."
            ) from None
        except MemoryError:
            raise ClusterError(
                "a worker ran out of memory on one task. Give the workers more, or use smaller "
                "chunks (row groups of a parquet file)."
            ) from None
        except (CancelledError, Cancelled, CommClosedError) as error:
            reason = " ".join(str(error).split())
            raise ClusterError(f"{self._lost()}{f' ({reason})' if reason else ''}.") from None


def runner_for(client=None) -> Runner:
    """The runner of a client, of the client in use, or of Dask's own scheduler."""
    if client is None:
        try:
            from distributed import get_client

            client = get_client()
        except (ImportError, ValueError):
            return Runner()
    return Runner(client)


@contextmanager
def local_cluster(
    address: str | None = None,
    n_workers: int | None = None,
    memory: str | None = None,
    *,
    quiet: bool = False,
) -> Iterator[Any]:
    """A client of the scheduler at an address, or of processes on this machine.

    With ``quiet``, nothing but errors that are raised is said.
    """
    from distributed import Client, LocalCluster

    with _silence() if quiet else nullcontext():
        if address is not None:
            try:
                client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
            except (OSError, ValueError, TypeError) as error:
                reason = " ".join(str(error).split())
                raise ClusterError(f"no Dask scheduler answers at {address} ({reason}).") from None
            with client:
                yield client
            return
        with (
            LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=True,
                memory_limit="auto" if memory is None else memory,
                dashboard_address="127.0.0.1:0",  # any port: 8787 may be taken
                silence_logs=NOTHING if quiet else logging.WARNING,
            ) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            yield client


@contextmanager
def _silence() -> Iterator[None]:
    """distributed tells its log of every connection that breaks."""
    import distributed  # noqa: F401  (makes the loggers)

    names = [n for n in logging.root.manager.loggerDict if n.split(".")[0] == "distributed"]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(NOTHING)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


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
        return dask.delayed(np.concatenate)(pieces)


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
