import numpy as np
import pytest
import scipy.linalg
from scipy.linalg import subspace_angles
from sklearn.manifold import Isomap, LocallyLinearEmbedding, SpectralEmbedding

from finsler_ext.geometry import RANDERS
from finsler_ext.geometry.randers import randers_distances
from finsler_ext.spectral import (
    finsler_diffusion_maps,
    finsler_isomap,
    finsler_laplacian_eigenmaps,
    finsler_lle,
    isomap_loss,
    lle_loss,
    lle_weights,
    pairs_loss,
)

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)) * [3, 2, 1]
DISTANCE = np.linalg.norm(X[:, None] - X, axis=2)
DIRECTED = np.exp(-(DISTANCE**2) / RNG.uniform(1, 4, size=(N, 1)))  # a scale per source
np.fill_diagonal(DIRECTED, 0)
TRANSITIONS = DIRECTED / DIRECTED.sum(axis=1, keepdims=True)
LLE = lle_weights(X, 8)
ANGLE = 1e-4


def losses(omega, n=12):
    """Every objective on n points, and the same value the slow way."""
    rng = np.random.default_rng(1)
    W, D = rng.random((n, n)), rng.random((n, n))
    scale, mass = rng.random(n) + 0.5, rng.random(n) + 0.5
    weights = rng.random((n, n))
    weights /= weights.sum(axis=1, keepdims=True)
    target = np.diag([2.0, 1.0])

    def penalty(Y, mass, target):
        return 0.7 * ((Y.T @ np.diag(mass) @ Y - target) ** 2).sum()

    yield (
        isomap_loss(D**2, W, omega),
        lambda Y: (W * (randers_distances(Y, omega) ** 2 - D**2) ** 2).sum(),
    )
    yield (
        pairs_loss(W, omega, scale, mass, target, 0.7),
        lambda Y: (
            0.5 * (W * randers_distances(scale[:, None] * Y, omega) ** 2).sum()
            + penalty(Y, mass, target)
        ),
    )
    yield (
        lle_loss(weights - np.eye(n), omega, 0.7),
        lambda Y: (
            (RANDERS.distance(Y, weights @ Y, omega) ** 2).sum() + penalty(Y, np.ones(n), np.eye(2))
        ),
    )


@pytest.mark.parametrize("omega", [0.0, 0.5, 0.9])
def test_losses_and_gradients(omega):
    Y = np.random.default_rng(2).normal(size=(12, 2))
    for loss, slow in losses(omega):
        value, gradient = loss(Y)
        assert value == pytest.approx(slow(Y), rel=1e-12)
        numerical = np.empty_like(Y)
        for at in np.ndindex(*Y.shape):
            step = np.zeros_like(Y)
            step[at] = 1e-6
            numerical[at] = (slow(Y + step) - slow(Y - step)) / 2e-6
        assert gradient == pytest.approx(numerical, abs=1e-6 * abs(numerical).max())


# ------------------------------------------------------------------ without drift: the parents


def test_isomap_ends_no_higher_than_isomap():
    parent = Isomap(n_neighbors=8, n_components=2).fit(X)
    D = parent.dist_matrix_
    result = finsler_isomap(D, 2, omega_norm=0.0)
    theirs = ((randers_distances(parent.embedding_, 0.0) ** 2 - D**2) ** 2).sum()
    assert result.start_loss == pytest.approx(theirs, rel=1e-6)
    assert result.loss < theirs


@pytest.mark.parametrize("normalized", [False, True])
def test_eigenmaps_span_the_parent_s_subspace(normalized):
    W = (DIRECTED + DIRECTED.T) / 2
    A = np.diag(W.sum(axis=1))
    result = finsler_laplacian_eigenmaps(DIRECTED, 2, omega_norm=0.0, normalized=normalized)
    # L y = μ A y; the normalised variant is y ↦ A^{1/2} y
    vectors = scipy.linalg.eigh(A - W, A)[1][:, 1:3]
    expected = np.sqrt(A) @ vectors if normalized else vectors
    assert subspace_angles(result.embedding, expected).max() < ANGLE
    if not normalized:
        theirs = SpectralEmbedding(2, affinity="precomputed").fit_transform(W)
        assert subspace_angles(result.embedding, theirs).max() < ANGLE
        assert result.embedding.T @ A @ result.embedding == pytest.approx(np.eye(2), abs=0.03)


