"""The directed stress of all pairs, in two parts with a noise level each.

    L(Y) = Σ_{i≠j} w_ij (F_ij − D_ij)²,     F_ij = ‖y_j − y_i‖ + ω (h_j − h_i),   w symmetric

With the halves S_ij = (D_ij + D_ji)/2 and K_ij = (D_ij − D_ji)/2 of D the stress is the sum of a
symmetric and a skew part, L = L_S + L_K,

    L_S = Σ w_ij (‖y_i − y_j‖ − S_ij)²,     L_K = Σ w_ij (ω (h_j − h_i) − K_ij)².

**Noise levels.** L_K is typically a few percent of L_S, so plain stress spends the height on the
symmetric part. With a variance of its own for each part, that of K being the smaller one, the
likelihood of D for given positions is highest where

    (n_S + n_K) (L_S/n_S)^{n_S/(n_S + n_K)} (L_K/n_K)^{n_K/(n_S + n_K)}

is lowest (n_S, n_K: numbers of pairs in each part), or plain L_S + L_K where L_K/n_K exceeds
L_S/n_S. Its gradient is, up to a factor, that of L_S + λ L_K with λ = n_K L_S/(n_S L_K), and since
it is concave in (L_S, L_K), whatever lowers L_S + λ L_K at the present λ lowers it, too.

**Heights.** A height can show K only as far as K_ij is a difference u_j − u_i, where V u = −(w∘K) 1
with V the Laplacian of w (for uniform weights u is minus the row mean of K). The rest of K is
cyclic, and no height can show it: L_K = 2 eᵀVe + Σ w_ij (K_ij − u_j + u_i)² with e = ω h − u. So
one pass over the rows of S gives all that a step needs; D itself is read once, at the beginning.

**One-way pairs** have no K: if only D_ij is known, w (F_ij − D_ij)² belongs to L_S.

**Interval scaling** compares F with D − a for the best a ≥ 0, a mean of D − F that changes S alone.
By the envelope theorem the gradient is that at a fixed a.

Other weights and spaces have `finsler_ext.mds.general_stress`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numba import njit

from finsler_ext._threads import RowPool, row_blocks
from finsler_ext.asymmetry import NEGLIGIBLE_SKEW
from finsler_ext.directed.laplacian import IterativeLaplacian, LaplacianSolver, laplacian_solver
from finsler_ext.geometry import RANDERS, Space

# Columns per partial sum: their buffers stay in the first-level cache, and float32 sums stay
# short enough not to lose digits (partial sums are added in float64).
BLOCK = 512
# Square tiles in which D is read along rows and along columns.
TILE = 64
# Keeps coincident points from dividing by zero; their offset is zero, so the value is free.
TINY = 1e-18
# A height fits the skew part of a forest exactly, which leaves no noise to estimate. This share of
# Σ w K² is always taken for noise; on the flights, where a height shows 95 %, it lowers λ by 2 %.
NOISE_FLOOR = 1e-3
# A step is halved at most this often; beyond, what it could gain is rounding.
SHORTEST_STEP = 2.0**-20
# Rows whose pairs are summed at a time.
SUMMED_ROWS = 256


class Slope(NamedTuple):
    """A stress at some positions, and how it falls; in the problem's units.

    stress : what is minimised
    downhill : −∇/4 of L_S + λ L_K, of shape (m, n)
    skew_weight : λ
    factor : ∇ stress = −4 factor · downhill
    plain : L_S + L_K
    """

    stress: float
    downhill: np.ndarray
    skew_weight: float = 1.0
    factor: float = 1.0
    plain: float = float("nan")


class NoiseLevels(NamedTuple):
    """How much the skew part of a stress counts.

    skew_weight : λ; None to estimate it
    n_symmetric, n_skew : numbers of pairs in each part
    floor : what is added to the skew part before it is taken for noise
    """

    skew_weight: float | None = 1.0
    n_symmetric: float = 1.0
    n_skew: float = 1.0
    floor: float = 0.0

    def slope(self, symmetric: float, skew: float, pull: np.ndarray, lift: np.ndarray) -> Slope:
        """From both parts, −∇L_S/4 of shape (m, n), and −∂L_K/∂h/4."""
        plain, weight, factor = symmetric + skew, self.skew_weight, 1.0
        if weight is None:
            skew += self.floor
            weight = max(1.0, self.n_skew * symmetric / (self.n_symmetric * skew))
            factor = weight ** (-self.n_skew / (self.n_symmetric + self.n_skew))
            # homogeneous: L_S ∂/∂L_S + L_K ∂/∂L_K; without the floor it is plain at λ = 1
            stress = factor * (symmetric + weight * skew) - self.floor
        else:
            stress = symmetric + weight * skew
        downhill = pull.copy()
        downhill[-1] += weight * lift
        return Slope(stress, downhill, weight, factor, plain)


PLAIN = NoiseLevels()


class TwoParts:
    """A stress of a symmetric and a skew part.

    skew : Σ w K²
    cyclic : Σ w (K_ij − u_j + u_i)²: the stress that no height can take away
    total : Σ w D²
    """

    skew: float
    cyclic: float
    total: float

    @property
    def gradient_share(self) -> float:
        """Share of the skew part that is a difference of heights; nan if D is symmetric."""
        return 1.0 - self.cyclic / self.skew if self.is_skew else float("nan")

    @property
    def is_skew(self) -> bool:
        """Whether D is asymmetric beyond rounding."""
        return self.skew > NEGLIGIBLE_SKEW * self.total


@dataclass(frozen=True)
class DenseStress(TwoParts):
    """Directed dissimilarities with symmetric weights or one-way pairs, in a Randers space.

    Lengths are in units of ``unit``, a power of two near the root mean square of D, so that
    float32 neither overflows nor underflows and scaling the data scales the result exactly.
    """

    mean: np.ndarray
    """S, with a zero diagonal; the one that is known of one-way pairs."""
    weights: np.ndarray | None
    """w, half of it in each direction for one-way pairs; None where all pairs count 1."""
    side: np.ndarray | None
    """1 where D_ij alone is known, −1 where D_ji alone is; None without one-way pairs."""
    level: np.ndarray
    """u, the height (times ω) that K calls for; centred."""
    skew: float
    cyclic: float
    total: float
    total_weight: float
    """Σ w over all ordered pairs."""
    unit: float
    solver: LaplacianSolver
    space: Space = RANDERS
    interval: bool = False
    """Whether a constant is subtracted from D."""
    noise: NoiseLevels = PLAIN

    @property
    def n_points(self) -> int:
        return self.mean.shape[0]

    @property
    def dtype(self) -> np.dtype:
        return self.mean.dtype

    @property
    def shortest_step(self) -> float:
        """A whole step lowers the stress as long as S ≥ 0, which a constant may prevent."""
        return SHORTEST_STEP if self.interval else 1.0

    def with_noise(self, skew_weight: float | None) -> DenseStress:
        """The same with λ, or with λ estimated (None) where there is a skew part."""
        if self.weights is None:
            pairs = both = self.n_points * (self.n_points - 1) / 2
        else:
            pairs = both = np.count_nonzero(self.weights) / 2
            if self.side is not None:
                both -= np.count_nonzero(self.side) / 2
        if both == 0 or not self.is_skew:
            skew_weight = 1.0 if skew_weight is None else skew_weight
        return replace(self, noise=NoiseLevels(skew_weight, pairs, both, NOISE_FLOOR * self.skew))

    def slope(self, position: np.ndarray, omega: float, pool: RowPool) -> Slope:
        """Stress and −∇/4 at ``position``, of shape (m, n): one row per coordinate."""
        n = self.n_points
        error = omega * position[-1] - self.level
        error -= error.mean()
        pull, sums = np.empty((n, position.shape[0])), np.empty((n, 3))
        constant = self.constant(position, omega, pool)
        pool.run(
            _pull_kernel,
            *self._arrays(position, omega),
            error.astype(self.dtype),
            self.dtype.type(constant),
            pull,
            sums,
        )
        tilt = n * error if self.weights is None else sums[:, 1]
        skew = 2.0 * float(error @ tilt) + self.cyclic
        pull = np.ascontiguousarray(pull.T)
        pull[-1] -= omega * sums[:, 2]
        return self.noise.slope(float(sums[:, 0].sum()), skew, pull, -omega * tilt)

    def _arrays(self, position, omega) -> tuple:
        """Positions, heights times the drift, and the pairs, as kernels take them."""
        empty = np.empty((0, 0), self.dtype)
        return (
            np.ascontiguousarray(position, dtype=self.dtype),
            (omega * position[-1]).astype(self.dtype),
            self.mean,
            empty if self.weights is None else self.weights,
            # one row of zeros stands for all
            np.zeros((1, self.n_points), np.int8) if self.side is None else self.side,
        )

    def constant(self, position: np.ndarray, omega: float, pool: RowPool) -> float:
        """The best a at positions of shape (m, n), in the problem's units."""
        if not self.interval:
            return 0.0
        sums = np.empty(self.n_points)
        pool.run(_lacking_kernel, *self._arrays(position, omega), sums)
        return max(0.0, float(sums.sum()) / self.total_weight)

    def step(self, here: Slope, omega: float) -> np.ndarray:
        """The step Y⁺ − Y of the majorisation, of shape (m, n)."""
        if self.space.majoriser is None:
            raise ValueError("A step needs a space with a majoriser.")
        move = self.solver.solve(here.downhill)
        height = 1.0 + here.skew_weight * (self.space.majoriser.height(omega) - 1.0)
        if self.side is None:
            move[-1] /= height
        else:
            # with V₁, V₂ of one-way and other pairs: bound·V₁ + height·V₂ ≤ max(bound, height)·V
            bound = self.space.majoriser.bound(omega)
            move[:-1] /= bound
            move[-1] /= max(bound, height)
        return move

    def drift_pull(self, position: np.ndarray, omega: float, pool: RowPool):
        """Σ c Δy Δyᵀ and Σ c (D_ij − d_ij) Δy with Δy = y_j − y_i, at positions of shape (m, n).

        c = λ w, or w of one-way pairs. They are the normal equations of the best drift vector.
        """
        centred = position - position.mean(axis=1, keepdims=True)
        if self.weights is None:
            lift = self.n_points * centred
        else:
            weights = self.weights if self.side is None else self.weights * (self.side == 0)
            degree = weights.sum(axis=1, dtype=np.float64)
            lift = degree * centred - centred @ weights
        square, pull = 2.0 * lift @ centred.T, 2.0 * lift @ self.level
        if self.side is not None and self.weights is not None:
            weight = self.slope(position, omega, pool).skew_weight
            square, pull = weight * square, weight * pull
            constant = self.constant(position, omega, pool)
            for rows in row_blocks(self.n_points, SUMMED_ROWS):
                offset = position[:, None, :] - position[:, rows, None]
                lacking = self.mean[rows] - constant - np.sqrt((offset**2).sum(axis=0))
                side = self.side[rows]
                one_way = self.weights[rows] * np.abs(side) * offset
                square += np.einsum("cij,dij->cd", one_way, offset)
                pull += np.einsum("cij,ij->c", one_way, side * lacking)
        return square, pull


