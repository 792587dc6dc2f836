"""One asymmetry per fit: the score, the plot, the drift choice and the warnings read the same."""

import pickle
import warnings

import matplotlib as mpl
import numpy as np
import pytest
import scipy.sparse
from scipy.stats import spearmanr

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP
from finsler_ext.asymmetry import (
    Asymmetry,
    CyclicWarning,
    SkewFidelity,
    compare_skew,
    distance_skew,
    is_directed,
    is_symmetric,
    knows_one_way,
    skew_potential,
)
from finsler_ext.evidence import Evidence
from finsler_ext.evidence.verdict import ChanceWarning, warn_of_height
from finsler_ext.geometry import MATSUMOTO, RANDERS
from finsler_ext.plot import plot_asymmetry
from finsler_ext.plot.inputs import height_words

mpl.use("Agg")
RNG = np.random.default_rng(0)
PLACES = RNG.normal(size=(80, 3))
D = RANDERS.distances(PLACES, 0.4) * np.exp(0.2 * RNG.normal(size=(80, 80)))
np.fill_diagonal(D, 0.0)
X = RNG.normal(size=(80, 4)) * np.exp(RNG.normal(size=(80, 1)))
SHORT = {
    FinslerUMAP: {"n_epochs": 30, "random_state": 0},
    FinslerTSNE: {"n_iter": 40, "early_exaggeration_iter": 20, "perplexity": 10, "random_state": 0},
    FinslerMDS: {"max_iter": 30},
}