def test_diffusion_maps_span_the_parent_s_subspace():
    # A symmetric, doubly stochastic chain, by Sinkhorn's iteration
    P = (DIRECTED + DIRECTED.T) / 2 + 0.1 * np.eye(N)
    for _ in range(2000):
        scale = np.sqrt(P.sum(axis=1))
        P = P / scale / scale[:, None]
    values, vectors = np.linalg.eigh(P)
    result = finsler_diffusion_maps(P, 2, t=3, omega_norm=0.0)
    assert subspace_angles(result.embedding, vectors[:, [-2, -3]]).max() < ANGLE
    lengths = np.linalg.norm(result.embedding, axis=0)
    assert lengths == pytest.approx(values[[-2, -3]] ** 3, rel=0.02)
    # any chain: the lowest eigenvectors of the Laplacian of its steps
    steps = np.linalg.matrix_power(TRANSITIONS, 2)
    flow = (steps + steps.T) / 2
    lowest = np.linalg.eigh(np.diag(flow.sum(axis=1)) - flow)[1][:, 1:3]
    directed = finsler_diffusion_maps(TRANSITIONS, 2, t=2, omega_norm=0.0)
    assert subspace_angles(directed.embedding, lowest).max() < ANGLE


def test_lle_spans_the_parent_s_subspace():
    result = finsler_lle(LLE, 2, omega_norm=0.0)
    theirs = LocallyLinearEmbedding(n_neighbors=8, n_components=2, eigen_solver="dense")
    assert subspace_angles(result.embedding, theirs.fit_transform(X)).max() < 1e-3


# ------------------------------------------------------------------ with drift


@pytest.mark.parametrize("omega", [0.1, 0.5, 0.9])
def test_a_drift_lowers_the_loss_of_the_start_and_keeps_the_constraints(omega):
    A = (DIRECTED.sum(axis=0) + DIRECTED.sum(axis=1)) / 2
    noisy = DISTANCE * np.random.default_rng(5).uniform(1, 1.3, size=(N, N))
    results = {
        "isomap": (finsler_isomap(noisy, 3, omega_norm=omega), 1),
        "eigenmaps": (finsler_laplacian_eigenmaps(DIRECTED, 3, omega_norm=omega), A),
        "diffusion": (finsler_diffusion_maps(TRANSITIONS, 3, t=2, omega_norm=omega), 1),
        "lle": (finsler_lle(LLE, 3, omega_norm=omega), 1),
    }  # fmt: skip
    for name, (result, mass) in results.items():
        assert result.embedding.shape == (N, 3), name
        assert result.loss < result.start_loss, name
        weight = np.broadcast_to(mass, N)
        assert weight @ result.embedding == pytest.approx(0, abs=1e-6 * A.max()), name
    square = results["lle"][0].embedding.T @ results["lle"][0].embedding
    assert square == pytest.approx(np.eye(3), abs=0.05)


def test_isomap_gives_back_the_points_of_a_randers_space():
    Y = np.random.default_rng(3).normal(size=(40, 3))
    result = finsler_isomap(randers_distances(Y, 0.4), 3, omega_norm=0.4)
    assert result.loss < 1e-6 * result.start_loss
    assert result.embedding[:, -1] == pytest.approx(Y[:, -1] - Y[:, -1].mean(), abs=1e-3)


def test_missing_pairs_do_not_count():
    Y = np.random.default_rng(4).normal(size=(40, 2))
    D = randers_distances(Y, 0.4)
    D[0, 1] = D[5, 3] = np.nan
    assert finsler_isomap(D, 2, omega_norm=0.4).loss < 1e-6


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: finsler_laplacian_eigenmaps(-DIRECTED), "W must be finite and not negative"),
        (lambda: finsler_laplacian_eigenmaps(np.zeros((9, 9))), "point 0 has no affinity"),
        (lambda: finsler_laplacian_eigenmaps(np.ones((9, 8))), "square"),
        (lambda: finsler_diffusion_maps(DIRECTED), "rows must sum to 1"),
        (lambda: finsler_diffusion_maps(TRANSITIONS, t=0), "t must be"),
        (lambda: finsler_diffusion_maps(np.eye(9)), "irreducible"),
        (lambda: finsler_lle(np.ones((9, 9))), "rows sum to 1"),
        (lambda: finsler_isomap(DISTANCE, N), "n_components"),
        (lambda: finsler_lle(LLE, omega_norm=1.0), "omega_norm"),
    ],
)
def test_bad_input_is_named(call, match):
    with pytest.raises(ValueError, match=match):
        call()
