"""potential_: the same order at every drift, in every estimator and container."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial import Delaunay
from scipy.stats import spearmanr

from benchmarks.data.digraphs import planted_digraph
from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP
from finsler_ext.directed.potential import graph_potential
from finsler_ext.evidence import measured_pairs
from finsler_ext.geometry import RANDERS
from finsler_ext.metrics import potential

SHORT = {
    FinslerUMAP: {"n_epochs": 20, "random_state": 0},
    FinslerTSNE: {"n_iter": 20, "early_exaggeration_iter": 10, "perplexity": 5, "random_state": 0},
    FinslerMDS: {"max_iter": 10},
}
GRAPH, LEVEL = planted_digraph(120, 6, noise=0.1, seed=2)


def fitted(estimator, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return estimator(**SHORT[estimator], **options).fit(data)


@pytest.mark.parametrize("estimator", [FinslerUMAP, FinslerTSNE])
def test_of_a_digraph_it_is_springrank_at_every_drift(estimator):
    expected = graph_potential(GRAPH).values
    for omega_norm in (0.0, 0.1, 0.9):
        model = fitted(estimator, GRAPH, metric="precomputed", omega_norm=omega_norm)
        assert model.potential_ == pytest.approx(expected, abs=1e-6, nan_ok=True)
    known = np.isfinite(expected)
    assert spearmanr(expected[known], LEVEL[known]).statistic > 0.8


@pytest.mark.parametrize("estimator", SHORT)
@pytest.mark.parametrize("ridge", [0.3, np.inf, "auto"])
def test_with_a_ridge_it_is_that_of_the_ridge_and_heights_follow_it(estimator, ridge):
    model = fitted(estimator, GRAPH, metric="precomputed", ridge=ridge)
    expected = graph_potential(GRAPH, ridge).values
    assert model.potential_ == pytest.approx(expected, abs=1e-6, nan_ok=True)
    assert not np.allclose(np.nan_to_num(expected), np.nan_to_num(graph_potential(GRAPH).values))
    if estimator is not FinslerMDS:
        known = np.isfinite(expected)
        height = np.asarray(model.embedding_)[known, -1]
        assert np.corrcoef(height, expected[known])[0, 1] > 0.999


def test_of_a_graph_without_ways_back_edges_lead_down_in_mds_too():
    """No pair is known both ways, so it was nan everywhere."""
    chain = scipy.sparse.csr_array(np.diag(np.ones(11), k=1) + np.diag(np.ones(10), k=2))
    model = fitted(FinslerMDS, chain, metric="precomputed", omega_norm=0.5)
    assert (np.diff(model.potential_) < 0).all()


@pytest.mark.parametrize("estimator", SHORT)
def test_of_directed_distances_it_is_what_is_costly_to_reach(estimator):
    places = np.random.default_rng(0).normal(size=(60, 3))
    D = RANDERS.distances(places, 0.4)
    model = fitted(estimator, D, metric="precomputed", omega_norm=0.4)
    height = places[:, -1] - places[:, -1].mean()
    assert model.potential_ == pytest.approx(2 * 0.4 * height, abs=1e-4)
    assert not model.potential_component_.any()


@pytest.mark.parametrize("estimator", [FinslerUMAP, FinslerTSNE])
def test_of_features_it_is_the_log_scale(estimator):
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = fitted(estimator, X)
    assert model.potential_ == pytest.approx(np.log(model.local_scale_))
    assert not model.potential_component_.any()


def test_isolated_nodes_and_components():
    blocks = [GRAPH, scipy.sparse.csr_array((2, 2)), GRAPH]
    model = fitted(FinslerUMAP, scipy.sparse.block_diag(blocks).tocsr(), metric="precomputed")
    expected = graph_potential(GRAPH)
    n = GRAPH.shape[0]
    assert np.isnan(model.potential_[n : n + 2]).all()
    assert (model.potential_component_[n : n + 2] == -1).all()
    for part in (slice(0, n), slice(n + 2, None)):
        assert model.potential_[part] == pytest.approx(expected.values, abs=1e-6, nan_ok=True)
    largest = int(np.bincount(expected.component[expected.component >= 0]).argmax())
    node = int(np.flatnonzero(expected.component == largest)[0])
    assert model.potential_component_[node] != model.potential_component_[n + 2 + node]


def test_of_data_without_asymmetry_it_is_flat():
    D = RANDERS.distances(np.random.default_rng(0).normal(size=(30, 2)), 0.0)
    model = fitted(FinslerMDS, (D + D.T) / 2, metric="precomputed")
    assert np.array_equal(model.potential_, np.zeros(30))


def test_equal_rows_have_the_same():
    X = np.random.default_rng(0).normal(size=(40, 3)).repeat(2, axis=0)
    model = fitted(FinslerUMAP, X, unique=True)
    assert model.potential_.shape == (80,)
    assert np.array_equal(model.potential_[::2], model.potential_[1::2])


def streets(n=150, drift=0.1, seed=0):
    """A planar graph of uneven density with a wind: lengths there and back, and where it blows."""
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(n, 2)) * np.exp(0.7 * rng.normal(size=(n, 1)))
    ends = Delaunay(places).simplices[:, [[0, 1], [1, 2], [0, 2]]].reshape(-1, 2)
    i, j = np.unique(np.sort(ends, axis=1), axis=0).T
    length = np.linalg.norm(places[i] - places[j], axis=1)
    rise = drift * (places[j, 0] - places[i, 0])
    lengths, edges = np.r_[length + rise, length - rise], (np.r_[i, j], np.r_[j, i])
    return scipy.sparse.csr_array((lengths, edges), shape=(n, n)), places[:, 0]


@pytest.mark.parametrize("estimator", SHORT)
def test_of_streets_with_lengths_both_ways_it_is_the_way_there_less_the_way_back(estimator):
    """FinslerUMAP took memberships, each end by its own scale: Spearman 0.3 with the wind."""
    graph, west = streets()
    expected = 2 * 0.1 * (west - west.mean())
    model = fitted(estimator, graph, metric="precomputed")
    assert model.potential_ == pytest.approx(expected, abs=1e-6)
    assert potential(graph).values == pytest.approx(expected, abs=1e-6)
    assert potential(scipy.sparse.csr_array(graph.T)).values == pytest.approx(-expected, abs=1e-6)
    assert measured_pairs(graph).skew.size == graph.nnz // 2
    if estimator is not FinslerMDS:
        assert model.skew_fidelity_.sign > 0.999
        assert model.evidence_.more_than_chance


def test_new_places_along_streets_follow_the_wind():
    graph, west = streets()
    old = np.arange(30, 150)
    out, into = graph[:30][:, old], scipy.sparse.csr_array(graph[old][:, :30].T)
    some = np.flatnonzero(np.diff(out.indptr))
    model = fitted(FinslerUMAP, graph[old][:, old], metric="precomputed", omega_norm=0.9)
    placed = model.transform(out[some], incoming=into[some])[:, -1]
    assert spearmanr(placed, west[:30][some]).statistic > 0.95


def test_a_ridge_shrinks_the_potential_of_lengths():
    graph, _ = streets()
    plain, ridged, degree = (potential(graph, ridge).values for ridge in (0.0, 0.3, np.inf))
    assert ridged.std() < 0.8 * plain.std()
    there = scipy.sparse.coo_array(graph)
    flow = np.bincount(there.coords[1], there.data) - np.bincount(there.coords[0], there.data)
    assert degree == pytest.approx(flow * 150 / graph.nnz)
    assert np.array_equal(potential(graph, "auto").values, plain)
