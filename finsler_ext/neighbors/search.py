"""What every neighbour search offers and returns; the searches by name, and the choice among them.

Rows are sources: an edge i → j says that j is among the nearest of i. Missing neighbours have
index −1 and distance inf, so rows may hold fewer neighbours than others.

The choice depends on the shape and the metric alone, never on threads or on what the process has
compiled before: the same data give the same neighbours everywhere. A new search is a class with
`build` and `query` (`NeighborIndex`), and a line in `SEARCHES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy.sparse

from finsler_ext.schema import NONE, array, part, saved

EXACT, KMEANS_GRAPH, NN_DESCENT = "exact", "kmeans_graph", "nndescent"

# umap-learn compares all pairs below this size, whatever the metric.
SMALL = 4096
# Seconds that one core takes to compare all pairs: per pair, and per pair and column
# (benchmarks/neighbor_search.py; EPYC, AVX-512).
SECONDS_PER_PAIR, SECONDS_PER_ENTRY = 0.9e-9, 0.018e-9
# Up to here all pairs are compared, which misses no neighbour: 40,000 rows of 50 columns, 14,000 of
# 784. The k-means graph takes half as long there, and as long at 20,000 rows of 50 columns.
EXACT_SECONDS = 3.0


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

    metric : str or callable, as the user gave it
    metric_kwds : dict
    function, function_kwds : compiled metric for searches that do not know its name, and its
        keyword arguments, which may be more than those of the user
    symmetric : whether the metric is
    random_state : seed or RandomState
    n_threads : int
    seeded : whether results must not depend on the number of threads
    low_memory, verbose : of pynndescent
    dtype : type of the distances
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


def _exact(use: SearchSettings) -> NeighborIndex:
    from finsler_ext.neighbors.exact import ExactIndex
    from finsler_ext.neighbors.metrics import EUCLIDEAN

    known = use.function is None or (isinstance(use.metric, str) and use.metric in EUCLIDEAN)
    return ExactIndex(
        use.metric if known else use.function,  # type: ignore[arg-type]
        use.metric_kwds if use.function_kwds is None else use.function_kwds,
        symmetric=use.symmetric,
        n_threads=use.n_threads,
        named=use.metric if isinstance(use.metric, str) else None,
        dtype=use.dtype,
    )


def _kmeans_graph(use: SearchSettings) -> NeighborIndex:
    from finsler_ext.neighbors.kmeans_graph import KMeansGraphIndex

    return KMeansGraphIndex(
        use.metric, random_state=use.random_state, n_threads=use.n_threads, dtype=use.dtype
    )


def _nn_descent(use: SearchSettings) -> NeighborIndex:
    from finsler_ext.neighbors.nndescent import NNDescentIndex

    return NNDescentIndex(
        metric=use.metric,
        metric_kwds=use.metric_kwds,
        function=use.function,
        random_state=use.random_state,
        # NN-descent depends on its thread count, a seeded result must not
        n_threads=1 if use.seeded else use.n_threads,
        low_memory=use.low_memory,
        verbose=use.verbose,
    )


SEARCHES: dict[str, Callable[[SearchSettings], NeighborIndex]] = {
    EXACT: _exact,
    KMEANS_GRAPH: _kmeans_graph,
    NN_DESCENT: _nn_descent,
}


def make_index(search: str, settings: SearchSettings) -> NeighborIndex:
    """The index of a search by its name."""
    if search not in SEARCHES:
        raise ValueError(f"unknown neighbour search {search!r}; known are {', '.join(SEARCHES)}.")
    return SEARCHES[search](settings)


def cheapest_search(X, metric, *, approximate: bool = False) -> str:
    """The search to take for the rows of X; ``approximate`` leaves out the exact one."""
    from finsler_ext.neighbors.exact import REDUCIBLE

    n = X.shape[0]
    if n < SMALL and not approximate:
        return EXACT
    dense = isinstance(X, np.ndarray) and not scipy.sparse.issparse(X) and X.dtype.kind == "f"
    if not dense or not isinstance(metric, str) or metric not in REDUCIBLE:
        return NN_DESCENT
    seconds = n * n * (SECONDS_PER_PAIR + SECONDS_PER_ENTRY * X.shape[1])
    if seconds <= EXACT_SECONDS and not approximate:
        return EXACT
    return KMEANS_GRAPH if np.isfinite([X.min(), X.max()]).all() else NN_DESCENT
