"""The stress over some pairs: against the sums themselves, and large graphs by pivots."""

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import dijkstra

from benchmarks.directed import street_grid
from finsler_ext import FinslerMDS
from finsler_ext._threads import RowPool
from finsler_ext.geometry import MATSUMOTO, RANDERS, find_space
from finsler_ext.geometry.randers import randers_distances
from finsler_ext.mds.descent import majorize
from finsler_ext.mds.pivots import Pairs, PivotInput, SparseStress
from finsler_ext.mds.stress import dense_stress
from finsler_ext.mds.transform import _through_edges


def some_pairs(n=40, seed=0):
    rng = np.random.default_rng(seed)
    D = randers_distances(rng.normal(size=(n, 3)), 0.4) * np.exp(0.2 * rng.normal(size=(n, n)))
    low, high = np.nonzero(np.triu(rng.uniform(size=(n, n)) < 0.3, 1))
    return D, Pairs(low, high, D[low, high], D[high, low], rng.uniform(0.5, 2.0, size=low.size))


def stress_of(Y, omega, pairs, space=RANDERS):
    F = space.distances(Y, omega)
    there, back = F[pairs.low, pairs.high], F[pairs.high, pairs.low]
    return pairs.weight @ ((there - pairs.there) ** 2 + (back - pairs.back) ** 2)


@pytest.mark.parametrize(
    ("space", "omega"), [(RANDERS, 0.0), (RANDERS, 0.3), (RANDERS, 0.8), (MATSUMOTO, 0.4)]
)
def test_stress_and_slope_are_those_of_the_sum(space, omega):
    _, pairs = some_pairs()
    problem = SparseStress(pairs, 40, space=space)
    Y = np.random.default_rng(2).normal(size=(40, 3))
    with RowPool(40, 1) as pool:
        here = problem.slope(Y.T / problem.unit, omega, pool)
    assert here.stress * problem.unit**2 == pytest.approx(
        stress_of(Y, omega, pairs, space), rel=1e-9
    )
    for i, c in ((0, 0), (7, 1), (20, 2)):
        step = np.zeros_like(Y)
        step[i, c] = 1e-5
        rise = stress_of(Y + step, omega, pairs, space) - stress_of(Y - step, omega, pairs, space)
        assert -4 * problem.unit * here.downhill[c, i] == pytest.approx(rise / 2e-5, rel=1e-5)


def test_the_parts_are_those_of_all_pairs():
    D, pairs = some_pairs()
    W = np.zeros_like(D)
    W[pairs.low, pairs.high] = W[pairs.high, pairs.low] = pairs.weight
    dense, sparse = dense_stress(np.where(W > 0, D, 0.0), W), SparseStress(pairs, 40)
    assert sparse.level * sparse.unit == pytest.approx(dense.level * dense.unit, abs=1e-6)
    assert sparse.gradient_share == pytest.approx(dense.gradient_share, rel=1e-6)


@pytest.mark.parametrize("omega", [0.1, 0.9])
def test_every_step_lowers_the_stress(omega):
    _, pairs = some_pairs()
    problem = SparseStress(pairs, 40)
    start = np.random.default_rng(3).normal(size=(40, 3))
    for accelerate in (False, True):
        run = majorize(problem, start, omega, max_iter=60, eps=0, accelerate=accelerate)
        assert len(run.history) > 20
        assert np.all(np.diff(run.history) <= 0)
        assert run.stress == pytest.approx(stress_of(run.position, omega, pairs), rel=1e-9)


def test_pivots_know_their_distances():
    graph = street_grid(300)
    found = PivotInput(graph, np.random.RandomState(0), 12)
    D = dijkstra(graph)
    assert found.outgoing == pytest.approx(D[:, found.pivots])
    assert found.incoming == pytest.approx(D[found.pivots].T)
    assert len(set(found.pivots)) == 12
    pairs = found.pairs()
    assert pairs.there[:500] == pytest.approx(D[pairs.low, pairs.high][:500])
    far = np.isin(pairs.high, found.pivots)
    assert pairs.there[far] == pytest.approx(D[pairs.low, pairs.high][far])
    assert pairs.back[far] == pytest.approx(D[pairs.high, pairs.low][far])
    both = np.minimum(pairs.low, pairs.high) * 1000 + np.maximum(pairs.low, pairs.high)
    assert len(np.unique(both)) == len(both)
    known = found.known()
    source, target = known.tocoo().coords
    assert known.tocoo().data == pytest.approx(D[source, target])
    assert known.nnz == 2 * 12 * (graph.shape[0] - 12) + 12 * 11


