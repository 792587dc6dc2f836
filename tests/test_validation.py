"""What users feed in comes out right in all three estimators, or is refused in one line."""

import copy
import threading
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP
from finsler_ext.validation import AsFitted, canonical, checked_structure

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

BINARY = ["jaccard", "dice", "matching", "kulsinski"]
BINARY += ["rogerstanimoto", "russellrao", "sokalmichener", "sokalsneath"]


def umap(**kwds):
    return FinslerUMAP(**({"random_state": 0, "n_epochs": 10} | kwds))


def tsne(**kwds):
    quick = {"random_state": 0, "n_iter": 10, "early_exaggeration_iter": 10, "perplexity": 8}
    return FinslerTSNE(**(quick | kwds))


def mds(**kwds):
    return FinslerMDS(**({"random_state": 0, "max_iter": 10} | kwds))


ALL = pytest.mark.parametrize("make", [umap, tsne, mds])


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(80, 5))


@pytest.fixture(scope="module")
def D(X):
    return np.linalg.norm(X[:, None] - X[None], axis=2) * np.linspace(1, 2, 80)


def nearest(rows, points, k):
    """Plain reference: differences in float64, no matrix products."""
    return np.argsort(((rows[:, None] - points[None]) ** 2).sum(axis=2), axis=1)[:, :k]


def shared(found, want):
    pairs = zip(found, want, strict=True)
    return np.mean([len(set(a) & set(b)) / len(want[0]) for a, b in pairs])


def broken_matrices():
    good = scipy.sparse.random(60, 6, 0.5, format="csr", random_state=0)
    for name, change in {
        "negative index": ("indices", 3, -5),
        "large index": ("indices", 3, 10**8),
        "falling indptr": ("indptr", 5, 10**6),
        "indptr from 7": ("indptr", 0, 7),
        "indptr beyond the end": ("indptr", -1, 10**7),
    }.items():
        array, place, value = change
        for form in ("csr", "csc", "coo"):
            bad = good.asformat(form, copy=True)
            if form == "coo":
                if array == "indptr":
                    continue
                bad.row[place] = value
            else:
                getattr(bad, array)[place] = value
            yield pytest.param(bad, id=f"{name}, {form}")


@pytest.mark.parametrize("bad", list(broken_matrices()))
@ALL
def test_broken_sparse_matrices_are_refused(make, bad):
    with pytest.raises(ValueError, match="X is a broken sparse matrix"):
        make().fit(bad)


@ALL
def test_broken_new_rows_are_refused(make, X):
    sparse = scipy.sparse.csr_matrix(X)
    model = make().fit(sparse)
    new = scipy.sparse.csr_matrix(X[:3] + 0.1)
    new.indices[2] = 10**8
    with pytest.raises(ValueError, match="broken sparse matrix"):
        model.transform(new)


def test_sound_matrices_pass_and_are_not_modified():
    good = scipy.sparse.random(20, 6, 0.5, format="csr", random_state=0)
    for form in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
        matrix = good.asformat(form)
        assert (checked_structure(matrix) != good).nnz == 0
    roomy = good.copy()
    roomy.data, roomy.indices = (np.append(a, a[:3]) for a in (roomy.data, roomy.indices))
    roomy.indices[-1] = 10**6
    assert len(checked_structure(roomy).data) == good.nnz
    doubled = scipy.sparse.csr_matrix(
        (np.array([1.0, 2.0, 0.0]), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 2)
    )
    assert canonical(doubled).toarray().tolist() == [[0.0, 3.0]]
    assert canonical(doubled).nnz == 1
    assert doubled.nnz == 3


def test_very_many_columns_need_no_memory():
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, 2**40, size=200))
    X = scipy.sparse.csr_matrix(
        (rng.normal(size=200), columns, np.arange(0, 201, 4)), shape=(50, 2**40)
    )
    model = umap().fit(X)
    assert np.array_equal(model.transform(X[:3]), model.embedding_[:3])


