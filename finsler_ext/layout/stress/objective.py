"""The directed stress, split into a part of the distances and a part of the heights.

    L(Y) = Σ_{i≠j} w_ij (F_ij − D_ij)²,     F_ij = ‖y_j − y_i‖ + ω (h_j − h_i),   w symmetric

With the halves S_ij = (D_ij + D_ji)/2 and K_ij = (D_ij − D_ji)/2 of D, and V the Laplacian of
w, a height can show K only as far as K_ij is a difference u_j − u_i, where V u = −(w∘K) 1 (for
uniform weights u is minus the row mean of K). The rest of K is cyclic, and no height can show it.
Because the two parts are orthogonal,

    L(Y) = Σ w_ij (‖y_i − y_j‖ − S_ij)²  +  2 eᵀ V e  +  Σ w_ij (K_ij − u_j + u_i)²,
    e = ω h − u,

so that one pass over the rows of S gives the stress and all that a step needs; D itself is
read while the problem is set up, and never again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numba import njit

from finsler_ext._threads import RowPool
from finsler_ext.construct.symmetry import NEGLIGIBLE_SKEW
from finsler_ext.layout.laplacian import LaplacianSolver, UniformLaplacian, solver_of
from finsler_ext.spaces.base import Majoriser
from finsler_ext.spaces.randers import RANDERS

__all__ = ["Slope", "StressProblem", "slope", "stress_problem"]

# Columns per partial sum: their buffers stay in the first-level cache, and float32 sums stay
# short enough not to lose digits (partial sums are added in float64).
BLOCK = 512
# Square tiles in which D is read along rows and along columns.
TILE = 64
# Keeps coincident points from dividing by zero; their offset is zero, so the value is free.
TINY = 1e-18


@dataclass(frozen=True)
class StressProblem:
    """Directed dissimilarities with symmetric weights, ready for passes over all pairs.

    Lengths are in units of ``unit``, a power of two near the root mean square of D, so that
    float32 neither overflows nor underflows and scaling the data scales the result exactly.
    """

    mean: np.ndarray
    """S, with a zero diagonal."""
    weights: np.ndarray | None
    """w, or None where all pairs count 1."""
    level: np.ndarray
    """u, the height (times ω) that K calls for; centred."""
    skew: float
    """Σ w K²."""
    cyclic: float
    """Σ w (K_ij − u_j + u_i)²: the stress that no height can take away."""
    total: float
    """Σ w D²."""
    total_weight: float
    """Σ w over all ordered pairs."""
    unit: float
    solver: LaplacianSolver
    majoriser: Majoriser | None = RANDERS.majoriser
    """Of the space, F being d + ω z there."""
    shortest_step: ClassVar[float] = 1.0
    """A whole step of the majorisation always lowers the stress."""

    @property
    def n_points(self) -> int:
        return self.mean.shape[0]

    @property
    def gradient_share(self) -> float:
        """Share of the skew part that is a difference of heights; nan if D is symmetric."""
        return 1.0 - self.cyclic / self.skew if self.is_skew else float("nan")

    @property
    def is_skew(self) -> bool:
        """Whether D is asymmetric beyond rounding."""
        return self.skew > NEGLIGIBLE_SKEW * self.total

    @property
    def dtype(self) -> np.dtype:
        return self.mean.dtype

    def slope(self, position: np.ndarray, omega: float, pool: RowPool) -> Slope:
        """Stress and −∇L/4 at ``position``, of shape (m, n): one row per coordinate."""
        return slope(self, position, omega, pool)

    def step(self, here: Slope, omega: float) -> np.ndarray:
        """The step Y⁺ − Y of the majorisation, of shape (m, n)."""
        move = self.solver.solve(here.downhill)
        if self.majoriser is None:
            raise ValueError("A step needs a space with a majoriser.")
        move[-1] /= self.majoriser.height(omega)
        return move

    def drift_pull(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ w Δy Δyᵀ and Σ w (D_ij − d_ij) Δy with Δy = y_j − y_i, at positions of shape (m, n)."""
        centred = position - position.mean(axis=1, keepdims=True)
        if self.weights is None:
            lift = self.n_points * centred
        else:
            degree = self.weights.sum(axis=1, dtype=np.float64)
            lift = degree * centred - centred @ self.weights
        return 2.0 * lift @ centred.T, 2.0 * lift @ self.level


