"""What every space must be: checked against finite differences and closed forms."""

import pickle

import numpy as np
import pytest
from numba import njit
from scipy.optimize import approx_fprime
from sklearn.base import clone

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP
from finsler_ext.geometry import MATSUMOTO, RANDERS, SPACES, find_space
from finsler_ext.geometry.randers import (
    drift,
    randers_distance,
    randers_distances,
    randers_gradient,
)

DRIFTS = [(RANDERS, 0.0), (RANDERS, 0.3), (RANDERS, 0.95), (MATSUMOTO, 0.0), (MATSUMOTO, 0.49)]


def closed_form(space, step, omega):
    length, rise = np.linalg.norm(step), step[-1]
    return length + omega * rise if space is RANDERS else length**2 / (length - omega * rise)


@pytest.mark.parametrize(("space", "omega"), DRIFTS)
@pytest.mark.parametrize("m", [1, 2, 3, 7])
def test_distance_and_gradient(space, omega, m):
    y, z = np.random.default_rng(m).normal(size=(2, m))
    assert space.distance(y, z, omega) == pytest.approx(closed_form(space, z - y, omega))
    numeric = approx_fprime(y, lambda p: space.distance(p, z, omega), 1e-7)
    assert space.gradient(y, z, omega) == pytest.approx(numeric, abs=1e-5)
    numeric = approx_fprime(z, lambda p: space.distance(y, p, omega), 1e-7)
    assert -space.gradient(y, z, omega) == pytest.approx(numeric, abs=1e-5)


def test_functions_of_the_randers_space_are_those_of_its_formula():
    y, z = np.random.default_rng(0).normal(size=(2, 3))
    omega = drift(0.3, 3)
    length = np.linalg.norm(z - y)
    assert randers_distance(y, z, 0.3) == pytest.approx(length + omega @ (z - y))
    assert randers_gradient(y, z, 0.3) == pytest.approx((y - z) / length - omega)
    assert randers_distances([y, z], 0.3)[1, 0] == pytest.approx(length + omega @ (y - z))


@pytest.mark.parametrize(("space", "omega"), DRIFTS)
def test_coincident_points_have_no_direction(space, omega):
    assert (space.gradient([1.0, 2.0], [1.0, 2.0], omega) == 0).all()


@pytest.mark.parametrize(("space", "omega"), DRIFTS)
def test_partial_derivatives_are_those_of_forward(space, omega):
    d, z, h = np.float64(1.7), np.float64(-0.6), 1e-6
    _, by_length, by_rise = space.forward(d, z, omega)
    numeric = (space.forward(d + h, z, omega)[0] - space.forward(d - h, z, omega)[0]) / (2 * h)
    assert by_length == pytest.approx(numeric, abs=1e-8)
    numeric = (space.forward(d, z + h, omega)[0] - space.forward(d, z - h, omega)[0]) / (2 * h)
    assert omega * float(by_rise) == pytest.approx(numeric, abs=1e-8)


@pytest.mark.parametrize(("space", "omega"), DRIFTS)
def test_it_is_a_directed_metric(space, omega):
    Y = np.random.default_rng(0).normal(size=(20, 3))
    F = space.distances(Y, omega)
    assert (F[~np.eye(20, dtype=bool)] > 0).all()
    assert (F.diagonal() == 0).all()
    assert (F[:, None, :] <= F[:, :, None] + F[None, :, :] + 1e-12).all()
    up = Y[None, :, -1] > Y[:, None, -1]
    assert (F[up] > F.T[up]).all() if omega else np.array_equal(F, F.T)


@pytest.mark.parametrize(("space", "omega"), DRIFTS)
def test_skew_is_the_difference_of_the_two_ways(space, omega):
    Y = np.random.default_rng(0).normal(size=(20, 3))
    source, target = np.triu_indices(20, k=1)
    F = space.distances(Y, omega)
    shown = space.shown_skew(Y, source, target, omega)
    assert 2 * omega * shown == pytest.approx((F - F.T)[source, target])
    if omega == 0:
        assert shown == pytest.approx(Y[target, -1] - Y[source, -1])


@pytest.mark.parametrize(("space", "omega"), DRIFTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_compile_it_in_their_own_precision(space, omega, dtype):
    forward = space.forward

    @njit
    def compiled(length, rise, omega):
        return forward(length, rise, omega)

    given = [dtype(value) for value in (1.7, -0.6, omega)]
    for found, expected in zip(compiled(*given), forward(*given), strict=True):
        assert found == pytest.approx(float(expected), rel=1e-6)
    returned = compiled.nopython_signatures[0].return_type
    assert {str(part) for part in returned} <= {"float32", np.dtype(dtype).name}
    assert all(np.isfinite(compiled(dtype(0), dtype(0), dtype(omega))))


def test_to_first_order_they_are_the_same():
    step = np.random.default_rng(0).normal(size=(50, 3))
    zero = np.zeros(3)
    apart = [abs(MATSUMOTO.distance(zero, step, w) - RANDERS.distance(zero, step, w)).max()
             for w in (0.02, 0.01)]  # fmt: skip
    assert apart[0] / apart[1] == pytest.approx(4.0, rel=0.05)


@pytest.mark.parametrize("space", SPACES.values())
@pytest.mark.parametrize("bad", [-0.1, 1, float("nan"), "x", None, True, [0.5]])
def test_drifts_beyond_the_limit_are_refused(space, bad):
    with pytest.raises(ValueError, match="omega_norm"):
        space.check_drift(bad)


def test_spaces_are_found_by_name_and_survive_pickling():
    for name, space in SPACES.items():
        assert find_space(name) is space
        assert find_space(space) is space
        assert pickle.loads(pickle.dumps(space)) == space
    with pytest.raises(ValueError, match=r"space must be one of .*'matsumoto'"):
        find_space("minkowski")


@pytest.mark.parametrize("estimator", [FinslerUMAP, FinslerTSNE, FinslerMDS])
def test_every_estimator_refuses_unknown_spaces_and_drifts(estimator):
    X = np.random.default_rng(0).normal(size=(60, 4))
    with pytest.raises(ValueError, match="space must be one of"):
        estimator(space="minkowski").fit(X)
    with pytest.raises(ValueError, match=r"omega_norm must lie in \[0, 0.5\).*Try 0.25"):
        estimator(space="matsumoto", omega_norm=0.5).fit(X)
    assert clone(estimator(space=MATSUMOTO)).space == MATSUMOTO
