"""Has directed data a direction? Against random graphs, planted potentials and redraws."""

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import spearmanr

from finsler_ext.asymmetry import Asymmetry
from finsler_ext.evidence import direction as module
from finsler_ext.evidence import (
    direction_evidence,
    measured_pairs,
    potential_error,
    velocity_evidence,
)


def random_digraph(n, degree, rng):
    edges = rng.random((n, n)) < degree / n
    np.fill_diagonal(edges, False)
    return scipy.sparse.csr_array(edges.astype(float))


def tournament(n, rng):
    upper = np.triu(rng.random((n, n)) < 0.5, 1)
    return scipy.sparse.csr_array((upper | np.tril(~upper.T, -1)).astype(float))


def noisy_distances(n, rng, level=0.0, noise=0.1):
    X = rng.normal(size=(n, 2))
    D = 1 + np.linalg.norm(X[:, None] - X, axis=2) + noise * rng.normal(size=(n, n))
    return D + (level - np.asarray(level)[..., None]) / 2


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: random_digraph(60, 5, rng),
        lambda rng: tournament(20, rng),
        lambda rng: noisy_distances(25, rng),
    ],
    ids=["digraph", "tournament", "noisy distances"],
)
def test_random_directions_are_called_chance(make):
    """Of 60, 3 are expected below p = 0.05; more than 8 have p < 0.01."""
    rng = np.random.default_rng(0)
    found = [direction_evidence(make(rng)) for _ in range(60)]
    assert sum(e.more_than_chance for e in found) <= 8
    above = np.mean([e.gradient_share - e.gradient_share_null for e in found])
    assert abs(above) < 0.02


def test_planted_potentials_are_found():
    rng = np.random.default_rng(0)
    level = rng.normal(size=40)
    found = direction_evidence(noisy_distances(40, rng, level, noise=1.0))
    assert found.more_than_chance
    assert found.held_out.sign > 0.6
    assert found.reliability.far > 0.8


def test_a_random_tournament_has_the_share_of_its_null():
    """A height explains (n − 1)/m of m random pairs; that is no direction."""
    found = direction_evidence(tournament(40, np.random.default_rng(1)))
    assert found.gradient_share_null == pytest.approx(2 / 40, rel=0.1)


def test_shares_agree_with_a_dense_solve():
    rng = np.random.default_rng(0)
    pairs = measured_pairs(random_digraph(30, 4, rng))
    incidence = np.zeros((30, len(pairs.skew)))
    incidence[pairs.target, np.arange(len(pairs.skew))] = 1
    incidence[pairs.source, np.arange(len(pairs.skew))] = -1
    laplacian = (incidence * pairs.spring) @ incidence.T
    surplus = incidence @ pairs.skew
    expected = surplus @ np.linalg.pinv(laplacian) @ surplus
    found = module._explained(pairs, pairs.skew[:, None])[0]
    assert found == pytest.approx(expected, rel=1e-4)


def test_moments_agree_with_draws():
    rng = np.random.default_rng(3)
    pairs = measured_pairs(noisy_distances(60, rng, 0.04 * rng.normal(size=60)))
    total = float((pairs.skew**2).sum())
    by_moments = module._moments_test(pairs, total)
    signs = rng.integers(0, 2, size=(len(pairs.skew), 2000)) * 2.0 - 1.0
    signs[:, 0] = 1
    explained = module._explained(pairs, pairs.skew[:, None] * signs)
    assert by_moments[0] == pytest.approx(np.mean(explained >= explained[0]), abs=0.02)
    assert by_moments[1:] == pytest.approx(
        (explained[0] / total, explained[1:].mean() / total), rel=0.02
    )


def test_acyclic_graphs_are_never_called_cyclic():
    rng = np.random.default_rng(0)
    order = np.triu(rng.random((80, 80)) < 0.05, 1).astype(float)
    order[:3] = 0  # hubs: many edges of very different lengths in the order
    order[0, 3:] = 1
    found = direction_evidence(scipy.sparse.csr_array(order))
    assert found.cyclic == 0
    assert not found.mostly_cyclic
    ring = scipy.sparse.csr_array(np.roll(np.eye(30), 1, axis=1))
    found = direction_evidence(ring)
    assert found.cyclic == 1
    assert found.mostly_cyclic
    assert found.all_cyclic
    assert "cyclic" in found.summary


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("noise", [0.3, 3.0])
def test_error_covers_the_mean_over_redraws(complete, noise):
    rng = np.random.default_rng(0)
    n = 40
    level, found, error = rng.normal(size=n), [], []
    known = np.triu(rng.random((n, n)) < 0.25, 1)
    for _ in range(60):
        D = noisy_distances(n, np.random.default_rng(rng.integers(1 << 30)), level, noise) + 10
        if not complete:
            D[~(known | known.T)] = np.nan
        made = potential_error(measured_pairs(D))
        found.append(made.potential)
        error.append(made.error)
    apart = np.abs(np.array(found) - np.mean(found, axis=0))
    assert 0.86 <= np.mean(apart < 1.645 * np.array(error)) <= 0.94


