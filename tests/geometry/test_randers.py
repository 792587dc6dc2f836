import numpy as np
import pytest
from scipy.optimize import approx_fprime

from finsler_ext.geometry.randers import (
    check_omega_norm,
    height,
    map_columns,
    randers_distance,
    randers_distances,
    randers_gradient,
)


@pytest.mark.parametrize("omega", [0.0, 0.3, 0.95])
@pytest.mark.parametrize("m", [1, 2, 3, 7])
def test_gradient_matches_finite_differences(omega, m):
    rng = np.random.default_rng(m)
    y, z = rng.normal(size=(2, m))
    numeric = approx_fprime(y, lambda p: randers_distance(p, z, omega), 1e-7)
    assert randers_gradient(y, z, omega) == pytest.approx(numeric, abs=1e-5)
    numeric = approx_fprime(z, lambda p: randers_distance(y, p, omega), 1e-7)
    assert -randers_gradient(y, z, omega) == pytest.approx(numeric, abs=1e-5)


def test_asymmetry_sits_on_the_height_and_distances_are_positive():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(20, 3))
    F = randers_distances(Y, 0.9)
    h = height(Y)
    assert pytest.approx(2 * 0.9 * (h[None, :] - h[:, None])) == F - F.T
    assert (F[~np.eye(20, dtype=bool)] > 0).all()
    # the triangle inequality, in every direction
    assert (F[:, None, :] <= F[:, :, None] + F[None, :, :] + 1e-12).all()
    assert map_columns(Y).shape == (20, 2)


def test_coincident_points_have_no_direction():
    assert (randers_gradient([1.0, 2.0], [1.0, 2.0], 0.5) == 0).all()


@pytest.mark.parametrize("bad", [-0.1, 1, 1.5, float("nan"), "x", None, True, [0.5]])
def test_omega_norm_outside_the_unit_interval_is_refused(bad):
    with pytest.raises(ValueError, match="omega_norm"):
        check_omega_norm(bad)
