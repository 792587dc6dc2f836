"""What fitted estimators say about their height."""

import warnings

import numpy as np
import pytest
import scipy.sparse

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP, load
from finsler_ext.asymmetry import CyclicWarning
from finsler_ext.evidence.verdict import ChanceWarning

RNG = np.random.default_rng(0)
SPHERE = RNG.normal(size=(150, 3))
SPHERE /= np.linalg.norm(SPHERE, axis=1, keepdims=True)
CLUSTERS = np.vstack([s * RNG.normal(size=(60, 4)) + 8 * s for s in (0.3, 1.0, 2.0)])
FAST = {
    FinslerUMAP: {"n_epochs": 30},
    FinslerTSNE: {"n_iter": 60, "early_exaggeration_iter": 40, "perplexity": 10},
    FinslerMDS: {"max_iter": 20},
}
estimators = pytest.mark.parametrize("estimator", list(FAST))


def fitted(estimator, X, **settings):
    """The model and the categories of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator(random_state=0, **{**FAST[estimator], **settings}).fit(X)
    return model, {note.category for note in caught}


@estimators
def test_a_uniform_sphere_is_called_chance(estimator):
    """Its height orders most pairs of the data it was made from, and means nothing."""
    model, warned = fitted(estimator, SPHERE)
    assert model.skew_fidelity_.sign > 0.55
    assert model.evidence_.summary == "no more than chance: do not read the height"
    assert ChanceWarning in warned
    assert model.height_unsure_.mean() > 0.7


@estimators
def test_clusters_of_different_density_are_not(estimator):
    model, warned = fitted(estimator, CLUSTERS)
    assert model.evidence_.more_than_chance
    assert not warned & {ChanceWarning, CyclicWarning}
    assert model.height_error_.shape == (180,)
    assert (model.height_error_ > 0).all()
    assert "p < 0.001" in model.evidence_.verdict


@pytest.mark.parametrize("estimator", [FinslerUMAP, FinslerMDS])
def test_random_digraphs_are_chance_before_shortest_paths(estimator):
    """The shortest paths of a random digraph have a direction that the graph has not."""
    edges = RNG.random((80, 80)) < 0.06
    np.fill_diagonal(edges, False)
    settings = {"missing": "geodesic"} if estimator is FinslerMDS else {}
    model, warned = fitted(
        estimator, scipy.sparse.csr_matrix(edges.astype(float)), metric="precomputed", **settings
    )
    assert model.evidence_.more_than_chance is False
    assert len(warned & {ChanceWarning, CyclicWarning}) == 1


def test_an_acyclic_graph_is_not_called_cyclic():
    """93 % of the edges led from one strong component to another, and a fit warned of cycles."""
    edges = np.triu(RNG.random((90, 90)) < 0.06, 1)
    edges[40, 30] = True
    model, warned = fitted(
        FinslerUMAP,
        scipy.sparse.csr_matrix(edges.astype(float)),
        metric="precomputed",
        omega_norm=0.9,
    )
    assert model.evidence_.more_than_chance
    assert CyclicWarning not in warned


@estimators
def test_evidence_is_saved_with_the_model(estimator, tmp_path):
    model, _ = fitted(estimator, CLUSTERS)
    model.save(tmp_path / "model.fin")
    again = load(tmp_path / "model.fin")
    assert again.evidence_.to_dict() == pytest.approx(model.evidence_.to_dict(), nan_ok=True)
    assert again.height_error_ == pytest.approx(model.height_error_)


def test_errors_of_a_graph_are_saved_unsolved(tmp_path):
    edges = scipy.sparse.csr_matrix(np.triu(RNG.random((60, 60)) < 0.1, 1).astype(float))
    model, _ = fitted(FinslerUMAP, edges, metric="precomputed", omega_norm=0.9)
    model.save(tmp_path / "model.fin")
    again = load(tmp_path / "model.fin").height_error_
    assert again == pytest.approx(model.height_error_, nan_ok=True)


def test_what_cannot_be_tested_says_why():
    given, _ = fitted(FinslerUMAP, CLUSTERS, local_scale=np.exp(CLUSTERS[:, 0] / 10))
    assert given.evidence_.verdict == "not tested: the height shows the scale that was given"
    assert np.isnan(given.evidence_.p_value)
    unlike, _ = fitted(FinslerUMAP, CLUSTERS, omega_norm=0)
    assert unlike.evidence_.summary == "density varies, and this layout has no height"
    assert np.isnan(unlike.height_error_).all()
    with pytest.raises(AttributeError, match="not fitted"):
        FinslerUMAP().height_error_  # noqa: B018


def test_equal_rows_share_their_error():
    X = np.vstack([CLUSTERS, CLUSTERS[:5]])
    model, _ = fitted(FinslerUMAP, X, unique=True)
    assert model.height_error_.shape == (185,)
    assert (model.height_error_[-5:] == model.height_error_[:5]).all()


def test_auto_leaves_chance_without_a_drift():
    with pytest.warns(UserWarning, match="chose 0: the asymmetry of the data is no more than"):
        model = FinslerUMAP(omega_norm="auto", n_epochs=20, random_state=0).fit(SPHERE)
    assert model.omega_norm_ == 0
