"""Features that a column was made of come first; noise does not; results repeat."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from benchmarks.explain import N_DRIVERS, planted_digraph, planted_features
from finsler_ext import FinslerUMAP
from finsler_ext.explain import _left_out_errors, _ridge_slopes, explain


class Fitted:
    """What `explain` reads of a model."""

    def __init__(self, embedding, potential=None, node_names=None):
        self.embedding_ = embedding
        self.potential_ = embedding[:, -1] if potential is None else potential
        self.node_names_ = node_names


@pytest.fixture(scope="module")
def planted():
    X, order = planted_features(0)
    rng = np.random.default_rng(0)
    return X, Fitted(np.column_stack([rng.normal(size=(len(X), 2)), order]))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_planted_drivers_come_first(seed, noise):
    X, order = planted_features(seed)
    rng = np.random.default_rng(seed)
    seen = X + noise * X.std(axis=0) * rng.normal(size=X.shape)
    model = Fitted(np.column_stack([X[:, :2], order]))
    found = explain(model, seen, n_draws=5)
    assert np.mean(found.order[:N_DRIVERS] < N_DRIVERS) >= 0.8
    assert found.explained > 0.4
    if not noise:
        assert set(found.order[:N_DRIVERS]) == set(range(N_DRIVERS))
        assert (found.stability[:N_DRIVERS] == 1).all()
        np.testing.assert_array_equal(np.sign(found.direction[:4]), [1, -1, 1, 1])


def test_drivers_of_a_fitted_height_and_of_a_digraph():
    X, order = planted_features(1)
    model = FinslerUMAP(local_scale=np.exp(order), random_state=0, n_epochs=100).fit(X)
    assert np.mean(explain(model, X, n_draws=5).order[:N_DRIVERS] < N_DRIVERS) >= 0.8
    digraph = FinslerUMAP(metric="precomputed", omega_norm=0.9, random_state=0, n_epochs=50)
    digraph.fit(planted_digraph(order, 1))
    found = explain(digraph, X, "potential", n_draws=5)
    assert set(found.order[:N_DRIVERS]) == set(range(N_DRIVERS))


def test_noise_explains_nothing(planted):
    X, model = planted
    noise = np.random.default_rng(5).normal(size=X.shape)
    found = explain(model, noise, n_draws=5)
    assert found.explained < 0.05
    assert found.importance.max() < 0.05


def test_what_a_feature_explains_alone_has_a_closed_form(planted):
    """y = x₁ + x₂ of equal spread: each alone explains half; a bent one all, with no direction."""
    x = np.random.default_rng(0).uniform(-1, 1, size=(4000, 3))
    model = Fitted(np.column_stack([x[:, :2], x[:, 0] + x[:, 1]]))
    found = explain(model, x, n_draws=2)
    np.testing.assert_allclose(found.alone, [0.5, 0.5, 0.0], atol=0.05)
    bent = explain(Fitted(np.column_stack([x[:, :2], x[:, 2] ** 2])), x, n_draws=2)
    assert bent.top(1) == ["feature 2"]
    assert bent.alone[2] > 0.9
    assert abs(bent.direction[2]) < 0.05


def test_locally_the_feature_that_rises_there_comes_first():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 6))
    left = X[:, 0] < 0
    height = np.where(left, X[:, 2], X[:, 3])
    model = Fitted(np.column_stack([X[:, :2], height]))
    found = explain(model, X, at="all", n_draws=2)
    inside = np.abs(X[:, 0]) > 0.4
    slopes = np.abs(found.local[:, 2:4])
    assert np.mean(slopes.argmax(axis=1)[inside] == np.where(left, 0, 1)[inside]) > 0.98
    assert found.local_agreement[inside & left, 2].min() > 0.8
    assert found.local_top(int(np.flatnonzero(inside & left)[0]), 1) == ["feature 2"]


def test_local_slopes_and_ridge_against_direct_formulas():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), rng.normal(size=20)
    Z, z = X - X.mean(axis=0), y - y.mean()
    direct = np.linalg.solve(Z.T @ Z + 0.3 * 20 * np.eye(4), Z.T @ z)
    np.testing.assert_allclose(_ridge_slopes(X, y, 0.3), direct, rtol=1e-9)
    error = 0.0
    for i in range(20):
        rest = np.arange(20) != i
        w = np.linalg.solve(Z[rest].T @ Z[rest] + 0.3 * 20 * np.eye(4), Z[rest].T @ z[rest])
        error += (z[i] - Z[i] @ w) ** 2
    np.testing.assert_allclose(_left_out_errors(X, y)[2], error, rtol=1e-9)


def test_frames_with_names_text_and_missing_values():
    rng = np.random.default_rng(0)
    names = np.array([f"n{i}" for i in range(200)])
    kind = rng.choice(["sensory", "inter", "motor"], size=200)
    height = (kind == "sensory") * 3.0 + rng.normal(size=200)
    frame = pd.DataFrame({"size": rng.normal(size=200), "kind": kind}, index=names)
    frame.loc["n3", "size"] = np.nan
    shuffled = frame.sample(frac=1, random_state=0)
    model = Fitted(np.column_stack([rng.normal(size=(200, 2)), height]), node_names=names)
    found = explain(model, shuffled, n_draws=4, at=[3])
    assert found.top(1) == ["kind=sensory"]
    assert np.isfinite(found.local).all()
    with pytest.raises(ValueError, match=r"no row for 1 nodes, e\.g\. 'n199'"):
        explain(model, frame.iloc[:-1])


def test_sparse_features_and_any_number_of_threads_give_the_same(planted):
    from threadpoolctl import threadpool_limits

    X, model = planted
    X = np.where(X > 0.5, X, 0.0)
    dense = explain(model, X, n_draws=3, at=[1, 2])
    with threadpool_limits(1):
        again = explain(model, scipy.sparse.csr_matrix(X), n_draws=3, at=[1, 2])
    for name in ("importance", "low", "stability", "direction", "alone", "local"):
        np.testing.assert_array_equal(getattr(dense, name), getattr(again, name))


def test_many_features_are_chosen_from(planted):
    X, model = planted
    wide = np.hstack([np.random.default_rng(1).normal(size=(len(X), 200)), X[:, :5]])
    assert set(explain(model, wide, n_draws=3).order[:5]) == set(range(200, 205))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"column": "depth"}, "column must be 'height', 'potential' or one of the map columns"),
        ({"column": 2}, "map columns 0 to 1"),
        ({"names": ["a"]}, "1 names for 30"),
        ({"at": [900]}, "rows from 0 to 799"),
        ({"n_draws": 1}, "n_draws must be at least 2"),
    ],
)
def test_wrong_arguments_are_named(planted, change, words):
    X, model = planted
    with pytest.raises(ValueError, match=words):
        explain(model, X, **change)


def test_the_table_and_the_picture(planted):
    plt = pytest.importorskip("matplotlib.pyplot")
    from finsler_ext.plot import plot_explanation

    plt.switch_backend("Agg")
    X, model = planted
    found = explain(model, X, n_draws=3, at=[7])
    assert "feature 0" in str(found)
    bars, *beside = plot_explanation(found, top=6)
    assert len(bars.patches) == 6
    np.testing.assert_allclose(
        [p.get_width() for p in bars.patches], found.importance[found.order[:6]]
    )
    assert [ax.get_xlabel() for ax in beside] == found.top(3)
    assert len(plot_explanation(found, row=7, panels=1)) == 2
    with pytest.raises(ValueError, match="row 8 was not explained"):
        plot_explanation(found, row=8)
    plt.close("all")
