import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import connected_components, floyd_warshall

from finsler_ext.neighbors.exact import exact_neighbors
from finsler_ext.neighbors.geodesics import geodesic_neighbors, neighbor_graph, strongly_connected
from finsler_ext.neighbors.search import precomputed_neighbors

RNG = np.random.default_rng(0)


def n_strong(graph):
    return connected_components(graph, connection="strong")[0]


def test_islands_are_joined_by_their_closest_pair():
    X = RNG.normal(size=(80, 2))
    X[40:, 0] += 30
    graph = neighbor_graph(exact_neighbors(X.astype(np.float32), 6))
    assert connected_components(graph, connection="weak")[0] == 2
    joined = strongly_connected(graph, X)
    assert n_strong(joined) == 1
    between = np.linalg.norm(X[:40, None] - X[None, 40:], axis=2)
    i, j = np.unravel_index(between.argmin(), between.shape)
    assert joined[i, 40 + j] == pytest.approx(between.min(), rel=1e-5)
    assert joined[40 + j, i] == pytest.approx(between.min(), rel=1e-5)


def test_one_way_streets_get_their_reverse_at_the_new_source_s_scale():
    path = scipy.sparse.csr_array((np.array([1.0, 2.0, 3.0]), ([0, 1, 2], [1, 2, 3])), shape=(4, 4))
    scale = np.array([1.0, 2.0, 4.0, 8.0])
    graph = strongly_connected(path, source_scale=scale)
    assert n_strong(graph) == 1
    # length · scale is the distance itself, in both directions
    assert graph[1, 0] == pytest.approx(1.0 * 1 / 2)
    assert graph[3, 2] == pytest.approx(3.0 * 4 / 8)


def test_a_strongly_connected_graph_is_left_alone():
    graph = scipy.sparse.csr_array(np.roll(np.eye(5), 1, axis=1))
    assert (strongly_connected(graph) != graph).nnz == 0


def test_components_without_any_distance_are_an_error():
    D = np.full((6, 6), np.inf)
    D[:3, :3] = D[3:, 3:] = 1.0
    np.fill_diagonal(D, 0)
    found = precomputed_neighbors(D, 3)
    with pytest.raises(ValueError, match="components"):
        geodesic_neighbors(found, 4, distances=lambda r, c: D[np.ix_(r, c)])
    with pytest.raises(ValueError, match="n_neighbors"):
        strongly_connected(neighbor_graph(found))


def test_geodesics_are_the_shortest_directed_paths():
    X = np.exp(RNG.normal(size=(300, 2))).astype(np.float32)
    found = exact_neighbors(X, 5)
    exact = floyd_warshall(strongly_connected(neighbor_graph(found), X).toarray())
    extended = geodesic_neighbors(found, 40, X)
    assert extended.distances == pytest.approx(np.sort(exact, axis=1)[:, :40], rel=1e-5)
    assert (extended.indices[:, 0] == np.arange(300)).all()
    along = np.take_along_axis(exact, extended.indices.astype(int), axis=1)
    assert along == pytest.approx(extended.distances, rel=1e-5)
    assert not np.allclose(exact, exact.T)


def test_too_few_or_too_many_geodesic_neighbours_are_refused():
    found = exact_neighbors(RNG.normal(size=(30, 2)).astype(np.float32), 5)
    for bad in (4, 31):
        with pytest.raises(ValueError, match="geodesic_neighbors"):
            geodesic_neighbors(found, bad)
