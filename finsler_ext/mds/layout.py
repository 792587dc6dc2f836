"""From checked dissimilarities to a layout of low stress: scaling, drift, repeats, columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from finsler_ext._threads import one_blas_thread
from finsler_ext.mds.columns import ColumnChoice, ColumnTrial, choose_columns, expressible
from finsler_ext.mds.distances import DirectedInput
from finsler_ext.mds.drift import DriftSearch, find_drift
from finsler_ext.mds.pivots import PivotInput, SparseStress
from finsler_ext.mds.problem import (
    Settings,
    check_fit,
    check_settings,
    is_init,
    objective_of,
    run_at,
    starts_of,
)
from finsler_ext.mds.scaling import (
    ScalingChoice,
    Transformation,
    choose_scaling,
    transformation_at,
)
from finsler_ext.mds.transform import place_points
from finsler_ext.metrics import explained_share

__all__ = ["StressResult", "solve", "solve_columns"]

# Groups of points without a known pair between them are drawn side by side, this share of the
# width of the largest apart.
GROUP_GAP = 0.1


class StressResult(NamedTuple):
    """A layout of low stress.

    embedding : array of shape (n, m), map first, height last; centred; nan without a known pair
    stress : Σ w (F − D)²
    normalized_stress : the same, divided by Σ w D²
    n_iter : number of iterations
    stress_history : what was minimised, after each of them
    omega_norm : the drift, given or found
    gradient_share : share of the skew part of D that any height can express; nan without skew
    drift_search : what "auto" tried; None if the drift was given
    transformation : what the distances stand for: D, D − a, or a rising function of D
    scaling_choice : what scaling="auto" tried; None if the scaling was given
    skew_weight : λ, given or estimated
    n_groups : groups of points without a known pair between them
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
    skew_weight: float = 1.0
    n_groups: int = 1


def solve(directed: DirectedInput | PivotInput, settings: Settings, random_state) -> StressResult:
    """Minimise the directed stress; of several random starts the best counts."""
    if isinstance(directed, PivotInput):
        found = solve(directed.between_pivots, settings, random_state)
        return _refined(found, directed, settings)
    known, settings, rows, choice = _prepared(directed, settings)
    with one_blas_thread():
        result = _solve(known, settings, random_state)
    return _filled(result, rows)._replace(scaling_choice=choice)


def solve_columns(
    directed: DirectedInput | PivotInput, settings: Settings, random_state
) -> tuple[StressResult, ColumnChoice]:
    """n_components="auto": the same fit with two and with three columns."""
    if isinstance(directed, PivotInput):
        found, chosen = solve_columns(directed.between_pivots, settings, random_state)
        return _refined(found, directed, settings), chosen
    known, settings, rows, choice = _prepared(directed, settings)

    def fit(n_components):
        fewer = settings._replace(n_components=n_components, compare_columns=False)
        result = _solve(known, fewer, random_state)
        D = result.transformation.disparities(known.with_nan())
        position, omega = result.embedding, result.omega_norm
        explained = explained_share(position, D, omega, settings.space)
        share = expressible(result.gradient_share, len(position))
        return result, ColumnTrial(n_components, omega, result.normalized_stress, explained, share)

    with one_blas_thread():
        result, chosen = choose_columns(fit)
    return _filled(result, rows)._replace(scaling_choice=choice), chosen


def _prepared(directed: DirectedInput, settings: Settings):
    """The points with known pairs, settings with the scaling chosen, their rows, the choice."""
    check_settings(settings)
    check_fit(directed, settings)
    rows, choice = directed.connected, None
    n = len(directed.distances)
    if len(rows) < n:
        directed = directed.subset(rows)
        if not isinstance(settings.init, str):
            settings = settings._replace(init=np.asarray(settings.init)[rows])
    if settings.scaling == "auto":
        with one_blas_thread():
            choice = choose_scaling(directed, settings, _solve)
        settings = settings._replace(scaling=choice.kind)
    return directed, settings, (rows, n), choice


