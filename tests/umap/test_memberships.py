import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import make_blobs
from umap.umap_ import fuzzy_simplicial_set, smooth_knn_dist

from finsler_ext.neighbors.exact import exact_neighbors
from finsler_ext.scales import mean_neighbor_distance, relative_scale, umap_scales
from finsler_ext.umap.combine import intersect_with_target
from finsler_ext.umap.graph import directed_memberships, fuzzy_union, harmonic_memberships

K = 15
X = make_blobs(400, 6, cluster_std=[0.3, 1.0, 2.0], random_state=0)[0].astype(np.float32)


@pytest.fixture(scope="module")
def found():
    return exact_neighbors(X, K)


@pytest.fixture(scope="module")
def scales(found):
    return umap_scales(found.distances)


@pytest.fixture(scope="module")
def directed(found, scales):
    return directed_memberships(found, *scales)


@pytest.mark.parametrize("connectivity", [1.0, 2.5, 0.5])
def test_scales_agree_with_umap(connectivity, found):
    sigma, rho = umap_scales(found.distances, local_connectivity=connectivity)
    theirs, their_rho = smooth_knn_dist(found.distances, float(K), local_connectivity=connectivity)
    assert rho == pytest.approx(their_rho, rel=1e-5)
    assert sigma == pytest.approx(theirs, rel=1e-3)


def test_rows_sum_to_log2_k(directed):
    assert directed.sum(axis=1) == pytest.approx(np.log2(K), abs=1e-3)


def test_scales_do_not_depend_on_threads(found):
    many = np.tile(found.distances, (12, 1))
    for one, two in zip(umap_scales(many), umap_scales(many, n_threads=2), strict=True):
        assert np.array_equal(one, two)


def test_infinite_and_zero_distances_leave_scales_finite_and_positive(found):
    distances = found.distances.copy()
    distances[0, 1:] = np.inf
    distances[1, 5:] = np.inf
    distances[2] = 0.0
    sigma, rho = umap_scales(distances)
    assert np.isfinite(sigma).all()
    assert (sigma > 0).all()
    assert np.isfinite(rho).all()


@pytest.mark.parametrize(("symmetrise", "mix"), [(False, 1.0), (True, 1.0), (True, 0.3)])
def test_graphs_agree_with_umap(symmetrise, mix, found, directed):
    theirs = fuzzy_simplicial_set(
        X,
        K,
        np.random.RandomState(0),
        "euclidean",
        knn_indices=found.indices,
        knn_dists=found.distances,
        apply_set_operations=symmetrise,
        set_op_mix_ratio=mix,
    )[0]
    ours = fuzzy_union(directed, mix) if symmetrise else directed
    assert ours.toarray() == pytest.approx(theirs.toarray(), abs=1e-3)


def test_direction_is_kept(directed):
    assert abs(directed - directed.T).max() > 0.5


def test_harmonic_is_symmetric_and_follows_its_formula(found, scales):
    sigma, rho = scales
    graph = harmonic_memberships(found, sigma, rho).toarray()
    assert (graph == graph.T).all()
    i, j = 7, found.indices[7, 4]
    scale = 2 / (1 / sigma[i] + 1 / sigma[j])
    expected = np.exp(-max(0, found.distances[7, 4] - min(rho[i], rho[j])) / scale)
    assert graph[i, j] == pytest.approx(expected, rel=1e-5)
    # with one scale for all, nothing is left of the asymmetry: both constructions agree
    same = np.ones_like(sigma)
    one = harmonic_memberships(found, same, 0 * rho)
    other = directed_memberships(found, same, 0 * rho)
    assert one.maximum(other.T).maximum(other).toarray() == pytest.approx(one.toarray())


def test_relative_scale_keeps_the_level_and_the_ratios(scales):
    sigma, _ = scales
    given = np.exp(np.random.default_rng(0).normal(size=len(X)))
    scale = relative_scale(given, sigma)
    assert np.log(scale).mean() == pytest.approx(np.log(sigma).mean(), abs=1e-4)
    assert scale[1] / scale[0] == pytest.approx(given[1] / given[0], rel=1e-4)
    assert relative_scale(10 * given, sigma) == pytest.approx(scale, rel=1e-5)


@pytest.mark.parametrize("bad", [np.ones(3), np.zeros(400), np.full(400, np.nan)])
def test_bad_local_scales_are_refused(bad, scales):
    sigma, _ = scales
    with pytest.raises(ValueError, match="local_scale"):
        relative_scale(bad, sigma)


def test_mean_distance_is_floored_and_nan_without_neighbours():
    distances = np.array([[0, 1, 3], [0, 0, 0], [0, np.inf, np.inf], [0, 2, np.inf]])
    scale = mean_neighbor_distance(distances)
    assert scale[[0, 3]] == pytest.approx([2, 2])
    assert 0 < scale[1] < 0.01
    assert np.isnan(scale[2])


def test_labels_weaken_edges_between_classes_and_keep_the_direction(directed):
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    graph = intersect_with_target(directed, y)
    source, target = graph.tocoo().coords
    across = y[source] != y[target]
    assert graph.data[across].max(initial=0) < 0.1
    assert graph.max(axis=1).toarray() == pytest.approx(1.0)
    assert abs(graph - graph.T).max() > 0.5
    union = intersect_with_target(directed, y, symmetric=True)
    assert abs(union - union.T).max() < 1e-6


def test_unknown_labels_weaken_by_one_unit(directed):
    y = np.full(len(X), -1)
    graph = intersect_with_target(directed, y)
    # every edge is weakened alike, and restoring local connectivity undoes it
    assert graph.toarray() == pytest.approx(directed.toarray(), abs=1e-6)


def test_continuous_targets_pull_equal_values_together(directed):
    y = X[:, 1]
    graph = scipy.sparse.coo_array(intersect_with_target(directed, y, target_metric="euclidean"))
    near = np.abs(y[graph.coords[0]] - y[graph.coords[1]])
    plain = directed.tocoo()
    before = np.abs(y[plain.coords[0]] - y[plain.coords[1]])
    assert np.average(near, weights=graph.data) < np.average(before, weights=plain.data)