@pytest.mark.parametrize(
    "metric",
    [
        "jaccard",
        "ll_dirichlet",
        # each compiles for a second
        *(pytest.param(m, marks=pytest.mark.slow) for m in BINARY if m != "jaccard"),
    ],
)
def test_stored_zeros_are_zeros(metric):
    rng = np.random.default_rng(0)
    B = (rng.uniform(size=(60, 20)) < 0.3).astype(float)
    B[:, 0] = 1.0  # no row is empty, which ll_dirichlet could not stand
    stored = scipy.sparse.csr_matrix(np.ones_like(B))
    stored.data = B.ravel().copy()
    dense, sparse = (umap(metric=metric).fit(data) for data in (B, stored))
    assert dense._knn_dists.max() > 0
    assert np.allclose(sparse._knn_dists, dense._knn_dists, atol=1e-5)
    assert stored.nnz == B.size  # the user's matrix is as it was


def test_stored_zeros_are_distances_where_distances_are_given(D):
    first = np.argsort(D[0])[1]
    D = D.copy()
    D[0, first] = 0.0
    stored = scipy.sparse.csr_matrix(np.ones_like(D))
    stored.data = D.ravel().copy()
    dense, sparse = (umap(metric="precomputed").fit(data) for data in (D, stored))
    assert np.array_equal(dense.embedding_, sparse.embedding_)


def test_a_metric_that_divides_by_zero_is_named():
    counts = np.random.default_rng(0).poisson(0.3, size=(80, 6)).astype(float)
    with pytest.raises(ValueError, match="'ll_dirichlet' divides by zero"):
        umap(metric="ll_dirichlet").fit(counts)


def test_new_rows_on_which_a_metric_divides_by_zero_are_refused(X):
    """Equal entries have no correlation, and in sparse rows no umap-learn metric catches that."""
    model = umap(metric="correlation").fit(scipy.sparse.csr_matrix(X))
    equal = scipy.sparse.csr_matrix(np.ones((2, X.shape[1])))
    with pytest.raises(ValueError, match="'correlation' divides by zero"):
        model.transform(equal)


@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_matrix])
def test_a_metric_that_gives_no_number_is_named(storage, X):
    with pytest.raises(ValueError, match="'ll_dirichlet' gives NaN"):
        umap(metric="ll_dirichlet").fit(storage(X))


@ALL
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_new_rows_may_be_stored_otherwise(make, metric, X):
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    sparse, new = scipy.sparse.csr_matrix, X[:4] + 0.125
    dense_model, sparse_model = (make(metric=metric).fit(data) for data in (X, sparse(X)))
    for model in (dense_model, sparse_model):
        assert np.array_equal(model.transform(new), model.transform(sparse(new)))


@pytest.mark.parametrize("make", [tsne, mds])
def test_metrics_for_dense_data_only(make, X):
    with pytest.raises(ValueError, match="'canberra' is not available for sparse data"):
        make(metric="canberra").fit(scipy.sparse.csr_matrix(X))


@ALL
def test_masked_values_are_refused(make, X):
    masked = np.ma.array(X, mask=np.zeros_like(X, dtype=bool))
    assert np.array_equal(make().fit(masked).embedding_, make().fit(X).embedding_)
    masked[3, 2] = np.ma.masked
    with pytest.raises(ValueError, match="X has 1 masked value"):
        make().fit(masked)
    with pytest.raises(ValueError, match="X has 1 masked value"):
        make().fit(X).transform(masked)


@pytest.mark.parametrize(("make", "missing"), [(umap, np.inf), (tsne, np.inf), (mds, np.nan)])
def test_masked_distances_are_missing(make, missing, D):
    mask = np.random.default_rng(1).uniform(size=D.shape) < 0.1
    mask = mask & mask.T
    np.fill_diagonal(mask, False)
    got = make(metric="precomputed").fit(np.ma.array(D, mask=mask)).embedding_
    want = make(metric="precomputed").fit(np.where(mask, missing, D)).embedding_
    assert np.array_equal(got, want)


