"""Searches by name, the choice among them, and NN-descent."""

import numpy as np
import pytest

from finsler_ext import FinslerUMAP
from finsler_ext.neighbors import SEARCHES, cheapest_search, make_index
from finsler_ext.neighbors.exact import ExactIndex, exact_neighbors
from finsler_ext.neighbors.kmeans_graph import KMeansGraphIndex
from finsler_ext.neighbors.nndescent import NNDescentIndex, approximate_neighbors
from finsler_ext.neighbors.search import NeighborIndex, SearchSettings
from finsler_ext.umap import graph as umap_graph

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 5)).astype(np.float32)


@pytest.mark.parametrize("index", [ExactIndex(), KMeansGraphIndex(), NNDescentIndex()])
def test_every_search_keeps_the_protocol(index):
    assert isinstance(index, NeighborIndex)


def test_the_choice_depends_on_the_shape_only():
    def shaped(n, d):
        return np.broadcast_to(np.float32(0.0), (n, d))

    assert cheapest_search(shaped(4000, 2000), "manhattan") == "exact"
    assert cheapest_search(shaped(5000, 2), "manhattan") == "nndescent"
    assert cheapest_search(shaped(30_000, 50), "cosine") == "exact"
    assert cheapest_search(shaped(1_000_000, 50), "euclidean") == "kmeans_graph"
    assert cheapest_search(shaped(300, 2), "euclidean", approximate=True) == "kmeans_graph"


def test_an_unknown_search_is_refused_by_its_name():
    with pytest.raises(ValueError, match="unknown neighbour search 'faiss'; known are exact, km"):
        make_index("faiss", SearchSettings())


def test_a_new_search_needs_no_more_than_its_name(monkeypatch):
    """It used to fall through to NN-descent."""
    used = []

    class Reversed(ExactIndex):
        def build(self, X, k):
            used.append(k)
            return super().build(X, k)

    monkeypatch.setitem(SEARCHES, "mine", lambda use: Reversed(use.metric))
    monkeypatch.setattr(umap_graph, "cheapest_search", lambda *args, **kwds: "mine")
    X = RNG.normal(size=(60, 3)).astype(np.float32)
    model = FinslerUMAP(n_neighbors=7, n_epochs=2, random_state=0).fit(X)
    assert used == [7]
    assert (model._knn_indices == exact_neighbors(X, 7).indices).all()


@pytest.mark.slow  # NN-descent compiles in every process, for twenty seconds
def test_approximate_search_finds_nearly_all():
    points = RNG.normal(size=(3000, 10)).astype(np.float32)
    exact = exact_neighbors(points, 15).indices
    found = approximate_neighbors(points, 15, random_state=0).indices
    recall = np.mean([len(set(a) & set(b)) / 15 for a, b in zip(exact, found, strict=True)])
    assert recall > 0.95
