"""One data set as all methods of a run see it: with one neighbour graph, made once.

t-SNE needs the most neighbours (three times its perplexity); UMAP and MDS take the first
columns of the same graph.
"""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np
from openTSNE.nearest_neighbors import PrecomputedNeighbors

from benchmarks.data import Dataset, load
from finsler_ext.neighbors.exact import exact_neighbors
from finsler_ext.neighbors.geodesics import directed_distances
from finsler_ext.neighbors.nndescent import approximate_neighbors
from finsler_ext.neighbors.search import DirectedNeighbors, precomputed_neighbors
from finsler_ext.tsne.affinity import DirectedPerplexity

__all__ = ["Problem", "problem_of"]

PERPLEXITY = 30
# umap-learn counts the point itself, scikit-learn's Isomap does not.
UMAP_NEIGHBORS = 15
MDS_NEIGHBORS = 15
# All pairs are compared up to this many points; beyond, NN-descent with a fixed seed.
EXACT_UP_TO = 20_000


class Problem:
    """A data set, its directed neighbours, and what methods make of them."""

    def __init__(self, dataset: Dataset, n_threads: int = 1):
        self.dataset = dataset
        self.n_threads = n_threads

    @property
    def X(self) -> np.ndarray:
        return self.dataset.X

    @property
    def n(self) -> int:
        return len(self.dataset.X)

    @property
    def directed(self) -> bool:
        """Whether X holds directed distances instead of features."""
        return self.dataset.metric == "precomputed"

    @property
    def perplexity(self) -> float:
        return min(PERPLEXITY, (self.n - 1) / 3)

    @cached_property
    def neighbors(self) -> DirectedNeighbors:
        """The one graph of all methods, the point itself first."""
        k = min(self.n, int(3 * self.perplexity) + 1)
        if self.directed:
            return precomputed_neighbors(self.X, k)
        if self.n <= EXACT_UP_TO:
            return exact_neighbors(self.X, k, n_threads=self.n_threads)
        return approximate_neighbors(self.X, k, random_state=0)

    @property
    def near(self) -> np.ndarray:
        """The 15 nearest of every point, without itself."""
        return self.neighbors.indices[:, 1 : MDS_NEIGHBORS + 1]

    @cached_property
    def spacing(self) -> np.ndarray:
        """Mean distance to the 15 nearest: the local scale that heights are compared with."""
        return self.neighbors.distances[:, 1 : MDS_NEIGHBORS + 1].astype(np.float64).mean(axis=1)

    def umap_graph(self, k: int = UMAP_NEIGHBORS) -> tuple:
        """``precomputed_knn`` of umap-learn; a copy, since umap writes into it."""
        found = self.neighbors
        return (found.indices[:, :k].copy(), found.distances[:, :k].copy(), None)

    @cache  # noqa: B019 - problems live as long as the process
    def affinities(self, kind: str, extension: int | None) -> DirectedPerplexity:
        """Affinities of t-SNE, with neighbours extended along shortest paths if asked for."""
        options: dict = {"affinity": kind, "n_jobs": self.n_threads}
        if self.directed:
            return DirectedPerplexity(
                self.X, self.perplexity, metric="precomputed", geodesic_neighbors=extension,
                **options,
            )  # fmt: skip
        if extension is not None:
            return DirectedPerplexity(
                self.X, self.perplexity, geodesic_neighbors=extension, **options
            )
        found = self.neighbors
        index = PrecomputedNeighbors(
            found.indices[:, 1:], found.distances[:, 1:].astype(np.float64)
        )
        return DirectedPerplexity(None, self.perplexity, knn_index=index, **options)

    @cached_property
    def distances(self) -> np.ndarray:
        """Directed distances between all points: given, or along scaled neighbours."""
        if self.directed:
            return self.X.astype(np.float64)
        X = self.X.astype(np.float64)
        return directed_distances(X, MDS_NEIGHBORS, n_threads=self.n_threads).distances


@cache
def problem_of(spec: str, data_dir: str | None, seed: int, n_threads: int = 1) -> Problem:
    """The problem of a data set, kept for the other methods and seeds."""
    return Problem(load(spec, data_dir=data_dir, seed=seed), n_threads)
