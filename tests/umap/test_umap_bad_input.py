import signal

import numpy as np
import pytest
import scipy.sparse
from numba import njit

from finsler_ext.geometry.randers import randers_distances
from tests.models import SMALL_DRIFT_WARNING, global_state, quick

RNG = np.random.default_rng(0)
pytestmark = pytest.mark.filterwarnings(SMALL_DRIFT_WARNING)


@pytest.mark.parametrize(
    ("kwds", "match"),
    [
        ({"omega_norm": -0.1}, "omega_norm"),
        ({"omega_norm": 1}, "omega_norm"),
        ({"omega_norm": float("nan")}, "omega_norm"),
        ({"omega_norm": "x"}, "omega_norm"),
        ({"affinity": "mean"}, "affinity"),
        ({"geodesic_neighbors": 3}, "geodesic_neighbors"),
        ({"local_scale": np.ones(3)}, "local_scale"),
        ({"densmap": True}, "densmap"),
        ({"output_dens": True}, "output_dens"),
        ({"output_metric": "haversine"}, "output_metric"),
        ({"n_neighbors": 1}, "n_neighbors"),
        ({"n_components": 0}, "n_components"),
        ({"n_epochs": -1}, "n_epochs"),
        ({"n_epochs": []}, "n_epochs"),
        ({"min_dist": 3.0}, "min_dist"),
        ({"metric": "no such metric"}, "metric"),
        ({"metric": "seuclidean"}, "sigma"),  # read past the end of an array of two numbers
        ({"metric": "mahalanobis"}, "vinv"),
        ({"metric": "mahalanobis", "metric_kwds": {"vinv": np.eye(3)}}, "vinv"),
        ({"metric": "wminkowski", "metric_kwds": {"w": np.ones(65)}}, "'w'"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"transform_mode": "x"}, "transform_mode"),
        ({"init": "x"}, "init"),
    ],
)
def test_bad_parameters_are_named(few_digits, kwds, match):
    with pytest.raises(ValueError, match=match):
        quick(**kwds).fit(few_digits[0])


@pytest.mark.parametrize(
    ("X", "match"),
    [
        (np.full((20, 3), np.nan), "NaN"),
        (np.full((20, 3), np.inf), "infinity"),
        (np.empty((0, 3)), "0 sample"),
        (np.empty((20, 0)), "0 feature"),
        (np.zeros(20), "2D"),
        (np.full((20, 3), "word"), "convert"),
        (np.zeros((20, 3), dtype=complex), "omplex"),
    ],
)
def test_bad_data_is_refused(X, match):
    with pytest.raises(ValueError, match=match):
        quick().fit(X)


def test_targets_without_finite_distances_are_refused(few_digits):
    with pytest.raises(ValueError, match="target_metric"):
        quick(target_metric="count").fit(few_digits[0], few_digits[1].astype(np.float32))


def test_targets_of_the_wrong_length_or_with_nan_are_refused(few_digits):
    X, y = few_digits
    with pytest.raises(ValueError, match="Length"):
        quick().fit(X, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        quick(target_metric="l2").fit(X, np.full(len(X), np.nan))


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda D: D[:, 1:], "square"),
        (lambda D: D - 9, "negative"),
        (lambda D: D * np.nan, "no known"),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_bad_precomputed_matrices_are_refused(spoil, match, form):
    D = randers_distances(RNG.normal(size=(30, 2)), 0.5)
    with pytest.raises(ValueError, match=match):
        quick(metric="precomputed").fit(form(spoil(D)))


def test_one_row_two_rows_and_few_rows():
    assert (quick().fit_transform([[1.0, 2.0]]) == 0).all()
    for n in (2, 3, 10):
        with pytest.warns(UserWarning, match="truncating"):
            embedding = quick().fit_transform(RNG.normal(size=(n, 4)))
        assert embedding.shape == (n, 3)
        assert np.isfinite(embedding).all()


@pytest.mark.parametrize("n", [40, 4200])
def test_all_rows_equal(n):
    model = quick(n_epochs=5).fit(np.ones((n, 3)))
    assert np.isfinite(model.embedding_).all()
    assert model.skew_fidelity_.reason


def test_copies_lie_together():
    X = RNG.integers(0, 3, size=(500, 2)).astype(float)
    embedding = quick().fit_transform(X)
    place = (3 * X[:, 0] + X[:, 1]).astype(int)
    centres = np.array([embedding[place == p].mean(axis=0) for p in range(9)])
    within = np.linalg.norm(embedding - centres[place], axis=1).mean()
    assert within < 0.5 * np.linalg.norm(embedding - embedding.mean(axis=0), axis=1).mean()


@pytest.mark.filterwarnings("ignore:A few of your vertices")
def test_points_without_neighbours_are_nan_and_do_not_disturb():
    X = np.concatenate([RNG.normal(size=(100, 2)), [[1e4, 0], [0, 1e4]]])
    model = quick(disconnection_distance=100.0).fit(X)
    assert np.isnan(model.embedding_[100:]).all()
    assert np.isfinite(model.embedding_[:100]).all()
    assert model.embedding_[:100].mean(axis=0) == pytest.approx(0, abs=1e-4)
    # a point that only others point to is connected
    D = np.where(np.eye(30) > 0, 0, np.inf)
    D[1:, 0] = 1.0
    sink = quick(metric="precomputed", n_neighbors=3).fit(D)
    assert np.isfinite(sink.embedding_).all()


def test_nothing_connected_is_refused():
    with pytest.raises(ValueError, match="no known distance between any two points"):
        quick(metric="precomputed").fit(np.where(np.eye(30) > 0, 0, np.inf))


def test_global_state_is_left_alone(few_digits):
    X = RNG.normal(size=(4200, 5))
    before = global_state()
    quick(n_jobs=1, n_epochs=3).fit(X)
    assert global_state() == before
    with pytest.raises(ValueError, match="length"):
        quick(metric=njit(_broken), n_jobs=1).fit(X)
    assert global_state() == before


def _broken(x, y):
    if x.shape[0] > 0:
        raise ValueError("bad length")
    return 0.0


@pytest.fixture
def interruptible():
    """Ctrl-C as in a terminal, also where a background job ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("jobs", [1, 2])
def test_interrupting_a_fit_stops_it_and_restores_everything(jobs):
    X = RNG.normal(size=(4200, 5))
    before = global_state()

    def interrupt(epoch, positions):
        if epoch == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        quick(n_jobs=jobs, n_epochs=1000).fit(X, callback=interrupt)
    assert global_state() == before
