"""New points end up where their exact loss is least."""

import numpy as np
import pytest
from scipy.optimize import minimize

from finsler_ext.geometry import MATSUMOTO, RANDERS
from finsler_ext.umap.kernels import REPULSION_SOFTENING, LossShape
from finsler_ext.umap.transform import place_points

A, B = 1.5769, 0.8951
RNG = np.random.default_rng(0)
FIXED = (RNG.normal(size=(60, 3)) * [3, 3, 1]).astype(np.float32)
NEAR = np.array([np.argsort(np.linalg.norm(FIXED - FIXED[i], axis=1))[:8] for i in range(6)])
OUT = RNG.uniform(0.2, 1, size=NEAR.shape).astype(np.float32)
INTO = RNG.uniform(0.2, 1, size=NEAR.shape).astype(np.float32)


def place(omega, n_epochs=400, rows=slice(None), **kwds):
    options = {"omega_norm": omega, "n_epochs": n_epochs, "seed": 1} | kwds
    shape = LossShape(A, B, space=options.pop("space", RANDERS))
    return place_points(FIXED, NEAR[rows], OUT[rows], INTO[rows], shape, **options)


def exact_loss(y, row, omega, space=RANDERS):
    """Attraction along the edges and the expectation of the sampled repulsion."""
    q = lambda F: 1 / (1 + A * F ** (2 * B))  # noqa: E731
    there = space.distance(y, FIXED, omega)
    back = space.distance(FIXED, y, omega)
    pull = -(OUT[row] * np.log(q(there[NEAR[row]])) + INTO[row] * np.log(q(back[NEAR[row]]))).sum()
    push = 0.0
    for F in (there, back):  # the antiderivative of 2b F/((ε + F²)(1 + a F^{2b})), up to ε
        push += -np.log(1 - q(np.sqrt(F**2 + REPULSION_SOFTENING))).mean() / 2
    return pull + 5 * OUT[row].sum() * push


# Beyond 0.7 many forces of these few points reach their limit, which the loss knows nothing of.
@pytest.mark.parametrize(
    ("space", "omega"), [(RANDERS, 0.0), (RANDERS, 0.5), (RANDERS, 0.7), (MATSUMOTO, 0.35)]
)
def test_places_are_minima_of_the_exact_loss(space, omega):
    placed = np.mean([place(omega, seed=s, space=space) for s in range(20)], axis=0)
    for row in range(len(NEAR)):
        best = minimize(exact_loss, placed[row], args=(row, omega, space), method="Nelder-Mead")
        assert np.linalg.norm(best.x - placed[row]) < 0.15
        assert exact_loss(placed[row], row, omega, space) < best.fun + 0.02 * abs(best.fun)


def test_placing_descends():
    start, end = place(0.5, n_epochs=0), place(0.5)
    for row in range(len(NEAR)):
        assert exact_loss(end[row], row, 0.5) <= exact_loss(start[row], row, 0.5)


def test_no_epochs_give_the_mean_of_the_neighbours():
    weight = (OUT + INTO)[..., None]
    mean = (weight * FIXED[NEAR]).sum(axis=1) / weight.sum(axis=1)
    np.testing.assert_allclose(place(0.5, n_epochs=0), mean, rtol=1e-5, atol=1e-6)


def test_rows_do_not_see_each_other_nor_the_threads():
    together = place(0.5)
    for row in range(len(NEAR)):
        assert np.array_equal(place(0.5, rows=slice(row, row + 1))[0], together[row])
    many = np.tile(NEAR, (500, 1)), np.tile(OUT, (500, 1)), np.tile(INTO, (500, 1))
    options = {"shape": LossShape(A, B), "omega_norm": 0.5, "n_epochs": 5, "seed": 1}
    one, two = (place_points(FIXED, *many, n_threads=t, **options) for t in (1, 2))
    assert np.array_equal(one, two)


def test_points_without_a_place_take_no_part():
    lost = FIXED.copy()
    lost[40:] = np.nan
    options = {"shape": LossShape(A, B), "omega_norm": 0.5, "n_epochs": 50, "seed": 1}
    near = np.array([[0, 41, 1], [45, 46, -1]])
    weight = np.ones(near.shape, dtype=np.float32)
    placed = place_points(lost, near, weight, weight, **options)
    assert np.isfinite(placed[0]).all()
    assert np.isnan(placed[1]).all()
