import warnings

import numpy as np
import pytest
import scipy.sparse
from numba import njit
from umap import UMAP

from tests.models import SMALL_DRIFT_WARNING, quick

RNG = np.random.default_rng(0)
pytestmark = pytest.mark.filterwarnings(SMALL_DRIFT_WARNING)


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
        theirs = UMAP(metric=metric, transform_mode="graph", random_state=0).fit(X).graph_
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
    monkeypatch.setattr("finsler_ext.neighbors.exact.ASYMMETRIC_UP_TO", 100)
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
    seen, frames = [], []
    model = quick(n_epochs=[5, 10, 20])
    model.fit(few_digits[0], callback=lambda epoch, Y: (seen.append(epoch), frames.append(Y)))
    assert [e.shape for e in model.embedding_list_] == [(200, 3)] * 3
    assert np.array_equal(model.embedding_list_[-1], model.embedding_)
    assert seen == list(range(1, 21))
    assert not np.array_equal(frames[0], frames[-1])


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


@pytest.mark.filterwarnings("ignore")
def test_a_graph_without_any_edge_has_all_attributes():
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = quick(disconnection_distance=1e-6).fit(X)
    assert np.isnan(model.embedding_).all()
    assert model.height_ == "free"
    assert model.loss_.value == 0.0
    assert not model.islands_.settled
