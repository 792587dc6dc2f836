"""FinslerUMAP and FinslerMDS on sparse digraphs: no edge is lost, one-way edges are asymmetry."""

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import spearmanr

from benchmarks.data.digraphs import planted_digraph
from benchmarks.peers.springrank import springrank
from finsler_ext import FinslerMDS, FinslerUMAP, plot


def ordered(height, graph) -> float:
    """Share of the edges that lead downhill."""
    edges = scipy.sparse.coo_array(graph)
    source, target = edges.coords
    return float(np.mean(height[source] > height[target]))


def fit(graph, **options):
    return FinslerUMAP(metric="precomputed", random_state=0, n_epochs=100, **options).fit(graph)


@pytest.fixture(scope="module")
def planted():
    return planted_digraph(300, 8, reach=0.5, noise=0.2, seed=1)


@pytest.mark.filterwarnings("ignore:Much of the asymmetry")
def test_every_edge_counts_and_auto_sees_one_way_edges(planted):
    graph, level = planted
    model = fit(graph, omega_norm="auto", n_neighbors=5)
    assert np.array_equal(model.graph_.toarray() > 0, graph.toarray() > 0)
    assert model.omega_norm_ >= 0.3
    assert model.skew_fidelity_.sign > 0.9
    height = model.embedding_[:, -1]
    assert spearmanr(height, level).statistic > 0.85
    assert ordered(height, graph) > ordered(springrank(graph), graph) - 0.03
    assert 0.4 < model.gradient_share_ < 1
    plot.plot_asymmetry(model)


@pytest.mark.filterwarnings("ignore:Much of the asymmetry")
def test_reversed_edges_turn_the_height_round(planted):
    graph, _ = planted
    there, back = (fit(g, omega_norm=0.9).embedding_[:, -1] for g in (graph, graph.T.tocsr()))
    assert spearmanr(there, back).statistic < -0.9


def test_a_graph_without_direction_has_none(planted):
    graph, _ = planted
    undirected = scipy.sparse.csr_array(((graph + graph.T) > 0).astype(float))
    with pytest.warns(UserWarning, match="no asymmetry to show"):
        model = fit(undirected, omega_norm="auto", n_neighbors=5)
    assert model.omega_norm_ == 0
    assert np.array_equal(model.graph_.toarray() > 0, undirected.toarray() > 0)


@pytest.mark.filterwarnings("ignore:Much of the asymmetry")
def test_new_nodes_go_where_their_edges_say(planted):
    graph, level = planted
    old = np.arange(40, 300)
    model = fit(graph[old][:, old], omega_norm=0.9)
    out, into = graph[:40][:, old], scipy.sparse.csr_array(graph[old][:, :40].T)
    placed = model.transform(out, incoming=into)
    assert spearmanr(placed[:, -1], level[:40]).statistic > 0.75
    again = model.transform(out[3:5], incoming=into[3:5])
    assert np.array_equal(again, placed[3:5])


@pytest.mark.filterwarnings("ignore:Much of the asymmetry")
def test_isolated_nodes_and_symmetric_controls(planted):
    graph, _ = planted
    alone = scipy.sparse.block_diag([graph, scipy.sparse.csr_array((2, 2))], format="csr")
    with pytest.warns(UserWarning, match="disconnected"):
        model = fit(scipy.sparse.csr_array(alone), omega_norm="auto")
    assert np.isnan(model.embedding_[-2:]).all()
    assert np.isfinite(model.embedding_[:-2]).all()
    for affinity in ("harmonic", "fuzzy_union"):
        model = fit(graph, omega_norm=0.0, affinity=affinity)
        either = (graph + graph.T).toarray() > 0
        assert np.array_equal(model.graph_.toarray() > 0, either)


@pytest.mark.filterwarnings("ignore:Much of the asymmetry")
@pytest.mark.filterwarnings("ignore:omega_norm='auto' found")
def test_weight_on_adjacent_pairs(planted):
    graph, level = planted
    model = FinslerMDS(metric="precomputed", omega_norm=0.9).fit(graph, weights="adjacent")
    height = model.embedding_[:, -1]
    assert spearmanr(height, level).statistic > 0.8
    assert ordered(height, graph) > ordered(springrank(graph), graph) - 0.03
    assert np.isfinite(model.dissimilarity_matrix_).all()
    assert model.stress_history_[-1] < model.stress_history_[0]


def test_weights_of_graphs_are_checked(planted):
    graph, _ = planted
    model = FinslerMDS(metric="precomputed")
    with pytest.raises(ValueError, match="array or 'adjacent'"):
        model.fit(graph, weights="near")
    with pytest.raises(ValueError, match="missing='geodesic'"):
        FinslerMDS(metric="precomputed", missing="ignore").fit(graph, weights="adjacent")
    with pytest.raises(ValueError, match="all pairs are known"):
        model.fit(np.ones((5, 5)) - np.eye(5), weights="adjacent")
    with pytest.raises(ValueError, match="metric='precomputed'"):
        FinslerMDS().fit(np.eye(5), weights="adjacent")


@pytest.mark.filterwarnings("ignore:3 points have no known", "ignore:Much of the asymmetry")
def test_isolated_nodes_do_not_change_the_weight_of_edges(planted):
    """Their pairs, of which none is known, were counted among those that are not edges."""
    graph, _ = planted
    more = scipy.sparse.csr_array(scipy.sparse.block_diag([graph, scipy.sparse.csr_array((3, 3))]))
    plain, among = (FinslerMDS(metric="precomputed", max_iter=20).fit(g) for g in (graph, more))
    assert among.embedding_[:300] == pytest.approx(plain.embedding_, abs=1e-9)
    assert among.gradient_share_ == pytest.approx(plain.gradient_share_)
