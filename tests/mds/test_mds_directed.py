"""FinslerMDS: directed data of all kinds, weights, metrics."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_iris

from benchmarks.data.digraphs import planted_digraph
from finsler_ext import FinslerMDS
from finsler_ext.geometry.randers import randers_distances
from finsler_ext.mds.estimator import finsler_mds_gd, finsler_smacof
from tests.mds_data import IGNORED, drifted, one_way_missing, pairs_missing

pytestmark = IGNORED


def test_dense_sparse_and_digraph_are_the_same_data():
    nx = pytest.importorskip("networkx")
    _, D = drifted(n=30)
    missing = pairs_missing(D)
    known = np.isfinite(missing) & ~np.eye(30, dtype=bool)
    i, j = np.nonzero(known)
    sparse = scipy.sparse.coo_array((missing[known], (i, j)), shape=D.shape)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(30))
    graph.add_weighted_edges_from(zip(i.tolist(), j.tolist(), missing[known].tolist(), strict=True))
    fits = [FinslerMDS(metric="precomputed").fit(data) for data in (missing, sparse, graph)]
    for model in fits[1:]:
        assert np.array_equal(model.embedding_, fits[0].embedding_)
        np.testing.assert_array_equal(model.dissimilarity_matrix_, fits[0].dissimilarity_matrix_)


def test_missing_pairs_have_no_weight():
    Y, D = drifted(omega=0.4)
    missing = pairs_missing(D)
    weights = np.isfinite(missing).astype(float)
    exact = finsler_smacof(missing, omega_norm=0.4, eps=1e-10, max_iter=3000)
    assert exact.normalized_stress < 1e-6
    assert exact.embedding[:, -1] == pytest.approx(Y[:, -1], abs=0.02)
    nonsense = np.where(weights > 0, D, 1e3)
    weighted = finsler_smacof(nonsense, weights=weights, omega_norm=0.4, max_iter=20)
    left_out = finsler_smacof(missing, omega_norm=0.4, max_iter=20)
    assert weighted.stress == pytest.approx(left_out.stress, rel=1e-6)


@pytest.mark.parametrize("omega", [0.1, 0.4, 0.8])
def test_pairs_known_one_way_give_back_the_points(omega):
    Y, D = drifted(omega=omega)
    tournament = np.where(np.triu(np.ones_like(D)) > 0, D, np.nan)
    for missing in (one_way_missing(D), tournament, np.where(np.isnan(tournament), np.inf, D)):
        model = FinslerMDS(metric="precomputed", omega_norm=omega, missing="ignore").fit(missing)
        assert model.normalized_stress_ < 1e-8
        assert np.all(np.diff(model.stress_history_) <= 0)
        assert model.embedding_[:, -1] == pytest.approx(Y[:, -1], abs=1e-3)
    by_descent = finsler_mds_gd(tournament, omega_norm=omega, init="finsler", max_iter=400)
    assert by_descent.normalized_stress < 1e-4


def test_asymmetric_weights():
    _, D = drifted(noise=0.3)
    W = np.random.default_rng(0).random(D.shape)
    weighted = np.where(np.eye(len(D)) > 0, 0, W)
    for solver in (finsler_smacof, finsler_mds_gd):
        result = solver(D, weights=W, omega_norm=0.3)
        square = W * (randers_distances(result.embedding, 0.3) - D) ** 2
        assert result.stress == pytest.approx(square.sum() - np.trace(square), rel=1e-9)
        share = result.stress / (weighted * D**2).sum()
        assert result.normalized_stress == pytest.approx(share, rel=1e-9)
    plain = finsler_smacof(D, weights=W, omega_norm=0.3, accelerate=False, max_iter=50, eps=0)
    assert np.all(np.diff(plain.stress_history) <= 0)


def test_the_estimator_weights_pairs():
    _, D = drifted(noise=0.3)
    W = np.random.default_rng(0).random(D.shape)
    W = W + W.T
    model = FinslerMDS(metric="precomputed", omega_norm=0.3).fit(D, weights=W)
    square = W * (randers_distances(model.embedding_, 0.3) - D) ** 2
    assert model.stress_ == pytest.approx(square.sum() - np.trace(square), rel=1e-9)
    # an asymmetry of rounding size is no asymmetry
    FinslerMDS(metric="precomputed", max_iter=2).fit(D, weights=W * (1 + 1e-12 * D))


def test_the_diagonal_is_zero_or_unknown_and_the_matrix_left_alone():
    _, D = drifted(n=20)
    plain = finsler_smacof(D)
    np.fill_diagonal(D, np.nan)
    kept = D.copy()
    assert np.array_equal(finsler_smacof(D).embedding, plain.embedding)
    assert np.array_equal(D, kept, equal_nan=True)
    np.fill_diagonal(D, 7.0)
    with pytest.raises(ValueError, match="from a point to itself must be 0"):
        finsler_smacof(D)


def test_float32_stays_float32():
    _, D = drifted(n=30)
    model = FinslerMDS(metric="precomputed").fit(D.astype(np.float32))
    assert model.embedding_.dtype == model.dissimilarity_matrix_.dtype == np.float32
    assert FinslerMDS().fit(load_iris().data.astype(np.float32)).embedding_.dtype == np.float32


@pytest.mark.parametrize("metric", ["manhattan", "cosine"])
def test_metrics_by_name_and_by_function(metric):
    X = load_iris().data[:60]
    named = FinslerMDS(metric=metric).fit(X)
    assert named.normalized_stress_ < 0.1
    assert named.transform(X[:3]) == pytest.approx(named.embedding_[:3], abs=0.1)

    def function(x, y):
        from sklearn.metrics import pairwise_distances

        return pairwise_distances([x], [y], metric=metric)[0, 0]

    by_function = FinslerMDS(metric=function, max_iter=1).fit(X).dissimilarity_matrix_
    assert by_function == pytest.approx(named.dissimilarity_matrix_, rel=1e-3, abs=1e-6)


def test_sparse_features_with_duplicates_are_summed():
    X = np.random.default_rng(0).normal(size=(60, 4))
    halves = scipy.sparse.csr_matrix(X)
    twice = scipy.sparse.csr_matrix(
        (np.repeat(halves.data / 2, 2), np.repeat(halves.indices, 2), halves.indptr * 2),
        shape=X.shape,
    )
    assert not twice.has_canonical_format
    one, two = (FinslerMDS(max_iter=5).fit(data) for data in (halves, twice))
    assert np.array_equal(one.embedding_, two.embedding_)


def test_a_graph_without_ways_back_has_nothing_to_compare():
    nx = pytest.importorskip("networkx")
    one_way = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "d"), ("a", "e"), ("e", "d"), ("b", "e")])
    model = FinslerMDS(n_components=2, metric="precomputed", omega_norm=0.5, missing="geodesic")
    assert model.fit(one_way).skew_fidelity_.reason == "no pair is known both ways"


@pytest.mark.parametrize("omega_norm", [0.1, 0.5, 0.9, "auto"])
def test_edges_of_an_acyclic_graph_lead_downhill(omega_norm):
    graph, rank = planted_digraph(150, 5, noise=0.02)
    graph = scipy.sparse.triu(graph[np.argsort(-rank)][:, np.argsort(-rank)], k=1).tocsr()
    model = FinslerMDS(metric="precomputed", omega_norm=omega_norm, random_state=0).fit(graph)
    source, target = graph.tocoo().coords
    for order in (model.embedding_[:, -1], model.potential_):
        assert np.nanmean(order[source] > order[target]) > 0.9


def test_edges_with_lengths_that_could_lead_downhill_are_noted():
    graph, rank = planted_digraph(150, 5, noise=0.02)
    graph.data = np.random.default_rng(0).uniform(1, 3, graph.nnz)
    model = FinslerMDS(metric="precomputed", random_state=0)
    with pytest.warns(UserWarning, match="weights='adjacent'"):
        model.fit(graph)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(graph, weights="adjacent")
    assert np.corrcoef(model.embedding_[:, -1], rank)[0, 1] > 0.8


def test_a_tournament_is_a_graph():
    """Every pair has an edge, one way: nothing is left to favour, and paths lead back."""
    wins = np.triu(np.ones((12, 12)), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FinslerMDS(metric="precomputed", random_state=0).fit(scipy.sparse.csr_array(wins))
    assert (np.diff(model.embedding_[:, -1]) < 0).all()
