"""New points of FinslerTSNE, as those of FinslerUMAP."""

import pickle

import numpy as np
import pytest
import scipy.sparse

from finsler_ext import FinslerTSNE
from finsler_ext.geometry.randers import randers_distances
from finsler_ext.tsne.gradient import FinslerGradient


def test_training_rows_return_close_to_their_place(tsne_of_digits):
    X, model = tsne_of_digits
    before = np.array(model.embedding_)
    placed = model.transform(X[:200])
    moved = placed - before[:200]
    assert np.median(np.linalg.norm(moved, axis=1)) < 0.02 * before.std(axis=0).max()
    # A held height keeps much of its first answer to the asymmetry, and heights were compared
    # across gaps afterwards: both a little away from where the loss of a single row is lowest.
    assert abs(moved[:, 2].mean()) < 0.1 * before[:, 2].std()
    assert np.array_equal(model.embedding_, before)


def test_new_places_do_not_depend_on_the_batch(tsne_of_digits, digits):
    _, model = tsne_of_digits
    new = digits[0][500:540]
    together = model.transform(new)
    assert np.array_equal(model.transform(new[7:8])[0], together[7])


def test_new_places_by_the_tree_do_not_depend_on_the_batch(digits):
    model = FinslerTSNE(perplexity=10, negative_gradient_method="bh", random_state=0)
    model.set_params(n_iter=100, early_exaggeration_iter=100).fit(digits[0][:1000])
    together = model.transform(digits[0][1000:1030], n_iter=50)
    assert np.array_equal(model.transform(digits[0][1007:1008], n_iter=50)[0], together[7])
    model.embedding_.gradient_descent_params["negative_gradient_method"] = FinslerGradient(
        0.5, "exact"
    )
    exact = model.transform(digits[0][1000:1030], n_iter=50)
    assert np.median(np.linalg.norm(exact - together, axis=1)) < 0.05 * together.std()


@pytest.mark.parametrize("metric", ["correlation", "cosine", "braycurtis"])
def test_metrics_that_know_no_row_of_zeros_place_new_points(few_digits, metric):
    X, _ = few_digits
    model = FinslerTSNE(metric=metric, perplexity=10, n_iter=20, random_state=0).fit(X)
    new = X[:3] + X[5:8]
    assert np.array_equal(model.transform(new)[:1], model.transform(new[:1]))


def test_new_points_land_among_their_kind(tsne_of_digits, digits):
    from sklearn.neighbors import KNeighborsClassifier

    _, model = tsne_of_digits
    placed = model.transform(digits[0][500:800])
    judge = KNeighborsClassifier(5).fit(np.asarray(model.embedding_), digits[1][:500])
    assert judge.score(placed, digits[1][500:800]) > 0.8


def test_transform_by_opentsne_shifts_the_height_no_more_than_a_twin_explains(tsne_of_digits):
    """A row that comes again has itself as a neighbour: its scale is smaller, its height lower."""
    from sklearn.neighbors import NearestNeighbors

    X, model = tsne_of_digits
    embedding = pickle.loads(pickle.dumps(model.embedding_))
    placed = np.asarray(embedding.transform(X[:100]))
    height = np.asarray(embedding)[:, 2]
    rise = (placed[:, 2] - height[:100]).mean()
    slope = np.polyfit(np.log(model.local_scale_), height, 1)[0]
    near = NearestNeighbors(n_neighbors=61).fit(X).kneighbors(X[:100])[0]  # 3 · perplexity + 1
    fall = slope * np.log(near[:, 1:].mean(axis=1) / near[:, :-1].mean(axis=1)).mean()
    assert 0 < fall < 0.25 * height.std()
    assert -fall <= rise < 0.05 * height.std()


@pytest.mark.filterwarnings("ignore:With omega_norm:UserWarning")
@pytest.mark.parametrize("omega_norm", [0.01, 0.5])
def test_new_heights_stay_within_those_of_the_fitted_points(digits, omega_norm):
    """Unbounded, single points left a layer of nearly equal heights by up to 225 deviations."""
    X = digits[0][:900]
    model = FinslerTSNE(omega_norm=omega_norm, height="held", n_iter=250, random_state=0)
    embedding = model.fit(X[:600]).embedding_
    for transform in (model.transform, embedding.transform):  # openTSNE's moves the whole
        placed, fitted = np.asarray(transform(X[600:]))[:, -1], np.asarray(embedding)[:, -1]
        assert fitted.min() <= placed.min()
        assert placed.max() <= fitted.max()
        assert placed.std() > 0.1 * fitted.std()  # not all of them at one bound


@pytest.mark.filterwarnings("ignore:With omega_norm:UserWarning")
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_directed_distances_of_new_points_need_both_directions(form):
    Y = np.random.default_rng(0).normal(size=(130, 3)) * [9, 9, 3]
    D = randers_distances(Y, 0.6)
    model = FinslerTSNE(metric="precomputed", perplexity=10, n_iter=200, random_state=0)
    model.fit(form(D[:110, :110]))
    outgoing, incoming = form(D[110:, :110]), form(D[:110, 110:].T)
    with pytest.raises(ValueError, match="incoming"):
        model.transform(outgoing)
    assert np.isfinite(model.transform(outgoing, incoming=incoming)).all()
    # a fitted row comes back to its place, with no shift along the height
    E, square = np.asarray(model.embedding_), D[:110, :110]
    shift = model.transform(form(square), incoming=form(square.T.copy())) - E
    assert np.median(np.linalg.norm(shift, axis=1)) < 0.25 * E.std()
    assert abs(shift[:, -1].mean()) < 0.1 * E[:, -1].std()
    with pytest.raises(ValueError, match="shape"):
        model.transform(outgoing, incoming=incoming[:3])


@pytest.mark.filterwarnings("ignore:With omega_norm:UserWarning")
def test_new_points_need_a_scale_where_the_old_ones_had_one():
    X = np.random.default_rng(0).normal(size=(160, 4))
    scale = np.exp(X[:, 0])
    model = FinslerTSNE(perplexity=10, n_iter=100, local_scale=scale[:130], random_state=0)
    model.fit(X[:130])
    with pytest.raises(ValueError, match="local_scale"):
        model.transform(X[130:])
    placed = model.transform(X[130:], local_scale=scale[130:])
    alone = model.transform(X[140:141], local_scale=scale[140:141])
    assert np.array_equal(placed[10], alone[0])
    other = model.transform(X[130:], local_scale=scale[130:][::-1])
    assert not np.allclose(other, placed)
