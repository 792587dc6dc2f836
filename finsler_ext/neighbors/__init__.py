"""Neighbour searches behind one protocol, `NeighborIndex`: by name, and the choice among them.

search.py        what every search offers and returns; directed distances that are given
exact.py         all pairs in any metric; those of dense rows by products in `distances.py`
kmeans_graph.py  large dense data: k-means, then neighbours of neighbours
nndescent.py     pynndescent
geodesics.py     shortest paths over neighbours

The choice depends on the shape and the metric alone, never on threads or on what the process has
compiled before: the same data give the same neighbours everywhere. A new search is a class with
`build` and `query`, and a line in `SEARCHES`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from finsler_ext.neighbors.distances import REDUCIBLE
from finsler_ext.neighbors.exact import EUCLIDEAN, ExactIndex
from finsler_ext.neighbors.kmeans_graph import KMeansGraphIndex
from finsler_ext.neighbors.nndescent import NNDescentIndex
from finsler_ext.neighbors.search import NeighborIndex, SearchSettings

__all__ = ["EXACT", "KMEANS_GRAPH", "NN_DESCENT", "SEARCHES", "cheapest_search", "make_index"]

EXACT, KMEANS_GRAPH, NN_DESCENT = "exact", "kmeans_graph", "nndescent"

# umap-learn compares all pairs below this size, whatever the metric.
SMALL = 4096
# Seconds that one core takes to compare all pairs: per pair, and per pair and column
# (benchmarks/neighbor_search.py; EPYC, AVX-512).
SECONDS_PER_PAIR, SECONDS_PER_ENTRY = 0.9e-9, 0.018e-9
# Up to here (40,000 rows of 50 columns) all pairs are compared, which misses no neighbour; the
# k-means graph takes half as long there.
EXACT_SECONDS = 3.0


def _exact(use: SearchSettings) -> NeighborIndex:
    by_name = use.function is None or use.metric in EUCLIDEAN
    return ExactIndex(
        use.metric if by_name else use.function,  # type: ignore[arg-type]
        use.metric_kwds if use.function_kwds is None else use.function_kwds,
        symmetric=use.symmetric,
        n_threads=use.n_threads,
        named=use.metric,
        dtype=use.dtype,
    )


def _kmeans_graph(use: SearchSettings) -> NeighborIndex:
    return KMeansGraphIndex(
        use.metric, random_state=use.random_state, n_threads=use.n_threads, dtype=use.dtype
    )


SEARCHES: dict[str, Callable[[SearchSettings], NeighborIndex]] = {
    EXACT: _exact,
    KMEANS_GRAPH: _kmeans_graph,
    NN_DESCENT: NNDescentIndex,
}


def make_index(search: str, settings: SearchSettings) -> NeighborIndex:
    """The index of a search by its name."""
    if search not in SEARCHES:
        raise ValueError(f"unknown neighbour search {search!r}; known are {', '.join(SEARCHES)}.")
    return SEARCHES[search](settings)


def cheapest_search(X, metric, *, approximate: bool = False) -> str:
    """The search to take for the rows of X; ``approximate`` leaves out the exact one."""
    n = X.shape[0]
    if n < SMALL and not approximate:
        return EXACT
    dense = isinstance(X, np.ndarray) and X.dtype.kind == "f"
    if not dense or not isinstance(metric, str) or metric not in REDUCIBLE:
        return NN_DESCENT
    seconds = n * n * (SECONDS_PER_PAIR + SECONDS_PER_ENTRY * X.shape[1])
    if seconds <= EXACT_SECONDS and not approximate:
        return EXACT
    return KMEANS_GRAPH if np.isfinite([X.min(), X.max()]).all() else NN_DESCENT
