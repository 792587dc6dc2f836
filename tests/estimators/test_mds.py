import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial import procrustes
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.manifold import smacof
from sklearn.utils.estimator_checks import parametrize_with_checks

from finsler_ext import FinslerMDS
from finsler_ext.estimators._mds.new_points import constructed_distances
from finsler_ext.estimators.mds import finsler_mds_gd, finsler_smacof
from finsler_ext.layout.stress.placement import place_points
from finsler_ext.spaces.randers import randers_distances

# Tiny data need not have a height worth reading; tests below want the warnings.
pytestmark = [
    pytest.mark.filterwarnings("ignore:With omega_norm:UserWarning"),
    pytest.mark.filterwarnings("ignore:Most of the asymmetry:UserWarning"),
    pytest.mark.filterwarnings("ignore:n_neighbors=:UserWarning"),
]


def disk(n, seed=0):
    angle = 2 * np.pi * np.arange(20) / 20
    radius = np.arange(1, n // 20 + 1) / (n / 20)
    r, a = (grid.ravel() for grid in np.meshgrid(radius, angle, indexing="ij"))
    rows = np.random.default_rng(seed).permutation(len(r))
    return np.column_stack([r * np.cos(a), r * np.sin(a)])[rows], r[rows]


def windy(n=80, omega=0.3, noise=0.0, seed=0, m=3):
    """Points and their directed distances in a Randers space."""
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(n, m)) * np.append(np.full(m - 1, 2.0), 1.0)
    return Y - Y.mean(axis=0), randers_distances(Y, omega) * (1 + noise * rng.random((n, n)))


def one_way_missing(D):
    """A third of the pairs unknown, one direction at a time."""
    D = D.copy()
    D[np.random.default_rng(1).random(D.shape) < 0.3] = np.nan
    np.fill_diagonal(D, 0)
    return D


def pairs_missing(D):
    """A third of the pairs unknown in both directions."""
    gone = np.triu(np.random.default_rng(2).random(D.shape) < 0.3, 1)
    D = D.copy()
    D[gone | gone.T] = np.nan
    return D


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
        "import finsler_ext.estimators.spectral; import numpy as np;"
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
    Y, D = windy(omega=0.4)
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
    Y, D = windy(n=5, m=1)
    result = finsler_smacof(D, n_components=n_components, omega_norm=0.3, init=init, random_state=0)
    assert result.embedding.shape == (5, n_components)
    assert result.normalized_stress < 1e-3
    assert np.corrcoef(result.embedding[:, -1], Y[:, -1])[0, 1] > 0.99


def test_the_order_of_the_rows_does_not_matter():
    _, D = windy(noise=0.2)
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
    with pytest.warns(UserWarning, match="next to nothing"):
        FinslerMDS(
            omega_norm=0.01, local_scale=np.exp(np.random.default_rng(1).normal(size=400))
        ).fit(X)


# ------------------------------------------------------------------ drift


def test_auto_finds_the_drift_of_the_data():
    for planted in (0.12, 0.5):
        _, D = windy(omega=planted, noise=0.05)
        model = FinslerMDS(metric="precomputed", omega_norm="auto").fit(D)
        assert model.omega_norm_ == pytest.approx(planted, abs=0.03)
        stresses = [trial.stress for trial in model.drift_choice_.trials]
        assert model.stress_ == pytest.approx(min(stresses), rel=1e-6)


def test_auto_finds_no_drift_in_symmetric_data():
    _, D = windy(omega=0.0)
    noisy = D * (1 + 0.3 * np.random.default_rng(0).random(D.shape))
    model = FinslerMDS(metric="precomputed", omega_norm="auto").fit((noisy + noisy.T) / 2)
    assert model.omega_norm_ == 0.0
    assert np.isnan(model.skew_fidelity_.sign)
    assert np.isnan(model.gradient_share_)


