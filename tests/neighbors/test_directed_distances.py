import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components, floyd_warshall
from scipy.spatial.distance import cdist

from finsler_ext.neighbors.geodesics import directed_distances, distances_of_new, shortest_paths
from finsler_ext.scales import SCALES, named_scale, scale_of_new, source_scale

RNG = np.random.default_rng(0)


def by_hand(X, k, scale):
    """Scaled kNN edges and all shortest paths, the slow way; X must be well connected."""
    D = cdist(X, X)
    near = np.argsort(D, axis=1)[:, 1 : k + 1]
    graph = np.full(D.shape, np.inf)
    for i, row in enumerate(near):
        graph[i, row] = D[i, row] / scale[i]
    return graph


def test_distances_are_shortest_paths_of_scaled_edges():
    X = RNG.uniform(size=(120, 2)).astype(np.float64)
    made = directed_distances(X, 12)
    spacing = np.sort(cdist(X, X), axis=1)[:, 1:13].mean(axis=1)
    scale = spacing / np.exp(np.log(spacing).mean())
    assert made.scale.values == pytest.approx(scale, rel=1e-5)
    edges = by_hand(X, 12, scale)
    assert connected_components(np.isfinite(edges), connection="strong")[0] == 1
    assert made.distances == pytest.approx(floyd_warshall(edges), rel=1e-5)


def test_leaving_a_dense_region_costs_more():
    X = np.concatenate([RNG.normal(size=(60, 2)) * 0.2, RNG.normal(size=(60, 2)) * 2 + [3, 0]])
    D = directed_distances(X, 10).distances
    assert np.median(D[:60, 60:] / D[60:, :60].T) > 1.2
    plain = directed_distances(X, 10, local_scale="none").distances
    assert np.all(plain >= cdist(X, X) * (1 - 1e-5))


def test_disconnected_data_is_joined_both_ways():
    X = np.concatenate([RNG.normal(size=(40, 2)), RNG.normal(size=(40, 2)) + 30])
    for metric in ("euclidean", "manhattan"):
        D = directed_distances(X, 5, metric=metric).distances
        assert np.isfinite(D).all()
        # the gap, some 40 wide, is crossed at the scale of its source
        assert D[:40, 40:].min() > 10
        assert D[40:, :40].min() > 10


def test_a_given_scale_is_the_only_source_of_asymmetry():
    X = np.concatenate([RNG.normal(size=(50, 2)) * 0.2, RNG.normal(size=(50, 2)) + 1])
    even = directed_distances(X, 10, local_scale=np.full(100, 7.0)).distances
    assert even == pytest.approx(even.T, rel=1e-9)
    feature = np.exp(X[:, 0])
    once = directed_distances(X, 10, local_scale=feature)
    assert once.scale.values == pytest.approx(feature / np.exp(np.log(feature).mean()))
    again = directed_distances(X, 10, local_scale=100 * feature)
    assert once.distances == pytest.approx(again.distances)


def test_blocks_of_rows_make_up_the_whole(monkeypatch):
    graph = directed_distances(RNG.normal(size=(50, 2)), 6).graph
    whole = shortest_paths(graph)
    monkeypatch.setattr("finsler_ext._threads.BLOCK_ROWS", 7)
    assert np.array_equal(shortest_paths(graph), whole)
    assert shortest_paths(graph, np.float32).dtype == np.float32


# ------------------------------------------------------------------ scales


@pytest.mark.parametrize("kind", SCALES)
def test_scales_are_relative_and_equivariant(kind):
    distances = np.sort(RNG.random((30, 16)), axis=1)
    distances[:, 0] = 0
    scale = source_scale(kind, distances).values
    assert np.exp(np.log(scale).mean()) == pytest.approx(1)
    wider = distances.copy()
    wider[3] *= 5
    grown = named_scale(kind, wider)[3] / named_scale(kind, distances)[3]
    assert grown == pytest.approx(1 if kind == "none" else 5, rel=1e-3)


def test_named_scales_by_hand():
    distances = np.array([[0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 2.0, np.inf]])
    assert named_scale("mean", distances) == pytest.approx([2, 2])
    assert named_scale("kth", distances) == pytest.approx([3, 2])
    assert named_scale("none", distances) == pytest.approx([1, 1])


def test_perplexity_is_met():
    distances = np.concatenate([np.zeros((20, 1)), np.sort(RNG.random((20, 24)), axis=1)], axis=1)
    sigma = named_scale("perplexity", distances)  # a third as many as there are neighbours
    p = np.exp(-(distances[:, 1:] ** 2) / (2 * sigma[:, None] ** 2))
    p /= p.sum(axis=1, keepdims=True)
    assert np.exp(-(p * np.log(p)).sum(axis=1)) == pytest.approx(8.0, rel=1e-4)


@pytest.mark.parametrize("kind", SCALES)
def test_duplicates_do_not_make_a_scale_zero(kind):
    distances = np.sort(RNG.random((30, 16)), axis=1)
    distances[:, 0] = 0
    distances[5] = 0.0
    scale = source_scale(kind, distances).values
    assert np.all(scale > 0)
    assert np.isfinite(scale).all()


def test_new_points_are_scaled_by_the_measure_of_the_known_ones():
    distances = np.sort(RNG.random((30, 16)), axis=1)
    distances[:, 0] = 0
    known = source_scale("mean", distances)
    assert scale_of_new("mean", distances[:4], known) == pytest.approx(known.values[:4])
    assert scale_of_new("mean", np.zeros((1, 16)), known)[0] > 0


def test_an_unknown_scale_is_named():
    with pytest.raises(ValueError, match=r"source_scale.*'median'"):
        directed_distances(RNG.normal(size=(20, 2)), 5, local_scale="median")


# ------------------------------------------------------------------ new points


def test_known_points_get_back_their_own_distances():
    X = RNG.normal(size=(80, 2))
    made = directed_distances(X, 10)
    there, back = distances_of_new(X, X, made)
    # Through the twin at distance 0 at the latest; kNN distances are float32.
    assert np.all(there <= made.distances * (1 + 1e-5) + 1e-6)
    assert np.all(back <= made.distances.T * (1 + 1e-5) + 1e-6)
    assert np.median(np.abs(there - made.distances)) < 1e-6
    assert np.median(np.abs(back - made.distances.T)) < 1e-6


def test_new_points_are_as_far_as_if_they_had_been_there():
    X = RNG.uniform(size=(600, 2))
    whole = directed_distances(X, 12).distances
    part = directed_distances(X[:590], 12)
    there, back = distances_of_new(X[590:], X[:590], part)
    far = whole[590:, :590] > 0.3
    assert (there / whole[590:, :590])[far] == pytest.approx(1, abs=0.15)
    assert (back / whole[:590, 590:].T)[far] == pytest.approx(1, abs=0.15)
