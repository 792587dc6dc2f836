"""What a long computation is doing, for whoever wants to show it.

Nobody listens by default, and then saying costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# The last stage, whose steps estimators show themselves.
LAYOUT = "embedding"

__all__ = ["LAYOUT", "listening", "stage", "step"]

Listener = Callable[[str | None, float], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call ``listener(name, 0.0)`` when a stage begins, ``listener(None, share)`` as it goes on."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def stage(name: str) -> None:
    """A stage begins."""
    listener = _listener.get()
    if listener is not None:
        listener(name, 0.0)


def step(done: int, total: int) -> None:
    """This much of the stage is done."""
    listener = _listener.get()
    if listener is not None and total > 0:
        listener(None, done / total)
