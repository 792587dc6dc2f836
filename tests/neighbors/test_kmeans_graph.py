"""The search in large data, against all pairs."""

import pickle

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from finsler_ext.neighbors import kmeans_graph as groups
from finsler_ext.neighbors.exact import ExactIndex
from finsler_ext.neighbors.kmeans_graph import KMeansGraphIndex

RNG = np.random.default_rng(0)


def all_pairs(X, metric="euclidean"):
    """Indices and distances of all other rows, nearest first, ties by row number."""
    D = cdist(X.astype(np.float64), X.astype(np.float64), metric)
    np.fill_diagonal(D, -1.0)
    order = np.argsort(D, axis=1, kind="stable")[:, 1:]
    return order, np.take_along_axis(D, order, axis=1)


def recall(found, expected):
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, expected, strict=True)])


@pytest.mark.parametrize("metric", ["euclidean", "correlation"])
def test_groups_find_nearly_all(metric):
    bend = RNG.normal(size=(5, 20))
    X, new = (np.sin(RNG.normal(size=(n, 5)) @ bend).astype(np.float32) for n in (7_000, 200))
    exact = ExactIndex(metric).build(X, 15)
    one, two = (KMeansGraphIndex(metric, random_state=0, n_threads=n).build(X, 15) for n in (1, 2))
    assert (one.indices == two.indices).all()
    assert (one.distances == two.distances).all()
    assert recall(one.indices, exact.indices) > 0.99
    same = one.indices == exact.indices
    assert one.distances[same] == pytest.approx(exact.distances[same], rel=1e-5, abs=1e-7)
    expected = ExactIndex(metric).over(X).query(new, 14)
    found = one.search_index.query(new, 14)
    assert recall(found.indices, expected.indices) > 0.95
    alone = [two.search_index.query(new[i : i + 1], 14) for i in range(9)]
    assert (np.vstack([a.outgoing for a in alone]) == found.outgoing[:9]).all()


@pytest.mark.parametrize("narrow", [True, False])
def test_wide_rows_are_projected_where_that_keeps_neighbours(narrow):
    noise = RNG.normal(size=(4000, 400))
    if narrow:
        X = RNG.normal(size=(4000, 4)) @ RNG.normal(size=(4, 400)) + 0.02 * noise
    else:  # a few places far apart, and noise decides who is near
        X = 2.0 * RNG.normal(size=(20, 400))[RNG.integers(20, size=4000)] + noise
    X = X.astype(np.float32)
    assert (groups.projected(X, 10, np.random.RandomState(0), 1) is not None) == narrow
    found = KMeansGraphIndex(random_state=0).build(X, 11)
    assert recall(found.indices, ExactIndex().build(X, 11).indices) > 0.95


def test_groups_of_copies_are_cut():
    X = np.vstack([np.zeros((9000, 4)), RNG.normal(size=(1000, 4))]).astype(np.float32)
    index = KMeansGraphIndex(random_state=0)
    found = index.build(X, 5)
    assert (found.distances[:9000] == 0).all()
    assert np.diff(index.starts).max() <= 4 * len(X) / (len(X) // 256) + 1
    assert all(len(set(row)) == 5 for row in found.indices)


def test_few_rows_are_one_group():
    X = RNG.normal(size=(40, 3)).astype(np.float32)
    assert (KMeansGraphIndex().build(X, 10).indices == ExactIndex().build(X, 10).indices).all()


def test_groups_refuse_what_they_do_not_know():
    with pytest.raises(ValueError, match="manhattan"):
        KMeansGraphIndex("manhattan").build(RNG.normal(size=(40, 3)), 5)


def test_a_model_with_groups_is_saved_with_its_search(tmp_path):
    import finsler_ext

    X = RNG.normal(size=(700, 6)).astype(np.float32)
    model = finsler_ext.FinslerUMAP(
        metric="cosine", force_approximation_algorithm=True, n_epochs=5, random_state=0
    ).fit(X[:600])
    assert isinstance(model._knn_search_index, KMeansGraphIndex)
    model.save(tmp_path / "model.finsler")
    loaded = finsler_ext.load(tmp_path / "model.finsler")
    for again in (loaded, pickle.loads(pickle.dumps(model))):
        assert (again.transform(X[600:]) == model.transform(X[600:])).all()