def dense_stress(
    D: np.ndarray,
    weights: np.ndarray | None = None,
    n_threads: int = 1,
    *,
    solver: LaplacianSolver | None = None,
    unit: float | None = None,
    space: Space = RANDERS,
) -> DenseStress:
    """The plain stress of D, an array of finite directed dissimilarities with a zero diagonal.

    ``weights`` have a zero diagonal. w_ij and w_ji are equal, or one of them is zero: a one-way
    pair. The result is of D's dtype and needs N² numbers beside D. The solver of the weights and
    the unit may be those of another problem.
    """
    n = D.shape[0]
    side, both, skew_solver = None, weights, None
    if weights is not None and not np.array_equal(weights, weights.T):
        known = weights > 0
        side = known.astype(np.int8) - known.T.astype(np.int8)
        D = np.where(side < 0, D.T, D)
        weights = (weights + weights.T) / 2
        both = np.where(side == 0, weights, weights.dtype.type(0))
        skew_solver = IterativeLaplacian(both, n_threads)
    empty = np.empty((0, 0), dtype=D.dtype)
    mean, sums = np.empty_like(D, order="C"), np.empty((n, 2))
    with RowPool(n, n_threads, heavy=True) as pool:
        pool.run(_square_sums, D, empty if weights is None else weights, sums)
        total, total_weight = (float(part.sum()) for part in sums.T)
        if unit is None:
            unit = 2.0 ** round(0.5 * np.log2(total / total_weight)) if total > 0 else 1.0
        skew_weights = empty if both is None else both
        pool.run(_halves, D, skew_weights, 1.0 / unit, mean, sums[:, 0])
        solver = laplacian_solver(weights, n, n_threads) if solver is None else solver
        level = (skew_solver or solver).solve(-sums[:, 0][None, :], exactly=True)[0]
        pool.run(_skew_sums, D, skew_weights, 1.0 / unit, level, sums)
    return DenseStress(
        mean=mean,
        weights=weights,
        side=side,
        level=level,
        skew=float(sums[:, 0].sum()),
        cyclic=float(sums[:, 1].sum()),
        total=total / unit**2,
        total_weight=total_weight,
        unit=unit,
        solver=solver,
        space=space,
    )