@pytest.mark.parametrize("missing", [None, float("nan"), -1])
def test_a_class_that_is_missing_is_unknown(missing, X):
    known = np.arange(len(X)) % 3
    want = umap().fit(X, np.where(np.arange(len(X)) % 5, known, -1)).graph_
    texts = np.array([f"class {c}" for c in known], dtype=object)
    texts[::5] = missing
    got = umap().fit(X, texts).graph_
    assert np.array_equal(got.toarray(), want.toarray())
    masked = np.ma.array(known, mask=np.arange(len(X)) % 5 == 0)
    assert np.array_equal(umap().fit(X, masked).graph_.toarray(), want.toarray())
    number = pd.Series(known, dtype="Int64").mask(np.arange(len(X)) % 5 == 0)
    for own in (number, number.array, number.astype("string"), number.astype("category")):
        assert np.array_equal(umap().fit(X, own).graph_.toarray(), want.toarray())
    assert not np.array_equal(umap().fit(X, known).graph_.toarray(), want.toarray())


def test_a_target_that_cannot_be_used_is_named(X):
    y = np.where(np.arange(len(X)) % 5, 1.0, np.nan)
    for metric in ("categorical", "euclidean"):
        with pytest.raises(ValueError, match="Input y contains NaN"):
            umap(target_metric=metric).fit(X, y)
    with pytest.raises(ValueError, match="y must be dense"):
        umap().fit(X, scipy.sparse.csr_array(y[:, None]))


@dataclass
class Manhattan:
    """A metric with settings; that two are equal by these leaves it without a hash."""

    unit: float = 1.0

    def __call__(self, x, y):
        return float(np.abs(x - y).sum()) / self.unit


