"""The UMAP forces, kernel and descent against finite differences and exact sums."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import approx_fprime
from scipy.stats import spearmanr

from finsler_ext.geometry import MATSUMOTO, RANDERS
from finsler_ext.height.acts import _raised
from finsler_ext.height.islands import springs_between
from finsler_ext.umap import kernels
from finsler_ext.umap.kernels import (
    FORCE_LIMIT,
    MOST_SAMPLED,
    REPULSION_SOFTENING,
    LossShape,
    along_curve,
    attraction,
    force_table,
    look_up,
    pull_at,
    push_at,
    repulsion,
    schedule,
    step_share,
)
from finsler_ext.umap.layout import UmapActs, UmapDescent
from tests.models import one_epoch_moves, optimize_layout, regular_graph

A, B = 1.577, 0.895
PULL = partial(attraction, a=A, b=B)


def q_of(distance, a, b):
    return 1 / (1 + a * distance ** (2 * b))


def sampled_loss(flat, shape, graph, omega, negatives, a=A, b=B, space=RANDERS):
    """The loss whose gradient the sampling estimates: every ordered pair repels alike."""
    F = space.distances(flat.reshape(shape), omega)
    edges = graph.tocoo()
    pull = -(edges.data * np.log(q_of(F[edges.coords], a, b))).sum()
    weight = negatives * graph.sum(axis=1).mean() / (2 * shape[0])
    apart = ~np.eye(shape[0], dtype=bool)
    return pull - weight * np.log(1 - q_of(F[apart], a, b)).sum()


def epoch_moves(position, graph, omega, negatives, epoch, both_ways=True, space=RANDERS):
    stored = schedule(graph, 500)
    given = omega, negatives, epoch
    return one_epoch_moves(position, stored, A, B, *given, both_ways=both_ways, space=space)


def cosine(u, v):
    return float((u * v).sum() / np.linalg.norm(u) / np.linalg.norm(v))


@pytest.mark.parametrize("b", [0.5, 0.895, 1.4])
def test_forces_are_derivatives_of_the_loss(b):
    for F in (0.05, 0.7, 3.0, 40.0):
        step = 1e-6 * F

        def slope(loss, F=F, step=step):
            return (loss(F + step) - loss(F - step)) / (2 * step)

        assert attraction(F, A, b) == pytest.approx(slope(lambda x: -np.log(q_of(x, A, b))), 1e-5)
        exact = -slope(lambda x: -np.log(1 - q_of(x, A, b)))
        softened = exact * F**2 / (REPULSION_SOFTENING + F**2)
        assert repulsion(F, A, b) == pytest.approx(softened, rel=1e-4)


@pytest.mark.parametrize("b", [0.4, 0.895, 1.4])
def test_the_table_and_the_polynomials_are_the_formula(b):
    table = force_table(A, b, repulsion_strength=0.5)
    for F in np.exp(np.random.default_rng(0).uniform(np.log(1e-4), np.log(1e4), 500)):
        expected = min(attraction(F, A, b), FORCE_LIMIT)
        assert look_up(table, 0, np.float32(F)) == pytest.approx(expected, rel=2e-3)
        expected = min(0.5 * repulsion(F, A, b), FORCE_LIMIT)
        assert look_up(table, 2, np.float32(F)) == pytest.approx(expected, rel=2e-3)
        pull = pull_at(np.float32(F), np.float32(A), np.float32(2 * b))
        assert pull == pytest.approx(min(attraction(F, A, b), FORCE_LIMIT), rel=1e-4)
        push = push_at(np.float32(F), np.float32(A), np.float32(2 * b), np.float32(0.5))
        assert push == pytest.approx(expected, rel=1e-4)
    assert np.isfinite(look_up(table, 0, np.float32(0.0)))
    assert np.isfinite(look_up(table, 2, np.float32(1e30)))


SPACES = [(RANDERS, 0.0), (RANDERS, 0.5), (RANDERS, 0.9), (MATSUMOTO, 0.2), (MATSUMOTO, 0.45)]


@pytest.mark.parametrize(("space", "omega"), SPACES)
@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_attraction_is_the_exact_gradient_and_conserves_momentum(space, omega, m):
    rng = np.random.default_rng(m)
    Y = 3 * rng.normal(size=(25, m))
    graph = regular_graph(25, 6, rng)
    graph.data[:] = 1.0  # sampled in every epoch
    moves = epoch_moves(Y, graph, omega, 0, epoch=3, space=space)
    loss = partial(sampled_loss, space=space)
    gradient = approx_fprime(Y.ravel(), loss, 1e-6, Y.shape, graph, omega, 0)
    assert -moves == pytest.approx(gradient.reshape(Y.shape), abs=3e-3)
    assert np.abs(moves.sum(axis=0)).max() < 1e-3


@pytest.mark.parametrize(
    ("space", "omega", "m"),
    [(RANDERS, 0.0, 2), (RANDERS, 0.5, 3), (RANDERS, 0.9, 3), (MATSUMOTO, 0.45, 3)],
)
def test_the_expected_update_is_the_full_gradient(space, omega, m):
    rng = np.random.default_rng(0)
    # a shaken lattice keeps all pairs so far apart that no single force reaches its limit
    lattice = np.stack(np.meshgrid(*[np.arange(7 if m == 2 else 4)] * m), -1).reshape(-1, m)
    Y = 4.0 * lattice[rng.permutation(len(lattice))[:40]] + rng.normal(size=(40, m)) / 4
    graph = regular_graph(40, 6, rng)
    epochs = range(1, 4001)
    moves = np.mean([epoch_moves(Y, graph, omega, 5, e, space=space) for e in epochs], axis=0)
    loss = partial(sampled_loss, space=space)
    gradient = approx_fprime(Y.ravel(), loss, 1e-6, Y.shape, graph, omega, 5)
    assert cosine(-moves, gradient.reshape(Y.shape)) > 0.99
    if omega:  # along the drift alone, too, where the asymmetry is
        assert cosine(-moves[:, -1], gradient.reshape(Y.shape)[:, -1]) > 0.99
    assert np.abs(moves.sum(axis=0)).max() < 0.02 * np.abs(moves).sum()


def test_one_sided_negatives_are_biased_along_the_drift():
    rng = np.random.default_rng(0)
    Y = 2 * rng.normal(size=(40, 3))
    graph = regular_graph(40, 6, rng)

    def momentum(both_ways):
        moves = [epoch_moves(Y, graph, 0.5, 5, e, both_ways) for e in range(1, 1001)]
        return np.mean(moves, axis=0).sum(axis=0)[-1]

    assert momentum(False) < -5 * abs(momentum(True))


def test_edges_are_sampled_in_proportion_to_their_membership():
    graph = scipy.sparse.csr_array(np.array([[0, 1.0, 0.25], [0, 0, 0], [0.1, 0, 0]]))
    Y = np.array([[0, 0], [1, 0], [0, 1]], dtype=np.float32)
    moves = np.mean([epoch_moves(Y, graph, 0.0, 0, e) for e in range(1, 1001)], axis=0)
    pull = attraction(1.0, A, B)
    assert moves[1] == pytest.approx([-pull, 0], abs=1e-3)
    assert moves[2] == pytest.approx([0, -pull * 0.35], abs=1e-3)


@pytest.mark.parametrize("omega", [0.0, 0.5])
@pytest.mark.parametrize("mode", ["free", "potential", "held", "nested"])
def test_the_descent_lowers_the_loss(omega, mode):
    rng = np.random.default_rng(0)
    graph = regular_graph(60, 5, rng)
    start = np.column_stack([rng.uniform(0, 10, size=(60, 2)), np.zeros(60)])
    end = optimize_layout(
        start, graph, a=A, b=B, omega_norm=omega, n_epochs=200, seed=0, mode=mode
    ).position
    before, after = (
        sampled_loss(Y.astype(float).ravel(), Y.shape, graph, omega, 5) for Y in (start, end)
    )
    assert after < 0.8 * before
    assert end.mean(axis=0) == pytest.approx(0, abs=1e-5)


def test_threads_change_nothing_and_the_start_is_left_alone():
    rng = np.random.default_rng(0)
    n = 5000
    graph = scipy.sparse.random_array((n, n), density=2e-3, rng=rng, format="csr")
    start = rng.uniform(0, 10, size=(n, 3)).astype(np.float32)
    copy = start.copy()
    options = dict(a=A, b=B, omega_norm=0.5, n_epochs=12, seed=3)
    one, two = (optimize_layout(start, graph, n_threads=t, **options).position for t in (1, 2))
    assert np.array_equal(one, two)
    assert np.array_equal(start, copy)
    other = optimize_layout(start, graph, **(options | {"seed": 4})).position
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("n", [200, 3000])
def test_where_rows_are_stored_changes_no_bit(n, monkeypatch):
    rng = np.random.default_rng(0)
    graph = scipy.sparse.random_array((n, n), density=10 / n, rng=rng, format="csr")
    start = rng.uniform(0, 10, size=(n, 3)).astype(np.float32)
    fixed = np.zeros(start.shape, dtype=bool)
    fixed[::7, :2] = True
    ends = []
    for order in (None, rng.permutation(n), along_curve(start)):
        monkeypatch.setattr(kernels, "along_curve", lambda position, order=order: order)
        monkeypatch.setattr(kernels, "ROWS_IN_CACHE", n if order is None else 0)
        for threads in (1, 2):
            descent = UmapDescent(graph, LossShape(A, B), n_epochs=9, seed=3, n_threads=threads)
            seen = []
            end = descent.run(
                start, range(9), omega_norm=0.5, fixed=fixed,
                after_epoch=lambda epoch, position, seen=seen: seen.append(position),
            )  # fmt: skip
            assert np.array_equal(seen[-1], end)
            ends.append(np.stack(seen))
    assert all(np.array_equal(end, ends[0]) for end in ends)
    assert np.array_equal(ends[0][-1][fixed], start[fixed])


def test_a_curve_keeps_neighbours_near():
    position = np.random.default_rng(0).uniform(size=(4096, 3))
    position[:, 2] = 0.0
    order = along_curve(position)
    assert np.array_equal(np.sort(order), np.arange(4096))
    steps = np.linalg.norm(np.diff(position[order], axis=0), axis=1)
    assert steps.mean() < 3 / 64
    assert np.array_equal(along_curve(np.zeros((5, 2))), np.arange(5))


def test_kept_epochs_callbacks_and_no_epochs():
    graph = regular_graph(30, 4, np.random.default_rng(0))
    start = np.random.default_rng(1).normal(size=(30, 3)).astype(np.float32)
    seen = []
    layout = optimize_layout(
        start, graph, a=A, b=B, omega_norm=0.5, n_epochs=20, seed=0, keep_epochs=[0, 5, 20],
        callback=lambda epoch, position: seen.append((epoch, position.shape)),
    )  # fmt: skip
    end, kept = layout.position, layout.kept
    assert len(kept) == 3
    assert kept[0] == pytest.approx(start - start.mean(axis=0), abs=1e-6)
    assert np.array_equal(kept[2], end)
    assert seen == [(e, (30, 3)) for e in range(1, 21)]
    none = optimize_layout(start, graph, a=A, b=B, omega_norm=0.5, n_epochs=0, seed=0)
    assert none.position == pytest.approx(kept[0])


def test_a_vertex_of_many_edges_takes_no_longer_steps():
    """A star of 400 edges: in one step of full length its centre would leave the layout."""
    n = 401
    hub = np.zeros(400, dtype=np.int64)
    leaves = np.arange(1, n)
    graph = scipy.sparse.csr_array((np.ones(400), (leaves, hub)), shape=(n, n))
    share = step_share(graph)
    assert share[0] * 400 == pytest.approx(MOST_SAMPLED)
    assert (share[1:] == 1).all()
    start = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)
    start[:, 0] += 5
    start[0] = [0, 0, 0]
    seen = []
    optimize_layout(
        start, graph, a=A, b=B, omega_norm=0.5, n_epochs=20, seed=0, mode="free",
        callback=lambda epoch, position: seen.append(position[0].copy()),
    )  # fmt: skip
    # the pull of an edge is below 1.2, of which an epoch takes at most MOST_SAMPLED
    assert np.abs(np.diff(seen, axis=0)).max() < 1.2 * MOST_SAMPLED


def test_a_potential_stays_what_it_is_and_its_map_settles_around_it():
    graph = regular_graph(60, 5, np.random.default_rng(0))
    start = np.column_stack([np.random.default_rng(1).uniform(0, 10, (60, 2)), np.zeros(60)])
    phi = np.random.default_rng(2).normal(size=60)
    phi[7] = np.nan
    options = dict(a=A, b=B, n_epochs=100, seed=0, mode="potential", potential=phi)
    known = np.isfinite(phi)
    heights = []
    for omega in (0.01, 0.3, 0.9):
        layout = optimize_layout(start, graph, omega_norm=omega, **options).layout
        height = layout.position[:, -1]
        slope = np.polyfit(phi[known], height[known], 1)[0]
        assert np.corrcoef(phi[known], height[known])[0, 1] > 1 - 1e-9
        assert slope == pytest.approx(layout.islands.slope, rel=1e-4)
        assert slope > 0
        heights.append(height)
    assert all(np.array_equal(np.argsort(h), np.argsort(heights[0])) for h in heights)


def test_the_factor_of_a_potential_has_the_lowest_loss():
    """Against a scan of factors over the map of the first act."""
    rng = np.random.default_rng(0)
    graph = regular_graph(60, 5, rng)
    start = np.column_stack([rng.uniform(0, 10, (60, 2)), np.zeros(60)])
    acts = UmapActs(UmapDescent(graph, LossShape(A, B), n_epochs=100, seed=0), start)
    flow = np.asarray(graph.sum(axis=1) - graph.sum(axis=0)).ravel() + 0.1 * rng.normal(size=60)
    first = acts.settle()
    raised, slope = _raised(acts, first.position, 0.6, flow, False)

    def loss(factor):
        height = factor * (flow - flow.mean())
        return acts.loss(np.column_stack([first.position[:, :-1], height]), 0.6).value

    assert loss(slope) == pytest.approx(acts.loss(raised, 0.6).value, rel=1e-6)
    scan = [loss(factor) for factor in slope * np.geomspace(0.02, 50, 40)]
    assert loss(slope) <= min(scan) + 0.01 * np.ptp(scan[:30])


def test_a_map_settles_as_it_would_beside_a_height_of_zero():
    rng = np.random.default_rng(0)
    graph = regular_graph(80, 5, rng)
    start = np.column_stack([rng.uniform(0, 10, (80, 2)), np.zeros(80)])
    descent = UmapDescent(graph, LossShape(A, B), n_epochs=50, seed=0)
    first = UmapActs(descent, start).settle()
    whole = descent.run(start, range(40), omega_norm=0.0, rates=(1.0, 0.0), rate_until=40)
    assert np.array_equal(first.position, whole)


def test_springs_are_the_attraction_to_first_order_in_the_height():
    """Against the gradient of the attraction by the heights, at zero height and near it."""
    rng = np.random.default_rng(0)
    graph = regular_graph(50, 6, rng)
    flat = rng.uniform(0, 10, size=(50, 2))
    springs = springs_between(flat, graph, PULL)
    omega, height = 0.01, 1e-3 * rng.normal(size=50)

    def loss(h):
        return sampled_loss(np.column_stack([flat, h]).ravel(), (50, 3), graph, omega, 0)

    both = springs.springs + springs.springs.T
    expected = springs.degree * height - both @ height - omega * springs.flow
    found = approx_fprime(height, loss, 1e-5)
    assert found == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_the_height_does_not_follow_the_order_of_the_rows(order):
    """A sequential sweep over sorted rows gives ±0.6 here, with the sign of the sorting."""
    from finsler_ext.neighbors.exact import exact_neighbors
    from finsler_ext.scales import umap_scales
    from finsler_ext.umap.graph import directed_memberships

    radius = np.repeat(np.arange(1, 16) / 15, 20)[order]
    angle = np.tile(np.arange(20) * np.pi / 10, 15)[order]
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]).astype(np.float32)
    found = exact_neighbors(X, 15)
    graph = directed_memberships(found, *umap_scales(found.distances))
    start = np.column_stack([10 * X, np.zeros(300)])
    scale = np.log(found.distances[:, 1:].mean(axis=1))
    end = optimize_layout(
        start, graph, a=A, b=B, omega_norm=0.1, n_epochs=500, seed=0, potential=scale
    )
    assert spearmanr(end.position[:, -1], radius).statistic > 0.95
