"""What every neighbour search offers and returns.

Rows are sources: an edge i → j says that j is among the nearest of i. Missing neighbours have
index −1 and distance inf, so rows may hold fewer neighbours than others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from finsler_ext.schema import NONE, array, part, saved


@saved(
    indices=array("i4 i8", "n k", "[-1, n)"),
    distances=array("f4 f8", "n k", "[0, inf]"),
    search_index=NONE | part("KMeansGraphIndex", "pynndescent.NNDescent", n="n"),
)
class DirectedNeighbors(NamedTuple):
    """k nearest neighbours of every point, itself first."""

    indices: np.ndarray
    distances: np.ndarray
    search_index: Any = None


class NewNeighbors(NamedTuple):
    """The nearest training points of every new point; −1 and inf where missing.

    indices : array of shape (n_new, k)
    outgoing : distances from the new point to them, ascending
    incoming : distances from them to the new point
    """

    indices: np.ndarray
    outgoing: np.ndarray
    incoming: np.ndarray


@runtime_checkable
class NeighborIndex(Protocol):
    """Nearest neighbours of the rows it is built on, and of new rows among them.

    Both answers follow from the data and the parameters (with ``random_state`` among them) and
    are the same for any number of threads. What is found for a new row depends on no other new
    row, bit for bit.
    """

    name: str

    def build(self, X, k: int) -> DirectedNeighbors:
        """The k nearest of every row of X, the row itself included and first."""

    def query(self, new, k: int) -> NewNeighbors:
        """The k nearest rows of X of every new row, and the distances both ways."""


def with_self_first(indices, distances, search_index=None, dtype=np.float32) -> DirectedNeighbors:
    """Put every point first in its own row, whatever ties and duplicates did to the order."""
    indices = np.array(indices, dtype=np.int32)
    distances = np.array(distances, dtype=dtype)
    own = np.arange(indices.shape[0], dtype=np.int32)
    moved = np.flatnonzero(indices[:, 0] != own)
    if moved.size:
        # Either the point stands further right, or duplicates crowded it out: drop the last.
        columns = np.arange(indices.shape[1])
        here = indices[moved] == own[moved, None]
        stop = np.where(here.any(axis=1), here.argmax(axis=1), columns[-1])
        take = np.where(columns <= stop[:, None], np.maximum(columns - 1, 0), columns)
        indices[moved] = np.take_along_axis(indices[moved], take, axis=1)
        distances[moved] = np.take_along_axis(distances[moved], take, axis=1)
    indices[:, 0] = own
    distances[:, 0] = 0.0
    indices[~np.isfinite(distances)] = -1
    distances[indices < 0] = np.inf
    return DirectedNeighbors(indices, distances, search_index)


def with_missing(indices, outgoing, incoming) -> NewNeighbors:
    """Neighbours of new points, with −1 and inf where there is none."""
    missing = ~np.isfinite(outgoing) | (indices < 0)
    return NewNeighbors(
        np.where(missing, -1, indices),
        np.where(missing, np.inf, outgoing),
        np.where(missing, np.inf, incoming),
    )


class SearchSettings(NamedTuple):
    """What a search may need to know; each takes what concerns it.

    metric, metric_kwds : as the user gave them
    function, function_kwds : compiled metric for searches that do not know its name, and its
        keyword arguments, which may be more than those of the user
    symmetric : whether the metric is
    seeded : whether results must not depend on the number of threads
    low_memory, verbose : of pynndescent
    """

    metric: str | Callable = "euclidean"
    metric_kwds: dict | None = None
    function: Callable | None = None
    function_kwds: dict | None = None
    symmetric: bool = True
    random_state: Any = None
    n_threads: int = 1
    seeded: bool = True
    low_memory: bool = True
    verbose: bool = False
    dtype: type = np.float32
