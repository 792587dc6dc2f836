"""Against closed forms and a dense solver: rings and stars have double eigenvalues."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.linalg import subspace_angles

from finsler_ext import FinslerUMAP
from finsler_ext.height import start as eigenvectors
from finsler_ext.height.start import leading_eigenvectors


def normalised(W):
    W = scipy.sparse.csr_array(W + W.T)
    root = 1 / np.sqrt(np.asarray(W.sum(axis=1)).ravel())
    scale = scipy.sparse.dia_array((root[None, :], [0]), shape=W.shape)
    return scipy.sparse.csr_array(scale @ W @ scale)


def ring(n, reach=5):
    """Every point joined to the next five in either direction."""
    i, step = np.arange(n)[:, None], np.arange(1, reach + 1)
    rows, columns = np.repeat(i, reach), ((i + step) % n).ravel()
    return normalised(scipy.sparse.coo_array((np.ones(n * reach), (rows, columns)), shape=(n, n)))


def star(rays, length):
    """Rays of a common centre, their first points joined to a ring: eigenvalues come in pairs."""
    step = np.arange(rays * length) % length
    out = np.flatnonzero(step < length - 1)
    first = np.flatnonzero(step == 0)
    rows = np.concatenate([out, first])
    columns = np.concatenate([out + 1, np.roll(first, 1)])
    n = rays * length
    return normalised(scipy.sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, n)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [100, 800, 3000])
def test_a_ring_gets_the_first_sine_and_cosine(n, seed):
    found = leading_eigenvectors(ring(n), 3, np.random.RandomState(seed))
    angle = 2 * np.pi * np.arange(n) / n
    exact = np.column_stack([np.sin(angle), np.cos(angle)])
    assert np.max(subspace_angles(found[:, 1:], exact)) < 0.02
    assert found.T @ found == pytest.approx(np.eye(3), abs=1e-3)


def test_a_star_gets_both_vectors_of_its_slowest_pair():
    operator = star(12, 30)
    values, vectors = np.linalg.eigh(operator.toarray())
    assert values[-2] - values[-3] < 1e-12 < values[-3] - values[-4]
    for seed in range(3):
        found = leading_eigenvectors(operator, 3, np.random.RandomState(seed))
        assert np.max(subspace_angles(found[:, 1:], vectors[:, -3:-1])) < 0.05


def test_what_is_resolved_at_once_draws_no_more_random_numbers():
    """A search for missed vectors that finds none leaves the rest of a seeded fit as it was."""
    X = np.random.RandomState(0).normal(size=(600, 3))
    near = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    operator = normalised(scipy.sparse.csr_array(near))
    one, two = np.random.RandomState(5), np.random.RandomState(5)
    leading_eigenvectors(operator, 3, one)
    two.uniform(-1.0, 1.0, size=600)
    assert one.randint(1 << 30) == two.randint(1 << 30)


def test_vectors_that_do_not_converge_are_filled_up(monkeypatch):
    def gives_up(operator, n_vectors, *_):
        return np.ones(1), np.full((operator.shape[0], 1), operator.shape[0] ** -0.5)

    monkeypatch.setattr(eigenvectors, "_lanczos", gives_up)
    found = leading_eigenvectors(ring(400), 3, np.random.RandomState(0))
    assert found.shape == (400, 3)
    assert np.linalg.matrix_rank(found) == 3


def test_duplicates_of_two_points_have_a_start():
    """Their graph has an eigenvalue of so high a multiplicity that LAPACK loses vectors of it."""
    X = np.array([1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1.0])[:, None]
    model = FinslerUMAP(random_state=0, n_epochs=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        embedding = model.fit_transform(X)
    centres = [embedding[X[:, 0] == value].mean(axis=0) for value in (0, 1)]
    assert np.linalg.norm(centres[0] - centres[1]) > 0.1


def test_path_has_the_closed_form():
    n = 5000
    path = scipy.sparse.diags_array([np.ones(n - 1)] * 2, offsets=[1, -1], shape=(n, n))
    path = normalised(scipy.sparse.csr_array(path))
    found = leading_eigenvectors(path, 3, np.random.RandomState(0))
    degree = np.full(n, 2.0)
    degree[[0, -1]] = 1.0
    for k in (1, 2):
        wave = np.sqrt(degree) * np.cos(np.pi * k * np.arange(n) / (n - 1))
        assert abs(wave @ found[:, k]) / np.linalg.norm(wave) > 0.9999


def test_tree_with_a_double_eigenvalue():
    legs, length = 3, 100
    ends = np.arange(1, legs * length + 1)
    starts = np.where((ends - 1) % length == 0, 0, ends - 1)
    shape = (ends.size + 1, ends.size + 1)
    spider = scipy.sparse.coo_array((np.ones(ends.size), (starts, ends)), shape=shape).tocsr()
    spider = normalised(scipy.sparse.csr_array(spider + spider.T))
    found = leading_eigenvectors(spider, 3, np.random.RandomState(0))
    exact = np.linalg.eigvalsh(spider.toarray())[::-1][:3]
    assert exact[1] - exact[2] < 1e-9  # double
    reached = np.einsum("ij,ij->j", found, spider @ found)
    np.testing.assert_allclose(1 - reached[1:], 1 - exact[1:], rtol=0.01)
