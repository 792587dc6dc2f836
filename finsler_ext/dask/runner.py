"""Tasks on a cluster: results in order, few at a time, one clear error if the cluster is lost."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import Any

from finsler_ext._warn import without_foreign

__all__ = ["ClusterError", "Runner", "local_cluster", "runner_for"]

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
        with self._said_clearly(), without_foreign("large graph"):
            return self.client.compute(task)

    def _result(self, future):
        alone_since = None
        while True:
            try:
                with self._said_clearly():
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
    def _said_clearly(self) -> Iterator[None]:
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
    silence = _silence() if quiet else nullcontext()
    with silence, _connected(address, n_workers, memory, quiet) as client:
        yield client


@contextmanager
def _connected(address, n_workers, memory, quiet) -> Iterator[Any]:
    from distributed import Client, LocalCluster

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