@pytest.mark.parametrize("make", [tsne, mds])
def test_a_metric_need_not_have_a_hash(make, X):
    found, expected = (make(metric=m).fit(X[:60]).embedding_ for m in (Manhattan(), "manhattan"))
    assert np.asarray(found) == pytest.approx(np.asarray(expected), rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("make", [tsne, mds])
def test_a_plain_function_of_sparse_rows_is_refused(make, X):
    with pytest.raises(ValueError, match="plain Python function"):
        make(metric=lambda x, y: abs(x - y).sum()).fit(scipy.sparse.csr_array(X))


@pytest.mark.parametrize("offset", [1e8, -1.7e9, [0.0, 1e8, 1e5, 0.0, -1e9]])
def test_large_offsets_leave_the_neighbours(offset, X):
    far = X + np.asarray(offset)
    exact = far - far.mean(axis=0)
    want = nearest(exact[:60], exact[:60], 16)
    assert shared(umap(n_neighbors=16).fit(far[:60])._knn_indices, want) == 1.0
    assert shared(mds().fit(far[:60])._known.neighbors.indices, want) == 1.0
    new = nearest(exact[60:], exact[:60], 15)
    affinities = tsne().fit(far[:60]).affinities_
    assert shared(affinities.to_new(far[60:], return_distances=True)[1][:, :15], new) == 1.0
    for make in (umap, tsne, mds):
        fitted = make().fit(far[:60])
        placed = fitted.transform(far[60:])
        # near what the same rows get without an offset (differences round at 1e-7 of 1e9)
        plain = make().fit(exact[:60])
        if make is mds:
            assert np.allclose(placed, plain.transform(exact[60:]), atol=1e-2)
        assert np.isfinite(placed).all()


def test_rows_come_back_to_where_they_were(X):
    far = X + 1e9
    model = umap().fit(far)
    back = model.inverse_transform(model.embedding_)
    assert abs(np.mean(back - far)) < 1.0
    assert np.array_equal(model.transform(far), model.embedding_)
    model.update(far[:5] + 0.5)
    assert model.embedding_.shape == (85, 3)


@pytest.mark.parametrize("exponent", [-130, -70, 70, 130, 500])
def test_units_do_not_matter_to_umap(exponent, X, D):
    """Powers of two round nothing, so that results are the same, bit for bit."""
    for metric, data in (("euclidean", X), ("cosine", X), ("precomputed", D)):
        if metric == "precomputed" and exponent == 500:
            continue  # distances beyond 1e150 are refused
        plain = umap(metric=metric).fit(data)
        scaled = umap(metric=metric).fit(np.ldexp(data, exponent))
        assert np.array_equal(scaled.embedding_, plain.embedding_), metric
        assert np.array_equal(scaled.graph_.toarray(), plain.graph_.toarray())
        unit = 0 if metric == "cosine" else exponent
        assert np.array_equal(scaled.local_scale_, np.ldexp(plain.local_scale_, unit))
    plain, scaled = umap().fit(X), umap().fit(np.ldexp(X, exponent))
    new = X[:5] + 0.125
    assert np.array_equal(scaled.transform(np.ldexp(new, exponent)), plain.transform(new))


def test_a_disconnection_distance_is_in_the_users_unit(X):
    plain = umap(disconnection_distance=1.5).fit(X)
    scaled = umap(disconnection_distance=1.5 * 2.0**70).fit(np.ldexp(X, 70))
    assert plain._n_edges_removed == scaled._n_edges_removed > 0
    knn = plain._knn_indices, np.where(plain._knn_indices < 0, 9.0, plain._knn_dists)
    far = knn[0], np.ldexp(knn[1].astype(float), 70)
    a = umap(precomputed_knn=knn).fit(X)
    b = umap(precomputed_knn=far).fit(np.ldexp(X, 70))
    assert np.array_equal(a.embedding_, b.embedding_, equal_nan=True)


def test_memberships_do_not_depend_on_the_unit(X):
    plain = umap().fit(X).graph_
    for unit in (1e-21, 1e21, 1e39):
        scaled = umap().fit(X * unit).graph_
        assert np.array_equal(scaled.indices, plain.indices)
        assert np.allclose(scaled.data, plain.data, atol=1e-5)


@pytest.mark.parametrize("exponent", [-60, -80, 60, 80])
def test_units_of_single_precision_do_not_matter_to_tsne(exponent, X):
    X = X.astype(np.float32)
    plain, scaled = tsne().fit(X), tsne().fit(np.ldexp(X, exponent))
    assert np.allclose(plain.affinities_.P.toarray(), scaled.affinities_.P.toarray(), atol=1e-7)


@pytest.mark.parametrize("exponent", [-60, 70, 90])
def test_units_do_not_matter_to_mds(exponent, X):
    X = X - X.mean(axis=0)
    plain, scaled = mds().fit(X), mds().fit(np.ldexp(X, exponent))
    assert np.allclose(plain.embedding_, np.ldexp(scaled.embedding_, -exponent), atol=1e-6)


def test_the_range_of_the_largest_numbers_may_overflow(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        AsFitted.of(np.vstack([X, -X]) / np.abs(X).max() * 1.7e308, "euclidean")
        AsFitted.of(X / np.abs(X).max() * 1e308, "euclidean")


@pytest.mark.parametrize(("make", "unit"), [(tsne, 1e200), (mds, 1e39), (mds, 1e-40)])
def test_units_that_no_distance_can_be_held_in_are_refused(make, unit, X):
    with pytest.raises(ValueError, match="multiply X by a constant"):
        make().fit(X * unit)


def test_what_single_precision_cannot_hold_is_refused(X):
    with pytest.raises(ValueError, match="too large for dtype"):
        umap(metric="hamming").fit(X * 1e39)


def test_new_rows_next_to_zero_go_where_zero_goes(X):
    for make in (tsne, mds):
        model = make().fit(X)
        tiny, zero = (model.transform(np.full((1, 5), value)) for value in (1e-250, 0.0))
        assert tiny == pytest.approx(zero, abs=1e-9)


@pytest.fixture
def knn(X):
    model = umap().fit(X)
    return model._knn_indices, model._knn_dists


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda i, d: (d, i), "swapped"),
        (lambda i, d: (i, -d), "negative"),
        (lambda i, d: (i, np.where(d > 1, np.nan, d)), "NaN"),
        (lambda i, d: (i + 1000, d), "from 0 to 79"),
        (lambda i, d: (i - 2, d), "from 0 to 79"),
    ],
)
def test_neighbours_that_cannot_be(knn, X, change, message):
    with pytest.raises(ValueError, match=message):
        umap(precomputed_knn=change(*knn)).fit(X)


