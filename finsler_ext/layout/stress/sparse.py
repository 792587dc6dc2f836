"""The directed stress over some of the pairs only, for more points than N² pairs allow.

    L(Y) = Σ_{(i, j) ∈ E} w_ij [(F_ij − D_ij)² + (F_ji − D_ji)²],      w symmetric

In a Randers space it splits into a part of the distances and a part of the heights, as the stress
over all pairs does (`finsler_ext.layout.stress.objective`), with V the Laplacian of the sparse
weights. In other spaces both directions of a pair are summed, for gradient descent. The step of the
majorisation solves V x = b by conjugate gradients, all columns in one pass; each of their
iterations lowers the quadratic, so a step that is cut short still lowers the stress.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit

from finsler_ext._threads import RowPool, run_rows
from finsler_ext.construct.symmetry import NEGLIGIBLE_SKEW
from finsler_ext.layout.stress.objective import TINY, Slope
from finsler_ext.spaces import RANDERS, Space

__all__ = ["Pairs", "SparseStress"]

# A step that is cut short still lowers the stress. The level of the skew part enters the gradient
# share, and is exact to 1e-6 of that of all pairs (`tests/layout/stress/test_sparse_stress.py`).
STEP_TOLERANCE, STEP_ITERATIONS = 1e-2, 12
LEVEL_TOLERANCE, LEVEL_ITERATIONS = 1e-8, 500


class Pairs(NamedTuple):
    """Unordered pairs, each once: D_ij there, D_ji back, and a weight."""

    low: np.ndarray
    high: np.ndarray
    there: np.ndarray
    back: np.ndarray
    weight: np.ndarray


class SparseStress:
    """Directed dissimilarities of some pairs, ready for passes over them."""

    shortest_step = 1.0
    dtype = np.dtype(np.float64)

    def __init__(self, pairs: Pairs, n_points: int, n_threads: int = 1, space: Space = RANDERS):
        low, high, there, back, weight = pairs
        self.n_points, self.n_threads, self.space = n_points, n_threads, space
        total = float(weight @ (there**2 + back**2))
        self.total_weight = 2.0 * float(weight.sum())
        unit = 2.0 ** round(0.5 * np.log2(total / self.total_weight)) if total > 0 else 1.0
        self.unit, self.total = unit, total / unit**2
        mean, half = (there + back) / (2 * unit), (there - back) / (2 * unit)
        self.indptr, self.indices, order = _both_ways(low, high, n_points)
        self.mean, self.half, self.weight = (
            np.concatenate([value, sign * value])[order]
            for value, sign in ((mean, 1), (half, -1), (weight, 1))
        )
        self.degree = np.bincount(low, weight, n_points) + np.bincount(high, weight, n_points)
        out = np.bincount(low, weight * half, n_points) - np.bincount(high, weight * half, n_points)
        with RowPool(n_points, n_threads, heavy=True) as pool:
            level = self._solve(-out[None, :], LEVEL_TOLERANCE, LEVEL_ITERATIONS, pool)[0]
        self.level = level - level.mean()
        self.skew = 2.0 * float(weight @ half**2)
        rest = half - self.level[high] + self.level[low]
        self.cyclic = 2.0 * float(weight @ rest**2)

    @property
    def is_skew(self) -> bool:
        return self.skew > NEGLIGIBLE_SKEW * self.total

    @property
    def gradient_share(self) -> float:
        """Share of the skew part that is a difference of heights; nan if D is symmetric."""
        return 1.0 - self.cyclic / self.skew if self.is_skew else float("nan")

    def slope(self, position: np.ndarray, omega: float, pool: RowPool) -> Slope:
        """Stress and −∇L/4 at ``position``, of shape (m, n)."""
        if self.space.majoriser is None:
            return self._slope_by_pairs(position, omega)
        error = omega * position[-1] - self.level
        error -= error.mean()
        place = np.ascontiguousarray(position.T, dtype=np.float64)
        pull, sums = np.empty_like(place), np.empty((self.n_points, 2))
        lengths = self.indptr, self.indices, self.mean, self.weight
        out = pull, sums
        run_rows(_pull, self.n_points, self.n_threads, place, error, *lengths, *out, heavy=True)
        downhill = np.ascontiguousarray(pull.T)
        downhill[-1] -= omega * sums[:, 1]
        stress = float(sums[:, 0].sum()) + 2.0 * float(error @ sums[:, 1]) + self.cyclic
        return Slope(stress, downhill)

    def _slope_by_pairs(self, position: np.ndarray, omega: float) -> Slope:
        """In any space."""
        place = np.ascontiguousarray(position.T, dtype=np.float64)
        pull, stress = np.empty_like(place), np.empty(self.n_points)
        kernel = _pair_kernel(self.space.forward)
        lengths = self.indptr, self.indices, self.mean, self.half, self.weight
        given, out = (place, float(omega), *lengths), (pull, stress)
        run_rows(kernel, self.n_points, self.n_threads, *given, *out, heavy=True)
        return Slope(float(stress.sum()), np.ascontiguousarray(pull.T))

    def step(self, here: Slope, omega: float) -> np.ndarray:
        """The step Y⁺ − Y of the majorisation, of shape (m, n)."""
        if self.space.majoriser is None:
            raise ValueError("A step needs a space with a majoriser.")
        with RowPool(self.n_points, self.n_threads, heavy=True) as pool:
            move = self._solve(here.downhill, STEP_TOLERANCE, STEP_ITERATIONS, pool)
        move[-1] /= self.space.majoriser.height(omega)
        return move

    def _solve(self, b, tolerance: float, most: int, pool: RowPool) -> np.ndarray:
        """V x = b for all rows of b at once; the degrees are the preconditioner."""
        residual = np.ascontiguousarray((b - b.mean(axis=1, keepdims=True)).T)
        inverse = np.divide(1.0, self.degree, out=np.zeros(self.n_points), where=self.degree > 0)[
            :, None
        ]
        x, product = np.zeros_like(residual), np.empty_like(residual)
        wanted = tolerance * np.sqrt((residual**2).sum(axis=0))
        scaled = inverse * residual
        direction, energy = scaled.copy(), (residual * scaled).sum(axis=0)
        for _ in range(most):
            if (np.sqrt((residual**2).sum(axis=0)) <= wanted).all():
                break
            pool.run(
                _product, direction, self.degree, self.indptr, self.indices, self.weight, product
            )
            curvature = (direction * product).sum(axis=0)
            length = np.divide(energy, curvature, out=np.zeros_like(energy), where=curvature > 0)
            x += length * direction
            residual -= length * product
            scaled = inverse * residual
            before, energy = energy, (residual * scaled).sum(axis=0)
            ratio = np.divide(energy, before, out=np.zeros_like(energy), where=before > 0)
            direction = scaled + ratio * direction
        return np.ascontiguousarray((x - x.mean(axis=0)).T)


def _both_ways(low, high, n):
    """CSR with every pair in both rows: indptr, indices, and the number of the pair."""
    source, target = np.concatenate([low, high]), np.concatenate([high, low])
    number = np.arange(1, source.size + 1, dtype=np.int64)
    where = scipy.sparse.csr_array(scipy.sparse.coo_array((number, (source, target)), shape=(n, n)))
    return where.indptr.astype(np.int64), where.indices.astype(np.int32), where.data - 1


@njit(nogil=True, cache=True, error_model="numpy")
def _pull(start, stop, place, error, indptr, indices, mean, weight, pull, sums):
    """pull_i = Σ_j w (S/d − 1)(y_i − y_j); sums = Σ_j w (d − S)², Σ_j w (e_i − e_j)."""
    m = place.shape[1]
    for i in range(start, stop):
        misfit, lift = 0.0, 0.0
        for c in range(m):
            pull[i, c] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            square = 0.0
            for c in range(m):
                square += (place[i, c] - place[j, c]) ** 2
            length = np.sqrt(square)
            lacking = mean[e] - length
            misfit += weight[e] * lacking * lacking
            lift += weight[e] * (error[i] - error[j])
            ratio = weight[e] * lacking / (length + TINY)
            for c in range(m):
                pull[i, c] += ratio * (place[i, c] - place[j, c])
        sums[i, 0], sums[i, 1] = misfit, lift


@cache
def _pair_kernel(forward):
    """Stress and slope of the rows, in one space."""

    @njit(nogil=True, cache=True, error_model="numpy")
    def sum_pairs(start, stop, place, omega, indptr, indices, mean, half, weight, pull, stress):
        """pull_i = −∇L/4, and the stress of the out-edges of i."""
        m = place.shape[1]
        for i in range(start, stop):
            misfit, lift = 0.0, 0.0
            pull[i] = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                square = 0.0
                for c in range(m):
                    square += (place[i, c] - place[j, c]) ** 2
                length, rise = np.sqrt(square), place[j, m - 1] - place[i, m - 1]
                distance, along_out, up_out = forward(length, rise, omega)
                out = distance - (mean[e] + half[e])
                distance, along_in, up_in = forward(length, -rise, omega)
                into = distance - (mean[e] - half[e])
                misfit += weight[e] * out * out
                lift += weight[e] * (out * up_out - into * up_in)
                ratio = 0.5 * weight[e] * (out * along_out + into * along_in) / (length + TINY)
                for c in range(m):
                    pull[i, c] -= ratio * (place[i, c] - place[j, c])
            pull[i, m - 1] += 0.5 * omega * lift
            stress[i] = misfit

    return sum_pairs


@njit(nogil=True, cache=True)
def _product(start, stop, x, degree, indptr, indices, weight, out):
    m = x.shape[1]
    for i in range(start, stop):
        for c in range(m):
            out[i, c] = degree[i] * x[i, c]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            for c in range(m):
                out[i, c] -= weight[e] * x[j, c]
