"""Neighbours from directed distances, dense and sparse, with missing pairs."""

import numpy as np
import pytest
import scipy.sparse

from finsler_ext.neighbors.search import precomputed_neighbors, precomputed_new_neighbors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 5))


def uphill(X):
    """Directed distances: climbing along the first axis costs extra."""
    rise = X[None, :, 0] - X[:, None, 0]
    return np.linalg.norm(X[:, None] - X[None], axis=2) + 0.9 * np.maximum(rise, 0.0)


def test_precomputed_rows_are_sources_dense_and_sparse():
    D = uphill(X)
    dense, sparse = precomputed_neighbors(D, 6), precomputed_neighbors(scipy.sparse.csr_array(D), 6)
    assert dense.distances == pytest.approx(np.sort(D, axis=1)[:, :6], rel=1e-6)
    assert (dense.indices == sparse.indices).all()
    assert not (dense.indices == precomputed_neighbors(D.T, 6).indices).all()


def test_missing_pairs_are_no_neighbours():
    D = np.full((4, 4), np.inf)
    np.fill_diagonal(D, 0)
    D[0, 1] = 2.0
    sparse = scipy.sparse.csr_array((np.array([2.0]), ([0], [1])), shape=(4, 4))
    for found in (precomputed_neighbors(D, 3), precomputed_neighbors(sparse, 3)):
        assert found.indices.tolist() == [[0, 1, -1], [1, -1, -1], [2, -1, -1], [3, -1, -1]]
        assert found.distances[0].tolist() == [0, 2, np.inf]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda D: D[:, :-1], "square"),
        (lambda D: D - 5, "negative"),
        (lambda D: np.where(D > 1, np.nan, D), "NaN"),
        (lambda D: D + 1, "diagonal"),
    ],
)
def test_bad_precomputed_matrices_are_refused(spoil, message):
    D = uphill(X[:20])
    with pytest.raises(ValueError, match=message):
        precomputed_neighbors(spoil(D), 5)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_given_distances_with_missing_pairs(form):
    there = RNG.uniform(1, 2, size=(4, 9))
    back = RNG.uniform(1, 2, size=(4, 9))
    if form is np.asarray:
        there[:, 6:] = np.inf
    else:
        there[:, 6:] = 0  # not stored
    found = precomputed_new_neighbors(form(there), form(back), 8)
    for i in range(4):
        order = np.argsort(there[i, :6])
        assert found.indices[i].tolist() == [*order, -1, -1]
        np.testing.assert_allclose(found.outgoing[i, :6], there[i, order])
        np.testing.assert_allclose(found.incoming[i, :6], back[i, order])
    assert np.isinf(found.outgoing[:, 6:]).all()