@pytest.fixture
def large(monkeypatch):
    """Graphs of more than 200 nodes count as large."""
    from finsler_ext.mds import estimator as mds

    monkeypatch.setattr(mds, "ALL_PAIRS", 200)


@pytest.mark.filterwarnings("ignore:omega_norm='auto' found")
@pytest.mark.filterwarnings("ignore:With omega_norm")
@pytest.mark.parametrize("scaling", ["ratio", "interval"])
def test_a_large_graph_is_embedded_almost_as_well(large, scaling):
    graph = street_grid(600)
    D = dijkstra(graph)
    options = {"n_components": 2, "metric": "precomputed", "omega_norm": "auto", "random_state": 0}
    model = FinslerMDS(scaling=scaling, **options).fit(graph)
    dense = FinslerMDS(scaling=scaling, **options).fit(D)
    assert scipy.sparse.issparse(model.dissimilarity_matrix_)
    F = randers_distances(model.embedding_, model.omega_norm_) + model.transformation_.constant
    np.fill_diagonal(F, 0.0)
    assert ((F - D) ** 2).sum() / (D**2).sum() < 1.15 * dense.normalized_stress_
    assert model.omega_norm_ == pytest.approx(dense.omega_norm_, abs=0.05)
    assert model.skew_fidelity_.sign > 0.8
    assert np.all(np.diff(model.stress_history_) <= 0)


@pytest.mark.parametrize(("method", "space"), [("gd", "randers"), ("auto", "matsumoto")])
def test_a_large_graph_by_gradients(large, method, space):
    graph = street_grid(600)
    D = dijkstra(graph)
    options = {"n_components": 2, "metric": "precomputed", "omega_norm": 0.15, "random_state": 0}
    model = FinslerMDS(method=method, space=space, **options).fit(graph)
    dense = FinslerMDS(method=method, space=space, **options).fit(D)
    F = find_space(space).distances(model.embedding_, 0.15)
    assert ((F - D) ** 2).sum() / (D**2).sum() < 1.15 * dense.normalized_stress_
    some = np.arange(50, 60)
    placed = model.transform(graph[some], incoming=scipy.sparse.csr_array(graph[:, some].T))
    assert np.abs(placed - model.embedding_[some]).max() < 0.3 * model.embedding_.std()


@pytest.mark.filterwarnings("ignore:omega_norm='auto' found")
def test_new_nodes_of_a_large_graph(large):
    graph = street_grid(600)
    model = FinslerMDS(metric="precomputed", omega_norm=0.15, random_state=0).fit(graph)
    some = np.arange(50, 60)
    rows, columns = graph[some], scipy.sparse.csr_array(graph[:, some].T)
    placed = model.transform(rows, incoming=columns)
    spread = model.embedding_.std()
    assert np.abs(placed - model.embedding_[some]).max() < 0.3 * spread
    with pytest.raises(ValueError, match="incoming"):
        model.transform(rows)
    with pytest.raises(ValueError, match="sparse"):
        model.transform(rows.toarray(), incoming=columns.toarray())
    nothing = scipy.sparse.csr_array((1, graph.shape[0]))
    with pytest.raises(ValueError, match="has no known distance"):
        model.transform(nothing, incoming=nothing)


def test_paths_of_new_nodes():
    lengths = np.array([[0.0, 5.0], [3.0, 1.0], [7.0, 0.0]])
    edges = scipy.sparse.csr_array(np.array([[0.0, 2.0, 1.0], [0.0, 0.0, 0.0]]))
    found = _through_edges(edges, lengths)
    assert found[0].tolist() == [5.0, 1.0]
    assert np.isnan(found[1]).all()


def test_what_large_graphs_do_not_take(large):
    graph = street_grid(300)
    with pytest.raises(ValueError, match="weights is not available"):
        FinslerMDS(metric="precomputed").fit(graph, weights="adjacent")
    with pytest.raises(ValueError, match="init is not available"):
        FinslerMDS(metric="precomputed", init=np.zeros((300, 3))).fit(graph)


@pytest.mark.filterwarnings("ignore:With omega_norm")
@pytest.mark.parametrize("space", ["randers", "matsumoto"])
def test_threads_do_not_change_a_bit(large, space):
    graph = street_grid(1200)
    options = {"omega_norm": 0.3, "space": space, "random_state": 0, "max_iter": 20}
    one, two = (FinslerMDS(metric="precomputed", n_jobs=j, **options).fit(graph) for j in (1, 2))
    assert np.array_equal(one.embedding_, two.embedding_)
