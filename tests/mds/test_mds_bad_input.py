"""What FinslerMDS refuses, and in which words."""

import itertools

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from scipy.spatial import procrustes
from scipy.spatial.distance import cdist, pdist
from scipy.stats import spearmanr
from sklearn.datasets import load_iris

from finsler_ext import FinslerMDS
from finsler_ext.mds.estimator import finsler_mds_gd, finsler_smacof
from tests.mds_data import IGNORED, disk, drifted

pytestmark = IGNORED


GOOD = np.ones((5, 5)) - np.eye(5)


def spoiled(at, value):
    D = GOOD.copy()
    D[at] = value
    return D


@pytest.mark.parametrize("function", [finsler_smacof, finsler_mds_gd])
@pytest.mark.parametrize(
    ("D", "options", "match"),
    [
        (np.ones((4, 5)), {}, "square"),
        (np.ones((2, 2)), {}, "at least 3 points"),
        (spoiled((0, 1), -2.0), {}, r"got -2 at \[0, 1\]"),
        (np.zeros((5, 5)), {}, "All dissimilarities are 0"),
        (np.full((5, 5), np.nan), {}, "no known distance"),
        (np.full((5, 5), np.inf), {}, "no known distance"),
        (spoiled((0, 1), 1e200), {}, "1e\\+200, which float64 cannot hold"),
        (np.where(np.add.outer(range(5), range(5)) == 1, GOOD, np.nan), {}, "got 2 of 5"),
        (GOOD, {"skew_weight": 0}, "skew_weight must be"),
        (GOOD, {"skew_weight": "most"}, "skew_weight must be"),
        (GOOD, {"skew_weight": 2, "scaling": "ordinal"}, "'ratio' or 'interval'"),
        (GOOD, {"skew_weight": 2, "weights": np.triu(GOOD) + 1}, "equal in both directions"),
        (spoiled(([0, 1, 2], [3, 3, 3]), np.nan), {"missing": "x"}, "missing must be"),
        (GOOD, {"weights": np.ones(5)}, "weights must have"),
        (GOOD, {"weights": -GOOD}, "not negative"),
        (GOOD, {"omega_norm": 1.0}, "omega_norm"),
        (GOOD, {"omega_norm": "best"}, "'auto'"),
        (GOOD, {"init": "pca"}, "init must be one of"),
        (GOOD, {"init": np.zeros((5, 4))}, r"\(5, 3\)"),
        (GOOD, {"n_components": 0}, "n_components"),
        (GOOD, {"max_iter": 0}, "max_iter"),
    ],
)
def test_bad_input_is_named(function, D, options, match):
    with pytest.raises(ValueError, match=match):
        function(D, **options)


def test_unreachable_pairs_are_left_out():
    Y, D = drifted(omega=0.4)
    order = np.argsort(Y[:, 0])  # a citation graph: the later cite the earlier
    later = np.where(np.triu(np.ones_like(D), 1) > 0, D[np.ix_(order, order)], np.nan)
    for missing in ("ignore", "geodesic", "auto"):
        model = FinslerMDS(metric="precomputed", omega_norm=0.4, missing=missing).fit(later)
        assert np.corrcoef(model.embedding_[:, -1], Y[order, -1])[0, 1] > 0.99


@pytest.mark.parametrize("scaling", ["ratio", "interval", "ordinal"])
@pytest.mark.parametrize("n_components", [2, 3])
def test_groups_are_embedded_side_by_side(n_components, scaling):
    parts = [drifted(n, 0.4, seed=n, m=n_components)[1] for n in (12, 30, 20)]
    D = scipy.linalg.block_diag(*parts)
    labels = np.repeat([0, 1, 2], [12, 30, 20])
    D[labels[:, None] != labels] = np.nan
    model = FinslerMDS(n_components, metric="precomputed", omega_norm=0.4, scaling=scaling)
    with pytest.warns(UserWarning, match="fall apart into 3 groups"):
        model.set_params(eps=1e-9, max_iter=1000).fit(D)
    assert model.normalized_stress_ < 1e-3
    boxes = [model.embedding_[labels == g, : n_components - 1] for g in range(3)]
    for a, b in itertools.combinations(boxes, 2):  # apart along some column of the map
        assert ((a.max(axis=0) < b.min(axis=0)) | (b.max(axis=0) < a.min(axis=0))).any()


