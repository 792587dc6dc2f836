"""What the three estimators share: an atomic fit in five steps, names, and where warnings point."""

import copy
import pickle
import warnings

import numpy as np
import pytest

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP
from finsler_ext.asymmetry import CyclicWarning
from finsler_ext.evidence.verdict import ChanceWarning
from finsler_ext.tsne.opentsne import OpenFinslerTSNE as OpenTSNE

X = np.random.default_rng(0).normal(size=(60, 4)) * np.linspace(0.5, 2, 60)[:, None]
D = np.abs(np.random.default_rng(1).normal(size=(60, 60))) + 1.0
np.fill_diagonal(D, 0.0)
SHORT = {
    FinslerUMAP: {"n_epochs": 20, "random_state": 0},
    FinslerTSNE: {"n_iter": 20, "early_exaggeration_iter": 10, "perplexity": 10, "random_state": 0},
    FinslerMDS: {"max_iter": 10},
}
STEPS = ("_validate", "_construct", "_asymmetry", "_start", "_lay_out", "_score")


def made(estimator, **options):
    return estimator(**SHORT[estimator], **options)


def quietly(model, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(data, **options)


@pytest.mark.parametrize("estimator", SHORT)
def test_a_fit_takes_the_five_steps_in_order(estimator, monkeypatch):
    taken = []

    def recording(step, original):
        def recorded(self, *given, **named):
            taken.append(step)
            return original(self, *given, **named)

        return recorded

    for step in STEPS:
        monkeypatch.setattr(estimator, step, recording(step, getattr(estimator, step)))
    quietly(made(estimator), X)
    assert tuple(taken) == STEPS


@pytest.mark.parametrize("estimator", SHORT)
@pytest.mark.parametrize(
    ("step", "error"), [*((s, RuntimeError) for s in STEPS), ("_lay_out", KeyboardInterrupt)]
)
def test_a_fit_that_fails_changes_nothing(estimator, step, error, monkeypatch):
    model = quietly(made(estimator), X)
    before = dict(vars(model))

    def broken(self, *given, **named):
        raise error("half way")

    monkeypatch.setattr(estimator, step, broken)
    with pytest.raises(error, match="half way"):
        model.fit(X[:50] + 1)
    assert vars(model).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(model).items())


@pytest.mark.parametrize("estimator", SHORT)
def test_a_refit_drops_what_the_earlier_one_left(estimator):
    model = quietly(made(estimator, omega_norm="auto"), X)
    assert model.drift_choice_ is not None
    quietly(model.set_params(omega_norm=0.3), X)
    assert getattr(model, "drift_choice_", None) is None


def test_ctrl_c_keeps_what_a_first_tsne_had_reached():
    def stop(*_):
        raise KeyboardInterrupt

    model = made(FinslerTSNE, callbacks=[stop], callbacks_every_iters=5)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert np.asarray(model.embedding_).shape == (60, 3)
    fitted = quietly(made(FinslerTSNE), X)
    before = fitted.embedding_
    with pytest.raises(KeyboardInterrupt):
        fitted.set_params(callbacks=[stop], callbacks_every_iters=5).fit(X)
    assert fitted.embedding_ is before


@pytest.mark.parametrize("estimator", SHORT)
def test_warnings_point_at_the_line_of_the_user(estimator):
    noise = np.random.default_rng(3).normal(size=(60, 60)) ** 2 + 5.0
    np.fill_diagonal(noise, 0.0)
    model = made(estimator, metric="precomputed", omega_norm=0.5)
    for call in (model.fit, model.fit_transform):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(noise)
        ours = [w for w in caught if issubclass(w.category, (ChanceWarning, CyclicWarning))]
        assert ours
        assert {w.filename for w in ours} == {__file__}


@pytest.mark.parametrize("estimator", SHORT)
def test_new_points_of_directed_data_need_both_directions(estimator):
    model = quietly(made(estimator, metric="precomputed"), D)
    with pytest.raises(ValueError, match=r"incoming: the model was fitted to directed distances"):
        model.transform(1.01 * D[:3])
    assert np.shape(model.transform(D[:3], incoming=D.T[:3])) == (3, 3)


@pytest.mark.parametrize("estimator", SHORT)
def test_a_scale_per_point_is_an_array_everywhere(estimator):
    scale = np.linspace(1.0, 3.0, 60)
    model = quietly(made(estimator, local_scale=scale), X)
    with pytest.raises(ValueError, match="local_scale: the model was fitted with a scale per"):
        model.transform(X[:3] + 0.1)
    with pytest.raises(ValueError, match="local_scale: the model was fitted without one"):
        quietly(made(estimator), X).transform(X[:3] + 0.1, local_scale=scale[:3])


@pytest.mark.parametrize("estimator", [FinslerUMAP, FinslerTSNE, FinslerMDS, OpenTSNE])
def test_defaults_of_shared_parameters_agree(estimator):
    shared = {
        "n_components": 3, "omega_norm": 0.5, "space": "randers", "metric": "euclidean",
        "local_scale": None, "random_state": None, "n_jobs": -1, "verbose": False,
    }  # fmt: skip
    given = estimator().get_params()
    assert {name: given[name] for name in shared} == shared


def test_the_scale_of_mds_is_an_array():
    with pytest.raises(ValueError, match="local_scale must be an array, got 'none'; rules have"):
        made(FinslerMDS, local_scale="none").fit(X)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_a_copy_has_the_attributes_of_the_model_and_no_others(again):
    """A model of a graph alone was given a height_ by its copies."""
    model = made(FinslerUMAP, transform_mode="graph").fit(X)
    assert not hasattr(model, "height_")
    assert vars(again(model)).keys() == vars(model).keys()


def test_warnings_of_new_points_point_at_the_line_of_the_user():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FinslerTSNE(n_iter=5, early_exaggeration_iter=5, random_state=0).fit(X).transform(X + 1)
    large = [w for w in caught if "perplexity=30 is too large" in str(w.message)]
    assert large
    assert {w.filename for w in large} == {__file__}
