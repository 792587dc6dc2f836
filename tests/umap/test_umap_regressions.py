"""Mistakes that were found once, each with the case that showed it."""

import threading
import time

import numpy as np
import pytest
import scipy.sparse
import threadpoolctl
from numba import njit
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris
from sklearn.manifold import trustworthiness
from sklearn.neighbors import kneighbors_graph
from sklearn.utils import check_random_state

import finsler_ext
from finsler_ext import FinslerUMAP
from finsler_ext.neighbors.exact import exact_neighbors
from finsler_ext.neighbors.search import training_rows
from tests.models import SMALL_DRIFT_WARNING, quick

pytestmark = pytest.mark.filterwarnings(SMALL_DRIFT_WARNING)
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(150, 5)).astype(np.float32)


@njit
def weighted(x, y, a=1.0, b=1.0):
    total = 0.0
    for i in range(x.shape[0]):
        total += a * abs(x[i] - y[i]) ** b
    return total


def test_keyword_arguments_of_compiled_metrics_go_by_name():
    found = quick(metric=weighted, metric_kwds={"b": 2.0}).fit(X)
    expected = np.sort(cdist(X, X, "sqeuclidean"), axis=1)[:, :15]
    np.testing.assert_allclose(found._knn_dists, expected, rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="metric_kwds"):
        exact_neighbors(X, 5, metric=weighted, metric_kwds={"c": 2.0})


@pytest.mark.parametrize("kind", ["neighbour graph", "rounding"])
def test_distances_without_a_direction_show_density(digits, kind):
    data = digits[0][:400]
    if kind == "neighbour graph":
        D = kneighbors_graph(data, 20, mode="distance")
    else:
        D = cdist(data, data) * (1 + 1e-7 * RNG.normal(size=(400, 400)))
        np.fill_diagonal(D, 0)
    model = FinslerUMAP(metric="precomputed", random_state=0).fit(D)
    assert model.skew_fidelity_.sign > 0.7
    assert np.isfinite(model.transform(D[:3] * 1.01)).all()


def test_sparse_rows_with_repeated_entries():
    small = X[:100, :4]
    column = np.tile(np.repeat(np.arange(4), 2), 100)
    halves = np.repeat(small.ravel() / 2, 2)
    twice = scipy.sparse.csr_matrix((halves, column, np.arange(0, 801, 8)), shape=(100, 4))
    assert not twice.has_canonical_format
    once = scipy.sparse.csr_matrix(small)
    one, two = (quick(metric="manhattan").fit(S) for S in (once, twice))
    assert np.array_equal(one.embedding_, two.embedding_)
    assert np.array_equal(one.transform(twice), one.embedding_)
    assert not twice.has_canonical_format  # the caller's matrix is left alone


def test_fits_at_the_same_time_leave_the_number_of_blas_threads():
    def limits():
        return [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]

    before = limits()
    threads = [
        threading.Thread(target=quick(n_jobs=1).fit, args=(RNG.uniform(size=(n, 9)),))
        for n in (300, 900, 500)
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.02)
    for thread in threads:
        thread.join()
    assert limits() == before


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = quick(n_epochs=[5, 9]).fit(X)
    places = model.embedding_.copy()
    with pytest.raises(ValueError, match="Length"):
        model.fit(X + 5, np.zeros(3))
    assert np.array_equal(model.transform(X), places)
    model.set_params(transform_mode="graph", n_epochs=5).fit(X[:100])
    assert not hasattr(model, "embedding_")
    assert not hasattr(model, "embedding_list_")
    assert not hasattr(model, "skew_fidelity_")


@pytest.mark.parametrize("factor", [1e-30, 1e-20, 1e20, 1e30])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_very_large_and_very_small_values(factor, form):
    plain = exact_neighbors(form(X), 8)
    scaled = exact_neighbors(form(X * np.float32(factor)), 8)
    assert np.mean(plain.indices == scaled.indices) > 0.999
    assert np.all(np.diff(scaled.distances, axis=1) >= 0)
    np.testing.assert_allclose(scaled.distances, plain.distances * factor, rtol=1e-4)


def test_a_sparse_new_row_without_distances_has_no_place():
    D = scipy.sparse.csr_matrix(np.abs(X[:, :1] - X[:, 0]))
    model = quick(metric="precomputed").fit(D)
    nothing = scipy.sparse.csr_matrix((1, 150), dtype=np.float32)
    with pytest.warns(UserWarning, match="no neighbours with a place"):
        assert np.isnan(model.transform(nothing)).all()


@pytest.mark.parametrize("metric", ["cosine", "manhattan", "correlation"])
def test_geodesics_join_sparse_components(metric):
    block = RNG.uniform(size=(60, 5))
    first = scipy.sparse.csr_matrix(block)
    S = scipy.sparse.csr_matrix(scipy.sparse.block_diag([first, block + 1]), dtype=np.float32)
    model = quick(metric=metric, n_neighbors=5, geodesic_neighbors=20).fit(S)
    assert np.isfinite(model.embedding_).all()
    with pytest.raises(ValueError, match="disconnection_distance"):
        quick(geodesic_neighbors=20, disconnection_distance=1.0).fit(X)


