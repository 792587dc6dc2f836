"""Poincaré maps: the formulas, the descent, and what it makes of a tree."""

import numpy as np
import pytest
from scipy.sparse.csgraph import dijkstra
from scipy.stats import spearmanr

from benchmarks.paper.methods import poincare
from benchmarks.paper.methods.poincare import forest_accessibilities, poincare_map
from benchmarks.paper.methods.poincare_ball import (
    ball_distances,
    expmap,
    mobius_add,
    projected,
    tangent_norm,
    translated,
    transported,
)
from benchmarks.paper.methods.poincare_kernel import symmetric_divergence
from finsler_ext._threads import RowPool
from finsler_ext.neighbors.exact import exact_neighbors


def cloud(n=60, k=8, seed=0):
    found = exact_neighbors(np.random.default_rng(seed).normal(size=(n, 4)), k)
    return found.indices, found.distances.astype(np.float64)


def inside(n, seed=0, reach=0.95):
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=(n, 2))
    return direction * (reach * rng.random(n) / np.linalg.norm(direction, axis=1))[:, None]


def divergence(Y, p, gamma):
    """The loss from its definition, in float64."""
    z = -ball_distances(Y, Y) / gamma
    q = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return np.mean(((p - q) * (np.log(p) - np.log(q))).sum(axis=1))


def branching(per_branch=12, dimension=20, noise=0.02, seed=0):
    """Three branches from a root, each of which forks twice; points, level, tree distances."""
    rng = np.random.default_rng(seed)
    points, parent, level = [np.zeros(dimension)], [-1], [0]
    tips = [0]
    for forks in (3, 2, 2):
        grown = []
        for tip in tips:
            for _ in range(forks):
                step = rng.normal(size=dimension)
                step /= np.linalg.norm(step) * per_branch
                last = tip
                for _ in range(per_branch):
                    points.append(points[last] + step)
                    level.append(level[last] + 1)
                    parent.append(last)
                    last = len(points) - 1
                grown.append(last)
        tips = grown
    n = len(points)
    edges = np.zeros((n, n))
    edges[np.arange(1, n), parent[1:]] = 1
    X = np.array(points) + noise / np.sqrt(dimension) * rng.normal(size=(n, dimension))
    return X, np.array(level), dijkstra(edges, directed=False)


def test_distances_of_the_ball_are_those_of_the_closed_forms():
    x = np.array([[0.0, 0.0], [0.3, 0.4]])
    d = ball_distances(x, x)
    assert d[0, 1] == pytest.approx(2 * np.arctanh(0.5))
    assert d.diagonal() == pytest.approx(0)
    Y = inside(20)
    origin = Y[3]
    moved = translated(Y, origin)
    assert ball_distances(moved, moved) == pytest.approx(ball_distances(Y, Y), abs=1e-9)
    assert moved[3] == pytest.approx(0, abs=1e-12)


def test_steps_and_transport_keep_hyperbolic_lengths():
    x, v = inside(20), 0.02 * np.random.default_rng(1).normal(size=(20, 2))
    y = expmap(x, v)
    assert ball_distances(x, y).diagonal() == pytest.approx(tangent_norm(x, v), rel=1e-8)
    carried = transported(x, y, v)
    assert tangent_norm(y, carried) == pytest.approx(tangent_norm(x, v), rel=1e-8)
    # A geodesic's velocity is parallel along it: walking back by it leads home.
    assert expmap(y, -carried) == pytest.approx(x, abs=1e-9)
    assert mobius_add(-x, x) == pytest.approx(0, abs=1e-12)
    assert (np.linalg.norm(projected(5 * x), axis=1) < 1).all()


def test_accessibilities_are_the_inverse_of_the_forest_matrix():
    indices, distances = cloud()
    n = len(indices)
    W = np.zeros((n, n))
    unit = np.median(distances[:, 1:])
    for i in range(n):
        for j, r in zip(indices[i, 1:], distances[i, 1:], strict=True):
            W[i, j] = W[j, i] = np.exp(-0.5 * (r / unit / 1.5) ** 2)
    L = np.diag(W.sum(axis=1)) - W
    p = forest_accessibilities(indices, distances, sigma=1.5, forest=0.7)
    assert p == pytest.approx(np.linalg.inv(np.eye(n) + 0.7 * L), abs=1e-10)
    assert p.sum(axis=1) == pytest.approx(1)


def test_a_point_may_or_may_not_be_its_own_neighbour():
    indices, distances = cloud()
    with_self = forest_accessibilities(indices, distances)
    without = forest_accessibilities(indices[:, 1:], distances[:, 1:])
    assert np.array_equal(with_self, without)


