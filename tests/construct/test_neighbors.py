import numpy as np
import pytest
import scipy.sparse
from numba import njit

from finsler_ext.construct import (
    approximate_neighbors,
    exact_neighbors,
    is_asymmetric,
    precomputed_neighbors,
    with_self_first,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 5)).astype(np.float32)


@njit
def uphill(x, y):
    """A directed metric: climbing along the first axis costs extra."""
    return np.sqrt(np.sum((x - y) ** 2)) + 0.9 * max(0.0, y[0] - x[0])


def brute(metric, X):
    return np.array([[metric(x, y) for y in X] for x in X])


@pytest.mark.parametrize("n_threads", [1, 2])
def test_exact_euclidean_against_all_distances(n_threads):
    D = np.linalg.norm(X[:, None].astype(float) - X[None], axis=2)
    found = exact_neighbors(X, 10, n_threads=n_threads)
    assert (found.indices[:, 0] == np.arange(len(X))).all()
    assert found.distances == pytest.approx(np.sort(D, axis=1)[:, :10], abs=1e-5)
    assert np.take_along_axis(D, found.indices.astype(int), 1) == pytest.approx(
        found.distances, abs=1e-5
    )


@pytest.mark.parametrize("metric", [uphill, uphill.py_func])
def test_an_asymmetric_metric_keeps_its_direction(metric):
    points = X[:60]
    assert is_asymmetric(metric, points)
    D = brute(uphill.py_func, points)
    found = exact_neighbors(points, 8, metric=metric)
    assert found.distances == pytest.approx(np.sort(D, axis=1)[:, :8], abs=1e-5)
    assert not np.allclose(found.distances, np.sort(D, axis=0)[:8].T, atol=1e-3)


def test_symmetric_metrics_are_not_called_asymmetric():
    assert not is_asymmetric(njit(lambda x, y: np.sum(np.abs(x - y))), X)


def test_duplicates_stay_at_distance_zero_and_points_come_first():
    points = np.repeat(X[:5] + 1e3, 30, axis=0)
    found = exact_neighbors(points, 10)
    assert (found.indices[:, 0] == np.arange(150)).all()
    assert (found.distances == 0).all()
    assert all(len(set(row)) == 10 for row in found.indices)


def test_self_is_put_first_wherever_it_stood():
    found = with_self_first([[1, 2, 0], [1, 0, 2], [0, 1, 3]], [[0.0, 1, 1], [0, 1, 2], [0, 0, 1]])
    assert found.indices.tolist() == [[0, 1, 2], [1, 0, 2], [2, 0, 1]]
    assert found.distances.tolist() == [[0, 0, 1], [0, 1, 2], [0, 0, 0]]


def test_sparse_features_give_the_same_neighbours():
    dense = np.where(X > 0.5, X, 0)[:200]
    a, b = exact_neighbors(dense, 7), exact_neighbors(scipy.sparse.csr_matrix(dense), 7)
    assert a.distances == pytest.approx(b.distances, abs=1e-5)


@pytest.mark.slow  # NN-descent compiles in every process, for twenty seconds
def test_approximate_search_finds_nearly_all():
    points = RNG.normal(size=(3000, 10)).astype(np.float32)
    exact = exact_neighbors(points, 15).indices
    found = approximate_neighbors(points, 15, random_state=0).indices
    recall = np.mean([len(set(a) & set(b)) / 15 for a, b in zip(exact, found, strict=True)])
    assert recall > 0.95


def test_precomputed_rows_are_sources_dense_and_sparse():
    D = brute(uphill.py_func, X[:50])
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
    D = brute(uphill.py_func, X[:20])
    with pytest.raises(ValueError, match=message):
        precomputed_neighbors(spoil(D), 5)


def test_plain_functions_on_sparse_data_are_refused():
    with pytest.raises(ValueError, match="njit"):
        exact_neighbors(scipy.sparse.csr_matrix(X), 5, metric=uphill.py_func)