@pytest.mark.parametrize("init", ["pca", "tswspectral"])
def test_models_with_any_start_can_be_combined(init):
    model = quick(init=init).fit(X)
    both = model + model
    assert ((both.graph_ != 0) != (model.graph_ != 0)).nnz == 0
    assert trustworthiness(X, both.embedding_) > 0.8


def test_combinations_of_symmetric_models_are_symmetric():
    symmetric = {"affinity": "fuzzy_union", "omega_norm": 0}
    one, two = quick(**symmetric).fit(X), quick(n_neighbors=5, **symmetric).fit(X)
    for combined in (one + two, one * two, one - two):
        assert abs(combined.graph_ - combined.graph_.T).max() < 1e-6


def test_subclasses_with_parameters_of_their_own():
    class Named(FinslerUMAP):
        def __init__(self, n_neighbors=15, extra=1):
            super().__init__(n_neighbors=n_neighbors, n_epochs=5, random_state=0)
            self.extra = extra

    model = Named(extra=3).fit(X)
    assert model.extra == 3
    assert model.n_jobs == -1
    assert model.embedding_.shape == (150, 3)


def test_targets_in_a_column():
    y = RNG.integers(0, 3, size=150)
    column, row = (quick().fit(X, labels).graph_ for labels in (y[:, None], y))
    assert (column != row).nnz == 0


def test_callbacks_get_copies_with_all_rows():
    frames = []
    twice = np.vstack([X, X])

    def look(epoch, positions):
        frames.append(positions)
        positions[:] = 0

    model = quick(unique=True).fit(twice, callback=look)
    assert all(frame.shape == (300, 3) for frame in frames)
    assert np.array_equal(model.embedding_, quick(unique=True).fit_transform(twice))
    assert len({id(frame) for frame in frames}) == 30


def test_one_distinct_point_is_a_model():
    model = quick(unique=True, omega_norm="auto").fit(np.ones((20, 3)))
    assert model.omega_norm_ == 0
    assert model.inverse_transform(np.zeros((1, 3))).shape == (1, 3)
    with pytest.raises(ValueError, match="more than one point"):
        quick().fit(X[:1]).update(X[1:])
    fitted = quick().fit(X)
    with pytest.raises(ValueError, match="no data of its own"):
        (fitted + fitted).update(X)


def test_a_diagonal_of_rounding_size_is_zero():
    D = cdist(X, X, "cosine")
    assert D.diagonal().any()
    assert np.isfinite(quick(metric="precomputed").fit(D).embedding_).all()


def test_scales_of_new_rows_are_checked_even_where_none_is_needed():
    scale = RNG.uniform(1, 2, size=150)
    model = quick(local_scale=scale).fit(X)
    model.local_scale_[:] = 7
    with pytest.raises(ValueError, match="shape"):
        model.transform(X[:3], local_scale=[1.0, -5.0])
    with pytest.raises(ValueError, match="positive"):
        model.transform(X[:2], local_scale=[1.0, -5.0])
    assert np.array_equal(model._given_scale, scale)


def test_equal_rows_return_the_place_of_the_first():
    data = load_iris().data
    model = quick().fit(data)
    first = training_rows(data.astype(np.float32), data.astype(np.float32))
    assert (first != np.arange(150)).any()
    assert np.array_equal(model.transform(data), model.embedding_[first])


def test_round_numbers_do_not_collide():
    bits = check_random_state(0).randint(0, 2, size=(20_000, 24)).astype(np.float32)
    rows = training_rows(bits, bits)
    _, first = np.unique(bits, axis=0, return_index=True)
    assert np.array_equal(np.unique(rows), np.sort(first))


@pytest.mark.parametrize(("spread", "share"), [(0.01, 0.5), (0.1, 0.1), (100.0, 1.0)])
def test_a_spread_far_from_one_changes_the_unit_only(spread, share, tmp_path):
    """umap-learn's own fit of the curve gives a negative b for these."""
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = quick(spread=spread, min_dist=share * spread).fit(X)
    distance = np.linspace(0.1, 3, 30)
    unit = quick(spread=1.0, min_dist=share).fit(X)
    curves = [
        1 / (1 + fitted._a * (length * distance) ** (2 * fitted._b))
        for fitted, length in ((model, spread), (unit, 1.0))
    ]
    assert np.allclose(*curves, atol=1e-3)
    assert np.isfinite(float(model.loss_))
    model.save(tmp_path / "model")
    assert np.array_equal(finsler_ext.load(tmp_path / "model").embedding_, model.embedding_)
