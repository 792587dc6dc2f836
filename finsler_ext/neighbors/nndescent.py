"""Approximate neighbours by pynndescent's NN-descent, for metrics that nothing else knows.

It compiles for some 40 s of processor time in every process that uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import numpy as np
import scipy.sparse

from finsler_ext._messages import stage
from finsler_ext._threads import numba_threads, plain_interrupt, refuse_after_fork
from finsler_ext.neighbors.exact import refuse_nan, refuse_negative
from finsler_ext.neighbors.search import (
    DirectedNeighbors,
    NeighborIndex,
    NewNeighbors,
    SearchSettings,
    with_missing,
    with_self_first,
)

# How far beyond the nearest an approximate search looks; umap-learn's figures.
EPSILON, EPSILON_ANGULAR = 0.12, 0.24
# Values whose squares single precision holds.
LARGEST = 1e18


class NNDescentIndex:
    """A `NeighborIndex` by pynndescent's NN-descent, with umap-learn's settings.

    ``search`` is a pynndescent.NNDescent that was made elsewhere.
    """

    name = "nndescent"

    def __init__(self, use: SearchSettings | None = None, search=None):
        self.use, self.search = use or SearchSettings(), search

    def build(self, X, k: int) -> DirectedNeighbors:
        from pynndescent import NNDescent

        _refuse_large(X)
        stage("finding neighbours by NN-descent")
        n, use = X.shape[0], self.use
        metric = self._known_metric(X)
        built_from = X, deepcopy(use.random_state)
        # it depends on the number of threads, and a seeded result must not
        with numba_threads(1 if use.seeded else use.n_threads):
            self.search = NNDescent(
                X,
                n_neighbors=k,
                metric=metric,
                metric_kwds=dict(use.metric_kwds or {}),
                random_state=use.random_state,
                n_trees=min(64, 5 + round(n**0.5 / 20.0)),
                n_iters=max(5, round(np.log2(n))),
                max_candidates=60,
                low_memory=use.low_memory,
                n_jobs=-1,  # the limit just set
                verbose=use.verbose,
                compressed=False,
            )
        self.search._built_from = built_from  # a file holds this in place of the search
        indices, distances = self.search.neighbor_graph
        refuse_nan(distances, metric, X)
        refuse_negative(distances, metric)
        return with_self_first(indices, distances, self.search)

    def _known_metric(self, X) -> str | Callable:
        """The metric by its name where pynndescent has one for such rows."""
        from pynndescent.distances import named_distances
        from pynndescent.sparse import sparse_named_distances

        named = sparse_named_distances if scipy.sparse.issparse(X) else named_distances
        metric, function = self.use.metric, self.use.function
        known = isinstance(metric, str) and metric in named
        return metric if known or function is None else function

    def query(self, new, k: int) -> NewNeighbors:
        """One row at a time: within a call pynndescent carries a random state from row to row.

        That costs a seventh of the search itself.
        """
        refuse_after_fork()
        angular = getattr(self.search, "_angular_trees", False)
        epsilon = EPSILON_ANGULAR if angular else EPSILON
        indices = np.empty((new.shape[0], k), dtype=np.int64)
        distances = np.empty((new.shape[0], k))
        with plain_interrupt():
            for i in range(new.shape[0]):
                row = slice(i, i + 1)
                indices[row], distances[row] = self.search.query(new[row], k, epsilon=epsilon)
        return with_missing(indices, distances, distances)


def _refuse_large(X) -> None:
    values = X.data if scipy.sparse.issparse(X) else X
    if values.size and np.abs(values).max() > LARGEST:
        raise ValueError(
            f"X has values beyond {LARGEST:g}, whose squares single precision cannot hold, as the "
            "search in large data needs. Divide X by a constant."
        )


def approximate_neighbors(X, n_neighbors: int, **settings) -> DirectedNeighbors:
    """The nearest rows of every row, itself included, on as many threads as the settings say."""
    return NNDescentIndex(SearchSettings(seeded=False, **settings)).build(X, n_neighbors)


def as_index(search) -> NeighborIndex:
    """An index of this package as it is, pynndescent's wrapped."""
    return search if isinstance(search, NeighborIndex) else NNDescentIndex(search=search)
