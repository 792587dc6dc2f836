"""Optimal scaling: the stress against D as it is, less a constant, or in its order only.

    ratio     L(Y)    = Σ w_ij (F_ij − D_ij)²
    interval  L(Y, a) = Σ w_ij (F_ij + a − D_ij)²,      a ≥ 0
    ordinal   L(Y, f) = Σ w_ij (F_ij − f(D_ij))²,       f rising, Σ w f(D)² = Σ w D²

Distances of graphs carry a constant: all near pairs are "1". The best a, or the best f, for given
positions has a closed form, so the stress is a function of the positions alone: its gradient is, by
the envelope theorem, that with a or f held fixed. In a Randers space a majorisation step at a fixed
D̂ = D − a or f(D) lowers the stress as long as D̂_ij + D̂_ji ≥ 0; the best one for the new positions
lowers it again. Where a exceeds some of the distances the step is a descent direction only, and is
shortened until the stress falls.

Equal dissimilarities stay equal in f (the secondary approach to ties), so that f is a function
and can be applied to other pairs. f could shrink the skew part of D, so its stress is plain.

scaling="auto": a stress says little about a scaling, because with more freedom it is lower. So some
pairs are held out, each scaling is fitted to the others, and what it predicts for those held out is
compared with D in the units of the data: F (ratio), F + a (interval), or the isotonic regression of
D on F over the other pairs (ordinal).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import njit
from sklearn.isotonic import IsotonicRegression, isotonic_regression

from finsler_ext._threads import RowPool
from finsler_ext.directed.laplacian import group_labels
from finsler_ext.mds.distances import DirectedInput
from finsler_ext.mds.general_stress import GeneralStress
from finsler_ext.mds.stress import DenseStress, Slope, dense_stress
from finsler_ext.schema import NONE, TEXT, array, listed, number, one_of, part, saved

SCALINGS = ("ratio", "interval", "ordinal")
# A scaling belongs to the kind of data, not to its size: a sample shows it.
SAMPLE_POINTS = 300
# Share of the pairs that is held out.
HELD_OUT = 0.1
# A scaling with more freedom must leave less than this share of the error.
WORTH = 0.95


def _check_rising(state: dict) -> None:
    knots, values = state["knots"], state["values"]
    if (knots is None) != (values is None) or (state["kind"] == "ordinal") != (knots is not None):
        raise ValueError("Transformation has knots if it is ordinal, and only then")
    if knots is not None and ((np.diff(knots) < 0).any() or (np.diff(values) < 0).any()):
        raise ValueError("Transformation does not rise")
    if state["constant"] and state["kind"] != "interval":
        raise ValueError("Transformation has a constant and is not of intervals")


@saved(
    kind=one_of("ratio", "interval", "ordinal"),
    constant=number("[0, inf)"),
    knots=NONE | array("f8", "k"),
    values=NONE | array("f8", "k"),
    relations=_check_rising,
)
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


class OrdinalStress:
    """min over rising f of Σ w (F − f(D))², with Σ w f(D)² = Σ w D².

    ``problem`` is the plain stress of D.
    """

    shortest_step = 1.0

    def __init__(
        self, D: np.ndarray, weights: np.ndarray | None, problem: DenseStress | GeneralStress
    ):
        self.weights, self.problem, self.space = weights, problem, problem.space
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

    def values(self, position: np.ndarray, omega: float) -> np.ndarray:
        """f at the knots, for positions of shape (m, n): isotonic regression of F, rescaled."""
        sums = np.zeros(len(self.knots))
        weights = np.empty((0, 0)) if self.weights is None else self.weights
        kernel = _knot_kernel(self.space.forward)
        kernel(np.ascontiguousarray(position), float(omega), weights, self.rank, sums)
        rising = isotonic_regression(sums / self.knot_weight, sample_weight=self.knot_weight)
        size = float(np.sqrt(self.knot_weight @ rising**2))
        if size == 0.0:  # all points in one place
            return np.full(len(sums), np.sqrt(self.total / self.knot_weight.sum()))
        return rising * (np.sqrt(self.total) / size)

    def at(self, position: np.ndarray, omega: float) -> DenseStress | GeneralStress:
        """The ratio problem of D̂ = f(D) for the best f, in the same units."""
        scaled = np.zeros(self.rank.shape, self.dtype)
        scaled[self.known] = self.values(position, omega)[self.rank[self.known]]
        if isinstance(self.problem, GeneralStress):
            weights = self.problem.weight_there
            return GeneralStress(scaled, weights, 1.0, self.solver, self.space)
        return dense_stress(scaled, self.weights, solver=self.solver, unit=1.0, space=self.space)

    def slope(self, position: np.ndarray, omega: float, pool: RowPool) -> Slope:
        return self.at(position, omega).slope(position, omega, pool)

    def step(self, here: Slope, omega: float) -> np.ndarray:
        return self.problem.step(here, omega)

    def drift_pull(self, position: np.ndarray, omega: float, pool: RowPool):
        return self.at(position, omega).drift_pull(position, omega, pool)


def transformation_at(objective, position: np.ndarray, omega: float) -> Transformation:
    """What the distances of a layout of shape (n, m) stand for."""
    place = np.ascontiguousarray(position.T) / objective.unit
    if isinstance(objective, OrdinalStress):
        values = objective.values(place, omega) * objective.unit
        return Transformation("ordinal", 0.0, objective.knots, values)
    if not objective.interval:
        return Transformation()
    with RowPool(objective.n_points, 1) as pool:
        constant = objective.constant(place, omega, pool)
    return Transformation("interval", constant * objective.unit)


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


@saved(kind=TEXT, error=number("[0, inf)", nan=True))
class ScalingTrial(NamedTuple):
    """A scaling that was tried: Σ w (D − prediction)²/Σ w D² over the pairs held out."""

    kind: str
    error: float


@saved(kind=TEXT, reason=TEXT, trials=listed(part("ScalingTrial")))
class ScalingChoice(NamedTuple):
    """The scaling chosen, why, and all that were tried."""

    kind: str
    reason: str
    trials: tuple[ScalingTrial, ...]


def choose_scaling(directed: DirectedInput, settings, fit) -> ScalingChoice:
    """``fit`` takes directed data, settings and a random state, and returns a StressResult."""
    rng = np.random.RandomState(0)  # the choice takes nothing from the caller's random numbers
    sample, rows = directed.sample(SAMPLE_POINTS, rng)
    held = held_out_pairs(sample, rng)
    if held is None:
        reason = "too few pairs to hold any out: distances are taken as they are"
        return ScalingChoice("ratio", reason, ())
    weights = np.ones_like(sample.distances) if sample.weights is None else sample.weights
    rest = np.where(held, weights.dtype.type(0), weights)
    np.fill_diagonal(rest, 0.0)
    settings = settings.for_rows(rows)._replace(compare_columns=False, verbose=False)
    D, judged = sample.distances[held].astype(np.float64), weights[held].astype(np.float64)
    trials = []
    for kind in SCALINGS:
        result = fit(DirectedInput(sample.distances, rest), settings._replace(scaling=kind), rng)
        F = settings.space.distances(result.embedding, result.omega_norm)
        predicted = predictions(F, sample.distances, rest, result.transformation)[held]
        error = float(judged @ (D - predicted) ** 2 / max(judged @ D**2, np.finfo(float).tiny))
        trials.append(ScalingTrial(kind, error))
    chosen = trials[0]
    for trial in trials[1:]:
        if trial.error < WORTH * chosen.error:
            chosen = trial
    errors = ", ".join(f"{trial.kind} {trial.error:.3g}" for trial in trials)
    reason = f"the simplest that predicts pairs held out well (errors: {errors})"
    return ScalingChoice(chosen.kind, reason, tuple(trials))


def held_out_pairs(directed: DirectedInput, rng) -> np.ndarray | None:
    """A symmetric mask of pairs to hold out, so that the others still hold all points together.

    None if that cannot be had.
    """
    n = len(directed.distances)
    known = np.ones((n, n)) if directed.weights is None else directed.weights + directed.weights.T
    low, high = np.nonzero(np.triu(known > 0, 1))
    n_groups = group_labels(known).max()
    for attempt in range(4):
        chosen = rng.uniform(size=low.size) < HELD_OUT / 2**attempt
        held = np.zeros((n, n), dtype=bool)
        held[low[chosen], high[chosen]] = held[high[chosen], low[chosen]] = True
        if chosen.any() and group_labels(np.where(held, 0.0, known)).max() == n_groups:
            return held if directed.weights is None else held & (directed.weights > 0)
    return None


def predictions(
    F: np.ndarray, D: np.ndarray, weights: np.ndarray, transformation: Transformation
) -> np.ndarray:
    """What distances F of a model say about D, in the units of D.

    With an ordinal transformation, by the isotonic regression of D on F over the pairs with weight.
    """
    if transformation.kind != "ordinal":
        return F + transformation.constant
    fitted = weights > 0
    rising = IsotonicRegression(out_of_bounds="clip")
    rising.fit(F[fitted], D[fitted].astype(np.float64), sample_weight=weights[fitted])
    return rising.predict(F.ravel()).reshape(F.shape)
