"""Optimal scaling: the stress against D as it is, less a constant, or in its order only.

    ratio     L(Y)    = Σ w_ij (F_ij − D_ij)²
    interval  L(Y, a) = Σ w_ij (F_ij + a − D_ij)²,      a ≥ 0
    ordinal   L(Y, f) = Σ w_ij (F_ij − f(D_ij))²,       f rising, Σ w f(D)² = Σ w D²

Distances of graphs carry a constant: all near pairs are "1". The best a, or the best f, for given
positions has a closed form, so a problem of this module is a function of the positions alone:
its stress is that of the best one, and (by the envelope theorem) its gradient is that of the
stress with it held fixed, in any space. In a Randers space a majorisation step at a fixed
D̂ = D − a or f(D) lowers the stress as long as D̂_ij + D̂_ji ≥ 0; the best one for the new positions
lowers it again. Where a exceeds some of the distances the step is a descent direction only, and is
shortened until the stress falls.

Equal dissimilarities stay equal in f (the secondary approach to ties), so that f is a function
and can be applied to other pairs.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import njit
from sklearn.isotonic import isotonic_regression

from finsler_ext._threads import RowPool
from finsler_ext.layout.stress.asymmetric import AsymmetricStress
from finsler_ext.layout.stress.objective import TINY, Slope, StressProblem, stress_problem
from finsler_ext.spaces import RANDERS, Space

__all__ = ["SCALINGS", "IntervalStress", "OrdinalStress", "Transformation", "scaled_stress"]

SCALINGS = ("ratio", "interval", "ordinal")
# A step is halved at most this often; beyond, what it could gain is rounding.
SHORTEST_STEP = 2.0**-20


class Transformation(NamedTuple):
    """What the distances of a layout stand for: D̂ = D, D − a, or a rising function of D.

    kind : "ratio", "interval" or "ordinal"
    constant : a; 0 unless "interval"
    knots, values : f at the dissimilarities of the data, if "ordinal"
    """

    kind: str = "ratio"
    constant: float = 0.0
    knots: np.ndarray | None = None
    values: np.ndarray | None = None

    def disparities(self, D: np.ndarray) -> np.ndarray:
        """D̂ of dissimilarities of any shape, nan where D is; between its knots f is linear."""
        D = np.asarray(D)
        if self.kind == "ratio":
            return D
        if self.knots is None or self.values is None:
            return D - D.dtype.type(self.constant)
        scaled = np.interp(np.where(np.isnan(D), self.knots[0], D), self.knots, self.values)
        return np.where(np.isnan(D), np.nan, scaled).astype(D.dtype, copy=False)


class IntervalStress:
    """min over a ≥ 0 of Σ w (F + a − D)², for a problem with any weights, in any space."""

    shortest_step = SHORTEST_STEP

    def __init__(self, problem: StressProblem | AsymmetricStress):
        self.problem = problem
        self.unit, self.dtype, self.n_points = problem.unit, problem.dtype, problem.n_points
        self.total, self.solver = problem.total, problem.solver
        self.imbalance = np.zeros(self.n_points)
        self._is_randers = _space_of(problem).majoriser is not None
        if isinstance(problem, AsymmetricStress):
            there, back = problem.weight_there, problem.weight_back
            self.weights = (there + back) / 2
            self.imbalance = (there - back).sum(axis=1, dtype=np.float64)
            self.total_weight = float(there.sum(dtype=np.float64))
            self.wanted = float(np.einsum("ij,ij", there, problem.there, dtype=np.float64))
        else:
            self.weights = np.empty((0, 0), self.dtype)
            self.total_weight = problem.total_weight
            if problem.weights is None:
                self.wanted = float(problem.mean.sum(dtype=np.float64))
            else:
                self.weights = problem.weights
                self.wanted = float(
                    np.einsum("ij,ij", problem.weights, problem.mean, dtype=np.float64)
                )

    def slope(self, position: np.ndarray, omega: float, pool: RowPool) -> Slope:
        here = self.problem.slope(position, omega, pool)
        units, lacking = self._lacking(position, omega, pool)
        constant = max(0.0, lacking / self.total_weight)
        stress = here.stress - 2.0 * constant * lacking + constant**2 * self.total_weight
        downhill = here.downhill - constant * units.T
        if self._is_randers:
            downhill[-1] += 0.5 * constant * omega * self.imbalance
        return Slope(max(stress, 0.0), downhill)

    def _lacking(self, position, omega, pool) -> tuple[np.ndarray, float]:
        """Half of ∂Σ w F/∂y_i, and Σ w (D − F).

        In a Randers space without the drift's part of the first, ½ ω · imbalance.
        """
        units = np.empty((self.n_points, position.shape[0]))
        sums = np.empty(self.n_points)
        problem, place = self.problem, np.ascontiguousarray(position)
        if isinstance(problem, AsymmetricStress) and not self._is_randers:
            kernel = _distance_kernel(problem.space.forward)
            weights = problem.weight_there, problem.weight_back
            pool.run(kernel, place, *weights, float(omega), units, sums)
            return units, self.wanted - float(sums.sum())
        pool.run(_length_sums, place, self.weights, units, sums)
        # Σ w_ij (h_j − h_i), which symmetric weights cancel
        climb = -float(self.imbalance @ position[-1])
        return units, self.wanted - float(sums.sum()) - omega * climb

    def step(self, here: Slope, omega: float) -> np.ndarray:
        return self.problem.step(here, omega)

    def constant(self, position: np.ndarray, omega: float, pool: RowPool) -> float:
        """The best a at positions of shape (m, n), all in the problem's units."""
        return max(0.0, self._lacking(position, omega, pool)[1] / self.total_weight)

    def drift_pull(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As of the problem, with a and the drift chosen together."""
        square, pull = self.problem.drift_pull(position)
        if not self.imbalance.any():
            return square, pull
        # Σ w Δy does not vanish: regress on a, too.
        climb = -(position @ self.imbalance)
        with RowPool(self.n_points, 1) as pool:
            lacking = self._lacking(position, 0.0, pool)[1]
        if lacking <= 0:
            return square, pull
        weight = self.total_weight
        return square - np.outer(climb, climb) / weight, pull - climb * lacking / weight

    def transformation(self, position: np.ndarray, omega: float, pool: RowPool) -> Transformation:
        return Transformation("interval", self.constant(position, omega, pool) * self.unit)


class OrdinalStress:
    """min over rising f of Σ w (F − f(D))², with Σ w f(D)² = Σ w D²."""

    shortest_step = 1.0

    def __init__(self, D: np.ndarray, weights: np.ndarray | None, problem):
        self.weights, self.problem = weights, problem
        self.unit, self.dtype, self.n_points = problem.unit, problem.dtype, problem.n_points
        self.total, self.solver = problem.total, problem.solver
        n = self.n_points
        known = ~np.eye(n, dtype=bool) if weights is None else weights > 0
        self.knots, rank = np.unique(D[known], return_inverse=True)
        self.rank = np.full((n, n), -1, dtype=np.int32)
        self.rank[known] = rank
        self.known = known
        pair_weight = None if weights is None else weights[known].astype(np.float64)
        self.knot_weight = np.bincount(rank, pair_weight, len(self.knots)).astype(np.float64)

    def values(self, position: np.ndarray, omega: float, pool: RowPool) -> np.ndarray:
        """f at the knots, for positions of shape (m, n): isotonic regression of F, rescaled."""
        sums = np.zeros(len(self.knots))
        weights = np.empty((0, 0)) if self.weights is None else self.weights
        kernel = _knot_kernel(_space_of(self.problem).forward)
        kernel(np.ascontiguousarray(position), float(omega), weights, self.rank, sums)
        rising = isotonic_regression(sums / self.knot_weight, sample_weight=self.knot_weight)
        size = float(np.sqrt(self.knot_weight @ rising**2))
        if size == 0.0:  # all points in one place
            return np.full(len(sums), np.sqrt(self.total / self.knot_weight.sum()))
        return rising * (np.sqrt(self.total) / size)

    def at(self, values: np.ndarray):
        """The ratio problem of D̂ = f(D), in the same units."""
        scaled = np.zeros(self.rank.shape, self.dtype)
        scaled[self.known] = values[self.rank[self.known]]
        if self.weights is not None and isinstance(self.problem, AsymmetricStress):
            space = self.problem.space
            return AsymmetricStress(scaled, self.weights, 1.0, self.solver, space)
        return stress_problem(scaled, self.weights, solver=self.solver, unit=1.0)

    def slope(self, position: np.ndarray, omega: float, pool: RowPool) -> Slope:
        return self.at(self.values(position, omega, pool)).slope(position, omega, pool)

    def step(self, here: Slope, omega: float) -> np.ndarray:
        return self.problem.step(here, omega)

    def drift_pull(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with RowPool(self.n_points, 1) as pool:
            values = self.values(position, 0.0, pool)
        return self.at(values).drift_pull(position)

    def transformation(self, position: np.ndarray, omega: float, pool: RowPool) -> Transformation:
        values = self.values(position, omega, pool)
        return Transformation("ordinal", 0.0, self.knots, values * self.unit)


def _space_of(problem: StressProblem | AsymmetricStress) -> Space:
    """A `StressProblem` is split as only F = d + ω z allows."""
    return problem.space if isinstance(problem, AsymmetricStress) else RANDERS


def scaled_stress(problem, kind: str, D: np.ndarray, weights: np.ndarray | None):
    """The problem of D under a scaling; ``problem`` itself is that of "ratio"."""
    if kind == "ratio":
        return problem
    return IntervalStress(problem) if kind == "interval" else OrdinalStress(D, weights, problem)


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "nnan"})
def _length_sums(start, stop, position, weights, units, sums):
    """units_i = Σ_j w_ij (y_i − y_j)/d_ij and sums_i = Σ_j w_ij d_ij."""
    n_components, n = position.shape
    weighted = weights.shape[0] > 0
    along = np.empty(n)
    for i in range(start, stop):
        along[:] = 0.0
        for c in range(n_components):
            own, other = position[c, i], position[c]
            for j in range(n):
                step = own - other[j]
                along[j] += step * step
        total = 0.0
        if weighted:
            weight = weights[i]
            for j in range(n):
                length = np.sqrt(along[j])
                total += weight[j] * length
                along[j] = weight[j] / (length + TINY)
        else:
            for j in range(n):
                length = np.sqrt(along[j])
                total += length
                along[j] = 1.0 / (length + TINY)
        sums[i] = total
        for c in range(n_components):
            own, other, part = position[c, i], position[c], 0.0
            for j in range(n):
                part += along[j] * (own - other[j])
            units[i, c] = part


@cache
def _distance_kernel(forward):
    """Sums of distances in one space, and their slope."""

    @njit(nogil=True, cache=True, error_model="numpy")
    def sum_distances(start, stop, position, w_there, w_back, omega, halves, sums):
        """halves_i = ½ ∂(Σ w F)/∂y_i and sums_i = Σ_j w_ij F_ij."""
        n_components, n = position.shape
        last = n_components - 1
        for i in range(start, stop):
            total, lift = 0.0, 0.0
            halves[i] = 0.0
            for j in range(n):
                square = 0.0
                for c in range(n_components):
                    square += (position[c, i] - position[c, j]) ** 2
                length = np.sqrt(square)
                rise = position[last, j] - position[last, i]
                distance, along_out, up_out = forward(length, rise, omega)
                _, along_in, up_in = forward(length, -rise, omega)
                total += w_there[i, j] * distance
                lift += w_back[i, j] * up_in - w_there[i, j] * up_out
                along = w_there[i, j] * along_out + w_back[i, j] * along_in
                along *= 0.5 / (length + TINY)
                for c in range(n_components):
                    halves[i, c] += along * (position[c, i] - position[c, j])
            halves[i, last] += 0.5 * omega * lift
            sums[i] = total

    return sum_distances


@cache
def _knot_kernel(forward):
    """Sums of distances in one space, knot by knot."""

    @njit(nogil=True, cache=True, error_model="numpy")
    def sum_knots(position, omega, weights, rank, sums):
        """Σ w F over the pairs of each knot."""
        n_components, n = position.shape
        weighted, last = weights.shape[0] > 0, n_components - 1
        for i in range(n):
            for j in range(n):
                if rank[i, j] < 0:
                    continue
                square = 0.0
                for c in range(n_components):
                    square += (position[c, j] - position[c, i]) ** 2
                rise = position[last, j] - position[last, i]
                distance = forward(np.sqrt(square), rise, omega)[0]
                sums[rank[i, j]] += weights[i, j] * distance if weighted else distance

    return sum_knots
