"""Pinned points stay, bit for bit, and the others are laid out around them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import finsler_ext
from finsler_ext import FinslerTSNE, FinslerUMAP
from finsler_ext.height.start import follow_pins, keep_pins, on_pins, read_pins
from finsler_ext.metrics import neighborhood_preservation
from finsler_ext.neighbors.exact import exact_neighbors

N = 150
NAN = np.nan
HEIGHTS = ("held", "nested", "potential", "free")


def umap(**options):
    return FinslerUMAP(random_state=0, n_epochs=30, **options)


def tsne(**options):
    return FinslerTSNE(
        random_state=0, n_iter=20, early_exaggeration_iter=20, perplexity=10, **options
    )


@pytest.fixture(scope="module")
def X(few_digits):
    return few_digits[0][:N]


@pytest.fixture(scope="module")
def pins(X):
    """Some maps and heights of another layout, elsewhere; some rows have the map alone."""
    places = umap().set_params(random_state=5).fit(X).embedding_.astype(np.float64)
    places = 1.5 * places[:, [1, 0, 2]] + [30, -5, 3]
    places[50:] = NAN
    places[40:50, 2] = NAN
    return places


def kept(embedding, pins):
    fixed = np.isfinite(pins)
    dtype = np.asarray(embedding).dtype
    return (np.asarray(embedding)[fixed] == pins[fixed].astype(dtype)).all()


@pytest.mark.parametrize("height", HEIGHTS)
@pytest.mark.parametrize("make", [umap, tsne])
def test_pins_are_kept_bit_for_bit(make, height, X, pins):
    model = make(height=height).fit(X, pinned=pins)
    embedding = np.asarray(model.embedding_)
    assert np.isfinite(embedding).all()
    assert kept(embedding, pins)
    assert model.height_ == height
    # the others have moved, and lie around the pins
    assert np.abs(embedding[50:].mean(axis=0) - np.nanmean(pins, axis=0))[:2].max() < 10


@pytest.mark.parametrize("make", [umap, tsne])
@pytest.mark.parametrize(
    "options", [{"omega_norm": 0.0}, {"omega_norm": "auto"}, {"n_components": 2}]
)
def test_pins_of_the_map_at_any_drift(make, options, X, pins):
    model = make(**options)
    given = pins[:, : model.n_components - 1]
    embedding = np.asarray(model.fit(X, pinned=given).embedding_)
    assert kept(embedding[:, : given.shape[1]], given)


def test_the_number_of_threads_changes_nothing(X, pins):
    one, two = (umap(n_jobs=k).fit(X, pinned=pins).embedding_ for k in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_pins_with_a_start_of_ones_own_and_after_every_epoch(X, pins):
    start = np.random.default_rng(0).normal(size=(N, 3))
    seen = []
    model = umap(init=start)
    model.fit(X, pinned=pins, callback=lambda epoch, places: seen.append(kept(places, pins)))
    assert all(seen)
    assert kept(model.embedding_, pins)
    lists = umap().set_params(n_epochs=[0, 10, 30]).fit(X, pinned=pins[:, :2])
    assert all(kept(part[:, :2], pins[:, :2]) for part in lists.embedding_list_)
    assert kept(tsne(initialization=start).fit(X, pinned=pins).embedding_, pins)


def test_a_layout_pinned_to_its_own_places_is_as_good(few_digits):
    X = few_digits[0]
    neighbors = exact_neighbors(X, 16).indices[:, 1:16]
    free = FinslerUMAP(random_state=0, n_epochs=100).fit(X).embedding_
    pinned = np.where(np.arange(len(X))[:, None] % 2, free, NAN)
    again = FinslerUMAP(random_state=1, n_epochs=100).fit(X, pinned=pinned).embedding_
    scores = [neighborhood_preservation(neighbors, Y) for Y in (free, again)]
    assert scores[1] > scores[0] - 0.03


def test_update_keeps_pins_or_all_old_points(X, pins):
    model = umap().fit(X[:120], pinned=pins[:120])
    model.update(X[120:])
    assert kept(model.embedding_, pins)
    assert model.pinned_.shape == (N, 3)
    free = umap().fit(X[:120])
    before = free.embedding_.copy()
    free.update(X[120:], pinned="old")
    np.testing.assert_array_equal(free.embedding_[:120], before)
    assert np.isfinite(free.embedding_[120:]).all()
    with pytest.raises(ValueError, match="pinned must be 'old' or an array"):
        free.update(X[:3], pinned="new")


@pytest.mark.parametrize("make", [umap, tsne])
def test_a_file_keeps_pins(make, X, pins, tmp_path):
    model = make().fit(X, pinned=pins)
    model.save(tmp_path / "model.finsler")
    loaded = finsler_ext.load(tmp_path / "model.finsler")
    np.testing.assert_array_equal(loaded.pinned_, pins)
    np.testing.assert_array_equal(np.asarray(loaded.embedding_), np.asarray(model.embedding_))
    np.testing.assert_array_equal(loaded.transform(X[:3] + 0.5), model.transform(X[:3] + 0.5))


@pytest.mark.parametrize("make", [umap, tsne])
def test_nodes_of_a_digraph_are_pinned_by_name(make):
    rng = np.random.default_rng(0)
    names = np.array([f"n{i}" for i in range(60)])
    i, j = np.sort(rng.integers(60, size=(2, 400)), axis=0)
    edges = pd.DataFrame({"from": names[i], "to": names[j], "distance": 1.0})[i < j]
    places = pd.DataFrame([[5.0, 5.0, 2.0], [-5.0, 0.0, NAN]], index=["n7", "n30"])
    model = make(metric="precomputed").fit(edges, pinned=places)
    row = {name: k for k, name in enumerate(model.node_names_)}
    embedding = np.asarray(model.embedding_)
    np.testing.assert_array_equal(embedding[row["n7"]], [5, 5, 2])
    np.testing.assert_array_equal(embedding[row["n30"], :2], [-5, 0])
    with pytest.raises(ValueError, match="there is no point named 'n99'"):
        make(metric="precomputed").fit(edges, pinned=places.rename({"n7": "n99"}))


@pytest.mark.filterwarnings("ignore:A few of your vertices")
def test_a_point_without_neighbours_has_the_place_it_was_given():
    D = np.full((40, 40), np.inf)
    D[:39, :39] = np.random.default_rng(0).uniform(1, 2, size=(39, 39))
    np.fill_diagonal(D, 0)
    pins = np.full((40, 3), NAN)
    pins[[3, 39]] = [[1, 2, 3], [4, 5, 6]]
    embedding = umap(metric="precomputed").fit(D, pinned=pins).embedding_
    np.testing.assert_array_equal(embedding[[3, 39]], pins[[3, 39]])


def test_what_follows_pins_solves_the_laplace_equation():
    rng = np.random.default_rng(0)
    graph = np.where(rng.uniform(size=(12, 12)) < 0.4, rng.uniform(size=(12, 12)), 0.0)
    values = rng.normal(size=12)
    pins = np.full(12, NAN)
    pins[[2, 7]] = 4.0, -1.0
    found = follow_pins(values, pins, scipy.sparse.csr_array(graph))
    springs = graph + graph.T
    laplacian = np.diag(springs.sum(axis=1)) - springs
    change = found - values
    np.testing.assert_allclose(found[[2, 7]], [4, -1])
    np.testing.assert_allclose(np.delete(laplacian @ change, [2, 7]), 0, atol=1e-3)


def test_a_start_is_moved_onto_pins_by_a_similarity():
    rng = np.random.default_rng(0)
    start = rng.normal(size=(30, 2)).astype(np.float32)
    turn = np.array([[0.6, 0.8], [0.8, -0.6]])
    goal = 3.0 * start @ turn + [10, 20]
    pins = np.where(np.arange(30)[:, None] < 5, goal, NAN)
    graph = scipy.sparse.csr_array(np.ones((30, 30)))
    np.testing.assert_allclose(on_pins(start, pins, graph), goal, atol=1e-4)
    one = np.where(np.arange(30)[:, None] < 1, goal, NAN)
    np.testing.assert_allclose(on_pins(start, one, graph), start - start[0] + goal[0], atol=1e-4)


@pytest.mark.parametrize(
    ("pinned", "words"),
    [
        (np.zeros((5, 3)), r"one row per point \(150\)"),
        (np.zeros((N, 4)), r"2 columns \(the map\) or 3"),
        (np.full((N, 3), np.inf), "infinity"),
        ([["a", "b"]] * N, "must hold numbers"),
    ],
)
@pytest.mark.parametrize("make", [umap, tsne])
def test_wrong_pins_are_named(make, pinned, words, X):
    with pytest.raises(ValueError, match=words):
        make().fit(X, pinned=pinned)


def test_no_pins_at_all_change_nothing(X):
    assert read_pins(np.full((4, 2), NAN), 4, 3) is None
    assert keep_pins(X, None) is X
    free, pinned = umap().fit(X), umap().fit(X, pinned=np.full((N, 3), NAN))
    np.testing.assert_array_equal(free.embedding_, pinned.embedding_)
    with pytest.raises(ValueError, match="unique"):
        umap(unique=True).fit(X, pinned=np.zeros((N, 3)))
