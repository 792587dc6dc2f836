"""Two noise levels: the stress falls at every step, and the asymmetry is not drowned."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.directed import street_grid
from finsler_ext import FinslerMDS
from finsler_ext._threads import RowPool
from finsler_ext.geometry import RANDERS
from finsler_ext.geometry.space import Majoriser
from finsler_ext.mds.descent import descend, majorize
from finsler_ext.mds.estimator import finsler_smacof
from finsler_ext.mds.pivots import Pairs, SparseStress
from finsler_ext.mds.stress import dense_stress
from tests.mds_data import IGNORED, drifted, one_way_missing, pairs_missing

pytestmark = IGNORED

WEIGHTS = ("none", "symmetric", "one way")


def travel_times(n=120, seed=0):
    """Times over a rough plane and heights of their own, with noise of 4 % in S, 0.4 % in K."""
    rng = np.random.default_rng(seed)
    place, level = rng.uniform(0, 10, size=(n, 4)) * [1, 1, 0.3, 0.3], rng.normal(size=n)
    S = np.linalg.norm(place[:, None] - place, axis=-1) * np.exp(0.04 * rng.normal(size=(n, n)))
    S = (S + S.T) / 2
    K = 0.1 * (level - level[:, None]) + 0.004 * S * rng.normal(size=(n, n))
    return np.maximum(S, 2 * np.abs(K)) + (K - K.T) / 2


def weights_of(n, how, seed=1):
    rng = np.random.default_rng(seed)
    W = rng.uniform(0.2, 2.0, size=(n, n)) * (rng.uniform(size=(n, n)) < 0.9)
    W, gone = W + W.T, rng.uniform(size=(n, n)) < 0.3
    np.fill_diagonal(W, 0.0)
    if how == "one way":
        W = np.where(gone & ~gone.T, 0.0, W)
    return None if how == "none" else W


def likelihood(Y, omega, D, W, constant):
    """The stress of two noise levels, summed pair by pair."""
    n, floor = len(D), 1e-3
    W = np.ones_like(D) - np.eye(n) if W is None else W
    F = RANDERS.distances(Y, omega) + constant
    symmetric = skew = data = n_symmetric = n_skew = 0.0
    for i in range(n):
        for j in range(i):
            out, into = F[i, j] - D[i, j], F[j, i] - D[j, i]
            if W[i, j] > 0 and W[j, i] > 0:
                symmetric += 2 * W[i, j] * ((out + into) / 2) ** 2
                skew += 2 * W[i, j] * ((out - into) / 2) ** 2
                data += 2 * W[i, j] * ((D[i, j] - D[j, i]) / 2) ** 2
                n_skew += 1
            else:
                symmetric += W[i, j] * out**2 + W[j, i] * into**2
            n_symmetric += W[i, j] > 0 or W[j, i] > 0
    skew += floor * data
    n_all = n_symmetric + n_skew
    if skew / n_skew > symmetric / n_symmetric:
        return symmetric + skew - floor * data
    mean = (symmetric / n_symmetric) ** (n_symmetric / n_all) * (skew / n_skew) ** (n_skew / n_all)
    return n_all * mean - floor * data


@pytest.mark.parametrize("how", WEIGHTS)
@pytest.mark.parametrize("interval", [False, True])
def test_stress_and_slope_are_those_of_the_likelihood(how, interval):
    D, W = travel_times(14), weights_of(14, how)
    problem = replace(dense_stress(D, W), interval=interval).with_noise(None)
    Y = np.random.default_rng(2).normal(size=(3, 14)) * 3
    with RowPool(14, 1) as pool:
        here = problem.slope(Y, 0.4, pool)
        constant = problem.constant(Y, 0.4, pool) * problem.unit
        wanted = likelihood(Y.T * problem.unit, 0.4, D, W, constant)
        assert here.stress * problem.unit**2 == pytest.approx(wanted, rel=1e-9)
        assert here.skew_weight > 1
        for at in ((0, 0), (1, 5), (2, 9)):
            step = np.zeros_like(Y)
            step[at] = 1e-5
            rise = problem.slope(Y + step, 0.4, pool).stress
            rise -= problem.slope(Y - step, 0.4, pool).stress
            assert -4 * here.factor * here.downhill[at] == pytest.approx(rise / 2e-5, rel=1e-5)


@pytest.mark.parametrize("scaling", ["ratio", "interval"])
@pytest.mark.parametrize("how", WEIGHTS)
@pytest.mark.parametrize("omega", [0.1, 0.9])
@pytest.mark.parametrize("skew_weight", ["auto", 20.0])
def test_every_step_lowers_the_stress(scaling, how, omega, skew_weight):
    D = travel_times(40) + (1.0 - np.eye(40) if scaling == "interval" else 0.0)
    for accelerate in (False, True):
        result = finsler_smacof(
            D, omega_norm=omega, scaling=scaling, weights=weights_of(40, how), init="random",
            n_init=1, eps=0, max_iter=60, random_state=0, accelerate=accelerate,
            skew_weight=skew_weight,
        )  # fmt: skip
        assert len(result.stress_history) > 20
        assert np.all(np.diff(result.stress_history) <= 0)
        assert result.stress_history[-1] > 0


@pytest.mark.parametrize("holes", [lambda D: D, pairs_missing, one_way_missing])
def test_a_weight_of_one_is_the_stress_of_the_paper(holes):
    D = holes(travel_times(40))
    model = FinslerMDS(metric="precomputed", omega_norm=0.4, skew_weight=1).fit(D)
    F = RANDERS.distances(model.embedding_, 0.4)
    assert model.stress_history_[-1] == model.stress_
    assert model.stress_ == pytest.approx(np.nansum((F - D) ** 2), rel=1e-9)
    assert model.skew_weight_ == 1


def test_two_columns_are_plain_by_default_and_so_is_what_does_not_split():
    D = travel_times(40)
    settings = {"metric": "precomputed", "omega_norm": 0.3}
    uneven = np.random.default_rng(0).uniform(1, 2, size=D.shape)
    assert FinslerMDS(3, **settings).fit(D).skew_weight_ > 2
    assert FinslerMDS(2, **settings).fit(D).skew_weight_ == 1
    assert FinslerMDS(2, skew_weight=7, **settings).fit(D).skew_weight_ == 7
    small = settings | {"omega_norm": 0.03}
    assert FinslerMDS(2, skew_weight="auto", **small).fit(D).skew_weight_ > 2
    assert FinslerMDS(3, **settings).fit(D, weights=uneven).skew_weight_ == 1
    assert FinslerMDS(3, scaling="ordinal", **settings).fit(D).skew_weight_ == 1
    assert FinslerMDS(3, **settings).fit(D + D.T).skew_weight_ == 1  # nothing is skew


@pytest.mark.parametrize("omega", [0.2, 0.5, 0.9, "auto"])
def test_more_of_the_asymmetry_of_pairs_held_out(omega):
    """The plane is rough, so that plain stress spends the height on it."""
    D = travel_times()
    held = np.triu(np.random.default_rng(5).random(D.shape) < 0.1, 1)
    held |= held.T
    explained, stress = {}, {}
    for weight in (1, "auto"):
        model = FinslerMDS(metric="precomputed", omega_norm=omega, skew_weight=weight)
        model.fit(np.where(held, np.nan, D))
        F = RANDERS.distances(model.embedding_, model.omega_norm_)
        a, b = (D - D.T)[held], (F - F.T)[held]
        explained[weight] = 1 - ((a - b) ** 2).sum() / (a**2).sum()
        stress[weight] = ((F - D)[held] ** 2).sum()
    assert explained["auto"] > 0.98
    assert explained[1] < 0.95
    assert stress["auto"] < 2 * stress[1]


def test_the_skew_part_of_a_forest_has_a_floor():
    """Heights fit it exactly, so that nothing is left to estimate noise from."""
    D = travel_times(30)
    path = np.abs(np.subtract.outer(np.arange(30), np.arange(30))) == 1
    one_way = np.where(path, D, np.triu(D))  # both directions are known along a path alone
    one_way[(one_way == 0) & ~np.eye(30, dtype=bool)] = np.nan
    model = FinslerMDS(metric="precomputed", omega_norm=0.5).fit(one_way)
    assert np.isfinite(model.embedding_).all()
    assert np.all(np.diff(model.stress_history_) <= 0)
    assert 1 <= model.skew_weight_ < np.inf


def test_gradient_descent_finds_what_majorisation_finds():
    problem = dense_stress(travel_times(60)).with_noise(None)
    start = np.random.default_rng(0).normal(size=(60, 3)) * 4
    best = majorize(problem, start, 0.5, max_iter=2000, eps=1e-9)
    found = descend(problem, best.position + 0.3 * start / 4, 0.5, max_iter=300)
    assert found.stress == pytest.approx(best.stress, rel=0.02)


def test_some_pairs_have_the_likelihood_of_all():
    D, W = travel_times(30), weights_of(30, "symmetric")
    low, high = np.nonzero(np.triu(W, 1))
    pairs = Pairs(low, high, D[low, high], D[high, low], W[low, high])
    sparse = SparseStress(pairs, 30, skew_weight=None)
    dense = dense_stress(D, W).with_noise(None)
    Y = np.random.default_rng(2).normal(size=(3, 30)) * 3
    with RowPool(30, 1) as pool:
        one, two = (problem.slope(Y, 0.4, pool) for problem in (sparse, dense))
    assert one.stress == pytest.approx(two.stress, rel=1e-9)
    assert one.skew_weight == pytest.approx(two.skew_weight, rel=1e-9)
    assert one.downhill == pytest.approx(two.downhill, rel=1e-8)
    for omega in (0.2, 0.9):
        history = majorize(sparse, Y.T, omega, max_iter=60, eps=0).history
        assert np.all(np.diff(history) <= 0)


def test_large_graphs_have_two_levels(monkeypatch):
    monkeypatch.setattr("finsler_ext.mds.estimator.ALL_PAIRS", 200)
    model = FinslerMDS(metric="precomputed", omega_norm=0.3, random_state=0).fit(street_grid(400))
    assert model.skew_weight_ > 1
    assert np.all(np.diff(model.stress_history_) <= 0)


def test_training_points_keep_their_place():
    D = travel_times(60)
    model = FinslerMDS(metric="precomputed", omega_norm=0.5, eps=1e-10, max_iter=3000).fit(D)
    placed = model.transform(D[:5] + 0.0, incoming=D[:, :5].T)
    width = model.embedding_.std(axis=0)
    # a point is no neighbour of itself in the fit; among 60 that moves it little
    assert np.abs(placed - model.embedding_[:5]).max() < 0.2 * width.max()
    assert placed[:, -1] == pytest.approx(model.embedding_[:5, -1], abs=0.05 * width[-1])


def test_the_majoriser_of_a_space_of_one_s_own_is_asked():
    asked = []

    def height(omega):
        asked.append(omega)
        return 1 + omega**2

    space = replace(RANDERS, name="mine", majoriser=Majoriser(height, RANDERS.majoriser.bound))
    _, D = drifted(30)
    mine = FinslerMDS(metric="precomputed", omega_norm=0.3, space=space).fit(D)
    assert set(asked) == {0.3}
    same = FinslerMDS(metric="precomputed", omega_norm=0.3).fit(D)
    assert np.array_equal(mine.embedding_, same.embedding_)
