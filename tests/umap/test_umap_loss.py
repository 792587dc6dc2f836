"""The UMAP loss against the sum over all pairs, the formula, and the kernel's own moves."""

import numpy as np
import pytest
import scipy.sparse
from scipy.integrate import trapezoid
from scipy.optimize import approx_fprime

from finsler_ext.geometry import MATSUMOTO, RANDERS
from finsler_ext.umap.kernels import (
    LossShape,
    force_table,
    potential_at,
    potential_table,
    repulsion,
    schedule,
)
from finsler_ext.umap.layout import AxisLoss, umap_loss
from tests.models import one_epoch_moves, optimize_layout, regular_graph

A, B = 1.577, 0.895
SHAPE = LossShape(A, B)


def brute_force(Y, graph, omega, negatives, strength=1.0, space=RANDERS):
    """The formula of the module, pair by pair; −ln(1 − q) without softening."""
    n, F = len(Y), space.distances(Y, omega)
    P, K = graph.toarray(), np.asarray(graph.sum(axis=1)).ravel()
    attraction = repulsion = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                power = A * F[i, j] ** (2 * B)
                attraction += P[i, j] * np.log1p(power)
                repulsion += 0.5 * (K[i] + K[j]) * strength * np.log1p(1 / power)
    return attraction, negatives / (2 * n) * repulsion


@pytest.mark.parametrize(
    ("space", "omega", "m"),
    [(RANDERS, 0.0, 2), (RANDERS, 0.5, 3), (RANDERS, 0.9, 2), (MATSUMOTO, 0.4, 3)],
)
def test_the_loss_is_the_sum_over_all_pairs(space, omega, m):
    rng = np.random.default_rng(0)
    Y = 6 * rng.normal(size=(60, m))
    graph = scipy.sparse.random_array((60, 60), density=0.1, rng=rng, format="csr")
    loss = umap_loss(Y, graph, LossShape(A, B, 1.0, 4, space), omega_norm=omega)
    attraction, repulsion = brute_force(
        Y.astype(np.float32).astype(float), graph, omega, 4, space=space
    )
    assert loss.error == 0
    assert loss.value == loss.attraction + loss.repulsion
    assert loss.attraction == pytest.approx(attraction, rel=1e-4)
    assert loss.repulsion == pytest.approx(repulsion, rel=3e-2)  # softened below distance 0.1


def test_potentials_are_the_integrals_of_the_forces():
    table, forces = potential_table(A, B, 0.7), force_table(A, B, 0.7)
    for F in (0.03, 0.5, 2.0, 30.0):
        assert potential_at(table, forces, 0, F) == pytest.approx(np.log1p(A * F ** (2 * B)), 1e-4)
        # the largest force is 4, below a distance that the table knows
        grid = np.geomspace(F, 1e4, 400_000)
        force = np.minimum(0.7 * repulsion(grid, A, B), 4.0)
        assert potential_at(table, forces, 2, F) == pytest.approx(trapezoid(force, grid), 2e-3)


@pytest.mark.parametrize("omega", [0.0, 0.6])
def test_the_kernel_moves_down_this_loss(omega):
    rng = np.random.default_rng(1)
    lattice = np.stack(np.meshgrid(*[np.arange(4)] * 3), -1).reshape(-1, 3)
    Y = (4.0 * lattice[:40] + rng.normal(size=(40, 3)) / 4).astype(np.float32)
    graph = regular_graph(40, 6, rng)
    stored, n_epochs = schedule(graph, 500), 3000
    total = sum(one_epoch_moves(Y, stored, A, B, omega, 5, e) for e in range(1, n_epochs + 1))
    gradient = approx_fprime(
        Y.astype(float).ravel(),
        lambda flat: umap_loss(flat.reshape(Y.shape), graph, SHAPE, omega_norm=omega).value,
        1e-2,
    ).reshape(Y.shape)
    moves = total / n_epochs
    cosine = -(moves * gradient).sum() / np.linalg.norm(moves) / np.linalg.norm(gradient)
    assert cosine > 0.99
    assert np.linalg.norm(moves) == pytest.approx(np.linalg.norm(gradient), rel=0.05)


def test_a_sample_of_many_pairs_is_within_its_error():
    rng = np.random.default_rng(0)
    n = 1500
    Y = 10 * rng.normal(size=(n, 2)).astype(np.float32)
    graph = scipy.sparse.random_array((n, n), density=5e-3, rng=rng, format="csr")
    exact = AxisLoss(Y, graph, LossShape(A, B), omega_norm=0.4, partners=n).loss(
        np.array([0.0, 1.0])
    )
    assert exact.error == 0
    samples = [umap_loss(Y, graph, SHAPE, omega_norm=0.4, seed=s) for s in range(20)]
    misses = [(s.value - exact.value) / s.error for s in samples]
    assert 0.4 < np.std(misses) < 1.6
    assert abs(np.mean(misses)) < 1.0
    one, two = (umap_loss(Y, graph, SHAPE, omega_norm=0.4, n_threads=t) for t in (1, 2))
    assert one == two


def test_the_slope_by_the_axis_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    graph = regular_graph(50, 5, rng)
    at = AxisLoss(5 * rng.normal(size=(50, 3)), graph, LossShape(A, B), omega_norm=0.5)
    axis = np.array([0.6, 0.0, 0.8])
    slope = at(axis)[1]
    for c in range(3):
        step = np.zeros(3)
        step[c] = 1e-3
        numeric = (at(axis + step)[0] - at(axis - step)[0]) / 2e-3
        assert slope[c] == pytest.approx(numeric, rel=1e-2, abs=1e-2)


def test_a_layout_carries_its_loss():
    graph = regular_graph(60, 5, np.random.default_rng(0))
    start = np.random.default_rng(1).uniform(0, 10, size=(60, 3)).astype(np.float32)
    layout = optimize_layout(
        start, graph, a=A, b=B, omega_norm=0.5, n_epochs=100, seed=0, mode="free"
    )
    assert layout.loss == umap_loss(layout.position, graph, SHAPE, omega_norm=0.5)
    assert layout.loss.value < umap_loss(start, graph, SHAPE, omega_norm=0.5).value
