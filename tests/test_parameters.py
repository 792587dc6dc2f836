"""Parameters of all estimators: whatever is nonsense is refused by a message that names it."""

import inspect

import numpy as np
import pytest

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP
from finsler_ext.tsne.layout import HEIGHT_ITERATIONS
from finsler_ext.umap.layout import FIRST_ACT

NAN, INF = float("nan"), float("inf")
X = np.random.default_rng(0).normal(size=(30, 3))
ESTIMATORS = (FinslerUMAP, FinslerTSNE, FinslerMDS)
# Parameters that say what to do with data or are looked at later, with what they hold.
FREE = {
    "metric", "metric_kwds", "metric_params", "output_metric", "output_metric_kwds", "init",
    "initialization", "target_metric", "target_metric_kwds", "tqdm_kwds", "precomputed_knn",
    "neighbors", "knn_kwargs", "callbacks", "negative_gradient_method", "space", "local_scale",
    "random_state", "transform_seed", "omega_norm", "source_scale",
}  # fmt: skip
NONSENSE = [NAN, INF, -INF, "nonsense", object(), [], {}, np.array([[1.0, 2.0]]), 1 + 2j]


def few(estimator, **given):
    quick = {
        FinslerUMAP: {"n_epochs": 5, "n_neighbors": 5},
        FinslerTSNE: {"n_iter": 5, "early_exaggeration_iter": 5, "perplexity": 5},
        FinslerMDS: {"max_iter": 3, "n_neighbors": 5},
    }[estimator]
    return estimator(**(quick | {"random_state": 0} | given))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_declared(estimator):
    names = set(inspect.signature(estimator).parameters)
    assert set(estimator._parameters) == names
    for name, wanted in estimator._parameters.items():
        wanted.check(name, getattr(estimator(), name))  # defaults are allowed


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_nonsense_is_refused_by_name(estimator):
    for name in set(estimator._parameters) - FREE:
        for value in NONSENSE:
            if name in ("disconnection_distance", "ridge") and value is INF:
                continue  # nothing is cut; differences of degrees
            if name in ("n_epochs", "perplexity") and isinstance(value, (list, np.ndarray)):
                continue  # several
            if name == "height" and isinstance(value, str):
                continue  # the list of heights grows
            with pytest.raises(ValueError, match=f"^{name} must be"):
                few(estimator, **{name: value}).fit(X)


@pytest.mark.parametrize(
    ("estimator", "given"),
    [
        (FinslerUMAP, {"learning_rate": -1.0}),
        (FinslerUMAP, {"n_jobs": 1.5}),
        (FinslerUMAP, {"n_jobs": "2"}),
        (FinslerUMAP, {"n_neighbors": True}),
        (FinslerUMAP, {"n_epochs": -5}),
        (FinslerUMAP, {"transform_seed": "x"}),
        (FinslerUMAP, {"unique": 2}),
        (FinslerUMAP, {"a": NAN, "b": 1.0}),
        (FinslerUMAP, {"init": np.full((30, 2), 1e30)}),
        (FinslerUMAP, {"init": np.full((30, 2), NAN)}),
        (FinslerTSNE, {"exaggeration": 0}),
        (FinslerTSNE, {"exaggeration": -1}),
        (FinslerTSNE, {"learning_rate": -1}),
        (FinslerTSNE, {"n_iter": -5}),
        (FinslerTSNE, {"n_jobs": "2"}),
        (FinslerTSNE, {"callbacks_every_iters": 0}),
        (FinslerTSNE, {"initialization": np.full((30, 2), 1e30)}),
        (FinslerMDS, {"n_jobs": 1.5}),
        (FinslerMDS, {"n_jobs": "2"}),
        (FinslerMDS, {"missing": 3}),
        (FinslerMDS, {"n_components": "many"}),
        (FinslerMDS, {"n_init": 2.0}),
    ],
)
def test_values_that_used_to_pass_or_to_break(estimator, given):
    with pytest.raises(ValueError, match=f"^{next(iter(given))}"):
        few(estimator, **given).fit(X)


@pytest.mark.parametrize("name", ["n_iter", "learning_rate", "exaggeration", "momentum"])
def test_parameters_of_transform(name):
    model = few(FinslerTSNE).fit(X)
    for value in (NAN, -1, "x", None if name == "n_iter" else NAN):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            model.transform(X[:2], **{name: value})


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("metric", "message"),
    [(lambda a, b: NAN, "gives NaN"), (lambda a, b: -1.0, "gives negative distances")],
    ids=["nan", "negative"],
)
def test_metrics_that_are_none(estimator, metric, message):
    with pytest.raises(ValueError, match=message):
        few(estimator, metric=metric).fit(X)


@pytest.mark.filterwarnings("ignore:Data was converted to boolean")
def test_a_metric_that_finds_no_difference():
    with pytest.raises(ValueError, match="'jaccard' gives 0 for all rows"):
        few(FinslerMDS, metric="jaccard").fit(X)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_layouts_that_diverge_are_refused():
    with pytest.raises(ValueError, match="diverged"):
        few(FinslerUMAP, learning_rate=1e30).fit(X)


def test_docstrings_say_how_long_the_acts_are():
    umap, tsne = (" ".join(method.__doc__.split()) for method in (FinslerUMAP, FinslerTSNE))
    assert f"the first {100 * FIRST_ACT:g} % of epochs" in umap
    assert f"in at most {2 * HEIGHT_ITERATIONS} further iterations" in tsne
