"""The same data in another container, unit or order gives the same, in all three estimators."""

import os

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP
from tests.strategies import DENSE, SPARSE, in_dense, in_sparse, spoilt, tables

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

# A long run, by hand: FINSLER_EXAMPLES=10000 pytest tests/directed/test_containers_fuzz.py
EXAMPLES = int(os.environ.get("FINSLER_EXAMPLES", "0"))
MAKE = {
    "umap": lambda: FinslerUMAP(random_state=0, n_epochs=5, n_neighbors=5),
    "tsne": lambda: FinslerTSNE(random_state=0, n_iter=5, early_exaggeration_iter=5, perplexity=3),
    "mds": lambda: FinslerMDS(random_state=0, max_iter=5, n_neighbors=5),
}
KINDS = st.sampled_from(sorted(MAKE))


def examples(few):
    return settings(
        max_examples=EXAMPLES or few,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def fitted(kind, X, new):
    """Embedding and places, or the error as text; X must not have been changed."""
    kept = X.copy()
    try:
        model = MAKE[kind]().fit(X)
        result = np.array(model.embedding_), model.transform(new)
    except ValueError as error:
        result = str(error).split("got")[0]
    _assert_same_data(X, kept)
    return result


def _assert_same_data(X, kept):
    if scipy.sparse.issparse(X):
        assert X.nnz == kept.nnz
        assert (kept != X).nnz == 0
    elif hasattr(X, "equals"):
        assert X.equals(kept)
    else:
        assert np.array_equal(X, kept)


def assert_same(got, want):
    assert isinstance(got, type(want)), (got, want)
    if isinstance(want, str):
        assert got == want
        return
    for a, b in zip(got, want, strict=True):
        assert np.array_equal(a, b, equal_nan=True)


def new_rows(X):
    """Rows between those of X, and one of X itself."""
    between = (X[:3].astype(float) + X[3:6].astype(float)) / 2
    return np.vstack([between.astype(X.dtype), X[:1]])


@examples(20)
@given(tables(), st.sampled_from(DENSE), KINDS)
def test_dense_containers(X, form, kind):
    want = fitted(kind, np.ascontiguousarray(X), new_rows(X))
    got = fitted(kind, in_dense(X, form), in_dense(new_rows(X), form))
    assert_same(got, want)


@examples(20)
@given(tables(dtypes=("f8", "f4", "i8", "?")), st.sampled_from(SPARSE), KINDS)
def test_sparse_containers(X, form, kind):
    X = X.astype(float) if X.dtype == bool else X
    want = fitted(kind, scipy.sparse.csr_matrix(X), scipy.sparse.csr_matrix(new_rows(X)))
    got = fitted(kind, in_sparse(X, form), in_sparse(new_rows(X), form))
    assert_same(got, want)


@examples(10)
@given(tables(dtypes=("f8", "f4", "i4"), offsets=(0.0, 1.0)))
def test_dense_and_sparse_have_the_same_neighbours(X):
    """Sums are made in another order, so ties may fall otherwise: distances are compared."""
    dense, sparse = (MAKE["umap"]().fit(data) for data in (X, scipy.sparse.csr_matrix(X)))
    assert np.allclose(dense._knn_dists, sparse._knn_dists, atol=1e-5 * np.abs(X).max() + 1e-30)


@examples(15)
@given(
    tables(dtypes=("f8",), offsets=(0.0,)),
    st.sampled_from([-200, -60, -7, 5, 60, 300]),
    st.sampled_from(["umap", "tsne"]),
)
def test_units(X, exponent, kind):
    new = new_rows(X)
    want = fitted(kind, X, new)
    got = fitted(kind, np.ldexp(X, exponent), np.ldexp(new, exponent))
    if kind == "umap" or isinstance(want, str):
        assert_same(got, want)
        return
    for a, b in zip(got, want, strict=True):
        assert np.allclose(a, b, atol=1e-6 * max(np.abs(b).max(), 1e-30))


@examples(10)
@given(tables(dtypes=("f8",), offsets=(0.0,)), st.sampled_from([-60, -7, 5, 60]))
def test_units_of_mds(X, exponent):
    """The map is in the unit of the data; where it can be turned freely, rounding may turn it."""
    plain, scaled = MAKE["mds"](), MAKE["mds"]()
    try:
        plain.fit(X)
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)[:20]):
            scaled.fit(np.ldexp(X, exponent))
        return
    scaled.fit(np.ldexp(X, exponent))
    got = np.ldexp(scaled.dissimilarity_matrix_, -exponent)
    assert np.allclose(got, plain.dissimilarity_matrix_, rtol=1e-6)
    assert scaled.normalized_stress_ == pytest.approx(plain.normalized_stress_, rel=1e-4, abs=1e-9)
    placed = np.ldexp(scaled.transform(np.ldexp(new_rows(X), exponent)), -exponent)
    assert np.abs(placed).max() < 10 * np.abs(plain.transform(new_rows(X))).max()


