"""Potentials of digraphs and of pairs, against least squares and closed forms."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import roc_auc_score

from benchmarks.data.digraphs import planted_digraph
from finsler_ext.directed.potential import (
    RIDGES,
    choose_ridge,
    direction_auc,
    graph_potential,
    pair_potential,
)

RNG = np.random.default_rng(0)


def strengths(n=40, density=0.2):
    return np.where(RNG.uniform(size=(n, n)) < density, RNG.lognormal(size=(n, n)), 0.0)


@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_it_minimises_the_energy_of_springs(ridge):
    S = strengths()
    source, target = np.nonzero(S * ~np.eye(len(S), dtype=bool))
    weight = np.sqrt(S[source, target])
    rows = np.zeros((source.size, len(S)))
    edge = np.arange(source.size)
    rows[edge, source], rows[edge, target] = weight, -weight
    degree = S.sum(axis=0) + S.sum(axis=1) - 2 * S.diagonal()
    pull = np.sqrt(ridge * degree.mean()) * np.eye(len(S))
    system, right = np.vstack([rows, pull]), np.concatenate([weight, np.zeros(len(S))])
    expected = np.linalg.lstsq(system, right, rcond=None)[0]
    for form in (np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_matrix):
        found = graph_potential(form(S), ridge).values
        assert found == pytest.approx(expected, abs=1e-7)


def test_an_infinite_ridge_is_the_difference_of_degrees():
    S = strengths()
    np.fill_diagonal(S, 0.0)
    out, into = S.sum(axis=1), S.sum(axis=0)
    expected = (out - into) / (out + into).mean()
    assert graph_potential(S, np.inf).values == pytest.approx(expected)
    nearly = graph_potential(S, 1e6).values * 1e6
    assert nearly == pytest.approx(expected, abs=1e-4)


def test_units_and_loops_do_not_count():
    S = strengths()
    expected = graph_potential(S).values
    assert graph_potential(1e-6 * S).values == pytest.approx(expected, abs=1e-6)
    assert graph_potential(S + np.eye(len(S))).values == pytest.approx(expected, abs=1e-7)
    ridged = graph_potential(S, 0.1).values
    assert graph_potential(1e-6 * S, 0.1).values == pytest.approx(ridged, abs=1e-6)


def test_components_and_isolated_nodes():
    chain = np.diag(np.ones(3), k=1)
    parts = [chain, np.zeros((2, 2)), 5.0 * chain[:2, :2]]
    blocks = scipy.sparse.block_diag([scipy.sparse.csr_array(part) for part in parts])
    found = graph_potential(blocks)
    assert found.values[:4] == pytest.approx([1.5, 0.5, -0.5, -1.5])
    assert np.isnan(found.values[4:6]).all()
    assert found.values[6:] == pytest.approx([0.5, -0.5])
    assert found.component[4:6].tolist() == [-1, -1]
    assert len(set(found.component[:4])) == len(set(found.component[6:])) == 1
    assert found.component[0] != found.component[6]
    ridged = graph_potential(blocks, 0.1)
    assert np.isnan(ridged.values[4:6]).all()
    assert np.array_equal(ridged.component, found.component)
    nobody = graph_potential(np.zeros((3, 3)))
    assert np.isnan(nobody.values).all()


def test_the_order_of_rows_does_not_matter():
    S = strengths()
    order = RNG.permutation(len(S))
    permuted = graph_potential(S[np.ix_(order, order)]).values
    assert permuted == pytest.approx(graph_potential(S).values[order], abs=1e-7)


def test_pairs_are_fitted_by_least_squares():
    n, m = 20, 60
    source, target = RNG.integers(n, size=(2, m))
    source, target = source[source != target], target[source != target]
    skew = RNG.normal(size=source.size)
    rows = np.zeros((source.size, n))
    edge = np.arange(source.size)
    rows[edge, target], rows[edge, source] = 1.0, -1.0
    expected = np.linalg.lstsq(rows, skew, rcond=None)[0]
    assert pair_potential(source, target, skew, n).values == pytest.approx(expected, abs=1e-8)
    assert np.isnan(pair_potential(source, target, skew, n + 1).values[-1])


def test_the_area_under_the_curve():
    fall = np.concatenate([RNG.normal(0.5, 1.0, size=50), np.zeros(5)])
    truth = np.repeat([1, 0], fall.size)
    assert direction_auc(fall) == pytest.approx(roc_auc_score(truth, np.r_[fall, -fall]))
    assert direction_auc(np.full(4, np.nan)) == 0.5


def test_auto_takes_a_ridge_where_edges_are_few_and_noisy():
    noisy, _ = planted_digraph(400, 3, reach=0.1, noise=1.0, seed=0)
    ridge = choose_ridge(noisy)
    assert ridge in RIDGES[1:]
    auto, chosen = (graph_potential(noisy, r).values for r in ("auto", ridge))
    assert np.array_equal(auto, chosen, equal_nan=True)
    clean, level = planted_digraph(200, 20, noise=0.0, seed=0)
    assert np.corrcoef(graph_potential(clean, "auto").values, level)[0, 1] > 0.95
