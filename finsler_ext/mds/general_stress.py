"""The directed stress of all pairs with any weights, in any space.

Where w_ij and w_ji differ, the cross terms of F² do not cancel; in spaces other than Randers' the
stress does not split: both directions of a pair are summed one by one. In a Randers space a
majoriser still exists. With u = y_j − y_i, the Hessian of
F²/2 is at most (1 + ω)² I, so that F² lies below its tangent plus (1 + ω)² ‖Δu‖², and −2 w D F lies
below its own tangent (Cauchy–Schwarz). With V the Laplacian of (w + wᵀ)/2 and g = −∇L/4 both are

    L(Y) − 4 tr(gᵀ ΔY) + 2 (1 + ω)² tr(ΔYᵀ V ΔY),   lowest at   ΔY = V† g / (1 + ω)².
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit

from finsler_ext._threads import RowPool, row_blocks
from finsler_ext.directed.laplacian import LaplacianSolver
from finsler_ext.geometry import RANDERS, Space
from finsler_ext.mds.stress import SHORTEST_STEP, SUMMED_ROWS, TINY, Slope


class GeneralStress:
    """Directed dissimilarities with weights of their own for each direction, in any space."""

    def __init__(
        self,
        D: np.ndarray,
        weights: np.ndarray,
        unit: float,
        solver: LaplacianSolver | None = None,
        space: Space = RANDERS,
        *,
        interval: bool = False,
    ):
        self.space, self.unit, self.dtype, self.n_points = space, unit, D.dtype, len(D)
        self.solver, self.interval = solver, interval
        self.shortest_step = SHORTEST_STEP if interval else 1.0
        self.there = np.ascontiguousarray(D / D.dtype.type(unit))
        self.back = np.ascontiguousarray(self.there.T)
        self.weight_there = np.ascontiguousarray(weights)
        self.weight_back = np.ascontiguousarray(weights.T)
        self.total_weight = float(weights.sum(dtype=np.float64))
        self.wanted = float(np.einsum("ij,ij", weights, self.there, dtype=np.float64))
        self.total = float(np.einsum("ij,ij,ij", weights, self.there, self.there, dtype=np.float64))

    def slope(self, position: np.ndarray, omega: float, pool: RowPool) -> Slope:
        """Stress and −∇L/4 at ``position``, of shape (m, n): one row per coordinate."""
        downhill, stress = np.empty((self.n_points, len(position))), np.empty(self.n_points)
        pool.run(
            slope_kernel(self.space.forward),
            np.ascontiguousarray(position),
            self.there,
            self.back,
            self.weight_there,
            self.weight_back,
            float(omega),
            self.constant(position, omega, pool),
            downhill,
            stress,
        )
        total = float(stress.sum())
        return Slope(total, np.ascontiguousarray(downhill.T), plain=total)

    def constant(self, position: np.ndarray, omega: float, pool: RowPool) -> float:
        """The best a ≥ 0 at positions of shape (m, n), in the problem's units."""
        if not self.interval:
            return 0.0
        sums = np.empty(self.n_points)
        place = np.ascontiguousarray(position)
        pool.run(_sum_kernel(self.space.forward), place, self.weight_there, float(omega), sums)
        return max(0.0, (self.wanted - float(sums.sum())) / self.total_weight)

    def step(self, here: Slope, omega: float) -> np.ndarray:
        """Y⁺ − Y of shape (m, n), with the solver of the mean weights."""
        if self.solver is None or self.space.majoriser is None:
            raise ValueError("A step needs the solver of (w + wᵀ)/2, and a space with a majoriser.")
        return self.solver.solve(here.downhill) / self.space.majoriser.bound(omega)

    def drift_pull(self, position: np.ndarray, omega: float, pool: RowPool):
        """Σ w Δy Δyᵀ and Σ w (D_ij − d_ij) Δy with Δy = y_j − y_i, at positions of shape (m, n)."""
        m, constant = position.shape[0], self.constant(position, omega, pool)
        square, pull = np.zeros((m, m)), np.zeros(m)
        for rows in row_blocks(self.n_points, SUMMED_ROWS):
            offset = position[:, None, :] - position[:, rows, None]
            lacking = self.there[rows] - constant - np.sqrt((offset**2).sum(axis=0))
            weighted = self.weight_there[rows] * offset
            square += np.einsum("cij,dij->cd", weighted, offset)
            pull += np.einsum("cij,ij->c", weighted, lacking)
        return square, pull


@cache
def slope_kernel(forward):
    """Stress and slope of the rows, in one space."""

    @njit(
        nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "nnan"}
    )
    def sum_slopes(
        start, stop, position, there, back, w_there, w_back, omega, constant, downhill, stress
    ):
        """−∇L/4 of the rows, and the stress of their out-edges."""
        n_components, n = position.shape
        last = n_components - 1
        along = np.empty(n)
        for i in range(start, stop):
            for j in range(n):
                along[j] = 0.0
            for c in range(n_components):
                own, other = position[c, i], position[c]
                for j in range(n):
                    step = own - other[j]
                    along[j] += step * step
            own, other = position[last, i], position[last]
            misfit, lift = 0.0, 0.0
            for j in range(n):
                length = np.sqrt(along[j])
                rise = other[j] - own
                distance, along_out, up_out = forward(length, rise, omega)
                out = distance + constant - there[i, j]
                distance, along_in, up_in = forward(length, -rise, omega)
                into = distance + constant - back[i, j]
                misfit += w_there[i, j] * out * out
                out, into = w_there[i, j] * out, w_back[i, j] * into
                lift += out * up_out - into * up_in
                along[j] = (out * along_out + into * along_in) / (length + TINY)
            for c in range(n_components):
                own, other = position[c, i], position[c]
                total = 0.0
                for j in range(n):
                    total += along[j] * (own - other[j])
                downhill[i, c] = -0.5 * total
            downhill[i, last] += 0.5 * omega * lift
            stress[i] = misfit

    return sum_slopes


@cache
def _sum_kernel(forward):
    """Sums of distances in one space."""

    @njit(nogil=True, cache=True, error_model="numpy")
    def sum_distances(start, stop, position, weights, omega, sums):
        """sums_i = Σ_j w_ij F_ij."""
        n_components, n = position.shape
        last = n_components - 1
        for i in range(start, stop):
            total = 0.0
            for j in range(n):
                square = 0.0
                for c in range(n_components):
                    square += (position[c, i] - position[c, j]) ** 2
                rise = position[last, j] - position[last, i]
                total += weights[i, j] * forward(np.sqrt(square), rise, omega)[0]
            sums[i] = total

    return sum_distances
