"""V x = b for the Laplacian V of symmetric weights: what a majorisation step solves.

Uniform weights need no matrix at all, others one factorisation while it is cheap, and
conjugate gradients beyond. Conjugate gradients lower the quadratic ½ xᵀVx − bᵀx in every
iteration, so a step that is cut short still lowers the stress.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import scipy.linalg
from numba import njit

from finsler_ext._blocks import row_blocks
from finsler_ext._threads import RowPool, one_blas_thread

__all__ = ["LaplacianSolver", "UniformLaplacian", "n_groups", "solver_of"]

# Up to this many points the factorisation (n³/3 operations, once) costs no more than a few
# hundred iterations of conjugate gradients.
FACTORISED_BELOW = 4000
# A majorisation step need not be exact; the level of the skew part should be.
STEP_TOLERANCE, STEP_ITERATIONS = 1e-4, 30
EXACT_TOLERANCE, EXACT_ITERATIONS = 1e-12, 2000


class LaplacianSolver(Protocol):
    def solve(self, b: np.ndarray, *, exactly: bool = False) -> np.ndarray:
        """Rows of b are right-hand sides that sum to zero; so do the solutions."""


class UniformLaplacian:
    """All weights 1: V = n I − 11ᵀ, so V† b = b/n on centred b."""

    def __init__(self, n: int):
        self.n = n

    def solve(self, b, *, exactly=False):
        return (b - b.mean(axis=1, keepdims=True)) / self.n


class FactorisedLaplacian:
    """V + c 11ᵀ/n is positive definite, and on centred vectors it is V."""

    def __init__(self, weights: np.ndarray):
        laplacian = -weights.astype(np.float64)
        degree = -laplacian.sum(axis=1)
        laplacian[np.diag_indices_from(laplacian)] += degree
        laplacian += degree.mean() / len(degree)
        with one_blas_thread():
            self.factor = scipy.linalg.cholesky(
                laplacian, lower=True, overwrite_a=True, check_finite=False
            )

    def solve(self, b, *, exactly=False):
        with one_blas_thread():
            x = scipy.linalg.cho_solve(
                (self.factor, True), (b - b.mean(axis=1, keepdims=True)).T, check_finite=False
            ).T
        return x - x.mean(axis=1, keepdims=True)


class IterativeLaplacian:
    """Conjugate gradients from zero, with the degrees as preconditioner."""

    def __init__(self, weights: np.ndarray, n_threads: int = 1):
        self.weights, self.n_threads = weights, n_threads
        self.degree = weights.sum(axis=1, dtype=np.float64)

    def solve(self, b, *, exactly=False):
        tolerance = EXACT_TOLERANCE if exactly else STEP_TOLERANCE
        most = EXACT_ITERATIONS if exactly else STEP_ITERATIONS
        with RowPool(len(self.degree), self.n_threads) as pool:
            rows = [self._solve_one(row - row.mean(), tolerance, most, pool) for row in b]
        return np.array(rows)

    def _solve_one(self, b, tolerance, most, pool):
        x, residual = np.zeros_like(b), b.copy()
        direction, product = np.zeros_like(b), np.empty_like(b)
        energy = 1.0
        for _ in range(most):
            if np.linalg.norm(residual) <= tolerance * np.linalg.norm(b):
                break
            scaled = residual / self.degree
            previous, energy = energy, float(residual @ scaled)
            direction = scaled + energy / previous * direction if direction.any() else scaled
            pool.run(_product, self.weights, self.degree, direction, product)
            length = energy / float(direction @ product)
            x += length * direction
            residual -= length * product
        return x - x.mean()


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _product(start, stop, weights, degree, x, out):
    for i in range(start, stop):
        total = 0.0
        row = weights[i]
        for j in range(row.shape[0]):
            total += row[j] * x[j]
        out[i] = degree[i] * x[i] - total


def n_groups(weights: np.ndarray) -> int:
    """Number of groups of points between which all (symmetric) weights are zero."""
    unseen = np.ones(len(weights), dtype=bool)
    groups = 0
    while unseen.any():
        groups += 1
        frontier = np.flatnonzero(unseen)[:1]
        while frontier.size:
            unseen[frontier] = False
            reached = np.zeros_like(unseen)
            # a sparse copy of dense weights would be larger than they are
            for some in row_blocks(frontier.size):
                reached |= (weights[frontier[some]] > 0).any(axis=0)
            frontier = np.flatnonzero(reached & unseen)
    return groups


def solver_of(weights: np.ndarray, n_threads: int = 1) -> LaplacianSolver:
    """The solver for weights other than uniform; they must hold all points together."""
    n_parts = n_groups(weights)
    if n_parts > 1:
        raise ValueError(
            f"The known pairs fall apart into {n_parts} groups of points with no distance between "
            "them in either direction, so that their places relative to each other are not "
            "determined. Give distances between the groups, or embed them one by one."
        )
    if weights.shape[0] <= FACTORISED_BELOW:
        return FactorisedLaplacian(weights)
    return IterativeLaplacian(weights, n_threads)
