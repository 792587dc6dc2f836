import pickle
import signal
import threading
import warnings

import numba
import numpy as np
import pytest
import scipy.sparse
from numba import njit
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from umap import UMAP

from finsler_ext import FinslerUMAP
from finsler_ext.randers import randers_distances

RNG = np.random.default_rng(0)

# Fits of a few epochs need not have a height worth reading; one test below wants the warning.
pytestmark = pytest.mark.filterwarnings("ignore:With omega_norm:UserWarning")


def quick(**kwds):
    return FinslerUMAP(**({"random_state": 0, "n_epochs": 30} | kwds))


def disk(n):
    angle = 2 * np.pi * np.arange(20) / 20
    radius = np.arange(1, n // 20 + 1) / (n / 20)
    r, a = (grid.ravel() for grid in np.meshgrid(radius, angle, indexing="ij"))
    return np.column_stack([r * np.cos(a), r * np.sin(a)]), r


# ------------------------------------------------------------------ what the height shows


@pytest.mark.parametrize(("omega", "least"), [(0.1, 0.95), (0.5, 0.95), (0.9, 0.9)])
def test_the_height_of_the_disk_rises_with_the_radius(omega, least):
    X, radius = disk(300)
    rows = RNG.permutation(300)
    heights = [
        FinslerUMAP(omega_norm=omega, random_state=s).fit_transform(X[rows])[:, -1]
        for s in range(3)
    ]
    assert np.median([spearmanr(h, radius[rows]).statistic for h in heights]) > least


def test_digits_keep_their_clusters_and_get_a_meaningful_height(digits):
    X, y = digits
    model = FinslerUMAP(omega_norm=0.5, random_state=0).fit(X)
    assert model.skew_fidelity_.sign > 0.78
    assert model.density_height_ > 0.2
    labels = KMeans(10, n_init=5, random_state=0).fit_predict(model.embedding_)
    assert adjusted_mutual_info_score(y, labels) > 0.85


def test_a_small_drift_is_announced_as_meaningless(digits):
    with pytest.warns(UserWarning, match="next to nothing"):
        quick(omega_norm=0.01, n_epochs=200).fit(digits[0])


def test_directed_distances_of_a_randers_space_give_back_the_height():
    Y = RNG.normal(size=(200, 3)) * [3, 3, 1]
    D = randers_distances(Y, 0.6)
    for matrix in (D, scipy.sparse.csr_matrix(D)):
        model = FinslerUMAP(metric="precomputed", random_state=0).fit(matrix)
        assert model.skew_fidelity_.sign > 0.7
        assert spearmanr(model.embedding_[:, -1], Y[:, -1]).statistic > 0.5
        mirrored = FinslerUMAP(metric="precomputed", random_state=0).fit(matrix.T)
        assert spearmanr(mirrored.embedding_[:, -1], Y[:, -1]).statistic < -0.5


def test_asymmetry_can_come_from_a_feature():
    X = np.random.default_rng(0).uniform(size=(400, 2)).astype(np.float32)
    feature = np.exp(3 * np.exp(-10 * ((X - 0.5) ** 2).sum(axis=1)))
    model = FinslerUMAP(local_scale=feature, random_state=0).fit(X)
    assert spearmanr(model.embedding_[:, -1], feature).statistic > 0.5
    assert model.skew_fidelity_.sign > 0.65
    plain = FinslerUMAP(random_state=0).fit(X)  # density alone lifts the rim
    assert spearmanr(plain.embedding_[:, -1], feature).statistic < 0


@pytest.mark.parametrize("affinity", ["directed", "harmonic", "fuzzy_union"])
@pytest.mark.filterwarnings("ignore:n_jobs value")
def test_without_a_drift_it_is_umap(digits, affinity):
    X, y = digits
    model = FinslerUMAP(omega_norm=0, affinity=affinity, random_state=0).fit(X)
    assert np.ptp(model.embedding_, axis=0).min() > 5  # three dimensions, really
    theirs = UMAP(n_components=3, random_state=0, n_jobs=1).fit(X)
    if affinity == "fuzzy_union":  # but for ties, which integer data has many of
        assert abs(model.graph_ - theirs.graph_).sum() < 1e-2 * theirs.graph_.sum()

    def score(embedding):
        labels = KMeans(10, n_init=5, random_state=0).fit_predict(embedding)
        return adjusted_mutual_info_score(y, labels)

    assert score(model.embedding_) > score(theirs.embedding_) - 0.03


# ------------------------------------------------------------------ reproducible


@pytest.mark.parametrize("n", [300, 4500])
def test_the_seed_decides_whatever_the_threads(n):
    X = RNG.normal(size=(n, 8)).astype(np.float32)
    X[: n // 10] = X[n // 2 : n // 2 + n // 10]  # duplicates
    runs = [quick(n_jobs=jobs, n_epochs=12).fit(X) for jobs in (1, 2, 2)]
    for other in runs[1:]:
        assert np.array_equal(runs[0].embedding_, other.embedding_)
        assert (runs[0].graph_ != other.graph_).nnz == 0
    assert not np.array_equal(runs[0].embedding_, quick(random_state=1).fit_transform(X))


def test_a_random_state_object_is_accepted():
    X = RNG.normal(size=(50, 4))
    one, two = (quick(random_state=np.random.RandomState(3)).fit_transform(X) for _ in range(2))
    assert np.array_equal(one, two)


# ------------------------------------------------------------------ everything that fit takes


@pytest.mark.parametrize("init", ["spectral", "random", "pca", "tswspectral"])
@pytest.mark.parametrize("m", [2, 3, 4])
def test_inits_and_dimensions(few_digits, init, m):
    embedding = quick(init=init, n_components=m).fit_transform(few_digits[0])
    assert embedding.shape == (200, m)
    assert np.isfinite(embedding).all()
    assert embedding.mean(axis=0) == pytest.approx(0, abs=1e-4)


def test_one_component_and_array_inits(few_digits):
    X, _ = few_digits
    assert quick(n_components=1).fit_transform(X).shape == (200, 1)
    for columns in (2, 3):
        start = RNG.normal(size=(200, columns)).astype(np.float32)
        assert np.isfinite(quick(init=start).fit_transform(X)).all()
    for bad in (np.zeros((200, 5)), np.zeros((10, 3)), np.full((200, 2), np.nan)):
        with pytest.raises(ValueError, match=r"init|NaN"):
            quick(init=bad).fit(X)


@pytest.mark.parametrize("metric", ["manhattan", "cosine", "correlation", "chebyshev", "hellinger"])
def test_metric_names_agree_with_umap(few_digits, metric):
    # no ties, which would be broken differently
    X = few_digits[0] + RNG.uniform(size=few_digits[0].shape).astype(np.float32)
    ours = quick(metric=metric, affinity="fuzzy_union", n_epochs=1).fit(X).graph_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = UMAP(metric=metric, n_epochs=1, random_state=0).fit(X).graph_
    assert abs(ours - theirs).max() < 1e-2


@njit
def uphill(x, y):
    return np.sqrt(np.sum((x - y) ** 2)) + max(0.0, y[20] - x[20])


def test_compiled_and_asymmetric_metrics(few_digits):
    X, _ = few_digits
    by_metric = quick(metric=uphill).fit(X)
    D = np.array([[uphill(x, y) for y in X] for x in X])
    by_matrix = quick(metric="precomputed").fit(D)
    assert abs(by_metric.graph_ - by_matrix.graph_).max() < 1e-4
    assert not by_metric._knn_search_index


def test_large_asymmetric_metrics_ask_for_a_matrix(few_digits, monkeypatch):
    monkeypatch.setattr("finsler_ext._umap_graph.ASYMMETRIC_BELOW", 100)
    with pytest.raises(ValueError, match="precomputed"):
        quick(metric=uphill).fit(few_digits[0])


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_sparse_input(few_digits, form):
    X, _ = few_digits
    dense, sparse = quick().fit(X), quick().fit(scipy.sparse.csr_matrix(X).asformat(form))
    assert abs(dense.graph_ - sparse.graph_).max() < 1e-3


def test_float32_float64_and_lists_agree(few_digits):
    X, _ = few_digits
    base = quick().fit_transform(X.astype(np.float32))
    assert base.dtype == np.float32
    assert np.array_equal(base, quick().fit_transform(X.astype(np.float64)))
    assert np.array_equal(base, quick().fit_transform(X.tolist()))


def test_unique_puts_duplicates_in_one_place(few_digits):
    X = np.repeat(few_digits[0][:100], 3, axis=0)
    model = quick(unique=True).fit(X)
    assert model.graph_.shape == (100, 100)
    assert model.embedding_.shape == (300, 3)
    assert np.array_equal(model.embedding_[0], model.embedding_[2])
    assert np.array_equal(model.embedding_, quick(unique=True).fit_transform(X))


def test_lists_of_epochs_and_callbacks(few_digits):
    seen = []
    model = quick(n_epochs=[5, 10, 20])
    model.fit(few_digits[0], callback=lambda epoch, Y: seen.append(epoch))
    assert [e.shape for e in model.embedding_list_] == [(200, 3)] * 3
    assert np.array_equal(model.embedding_list_[-1], model.embedding_)
    assert seen == list(range(1, 21))


def test_epochs_out_of_order_and_unique_rows_with_an_init(few_digits):
    X, _ = few_digits
    model = quick(n_epochs=[20, 5]).fit(X)
    assert np.array_equal(model.embedding_, quick(n_epochs=20).fit_transform(X))
    start = RNG.normal(size=(200, 2)).astype(np.float32)
    doubled = quick(unique=True, init=np.repeat(start, 2, axis=0)).fit(np.repeat(X, 2, axis=0))
    assert doubled.embedding_.shape == (400, 3)


def test_symmetric_memberships_use_all_columns_as_a_map():
    angle = 2 * np.pi * np.arange(200) / 200
    D = np.abs(np.subtract.outer(angle, angle))
    D = np.round(np.minimum(D, 2 * np.pi - D), 6)
    model = quick(metric="precomputed", n_neighbors=3, n_epochs=100).fit(D)
    assert abs(model.graph_ - model.graph_.T).max() < 1e-6
    assert np.ptp(model.embedding_, axis=0).min() > 0.5


@pytest.mark.filterwarnings("ignore:A few of your vertices")
def test_precomputed_knn_is_used_and_left_alone(few_digits):
    X, _ = few_digits
    plain = quick().fit(X)
    knn = (plain._knn_indices.copy(), plain._knn_dists.copy())
    copies = [a.copy() for a in knn]
    with pytest.warns(UserWarning, match="NNDescent"):
        model = quick(precomputed_knn=knn, disconnection_distance=30.0).fit(X)
    assert all(np.array_equal(a, b) for a, b in zip(knn, copies, strict=True))
    assert model.graph_.nnz < plain.graph_.nnz
    with pytest.warns(UserWarning, match="NNDescent"):
        same = quick(precomputed_knn=knn).fit(X)
    assert (same.graph_ != plain.graph_).nnz == 0


@pytest.mark.parametrize(
    ("metric", "target"),
    [
        ("categorical", lambda X, y: y),
        ("l2", lambda X, y: X[:, 20]),
        ("ordinal", lambda X, y: y.astype(np.float32)),
    ],
)
def test_supervision_sharpens_the_graph(few_digits, metric, target):
    X, y = few_digits
    y = target(X, y)
    model = quick(target_metric=metric).fit(X, y)
    assert np.isfinite(model.embedding_).all()
    assert (model.graph_ != quick().fit(X).graph_).nnz > 0
    if metric == "categorical":
        edges = model.graph_.tocoo()
        across = y[edges.row] != y[edges.col]
        assert edges.data[across].sum() < 0.1 * edges.data.sum()


def test_geodesic_neighbours_widen_the_graph(few_digits):
    X, _ = few_digits
    wide = quick(geodesic_neighbors=40).fit(X)
    assert (np.diff(wide.graph_.indptr) > 14).mean() > 0.9
    assert np.asarray(wide.graph_.sum(axis=1)) == pytest.approx(np.log2(40), abs=1e-2)
    manhattan = quick(geodesic_neighbors=40, metric="manhattan").fit(X)
    assert np.isfinite(manhattan.embedding_).all()


def test_graph_mode(few_digits):
    graph = quick(transform_mode="graph").fit_transform(few_digits[0])
    assert scipy.sparse.issparse(graph)
    assert graph.shape == (200, 200)


def test_verbose_shows_progress_and_fidelity(few_digits, capsys):
    quick(verbose=True, n_epochs=5).fit(few_digits[0])
    printed = capsys.readouterr()
    assert "skew fidelity" in printed.out
    assert "Epochs completed" in printed.err


# ------------------------------------------------------------------ a good scikit-learn citizen


def test_every_parameter_of_umap_is_there_under_its_name():
    theirs, ours = UMAP().get_params(), FinslerUMAP().get_params()
    assert set(theirs) < set(ours)
    changed = {name for name in theirs if theirs[name] != ours[name]}
    assert changed == {"n_components"}


def test_fit_changes_no_parameter(few_digits):
    model = quick(metric="cosine", n_jobs=2, tqdm_kwds={"leave": False})
    before = {name: repr(value) for name, value in model.get_params().items()}
    model.fit(few_digits[0])
    assert before == {name: repr(value) for name, value in model.get_params().items()}


def test_clone_pickle_pipeline_and_pandas(few_digits):
    X, _ = few_digits
    model = quick().fit(X)
    assert np.array_equal(clone(model).fit_transform(X), model.embedding_)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.embedding_, model.embedding_)
    assert again.skew_fidelity_ == model.skew_fidelity_
    piped = make_pipeline(StandardScaler(), quick()).fit_transform(X)
    assert piped.shape == (200, 3)
    frame = quick().set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == ["finslerumap0", "finslerumap1", "finslerumap2"]
    assert list(model.get_feature_names_out()) == list(frame.columns)
    assert model.n_features_in_ == X.shape[1]


@pytest.mark.parametrize(
    "call",
    [
        lambda model, X: model.transform(X),
        lambda model, X: model.update(X),
        lambda model, X: model.inverse_transform(model.embedding_),
        lambda model, X: model + model,
        lambda model, X: model * UMAP(),
        lambda model, X: model - model,
    ],
)
def test_what_is_not_there_yet_says_so(few_digits, call):
    model = quick(n_epochs=1).fit(few_digits[0])
    with pytest.raises(NotImplementedError, match="not available"):
        call(model, few_digits[0])


# ------------------------------------------------------------------ bad input, global state


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
        (np.full((20, 3), 1e300), "infinity|large"),
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
    [(lambda D: D[:, 1:], "square"), (lambda D: D - 9, "negative"), (lambda D: D * np.nan, "NaN")],
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


def test_heavy_duplicates_give_a_finite_embedding():
    X = RNG.integers(0, 3, size=(500, 2)).astype(float)
    assert np.isfinite(quick().fit_transform(X)).all()


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


@pytest.mark.filterwarnings("ignore:A large number of your vertices")
def test_nothing_connected_is_all_nan():
    D = np.where(np.eye(30) > 0, 0, np.inf)
    model = quick(metric="precomputed").fit(D)
    assert np.isnan(model.embedding_).all()
    assert model.skew_fidelity_.reason


def global_state():
    return (
        numba.get_num_threads(),
        np.random.get_state()[1].tolist(),
        list(warnings.filters),
        threading.active_count(),
    )


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
