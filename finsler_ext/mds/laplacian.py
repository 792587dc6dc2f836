"""V x = b for the Laplacian V of symmetric weights: what a majorisation step solves.

Uniform weights need no matrix at all, others one factorisation while it is cheap, and
conjugate gradients beyond. Conjugate gradients lower the quadratic ½ xᵀVx − bᵀx in every
iteration, so a step that is cut short still lowers the stress. Points between which all weights
are zero form groups: V says nothing about their places relative to each other, and solutions are
centred group by group.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import scipy.linalg
from numba import njit

from finsler_ext._threads import RowPool, one_blas_thread, row_blocks

__all__ = ["LaplacianSolver", "UniformLaplacian", "group_labels", "laplacian_solver"]

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
            rows = [self._solve_one(row, tolerance, most, pool) for row in centred(b, self.labels)]
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
            curvature = float(direction @ product)
            if curvature <= 0:  # nothing but rounding is left
                break
            length = energy / curvature
            x += length * direction
            residual -= length * product
        return centred(x[None, :], self.labels)[0]


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
