import numpy as np
import pytest
import scipy.sparse
from numba import njit
from sklearn.neighbors import NearestNeighbors
from umap.sparse import sparse_named_distances

from finsler_ext.neighbors.exact import ExactIndex, exact_neighbors
from finsler_ext.neighbors.geodesics import extended_new_neighbors, geodesic_neighbors
from finsler_ext.neighbors.search import NewNeighbors, training_rows
from finsler_ext.scales import relative_scale
from finsler_ext.umap.graph import new_memberships

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5)).astype(np.float32)
NEW = RNG.normal(size=(30, 5)).astype(np.float32)


@njit
def uphill(x, y):
    return np.abs(y - x).sum() + 0.5 * (y[0] - x[0])


def test_exact_neighbours_are_those_of_scikit_learn():
    found = ExactIndex().over(X).query(NEW, 7)
    distances, indices = NearestNeighbors(n_neighbors=7).fit(X).kneighbors(NEW)
    assert np.array_equal(found.indices, indices)
    np.testing.assert_allclose(found.outgoing, distances, rtol=1e-5)
    assert np.array_equal(found.incoming, found.outgoing)


def test_sparse_rows_give_the_same_neighbours():
    dense = np.where(X > 0.3, X, 0)
    new = np.where(NEW > 0.3, NEW, 0)
    index = ExactIndex(sparse_named_distances["euclidean"]).over(scipy.sparse.csr_matrix(dense))
    sparse = index.query(scipy.sparse.csr_matrix(new), 7)
    expected = ExactIndex().over(dense).query(new, 7)
    np.testing.assert_allclose(sparse.outgoing, expected.outgoing, rtol=1e-5)


def test_asymmetric_metrics_in_both_directions():
    found = ExactIndex(uphill, symmetric=False).over(X).query(NEW, 7)
    for i in range(0, 30, 5):
        there = np.array([uphill(NEW[i], x) for x in X])
        assert np.array_equal(found.indices[i], np.argsort(there, kind="stable")[:7])
        back = [uphill(X[j], NEW[i]) for j in found.indices[i]]
        np.testing.assert_allclose(found.incoming[i], back)


def test_geodesic_extension_is_the_shortest_way_over_an_edge_and_a_geodesic():
    neighbors = exact_neighbors(X, 6)
    geodesic = geodesic_neighbors(neighbors, 20, X)
    found = ExactIndex().over(X).query(NEW, 5)
    extended = extended_new_neighbors(found, geodesic.indices, geodesic.distances, 19)
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
    assert training_rows(form(asked), form(rows)).tolist() == [4, 5, 10, -1, -1]


def test_memberships_of_new_points_by_their_definitions():
    found = NewNeighbors(
        np.array([[2, 0, -1]]), np.array([[1.0, 3.0, np.inf]]), np.array([[1.5, 2.5, np.inf]])
    )
    new, old = (
        (np.array([2.0]), np.array([1.0])),
        (np.array([1.0, 9.0, 4.0]), np.array([2.0, 9.0, 0.5])),
    )
    out, into = new_memberships(found, new, old)
    np.testing.assert_allclose(out, [[1.0, np.exp(-1), 0.0]], rtol=1e-6)
    np.testing.assert_allclose(into, [[np.exp(-0.25), np.exp(-0.5), 0.0]], rtol=1e-6)
    union = new_memberships(found, new, old, "fuzzy_union")
    np.testing.assert_allclose(union[0], out + into - out * into, rtol=1e-6)
    assert union[0] is union[1] or np.array_equal(*union)
    harmonic, _ = new_memberships(found, new, old, "harmonic")
    scale = 2 / (1 / 2.0 + 1 / 4.0)
    assert harmonic[0, 0] == pytest.approx(np.exp(-(1.0 - 0.5) / scale))


def test_a_new_scale_is_relative_to_the_training_scales():
    density, given = np.array([1.0, 2.0, 4.0]), np.array([5.0, 10.0, 20.0])
    whole = relative_scale(given, density)
    new = relative_scale(np.array([10.0]), density, among=given)
    assert new[0] == pytest.approx(whole[1])
