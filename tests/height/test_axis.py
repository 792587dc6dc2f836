"""The direction of the drift: rotations, and searches whose answer is known."""

import numpy as np
import pytest

from finsler_ext.height.acts import best_axis, canonical_map, rotation_onto_last

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_rotations_take_the_axis_to_the_last_one(m):
    for _ in range(5):
        axis = RNG.normal(size=m)
        axis /= np.linalg.norm(axis)
        R = rotation_onto_last(axis)
        assert R @ axis == pytest.approx(np.eye(m)[-1])
        assert pytest.approx(np.eye(m)) == R @ R.T
        if m > 1:
            assert np.linalg.det(R) == pytest.approx(1)
    for sign in (1, -1):
        axis = sign * np.eye(m)[-1]
        assert rotation_onto_last(axis) @ axis == pytest.approx(np.eye(m)[-1])


@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_lowest_direction_of_a_linear_and_a_bent_loss_is_found(m):
    wanted = RNG.normal(size=m)
    wanted /= np.linalg.norm(wanted)

    def linear(u):
        return 100.0 - 3.0 * wanted @ u, -3.0 * wanted

    assert best_axis(linear, m, wanted) == pytest.approx(wanted, abs=1e-6)
    if m > 1:
        bend = 0.4 * np.eye(m)[0]

        def bent(u):
            return 5 - wanted @ u + (bend @ u) ** 2, -wanted + 2 * (bend @ u) * bend

        around = RNG.normal(size=(20_000, m))
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        lowest = min(bent(u)[0] for u in around)
        assert bent(best_axis(bent, m, wanted))[0] < lowest + 1e-3


def test_nothing_turns_unless_the_loss_falls():
    assert np.array_equal(best_axis(lambda u: (1.0, np.zeros(3)), 3), [0, 0, 1])
    assert np.array_equal(best_axis(lambda u: (-u[-1], np.array([0, 0, -1.0])), 3), [0, 0, 1])


def test_the_map_gets_principal_axes_and_the_height_stays():
    Y = RNG.normal(size=(200, 3)) * [1, 4, 9] @ np.diag([1, 1, 1])
    shown = Y @ canonical_map(Y).T
    assert shown[:, 2] == pytest.approx(Y[:, 2])
    assert shown[:, 0].std() > shown[:, 1].std()
    assert abs(np.cov(shown[:, 0], shown[:, 1])[0, 1]) < 1e-9
    for column in shown[:, :2].T:
        assert column[np.abs(column - column.mean()).argmax()] > column.mean()
    # the same layout in another frame gets the same picture
    angle = 1.1
    turn = np.array(
        [[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]]
    )
    again = Y @ turn.T
    assert again @ canonical_map(again).T == pytest.approx(shown)
