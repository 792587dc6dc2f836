"""Directed t-SNE affinities against openTSNE's own classes and closed forms."""

import numpy as np
import pytest
import scipy.sparse
from openTSNE import affinity as upstream

from finsler_ext.scales import gaussian_scales
from finsler_ext.tsne.affinity import (
    DirectedFixedSigma,
    DirectedPerplexity,
    DirectedUniform,
    PrecomputedDirected,
)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 4)) * rng.uniform(0.2, 2, size=(200, 1))


def same(ours, theirs):
    # neighbour distances are kept in single precision
    return abs(ours - theirs).max() < 1e-5 * abs(theirs).max()


def test_perplexity_rows_are_those_of_opentsne(X):
    ours = DirectedPerplexity(X, 20)
    assert same(ours.P, upstream.PerplexityBasedNN(X, 20, symmetrize=False).P)
    assert ours.P.sum(axis=1) == pytest.approx(1 / 200)


def test_symmetrized_control_is_the_default_of_opentsne(X):
    assert same(
        DirectedPerplexity(X, 20, affinity="symmetrized").P, upstream.PerplexityBasedNN(X, 20).P
    )


def test_several_perplexities_are_averaged(X):
    theirs = upstream.Multiscale(X, [5, 40], symmetrize=False)
    assert same(DirectedPerplexity(X, [40, 5]).P, theirs.P)


def test_fixed_sigma_and_uniform_are_those_of_opentsne(X):
    theirs = upstream.FixedSigmaNN(X, sigma=0.7, k=12, symmetrize=False)
    assert same(DirectedFixedSigma(X, sigma=0.7, k=12).P, theirs.P)
    theirs = upstream.Uniform(X, k_neighbors=9, symmetrize=False)
    assert same(DirectedUniform(X, k_neighbors=9).P, theirs.P)


@pytest.mark.parametrize("metric", ["manhattan", "cosine"])
def test_other_metrics(X, metric):
    theirs = upstream.PerplexityBasedNN(X, 20, metric=metric, symmetrize=False, method="exact")
    assert same(DirectedPerplexity(X, 20, metric=metric).P, theirs.P)


def test_approximate_neighbours_find_the_same_rows(X):
    found = DirectedPerplexity(X, 20, method="annoy", random_state=0).P
    assert abs(found - DirectedPerplexity(X, 20).P).max() < 1e-3


def test_scales_reach_the_perplexity():
    d = np.sort(np.random.default_rng(0).random((50, 60)), axis=1)
    sigma = gaussian_scales(d, 10)
    p = np.exp(-(d**2) / (2 * sigma[:, None] ** 2))
    p /= p.sum(axis=1, keepdims=True)
    assert np.exp(-(p * np.log(p)).sum(axis=1)) == pytest.approx(10, rel=1e-4)
    assert gaussian_scales(7 * d, 10) == pytest.approx(7 * sigma, rel=1e-4)