class Slope(NamedTuple):
    """Stress at some positions, and −∇L/4 there, both in the problem's units."""

    stress: float
    downhill: np.ndarray


def stress_problem(
    D: np.ndarray,
    weights: np.ndarray | None = None,
    n_threads: int = 1,
    *,
    solver: LaplacianSolver | None = None,
    unit: float | None = None,
):
    """Split D, an array of finite directed dissimilarities with a zero diagonal.

    Where ``weights`` (symmetric, zero diagonal) are zero, D is not looked at beyond being
    finite. The result is of D's dtype, float32 or float64, and needs N² numbers beside D.
    The solver of the weights and the unit may be those of another problem.
    """
    n = D.shape[0]
    mean = np.empty_like(D, order="C")
    given = np.empty((0, 0), dtype=D.dtype) if weights is None else weights
    sums = np.empty((n, 2))
    with RowPool(n, n_threads) as pool:
        pool.run(_square_sums, D, given, sums)
        total = float(sums[:, 0].sum())
        total_weight = float(sums[:, 1].sum())
        if unit is None:
            unit = 2.0 ** round(0.5 * np.log2(total / total_weight)) if total > 0 else 1.0
        pool.run(_halves, D, given, 1.0 / unit, mean, sums[:, 0])
        if solver is None:
            solver = UniformLaplacian(n) if weights is None else solver_of(weights, n_threads)
        level = solver.solve(-sums[:, 0][None, :], exactly=True)[0]
        level -= level.mean()
        pool.run(_skew_sums, D, given, 1.0 / unit, level, sums)
    return StressProblem(
        mean=mean,
        weights=weights,
        level=level,
        skew=float(sums[:, 0].sum()),
        cyclic=float(sums[:, 1].sum()),
        total=total / unit**2,
        total_weight=total_weight,
        unit=unit,
        solver=solver,
    )


def slope(problem: StressProblem, position: np.ndarray, omega: float, pool: RowPool) -> Slope:
    """Stress and −∇L/4 at ``position``, of shape (m, n): one row per coordinate."""
    n = problem.n_points
    error = omega * position[-1] - problem.level
    error -= error.mean()
    pull = np.empty((n, position.shape[0]))
    sums = np.empty((n, 2))
    weights = np.empty((0, 0), problem.mean.dtype) if problem.weights is None else problem.weights
    pool.run(
        _pull_kernel,
        np.ascontiguousarray(position, dtype=problem.mean.dtype),
        error.astype(problem.mean.dtype),
        problem.mean,
        weights,
        pull,
        sums,
    )
    lift = n * error if problem.weights is None else sums[:, 1]
    downhill = np.ascontiguousarray(pull.T)
    downhill[-1] -= omega * lift
    stress = float(sums[:, 0].sum()) + 2.0 * float(error @ lift) + problem.cyclic
    return Slope(stress, downhill)


