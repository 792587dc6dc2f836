"""+, *, − and inverse_transform."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.stats import spearmanr
from sklearn.neighbors import NearestNeighbors
from umap import UMAP

from benchmarks.data.digraphs import planted_digraph
from finsler_ext import FinslerUMAP
from tests.models import SMALL_DRIFT_WARNING, quick

pytestmark = pytest.mark.filterwarnings(SMALL_DRIFT_WARNING)


@pytest.fixture(scope="module")
def halves(few_digits):
    X, _ = few_digits
    return quick().fit(X[:, :32]), quick(omega_norm=0.7).fit(X[:, 32:])


@pytest.mark.parametrize("operation", ["__add__", "__mul__", "__sub__"])
def test_combined_models_keep_the_direction(halves, operation):
    left, right = halves
    before = left.graph_.copy(), right.graph_.copy()
    model = getattr(left, operation)(right)
    assert isinstance(model, FinslerUMAP)
    assert model.embedding_.shape == (200, 3)
    assert np.isfinite(model.embedding_).all()
    assert model.omega_norm_ == pytest.approx(0.6)
    asymmetry = abs(model.graph_ - model.graph_.T).sum() / model.graph_.sum()
    assert asymmetry > 0.3
    assert (left.graph_ != before[0]).nnz == 0
    assert (right.graph_ != before[1]).nnz == 0
    assert np.array_equal(getattr(left, operation)(right).embedding_, model.embedding_)
    with pytest.raises(ValueError, match="no data of its own"):
        model.transform(np.zeros((1, 3)))


def test_union_and_intersection_agree_with_their_definition(halves):
    left, right = halves
    union = (left + right).graph_
    either = scipy.sparse.csr_matrix(left.graph_) + right.graph_
    assert ((union != 0) != (either != 0)).nnz == 0
    rows = union.max(axis=1).toarray().ravel()
    assert (rows <= 1).all()
    # umap-learn's union is p + q − pq before its rows are rescaled, which keeps their order
    p, q = left.graph_[0].toarray().ravel(), right.graph_[0].toarray().ravel()
    expected = p + q - p * q
    both = (p > 0) & (q > 0)
    order = np.argsort(expected[both])
    assert np.all(np.diff(union[0].toarray().ravel()[both][order]) >= -1e-6)


@pytest.mark.filterwarnings("ignore:n_jobs value")
def test_plain_umap_is_refused_in_both_orders(few_digits, halves):
    plain = UMAP(random_state=0, transform_mode="graph").fit(few_digits[0])
    for combine in (
        lambda: halves[0] + plain,
        lambda: plain + halves[0],
        lambda: plain * halves[0],
    ):
        with pytest.raises(ValueError, match="lost the direction"):
            combine()


def test_what_cannot_be_combined(few_digits, halves):
    with pytest.raises(ValueError, match="same samples"):
        halves[0] + quick().fit(few_digits[0][:100])
    with pytest.raises(ValueError, match="Only fitted"):
        halves[0] + quick()
    with pytest.raises(ValueError, match="unique"):
        halves[0] + quick(unique=True).fit(few_digits[0])


# ------------------------------------------------------------------ inverse_transform


def test_inverses_of_places_lie_near_the_data_of_these_places(digits):
    X = digits[0][:600].astype(np.float32)
    model = FinslerUMAP(random_state=0).fit(X)
    back = model.inverse_transform(model.embedding_)
    assert back.shape == X.shape
    error = np.linalg.norm(back - X, axis=1)
    assert np.median(error) < 0.6 * np.median(np.linalg.norm(X - X.mean(axis=0), axis=1))
    alone = model.inverse_transform(model.embedding_[7:8])
    assert np.array_equal(alone[0], back[7])


def test_there_and_back_again(digits):
    X = digits[0][:600].astype(np.float32)
    model = FinslerUMAP(random_state=0).fit(X)
    places = (model.embedding_[:-1:10] + model.embedding_[1::10]) / 2
    near = NearestNeighbors(n_neighbors=1).fit(model.embedding_).kneighbors(places)[0].ravel()
    places = places[near < 0.2]  # where there is data
    again = model.transform(model.inverse_transform(places))
    assert np.median(np.linalg.norm(again - places, axis=1)) < 0.3


def test_sparse_data_has_a_sparse_inverse(few_digits):
    X, _ = few_digits
    sparse = quick().fit(scipy.sparse.csr_matrix(X))
    back = sparse.inverse_transform(sparse.embedding_[:9])
    assert scipy.sparse.issparse(back)
    sparse._raw_data = X
    np.testing.assert_allclose(back.toarray(), sparse.inverse_transform(sparse.embedding_[:9]))


def test_what_has_no_inverse(few_digits, halves):
    X, _ = few_digits
    with pytest.raises(ValueError, match="columns"):
        quick().fit(X).inverse_transform(np.zeros((1, 2)))
    D = np.abs(X[:50, :1] - X[:50, 0])
    with pytest.raises(ValueError, match="mean"):
        quick(metric="precomputed").fit(D).inverse_transform(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="data of its own"):
        (halves[0] + halves[1]).inverse_transform(np.zeros((1, 3)))


def test_a_sum_knows_its_names_and_the_direction_of_its_parts():
    graph, _ = planted_digraph(80, 6, noise=0.1, seed=3)
    names = np.array([f"n{i}" for i in range(80)])
    frame = pd.DataFrame(graph.toarray(), index=names, columns=names).replace(0.0, np.nan)
    left = quick(metric="precomputed").fit(frame)
    right = quick(metric="precomputed").fit(graph)
    both = left + right
    assert list(both.node_names_) == list(names)
    assert both.n_features_in_ == 80
    assert both.height_ == "potential"
    assert spearmanr(both.embedding_[:, -1], left.potential_).statistic > 0.9
    features = np.random.default_rng(0).normal(size=(80, 3))
    rows = quick().fit(features) * quick().fit(features + 0.1)
    assert rows.height_ == "held"
    assert rows.n_features_in_ == 3