def test_points_without_a_known_pair_are_nan():
    Y, D = drifted(40, omega=0.4)
    for lost in ([7], [0, 39]):
        known = np.setdiff1d(np.arange(40), lost)
        holes = D.copy()
        holes[lost] = holes[:, lost] = np.nan
        model = FinslerMDS(metric="precomputed", omega_norm="auto", random_state=0)
        with pytest.warns(UserWarning, match=f"{len(lost)} points have no known"):
            model.fit(holes)
        alone = FinslerMDS(metric="precomputed", omega_norm="auto", random_state=0)
        alone.fit(D[np.ix_(known, known)])
        assert np.isnan(model.embedding_[lost]).all()
        assert model.omega_norm_ == pytest.approx(alone.omega_norm_)
        assert pdist(model.embedding_[known]) == pytest.approx(pdist(alone.embedding_), rel=1e-5)
        assert model.skew_fidelity_.sign > 0.99
        placed = model.transform(D[lost], incoming=D[:, lost].T)
        assert cdist(placed, model.embedding_[known]) == pytest.approx(
            cdist(Y[lost], Y[known]), rel=0.05
        )


@pytest.mark.parametrize(
    ("X", "options", "match"),
    [
        (np.ones((20, 3)), {}, "All rows of X are equal"),
        (np.eye(2), {}, "at least 3 points"),
        (np.eye(9), {"n_neighbors": 0}, "n_neighbors"),
        (np.eye(9), {"method": "newton"}, "method must be one of"),
        (np.eye(9), {"source_scale": "median"}, "source_scale must be one of"),
        (np.eye(9), {"local_scale": np.zeros(9)}, "local_scale must be positive"),
        (np.eye(9), {"eps": -1}, "eps"),
        (np.eye(9), {"learning_rate": 0}, "learning_rate"),
        (np.ones((8, 9)), {"metric": "precomputed"}, "square"),
        (scipy.sparse.csr_array(np.ones((9, 8))), {"metric": "precomputed"}, "square"),
    ],
)
def test_bad_features_and_parameters_are_named(X, options, match):
    with pytest.raises(ValueError, match=match):
        FinslerMDS(**options).fit(X)


def test_duplicates_are_embedded_together():
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 2)), 20, axis=0)
    model = FinslerMDS(n_neighbors=10).fit(X)
    assert np.isfinite(model.embedding_).all()
    groups = model.embedding_.reshape(30, 20, 3)
    within = groups.std(axis=1).max()
    assert within < 0.05 * model.embedding_.std()


def test_sparse_features():
    X = np.random.default_rng(0).normal(size=(150, 4))  # no ties among the distances
    dense = FinslerMDS(max_iter=5).fit(X)
    sparse = FinslerMDS(max_iter=5).fit(scipy.sparse.csr_matrix(X))
    assert sparse.dissimilarity_matrix_ == pytest.approx(dense.dissimilarity_matrix_, rel=1e-5)
    assert sparse.transform(scipy.sparse.csr_matrix(X[:4])).shape == (4, 3)


def test_an_initial_map_of_one_column_fewer():
    X, radius = disk(300)
    model = FinslerMDS(init=X).fit(X)
    assert spearmanr(model.embedding_[:, -1], radius).statistic > 0.99


def test_verbose_shows_a_bar_and_the_fidelity(capsys):
    FinslerMDS(verbose=True, max_iter=3).fit(load_iris().data)
    printed = capsys.readouterr()
    assert "smacof" in printed.err
    assert "skew fidelity" in printed.out


@pytest.mark.slow
@pytest.mark.parametrize("method", ["smacof", "gd"])
def test_the_disk_of_3000_points_converges(method):
    X, _ = disk(3000)
    model = FinslerMDS(method=method, n_jobs=2, omega_norm=0.9).fit(X)
    assert model.stress_history_[-1] <= model.stress_history_.min() * 1.001
    assert model.density_height_ > 0.5
    assert procrustes(X, model.embedding_[:, :2])[2] < 0.01
