"""Neighbours for t-SNE, as openTSNE's neighbour indices, none of which mirrors a direction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse
from openTSNE.affinity import get_knn_index
from openTSNE.nearest_neighbors import KNNIndex
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from finsler_ext import schema
from finsler_ext._threads import one_blas_thread, resolve_n_jobs
from finsler_ext.neighbors import EXACT, KMEANS_GRAPH, cheapest_search
from finsler_ext.neighbors.distances import REDUCIBLE, pair_distances
from finsler_ext.neighbors.exact import (
    ExactIndex,
    is_asymmetric,
    refuse_large_asymmetric,
    refuse_nan,
    refuse_negative,
    sampled_recall,
)
from finsler_ext.neighbors.kmeans_graph import KMeansGraphIndex
from finsler_ext.neighbors.search import precomputed_neighbors
from finsler_ext.validation import as_stored, canonical, large_offset, readable, without_extremes

# "auto" compares all pairs up to this many points in any metric; openTSNE's Annoy takes as long
# from there.
EXACT_UP_TO = 15_000
# New rows compared with all points at a time; fewer are filled up, so BLAS sums as it does here.
QUERY_ROWS = 256


def _check_index(state: dict) -> None:
    if state["data"] is None and state["metric"] != "precomputed":
        raise ValueError("DirectedIndex.data is missing")


INDEX = {
    "n_samples": schema.whole("[1, inf)", size="n"),
    "data": schema.NONE | schema.array("f4 f8", "n d") | schema.sparse("f4 f8", "n d"),
    "index": schema.NONE | schema.part("KMeansGraphIndex", n="n", d="d"),
    "k": schema.whole("[1, inf)"),
    "metric": schema.TEXT,
    "metric_params": schema.NONE | schema.instance(dict),
    "n_jobs": schema.JOBS,
    "random_state": schema.SEED,
    "verbose": schema.VERBOSE,
    "knn_kwargs": schema.NONE | schema.instance(dict),
}


@schema.saved(INDEX, relations=_check_index)
class DirectedIndex(KNNIndex):
    """Exact neighbours of any metric, or of directed distances with metric="precomputed".

    Missing neighbours have index −1 and distance inf.
    """

    def check_metric(self, metric):
        return metric

    def build(self):
        if self.metric == "precomputed":
            found = precomputed_neighbors(self.data, self.k + 1)
            self.data = None  # places of new points come with distances of their own
        else:
            index = ExactIndex(
                self.metric,
                self.metric_params,
                n_threads=resolve_n_jobs(self.n_jobs),
                dtype=np.float64,
            )
            found = index.build(self.data, self.k + 1)
        return found.indices[:, 1:].astype(np.int64), found.distances[:, 1:].astype(np.float64)

    def _plain_euclidean(self) -> bool:
        return self.metric in ("euclidean", "l2") and not scipy.sparse.issparse(self.data)

    def between(self, rows, columns) -> np.ndarray:
        """Directed distances from the points ``rows`` to the points ``columns``."""
        kwds = self.metric_params or {}
        if isinstance(self.metric, str):
            found = np.asarray(pairwise_distances(rows, columns, metric=self.metric, **kwds))
        else:
            found = cdist(rows, columns, lambda u, v: self.metric(u, v, **kwds))
        refuse_nan(found, self.metric, rows)
        refuse_negative(found, self.metric)
        return found

    def both_ways(self, query) -> tuple[np.ndarray, np.ndarray]:
        """Distances from new points to all points, and from all points to new ones.

        With metric="precomputed", a query has n columns, or 2n: to the points, and from them.
        """
        n = self.n_samples
        if self.metric == "precomputed":
            query = as_stored(query.astype(np.float64), None, pairs=True)
            if query.shape[1] not in (n, 2 * n):
                raise ValueError(
                    f"metric='precomputed': new rows need the distances to the {n} fitted points "
                    f"(and, in {n} more columns, from them), got {query.shape[1]} columns."
                )
            return query[:, :n], query[:, -n:]
        data = self.data
        if self._plain_euclidean():
            offset = large_offset(data)
            if offset is not None:
                query, data = query - offset, data - offset
        with one_blas_thread():
            there = self.between(_filled_up(query), data)[: query.shape[0]]
            if callable(self.metric):
                return there, self.between(data, query).T
        return there, there

    def admitted(self, query):
        """New rows, dense or sparse as the fitted ones; for precomputed distances as they are."""
        if self.metric == "precomputed":
            return readable(query, "X", missing=np.inf)
        query = canonical(without_extremes(readable(query, "X"), "X", new=True))
        return as_stored(query, self.data)

    def refined(self, query, row, column, distances) -> np.ndarray:
        """Distances of chosen pairs, from their differences where the metric is Euclidean.

        Sums inside BLAS and numpy depend on the batch and even on where it lies in memory.
        """
        if not self._plain_euclidean():
            return distances
        return pair_distances(np.ascontiguousarray(query), self.data, row, column)

    def query(self, query, k):
        there, _ = self.both_ways(query)
        near = np.argsort(there, axis=1, kind="stable")[:, :k]
        return near, np.take_along_axis(there, near, axis=1)


def _filled_up(query):
    """Repeat the last row up to a full block: BLAS then sums in the same order for any batch.

    Rows of zeros would be no rows of the data: a correlation with them is not defined.
    """
    missing = QUERY_ROWS - query.shape[0]
    if scipy.sparse.issparse(query) or missing <= 0:
        return query
    return np.pad(query, ((0, missing), (0, 0)), mode="edge")


@schema.saved(INDEX, relations=_check_index)
class GroupedIndex(KNNIndex):
    """`KMeansGraphIndex` in the manner of openTSNE."""

    VALID_METRICS = tuple(REDUCIBLE)

    def build(self):
        self.index = KMeansGraphIndex(
            self.metric,
            random_state=self.random_state,
            n_threads=resolve_n_jobs(self.n_jobs),
            dtype=np.float64,
        )
        found = self.index.build(self.data, self.k + 1)
        if self.verbose:
            recall = sampled_recall(ExactIndex(self.metric), self.data, found.distances)
            print(f"Neighbours: {self.index.name}, recall {recall:.3f} on a sample")
        return found.indices[:, 1:].copy(), found.distances[:, 1:].copy()

    def query(self, query, k):
        found = self.index.query(np.asarray(query), k)
        return found.indices, found.outgoing


def neighbor_index(
    data,
    k: int,
    *,
    method: str | KNNIndex = "auto",
    metric: str | Callable = "euclidean",
    metric_params=None,
    n_jobs: int = 1,
    random_state=None,
    verbose: bool = False,
    knn_kwargs=None,
) -> KNNIndex:
    """The index that finds k neighbours (the point itself left out) of every point.

    "exact" compares all pairs; so does "auto" up to 15,000 points and where that is the cheapest
    search (`cheapest_search`), for directed distances and for asymmetric metrics. More rows are
    searched by groups, where the metric allows. Everything else is openTSNE's choice. With a
    seed, its approximate indices are built on one thread: they depend on the number of threads.
    """
    n = data.shape[0]
    directed = metric == "precomputed"
    if callable(metric) and is_asymmetric(metric, data, metric_params):
        refuse_large_asymmetric(metric, data)
        directed = True
    if isinstance(method, str):
        search = cheapest_search(data, None if metric_params else metric)
        few = method == "auto" and (n <= EXACT_UP_TO or search == EXACT)
        if directed or method == "exact" or few:
            return DirectedIndex(data, k, metric, metric_params, n_jobs=n_jobs)
        if method == "auto" and search == KMEANS_GRAPH:
            return GroupedIndex(
                data, k, metric, n_jobs=n_jobs, random_state=random_state, verbose=verbose
            )
    return get_knn_index(
        data,
        method,
        k=k,
        metric=metric,
        metric_params=metric_params,
        n_jobs=resolve_n_jobs(n_jobs) if random_state is None else 1,
        random_state=random_state,
        verbose=verbose,
        knn_kwargs=knn_kwargs,
    )
