"""New distances of all estimators: names decide, and what is no distance is refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
NAMES = [f"p{i}" for i in range(12)]
MODELS = {
    "umap": FinslerUMAP(metric="precomputed", n_epochs=10, n_neighbors=4, random_state=0),
    "tsne": FinslerTSNE(
        metric="precomputed", perplexity=3, n_iter=5, early_exaggeration_iter=5, random_state=0
    ),
    "mds": FinslerMDS(metric="precomputed", max_iter=5, random_state=0),
}


def directed():
    rng = np.random.default_rng(0)
    P = rng.normal(size=(12, 2))
    D = np.linalg.norm(P[:, None] - P, axis=2) * (1 + 0.2 * rng.random((12, 12)))
    np.fill_diagonal(D, 0)
    return D


FRAME = pd.DataFrame(directed(), index=NAMES, columns=NAMES)
NEW, BACK = FRAME.iloc[:3] + 0.1, FRAME.T.iloc[:3] + 0.1


@pytest.mark.parametrize("method", MODELS)
@pytest.mark.parametrize("container", ["frame", "edges"])
def test_columns_in_another_order_are_refused(method, container):
    data = FRAME
    if container == "edges":
        source, target = np.nonzero(~np.eye(12, dtype=bool))
        lengths = FRAME.to_numpy()[source, target]
        data = {"source": [NAMES[i] for i in source], "target": [NAMES[i] for i in target]}
        data["length"] = lengths
    model = MODELS[method].fit(data)
    order = list(model.node_names_)
    dense = container == "frame" or method == "mds"
    if dense:
        model.transform(NEW[order], incoming=BACK[order])
    for X, incoming in ((NEW[order], BACK[order[::-1]]), (NEW[order[::-1]], BACK[order])):
        with pytest.raises(ValueError, match="feature names should match"):
            model.transform(X, incoming=incoming)


@pytest.mark.parametrize("method", MODELS)
def test_minus_infinity_is_not_unknown(method):
    D = directed()
    D[0, 1] = -np.inf
    with pytest.raises(ValueError, match="−inf"):
        MODELS[method].fit(D)


@pytest.mark.parametrize("method", MODELS)
def test_points_are_at_no_distance_from_themselves(method):
    D = directed()
    np.fill_diagonal(D, 3.0)
    for form in (np.asarray, scipy.sparse.csr_array):
        with pytest.raises(ValueError, match="from a point to itself must be 0"):
            MODELS[method].fit(form(D))
    np.fill_diagonal(D, np.nan)
    MODELS[method].fit(D)


@pytest.mark.parametrize("method", MODELS)
def test_columns_of_different_lengths(method):
    edges = {"source": ["a", "b"], "target": ["b"], "weight": [1.0, 2.0, 3.0]}
    with pytest.raises(ValueError, match="different lengths"):
        MODELS[method].fit(edges)


def test_isolated_points_of_tsne_are_named():
    D = directed()
    D[3] = D[:, 3] = np.inf
    D[3, 3] = 0
    with pytest.warns(UserWarning, match="1 points have no neighbours, the first is row 3"):
        MODELS["tsne"].fit(D)


@pytest.mark.parametrize("estimator", [FinslerUMAP, FinslerTSNE, FinslerMDS])
@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, np.ndarray.tolist])
def test_integers_that_floats_do_not_hold(estimator, container):
    rows = np.random.default_rng(0).integers(0, 50, size=(30, 3))
    with pytest.raises(ValueError, match="beyond 2⁵³"):
        estimator().fit(container(rows + 2**60))
    with pytest.raises(ValueError, match="beyond 2⁵³"):
        estimator().fit(container(rows - 2**60))


def stored(D):
    """Sparse; pairs that are inf are absent, zeros are not."""
    known = np.nonzero(np.isfinite(D))
    return scipy.sparse.csr_array((D[known], known), shape=D.shape)


@pytest.mark.parametrize("method", MODELS)
@pytest.mark.parametrize("fitted", [np.asarray, stored])
def test_how_new_distances_are_stored_does_not_matter(method, fitted):
    """What a sparse matrix does not store is unknown, and not 0."""
    D, new, back = directed(), NEW.to_numpy(copy=True), BACK.to_numpy(copy=True)
    D[0, 5] = D[7, 2] = new[0, 1] = new[1, 7:] = back[2, 3] = np.inf
    new[2, 4] = 0.0
    model = MODELS[method].fit(fitted(D))
    np.testing.assert_array_equal(
        model.transform(new, incoming=back), model.transform(stored(new), incoming=stored(back))
    )


@pytest.mark.parametrize("method", MODELS)
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, lambda D: D.astype(object)])
def test_new_distances_are_not_negative(method, form):
    model = MODELS[method].fit(directed())
    there, back = NEW.to_numpy(copy=True), BACK.to_numpy(copy=True)
    for X, incoming in ((-there, back), (there, -back)):
        with pytest.raises(ValueError, match="must not be negative"):
            model.transform(form(X), incoming=form(incoming))


@pytest.mark.parametrize("method", MODELS)
def test_rows_of_both_directions_have_the_same_names(method):
    model = MODELS[method].fit(FRAME)
    wanted = model.transform(NEW, incoming=BACK)
    with pytest.raises(ValueError, match=r"its rows are not named as those of X"):
        model.transform(NEW, incoming=BACK.iloc[::-1])
    unnamed = BACK.reset_index(drop=True)
    np.testing.assert_array_equal(model.transform(NEW, incoming=unnamed), wanted)


@pytest.mark.parametrize("method", MODELS)
def test_new_points_without_a_known_distance(method):
    model = MODELS[method].fit(directed())
    new, back = NEW.to_numpy(copy=True), BACK.to_numpy(copy=True)
    new[1] = back[1] = np.nan
    if method == "umap":
        with pytest.warns(UserWarning, match="1 new rows have no neighbours .* is row 1"):
            placed = model.transform(new, incoming=back)
        assert np.isnan(placed[1]).all()
        assert np.isfinite(placed[[0, 2]]).all()
    else:
        with pytest.raises(ValueError, match="New point 1 has no known distance"):
            model.transform(new, incoming=back)


@pytest.mark.parametrize("method", MODELS)
@pytest.mark.parametrize("length", [2j, "far"])
def test_lengths_of_edges_are_numbers(method, length):
    edges = [("a", "b", 1.0), ("b", "c", length), ("c", "a", 2.0)]
    with pytest.raises(ValueError, match="lengths of edges as numbers"):
        MODELS[method].fit(edges)


@pytest.mark.parametrize("method", MODELS)
def test_every_edge_has_two_named_ends(method):
    with pytest.raises(ValueError, match="Edge 2 has '' as 'source'"):
        MODELS[method].fit({"source": ["a", "", "b"], "target": ["b", "c", "a"]})


@pytest.mark.parametrize("estimator", [FinslerUMAP, FinslerTSNE, FinslerMDS])
def test_dates_are_no_features(estimator):
    days = pd.date_range("2026-01-01", periods=30)
    for rows in (days.to_numpy()[:, None], pd.DataFrame({"x": np.arange(30.0), "day": days})):
        with pytest.raises(ValueError, match="dates or durations"):
            estimator().fit(rows)
