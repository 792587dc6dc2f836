"""From checked dissimilarities to a layout of low stress: drift, repeats, number of columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from finsler_ext._threads import one_blas_thread
from finsler_ext.estimators._mds.columns import (
    ColumnChoice,
    ColumnTrial,
    choose_columns,
    expressible,
)
from finsler_ext.estimators._mds.drift import find_drift
from finsler_ext.estimators._mds.input import DirectedInput
from finsler_ext.estimators._mds.pivots import PivotInput, refined
from finsler_ext.estimators._mds.problem import (
    Settings,
    check_fit,
    check_settings,
    is_init,
    objective_of,
    run_at,
    starts_of,
    transformation_at,
)
from finsler_ext.estimators._mds.scaling import ScalingChoice, with_scaling
from finsler_ext.layout.stress.drift import DriftSearch
from finsler_ext.layout.stress.scaling import Transformation
from finsler_ext.metrics import explained_share

__all__ = ["StressResult", "solve", "solve_columns"]


class StressResult(NamedTuple):
    """A layout of low stress.

    embedding : array of shape (n, m), map columns first, height last; centred
    stress : Σ w (F − D)²
    normalized_stress : the same, divided by Σ w D²
    n_iter : number of iterations
    stress_history : stress after each of them
    omega_norm : the drift, given or found
    gradient_share : share of the skew part of D that any height can express; nan without skew
    drift_search : what "auto" tried; None if the drift was given
    transformation : what the distances stand for: D, D − a, or a rising function of D
    scaling_choice : what scaling="auto" tried; None if the scaling was given
    """

    embedding: np.ndarray
    stress: float
    normalized_stress: float
    n_iter: int
    stress_history: np.ndarray
    omega_norm: float
    gradient_share: float
    drift_search: DriftSearch | None = None
    transformation: Transformation = Transformation()
    scaling_choice: ScalingChoice | None = None


def solve(directed: DirectedInput | PivotInput, settings: Settings, random_state) -> StressResult:
    """Minimise the directed stress; of several random starts the best counts."""
    if isinstance(directed, PivotInput):
        found = solve(directed.between_pivots, settings, random_state)
        return refined(found, directed, settings)
    check_settings(settings)
    check_fit(directed, settings)
    with one_blas_thread():
        settings, choice = with_scaling(directed, settings, random_state, _solve)
        return _solve(directed, settings, random_state)._replace(scaling_choice=choice)


def _solve(directed: DirectedInput, settings: Settings, random_state) -> StressResult:
    made = objective, stand_in, share = objective_of(directed, settings)
    found, runs = None, []
    omega = settings.omega_norm
    if isinstance(omega, str):
        found, best = find_drift(directed, settings, random_state, made)
        omega = found.omega_norm
        if len(best.position) == len(directed.distances) and not is_init(settings.init, "random"):
            runs = [best]
    omega = settings.space.check_drift(omega)
    if not runs:
        starts = starts_of(stand_in, settings, random_state)
        repeats = settings.n_init if is_init(settings.init, "random") else 1
        runs = [run_at(objective, starts(omega), omega, settings) for _ in range(repeats)]
    best = min(runs, key=lambda run: run.stress)
    return StressResult(
        embedding=best.position,
        stress=best.stress,
        normalized_stress=best.stress / (objective.total * objective.unit**2),
        n_iter=len(best.history),
        stress_history=best.history,
        omega_norm=omega,
        gradient_share=share,
        drift_search=found,
        transformation=transformation_at(objective, best.position, omega),
    )


def solve_columns(
    directed: DirectedInput | PivotInput, settings: Settings, random_state
) -> tuple[StressResult, ColumnChoice]:
    """n_components="auto": the same fit with two and with three columns."""
    if isinstance(directed, PivotInput):
        found, chosen = solve_columns(directed.between_pivots, settings, random_state)
        return refined(found, directed, settings), chosen

    def fit(n_components):
        fewer = settings._replace(n_components=n_components, compare_columns=False)
        result = _solve(directed, fewer, random_state)._replace(scaling_choice=choice)
        D = result.transformation.disparities(directed.with_nan())
        position, omega = result.embedding, result.omega_norm
        explained = explained_share(position, D, omega, settings.space)
        share = expressible(result.gradient_share, len(result.embedding))
        stress = result.normalized_stress
        return result, ColumnTrial(n_components, result.omega_norm, stress, explained, share)

    check_settings(settings)
    check_fit(directed, settings)
    with one_blas_thread():
        settings, choice = with_scaling(directed, settings, random_state, _solve)
        return choose_columns(fit)