@pytest.mark.parametrize("gamma", [1.0, 2.0, 3.3])
def test_loss_and_gradient_are_those_of_the_definition(gamma):
    p = forest_accessibilities(*cloud())
    Y = inside(60)
    p32 = p.astype(np.float32)
    with RowPool(60, 1) as pool:
        loss, gradient = symmetric_divergence(Y, p32, np.log(p32), gamma, pool)
    assert loss == pytest.approx(divergence(Y, p, gamma), rel=1e-5)
    numerical = np.empty_like(Y)
    for at in np.ndindex(*Y.shape):
        there, back = Y.copy(), Y.copy()
        there[at] += 1e-6
        back[at] -= 1e-6
        numerical[at] = (divergence(there, p, gamma) - divergence(back, p, gamma)) / 2e-6
    assert gradient == pytest.approx(numerical, rel=1e-4, abs=1e-5 * abs(numerical).max())


def test_coincident_points_and_the_rim_give_finite_numbers():
    p = forest_accessibilities(*cloud()).astype(np.float32)
    Y = inside(60)
    Y[1] = Y[0]
    Y[2:4] = projected(np.array([[2.0, 0.0], [-2.0, 0.0]]))
    for gamma in (0.1, 2.0):
        with RowPool(60, 1) as pool:
            loss, gradient = symmetric_divergence(Y, p, np.log(p), gamma, pool)
        assert np.isfinite(loss)
        assert np.isfinite(gradient).all()


def test_parts_without_a_path_between_them_are_held_apart():
    indices, distances = cloud(n=40)
    both = np.vstack([indices, indices + 40])
    result = poincare_map(both, np.vstack([distances, distances]), n_epochs=100, random_state=0)
    assert np.isfinite(result.embedding).all()
    d = ball_distances(result.embedding, result.embedding)
    assert d[:40, 40:].mean() > 1.5 * d[:40, :40].mean()


def test_the_loss_falls_and_the_tree_is_seen():
    X, level, wanted = branching()
    found = exact_neighbors(X, 10)
    result = poincare_map(found.indices, found.distances, random_state=0)
    radius = np.linalg.norm(result.embedding, axis=1)
    assert (radius < 1).all()
    history = result.loss_history
    assert len(history) == 301
    assert history[-1] < 0.1 * history[0]
    assert (np.diff(history) < 0).mean() > 0.95
    d = ball_distances(result.embedding, result.embedding)
    pairs = np.triu_indices(len(X), 1)
    assert spearmanr(d[pairs], wanted[pairs]).statistic > 0.85
    assert radius[0] < radius[level == level.max()].min()
    assert spearmanr(radius, level).statistic > 0.7


def test_the_seed_decides_and_threads_do_not():
    graph = cloud(n=600)  # enough rows for two threads
    one = poincare_map(*graph, n_epochs=20, random_state=3, n_jobs=1)
    two = poincare_map(*graph, n_epochs=20, random_state=3, n_jobs=2)
    other = poincare_map(*graph, n_epochs=20, random_state=4)
    assert np.array_equal(one.embedding, two.embedding)
    assert np.array_equal(one.loss_history, two.loss_history)
    assert not np.allclose(one.embedding, other.embedding)


def test_more_dimensions():
    result = poincare_map(*cloud(), n_components=3, n_epochs=60, random_state=0)
    assert result.embedding.shape == (60, 3)
    assert result.loss_history[-1] < 0.5 * result.loss_history[0]


def test_refusals_name_the_parameter(monkeypatch):
    indices, distances = cloud()
    for name in ("gamma", "sigma", "forest", "learning_rate"):
        with pytest.raises(ValueError, match=name):
            poincare_map(indices, distances, **{name: 0.0})
    for name in ("n_components", "n_epochs"):
        with pytest.raises(ValueError, match=name):
            poincare_map(indices, distances, **{name: 0})
    with pytest.raises(ValueError, match="same shape"):
        poincare_map(indices, distances[:, 1:])
    with pytest.raises(ValueError, match="must name other points"):
        poincare_map(indices + 1, distances)
    with pytest.raises(ValueError, match="neighbor_distances must be finite"):
        poincare_map(indices, np.where(indices == 5, np.nan, distances))
    monkeypatch.setattr(poincare, "MAX_POINTS", 50)
    with pytest.raises(ValueError, match=r"neighbor_indices.*12 N².*at most 50 points.*got 60"):
        poincare_map(indices, distances)
