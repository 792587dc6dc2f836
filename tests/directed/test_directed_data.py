import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import floyd_warshall

from finsler_ext import read_directed
from finsler_ext.asymmetry import gradient_share
from finsler_ext.directed.data import complete_paths, read_matrix
from finsler_ext.directed.digraph import digraph_edges
from finsler_ext.metrics import potential

nan = np.nan


def test_matrices_keep_their_dtype_and_are_not_copied():
    D = np.ones((3, 3), dtype=np.float32)
    assert read_matrix(D) is D
    assert read_matrix(np.ones((3, 3), dtype=np.uint8)).dtype == np.float64


def test_what_a_sparse_matrix_does_not_store_is_unknown():
    D = scipy.sparse.coo_array(([2.0, 0.0], ([0, 1], [1, 2])), shape=(3, 3))
    expected = [[0, 2, nan], [nan, 0, 0], [nan, nan, 0]]
    np.testing.assert_array_equal(read_matrix(D), expected)


def test_missing_pairs_are_nan_inf_masked_or_absent():
    D = np.array([[0, 2, np.inf], [nan, 0, 1], [3, 1, 0.0]])
    expected = [[0, 2, nan], [nan, 0, 1], [3, 1, 0]]
    np.testing.assert_array_equal(read_matrix(D), expected)
    np.testing.assert_array_equal(read_matrix(np.ma.masked_invalid(D)), expected)


def test_duplicates_of_a_sparse_matrix_are_summed():
    halves = scipy.sparse.csr_array(
        (np.array([1.0, 1.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2)
    )
    np.testing.assert_array_equal(read_matrix(halves), [[0, 2], [5, 0]])
    assert halves.nnz == 3  # the caller's is left alone


@pytest.mark.parametrize("bad", [np.ones((3, 4)), np.ones(3), scipy.sparse.eye(3, 4)])
def test_matrices_must_be_square(bad):
    with pytest.raises(ValueError, match="square"):
        read_matrix(bad)


@pytest.mark.parametrize("function", [read_directed, potential, gradient_share, digraph_edges])
@pytest.mark.parametrize("shape", [(8, 9), (9, 8)])
def test_others_are_refused_before_compiled_code_reads_them(function, shape):
    D = np.ones(shape)
    for bad in (D, np.triu(D), scipy.sparse.csr_array(D)):
        with pytest.raises(ValueError, match="square"):
            function(bad)


def test_edge_lists():
    D, names = read_directed([("b", "a", 3.0), ("b", "a", 2.0), ("a", "c")])
    assert names == ["a", "b", "c"]
    np.testing.assert_array_equal(read_matrix(D), [[0, nan, 1], [2, 0, nan], [nan, nan, 0]])
    D, names = read_directed([("a", "b", nan), ("b", "a", np.inf), ("a", "c", 1.0)])
    np.testing.assert_array_equal(read_matrix(D), [[0, nan, 1], [nan, 0, nan], [nan, nan, 0]])
    assert read_directed([("10", "9"), ("2", "10")]).names == ["2", "9", "10"]
    assert read_directed([("a", 1), (1, "a")]).names == ["a", 1]  # they cannot be sorted


@pytest.mark.parametrize(
    ("edges", "match"),
    [
        ([("a", "b", -1.0)], "≥ 0"),
        ([("a", "b"), ("a",)], "source, target"),
    ],
)
def test_bad_edges_are_named(edges, match):
    with pytest.raises(ValueError, match=match):
        read_directed(edges)


def test_digraphs():
    nx = pytest.importorskip("networkx")
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("x", "y", 2.0), ("y", "x", 1.0)])
    graph.add_edge("y", "z")
    data = read_directed(graph)
    assert data.names == ["x", "y", "z"]
    expected = [[0, 2, nan], [1, 0, 1], [nan, nan, 0]]
    np.testing.assert_array_equal(read_matrix(data.distances), expected)
    assert str(data) == "length = weight; 3 nodes, 3 edges, 33 % one-way"
    both = read_matrix(read_directed(graph.to_undirected()).distances)
    assert both[2, 1] == both[1, 2] == 1


def test_strengths_are_kept_as_they_are():
    S = np.array([[5.0, 2.0, 0.0], [0.0, 0.0, 8.0], [1.0, 1.0, 0.0]])
    data = read_directed(S, values="strength")
    moves = S * ~np.eye(3, dtype=bool)
    assert np.array_equal(data.strengths.toarray(), moves)
    share = S / S.sum(axis=1, keepdims=True)
    lengths = read_matrix(data.distances)
    assert lengths[moves > 0] == pytest.approx(-np.log(share[moves > 0]))
    assert read_directed(S).strengths is None


def test_transitions_with_and_without_those_to_the_same_state():
    """Rows without self transitions, which sum to less than 1, were refused."""
    T = np.array([[0.5, 0.5, 0.0], [0.2, 0.0, 0.8], [0.1, 0.2, 0.7]])
    moves = T * ~np.eye(3, dtype=bool)
    stay, leave = (read_directed(M, values="transitions") for M in (T, moves))
    assert np.array_equal(stay.strengths.toarray(), leave.strengths.toarray())
    assert np.array_equal(stay.distances.toarray(), leave.distances.toarray())
    with pytest.raises(ValueError, match="row 0 sums to 1"):
        read_directed(3 * moves, values="transitions")


def test_shortest_paths_of_transitions_are_the_likeliest_ones():
    rng = np.random.default_rng(0)
    T = rng.random((8, 8)) * (rng.random((8, 8)) > 0.4) + np.roll(np.eye(8), 1, axis=1)
    T /= T.sum(axis=1, keepdims=True)
    D = read_matrix(read_directed(T, values="transitions").distances)
    moves = (T > 0) & ~np.eye(8, dtype=bool)
    assert D[moves] == pytest.approx(-np.log(T[moves]))
    assert np.isnan(D[~moves & ~np.eye(8, dtype=bool)]).all()
    # max-product paths, by repeated relaxation
    best = np.where(np.eye(8), 1.0, T)
    for _ in range(8):
        best = (best[:, :, None] * best[None]).max(axis=1)
    assert np.exp(-complete_paths(D)) == pytest.approx(best)


def test_rows_that_do_not_sum_to_one_are_named():
    T = np.full((3, 3), 1 / 3)
    T[1] *= 2
    with pytest.raises(ValueError, match="row 1 sums to 2"):
        read_directed(T, values="transitions")
    with pytest.raises(ValueError, match="≥ 0"):
        read_directed(np.array([[2.0, -1.0], [0.5, 0.5]]), values="transitions")


def test_completion_keeps_direction_and_says_inf():
    D = np.array([[0, 1, nan], [nan, 0, 2], [nan, nan, 0]])
    np.testing.assert_allclose(complete_paths(D), [[0, 1, 3], [np.inf, 0, 2], [np.inf, np.inf, 0]])
    rng = np.random.default_rng(1)
    D = np.where(rng.random((30, 30)) < 0.2, rng.random((30, 30)), np.inf)
    np.fill_diagonal(D, 0)
    assert complete_paths(np.where(np.isinf(D), nan, D)) == pytest.approx(floyd_warshall(D))


def test_zero_lengths_are_edges():
    D = np.array([[0, 0, nan], [1, 0, 1], [1, 1, 0.0]])
    assert complete_paths(D)[0, 2] == pytest.approx(1)