def _solve(directed: DirectedInput, settings: Settings, random_state) -> StressResult:
    objective, plain = made = objective_of(directed, settings)
    found, runs = None, []
    omega = settings.omega_norm
    if isinstance(omega, str):
        found, best = find_drift(directed, settings, random_state, made)
        omega = found.omega_norm
        if len(best.position) == len(directed.distances) and not is_init(settings.init, "random"):
            runs = [best]
    omega = settings.space.check_drift(omega)
    if not runs:
        starts = starts_of(plain, settings, random_state)
        repeats = settings.n_init if is_init(settings.init, "random") else 1
        runs = [run_at(objective, starts(omega), omega, settings) for _ in range(repeats)]
    best = min(runs, key=lambda run: run.stress)
    labels = plain.solver.labels
    return StressResult(
        embedding=side_by_side(best.position, labels),
        stress=best.plain_stress,
        normalized_stress=best.plain_stress / (objective.total * objective.unit**2),
        n_iter=len(best.history),
        stress_history=best.history,
        omega_norm=omega,
        gradient_share=plain.gradient_share,
        drift_search=found,
        transformation=transformation_at(objective, best.position, omega),
        skew_weight=best.skew_weight,
        n_groups=int(labels.max()) + 1,
    )


def _refined(found: StressResult, graph: PivotInput, settings: Settings) -> StressResult:
    """From a result of the pivots to that of all nodes."""
    scaled = found.transformation.disparities
    omega, threads, space = found.omega_norm, settings.n_threads, settings.space
    outgoing, incoming = scaled(graph.outgoing), scaled(graph.incoming)
    place = place_points(
        found.embedding, outgoing, incoming, omega, threads, space, found.skew_weight
    )
    place[graph.pivots] = found.embedding
    pairs = graph.pairs()
    total = float(pairs.weight @ (pairs.there**2 + pairs.back**2))
    pairs = pairs._replace(there=scaled(pairs.there), back=scaled(pairs.back))
    settings = settings._replace(n_components=place.shape[1])
    weight = 1.0 if found.transformation.kind == "ordinal" else settings.noise_weight
    problem = SparseStress(pairs, graph.n_points, threads, space, weight)
    run = run_at(problem, place, omega, settings)
    return found._replace(
        embedding=graph.fill(run.position),
        stress=run.plain_stress,
        normalized_stress=run.plain_stress / total,
        n_iter=len(run.history),
        stress_history=run.history,
        gradient_share=problem.gradient_share,
        skew_weight=run.skew_weight,
    )


def _filled(result: StressResult, rows: tuple[np.ndarray, int]) -> StressResult:
    """With nan for the points that are not among the rows."""
    kept, n = rows
    if len(kept) == n:
        return result
    embedding = np.full((n, result.embedding.shape[1]), np.nan)
    embedding[kept] = result.embedding
    return result._replace(embedding=embedding)


def side_by_side(position: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Groups of points next to each other in rows on the map, the largest first, at one height.

    Nothing is known about their places relative to each other.
    """
    if not labels.any():
        return position
    placed, sizes = position.copy(), np.bincount(labels)
    across = 2 if position.shape[1] > 2 else 1
    extent = np.empty((len(sizes), across))
    for group in range(len(sizes)):
        members = placed[labels == group]
        members -= members.mean(axis=0)
        members[:, :across] -= members[:, :across].min(axis=0)
        placed[labels == group], extent[group] = members, members[:, :across].max(axis=0)
    extent += GROUP_GAP * extent.max()
    width = np.inf if across == 1 else max(extent[:, 0].max(), np.sqrt(extent.prod(axis=1).sum()))
    corner, tallest = np.zeros(across), 0.0
    for group in np.argsort(-sizes, kind="stable"):
        if corner[0] + extent[group, 0] > width:
            corner, tallest = np.array([0.0, corner[1] + tallest]), 0.0
        placed[labels == group, :across] += corner
        corner[0] += extent[group, 0]
        tallest = max(tallest, extent[group, -1])
    return placed - placed.mean(axis=0)
