"""Optimal scaling against brute force, planted constants, and the promise that stress falls."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize_scalar, nnls
from scipy.stats import spearmanr

from finsler_ext._threads import RowPool
from finsler_ext.geometry import MATSUMOTO, RANDERS
from finsler_ext.geometry.randers import randers_distances
from finsler_ext.mds.estimator import FinslerMDS, finsler_mds_gd, finsler_smacof
from finsler_ext.mds.general_stress import GeneralStress
from finsler_ext.mds.scaling import OrdinalStress, Transformation, transformation_at
from finsler_ext.mds.stress import dense_stress

KINDS = ("ratio", "interval", "ordinal")


def planted(n=40, omega=0.4, constant=0.0, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    D = randers_distances(rng.normal(size=(n, 3)), omega) + constant
    D = D * np.exp(noise * rng.normal(size=D.shape))
    np.fill_diagonal(D, 0.0)
    return D


def weights_of(n, how, seed=1):
    rng = np.random.default_rng(seed)
    W = rng.uniform(0.2, 2.0, size=(n, n)) * (rng.uniform(size=(n, n)) < 0.8)
    if how == "none":
        return None
    gone = rng.uniform(size=(n, n)) < 0.3
    if how != "uneven":
        W = W + W.T
    if how == "one way":
        W = np.where(gone & ~gone.T, 0.0, W)
    np.fill_diagonal(W, 0.0)
    return W


def problem_of(D, how, kind, space=RANDERS):
    W = weights_of(len(D), how)
    interval = kind == "interval"
    if how == "uneven":
        mean = dense_stress(D, (W + W.T) / 2)
        base = GeneralStress(D, W, mean.unit, mean.solver, space, interval=interval)
    else:
        base = replace(dense_stress(D, W), interval=interval)
    problem = OrdinalStress(D, W, base) if kind == "ordinal" else base
    return problem, (np.ones_like(D) - np.eye(len(D)) if W is None else W)


def best_stress(F, D, W, kind):
    """By general optimisers, in the units of the data."""
    known = W > 0
    f, d, w = F[known], D[known], W[known]
    if kind == "ratio":
        return w @ (f - d) ** 2
    if kind == "interval":
        found = minimize_scalar(lambda a: w @ (f + a - d) ** 2, bounds=(0, d.max()))
        return found.fun
    knots, rank = np.unique(d, return_inverse=True)
    # rising = first value (any sign, as a difference of two) plus increments ≥ 0
    steps = np.tril(np.ones((len(knots), len(knots))))[rank]
    steps = np.column_stack([steps, -np.ones(len(steps))])
    increments, _ = nnls(np.sqrt(w)[:, None] * steps, np.sqrt(w) * f)
    rising = steps @ increments
    rising *= np.sqrt(w @ d**2 / (w @ rising**2))
    return w @ (f - rising) ** 2


@pytest.mark.parametrize("kind", ["interval", "ordinal"])
@pytest.mark.parametrize(
    ("how", "space"),
    [
        ("none", RANDERS),
        ("symmetric", RANDERS),
        ("one way", RANDERS),
        ("uneven", RANDERS),
        ("uneven", MATSUMOTO),
    ],
)
def test_the_stress_is_that_of_the_best_scaling_and_its_slope_the_gradient(kind, how, space):
    D = np.ceil(3 * planted(9, constant=0.3, noise=0.2))  # whole numbers, so that there are ties
    problem, W = problem_of(D, how, kind, space)
    position = np.random.default_rng(3).normal(size=(3, 9))

    def stress(y):
        Y = y.reshape(3, 9).T * problem.unit
        return best_stress(space.distances(Y, 0.4), D, W, kind) / problem.unit**2

    with RowPool(9, 1) as pool:
        here = problem.slope(position, 0.4, pool)
    assert here.stress == pytest.approx(stress(position.ravel()), rel=1e-5)
    step = 1e-5 * np.eye(27)
    with RowPool(9, 1) as pool:
        gradient = [
            problem.slope((position.ravel() + e).reshape(3, 9), 0.4, pool).stress
            - problem.slope((position.ravel() - e).reshape(3, 9), 0.4, pool).stress
            for e in step
        ]
    assert -4 * here.downhill.ravel() == pytest.approx(
        np.array(gradient) / 2e-5, rel=1e-4, abs=1e-4
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["none", "symmetric", "one way", "uneven"])
@pytest.mark.parametrize("omega", [0.1, 0.9])
def test_every_step_lowers_the_stress(kind, how, omega):
    D = planted(30, 0.5, constant=1.0, noise=0.3)
    D[0, 1] = D[1, 0] = 0.01  # the constant will exceed it
    W = weights_of(30, how)
    for start in (0, 1):
        result = finsler_smacof(
            D, omega_norm=omega, scaling=kind, weights=W, init="random", n_init=1, eps=0,
            max_iter=60, random_state=start, accelerate=start == 0,
        )  # fmt: skip
        history = result.stress_history
        assert len(history) > 20
        assert np.all(np.diff(history) <= 0)
        assert history[-1] < 0.9 * history[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("missing", [False, True])
def test_a_planted_constant_is_found(dtype, missing):
    D = planted(60, 0.4, constant=1.5).astype(dtype)
    if missing:
        gone = np.random.default_rng(0).uniform(size=D.shape) < 0.3
        np.fill_diagonal(gone, False)
        D[gone] = np.nan
    model = FinslerMDS(metric="precomputed", omega_norm=0.4, scaling="interval", max_iter=2000)
    model.fit(D)
    assert model.transformation_.kind == "interval"
    assert model.transformation_.constant == pytest.approx(1.5, abs=0.02)
    assert model.normalized_stress_ < 1e-4
    assert model.skew_fidelity_.sign > 0.98
    plain = FinslerMDS(metric="precomputed", omega_norm=0.4).fit(D)
    assert plain.transformation_ == Transformation()
    assert model.stress_ < 0.01 * plain.stress_


def test_the_constant_is_the_best_one_and_not_negative():
    problem = replace(dense_stress(planted(20)), interval=True)
    position = np.random.default_rng(0).normal(size=(3, 20))
    with RowPool(20, 1) as pool:
        assert problem.constant(100 * position, 0.3, pool) == 0.0
        assert problem.constant(0 * position, 0.3, pool) > 0.5


def test_a_constant_in_a_matsumoto_space():
    D = MATSUMOTO.distances(np.random.default_rng(0).normal(size=(60, 3)), 0.4) + 1.5
    np.fill_diagonal(D, 0.0)
    settings = {"metric": "precomputed", "omega_norm": 0.4, "space": "matsumoto", "max_iter": 400}
    model = FinslerMDS(scaling="interval", **settings).fit(D)
    assert model.transformation_.constant == pytest.approx(1.5, abs=0.05)
    assert model.stress_ < 0.05 * FinslerMDS(**settings).fit(D).stress_
    found = FinslerMDS(scaling="auto", **settings).fit(D)
    assert found.scaling_choice_.kind == "interval"


def test_no_constant_is_needed_where_there_is_none():
    D = planted(50, 0.3)
    found = finsler_smacof(D, omega_norm=0.3, scaling="interval", eps=1e-10, max_iter=3000)
    assert found.transformation.constant < 1e-3 * D.mean()
    assert found.normalized_stress < 1e-6


def test_order_is_enough():
    D = planted(40, 0.3)
    for bent in (D**3, np.log1p(5 * D)):
        np.fill_diagonal(bent, 0.0)
        found = finsler_smacof(
            bent, omega_norm=0.3, scaling="ordinal", eps=1e-9, max_iter=2000, random_state=0
        )
        F = randers_distances(found.embedding, 0.3)
        off = ~np.eye(40, dtype=bool)
        assert spearmanr(F[off], D[off]).statistic > 0.999
        scaled = found.transformation.disparities(bent)
        assert (scaled[off] ** 2).sum() == pytest.approx((bent[off] ** 2).sum())
        assert np.all(np.diff(scaled[off][np.argsort(bent[off])]) >= 0)
        assert found.stress == pytest.approx(((F - scaled)[off] ** 2).sum(), rel=1e-6)


@pytest.mark.parametrize("kind", ["interval", "ordinal"])
def test_gradient_descent_takes_scalings_too(kind):
    D = planted(40, 0.4, constant=1.0, noise=0.05)
    by_steps = finsler_smacof(D, omega_norm=0.4, scaling=kind)
    by_slopes = finsler_mds_gd(D, omega_norm=0.4, scaling=kind, max_iter=300)
    assert by_slopes.stress < 1.1 * by_steps.stress


@pytest.mark.parametrize("how", ["none", "one way"])
def test_auto_finds_drift_and_scaling(how):
    D = planted(80, 0.3, constant=1.5, noise=0.02)
    if how == "one way":
        D[np.random.default_rng(0).uniform(size=D.shape) < 0.3] = np.nan
        np.fill_diagonal(D, 0)
    model = FinslerMDS(metric="precomputed", omega_norm="auto", scaling="auto").fit(D)
    assert model.scaling_choice_.kind == "interval" == model.transformation_.kind
    assert model.omega_norm_ == pytest.approx(0.3, abs=0.03)
    assert {trial.kind for trial in model.scaling_choice_.trials} == set(KINDS)
    errors = {trial.kind: trial.error for trial in model.scaling_choice_.trials}
    assert errors["interval"] < 0.2 * errors["ratio"]


def test_auto_keeps_distances_that_need_no_scaling():
    D = planted(60, 0.3, noise=0.05)
    result = finsler_smacof(D, omega_norm=0.3, scaling="auto")
    assert result.scaling_choice.kind == "ratio"
    bent = finsler_smacof(D**2, omega_norm=0.3, scaling="auto")
    assert bent.transformation.kind == "ordinal"


def test_auto_with_three_points_and_with_columns():
    D = np.array([[0, 2, 3.0], [1, 0, 2], [3, 3, 0]])
    found = finsler_smacof(D, n_components=2, scaling="auto")
    assert found.scaling_choice.kind == "ratio"
    D = planted(60, 0.3, constant=2.0)
    model = FinslerMDS("auto", metric="precomputed", scaling="auto", omega_norm="auto").fit(D)
    assert model.column_choice_.n_components == 3
    assert model.transformation_.kind == "interval"


@pytest.mark.parametrize("kind", ["interval", "ordinal"])
def test_new_points_go_where_they_were(kind):
    D = planted(50, 0.3, constant=1.0)
    model = FinslerMDS(metric="precomputed", omega_norm=0.3, scaling=kind, eps=1e-9, max_iter=3000)
    model.fit(D)
    there, back = D[:5].copy(), D[:, :5].T.copy()
    there[np.arange(5), np.arange(5)] = back[np.arange(5), np.arange(5)] = np.nan
    again = model.transform(there, incoming=back)
    assert np.abs(again - model.embedding_[:5]).max() < 0.1


@pytest.mark.parametrize(
    "solver", [finsler_smacof, partial(finsler_mds_gd, space="matsumoto", omega_norm=0.4)]
)
def test_threads_do_not_change_a_bit(solver):
    D = planted(2100, 0.4, constant=1.0).astype(np.float32)
    one, two = (
        solver(D, scaling="interval", max_iter=4, n_jobs=j, random_state=0).embedding
        for j in (1, 2)
    )
    assert np.array_equal(one, two)


def test_the_caller_s_random_numbers_are_left_alone():
    D = planted(30)
    one = finsler_smacof(D, scaling="auto", init="random", n_init=1, random_state=0)
    two = finsler_smacof(
        D, scaling=one.transformation.kind, init="random", n_init=1, random_state=0
    )
    assert np.array_equal(one.embedding, two.embedding)


def test_distances_of_a_ratio_problem_stand_for_themselves():
    D = planted(12)
    assert transformation_at(dense_stress(D), np.zeros((12, 3)), 0.1).kind == "ratio"
    interval = Transformation("interval", 0.5).disparities(np.array([1.0, np.nan]))
    assert interval == pytest.approx([0.5, np.nan], nan_ok=True)