# Sums may be reassociated, so that they run in vector registers: the same machine gives the
# same bits, and each row is summed the same way whichever thread it falls to.
@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "nnan"})
def _pull_kernel(start, stop, position, error, mean, weights, pull, sums):
    """pull_i = Σ_j w_ij (S_ij/d_ij − 1)(y_i − y_j); sums = Σ_j w (d − S)², Σ_j w (e_i − e_j)."""
    n_components, n = position.shape
    weighted = weights.shape[0] > 0
    buffer = np.empty(BLOCK, dtype=mean.dtype)
    tiny = mean.dtype.type(TINY)
    zero = mean.dtype.type(0)
    for i in range(start, stop):
        misfit, lift = 0.0, 0.0
        for c in range(n_components):
            pull[i, c] = 0.0
        for first in range(0, n, BLOCK):
            size = min(BLOCK, n - first)
            for b in range(size):
                buffer[b] = zero
            for c in range(n_components):
                own = position[c, i]
                other = position[c, first : first + size]
                for b in range(size):
                    step = own - other[b]
                    buffer[b] += step * step
            wanted = mean[i, first : first + size]
            part = zero
            if weighted:
                weight = weights[i, first : first + size]
                for b in range(size):
                    length = np.sqrt(buffer[b])
                    lacking = wanted[b] - length
                    part += weight[b] * lacking * lacking
                    buffer[b] = weight[b] * lacking / (length + tiny)
                own, tilt = error[i], zero
                other = error[first : first + size]
                for b in range(size):
                    tilt += weight[b] * (own - other[b])
                lift += tilt
            else:
                for b in range(size):
                    length = np.sqrt(buffer[b])
                    lacking = wanted[b] - length
                    part += lacking * lacking
                    buffer[b] = lacking / (length + tiny)
            misfit += part
            for c in range(n_components):
                own, part = position[c, i], zero
                other = position[c, first : first + size]
                for b in range(size):
                    part += buffer[b] * (own - other[b])
                pull[i, c] += part
        sums[i, 0], sums[i, 1] = misfit, lift


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _square_sums(start, stop, D, weights, sums):
    """Σ_j w_ij D_ij² and Σ_j w_ij, the diagonal left out."""
    n = D.shape[0]
    for i in range(start, stop):
        row, squares, count = D[i], 0.0, 0.0
        if weights.shape[0] > 0:
            weight = weights[i]
            for j in range(n):
                squares += weight[j] * np.float64(row[j]) * np.float64(row[j])
                count += weight[j]
        else:
            for j in range(n):
                squares += np.float64(row[j]) * np.float64(row[j])
            squares -= np.float64(row[i]) * np.float64(row[i])
            count = n - 1.0
        sums[i, 0], sums[i, 1] = squares, count


@njit(nogil=True, cache=True, inline="always")
def _transposed_tile(D, top, left, height, width, tile):
    """tile[i, j] = D[left + j, top + i]: columns of D, read along its rows."""
    for j in range(width):
        row = D[left + j, top : top + height]
        for i in range(height):
            tile[i, j] = row[i]


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _halves(start, stop, D, weights, scale, mean, row_sum):
    """mean_ij = S_ij and row_sum_i = Σ_j w_ij K_ij."""
    n = D.shape[0]
    half = D.dtype.type(0.5 * scale)
    tile = np.empty((TILE, TILE), dtype=D.dtype)
    row_sum[start:stop] = 0.0
    for top in range(start, stop, TILE):
        height = min(TILE, stop - top)
        for left in range(0, n, TILE):
            width = min(TILE, n - left)
            _transposed_tile(D, top, left, height, width, tile)
            for i in range(height):
                there, back = D[top + i, left : left + width], tile[i, :width]
                out = mean[top + i, left : left + width]
                part = 0.0
                if weights.shape[0] > 0:
                    weight = weights[top + i, left : left + width]
                    for j in range(width):
                        out[j] = half * (there[j] + back[j])
                        part += np.float64(weight[j]) * (np.float64(there[j]) - back[j])
                else:
                    for j in range(width):
                        out[j] = half * (there[j] + back[j])
                        part += np.float64(there[j]) - back[j]
                row_sum[top + i] += 0.5 * scale * part
    for i in range(start, stop):
        mean[i, i] = 0.0


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _skew_sums(start, stop, D, weights, scale, level, sums):
    """Σ_j w_ij K_ij² and Σ_j w_ij (K_ij − u_j + u_i)²."""
    n = D.shape[0]
    half = 0.5 * scale
    tile = np.empty((TILE, TILE), dtype=D.dtype)
    sums[start:stop] = 0.0
    for top in range(start, stop, TILE):
        height = min(TILE, stop - top)
        for left in range(0, n, TILE):
            width = min(TILE, n - left)
            _transposed_tile(D, top, left, height, width, tile)
            other = level[left : left + width]
            for i in range(height):
                there, back = D[top + i, left : left + width], tile[i, :width]
                own, whole, rest = level[top + i], 0.0, 0.0
                if weights.shape[0] > 0:
                    weight = weights[top + i, left : left + width]
                    for j in range(width):
                        skew = half * (np.float64(there[j]) - back[j])
                        left_over = skew - other[j] + own
                        whole += weight[j] * skew * skew
                        rest += weight[j] * left_over * left_over
                else:
                    for j in range(width):
                        skew = half * (np.float64(there[j]) - back[j])
                        left_over = skew - other[j] + own
                        whole += skew * skew
                        rest += left_over * left_over
                sums[top + i, 0] += whole
                sums[top + i, 1] += rest
