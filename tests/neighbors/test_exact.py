"""All pairs, against scipy and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse
from numba import njit
from scipy.spatial.distance import cdist

from finsler_ext._messages import listening
from finsler_ext.neighbors import distances as blocks
from finsler_ext.neighbors.distances import DenseRows, nearest_rows, reduction_of
from finsler_ext.neighbors.exact import ExactIndex, exact_neighbors, is_asymmetric
from finsler_ext.neighbors.search import with_self_first

RNG = np.random.default_rng(0)
METRICS = ["euclidean", "sqeuclidean", "cosine", "correlation", "cityblock", "chebyshev"]


def all_pairs(X, metric="euclidean"):
    """Indices and distances of all other rows, nearest first, ties by row number."""
    D = cdist(X.astype(np.float64), X.astype(np.float64), metric)
    np.fill_diagonal(D, -1.0)
    order = np.argsort(D, axis=1, kind="stable")[:, 1:]
    return order, np.take_along_axis(D, order, axis=1)


X = RNG.normal(size=(700, 5)).astype(np.float32)


@njit
def uphill(x, y):
    """A directed metric: climbing along the first axis costs extra."""
    return np.sqrt(np.sum((x - y) ** 2)) + 0.9 * max(0.0, y[0] - x[0])


def brute(metric, X):
    return np.array([[metric(x, y) for y in X] for x in X])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", METRICS)
def test_exact_against_scipy(metric, dtype):
    X = RNG.normal(size=(1300, 9)).astype(dtype)
    _, distances = all_pairs(X, metric)
    found = ExactIndex(metric, dtype=np.float64).build(X, 12)
    rounding = 1e-6 if dtype == np.float32 else 1e-12
    assert found.distances[:, 1:] == pytest.approx(distances[:, :11], rel=rounding, abs=rounding)
    between = cdist(X.astype(float), X.astype(float), metric)
    chosen = np.take_along_axis(between, found.indices.astype(int), axis=1)
    assert chosen == pytest.approx(found.distances, rel=rounding, abs=rounding)


@pytest.mark.parametrize("k", [1, 7, 40])
def test_ties_are_in_the_order_of_the_rows(k):
    X = RNG.integers(0, 4, size=(1500, 3)).astype(np.float32)  # copies and equal distances
    order, distances = all_pairs(X)
    rows = DenseRows(X)
    indices, found = nearest_rows(rows, rows, k, same=True)
    assert (indices == order[:, :k]).all()
    assert found == pytest.approx(distances[:, :k], abs=1e-12)


def test_copies_have_distance_zero_and_the_first_ones_are_taken():
    X = np.repeat(RNG.normal(size=(3, 20)) + 1e3, 700, axis=0).astype(np.float32)
    found = ExactIndex().build(X, 15)
    assert (found.distances == 0).all()
    assert (found.indices[0] == np.arange(15)).all()
    assert (found.indices[100, 1:] == np.arange(14)).all()
    assert (found.indices[1400, 1:] == np.arange(1401, 1415)).all()


@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-4])
def test_tight_groups_far_apart_are_resolved(spread):
    # products in single precision cannot tell the rows of a group apart
    groups = RNG.normal(size=(4, 6)) * 1e3
    X = groups[RNG.integers(4, size=1500)] + RNG.normal(size=(1500, 6)) * spread
    order, _ = all_pairs(X)
    rows = DenseRows(X)
    assert (nearest_rows(rows, rows, 10, same=True)[0] == order[:, :10]).all()


def test_double_precision_where_single_is_too_coarse(monkeypatch):
    groups = RNG.normal(size=(3, 6)) * 1e4
    X = groups[RNG.integers(3, size=3000)] + RNG.normal(size=(3000, 6)) * 1e-2
    used = []
    search = blocks._search
    monkeypatch.setattr(blocks, "_search", lambda *a: used.append(a[3]) or search(*a))
    rows = DenseRows(X)
    indices, _ = nearest_rows(rows, rows, 5, same=True)
    assert used[-1] == np.float64
    assert (indices == all_pairs(X)[0][:, :5]).all()


@pytest.mark.parametrize("unit", [1e-60, 1e-12, 1e12, 1e60])
def test_units_do_not_matter(unit):
    X = RNG.normal(size=(1200, 5))
    rows, scaled = DenseRows(X), DenseRows(X * unit)
    expected, _ = nearest_rows(rows, rows, 8, same=True)
    assert (nearest_rows(scaled, scaled, 8, same=True)[0] == expected).all()


def test_an_offset_does_not_matter():
    X = np.round(RNG.normal(size=(1200, 5)), 3)
    rows, moved = DenseRows(X), DenseRows(X + 1e6)
    expected, _ = nearest_rows(rows, rows, 8, same=True)
    found, _ = nearest_rows(moved, moved, 8, same=True)
    assert (found == expected).mean() > 0.999  # X + 1e6 is rounded itself


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_threads_and_companions_change_nothing(metric):
    X = RNG.normal(size=(2600, 30)).astype(np.float32)
    one, two = (ExactIndex(metric, n_threads=n).build(X, 15) for n in (1, 2))
    assert (one.indices == two.indices).all()
    assert (one.distances == two.distances).all()
    new = RNG.normal(size=(300, 30)).astype(np.float32)
    index = ExactIndex(metric, n_threads=2).over(X)
    together = index.query(new, 15)
    alone = [index.query(new[i : i + 1], 15) for i in range(0, 300, 37)]
    assert (together.indices[::37] == np.vstack([a.indices for a in alone])).all()
    assert (together.outgoing[::37] == np.vstack([a.outgoing for a in alone])).all()


@pytest.mark.parametrize("metric", METRICS)
def test_new_rows_against_scipy(metric):
    X, new = (RNG.normal(size=(n, 6)).astype(np.float32) for n in (1100, 40))
    found = ExactIndex(metric).over(X).query(new, 9)
    D = np.sort(cdist(new.astype(float), X.astype(float), metric), axis=1)
    assert found.outgoing == pytest.approx(D[:, :9], rel=1e-5, abs=1e-6)
    assert (found.incoming == found.outgoing).all()


def test_an_asymmetric_metric_is_measured_both_ways():
    def uphill(x, y):
        return np.abs(x - y).sum() + max(0.0, y[0] - x[0])

    X, new = RNG.normal(size=(50, 3)), RNG.normal(size=(4, 3))
    found = ExactIndex(uphill, symmetric=False).over(X).query(new, 6)
    for i in range(4):
        assert found.outgoing[i] == pytest.approx([uphill(new[i], X[j]) for j in found.indices[i]])
        assert found.incoming[i] == pytest.approx([uphill(X[j], new[i]) for j in found.indices[i]])


@pytest.mark.parametrize("metric", ["cosine", "correlation", "hellinger"])
def test_rows_without_a_direction_are_as_in_umap(metric):
    from umap.distances import named_distances

    X = np.abs(RNG.normal(size=(40, 4))).astype(np.float32)
    X[[3, 8]] = 0.0
    expected = np.array([[named_distances[metric](x, y) for y in X] for x in X])
    np.fill_diagonal(expected, -1.0)
    expected.sort(axis=1)
    found = ExactIndex(metric).build(X, 40)
    assert found.distances[:, 1:] == pytest.approx(expected[:, 1:], abs=2e-4)


def test_what_cannot_be_reduced_is_left_to_the_metric():
    X = RNG.normal(size=(20, 3)).astype(np.float32)
    assert reduction_of("euclidean", X) is not None
    assert reduction_of("manhattan", X) is None
    assert reduction_of("euclidean", X, {"V": 1}) is None
    assert reduction_of("hellinger", X) is None  # negative entries
    assert reduction_of("cosine", scipy.sparse.csr_matrix(X)) is None
    X[0, 0] = np.nan
    assert reduction_of("euclidean", X) is None


def test_shares_of_an_exact_search_rise_to_one():
    """The trial of its precision is not a share of the search."""
    heard = []
    X = np.random.default_rng(0).normal(size=(1500, 5))
    with listening(lambda name, share: heard.append((name, share))):
        ExactIndex("euclidean", n_threads=1).build(X, 5)
    assert heard[0] == ("finding neighbours among all pairs", 0.0)
    shares = [share for name, share in heard[1:] if name is None]
    assert len(shares) == 6
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


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


def test_plain_functions_on_sparse_data_are_refused():
    with pytest.raises(ValueError, match="njit"):
        exact_neighbors(scipy.sparse.csr_matrix(X), 5, metric=uphill.py_func)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("metric", ["jaccard", "dice", "yule"])
def test_bits_need_no_conversion(metric):
    bits = np.random.default_rng(0).random((40, 12)) < 0.6
    for dtype in (np.float32, np.float64):
        found = exact_neighbors(bits.astype(dtype), 5, metric=metric)
        apart = cdist(bits, bits, metric)
        assert np.allclose(found.distances, np.sort(apart, axis=1)[:, :5], atol=1e-6)
