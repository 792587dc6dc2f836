"""Names of scikit-learn's t-SNE parameters are answered with the right name."""

import inspect

import pytest
from sklearn.base import clone
from sklearn.manifold import TSNE

from finsler_ext import FinslerTSNE
from finsler_ext.tsne.opentsne import SKLEARN_NAMES, OpenFinslerTSNE


def test_every_name_of_scikit_learn_is_known_or_answered():
    assert set(TSNE().get_params()) - set(FinslerTSNE().get_params()) == set(SKLEARN_NAMES)


@pytest.mark.parametrize("estimator", [FinslerTSNE, OpenFinslerTSNE])
@pytest.mark.parametrize(("given", "right"), [("init", "initialization"), ("angle", "theta")])
def test_the_right_name_is_said(estimator, given, right):
    with pytest.raises(TypeError, match=f"{given} is a parameter of scikit-learn's.*use {right}"):
        estimator(**{given: 1})


def test_other_unknown_names_are_refused_as_usual():
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        FinslerTSNE(colour=1)


def test_parameters_are_seen_by_scikit_learn_and_help():
    model = clone(FinslerTSNE(perplexity=7, theta=0.3))
    assert (model.perplexity, model.theta) == (7, 0.3)
    assert "perplexity" in inspect.signature(FinslerTSNE).parameters
