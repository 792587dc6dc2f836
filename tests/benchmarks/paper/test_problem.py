"""All methods of a data set share one neighbour graph."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import pairwise_distances

from benchmarks.data import Dataset
from benchmarks.paper.problem import Problem, problem_of
from finsler_ext import FinslerTSNE
from finsler_ext.geometry.randers import randers_distances


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True)
    return Problem(Dataset("flowers", X[:100].astype(np.float32), y[:100]))


@pytest.fixture(scope="module")
def directed():
    places = np.random.default_rng(0).normal(size=(40, 3))
    return Problem(Dataset("directed", randers_distances(places, 0.4), metric="precomputed"))


@pytest.mark.parametrize("kind", ["flowers", "directed"])
def test_the_graph_of_umap_is_the_beginning_of_that_of_tsne(kind, request):
    problem = request.getfixturevalue(kind)
    indices, distances, _ = problem.umap_graph()
    assert indices.shape == (problem.n, 15)
    assert np.array_equal(indices, problem.neighbors.indices[:, :15])
    assert np.array_equal(distances, problem.neighbors.distances[:, :15])
    assert problem.neighbors.indices.shape[1] == min(problem.n, int(3 * problem.perplexity) + 1)
    assert np.array_equal(problem.near[:, :14], indices[:, 1:])


def test_the_graph_given_to_umap_is_a_copy(flowers):
    before = flowers.neighbors.indices.copy()
    flowers.umap_graph()[0][:] = -1
    assert np.array_equal(flowers.neighbors.indices, before)


def test_neighbours_are_the_nearest_points(flowers):
    D = np.sort(pairwise_distances(flowers.X.astype(np.float64)), axis=1)
    assert flowers.neighbors.distances == pytest.approx(D[:, :91], abs=1e-5)
    assert flowers.spacing == pytest.approx(D[:, 1:16].mean(axis=1), abs=1e-5)


@pytest.mark.parametrize("kind", ["directed", "symmetrized", "harmonic"])
def test_affinities_are_those_of_finsler_tsne(flowers, kind):
    model = FinslerTSNE(affinity=kind, omega_norm=0.0, n_iter=1, early_exaggeration_iter=1)
    model.fit(flowers.X)
    _same(flowers.affinities(kind, None), model.affinities_)


def test_affinities_of_directed_distances_are_those_of_finsler_tsne(directed):
    model = FinslerTSNE(metric="precomputed", perplexity=directed.perplexity, omega_norm=0.5,
                        n_iter=1, early_exaggeration_iter=1)  # fmt: skip
    model.fit(directed.X)
    _same(directed.affinities("directed", None), model.affinities_)


def _same(ours, theirs):
    assert ours.P.shape == theirs.P.shape
    assert abs(ours.P - theirs.P).max() < 1e-7 * theirs.P.max()


def test_problems_are_made_once():
    assert problem_of("disk:100", None, 0) is problem_of("disk:100", None, 0)
    assert problem_of("disk:100", None, 1) is not problem_of("disk:100", None, 0)
