"""FinslerMDS: where new points go."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from finsler_ext import FinslerMDS
from finsler_ext.mds.transform import constructed_distances, place_points
from tests.mds_data import IGNORED, disk, drifted

pytestmark = IGNORED


def test_training_points_keep_their_place():
    X, _ = disk(300)
    model = FinslerMDS().fit(X)
    shift = model.transform(X) - model.embedding_
    assert np.abs(shift).max() < 0.01
    assert abs(shift[:, -1].mean()) < 0.01 * model.embedding_[:, -1].std()


def test_new_points_get_the_height_they_would_have_had():
    X, radius = disk(600)
    model = FinslerMDS().fit(X[:500])
    placed = model.transform(X[500:])
    whole = FinslerMDS().fit(X).embedding_
    expected = whole[500:, -1]
    assert spearmanr(placed[:, -1], radius[500:]).statistic > 0.9
    # no shift along the drift
    assert abs((placed[:, -1] - expected).mean()) < 0.2 * expected.std()
    one_by_one = np.vstack([model.transform(x[None]) for x in X[500:510]])
    assert np.array_equal(one_by_one, placed[:10])


def test_new_points_by_given_distances():
    Y, D = drifted(n=120, omega=0.4)
    model = FinslerMDS(metric="precomputed", omega_norm=0.4, eps=1e-10, max_iter=3000)
    model.fit(D[:100, :100])
    turned = model.transform(D[100:, :100], incoming=D[:100, 100:].T)
    unknown = np.full((20, 100), np.nan)
    outgoing_alone = model.transform(D[100:, :100], incoming=unknown)
    with pytest.raises(ValueError, match="incoming: the model was fitted to directed distances"):
        model.transform(D[100:, :100])
    assert outgoing_alone == pytest.approx(turned, abs=0.02)
    heights = Y[100:, -1] - Y[:100, -1].mean()
    assert turned[:, -1] == pytest.approx(heights, abs=0.02)
    with pytest.raises(ValueError, match="incoming must have the shape"):
        model.transform(D[100:, :100], incoming=D[:100, 100:])
    one_lost = np.where(np.arange(2)[:, None] == 1, np.inf, D[100:102, :100])
    with pytest.raises(ValueError, match="New point 1 has no known distance"):
        model.transform(one_lost, incoming=unknown[:2])


@pytest.mark.parametrize("compiled", [False, True])
def test_fit_and_transform_call_a_metric_with_the_same_keywords(compiled):
    from numba import njit

    def scaled(x, y, a=1.0, b=1.0):
        return a * abs(x[0] - y[0]) + b * abs(x[1] - y[1])

    X = np.random.default_rng(0).normal(size=(80, 2))
    metric = njit(scaled) if compiled else scaled
    model = FinslerMDS(metric=metric, metric_params={"b": 3.0}, n_neighbors=8).fit(X)
    stretched = FinslerMDS(metric="manhattan", n_neighbors=8).fit(X * [1, 3])
    assert model.dissimilarity_matrix_ == pytest.approx(stretched.dissimilarity_matrix_, rel=1e-4)
    new = np.random.default_rng(1).normal(size=(5, 2))
    moved = model.transform(new)
    # the same distances, so the same places relative to the training points
    placed = place_points(
        model.embedding_,
        *constructed_distances(stretched, new * [1, 3], None, None)[1:],
        0.5,
        skew_weight=model.skew_weight_,
    )
    assert moved == pytest.approx(placed, abs=1e-3)