def fitted(estimator, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return estimator(**SHORT[estimator], **options).fit(data)


def sign_in_the_title(model) -> float:
    title = plot_asymmetry(model).get_title()
    return float(title.split("%")[0]) / 100


@pytest.mark.parametrize("estimator", SHORT)
def test_the_plot_shows_the_pairs_of_the_score(estimator):
    """Directed t-SNE was scored over all pairs and drawn over neighbours: 71 % and 79 %."""
    for data, options in ((D, {"metric": "precomputed"}), (X, {})):
        model = fitted(estimator, data, **options)
        assert sign_in_the_title(model) == pytest.approx(model.skew_fidelity_.sign, abs=0.005)
        again = model.asymmetry_.fidelity(model.embedding_, model.omega_norm_)
        assert again == model.skew_fidelity_


@pytest.mark.parametrize("estimator", SHORT)
def test_kinds_and_words(estimator):
    directed = fitted(estimator, D, metric="precomputed").asymmetry_
    assert directed.kind == "distances"
    assert directed.is_directed
    model = fitted(estimator, X)
    assert model.asymmetry_.kind == "density"
    assert height_words(model) == "height: sparse above dense"
    model = fitted(estimator, X, local_scale=np.linspace(1, 2, 80))
    assert model.asymmetry_.kind == "scale"
    assert height_words(model) == "height: large local scale is high"


def test_symmetric_distances_have_none():
    model = fitted(FinslerMDS, (D + D.T) / 2, metric="precomputed")
    assert model.asymmetry_.kind == "none"
    assert not model.skew_fidelity_.defined
    assert model.asymmetry_.level() is None


def test_pairs_are_made_once_and_not_kept():
    asymmetry = Asymmetry.of_distances(D)
    pairs = asymmetry.pairs
    assert asymmetry.pairs is pairs
    assert pairs.skew == pytest.approx(
        D[pairs.source, pairs.target] - D[pairs.target, pairs.source]
    )
    copied = pickle.loads(pickle.dumps(asymmetry))
    assert copied._pairs is None
    assert np.array_equal(copied.pairs.skew, pairs.skew)
    assert fitted(FinslerMDS, D, metric="precomputed").asymmetry_._pairs is None


@pytest.mark.parametrize(("space", "omega"), [(RANDERS, 0.4), (MATSUMOTO, 0.4)])
def test_absolute_skew_is_that_of_the_space(space, omega):
    F = space.distances(PLACES, omega)
    asymmetry = Asymmetry.of_distances(F, absolute=True)
    data, shown = asymmetry.compared(PLACES, omega, space)
    assert data == pytest.approx(shown, abs=1e-4)  # rounding counts as none
    assert asymmetry.fidelity(PLACES, omega, space).explained == pytest.approx(1.0)


def test_the_level_of_distances_is_their_potential():
    level = RNG.normal(size=30)
    skew = level[None, :] - level[:, None]
    distances = 5.0 + skew / 2
    expected = level - level.mean()
    assert skew_potential(distances) == pytest.approx(expected, abs=1e-5)
    assert Asymmetry.of_distances(distances).level() == pytest.approx(expected, abs=1e-5)


def test_warnings_have_categories():
    """They are told apart by class: words may change."""
    fidelity = SkewFidelity(0.5, 0.0, 0.0)
    with pytest.warns(ChanceWarning):
        warn_of_height(Evidence("density", p_value=0.01), fidelity, 0.5)
    cyclic = Evidence("distances", p_value=0.01, gradient_share=0.1, cyclic=1.0)
    with pytest.warns(CyclicWarning):
        warn_of_height(cyclic, fidelity, 0.5)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("unknown", [np.inf, np.nan])
def test_symmetry_of_matrices_with_unknown_pairs(form, unknown):
    """An asymmetric matrix that contained inf was called symmetric."""
    symmetric = (D + D.T) / 2
    for matrix, expected in ((symmetric, True), (D, False)):
        matrix = matrix.copy()
        matrix[3, 5] = matrix[5, 3] = unknown
        assert is_symmetric(form(matrix)) is expected
    symmetric[3, 5] = unknown
    assert not is_symmetric(form(symmetric))


@pytest.mark.parametrize("seed", range(3))
def test_the_rank_does_not_depend_on_the_order_of_rows(seed):
    """Each pair counted in one orientation only: 0.73 and 0.89, nan and 0.86."""
    chain = np.triu(np.ones((30, 30)), 1) + 2.0 * np.tril(np.ones((30, 30)), -1)
    order = np.random.default_rng(seed).permutation(30)
    for distances in (chain, D[:30, :30]):
        places = PLACES[:30] + np.arange(30)[:, None] / 10
        rank = Asymmetry.of_distances(distances).fidelity(places, 0.5).rank
        permuted = Asymmetry.of_distances(distances[np.ix_(order, order)])
        assert np.isfinite(rank)
        assert permuted.fidelity(places[order], 0.5).rank == pytest.approx(rank, abs=1e-12)


@pytest.mark.parametrize("decimals", [1, 9])
def test_the_rank_is_spearmans_of_both_orientations(decimals):
    a, b = np.random.default_rng(3).normal(size=(2, 300)).round(decimals)
    b = (a / 2 + b).round(decimals)  # with one decimal many are equal, and some are zero
    expected = spearmanr(np.concatenate([a, -a]), np.concatenate([b, -b])).statistic
    assert compare_skew(a, b, None).rank == pytest.approx(expected, abs=1e-12)
    signs = np.sign(a * b)
    assert compare_skew(a, b, None).sign == pytest.approx(np.mean(signs[signs != 0] > 0))


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_symmetry_is_asked_in_one_way(form):
    symmetric = (D + D.T) / 2
    assert is_symmetric(form(symmetric))
    assert not is_symmetric(form(D))
    assert not is_directed(form(symmetric))
    assert is_directed(form(D))
    nearly = symmetric.copy()
    nearly[0, 1] *= 1 + 1e-9
    assert is_symmetric(form(nearly))
    assert not is_symmetric(form(nearly), rtol=0.0)
    one_way = np.triu(D)
    assert not is_symmetric(form(one_way))


def test_one_missing_pair_among_many_points_does_not_make_distances_one_way(monkeypatch):
    """All pairs were counted against a selection of them: from 4,000 points on."""
    monkeypatch.setattr("finsler_ext.asymmetry.MAX_PAIRS", 1500)
    distances = D.copy()
    distances[3, 5] = np.nan
    pairs = distance_skew(distances)
    assert pairs.skew.size < 1600
    assert not knows_one_way(distances, pairs)
    found = Asymmetry.of_distances(distances).potential().values
    assert spearmanr(found, skew_potential(D)).statistic > 0.8
