"""The directed stress, its majorisation, its descent and its starts."""

from functools import partial

import numpy as np
import pytest
import scipy.linalg
from scipy.sparse.csgraph import connected_components
from scipy.spatial import procrustes
from sklearn.manifold import smacof

from finsler_ext._threads import RowPool
from finsler_ext.directed.laplacian import (
    FactorisedLaplacian,
    IterativeLaplacian,
    UniformLaplacian,
    group_labels,
    laplacian_solver,
)
from finsler_ext.geometry import MATSUMOTO, RANDERS
from finsler_ext.geometry.randers import randers_distances
from finsler_ext.mds.descent import descend, majorize
from finsler_ext.mds.drift import search_drift
from finsler_ext.mds.general_stress import GeneralStress
from finsler_ext.mds.start import InitialLayout, classical_scaling
from finsler_ext.mds.stress import dense_stress
from finsler_ext.mds.transform import place_points

OMEGAS = (0.0, 0.1, 0.5, 0.9, 0.99)


def random_problem(n=40, seed=0, weighted=False, dtype=np.float64):
    rng = np.random.default_rng(seed)
    D = (3 * rng.random((n, n))).astype(dtype)
    np.fill_diagonal(D, 0)
    if not weighted:
        return D, None
    W = rng.random((n, n)) * (rng.random((n, n)) > 0.3)
    W = np.triu(W, 1)
    return D, (W + W.T).astype(dtype)


def stress(Y, D, omega, W=None, space=RANDERS):
    square = (space.distances(Y, omega) - D) ** 2 * (1.0 if W is None else W)
    return square.sum() - np.trace(square)


def numerical_gradient(function, Y, step=1e-6):
    gradient = np.empty_like(Y)
    for at in np.ndindex(*Y.shape):
        there, back = Y.copy(), Y.copy()
        there[at] += step
        back[at] -= step
        gradient[at] = (function(there) - function(back)) / (2 * step)
    return gradient


@pytest.mark.parametrize("omega", OMEGAS)
@pytest.mark.parametrize("weighted", [False, True])
def test_stress_and_slope_are_those_of_the_definition(omega, weighted):
    D, W = random_problem(weighted=weighted)
    problem = dense_stress(D, W)
    Y = np.random.default_rng(1).normal(size=(40, 3))
    with RowPool(40, 1) as pool:
        here = problem.slope(Y.T / problem.unit, omega, pool)
    assert here.stress * problem.unit**2 == pytest.approx(stress(Y, D, omega, W), rel=1e-12)
    numerical = numerical_gradient(lambda Z: stress(Z, D, omega, W), Y)
    analytic = -4 * here.downhill.T * problem.unit
    assert analytic == pytest.approx(numerical, rel=1e-5, abs=1e-5 * abs(numerical).max())


@pytest.mark.parametrize("weighted", [False, True])
def test_the_level_is_the_best_height_there_can_be(weighted):
    D, W = random_problem(weighted=weighted)
    problem = dense_stress(D, W)
    weights = np.ones_like(D) if W is None else W
    i, j = np.nonzero(weights * (1 - np.eye(len(D))))
    K = (D - D.T)[i, j] / 2
    root = np.sqrt(weights[i, j])
    design = np.zeros((len(i), len(D)))
    design[np.arange(len(i)), j] = root
    design[np.arange(len(i)), i] = -root
    best, *_ = np.linalg.lstsq(design, root * K, rcond=None)
    assert problem.level * problem.unit == pytest.approx(best - best.mean(), abs=1e-10)
    left = ((root * K - design @ best) ** 2).sum()
    assert problem.cyclic * problem.unit**2 == pytest.approx(left, rel=1e-9)
    assert problem.gradient_share == pytest.approx(1 - left / ((root * K) ** 2).sum(), abs=1e-9)