def test_missing_neighbours_lower_the_perplexity_of_their_row():
    d = np.array([[1.0, 2.0, 3.0, np.inf, np.inf, np.inf], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    assert gaussian_scales(d, 2)[0] == pytest.approx(gaussian_scales(d[:1, :3], 1)[0])


def test_harmonic_control_is_symmetric_by_construction(X):
    ours = DirectedPerplexity(X, 10, affinity="harmonic")
    assert abs(ours.P - ours.P.T).max() == 0
    i, j = 3, ours.neighbors[3, 2]
    sigma = 2 / (1 / ours.scales[i, 0] + 1 / ours.scales[j, 0])
    k, m = 7, ours.neighbors[7, 5]
    tau = 2 / (1 / ours.scales[k, 0] + 1 / ours.scales[m, 0])
    d2 = ((X[i] - X[j]) ** 2).sum(), ((X[k] - X[m]) ** 2).sum()
    ratio = np.exp(-d2[0] / (2 * sigma**2) + d2[1] / (2 * tau**2))
    assert ours.P[i, j] / ours.P[k, m] == pytest.approx(ratio, rel=1e-5)


def test_precomputed_distances_keep_their_direction(X):
    D = np.linalg.norm(X[:, None] - X[None], axis=-1)
    assert same(DirectedPerplexity(D, 20, metric="precomputed").P, DirectedPerplexity(X, 20).P)
    slope = np.linspace(0, 0.5, 200)
    directed = D * np.exp(slope[None] - slope[:, None])
    P = DirectedPerplexity(directed, 20, metric="precomputed").P
    back = DirectedPerplexity(np.ascontiguousarray(directed.T), 20, metric="precomputed").P
    assert abs(P - back).max() > 0.1 * abs(P).max()
    sigma = gaussian_scales(np.sort(directed[5])[None, 1:61], 20)[0]
    row = P[5].toarray().ravel()
    near = np.argsort(directed[5])[1:61]
    expected = np.exp(-(directed[5, near] ** 2) / (2 * sigma**2))
    assert row[near] == pytest.approx(expected / expected.sum() / 200, rel=1e-4)


def test_infinite_distances_are_no_neighbours(X):
    D = np.linalg.norm(X[:, None] - X[None], axis=-1)
    D[:100, 100:] = np.inf
    P = DirectedPerplexity(D, 20, metric="precomputed").P
    assert P[:100, 100:].nnz == 0
    assert P[100:, :100].nnz > 0
    sparse = scipy.sparse.csr_array(np.where(np.isfinite(D), D, 0.0))
    assert same(DirectedPerplexity(sparse, 20, metric="precomputed").P, P)


def test_duplicates_and_equal_rows_have_finite_affinities():
    X = np.zeros((40, 3))
    P = DirectedPerplexity(X, 5).P
    assert P.data == pytest.approx(1 / 40 / 15)
    X[20:] = np.random.default_rng(0).normal(size=(20, 3))
    assert np.isfinite(DirectedPerplexity(X, 5).P.data).all()


def test_local_scale_sets_the_ratio_of_both_directions(X):
    scale = np.exp(0.3 * np.random.default_rng(1).normal(size=200))
    ours = DirectedPerplexity(X, 10, local_scale=scale)
    again = DirectedPerplexity(X, 10, local_scale=5 * scale)
    assert same(again.P, ours.P)
    assert ours.scales[:, 0] / ours.scales[0, 0] == pytest.approx(scale / scale[0])
    pattern = ours.P != 0
    assert (pattern != pattern.T).nnz == 0
    with pytest.raises(ValueError, match="local_scale"):
        DirectedPerplexity(X, 10, local_scale=scale[:10])


def test_geodesic_extension_follows_the_graph():
    angle = np.linspace(0.3, 2 * np.pi - 0.3, 100)
    arc = np.column_stack([np.cos(angle), np.sin(angle)])
    ours = DirectedPerplexity(arc, 3, k_neighbors=4, geodesic_neighbors=30)
    assert ours.neighbors.shape == (100, 29)
    # the ends of the arc are close in the plane and far along it
    assert np.abs(ours.neighbors - np.arange(100)[:, None]).max() < 50


def test_new_points_get_edges_in_both_directions(X):
    ours = DirectedPerplexity(X[:150], 10)
    P, near, _ = ours.to_new(X[150:], return_distances=True)
    assert P.shape == (50, 300)
    assert P.sum(axis=1) == pytest.approx(1.0)
    D = np.linalg.norm(X[150:, None] - X[None, :150], axis=-1)
    assert np.array_equal(near, np.argsort(D, axis=1)[:, :30])
    out, into = P[:, :150].toarray(), P[:, 150:].toarray()
    theirs = upstream.PerplexityBasedNN(X[:150], 10, symmetrize=False).to_new(X[150:]).toarray()
    assert out / out.sum(axis=1, keepdims=True) == pytest.approx(theirs, abs=1e-5)
    # an in-edge comes from every point that would count the new one among its neighbours,
    # with the share it would have there
    reach = np.sort(np.linalg.norm(X[:150, None] - X[None, :150], axis=-1), axis=1)[:, 30]
    assert np.array_equal(into > 0, reach >= D)
    j = int(np.flatnonzero(into[0])[0])
    own = np.linalg.norm(X[j] - X[ours.neighbors[j]], axis=-1)
    weight = np.exp(-(np.append(own, D[0, j]) ** 2) / (2 * ours.scales[j, 0] ** 2))
    scale = 1 / out[0].sum()  # out-edges sum to 1 before both are normalised together
    assert into[0, j] * scale == pytest.approx(weight[-1] / weight.sum(), rel=1e-4)


@pytest.mark.parametrize("method", ["exact", "annoy"])
def test_new_points_do_not_depend_on_each_other(X, method):
    ours = DirectedPerplexity(X[:150], 10, method=method, random_state=0)
    together, alone = ours.to_new(X[150:]), ours.to_new(X[160:161])
    assert abs(together[10] - alone[0]).max() < 1e-12


def test_directed_distances_of_new_points(X):
    D = np.linalg.norm(X[:, None] - X[None], axis=-1)
    slope = np.linspace(0, 0.5, 200)
    D = D * np.exp(slope[None] - slope[:, None])
    ours = DirectedPerplexity(D[:150, :150], 10, metric="precomputed")
    both = ours.to_new(np.hstack([D[150:, :150], D[:150, 150:].T]))
    one_sided = ours.to_new(D[150:, :150])
    assert both.shape == one_sided.shape == (50, 300)
    assert abs(both - one_sided).max() > 1e-3
    with pytest.raises(ValueError, match="150 fitted points"):
        ours.to_new(D[150:, :100])


def test_symmetric_controls_split_new_edges_evenly(X):
    for kind in ("harmonic", "symmetrized"):
        P = DirectedPerplexity(X[:150], 10, affinity=kind).to_new(X[150:])
        assert abs(P[:, :150] - P[:, 150:]).max() == 0


def test_fixed_sigma_and_uniform_know_new_points(X):
    for ours in (DirectedFixedSigma(X[:150], sigma=1.0, k=10), DirectedUniform(X[:150], 10)):
        assert ours.to_new(X[150:]).sum(axis=1) == pytest.approx(1.0)


def test_a_matrix_of_affinities_is_left_as_it_was():
    P = scipy.sparse.csr_matrix(np.array([[0, 2.0], [1.0, 0]]))
    ours = PrecomputedDirected(P)
    assert P.sum() == 3
    assert ours.P.sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="not negative"):
        PrecomputedDirected(-P)
    with pytest.raises(RuntimeError, match="new points"):
        ours.to_new(P)


def test_bad_parameters_are_named(X):
    with pytest.warns(UserWarning, match=r"perplexity=100 is too large for 200 points; 66\.33"):
        DirectedPerplexity(X, 100)
    with pytest.raises(ValueError, match="perplexity must be positive"):
        DirectedPerplexity(X, 0)
    with pytest.raises(ValueError, match="affinity must be one of"):
        DirectedPerplexity(X, 10, affinity="none")
    with pytest.raises(ValueError, match="sigma must be a positive"):
        DirectedFixedSigma(X, sigma=0)
    with pytest.raises(ValueError, match="k_neighbors must lie"):
        DirectedUniform(X, 200)
