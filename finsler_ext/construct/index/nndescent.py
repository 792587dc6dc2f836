"""Approximate neighbours by pynndescent's NN-descent, for metrics that nothing else knows.

It compiles for some 40 s of processor time in every process that uses it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from finsler_ext._progress import stage
from finsler_ext._threads import numba_threads, plain_interrupt, refuse_after_fork
from finsler_ext.construct.index.base import (
    DirectedNeighbors,
    NeighborIndex,
    NewNeighbors,
    marked,
    with_self_first,
)
from finsler_ext.construct.index.metrics import refuse_nan

__all__ = ["NNDescentIndex", "approximate_neighbors", "as_index", "searched_new_neighbors"]

# How far beyond the nearest an approximate search looks; umap-learn's figures.
EPSILON, EPSILON_ANGULAR = 0.12, 0.24


class NNDescentIndex:
    """A `NeighborIndex` by NN-descent; ``kwds`` as in `approximate_neighbors`.

    A search that was made elsewhere is taken as ``given``.
    """

    name = "NN-descent"

    def __init__(self, given=None, **kwds):
        self.search = given
        self.kwds = kwds

    def build(self, X, k: int) -> DirectedNeighbors:
        found = approximate_neighbors(X, k, **self.kwds)
        self.search = found.search_index
        return found

    def query(self, new, k: int) -> NewNeighbors:
        return searched_new_neighbors(self.search, new, k)


def as_index(search) -> NeighborIndex:
    """An index of this package as it is, pynndescent's wrapped."""
    return search if isinstance(search, NeighborIndex) else NNDescentIndex(search)


def approximate_neighbors(
    X,
    n_neighbors: int,
    *,
    metric: str | Callable = "euclidean",
    metric_kwds=None,
    random_state=None,
    n_threads: int = 1,
    low_memory: bool = True,
    verbose: bool = False,
) -> DirectedNeighbors:
    """Nearest neighbours by pynndescent's NN-descent, with umap-learn's settings.

    NN-descent depends on its number of threads; pass ``n_threads=1`` for a result that
    follows from ``random_state`` alone.
    """
    from pynndescent import NNDescent

    stage("finding neighbours by NN-descent")
    n = X.shape[0]
    n_trees = min(64, 5 + round(n**0.5 / 20.0))
    n_iters = max(5, round(np.log2(n)))
    with numba_threads(n_threads):
        index = NNDescent(
            X,
            n_neighbors=n_neighbors,
            metric=metric,
            metric_kwds=dict(metric_kwds or {}),
            random_state=random_state,
            n_trees=n_trees,
            n_iters=n_iters,
            max_candidates=60,
            low_memory=low_memory,
            n_jobs=-1,  # the limit just set
            verbose=verbose,
            compressed=False,
        )
    indices, distances = index.neighbor_graph
    refuse_nan(distances, metric if isinstance(metric, str) else None, X)
    return with_self_first(indices, distances, index)


def searched_new_neighbors(index, new, k: int) -> NewNeighbors:
    """Ask the search index of a symmetric metric.

    One row at a time: within a call pynndescent carries a random state from row to row. That
    costs a seventh of the search itself.
    """
    refuse_after_fork()
    epsilon = EPSILON_ANGULAR if getattr(index, "_angular_trees", False) else EPSILON
    indices = np.empty((new.shape[0], k), dtype=np.int64)
    distances = np.empty((new.shape[0], k))
    with plain_interrupt():
        for i in range(new.shape[0]):
            row = slice(i, i + 1)
            indices[row], distances[row] = index.query(new[row], k, epsilon=epsilon)
    return marked(indices, distances, distances)
