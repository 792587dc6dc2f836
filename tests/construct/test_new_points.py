import numpy as np
import pytest
import scipy.sparse
from numba import njit
from sklearn.neighbors import NearestNeighbors
from umap.sparse import sparse_named_distances

from finsler_ext import construct
from finsler_ext.construct import NewNeighbors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5)).astype(np.float32)
NEW = RNG.normal(size=(30, 5)).astype(np.float32)


@njit
def uphill(x, y):
    return np.abs(y - x).sum() + 0.5 * (y[0] - x[0])


def test_exact_neighbours_are_those_of_scikit_learn():
    found = construct.exact_new_neighbors(NEW, X, 7)
    distances, indices = NearestNeighbors(n_neighbors=7).fit(X).kneighbors(NEW)
    assert np.array_equal(found.indices, indices)
    np.testing.assert_allclose(found.outgoing, distances, rtol=1e-5)
    assert np.array_equal(found.incoming, found.outgoing)


def test_sparse_rows_give_the_same_neighbours():
    dense = np.where(X > 0.3, X, 0)
    new = np.where(NEW > 0.3, NEW, 0)
    sparse = construct.exact_new_neighbors(
        scipy.sparse.csr_matrix(new),
        scipy.sparse.csr_matrix(dense),
        7,
        metric=sparse_named_distances["euclidean"],
    )
    expected = construct.exact_new_neighbors(new, dense, 7)
    np.testing.assert_allclose(sparse.outgoing, expected.outgoing, rtol=1e-5)


def test_asymmetric_metrics_in_both_directions():
    found = construct.exact_new_neighbors(NEW, X, 7, metric=uphill, symmetric=False)
    for i in range(0, 30, 5):
        there = np.array([uphill(NEW[i], x) for x in X])
        assert np.array_equal(found.indices[i], np.argsort(there, kind="stable")[:7])
        back = [uphill(X[j], NEW[i]) for j in found.indices[i]]
        np.testing.assert_allclose(found.incoming[i], back)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_given_distances_with_missing_pairs(form):
    there = RNG.uniform(1, 2, size=(4, 9))
    back = RNG.uniform(1, 2, size=(4, 9))
    if form is np.asarray:
        there[:, 6:] = np.inf
    else:
        there[:, 6:] = 0  # not stored
    found = construct.precomputed_new_neighbors(form(there), form(back), 8)
    for i in range(4):
        order = np.argsort(there[i, :6])
        assert found.indices[i].tolist() == [*order, -1, -1]
        np.testing.assert_allclose(found.outgoing[i, :6], there[i, order])
        np.testing.assert_allclose(found.incoming[i, :6], back[i, order])
    assert np.isinf(found.outgoing[:, 6:]).all()


def test_geodesic_extension_is_the_shortest_way_over_an_edge_and_a_geodesic():
    neighbors = construct.exact_neighbors(X, 6)
    geodesic = construct.geodesic_neighbors(neighbors, 20, X)
    found = construct.exact_new_neighbors(NEW, X, 5)
    extended = construct.extended_new_neighbors(found, geodesic.indices, geodesic.distances, 19)
    G = np.full((120, 120), np.inf)
    np.put_along_axis(G, geodesic.indices.astype(int), geodesic.distances.astype(float), axis=1)
    for i in range(30):
        near = found.indices[i]
        there = (found.outgoing[i][:, None] + G[near]).min(axis=0)
        back = (G[:, near] + found.incoming[i]).min(axis=1)
        reached = extended.indices[i] >= 0
        np.testing.assert_allclose(extended.outgoing[i][reached], np.sort(there)[: reached.sum()])
        np.testing.assert_allclose(
            extended.incoming[i][reached], back[extended.indices[i][reached]]
        )


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_training_rows_are_recognised(form):
    rows = np.vstack([X[:10], np.zeros((2, 5), dtype=np.float32), X[3:5]])
    asked = np.vstack([X[4:6], -np.zeros((1, 5), dtype=np.float32), X[90:91], rows[7:8] + 1e-6])
    assert construct.training_rows(form(asked), form(rows)).tolist() == [4, 5, 10, -1, -1]


def test_memberships_of_new_points_by_their_definitions():
    found = NewNeighbors(
        np.array([[2, 0, -1]]), np.array([[1.0, 3.0, np.inf]]), np.array([[1.5, 2.5, np.inf]])
    )
    new, old = (
        (np.array([2.0]), np.array([1.0])),
        (np.array([1.0, 9.0, 4.0]), np.array([2.0, 9.0, 0.5])),
    )
    out, into = construct.new_memberships(found, new, old)
    np.testing.assert_allclose(out, [[1.0, np.exp(-1), 0.0]], rtol=1e-6)
    np.testing.assert_allclose(into, [[np.exp(-0.25), np.exp(-0.5), 0.0]], rtol=1e-6)
    union = construct.new_memberships(found, new, old, "fuzzy_union")
    np.testing.assert_allclose(union[0], out + into - out * into, rtol=1e-6)
    assert union[0] is union[1] or np.array_equal(*union)
    harmonic, _ = construct.new_memberships(found, new, old, "harmonic")
    scale = 2 / (1 / 2.0 + 1 / 4.0)
    assert harmonic[0, 0] == pytest.approx(np.exp(-(1.0 - 0.5) / scale))


def test_a_new_scale_is_relative_to_the_training_scales():
    density, given = np.array([1.0, 2.0, 4.0]), np.array([5.0, 10.0, 20.0])
    whole = construct.relative_scale(given, density)
    new = construct.relative_scale(np.array([10.0]), density, among=given)
    assert new[0] == pytest.approx(whole[1])
