import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from sklearn.datasets import make_blobs

from finsler_ext.height.start import EXTENT, initial_positions, spectral_map
from finsler_ext.neighbors.exact import exact_neighbors
from finsler_ext.scales import umap_scales
from finsler_ext.umap.graph import directed_memberships


def graph_of(X, k=10):
    found = exact_neighbors(X.astype(np.float32), k)
    return directed_memberships(found, *umap_scales(found.distances))


@pytest.mark.parametrize("n", [150, 900])
def test_spectral_map_spans_the_exact_eigenspace(n):
    X = np.random.default_rng(0).uniform(size=(n, 2)) * [3, 1]
    graph = graph_of(X)
    found = spectral_map(graph, 2, np.random.RandomState(0))
    W = ((graph + graph.T) / 2).toarray()
    root = 1 / np.sqrt(W.sum(axis=1))
    _, vectors = np.linalg.eigh(np.eye(n) - root[:, None] * W * root)
    assert np.max(scipy.linalg.subspace_angles(vectors[:, 1:3], found)) < 1e-2


def test_islands_are_laid_out_apart():
    X, label = make_blobs(300, 4, centers=9, cluster_std=0.05, random_state=0)
    graph = graph_of(X)
    for features in (X, None):
        Y = spectral_map(graph, 2, np.random.RandomState(0), features)
        assert np.isfinite(Y).all()
        centre = np.array([Y[label == c].mean(axis=0) for c in range(9)])
        spread = max(np.ptp(Y[label == c], axis=0).max() for c in range(9))
        assert spread < 2.1 * np.linalg.norm(centre[:, None] - centre, axis=2).max()


@pytest.mark.parametrize("init", ["spectral", "random", "pca"])
def test_columns_span_the_extent_and_follow_the_seed(init):
    X = np.random.default_rng(0).normal(size=(300, 5))
    graph = graph_of(X)
    one, two = (initial_positions(init, 2, graph, X, np.random.RandomState(7)) for _ in range(2))
    assert np.array_equal(one, two)
    assert one.min(axis=0) == pytest.approx(0)
    assert one.max(axis=0) == pytest.approx(EXTENT)


def test_given_positions_are_rescaled_and_coincident_ones_shaken():
    graph = scipy.sparse.csr_array((4, 4))
    rng = np.random.RandomState(0)
    Y = initial_positions(np.array([[0.0, 1], [1, 2], [2, 3], [3, 5]]), 2, graph, None, rng)
    assert Y[:, 0] == pytest.approx([0, 10 / 3, 20 / 3, 10])
    same = initial_positions(np.ones((4, 2)), 2, graph, None, rng)
    assert len(np.unique(same, axis=0)) == 4


def test_pca_without_features_or_with_too_few_is_refused():
    graph = scipy.sparse.csr_array((4, 4))
    with pytest.raises(ValueError, match="precomputed"):
        initial_positions("pca", 2, graph, None, np.random.RandomState(0))
    with pytest.raises(ValueError, match="columns"):
        initial_positions("pca", 2, graph, np.ones((4, 1)), np.random.RandomState(0))
