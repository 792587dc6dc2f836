"""FinslerMDS: conventions, what the height shows, and the drift."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.spatial import procrustes
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.manifold import smacof
from sklearn.utils.estimator_checks import parametrize_with_checks

from finsler_ext import FinslerMDS
from finsler_ext.mds.estimator import finsler_smacof
from tests.mds_data import IGNORED, disk, drifted

pytestmark = IGNORED


# ------------------------------------------------------------------ scikit-learn's conventions


@parametrize_with_checks(
    [
        FinslerMDS(),
        FinslerMDS(metric="precomputed"),
        FinslerMDS(metric="precomputed", method="gd"),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


def test_fit_changes_no_parameter_and_no_global_state():
    import numba
    from threadpoolctl import threadpool_info

    X = load_iris().data
    model = FinslerMDS(omega_norm="auto", max_iter=5, n_jobs=2)
    before = model.get_params(), np.random.get_state()[1].tolist(), numba.get_num_threads()
    blas = [pool["num_threads"] for pool in threadpool_info()]
    filters = list(warnings.filters)
    model.fit(X)
    with pytest.raises(ValueError, match="nan"):
        clone(model).set_params(init=np.full((150, 3), np.nan)).fit(X)
    after = model.get_params(), np.random.get_state()[1].tolist(), numba.get_num_threads()
    assert before == after
    assert blas == [pool["num_threads"] for pool in threadpool_info()]
    assert filters == list(warnings.filters)


def test_neither_umap_nor_opentsne_is_imported():
    code = (
        "import sys; from finsler_ext import FinslerMDS;"
        "import finsler_ext.spectral; import numpy as np;"
        "X = np.random.default_rng(0).normal(size=(40, 3));"
        "FinslerMDS(n_neighbors=8).fit(X).transform(X[:2]);"
        "print([m for m in ('umap', 'openTSNE', 'pynndescent', 'networkx') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_threads_do_not_change_a_bit():
    X = np.random.default_rng(0).normal(size=(2100, 3)).astype(np.float32)
    one, two = (FinslerMDS(n_jobs=j, max_iter=4, random_state=0).fit(X) for j in (1, 2))
    assert np.array_equal(one.embedding_, two.embedding_)
    assert np.array_equal(one.transform(X[:5] + 0.1), two.transform(X[:5] + 0.1))


# ------------------------------------------------------------------ what the height shows


@pytest.mark.parametrize("omega", [0.1, 0.5])
def test_the_height_of_the_disk_is_its_radius_and_the_map_the_disk(omega):
    X, radius = disk(300)
    model = FinslerMDS(omega_norm=omega).fit(X)
    assert spearmanr(model.embedding_[:, -1], radius).statistic > 0.99
    assert procrustes(X, model.embedding_[:, :2])[2] < 0.08
    assert model.skew_fidelity_.sign > 0.95
    assert model.density_height_ > 0.99
    assert model.gradient_share_ > 0.9


@pytest.mark.parametrize("method", ["smacof", "gd"])
def test_larger_disks_converge(method):
    X, _ = disk(1000)
    model = FinslerMDS(method=method, n_jobs=2).fit(X)
    assert model.stress_history_[-1] < model.stress_history_[0]
    assert len(model.stress_history_) == model.n_iter_
    if method == "smacof":
        assert model.n_iter_ < 300
        assert np.all(np.diff(model.stress_history_) <= 0)
    assert procrustes(X, model.embedding_[:, :2])[2] < 0.03
    # 0.79 to 0.87 for the radius is what the local scale allows
    assert model.density_height_ > 0.8


@pytest.mark.parametrize("init", ["finsler", "isomap", "random"])
def test_directed_distances_give_back_their_points(init):
    Y, D = drifted(omega=0.4)
    result = finsler_smacof(D, omega_norm=0.4, init=init, eps=1e-9, max_iter=2000, random_state=0)
    assert result.normalized_stress < 1e-6
    assert result.embedding[:, -1] == pytest.approx(Y[:, -1], abs=1e-2)
    assert procrustes(Y[:, :2], result.embedding[:, :2])[2] < 1e-4
    mirrored = finsler_smacof(
        D.T, omega_norm=0.4, init=init, eps=1e-9, max_iter=2000, random_state=0
    )
    assert mirrored.embedding[:, -1] == pytest.approx(-Y[:, -1], abs=1e-2)


@pytest.mark.parametrize("init", ["finsler", "isomap"])  # on a line, points cannot pass each other
@pytest.mark.parametrize("n_components", [1, 2, 6])
def test_any_number_of_columns(n_components, init):
    Y, D = drifted(n=5, m=1)
    result = finsler_smacof(D, n_components=n_components, omega_norm=0.3, init=init, random_state=0)
    assert result.embedding.shape == (5, n_components)
    assert result.normalized_stress < 1e-3
    assert np.corrcoef(result.embedding[:, -1], Y[:, -1])[0, 1] > 0.99


def test_the_order_of_the_rows_does_not_matter():
    _, D = drifted(noise=0.2)
    rows = np.random.default_rng(0).permutation(len(D))
    straight = finsler_smacof(D, omega_norm=0.3, eps=1e-12, max_iter=3000)
    shuffled = finsler_smacof(D[np.ix_(rows, rows)], omega_norm=0.3, eps=1e-12, max_iter=3000)
    assert shuffled.embedding[:, -1] == pytest.approx(straight.embedding[rows, -1], abs=1e-3)


def test_asymmetry_can_come_from_a_feature():
    X = np.random.default_rng(0).uniform(size=(300, 2))
    feature = np.exp(2 * X[:, 0])
    model = FinslerMDS(local_scale=feature).fit(X)
    assert spearmanr(model.embedding_[:, -1], X[:, 0]).statistic > 0.9
    with pytest.raises(ValueError, match="local_scale: the model was fitted with a scale"):
        model.transform(X[:3])
    placed = model.transform(X[:3], local_scale=feature[:3])
    assert placed == pytest.approx(model.embedding_[:3], abs=0.02)


def test_a_cyclic_asymmetry_is_announced():
    ring = 5 + np.array([[0, 1, -1], [-1, 0, 1], [1, -1, 0.0]])
    D = np.kron(ring, np.ones((5, 5))) + 0.1
    np.fill_diagonal(D, 0)
    with pytest.warns(UserWarning, match=r"cyclic.*0%"):
        model = FinslerMDS(metric="precomputed").fit(D)
    assert model.gradient_share_ == pytest.approx(0, abs=1e-12)


def test_a_small_drift_is_announced_as_meaningless():
    X = np.random.default_rng(0).normal(size=(400, 8))
    with pytest.warns(UserWarning, match="does not show the asymmetry"):
        FinslerMDS(
            omega_norm=0.01, local_scale=np.exp(np.random.default_rng(1).normal(size=400))
        ).fit(X)


# ------------------------------------------------------------------ drift


def test_auto_finds_the_drift_of_the_data():
    for planted in (0.12, 0.5):
        _, D = drifted(omega=planted, noise=0.05)
        model = FinslerMDS(metric="precomputed", omega_norm="auto").fit(D)
        assert model.omega_norm_ == pytest.approx(planted, abs=0.03)
        stresses = [trial.stress for trial in model.drift_choice_.trials]
        assert model.stress_history_[-1] == pytest.approx(min(stresses), rel=1e-6)


def test_auto_finds_no_drift_in_symmetric_data():
    _, D = drifted(omega=0.0)
    noisy = D * (1 + 0.3 * np.random.default_rng(0).random(D.shape))
    model = FinslerMDS(metric="precomputed", omega_norm="auto").fit((noisy + noisy.T) / 2)
    assert model.omega_norm_ == 0.0
    assert np.isnan(model.skew_fidelity_.sign)
    assert np.isnan(model.gradient_share_)


def test_an_asymmetry_of_rounding_is_no_asymmetry():
    _, D = drifted(omega=0.0)
    D = D * (1 + 1e-9 * np.random.default_rng(0).random(D.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FinslerMDS(metric="precomputed").fit(D)
    assert np.isnan(model.gradient_share_)
    assert "no asymmetry" in str(model.skew_fidelity_)


def test_auto_on_many_points_searches_a_sample(monkeypatch):
    monkeypatch.setattr("finsler_ext.mds.drift.SEARCH_POINTS", 60)
    _, D = drifted(n=150, omega=0.4, noise=0.05)
    result = finsler_smacof(D, omega_norm="auto", random_state=0)
    assert result.omega_norm == pytest.approx(0.4, abs=0.05)
    assert len(result.embedding) == 150


def test_no_drift_is_symmetric_smacof():
    _, D = drifted(noise=0.5)
    start = np.random.default_rng(0).normal(size=(80, 3))
    ours = finsler_smacof(D, omega_norm=0.0, init=start, max_iter=40, eps=0, accelerate=False)
    theirs, _ = smacof(
        (D + D.T) / 2, n_components=3, init=start, n_init=1, max_iter=40, eps=0,
        normalized_stress=False,
    )  # fmt: skip
    assert ours.embedding == pytest.approx(theirs - theirs.mean(axis=0), abs=1e-7)
