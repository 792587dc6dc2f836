"""potential_: the same order at every drift, in every estimator and container."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import spearmanr

from benchmarks.data.digraphs import planted_digraph
from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP
from finsler_ext.directed.potential import graph_potential
from finsler_ext.geometry import RANDERS

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