def test_an_asymmetry_of_rounding_is_no_asymmetry():
    _, D = windy(omega=0.0)
    D = D * (1 + 1e-9 * np.random.default_rng(0).random(D.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FinslerMDS(metric="precomputed").fit(D)
    assert np.isnan(model.gradient_share_)
    assert "no asymmetry" in str(model.skew_fidelity_)


def test_auto_on_many_points_searches_a_sample(monkeypatch):
    monkeypatch.setattr("finsler_ext.estimators._mds.drift.SEARCH_POINTS", 60)
    _, D = windy(n=150, omega=0.4, noise=0.05)
    result = finsler_smacof(D, omega_norm="auto", random_state=0)
    assert result.omega_norm == pytest.approx(0.4, abs=0.05)
    assert len(result.embedding) == 150


def test_no_drift_is_symmetric_smacof():
    _, D = windy(noise=0.5)
    start = np.random.default_rng(0).normal(size=(80, 3))
    ours = finsler_smacof(D, omega_norm=0.0, init=start, max_iter=40, eps=0, accelerate=False)
    theirs, _ = smacof(
        (D + D.T) / 2, n_components=3, init=start, n_init=1, max_iter=40, eps=0,
        normalized_stress=False,
    )  # fmt: skip
    assert ours.embedding == pytest.approx(theirs - theirs.mean(axis=0), abs=1e-7)


# ------------------------------------------------------------------ directed data of all kinds


def test_dense_sparse_and_digraph_are_the_same_data():
    nx = pytest.importorskip("networkx")
    _, D = windy(n=30)
    missing = pairs_missing(D)
    known = np.isfinite(missing) & ~np.eye(30, dtype=bool)
    i, j = np.nonzero(known)
    sparse = scipy.sparse.coo_array((missing[known], (i, j)), shape=D.shape)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(30))
    graph.add_weighted_edges_from(zip(i.tolist(), j.tolist(), missing[known].tolist(), strict=True))
    fits = [FinslerMDS(metric="precomputed").fit(data) for data in (missing, sparse, graph)]
    for model in fits[1:]:
        assert np.array_equal(model.embedding_, fits[0].embedding_)
        np.testing.assert_array_equal(model.dissimilarity_matrix_, fits[0].dissimilarity_matrix_)


def test_missing_pairs_have_no_weight():
    Y, D = windy(omega=0.4)
    missing = pairs_missing(D)
    weights = np.isfinite(missing).astype(float)
    exact = finsler_smacof(missing, omega_norm=0.4, eps=1e-10, max_iter=3000)
    assert exact.normalized_stress < 1e-6
    assert exact.embedding[:, -1] == pytest.approx(Y[:, -1], abs=0.02)
    nonsense = np.where(weights > 0, D, 1e3)
    weighted = finsler_smacof(nonsense, weights=weights, omega_norm=0.4, max_iter=20)
    left_out = finsler_smacof(missing, omega_norm=0.4, max_iter=20)
    assert weighted.stress == pytest.approx(left_out.stress, rel=1e-6)


@pytest.mark.parametrize("omega", [0.1, 0.4, 0.8])
def test_pairs_known_one_way_give_back_the_points(omega):
    Y, D = windy(omega=omega)
    tournament = np.where(np.triu(np.ones_like(D)) > 0, D, np.nan)
    for missing in (one_way_missing(D), tournament, np.where(np.isnan(tournament), np.inf, D)):
        model = FinslerMDS(metric="precomputed", omega_norm=omega, missing="ignore").fit(missing)
        assert model.normalized_stress_ < 1e-8
        assert np.all(np.diff(model.stress_history_) <= 0)
        assert model.embedding_[:, -1] == pytest.approx(Y[:, -1], abs=1e-3)
    by_descent = finsler_mds_gd(tournament, omega_norm=omega, init="finsler", max_iter=400)
    assert by_descent.normalized_stress < 1e-4


def test_asymmetric_weights():
    _, D = windy(noise=0.3)
    W = np.random.default_rng(0).random(D.shape)
    weighted = np.where(np.eye(len(D)) > 0, 0, W)
    for solver in (finsler_smacof, finsler_mds_gd):
        result = solver(D, weights=W, omega_norm=0.3)
        square = W * (randers_distances(result.embedding, 0.3) - D) ** 2
        assert result.stress == pytest.approx(square.sum() - np.trace(square), rel=1e-9)
        share = result.stress / (weighted * D**2).sum()
        assert result.normalized_stress == pytest.approx(share, rel=1e-9)
    plain = finsler_smacof(D, weights=W, omega_norm=0.3, accelerate=False, max_iter=50, eps=0)
    assert np.all(np.diff(plain.stress_history) <= 0)


def test_the_estimator_weights_pairs():
    _, D = windy(noise=0.3)
    W = np.random.default_rng(0).random(D.shape)
    W = W + W.T
    model = FinslerMDS(metric="precomputed", omega_norm=0.3).fit(D, weights=W)
    square = W * (randers_distances(model.embedding_, 0.3) - D) ** 2
    assert model.stress_ == pytest.approx(square.sum() - np.trace(square), rel=1e-9)
    # an asymmetry of rounding size is no asymmetry
    FinslerMDS(metric="precomputed", max_iter=2).fit(D, weights=W * (1 + 1e-12 * D))


def test_the_diagonal_and_the_caller_s_matrix_are_left_alone():
    _, D = windy(n=20)
    plain = finsler_smacof(D)
    D[np.diag_indices_from(D)] = 7.0
    kept = D.copy()
    assert np.array_equal(finsler_smacof(D).embedding, plain.embedding)
    assert np.array_equal(D, kept)


def test_float32_stays_float32():
    _, D = windy(n=30)
    model = FinslerMDS(metric="precomputed").fit(D.astype(np.float32))
    assert model.embedding_.dtype == model.dissimilarity_matrix_.dtype == np.float32
    assert FinslerMDS().fit(load_iris().data.astype(np.float32)).embedding_.dtype == np.float32


@pytest.mark.parametrize("metric", ["manhattan", "cosine"])
def test_metrics_by_name_and_by_function(metric):
    X = load_iris().data[:60]
    named = FinslerMDS(metric=metric).fit(X)
    assert named.normalized_stress_ < 0.1
    assert named.transform(X[:3]) == pytest.approx(named.embedding_[:3], abs=0.1)

    def function(x, y):
        from sklearn.metrics import pairwise_distances

        return pairwise_distances([x], [y], metric=metric)[0, 0]

    by_function = FinslerMDS(metric=function, max_iter=1).fit(X).dissimilarity_matrix_
    assert by_function == pytest.approx(named.dissimilarity_matrix_, rel=1e-3, abs=1e-6)


# ------------------------------------------------------------------ new points


def test_training_points_keep_their_place():
    X, _ = disk(300)
    model = FinslerMDS().fit(X)
    shift = model.transform(X) - model.embedding_
    assert np.abs(shift).max() < 0.01
    assert abs(shift[:, -1].mean()) < 0.01 * model.embedding_[:, -1].std()


def test_new_points_get_the_height_they_would_have_had():
    X, radius = disk(600)
    model = FinslerMDS().fit(X[:500])
    placed = model.transform(X[500:])
    whole = FinslerMDS().fit(X).embedding_
    expected = whole[500:, -1]
    assert spearmanr(placed[:, -1], radius[500:]).statistic > 0.9
    # no shift along the drift
    assert abs((placed[:, -1] - expected).mean()) < 0.2 * expected.std()
    one_by_one = np.vstack([model.transform(x[None]) for x in X[500:510]])
    assert np.array_equal(one_by_one, placed[:10])


def test_new_points_by_given_distances():
    Y, D = windy(n=120, omega=0.4)
    model = FinslerMDS(metric="precomputed", omega_norm=0.4, eps=1e-10, max_iter=3000)
    model.fit(D[:100, :100])
    turned = model.transform(D[100:, :100], incoming=D[:100, 100:].T)
    unknown = np.full((20, 100), np.nan)
    outgoing_alone = model.transform(D[100:, :100], incoming=unknown)
    with pytest.raises(ValueError, match="incoming: the model was fitted to directed distances"):
        model.transform(D[100:, :100])
    assert outgoing_alone == pytest.approx(turned, abs=0.02)
    heights = Y[100:, -1] - Y[:100, -1].mean()
    assert turned[:, -1] == pytest.approx(heights, abs=0.02)
    with pytest.raises(ValueError, match="incoming must have the shape"):
        model.transform(D[100:, :100], incoming=D[:100, 100:])
    one_lost = np.where(np.arange(2)[:, None] == 1, np.inf, D[100:102, :100])
    with pytest.raises(ValueError, match="New point 1 has no finite"):
        model.transform(one_lost, incoming=unknown[:2])


# ------------------------------------------------------------------ regressions


def test_a_failed_fit_leaves_the_model_as_it_was(monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = FinslerMDS(n_neighbors=8).fit(X)
    before, placed = model.embedding_.copy(), model.transform(X[:3])

    def interrupted(*args, **kwds):
        raise KeyboardInterrupt

    monkeypatch.setattr("finsler_ext.estimators.mds.solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:20, :2])
    assert np.array_equal(model.embedding_, before)
    assert model.n_features_in_ == 3
    assert np.array_equal(model.transform(X[:3]), placed)


@pytest.mark.parametrize("compiled", [False, True])
def test_fit_and_transform_call_a_metric_with_the_same_keywords(compiled):
    from numba import njit

    def scaled(x, y, a=1.0, b=1.0):
        return a * abs(x[0] - y[0]) + b * abs(x[1] - y[1])

    X = np.random.default_rng(0).normal(size=(80, 2))
    metric = njit(scaled) if compiled else scaled
    model = FinslerMDS(metric=metric, metric_params={"b": 3.0}, n_neighbors=8).fit(X)
    stretched = FinslerMDS(metric="manhattan", n_neighbors=8).fit(X * [1, 3])
    assert model.dissimilarity_matrix_ == pytest.approx(stretched.dissimilarity_matrix_, rel=1e-4)
    new = np.random.default_rng(1).normal(size=(5, 2))
    moved = model.transform(new)
    # the same distances, so the same places relative to the training points
    placed = place_points(
        model.embedding_, *constructed_distances(stretched, new * [1, 3], None), 0.5
    )
    assert moved == pytest.approx(placed, abs=1e-3)


def test_sparse_features_with_duplicates_are_summed():
    X = np.random.default_rng(0).normal(size=(60, 4))
    halves = scipy.sparse.csr_matrix(X)
    twice = scipy.sparse.csr_matrix(
        (np.repeat(halves.data / 2, 2), np.repeat(halves.indices, 2), halves.indptr * 2),
        shape=X.shape,
    )
    assert not twice.has_canonical_format
    one, two = (FinslerMDS(max_iter=5).fit(data) for data in (halves, twice))
    assert np.array_equal(one.embedding_, two.embedding_)


def test_a_graph_without_ways_back_has_nothing_to_compare():
    nx = pytest.importorskip("networkx")
    one_way = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "d"), ("a", "e"), ("e", "d"), ("b", "e")])
    model = FinslerMDS(n_components=2, metric="precomputed", omega_norm=0.5, random_state=0)
    assert model.fit(one_way).skew_fidelity_.reason == "no pair is known both ways"
