"""transform and update: where new rows go."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse
from numba import njit
from scipy.stats import spearmanr
from sklearn.datasets import make_blobs
from sklearn.neighbors import NearestNeighbors

from benchmarks.data.digraphs import planted_digraph
from finsler_ext import FinslerUMAP
from finsler_ext.geometry.randers import randers_distances
from finsler_ext.io import load
from finsler_ext.umap.graph import new_memberships
from tests.models import SMALL_DRIFT_WARNING, quick

pytestmark = pytest.mark.filterwarnings(SMALL_DRIFT_WARNING)
# So little that neighbours and scales stay, and enough not to be recognised as a training row.
NEARLY = np.float32(1 + 1e-5)


@pytest.fixture(scope="module")
def model(few_digits):
    return quick(n_epochs=200).fit(few_digits[0])


# ------------------------------------------------------------------ transform


@pytest.fixture(scope="module")
def placed(digits):
    """From a drift to a model of 600 digits, and where nearly the same rows are placed."""
    X = digits[0][:600].astype(np.float32)

    @cache
    def placed_at(omega, height="auto"):
        model = FinslerUMAP(omega_norm=omega, height=height, random_state=0).fit(X)
        return X, model, model.transform(X * NEARLY)

    return placed_at


@pytest.mark.parametrize("omega", [0.0, 0.3, 0.6, 0.9])
def test_nearly_training_rows_come_back_to_their_place(placed, omega):
    _, model, places = placed(omega)
    shift = places - model.embedding_
    nearest = NearestNeighbors(n_neighbors=1).fit(model.embedding_).kneighbors()[0]
    assert np.median(np.linalg.norm(shift, axis=1)) < np.median(nearest)
    expected = 0.0
    if omega:  # its twin is one of its neighbours and makes its scale a little smaller
        others = model._knn_dists[:, 1:]
        smaller = np.log(others[:, :-1].sum(axis=1)) - np.log(others.sum(axis=1))
        expected = model.islands_.slope * smaller.mean()
    spread = 0.05 * model.embedding_[:, -1].std()
    assert expected - spread < shift[:, -1].mean() < spread


def test_edges_of_one_direction_would_slide_along_the_drift(placed, monkeypatch):
    X, model, places = placed(0.6, "nested")
    both = places - model.embedding_

    def outgoing_only(*args, **kwds):
        out, into = true_memberships(*args, **kwds)
        return out, np.zeros_like(into)

    true_memberships = new_memberships
    monkeypatch.setattr("finsler_ext.umap.transform.new_memberships", outgoing_only)
    one = model.transform(X * NEARLY) - model.embedding_
    assert abs(one[:, -1].mean()) > 10 * abs(both[:, -1].mean())


def test_training_rows_return_their_embedding(few_digits, model):
    X, _ = few_digits
    some = [5, 3, 180]
    assert np.array_equal(model.transform(X[some]), model.embedding_[some])
    assert np.array_equal(model.transform(X), model.embedding_)
    assert np.array_equal(quick(n_epochs=200).fit_transform(X), model.transform(X))


@pytest.mark.parametrize("kind", ["dense", "sparse", "manhattan", "many"])
def test_a_row_alone_and_among_others_is_the_same(digits, kind):
    n = 4200 if kind == "many" else 200
    X = np.random.default_rng(1).normal(size=(n + 40, 6)).astype(np.float32)
    X = scipy.sparse.csr_matrix(np.where(X > 0, X, 0)) if kind == "sparse" else X
    metric = "manhattan" if kind == "manhattan" else "euclidean"
    model = quick(n_epochs=12, metric=metric).fit(X[:n])
    together = model.transform(X[n:])
    rows = [model.transform(X[i : i + 1])[0] for i in range(n, n + 40, 7)]
    assert np.array_equal(together[::7], rows)
    shuffled = np.random.default_rng(2).permutation(40)
    assert np.array_equal(model.transform(X[n:][shuffled]), together[shuffled])
    assert np.array_equal(
        quick(n_epochs=12, metric=metric, n_jobs=1).fit(X[:n]).transform(X[n:]), together
    )


def test_sparse_and_dense_agree(digits):
    X = digits[0][:400].astype(np.float32)
    dense = quick().fit(X[:300])
    dense_new = dense.transform(X[300:])
    dense._raw_data = scipy.sparse.csr_matrix(dense._raw_data)
    from umap.sparse import sparse_named_distances

    dense._input_distance_func = sparse_named_distances["euclidean"]
    np.testing.assert_allclose(
        dense.transform(scipy.sparse.csr_matrix(X[300:])), dense_new, atol=1e-2
    )


def test_the_height_of_new_points_follows_their_density():
    rng = np.random.default_rng(0)
    radius = rng.uniform(size=900)  # density falls as 1/radius
    angle = rng.uniform(0, 2 * np.pi, size=900)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    model = FinslerUMAP(random_state=0).fit(X[:600])
    new = model.transform(X[600:])
    old = np.corrcoef(model.embedding_[:, -1], radius[:600])[0, 1]
    assert np.corrcoef(new[:, -1], radius[600:])[0, 1] > old - 0.1


@pytest.mark.parametrize("affinity", ["harmonic", "fuzzy_union"])
def test_symmetric_controls_transform(few_digits, affinity):
    X, _ = few_digits
    model = quick(affinity=affinity, n_epochs=200).fit(X)
    shift = np.linalg.norm(model.transform(X * NEARLY) - model.embedding_, axis=1)
    assert np.median(shift) < 0.5


def test_geodesic_models_transform(few_digits):
    X, _ = few_digits
    model = quick(n_epochs=200, geodesic_neighbors=40).fit(X)
    shift = np.linalg.norm(model.transform(X * NEARLY) - model.embedding_, axis=1)
    assert np.median(shift) < 0.5


def test_graph_mode_gives_memberships_of_new_points(few_digits):
    X, _ = few_digits
    model = quick(transform_mode="graph").fit(X)
    graph = model.transform(np.vstack([X[:3], X[:2] * NEARLY]))
    assert graph.shape == (5, 200)
    assert (graph[:3] != model.graph_[:3]).nnz == 0
    assert graph[3, 0] == 1.0
    assert graph[3].sum() == pytest.approx(np.log2(15), abs=1e-3)


def test_unique_models_transform(few_digits):
    X = np.vstack([few_digits[0][:100], few_digits[0][:100]])
    model = quick(unique=True).fit(X)
    assert np.array_equal(model.transform(X), model.embedding_)
    assert np.isfinite(model.transform(X[:5] + 1)).all()


def test_asymmetric_metrics_are_asked_in_both_directions():
    @njit
    def uphill(x, y):
        step = y[0] - x[0]
        total = abs(step) + 0.8 * step
        for c in range(1, x.shape[0]):
            total += abs(y[c] - x[c])
        return total

    X = np.random.default_rng(0).normal(size=(330, 3)).astype(np.float32)
    model = quick(metric=uphill, n_epochs=200).fit(X[:300])
    shift = model.transform(X[:300] * NEARLY) - model.embedding_
    assert abs(np.median(shift[:, -1])) < 0.05
    together = model.transform(X[300:])
    assert np.array_equal(model.transform(X[307:308])[0], together[7])


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_directed_distances_need_both_directions(form):
    Y = np.random.default_rng(0).normal(size=(240, 3)) * [3, 3, 1]
    D = randers_distances(Y, 0.6).astype(np.float32)
    model = quick(metric="precomputed", n_epochs=200).fit(form(D[:200, :200]))
    outgoing, incoming = form(D[200:, :200]), form(D[:200, 200:].T)
    with pytest.raises(ValueError, match="incoming"):
        model.transform(outgoing)
    new = model.transform(outgoing, incoming=incoming)
    assert np.corrcoef(new[:, -1], Y[200:, -1])[0, 1] > 0.5
    assert np.array_equal(model.transform(form(D[:200, :200])), model.embedding_)
    with pytest.raises(ValueError, match="shape"):
        model.transform(outgoing, incoming=incoming[:3])
    with pytest.raises(ValueError, match="negative"):
        model.transform(-outgoing, incoming=incoming)


def test_symmetric_distances_need_one_direction_only(few_digits):
    D = randers_distances(few_digits[0], 0.0).astype(np.float32)
    D = np.minimum(D, D.T)
    model = quick(metric="precomputed").fit(D[:150, :150])
    new = D[150:, :150]
    assert np.array_equal(model.transform(new), model.transform(new, incoming=new))


def test_new_points_need_a_scale_where_the_old_ones_had_one(few_digits):
    X, _ = few_digits
    scale = np.random.default_rng(0).uniform(1, 2, size=200)
    model = quick(local_scale=scale[:150]).fit(X[:150])
    with pytest.raises(ValueError, match="local_scale"):
        model.transform(X[150:])
    with pytest.raises(ValueError, match="shape"):
        model.transform(X[150:], local_scale=scale)
    whole = model.transform(X[150:], local_scale=scale[150:])
    alone = model.transform(X[160:161], local_scale=scale[160:161])
    assert np.array_equal(whole[10], alone[0])
    assert np.array_equal(model.transform(X[:150]), model.embedding_)
    with pytest.raises(ValueError, match="without one"):
        quick().fit(X).transform(X + 1, local_scale=scale)


@pytest.mark.filterwarnings("ignore:A few of your vertices")
def test_points_far_from_everything_have_no_place(few_digits):
    X, _ = few_digits
    model = quick(disconnection_distance=60.0).fit(X)
    with pytest.warns(UserWarning, match=r"1 new rows have no neighbours .* is row 1"):
        new = model.transform(np.vstack([X[:1] + 1, X[:1] + 1000]))
    assert np.isfinite(new[0]).all()
    assert np.isnan(new[1]).all()


def test_what_transform_refuses(few_digits, model):
    X, _ = few_digits
    with pytest.raises(ValueError, match="63 features"):
        model.transform(X[:, 1:])
    with pytest.raises(ValueError, match="NaN"):
        model.transform(np.full((1, 64), np.nan))
    with pytest.raises(ValueError, match="more than one point"):
        quick().fit(X[:1]).transform(X[1:2])
    with pytest.raises(ValueError, match="not fitted"):
        quick().transform(X)
    with pytest.raises(ValueError, match="precomputed"):
        model.transform(X + 1, incoming=X)


# ------------------------------------------------------------------ update


def test_update_adds_rows_and_keeps_the_map():
    X, y = make_blobs(500, centers=5, n_features=10, random_state=0)
    X = X.astype(np.float32)
    model = FinslerUMAP(random_state=0).fit(X[:400])
    before = model.embedding_[:, :2]
    assert model.update(X[400:]) is model
    assert model.embedding_.shape == (500, 3)
    assert model.graph_.shape == (500, 500)
    distances = NearestNeighbors(n_neighbors=5).fit(model.embedding_[:400])
    near = distances.kneighbors(model.embedding_[400:], return_distance=False)
    assert np.mean(y[near] == y[400:, None]) > 0.99
    after = model.embedding_[:400, :2]

    def centres(Z):
        Z = np.array([Z[y[:400] == c].mean(axis=0) for c in range(5)])
        return Z - Z.mean(axis=0)

    assert np.corrcoef(centres(before).ravel(), centres(after).ravel())[0, 1] > 0.9
    assert np.array_equal(model.transform(X), model.embedding_)


def test_update_is_the_graph_of_a_fit_to_all_rows(few_digits):
    X, _ = few_digits
    model = quick(n_epochs=None).fit(X[:150]).update(X[150:])
    whole = quick().fit(X)
    assert abs(model.graph_ - whole.graph_).max() == 0
    assert np.array_equal(model.local_scale_, whole.local_scale_)
    scale = np.linspace(1, 2, 200)
    model = quick(local_scale=scale[:150]).fit(X[:150]).update(X[150:], local_scale=scale[150:])
    assert np.array_equal(model.local_scale_, scale)
    assert model.local_scale.shape == (150,)
    sparse = scipy.sparse.csr_matrix(X)
    assert quick().fit(sparse[:150]).update(sparse[150:]).embedding_.shape == (200, 3)


def test_update_of_a_graph_is_the_graph_of_all_rows(few_digits):
    X, _ = few_digits
    model = quick(transform_mode="graph").fit(X[:150]).update(X[150:])
    assert abs(model.graph_ - quick(transform_mode="graph").fit(X).graph_).max() == 0
    assert not hasattr(model, "embedding_")


def test_update_crosses_from_exact_to_approximate_search():
    X = np.random.default_rng(0).normal(size=(4200, 5)).astype(np.float32)
    model = quick(n_epochs=6).fit(X[:4000]).update(X[4000:])
    placed = model.transform(X[:3] + 0.01)
    spread = np.linalg.norm(model.embedding_ - model.embedding_.mean(axis=0), axis=1).mean()
    assert np.linalg.norm(placed - model.embedding_[:3], axis=1).max() < 0.5 * spread


def test_an_interrupted_update_leaves_the_model_as_it_was(few_digits, monkeypatch):
    X, _ = few_digits
    model = quick().fit(X[:150])
    before = model.embedding_.copy(), model.graph_.copy()

    def interrupted(*args, **kwds):
        raise KeyboardInterrupt

    monkeypatch.setattr("finsler_ext.umap.layout.lay_out", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.update(X[150:])
    assert np.array_equal(model.embedding_, before[0])
    assert (model.graph_ != before[1]).nnz == 0
    assert model._raw_data.shape[0] == 150


def test_what_update_refuses(few_digits):
    X, y = few_digits
    with pytest.raises(ValueError, match="supervised"):
        quick().fit(X, y).update(X)
    D = randers_distances(X[:50], 0.0)
    with pytest.raises(ValueError, match="precomputed"):
        quick(metric="precomputed").fit(D).update(D)


@pytest.mark.parametrize("height", ["auto", "potential", "nested", "free"])
@pytest.mark.parametrize("omega", [0.0, 0.01, 0.5, 0.9])
def test_new_heights_lie_within_those_of_the_training_rows(digits, height, omega):
    X = digits[0]
    model = FinslerUMAP(omega_norm=omega, height=height, n_epochs=60, random_state=0).fit(X[:500])
    new = model.transform(X[500:600] + np.linspace(0, 40, 100)[:, None])[:, -1]
    old = model.embedding_[:, -1]
    assert old.min() <= new.min()
    assert new.max() <= old.max()


@pytest.mark.parametrize("height", ["potential", "held"])
def test_new_heights_follow_the_law_of_the_fit(digits, height):
    """Height against log scale: rows held out lie on the line of the training rows."""
    X = digits[0]
    model = FinslerUMAP(omega_norm=0.5, height=height, random_state=0).fit(X[:1000])
    new = model.transform(X[1000:])[:, -1]
    scale, _ = NearestNeighbors(n_neighbors=14).fit(X[:1000]).kneighbors(X[1000:])
    level = np.log(scale.mean(axis=1))
    assert spearmanr(new, level).statistic > 0.85
    line = np.polyfit(model.potential_, model.embedding_[:, -1], 1)
    inside = (level > model.potential_.min()) & (level < model.potential_.max())
    rest = new[inside] - np.polyval(line, level[inside])
    assert rest.std() < 0.6 * model.embedding_[:, -1].std()


def test_new_nodes_of_a_digraph_stand_where_its_potential_puts_them():
    """One node less: its height is β times the potential that it has in the whole graph."""
    graph, _ = planted_digraph(150, 8, noise=0.1, seed=5)
    dense = np.where(graph.toarray() > 0, graph.toarray(), np.inf)
    keep = np.arange(140)
    model = quick(metric="precomputed").fit(dense[np.ix_(keep, keep)])
    assert model.height_ == "potential"
    new = model.transform(dense[140:, :140], incoming=dense[:140, 140:].T)
    whole = quick(metric="precomputed").fit(dense)
    assert np.isfinite(new).all()
    assert spearmanr(new[:, -1], whole.potential_[140:]).statistic > 0.8


@pytest.mark.parametrize("height", ["potential", "held", "nested", "free"])
def test_update_and_saved_models_keep_the_mode(few_digits, tmp_path, height):
    X, _ = few_digits
    model = quick(height=height).fit(X[:150])
    model.save(tmp_path / "model.zip")
    loaded = load(tmp_path / "model.zip")
    assert loaded.height_ == height
    assert np.array_equal(loaded.transform(X[150:]), model.transform(X[150:]))
    model.update(X[150:])
    assert model.height_ == height
    assert model.embedding_.shape == (200, 3)
    assert len(model.potential_) == 200
