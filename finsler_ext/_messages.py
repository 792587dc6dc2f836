"""What a computation tells: warnings at the user's own line, and how far it is.

Nobody listens to its progress by default, and then telling costs next to nothing.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

# Lines of this package, of scikit-learn, which wraps fit_transform, and of contextlib, whose
# decorators are around transform, are not the user's.
_OURS = str(Path(__file__).parent)
_WRAPPERS = ("sklearn", "contextlib")
# Warnings of other packages, which give them no category to tell them by. Ours have one each.
_FOREIGN = {
    # scikit-learn, of rows that were taken out of a frame by this package
    "feature names": ("X does not have valid feature names",),
    # umap-learn: ours needs no gradient of the metric
    "inverse_transform": (".*inverse_transform will be unavailable",),
    # umap-learn, of a search that this package made, and not the user
    "given search": (".*precomputed_knn", ".*force_approximation_algorithm", ".*transform will"),
    # Dask: models and data that were in memory travel with the tasks
    "large graph": ("Sending large graph",),
}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """As `warnings.warn`, at the innermost line outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def without_foreign(kind: str) -> Iterator[None]:
    """Without the warnings of other packages about this (a name in ``_FOREIGN``)."""
    with warnings.catch_warnings():
        for message in _FOREIGN[kind]:
            warnings.filterwarnings("ignore", message, UserWarning)
        yield


def _is_inside(frame) -> bool:
    module = frame.f_globals.get("__name__", "").split(".")[0]
    return frame.f_code.co_filename.startswith(_OURS) or module in _WRAPPERS


# The last stage, whose steps estimators show themselves.
LAYOUT = "embedding"

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