def test_transition_probabilities_are_not_testable():
    rng = np.random.default_rng(0)
    chances = random_digraph(50, 6, rng)
    chances.data = rng.random(chances.nnz)
    chances = scipy.sparse.csr_array(chances.multiply(1 / chances.sum(axis=1)[:, None]))
    chances.data = -np.log(chances.data)
    found = direction_evidence(chances)
    assert np.isnan(found.p_value)
    assert "not tested" in found.verdict
    assert 0 < found.gradient_share < 1


def test_velocities_against_the_same_velocities_shuffled():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    V = np.array([1.0, 0.3, 0.0]) + rng.normal(size=X.shape)
    indices = np.argsort(np.linalg.norm(X[:, None] - X, axis=2), axis=1)[:, 1:9]
    assert velocity_evidence(indices, X, V - V.mean(axis=0) + X[:, [1, 0, 2]]).more_than_chance
    shuffled = [
        velocity_evidence(indices, X, rng.permutation(X[:, [1, 0, 2]])).more_than_chance
        for _ in range(20)
    ]
    assert sum(shuffled) <= 4


def test_velocities_need_a_place_each():
    with pytest.raises(ValueError, match="velocities must have the shape of positions"):
        velocity_evidence(np.zeros((3, 1), dtype=int), np.zeros((3, 2)), np.zeros((3, 3)))


def test_a_tree_is_not_testable():
    """A height explains any directions of its edges, so the right ones are no evidence."""
    rng = np.random.default_rng(0)
    child = np.arange(1, 60)
    parent = rng.integers(0, child)
    tree = scipy.sparse.coo_array((np.ones(59), (parent, child)), shape=(60, 60)).tolil()
    found = direction_evidence(tree)
    assert found.gradient_share_null == pytest.approx(1.0)
    assert found.more_than_chance is None
    assert "no loop" in found.verdict
    tree[child[-1], parent[0]] = tree[child[-2], child[-1]] = 1.0
    assert direction_evidence(tree).more_than_chance is not None


def test_equally_many_one_way_edges_with_lengths_are_not_called_chance():
    """Read as lists of the nearest; their potential is of all edges, not of the few both ways."""
    rng = np.random.default_rng(0)
    n, k = 120, 6
    level = rng.normal(size=n)
    D = scipy.sparse.lil_array((n, n))
    for i in range(n):
        chance = 1 / (1 + np.exp(-4 * (level[i] - level)))
        chance[i] = 0
        D[i, rng.choice(n, k, replace=False, p=chance / chance.sum())] = rng.uniform(1, 3, k)
    found = direction_evidence(D.tocsr())
    assert found.more_than_chance is None
    assert "one way only" in found.verdict
    asymmetry = Asymmetry.of_distances(D.tocsr())
    assert spearmanr(asymmetry.potential().values, level).statistic > 0.8
    assert asymmetry.fidelity(asymmetry.potential().values[:, None], 0.5).sign > 0.7


def test_very_large_distances_have_the_same_evidence():
    rng = np.random.default_rng(0)
    D = noisy_distances(20, rng, rng.normal(size=20))
    plain = direction_evidence(D)
    with np.errstate(over="raise"):
        assert direction_evidence(D * 2.0**460) == plain


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e3, 1e6, 1e60])
@pytest.mark.parametrize("lengths", ["equal", "one way", "both ways"])
def test_the_unit_of_the_lengths_does_not_count(unit, lengths):
    """exp(−d) of all lengths above 745 is 0: streets in metres stopped every fit."""
    rng = np.random.default_rng(0)
    known = rng.random((40, 40)) < 0.1
    known |= known.T if lengths == "both ways" else False
    known &= ~np.eye(40, dtype=bool)
    D = known * (1.0 if lengths == "equal" else rng.uniform(1, 2, size=known.shape))
    found = direction_evidence(scipy.sparse.csr_array(unit * D))
    plain = direction_evidence(scipy.sparse.csr_array(D))
    assert found.p_value == plain.p_value
    assert found.gradient_share == pytest.approx(plain.gradient_share)
