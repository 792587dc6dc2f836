import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.manifold import smacof

from benchmarks.peers.mds_peers import radius_distance_mds, slide_vector_mds, symmetric_mds

PEERS = (symmetric_mds, slide_vector_mds, radius_distance_mds)


def directed(n=40, seed=0):
    rng = np.random.default_rng(seed)
    D = np.linalg.norm(rng.normal(size=(n, 1, 3)) - rng.normal(size=(1, n, 3)), axis=2)
    np.fill_diagonal(D, 0)
    return D


def misfit(model, D):
    return ((model - D) ** 2).sum()


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("scaling", ["ratio", "interval", "ordinal"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_stress_is_that_of_the_model_and_never_rises(peer, scaling, weighted):
    D = directed()
    W = np.ones_like(D)
    if weighted:
        W = np.random.default_rng(1).uniform(size=D.shape)
        W = np.where(W + W.T > 0.7, W + W.T, 0.0)
        np.fill_diagonal(W, 0.0)
    result = peer(D, 2, eps=0, max_iter=80, scaling=scaling, weights=W if weighted else None)
    scaled = result.transformation.disparities(D)
    np.fill_diagonal(scaled, 0.0)
    stress = (W * (result.distances() - scaled) ** 2).sum()
    assert result.transformation.kind == scaling
    assert result.stress == pytest.approx(stress, rel=1e-7)
    assert result.normalized_stress == pytest.approx(result.stress / (W * D**2).sum(), rel=1e-7)
    assert np.all(np.diff(result.stress_history) <= 1e-10 * result.stress)
    assert len(result.stress_history) > 10


@pytest.mark.parametrize("peer", PEERS)
def test_a_constant_is_found(peer):
    rng = np.random.default_rng(1)
    X, z, r = rng.normal(size=(40, 2)), np.array([0.5, -0.3]), rng.normal(scale=0.1, size=40)
    slide, radius = z * (peer is slide_vector_mds), r * (peer is radius_distance_mds)
    D = np.linalg.norm(X[:, None] - X + slide, axis=2) + radius - radius[:, None] + 2.0
    np.fill_diagonal(D, 0)
    result = peer(D, scaling="interval", eps=1e-12, max_iter=5000)
    assert result.transformation.constant == pytest.approx(2.0, abs=0.02)
    assert result.normalized_stress < 1e-5 < 1e-2 * peer(D).normalized_stress


def test_symmetric_mds_is_smacof():
    D = directed()
    _, half = smacof(
        (D + D.T) / 2, n_components=2, init=symmetric_mds(D).embedding, n_init=1, eps=1e-9,
        max_iter=2000, normalized_stress=False,
    )  # fmt: skip
    ours = symmetric_mds(D, eps=1e-9, max_iter=2000)
    symmetric = ours.stress - misfit(D, (D + D.T) / 2)
    assert symmetric == pytest.approx(2 * half, rel=1e-5)


def test_radii_are_the_least_squares_ones():
    D = directed()
    result = radius_distance_mds(D)

    def stress(r):
        return misfit(result._replace(radius=r).distances(), D)

    best = minimize(stress, np.zeros(len(D)))
    assert result.radius - result.radius.mean() == pytest.approx(best.x - best.x.mean(), abs=1e-3)
    assert result.stress == pytest.approx(best.fun, rel=1e-6)
    assert result.stress < symmetric_mds(D).stress


def test_a_slide_vector_is_found():
    rng = np.random.default_rng(1)
    X, z = rng.normal(size=(50, 2)), np.array([0.5, -0.3])
    D = np.linalg.norm(X[:, None] - X + z, axis=2)
    np.fill_diagonal(D, 0)
    result = slide_vector_mds(D, eps=1e-12, max_iter=5000)
    assert result.normalized_stress < 1e-6
    assert np.linalg.norm(result.slide) == pytest.approx(np.linalg.norm(z), rel=1e-2)
    assert slide_vector_mds(D).stress < 0.2 * symmetric_mds(D).stress


def test_the_slide_vector_s_update_ends_where_the_gradient_does():
    D = directed(12)
    result = slide_vector_mds(D, eps=0, max_iter=20_000)

    def stress(parameters):
        X, z = parameters[2:].reshape(12, 2), parameters[:2]
        return misfit(result._replace(embedding=X, slide=z).distances(), D)

    at = np.concatenate([result.slide, result.embedding.ravel()])
    steps = 1e-5 * np.eye(len(at))
    gradient = [(stress(at + step) - stress(at - step)) / 2e-5 for step in steps]
    assert np.abs(gradient).max() < 1e-3


def test_pairs_known_one_way_are_refused():
    D = directed()
    D[0, 1] = np.nan
    for peer in PEERS:
        with pytest.raises(ValueError, match="complete_paths"):
            peer(D)
        D[1, 0] = np.nan
        assert peer(D, max_iter=5).embedding.shape == (40, 2)
        D[1, 0] = 1.0
        with pytest.raises(ValueError, match="scaling"):
            peer(directed(), scaling="nominal")