def test_a_ring_is_all_cyclic_and_a_ladder_not_at_all():
    ring = np.ones((3, 3)) + np.roll(np.eye(3), 1, axis=1)
    ladder = 2.0 + np.arange(3.0) / 2 - np.arange(3.0)[:, None] / 2
    for D in (ring, ladder):
        np.fill_diagonal(D, 0)
    assert dense_stress(ring).gradient_share == pytest.approx(0, abs=1e-12)
    assert dense_stress(ladder).gradient_share == pytest.approx(1, abs=1e-12)
    assert np.isnan(dense_stress(ladder + ladder.T).gradient_share)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("init", ["random", "finsler", "isomap"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("omega", OMEGAS)
def test_the_stress_never_rises(omega, weighted, init, accelerate):
    D, W = random_problem(weighted=weighted)
    problem = dense_stress(D, W)
    start = InitialLayout(init, 3, problem, np.random.RandomState(0))(omega)
    run = majorize(problem, start, omega, max_iter=60, eps=0, accelerate=accelerate)
    history = np.append(stress(start, D, omega, W), run.history)
    assert np.all(np.diff(history) <= 1e-12 * history[0])
    assert run.history[-1] < 0.9 * history[0] or init != "random"
    assert run.stress == pytest.approx(stress(run.position, D, omega, W), rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("omega", OMEGAS)
def test_an_exact_configuration_stays(omega, weighted):
    Y = np.random.default_rng(2).normal(size=(30, 3))
    Y -= Y.mean(axis=0)
    _, W = random_problem(30, weighted=weighted)
    run = majorize(dense_stress(randers_distances(Y, omega), W), Y, omega, eps=0, max_iter=20)
    assert run.stress < 1e-12
    assert run.position == pytest.approx(Y, abs=1e-8)


def test_acceleration_ends_no_higher_after_as_many_iterations():
    D, _ = random_problem(60)
    problem = dense_stress(D)
    start = InitialLayout("finsler", 3, problem, np.random.RandomState(0))(0.5)
    plain, fast = (
        majorize(problem, start, 0.5, max_iter=100, eps=0, accelerate=a) for a in (False, True)
    )
    assert fast.stress <= plain.stress


def test_without_drift_it_is_smacof():
    D, _ = random_problem(50)
    S = (D + D.T) / 2
    start = np.random.default_rng(3).normal(size=(50, 3))
    for n_iter in (1, 7, 50):
        theirs, _ = smacof(
            S, n_components=3, init=start, n_init=1, max_iter=n_iter, eps=0,
            normalized_stress=False,
        )  # fmt: skip
        ours = majorize(
            dense_stress(D), start, 0.0, max_iter=n_iter, eps=0, accelerate=False
        ).position
        assert ours == pytest.approx(theirs - theirs.mean(axis=0), abs=1e-8)


def test_scaling_the_data_scales_the_result():
    D, _ = random_problem(40)
    start = np.random.default_rng(4).normal(size=(40, 3))
    small = majorize(dense_stress(D), start, 0.5, max_iter=20)
    large = majorize(dense_stress(1024.0 * D), 1024.0 * start, 0.5, max_iter=20)
    assert np.array_equal(large.position, 1024.0 * small.position)


def test_float32_agrees_with_float64():
    D, W = random_problem(80, weighted=True)
    for weights in (None, W):
        problem = dense_stress(D, weights)
        half = dense_stress(
            D.astype(np.float32), None if weights is None else weights.astype(np.float32)
        )
        assert half.mean.dtype == np.float32
        start = InitialLayout("finsler", 3, problem, np.random.RandomState(0))(0.5)
        ours = majorize(half, start, 0.5, max_iter=10, eps=0)
        exact = majorize(problem, start, 0.5, max_iter=10, eps=0)
        assert ours.stress == pytest.approx(exact.stress, rel=1e-5)
        assert ours.position == pytest.approx(exact.position, abs=1e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_threads_do_not_change_a_bit(weighted):
    rng = np.random.default_rng(5)
    D = randers_distances(rng.normal(size=(2100, 3)), 0.4).astype(np.float32)
    D *= 1 + 0.1 * rng.random(D.shape, dtype=np.float32)
    W = None
    if weighted:
        W = np.triu(rng.random(D.shape, dtype=np.float32), 1)
        W = W + W.T
    results = []
    for n_threads in (1, 2):
        problem = dense_stress(D, W, n_threads)
        start = InitialLayout("finsler", 3, problem, np.random.RandomState(0), n_threads)(0.5)
        results.append(majorize(problem, start, 0.5, max_iter=3, n_threads=n_threads))
    assert np.array_equal(results[0].position, results[1].position)
    assert np.array_equal(results[0].history, results[1].history)


# ------------------------------------------------------------------ V x = b


def test_all_solvers_solve_the_same_equation():
    _, W = random_problem(60, weighted=True)
    b = np.random.default_rng(6).normal(size=(3, 60))
    b -= b.mean(axis=1, keepdims=True)
    V = np.diag(W.sum(axis=1)) - W
    exact = b @ np.linalg.pinv(V)
    assert FactorisedLaplacian(W).solve(b) == pytest.approx(exact, abs=1e-10)
    assert IterativeLaplacian(W).solve(b, exactly=True) == pytest.approx(exact, abs=1e-9)
    ones = np.ones((60, 60)) - np.eye(60)
    assert UniformLaplacian(60).solve(b) == pytest.approx(FactorisedLaplacian(ones).solve(b))


def test_conjugate_gradients_cut_short_still_lower_the_stress(monkeypatch):
    monkeypatch.setattr("finsler_ext.directed.laplacian.FACTORISED_BELOW", 10)
    monkeypatch.setattr("finsler_ext.directed.laplacian.STEP_ITERATIONS", 2)
    D, W = random_problem(weighted=True)
    problem = dense_stress(D, W)
    assert isinstance(problem.solver, IterativeLaplacian)
    start = InitialLayout("random", 3, problem, np.random.RandomState(0))(0.9)
    run = majorize(problem, start, 0.9, max_iter=60, eps=0, accelerate=False)
    assert np.all(np.diff(run.history) <= 1e-12 * run.history[0])
    monkeypatch.undo()
    exact = majorize(dense_stress(D, W), start, 0.9, max_iter=60, eps=0, accelerate=False)
    assert run.stress == pytest.approx(exact.stress, rel=0.05)


def test_groups_are_connected_components(monkeypatch):
    monkeypatch.setattr("finsler_ext._threads.BLOCK_ROWS", 3)
    rng = np.random.default_rng(12)
    for share in (0.0, 0.01, 0.02, 0.05, 0.5):
        W = np.triu(rng.random((60, 60)) < share, 1).astype(float)
        W = W + W.T
        assert group_labels(W).tolist() == connected_components(W, directed=False)[1].tolist()


@pytest.mark.parametrize("solver", [FactorisedLaplacian, IterativeLaplacian])
def test_groups_are_solved_one_by_one(solver):
    W = scipy.linalg.block_diag(*(random_problem(n, n, weighted=True)[1] for n in (15, 20)))
    b = np.random.default_rng(6).normal(size=(3, 35))
    exact = b @ np.linalg.pinv(np.diag(W.sum(axis=1)) - W)
    found = solver(W)
    assert found.solve(b, exactly=True) == pytest.approx(exact, abs=1e-9)
    assert found.labels.tolist() == [0] * 15 + [1] * 20


# ------------------------------------------------------------------ starts


def test_classical_scaling_gives_back_euclidean_points():
    for n in (100, 700):  # dense and iterative eigensolver
        Y = np.random.default_rng(7).normal(size=(n, 3)) * [3, 2, 1]
        problem = dense_stress(randers_distances(Y, 0.0))
        scores = classical_scaling(problem, 3, np.random.RandomState(0)) * problem.unit
        assert randers_distances(scores, 0) == pytest.approx(randers_distances(Y, 0), abs=2e-3)


@pytest.mark.parametrize("share", [0.1, 0.7])
def test_a_start_with_missing_pairs_is_near_the_points(share):
    rng = np.random.default_rng(13)
    Y = rng.uniform(size=(200, 2))
    D = randers_distances(Y, 0.0)
    # the nearest ones are known, as in a graph, or any
    order = D if share < 0.5 else rng.random(D.shape)
    W = (order < np.quantile(order, share)).astype(float)
    W = np.maximum(W, W.T) - np.eye(200) * W
    problem = dense_stress(np.where(W > 0, D, 0.0), W)
    scores = classical_scaling(problem, 2, np.random.RandomState(0))
    assert procrustes(Y, scores)[2] < 0.02


def test_the_finsler_start_finds_the_axis_of_the_drift():
    rng = np.random.default_rng(8)
    Y = rng.normal(size=(150, 3)) * [1, 2, 3]
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    wind = turn[:, 0]
    D = np.linalg.norm(Y[:, None] - Y, axis=2) + 0.3 * ((Y @ wind) - (Y @ wind)[:, None])
    problem = dense_stress(D)
    start = InitialLayout("finsler", 3, problem, np.random.RandomState(0))(0.3)
    assert np.corrcoef(start[:, -1], Y @ wind)[0, 1] > 0.9999
    assert stress(start, D, 0.3) < 1e-3 * (D**2).sum()


def test_the_isomap_start_is_flat_unless_nothing_would_lift_it():
    D, _ = random_problem()
    for given, omega, flat in ((D, 0.5, True), (D, 0.0, False), (D + D.T, 0.5, False)):
        start = InitialLayout("isomap", 3, dense_stress(given), np.random.RandomState(0))(omega)
        assert bool(np.ptp(start[:, -1]) == 0) is flat


def test_data_of_lower_dimension_gets_some_extent_in_every_column():
    line = np.arange(20.0)[:, None]
    problem = dense_stress(randers_distances(line, 0.0))
    start = InitialLayout("finsler", 3, problem, np.random.RandomState(0))(0.0)
    assert np.all(start.std(axis=0) > 0)


# ------------------------------------------------------------------ gradient descent


@pytest.mark.parametrize(
    ("space", "omega"), [(RANDERS, 0.0), (RANDERS, 0.5), (RANDERS, 0.9), (MATSUMOTO, 0.45)]
)
def test_slope_with_asymmetric_weights(space, omega):
    rng = np.random.default_rng(9)
    D, _ = random_problem(25)
    W = rng.random((25, 25)) * (rng.random((25, 25)) > 0.3)
    np.fill_diagonal(W, 0)
    Y = rng.normal(size=(25, 3))
    with RowPool(25, 1) as pool:
        here = GeneralStress(D, W, 1.0, space=space).slope(Y.T, omega, pool)
    assert here.stress == pytest.approx(stress(Y, D, omega, W, space), rel=1e-12)
    numerical = numerical_gradient(lambda Z: stress(Z, D, omega, W, space), Y)
    analytic = -4 * here.downhill.T
    assert analytic == pytest.approx(numerical, abs=1e-5 * abs(numerical).max())


def test_descent_finds_what_majorisation_finds():
    Y = np.random.default_rng(10).normal(size=(60, 3))
    D = randers_distances(Y, 0.5) * (1 + 0.05 * np.random.default_rng(0).random((60, 60)))
    problem = dense_stress(D)
    start = InitialLayout("finsler", 3, problem, np.random.RandomState(0))(0.5)
    best = majorize(problem, start, 0.5).stress
    symmetric = descend(problem, start, 0.5)
    assert len(symmetric.history) == 100
    assert symmetric.stress == pytest.approx(best, rel=0.02)
    directed = GeneralStress(D, np.ones_like(D) - np.eye(60), problem.unit)
    assert descend(directed, start, 0.5).position == pytest.approx(symmetric.position, abs=1e-6)


# ------------------------------------------------------------------ drift, new points


def follows(planted, memory):
    """A layout that suits a drift between the one it was made at and the one planted."""
    return lambda omega: ((omega - planted) ** 2, planted + memory * (omega - planted))


@pytest.mark.parametrize("memory", [0.0, 0.3, 0.6])
def test_the_drift_search_finds_a_minimum_between_and_at_the_ends(memory):
    found = search_drift(follows(0.123, memory), 0.05)
    assert found.omega_norm == pytest.approx(0.123, abs=2e-3)
    assert len(found.trials) <= 3
    assert search_drift(follows(0.0, memory), 0.0).omega_norm == 0.0
    assert search_drift(follows(2.0, memory), 0.5).omega_norm == pytest.approx(0.95)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_drift_that_suits_a_layout_has_the_lowest_stress(weighted):
    D, W = random_problem(weighted=weighted)
    symmetric = dense_stress(D, W)
    pairs = np.ones_like(D) - np.eye(40) if W is None else W
    directed = GeneralStress(D, pairs, symmetric.unit)
    Y = np.random.default_rng(1).normal(size=(40, 3)) * [1, 1, -1]  # it calls for a drift > 0
    for problem in (symmetric, directed):
        with RowPool(40, 1) as pool:
            square, pull = problem.drift_pull(Y.T / problem.unit, 0.0, pool)
        best = pull[-1] / square[-1, -1]
        around = [stress(Y, D, best + step, W) for step in (-1e-3, 0.0, 1e-3)]
        assert around[1] < min(around[0], around[2])
        assert around[0] == pytest.approx(around[2], rel=1e-6)


@pytest.mark.parametrize("omega", [0.0, 0.3, 0.9, 0.99])
def test_steps_with_asymmetric_weights_lower_the_stress(omega):
    rng = np.random.default_rng(3)
    D, _ = random_problem()
    W = rng.random((40, 40)) * (rng.random((40, 40)) > 0.5)
    np.fill_diagonal(W, 0)
    problem = GeneralStress(D, W, 1.0, laplacian_solver((W + W.T) / 2, 40))
    for seed in range(3):
        start = np.random.default_rng(seed).normal(size=(40, 3))
        run = majorize(problem, start, omega, eps=0, max_iter=30, accelerate=False)
        assert np.all(np.diff(run.history) <= 0)
        assert run.history[0] < stress(start, D, omega, W)
        assert run.stress == pytest.approx(stress(run.position, D, omega, W), rel=1e-9)


@pytest.mark.parametrize(
    ("space", "omega"), [(RANDERS, 0.0), (RANDERS, 0.4), (RANDERS, 0.9), (MATSUMOTO, 0.4)]
)
def test_new_points_find_their_place(space, omega):
    rng = np.random.default_rng(11)
    Y, new = rng.normal(size=(100, 3)), rng.normal(size=(20, 3))
    whole = space.distances(np.vstack([Y, new]), omega)
    place = partial(place_points, Y, omega_norm=omega, space=space)
    there, back = whole[100:, :100], whole[:100, 100:].T
    assert place(there, back) == pytest.approx(new, abs=1e-5)
    # one direction alone will do, and so will half of the points
    assert place(there, np.full_like(back, np.nan)) == pytest.approx(new, abs=1e-5)
    there[:, ::2] = np.nan
    assert place(there, back) == pytest.approx(new, abs=1e-5)
