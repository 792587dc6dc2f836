"""Laplacian systems of graphs of every shape, against dense algebra and closed forms."""

import numpy as np
import pytest
import scipy.sparse
from scipy.linalg import pinvh
from scipy.sparse.csgraph import connected_components

from finsler_ext.asymmetry import gradient_share
from finsler_ext.directed import laplacian
from finsler_ext.directed.laplacian import narrow_solver, solve_laplacian

RNG = np.random.default_rng(0)


def graph(source, target, n, strength=None):
    strength = RNG.uniform(0.1, 2.0, size=len(source)) if strength is None else strength
    once = scipy.sparse.csr_array((strength, (source, target)), shape=(n, n))
    return once + once.T


def path(n):
    return graph(np.arange(n - 1), np.arange(1, n), n)


def ladder(n):
    rail = np.arange(n - 1)
    source, target = (
        np.r_[rail, rail + n, np.arange(n)],
        np.r_[rail + 1, rail + n + 1, np.arange(n) + n],
    )
    return graph(source, target, 2 * n)


def random_tree(n):
    child = np.arange(1, n)
    return graph(child, (RNG.uniform(size=n - 1) * child).astype(int), n)


def well_connected(n):
    return graph(np.repeat(np.arange(n), 4), RNG.integers(n, size=4 * n), n)


GRAPHS = {
    "path": path(200),
    "tree": random_tree(200),
    "ladder": ladder(110),
    "well connected": well_connected(150),
    "parts": scipy.sparse.block_diag(
        [path(130), well_connected(50), scipy.sparse.csr_array((3, 3)), path(2)], format="csr"
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_solutions_are_those_of_dense_algebra(name, ridge):
    springs = scipy.sparse.csr_array(GRAPHS[name])
    dense = springs.toarray()
    np.fill_diagonal(dense, 0.0)
    n = len(dense)
    matrix = np.diag(dense.sum(axis=1)) - dense + ridge * np.eye(n)
    b = RNG.normal(size=n)
    if ridge == 0:
        b = matrix @ b  # sums to zero in every component
    x, component = solve_laplacian(springs, b, ridge)
    assert x == pytest.approx(pinvh(matrix, rtol=1e-12) @ b, abs=1e-6)
    expected = connected_components(springs, directed=False)[1]
    assert np.array_equal(component, expected)


def test_long_graphs_that_need_a_tree_or_a_factorisation():
    """On a path conjugate gradients take as many iterations as there are nodes."""
    n = 20_000
    springs = graph(np.arange(n - 1), np.arange(1, n), n, np.ones(n - 1))
    ends = np.zeros(n)
    ends[0], ends[-1] = 1.0, -1.0
    x, _ = solve_laplacian(springs, ends)
    assert np.diff(x) == pytest.approx(-np.ones(n - 1), abs=1e-6)
    assert_ladder_is_solved(5000)


def assert_ladder_is_solved(rungs):
    springs, b = ladder(rungs), np.zeros(2 * rungs)
    b[0], b[-1] = 1.0, -1.0
    x, _ = solve_laplacian(springs, b)
    degree = np.asarray(springs.sum(axis=1)).ravel()
    assert degree * x - springs @ x == pytest.approx(b, abs=1e-7)


def test_what_is_too_wide_to_be_factorised_is_still_solved(monkeypatch):
    monkeypatch.setattr(laplacian, "LARGEST_FACTOR", 0)
    assert_ladder_is_solved(300)


def test_the_gradient_share_of_a_long_path():
    """Heights show all of the asymmetry of a path; 50,000 nodes took 51 s."""
    n = 20_000
    there, back = RNG.uniform(1, 2, size=(2, n - 1))
    source = np.arange(n - 1)
    D = scipy.sparse.csr_array(
        (np.r_[there, back], (np.r_[source, source + 1], np.r_[source + 1, source])), shape=(n, n)
    )
    assert gradient_share(D) == pytest.approx(1.0)


@pytest.mark.parametrize("name", GRAPHS)
def test_many_right_hand_sides_at_once(name):
    springs = scipy.sparse.csr_array(GRAPHS[name])
    dense = springs.toarray()
    np.fill_diagonal(dense, 0.0)
    matrix = np.diag(dense.sum(axis=1)) - dense
    b = matrix @ RNG.normal(size=(len(dense), 3))
    found = narrow_solver(springs, 1e6)(b)
    assert found == pytest.approx(pinvh(matrix, rtol=1e-12) @ b, abs=1e-6)
    assert narrow_solver(springs, 10) is None