@examples(15)
@given(tables(dtypes=("f8",), offsets=(0.0,)), st.sampled_from([2.0**20, 2.0**30, -(2.0**33)]))
def test_offsets(X, offset):
    """An offset that rounds nothing changes no neighbour and no distance."""
    X = np.round(X * 2.0**10) / 2.0**10
    for kind in ("umap", "mds"):
        plain, moved = MAKE[kind](), MAKE[kind]()
        try:
            plain.fit(X)
        except ValueError as error:
            with pytest.raises(ValueError, match=str(error)[:20]):
                moved.fit(X + offset)
            continue
        moved.fit(X + offset)
        if kind == "umap":
            assert np.allclose(plain._knn_dists, moved._knn_dists, rtol=1e-5)
        else:
            got, want = (m._known.neighbors.distances for m in (moved, plain))
            assert np.allclose(got, want, rtol=1e-6)


@examples(15)
@given(tables(dtypes=("f8",)), st.integers(0, 2**16))
def test_order_of_rows(X, seed):
    """What is made before the layout is made row by row, whatever the order of the rows."""
    X = X + np.random.default_rng(seed).normal(size=X.shape)  # no ties
    order = np.random.default_rng(seed).permutation(len(X))
    for kind, matrix in (
        ("umap", lambda m: m.graph_.toarray()),
        ("tsne", lambda m: m.affinities_.P.toarray()),
        ("mds", lambda m: m.dissimilarity_matrix_),
    ):
        plain, moved = (MAKE[kind]().fit(data) for data in (X, X[order]))
        want = matrix(plain)[np.ix_(order, order)]
        assert np.allclose(matrix(moved), want, atol=1e-5 * np.abs(want).max())


METRICS = ("euclidean", "manhattan", "cosine", "chebyshev", "correlation", "precomputed")
# These must be refused; the others may give an embedding.
REFUSED = {"nan", "inf", "masked", "words", "none", "complex", "three axes", "one axis"}
REFUSED |= {"no rows", "no columns", "nan in sparse"}


@examples(30)
@given(spoilt(), KINDS, st.sampled_from(METRICS))
def test_spoilt_data_is_refused_or_embedded(spoilt_data, kind, metric):
    X, what = spoilt_data
    model = MAKE[kind]().set_params(metric=metric)
    kept = X.copy()
    try:
        embedding = np.asarray(model.fit(X).embedding_)
    except (ValueError, TypeError):
        assert not hasattr(model, "embedding_")
        return
    assert what not in REFUSED or metric == "precomputed" or _is_sound(X)
    assert embedding.shape == (X.shape[0], 3)
    if kind == "umap":  # points without any neighbour are nan, and said so
        lonely = np.asarray(model.graph_.sum(axis=1)).ravel() == 0
        lonely &= np.asarray(model.graph_.sum(axis=0)).ravel() == 0
        several = model.graph_.shape[0] > 1
        assert np.array_equal(np.isnan(embedding).any(axis=1), lonely & several)
    else:
        assert np.isfinite(embedding).all()
    if not scipy.sparse.issparse(X):
        assert np.array_equal(np.ma.getdata(X), np.ma.getdata(kept), equal_nan=X.dtype.kind == "f")


def _is_sound(X) -> bool:
    """Nothing was there to spoil."""
    values = X.data if scipy.sparse.issparse(X) else np.ma.filled(X, np.nan)
    return values.ndim in (1, 2) and values.dtype.kind == "f" and np.isfinite(values).all()
