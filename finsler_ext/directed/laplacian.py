"""L x = b for the Laplacian L of springs between points, sparse (graphs) or dense (a stress).

**Sparse.** Conjugate gradients take some dozen iterations on well-connected graphs and stall on
long ones. The second attempt has a better preconditioner: the Laplacian of a spanning tree of the
strongest springs plus the degrees that the tree leaves out, factorised without fill-in. It is exact
on trees and close to the degrees where a graph is dense. What stalls even so (ladders, streets) is
long and narrow, and is factorised as it is.

**Dense**, what a majorisation step solves: uniform weights need no matrix at all, others one
factorisation while it is cheap, and conjugate gradients beyond. These lower ½ xᵀLx − bᵀx in every
iteration, so a step that is cut short still lowers the stress. Points between which all weights are
zero form groups: L says nothing about their places relative to each other, and solutions are
centred group by group.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import scipy.linalg
import scipy.sparse
from numba import njit
from scipy.sparse.csgraph import (
    connected_components,
    minimum_spanning_tree,
    reverse_cuthill_mckee,
)
from scipy.sparse.linalg import LinearOperator, SuperLU, cg, splu

from finsler_ext._threads import RowPool, one_blas_thread, row_blocks

# Of the residual, relative to b.
TOLERANCE = 1e-10
# Iterations with the degrees, with the tree, and where nothing better is left. 19,427 papers with
# 170,237 citations take 74.
BY_DEGREE, BY_TREE, AT_MOST = 100, 300, 10_000
# Numbers that a factorisation may have (800 MB).
LARGEST_FACTOR = 5e7


@one_blas_thread()
def solve_laplacian(springs, b, ridge: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """x with (L + ridge) x = b, and the connected component of each node.

    Parameters
    ----------
    springs : sparse matrix of shape (n, n)
        Symmetric and ≥ 0; its diagonal does not count.
    b : array of shape (n,)
    ridge : float
        Without one, b must sum to zero in every component, and so does x.

    Examples
    --------
    >>> springs = scipy.sparse.csr_array(np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> solve_laplacian(springs, np.array([1.0, -1.0]))[0]
    array([ 0.25, -0.25])
    """
    springs = _without_loops(springs)
    _, component = connected_components(springs, directed=False)
    degree = np.asarray(springs.sum(axis=1)).ravel()
    laplacian = _diagonal(degree + ridge) - springs
    inverse = np.divide(1.0, degree + ridge, out=np.zeros(len(degree)), where=degree + ridge > 0)
    x, failed = cg(laplacian, b, M=_diagonal(inverse), rtol=TOLERANCE, maxiter=BY_DEGREE)
    if failed:
        held = degree + ridge + (_held(degree, component) if ridge == 0 else 0.0)
        # a tree of the strongest springs of each component, both ways
        lengths = springs.copy()
        lengths.data = 1.0 / lengths.data
        tree = scipy.sparse.csr_array(minimum_spanning_tree(lengths))
        tree.data = 1.0 / tree.data
        tree = _factors(_diagonal(held) - (tree + tree.T))
        nearly = LinearOperator(laplacian.shape, matvec=tree.solve, dtype=np.float64)
        x, failed = cg(laplacian, b, M=nearly, rtol=TOLERANCE, maxiter=BY_TREE)
    if failed and _envelope(springs) <= LARGEST_FACTOR:
        x = _factors(_diagonal(held) - springs).solve(np.asarray(b, dtype=np.float64))
    elif failed:
        x, _ = cg(laplacian, b, x, M=nearly, rtol=TOLERANCE, maxiter=AT_MOST)
    return x if ridge else centred_parts(x, component), component


def narrow_solver(springs, most: float) -> Callable[[np.ndarray], np.ndarray] | None:
    """A function b ↦ L⁺ b for many b, columns of a matrix; None if its factors are too large.

    ``most`` is the number of entries that a factorisation may have.

    Examples
    --------
    >>> springs = scipy.sparse.csr_array(np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> narrow_solver(springs, 100)(np.array([[1.0, 2.0], [-1.0, -2.0]]))
    array([[ 0.25,  0.5 ],
           [-0.25, -0.5 ]])
    """
    springs = _without_loops(springs)
    if _envelope(springs) > most:
        return None
    _, component = connected_components(springs, directed=False)
    degree = np.asarray(springs.sum(axis=1)).ravel()
    factors = _factors(_diagonal(degree + _held(degree, component)) - springs)
    return lambda b: centred_parts(factors.solve(np.asarray(b, dtype=np.float64)), component)


def _held(degree, component) -> np.ndarray:
    """A spring that holds one node of each component: it gets 0, as b sums to zero there."""
    held = np.zeros(len(degree))
    first = np.unique(component, return_index=True)[1]
    held[first] = np.where(degree[first] > 0, degree[first], 1.0)
    return held


def centred_parts(x, component) -> np.ndarray:
    """Zero mean in every component, column by column."""
    n = len(component)
    member = scipy.sparse.csr_array((np.ones(n), (component, np.arange(n))))
    size = np.bincount(component).reshape((-1,) + (1,) * (x.ndim - 1))
    return x - (member @ x / size)[component]


def _without_loops(springs) -> scipy.sparse.csr_array:
    springs = scipy.sparse.csr_array(springs, dtype=np.float64)
    springs = scipy.sparse.csr_array(springs - _diagonal(springs.diagonal()))
    springs.eliminate_zeros()
    # SciPy 1.15 finds trees and orders with indices of 32 bits only
    springs.indices = springs.indices.astype(np.int32, copy=False)
    springs.indptr = springs.indptr.astype(np.int32, copy=False)
    return springs


def _envelope(springs) -> float:
    """Numbers that a factorisation in the order of Cuthill and McKee would have."""
    order = reverse_cuthill_mckee(springs, symmetric_mode=True)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    row, column = springs.tocoo().coords
    first = np.arange(len(order))
    np.minimum.at(first, place[row], place[column])
    return float((np.arange(len(order)) - first).sum())


def _factors(matrix) -> SuperLU:
    return splu(
        scipy.sparse.csc_array(matrix),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )


def _diagonal(values: np.ndarray) -> scipy.sparse.csr_array:
    n = len(values)
    return scipy.sparse.dia_array((values[None, :], [0]), shape=(n, n)).tocsr()


# Curvature that is rounding, relative to that of the degrees alone.
ROUNDING = 1e-12


def conjugate_gradients(product, degree, b, tolerance: float, most: int) -> np.ndarray:
    """L x = b for all columns of b at once; ``product(x)`` is L x. Columns of b sum to zero.

    The degrees are the preconditioner. Each iteration lowers ½ xᵀLx − bᵀx, from zero on.
    """
    degree = degree[:, None]
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    x, rest = np.zeros_like(b), b.copy()
    scaled = inverse * rest
    way, size = scaled.copy(), (rest * scaled).sum(axis=0)
    enough = tolerance**2 * size
    for _ in range(most):
        if (size <= enough).all():
            break
        image = product(way)
        curvature = (way * image).sum(axis=0)
        # b that is nothing but rounding has a constant part, which no step takes away
        going = (size > enough) & (curvature > ROUNDING * (degree * way * way).sum(axis=0))
        step = np.where(going, size / np.where(going, curvature, 1.0), 0.0)
        x += step * way
        rest -= step * image
        scaled = inverse * rest
        before, size = size, (rest * scaled).sum(axis=0)
        way = scaled + np.where(before > 0, size / np.maximum(before, 1e-300), 0.0) * way
    return x


# Up to this many points the factorisation (n³/3 operations, once) costs no more than a few
# hundred iterations of conjugate gradients.
FACTORISED_BELOW = 4000
# A majorisation step need not be exact; the level of the skew part should be.
STEP_TOLERANCE, STEP_ITERATIONS = 1e-4, 30
EXACT_TOLERANCE, EXACT_ITERATIONS = 1e-12, 2000


class LaplacianSolver(Protocol):
    labels: np.ndarray
    """The group of each point."""

    def solve(self, b: np.ndarray, *, exactly: bool = False) -> np.ndarray:
        """Rows of b are right-hand sides; they and the solutions are centred in each group."""


class UniformLaplacian:
    """All weights 1: V = n I − 11ᵀ, so V† b = b/n on centred b."""

    def __init__(self, n: int):
        self.n, self.labels = n, np.zeros(n, dtype=np.intp)

    def solve(self, b, *, exactly=False):
        return (b - b.mean(axis=1, keepdims=True)) / self.n


class FactorisedLaplacian:
    """V + c 11ᵀ/n in each group is positive definite, and on centred vectors it is V."""

    def __init__(self, weights: np.ndarray):
        self.labels = group_labels(weights)
        laplacian = -weights.astype(np.float64)
        degree = -laplacian.sum(axis=1)
        laplacian[np.diag_indices_from(laplacian)] += degree
        if self.labels.any():
            size = np.bincount(self.labels)[self.labels]
            laplacian += (self.labels == self.labels[:, None]) * (degree.mean() / size)
        else:
            laplacian += degree.mean() / len(degree)
        with one_blas_thread():
            self.factor = scipy.linalg.cholesky(
                laplacian, lower=True, overwrite_a=True, check_finite=False
            )

    def solve(self, b, *, exactly=False):
        with one_blas_thread():
            x = scipy.linalg.cho_solve(
                (self.factor, True), centred(b, self.labels).T, check_finite=False
            ).T
        return centred(x, self.labels)


class IterativeLaplacian:
    """Conjugate gradients from zero, with the degrees as preconditioner."""

    def __init__(self, weights: np.ndarray, n_threads: int = 1):
        self.weights, self.n_threads = weights, n_threads
        self.labels = group_labels(weights)
        degree = weights.sum(axis=1, dtype=np.float64)
        self.degree = np.where(degree > 0, degree, 1.0)

    def solve(self, b, *, exactly=False):
        tolerance = EXACT_TOLERANCE if exactly else STEP_TOLERANCE
        most = EXACT_ITERATIONS if exactly else STEP_ITERATIONS
        with RowPool(len(self.degree), self.n_threads, heavy=True) as pool:

            def product(x):
                out = np.empty(len(x))
                pool.run(_product, self.weights, self.degree, x.ravel(), out)
                return out[:, None]

            x = [
                conjugate_gradients(product, self.degree, row[:, None], tolerance, most)[:, 0]
                for row in centred(b, self.labels)
            ]
        return centred(np.array(x), self.labels)


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _product(start, stop, weights, degree, x, out):
    for i in range(start, stop):
        total = 0.0
        row = weights[i]
        for j in range(row.shape[0]):
            total += row[j] * x[j]
        out[i] = degree[i] * x[i] - total


def centred(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Rows less their mean over each group of points."""
    if not labels.any():
        return rows - rows.mean(axis=1, keepdims=True)
    size = np.bincount(labels)
    means = np.array([np.bincount(labels, row) for row in rows]) / size
    return rows - means[:, labels]


def group_labels(weights: np.ndarray) -> np.ndarray:
    """The group of each point; between groups all (symmetric) weights are zero."""
    labels = np.full(len(weights), -1, dtype=np.intp)
    group = 0
    while (labels < 0).any():
        frontier = np.flatnonzero(labels < 0)[:1]
        while frontier.size:
            labels[frontier] = group
            reached = np.zeros(len(weights), dtype=bool)
            # a sparse copy of dense weights would be larger than they are
            for some in row_blocks(frontier.size):
                reached |= (weights[frontier[some]] > 0).any(axis=0)
            frontier = np.flatnonzero(reached & (labels < 0))
        group += 1
    return labels


def laplacian_solver(weights: np.ndarray | None, n: int, n_threads: int = 1) -> LaplacianSolver:
    """The solver for weights of shape (n, n); None where all pairs count 1."""
    if weights is None:
        return UniformLaplacian(n)
    if n <= FACTORISED_BELOW:
        return FactorisedLaplacian(weights)
    return IterativeLaplacian(weights, n_threads)
