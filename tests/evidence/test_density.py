"""Does density vary? Against uniform samples, planted densities and redraws of the data."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from finsler_ext.evidence import density_evidence, scale_error


def neighbours(X, k=14):
    distances, indices = NearestNeighbors(n_neighbors=k).fit(X).kneighbors()
    return indices, distances


def sphere(n, d, rng):
    X = rng.normal(size=(n, d + 1))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def torus(n, d, rng):
    turn = rng.uniform(0, 2 * np.pi, size=(n, d))
    return np.hstack([np.cos(turn), np.sin(turn)])


@pytest.mark.parametrize("surface", [sphere, torus])
def test_uniform_samples_are_called_chance(surface):
    """Of 60 uniform samples, 3 are expected below p = 0.05; more than 8 have p < 0.01."""
    rng = np.random.default_rng(0)
    found = [
        density_evidence(*neighbours(surface(200, d, rng))).more_than_chance
        for d in (2, 3, 6)
        for _ in range(20)
    ]
    assert sum(found) <= 8


def test_p_values_of_chance_are_spread():
    """With points as independent units, one in five was below 0.025."""
    rng = np.random.default_rng(0)
    p_values = [density_evidence(*neighbours(sphere(200, 2, rng))).p_value for _ in range(40)]
    assert 0.2 < np.mean(p_values) < 0.8
    assert np.mean(np.array(p_values) < 0.2) < 0.4


def test_density_between_neighbours_and_between_regions():
    rng = np.random.default_rng(0)
    near = density_evidence(*neighbours(rng.normal(size=(1000, 10))))
    far = density_evidence(*neighbours(rng.normal(size=(1000, 2))))
    none = density_evidence(*neighbours(sphere(1000, 2, rng)))
    assert near.more_than_chance
    assert near.held_out.sign > 0.7
    assert near._replace(shown=0.8).summary == "density varies, and the height shows it"
    assert far.more_than_chance
    assert far.held_out.sign < 0.6
    assert "between regions, not between neighbours" in far._replace(shown=0.8).summary
    assert not none.more_than_chance
    assert abs(none.held_out.sign - 0.5) < 0.03
    assert none._replace(shown=0.8).summary == "no more than chance: do not read the height"
    assert near.reliability.near > 0.8 > far.reliability.near
    assert far.reliability.far > 0.8 > none.reliability.far


def test_reliability_is_the_correlation_with_another_draw():
    """Spearman–Brown from a quarter of the neighbours to all, against a second sample."""
    rng = np.random.default_rng(0)
    X, other = rng.normal(size=(2, 1500, 3))
    other[:400], X = X[:400], X  # 400 points stay, the others are drawn anew
    first, second = (np.log(neighbours(Y)[1].mean(axis=1))[:400] for Y in (X, other))
    expected = np.corrcoef(first, second)[0, 1]
    found = density_evidence(*neighbours(X)).reliability.far
    assert found == pytest.approx(expected, abs=0.08)


def test_error_covers_the_mean_over_redraws():
    rng = np.random.default_rng(0)
    places = rng.normal(size=(30, 3))
    level, error = [], []
    for _ in range(40):
        X = np.vstack([places, rng.normal(size=(600, 3))])
        found = scale_error(*neighbours(X))
        level.append(found.potential[:30])
        error.append(found.error[:30])
    apart = np.abs(np.array(level) - np.mean(level, axis=0))
    assert 0.86 <= np.mean(apart < 1.645 * np.array(error)) <= 0.94


def test_heights_are_sure_where_a_point_differs_from_its_neighbours():
    rng = np.random.default_rng(0)
    uniform = scale_error(*neighbours(sphere(500, 2, rng)))
    assert uniform.unsure.mean() > 0.8
    outliers = np.vstack([rng.normal(size=(500, 5)), 8 * np.eye(5)])
    assert not scale_error(*neighbours(outliers)).unsure[-5:].any()


def test_lattices_duplicates_and_few_points_are_not_tested():
    turn = 2 * np.pi * np.arange(60) / 60
    ring = density_evidence(*neighbours(np.column_stack([np.cos(turn), np.sin(turn)])))
    assert not ring.more_than_chance
    grid = np.stack(np.meshgrid(np.arange(20) ** 1.5, np.arange(20)), -1).reshape(-1, 2)
    lattice = density_evidence(*neighbours(grid.astype(float)))
    assert "more evenly than random" in lattice.reason
    assert not lattice.more_than_chance
    same = density_evidence(*neighbours(np.zeros((60, 2))))
    assert same.more_than_chance is None
    assert "same scale" in same.reason
    few = density_evidence(*neighbours(np.arange(10.0)[:, None], k=3))
    assert few.more_than_chance is None
    assert "too few" in few.reason


def test_missing_neighbours_and_many_points():
    rng = np.random.default_rng(0)
    indices, distances = neighbours(rng.normal(size=(6000, 4)))
    indices[::7, 10:], distances[::7, 10:] = -1, np.inf
    found = density_evidence(indices, distances)
    assert found.more_than_chance
    assert np.isfinite(scale_error(indices, distances).error).all()
