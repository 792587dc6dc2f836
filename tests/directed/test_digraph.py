import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import connected_components, dijkstra

from finsler_ext.directed.digraph import (
    WAY_BACK,
    both_ways,
    digraph_edges,
    digraph_scales,
    is_digraph,
    new_edges,
    new_scales,
    with_ways_back,
)
from finsler_ext.umap.graph import directed_memberships


def random_digraph(n=60, edges=300, seed=0, lengths=True):
    rng = np.random.default_rng(seed)
    dense = np.zeros((n, n))
    dense[rng.integers(n, size=edges), rng.integers(n, size=edges)] = 1.0
    if lengths:
        dense *= rng.uniform(1.0, 3.0, size=(n, n))
    np.fill_diagonal(dense, 0.0)
    return scipy.sparse.csr_array(dense)


@pytest.mark.parametrize("lengths", [False, True])
def test_all_edges_are_kept_and_rows_keep_their_degrees(lengths):
    D = random_digraph(lengths=lengths)
    edges = digraph_edges(D)
    sigma, rho, mean = digraph_scales(edges)
    P = directed_memberships(edges, sigma, rho)
    assert np.array_equal(P.toarray() > 0, D.toarray() > 0)
    degree = np.diff(D.indptr)
    wanted = np.where(degree > 0, 1 + (degree - 1) / 2, 0) if lengths else degree
    assert np.asarray(P.sum(axis=1)).ravel() == pytest.approx(wanted, rel=1e-4)
    nearest = np.array([row[row > 0].min(initial=np.inf) for row in D.toarray()])
    has = degree > 0
    assert rho[has] == pytest.approx(nearest[has])
    assert np.isnan(mean[~has]).all()
    assert mean[has] == pytest.approx(D.sum(axis=1)[has] / degree[has])


def test_ways_back_are_twice_as_long_and_two_way_edges_are_left_alone():
    D = random_digraph()
    both = with_ways_back(D).toarray()
    there = D.toarray()
    expected = np.where((there == 0) & (there.T > 0), WAY_BACK * there.T, there)
    assert np.array_equal(both, expected)


def test_stored_zeros_are_edges():
    D = scipy.sparse.csr_array(([0.0, 1.0, 2.0], ([0, 1, 1], [1, 2, 0])), shape=(3, 3))
    assert digraph_edges(D).source.size == 3
    assert with_ways_back(D).nnz == 4


def test_only_edges_between_strong_parts_are_reversed():
    D = random_digraph(edges=80)
    more = both_ways(D)
    _, part = connected_components(D, connection="strong")
    added = np.argwhere((more.toarray() > 0) & (D.toarray() == 0))
    assert len(added)
    for i, j in added:
        assert part[i] != part[j]
        assert more[i, j] == WAY_BACK * D[j, i]
    _, weak = connected_components(D, connection="weak")
    same = weak[:, None] == weak
    assert np.array_equal(np.isfinite(dijkstra(more)), same)


def test_what_is_a_digraph():
    D = random_digraph()
    assert is_digraph(D)
    assert is_digraph(random_digraph(lengths=False))
    assert is_digraph(D.astype(bool).astype(float) + D.T.astype(bool).astype(float) > 0)
    dense = np.where(D.toarray() > 0, D.toarray(), np.inf)
    assert is_digraph(dense)
    assert not is_digraph(np.where(np.isinf(dense), 9.0, dense))  # all pairs are known
    assert not is_digraph(D + D.T)  # lengths that do not depend on the direction
    assert not is_digraph(scipy.sparse.csr_array((5, 5)))
    rng = np.random.default_rng(0)
    full = rng.uniform(size=(20, 20))
    nearest = np.argsort(full, axis=1)[:, :5]
    rows = np.repeat(np.arange(20), 5)
    lists = scipy.sparse.csr_array((full[rows, nearest.ravel()], (rows, nearest.ravel())))
    lists.setdiag(0)
    assert not is_digraph(lists) or np.ptp(np.diff(lists.indptr)) > 0


def test_edges_of_new_points():
    out = scipy.sparse.csr_array(np.array([[0.0, 2.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    into = scipy.sparse.csr_array(np.array([[3.0, 5.0, 0.0, 0.0], [0.0, 0.0, 0.0, 4.0]]))
    found = new_edges(out, into)
    assert found.indices.tolist() == [[2, 1, 0], [3, -1, -1]]
    assert found.outgoing.tolist() == [[1.0, 2.0, np.inf], [np.inf] * 3]
    assert found.incoming.tolist() == [[np.inf, 5.0, 3.0], [4.0, np.inf, np.inf]]
    sigma, rho = new_scales(found)
    assert np.exp(-1.0 / sigma[0]) == pytest.approx(0.5, rel=1e-3)
    assert rho.tolist() == [1.0, 1.5]  # without an edge out: the mean length