def test_neighbours_in_any_order(knn, X):
    indices, distances = knn
    want = umap(precomputed_knn=(indices, distances)).fit(X).embedding_
    backwards = indices[:, ::-1].copy(), distances[:, ::-1].copy()
    assert np.array_equal(umap(precomputed_knn=backwards).fit(X).embedding_, want)
    # with fewer neighbours than given, the nearest count and not the first
    few = umap(precomputed_knn=backwards, n_neighbors=5).fit(X)._knn_indices
    assert np.array_equal(few, indices[:, :5])


def test_new_points_of_mds_are_checked(X, D):
    model, directed = mds().fit(X), mds(metric="precomputed").fit(D)
    scaled = mds(local_scale=np.linspace(1, 2, 80)).fit(X)
    with pytest.raises(ValueError, match="incoming is for"):
        model.transform(X[:3], incoming=D[:3])
    with pytest.raises(ValueError, match="local_scale: the model was fitted without"):
        model.transform(X[:3], local_scale=np.ones(3))
    with pytest.raises(ValueError, match="has no scales"):
        directed.transform(D[:3], local_scale=np.ones(3))
    for bad in (np.inf, np.nan, 0.0):
        with pytest.raises(ValueError, match="positive and finite"):
            scaled.transform(X[:3], local_scale=np.full(3, bad))
    incoming = D[:, :3].T.copy()
    stored = scipy.sparse.coo_matrix(np.ones_like(incoming))
    stored.data = incoming.ravel().copy()  # zeros are distances
    want = directed.transform(D[:3], incoming=incoming)
    assert np.array_equal(directed.transform(D[:3], incoming=stored), want)


@ALL
@pytest.mark.parametrize("wrong", [2.0, 2.5, True, 0, "3"])
def test_the_number_of_columns_is_a_whole_number(make, wrong, X):
    with pytest.raises(ValueError, match="n_components must be"):
        make(n_components=wrong).fit(X)


@ALL
def test_one_thread_by_none(make, X):
    want = make(n_jobs=1).fit(X).embedding_
    assert np.array_equal(make(n_jobs=None).fit(X).embedding_, want)


@ALL
def test_a_deep_copy_works_on(make, X):
    model = make().fit(X)
    twin = copy.deepcopy(model)
    new = X[:3] + 0.125
    want = model.transform(new)
    assert np.array_equal(twin.transform(new), want)
    twin.embedding_[:] = 0.0
    assert np.array_equal(model.transform(new), want)


@ALL
def test_another_thread_gives_the_same(make):
    X = np.random.default_rng(0).normal(size=(300, 5))
    want = make().fit(X).embedding_
    found = []
    thread = threading.Thread(target=lambda: found.append(make().fit(X).embedding_))
    thread.start()
    thread.join()
    assert np.array_equal(found[0], want)


def test_as_fitted_is_undone():
    rng = np.random.default_rng(0)
    X = np.ldexp(rng.normal(size=(30, 4)), 90) + 2.0**110
    moved = AsFitted.of(X, "euclidean")
    assert not moved.plain
    assert np.abs(moved.apply(X)).max() <= 1.0
    assert np.allclose(moved.undo(moved.apply(X)), X, rtol=1e-15)
    assert AsFitted.of(X, "haversine").plain
    assert AsFitted.of(rng.normal(size=(30, 4)), "euclidean").plain