@njit(nogil=True, cache=True, inline="always")
def _squares(position, i, first, size, buffer):
    """buffer[b] = ‖y_i − y_j‖² with j = first + b."""
    for b in range(size):
        buffer[b] = 0.0
    for c in range(position.shape[0]):
        own, other = position[c, i], position[c, first : first + size]
        for b in range(size):
            step = own - other[b]
            buffer[b] += step * step


# Sums may be reassociated, so that they run in vector registers: the same machine gives the
# same bits, and each row is summed the same way whichever thread it falls to.
@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "nnan"})
def _pull_kernel(start, stop, position, lifted, mean, weights, side, error, constant, pull, sums):
    """pull_i = Σ_j w_ij r_ij (y_i − y_j)/d_ij with r = S − a − d − side·ω (h_j − h_i).

    sums_i = Σ_j w r², Σ_j w (e_i − e_j) over pairs known both ways, Σ_j side·w r.
    """
    n_components, n = position.shape
    weighted = weights.shape[0] > 0
    buffer = np.empty(BLOCK, dtype=mean.dtype)
    tiny = mean.dtype.type(TINY)
    zero = mean.dtype.type(0)
    for i in range(start, stop):
        misfit, tilt, lift = 0.0, 0.0, 0.0
        for c in range(n_components):
            pull[i, c] = 0.0
        for first in range(0, n, BLOCK):
            size = min(BLOCK, n - first)
            _squares(position, i, first, size, buffer)
            wanted = mean[i, first : first + size]
            part = zero
            if weighted:
                weight = weights[i, first : first + size]
                way = side[i % side.shape[0], first : first + size]
                own, other = lifted[i], lifted[first : first + size]
                lifting = zero
                for b in range(size):
                    length = np.sqrt(buffer[b])
                    sign = mean.dtype.type(way[b])
                    lacking = wanted[b] - constant - length - sign * (other[b] - own)
                    part += weight[b] * lacking * lacking
                    lifting += sign * weight[b] * lacking
                    buffer[b] = weight[b] * lacking / (length + tiny)
                lift += lifting
                own, other = error[i], error[first : first + size]
                lifting = zero
                for b in range(size):
                    lifting += mean.dtype.type(way[b] == 0) * weight[b] * (own - other[b])
                tilt += lifting
            else:
                for b in range(size):
                    length = np.sqrt(buffer[b])
                    lacking = wanted[b] - constant - length
                    part += lacking * lacking
                    buffer[b] = lacking / (length + tiny)
            misfit += part
            for c in range(n_components):
                own, part = position[c, i], zero
                other = position[c, first : first + size]
                for b in range(size):
                    part += buffer[b] * (own - other[b])
                pull[i, c] += part
        if not weighted:  # the diagonal
            misfit -= np.float64(constant) * constant
        sums[i, 0], sums[i, 1], sums[i, 2] = misfit, tilt, lift


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "nnan"})
def _lacking_kernel(start, stop, position, lifted, mean, weights, side, sums):
    """sums_i = Σ_j w_ij (S_ij − d_ij − side·ω (h_j − h_i))."""
    n = position.shape[1]
    weighted = weights.shape[0] > 0
    buffer = np.empty(BLOCK, dtype=mean.dtype)
    zero = mean.dtype.type(0)
    for i in range(start, stop):
        total = 0.0
        for first in range(0, n, BLOCK):
            size = min(BLOCK, n - first)
            _squares(position, i, first, size, buffer)
            wanted, part = mean[i, first : first + size], zero
            if weighted:
                weight = weights[i, first : first + size]
                way = side[i % side.shape[0], first : first + size]
                own, other = lifted[i], lifted[first : first + size]
                for b in range(size):
                    rise = mean.dtype.type(way[b]) * (other[b] - own)
                    part += weight[b] * (wanted[b] - np.sqrt(buffer[b]) - rise)
            else:
                for b in range(size):
                    part += wanted[b] - np.sqrt(buffer[b])
            total += part
        sums[i] = total


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
