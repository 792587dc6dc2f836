"""New distances of all estimators: names decide, and what is no distance is refused."""

import numpy as np
import pandas as pd
import pytest

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
    with pytest.raises(ValueError, match="from a point to itself must be 0"):
        MODELS[method].fit(D)
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
