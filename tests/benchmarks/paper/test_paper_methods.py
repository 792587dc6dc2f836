"""The paper's own methods: their gradients, their starts, and that they descend."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_iris
from sklearn.manifold import TSNE
from sklearn.manifold._utils import _binary_search_perplexity

from benchmarks.paper.methods import embed, paper_tsne, paper_umap
from benchmarks.paper.methods.paper_family import _equal_affinities
from benchmarks.paper.problem import problem_of
from finsler_ext.umap.kernels import LossShape
from finsler_ext.umap.layout import umap_loss

A, B = 1.577, 0.895  # of min_dist = 0.1


@pytest.fixture(scope="module")
def iris():
    return problem_of("iris", None, 0)


@pytest.mark.parametrize("attract", [True, False])
def test_pair_gradient_is_that_of_the_printed_loss(attract):
    """By central differences of −ln q and −ln(1 − q), as far apart as softening is nothing."""
    rng = np.random.default_rng(0)
    omega_norm, step = 0.5, 1e-5

    def cost(here, there):
        F = np.linalg.norm(there - here) + omega_norm * (there[-1] - here[-1])
        q = 1 / (1 + A * F ** (2 * B))
        return -np.log(q) if attract else -np.log(1 - q)

    for _ in range(5):
        here, there = rng.normal(size=(2, 3)) * 5
        found = np.empty(3)
        paper_umap.pair_gradient(here, there, omega_norm, A, B, attract, found)
        expected = [
            (cost(here + step * e, there) - cost(here - step * e, there)) / (2 * step)
            for e in np.eye(3)
        ]
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-7)


def test_negatives_in_one_direction_push_along_the_drift():
    """Of a pair at equal height, both directions together leave the height alone."""
    here, there = np.zeros(3), np.array([1.0, 0.5, 0.0])
    forward, reverse = np.empty(3), np.empty(3)
    paper_umap.pair_gradient(here, there, 0.5, A, B, False, forward)
    paper_umap.pair_gradient(here, there, -0.5, A, B, False, reverse)
    assert forward[-1] > 0.1
    assert forward[-1] + reverse[-1] == pytest.approx(0)


def test_umap_starts_flat_and_descends(iris):
    seen = {}
    for epochs in (0, None):
        seen[epochs] = _layout(iris, epochs)
    start = seen[0]
    np.testing.assert_array_equal(start[:, -1], 0)
    np.testing.assert_allclose([start[:, :2].min(0), start[:, :2].max(0)], [[0, 0], [10, 10]])
    assert np.ptp(seen[None][:, -1]) > 0.1
    P = _memberships(iris)
    loss = {
        epochs: umap_loss(places, P, LossShape(A, B), omega_norm=0.5).value
        for epochs, places in seen.items()
    }
    assert loss[None] < loss[0]


def _memberships(problem):
    near, far, _ = problem.umap_graph()
    weight = np.exp(-(far - far[:, 1:2]).clip(0) / far.mean(axis=1, keepdims=True))
    source = np.repeat(np.arange(len(near)), near.shape[1] - 1)
    P = (weight[:, 1:].ravel(), (source, near[:, 1:].ravel()))
    return scipy.sparse.csr_matrix(P, shape=2 * (len(near),))


def _layout(problem, epochs):
    options = {"omega_norm": 0.5, "a": A, "b": B, "two_sided": True, "seed": 0}
    P = _memberships(problem)
    if epochs == 0:
        return paper_umap.start(problem.X, P, 3, np.random.RandomState(0))
    return paper_umap.lay_out(problem.X, P, 3, **options)


def test_fifteen_neighbours_cannot_have_a_perplexity_of_thirty(iris):
    """scikit-learn's own search ends in equal affinities, which is what the method takes."""
    far = iris.neighbors.distances[:, 1:16].astype(np.float32) ** 2
    found = _binary_search_perplexity(far, 30.0, 0)
    np.testing.assert_allclose(found, 1 / 15, rtol=1e-5)
    P = _equal_affinities(iris)
    np.testing.assert_allclose(P.data, 1 / (15 * iris.n))
    assert P.sum() == pytest.approx(1)


def test_tsne_without_drift_ends_where_scikit_learn_does(iris):
    X = load_iris().data
    P = iris.affinities("symmetrized", None).P
    _, ours = paper_tsne.lay_out(X, P, 2, omega_norm=0.0)
    theirs = TSNE(perplexity=30, init="pca", method="exact", random_state=0).fit(X).kl_divergence_
    assert ours == pytest.approx(theirs, rel=0.1)


def test_tsne_starts_flat(iris):
    start = paper_tsne.start(iris.X, 3, height=True)
    np.testing.assert_array_equal(start[:, -1], 0)
    assert start[:, 0].std() == pytest.approx(1e-4)


@pytest.mark.parametrize(
    "method",
    [
        "paper_umap_0.5_3d",
        "paper_umap_one_sided_0.5_3d",
        "paper_tsne_0.5_3d",
        "paper_tsne_wide_0.5_3d",
        "paper_mds_gd_0.5_3d",
    ],
)
def test_methods_by_name(iris, method):
    found = embed(method, iris, seed=0)
    assert found.embedding.shape == (150, 3)
    assert found.has_height
    assert np.ptp(found.embedding[:, -1]) > 0
    assert found.skew.defined
