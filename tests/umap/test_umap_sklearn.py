"""FinslerUMAP among scikit-learn's tools, and in umap-learn's place."""

import inspect
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from umap import UMAP

from finsler_ext import FinslerUMAP
from tests.models import SMALL_DRIFT_WARNING, quick

pytestmark = pytest.mark.filterwarnings(SMALL_DRIFT_WARNING)

EXPECTED_FAILURES = {
    "check_mixin_order": "umap.UMAP puts BaseEstimator before ClassNamePrefixFeaturesOutMixin; "
    "a subclass of it cannot turn that round.",
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [
        FinslerUMAP(),
        FinslerUMAP(omega_norm="auto", n_epochs=20),
        FinslerUMAP(metric="precomputed", n_epochs=20),
    ],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_every_parameter_and_method_of_umap_is_there_under_its_name():
    theirs, ours = UMAP().get_params(), FinslerUMAP().get_params()
    assert set(theirs) < set(ours)
    changed = {name for name in theirs if theirs[name] != ours[name]}
    assert changed == {"n_components"}
    for name, method in inspect.getmembers(UMAP, inspect.isfunction):
        written_out = not name.startswith(("_", "set_"))  # set_*_request are scikit-learn's
        if written_out and name in vars(UMAP):
            expected = list(inspect.signature(method).parameters)
            found = list(inspect.signature(getattr(FinslerUMAP, name)).parameters)
            given = [p for p in expected if p != "kwargs"]
            assert found[: len(given)] == given, name


def test_fit_changes_no_parameter(few_digits):
    model = quick(metric="cosine", n_jobs=2, tqdm_kwds={"leave": False})
    before = {name: repr(value) for name, value in model.get_params().items()}
    model.fit(few_digits[0]).update(few_digits[0][:5] + 1)
    assert before == {name: repr(value) for name, value in model.get_params().items()}


def test_clones_pickles_and_joblib_files_are_the_same_model(few_digits, tmp_path):
    X, _ = few_digits
    model = quick().fit(X)
    assert np.array_equal(clone(model).fit_transform(X), model.embedding_)
    joblib.dump(model, tmp_path / "model.joblib")
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
        assert np.array_equal(again.embedding_, model.embedding_)
        assert np.array_equal(again.transform(X + 1), model.transform(X + 1))
        assert again.skew_fidelity_ == model.skew_fidelity_
    changed = model.set_params(omega_norm=0.9).fit(X)
    assert changed.omega_norm_ == 0.9


def test_pipelines_and_frames(few_digits):
    X, _ = few_digits
    assert make_pipeline(StandardScaler(), quick()).fit_transform(X).shape == (200, 3)
    model = quick().set_output(transform="pandas")
    frame = model.fit_transform(X)
    assert list(frame.columns) == ["finslerumap0", "finslerumap1", "finslerumap_height"]
    assert list(model.get_feature_names_out()) == list(frame.columns)
    assert list(model.transform(X[:3] + 1).columns) == list(frame.columns)
    assert model.n_features_in_ == X.shape[1]
    named = pd.DataFrame(X, columns=[f"pixel{i}" for i in range(64)])
    model = quick().fit(named)
    assert list(model.feature_names_in_) == list(named.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(named.rename(columns={"pixel3": "pixel_three"}))


def test_two_map_columns_wherever_umap_has_two(few_digits):
    X, y = few_digits
    steps = Pipeline([("map", quick(output="map")), ("judge", KNeighborsClassifier())])
    search = GridSearchCV(steps, {"map__n_components": [3, 4]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.8
    model = clone(quick(output="map")).set_output(transform="pandas")
    plane = model.fit_transform(X)
    assert list(plane.columns) == ["finslerumap0", "finslerumap1"]
    assert np.array_equal(plane, model.embedding_[:, :2])
    assert list(model.transform(X[:3] + 1).columns) == list(plane.columns)
    assert model.set_params(output="all").transform(X[:3] + 1).shape == (3, 3)
    with pytest.raises(ValueError, match="n_components=1"):
        quick(output="map", n_components=1).fit(X)


@pytest.mark.filterwarnings("always")
def test_a_height_among_two_columns_is_noted(few_digits):
    X, _ = few_digits
    with pytest.warns(UserWarning, match="n_components=2: one of the two columns is the height"):
        model = quick(n_components=2).fit(X)
    assert list(model.get_feature_names_out()) == ["finslerumap0", "finslerumap_height"]
    for meant in ({"height": "free"}, {"omega_norm": 0.0}):
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always")
            quick(n_components=2, **meant).fit(X)
        assert not any("n_components=2" in str(w.message) for w in noted)


def test_one_step_of_a_column_transformer(few_digits):
    X, _ = few_digits
    frame = pd.DataFrame(X, columns=[f"pixel{i}" for i in range(64)])
    half = ColumnTransformer(
        [("left", quick(), list(frame.columns[:32])), ("rest", "passthrough", ["pixel60"])]
    )
    out = half.fit_transform(frame)
    assert out.shape == (200, 4)
    assert np.array_equal(half.transform(frame.iloc[:5]), out[:5])


def test_grid_search_over_the_drift(few_digits):
    X, y = few_digits
    steps = Pipeline([("map", quick()), ("judge", KNeighborsClassifier())])
    search = GridSearchCV(steps, {"map__omega_norm": [0.0, 0.5]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.8
    assert search.predict(X[:7]).shape == (7,)


@pytest.mark.filterwarnings("ignore")
def test_umaps_plots_show_the_map_plane(few_digits):
    for package in ("datashader", "bokeh", "holoviews", "colorcet", "skimage"):
        pytest.importorskip(package, reason="umap-learn's plot extra is not installed")
    from umap import plot

    X, y = few_digits
    plane = quick().fit(X).map_plane()
    assert plane.embedding_.shape == (200, 2)
    plot.points(plane, labels=y)
    plot.connectivity(plane)
    for kind in ("pca", "vq", "local_dim", "neighborhood"):
        plot.diagnostic(plane, diagnostic_type=kind)


def test_the_map_plane_shares_the_model_and_does_not_transform(few_digits):
    X, _ = few_digits
    model = quick().fit(X)
    plane = model.map_plane()
    assert np.shares_memory(plane.embedding_, model.embedding_)
    assert model.embedding_.shape == (200, 3)
    with pytest.raises(ValueError, match="no height"):
        plane.transform(X)
