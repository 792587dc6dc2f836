import numpy as np
import pytest
import scipy.sparse

from benchmarks.peers.springrank import springrank, trophic_levels


def test_a_chain_has_equal_steps():
    chain = scipy.sparse.csr_array(np.diag(np.ones(4), k=1))
    assert springrank(chain) == pytest.approx([2, 1, 0, -1, -2])
    assert trophic_levels(chain) == pytest.approx([0, 1, 2, 3, 4])


def test_a_cycle_and_a_two_way_edge_have_no_order():
    ring = scipy.sparse.csr_array(np.roll(np.eye(5), 1, axis=1))
    assert springrank(ring) == pytest.approx(np.zeros(5), abs=1e-12)
    pair = scipy.sparse.csr_array(np.array([[0, 1.0], [1, 0]]))
    assert springrank(pair) == pytest.approx([0, 0], abs=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_it_is_the_least_squares_solution(alpha):
    rng = np.random.default_rng(0)
    A = rng.integers(0, 3, size=(12, 12)) * (rng.uniform(size=(12, 12)) < 0.5)
    np.fill_diagonal(A, 0)
    source, target = np.nonzero(A)
    root = np.sqrt(A[source, target])
    rows = np.zeros((source.size, 12))
    rows[np.arange(source.size), source], rows[np.arange(source.size), target] = root, -root
    rows = np.vstack([rows, np.sqrt(alpha) * np.eye(12)])
    wanted = np.concatenate([root, np.zeros(12)])
    best = np.linalg.lstsq(rows, wanted, rcond=None)[0]
    assert springrank(scipy.sparse.csr_array(A), alpha) == pytest.approx(best, abs=1e-7)
    if alpha == 0:
        levels = trophic_levels(scipy.sparse.csr_array(A))
        assert levels == pytest.approx(best.max() - best, abs=1e-7)
