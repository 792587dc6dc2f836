"""From checked dissimilarities to a layout of low stress: scaling, drift, repeats, columns.

`finsler_smacof` and `finsler_mds_gd` are public names of `finsler_ext.mds.estimator`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from finsler_ext._messages import warn
from finsler_ext._threads import one_blas_thread, resolve_n_jobs
from finsler_ext.geometry import find_space
from finsler_ext.mds.descent import (
    GD_EPOCHS,
    SMACOF_ITERATIONS,
    Settings,
    check_fit,
    check_settings,
    objective_of,
    run_at,
    starts_of,
)
from finsler_ext.mds.distances import DirectedInput, checked_dissimilarities
from finsler_ext.mds.drift import (
    ColumnChoice,
    ColumnTrial,
    DriftSearch,
    choose_columns,
    column_trial,
    find_drift,
)
from finsler_ext.mds.pivots import PivotInput, SparseStress
from finsler_ext.mds.scaling import (
    ScalingChoice,
    Transformation,
    choose_scaling,
    transformation_at,
)
from finsler_ext.mds.transform import place_points

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
    column_choice : what n_components="auto" tried; None if the columns were given
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
    column_choice: ColumnChoice | None = None
    skew_weight: float = 1.0
    n_groups: int = 1


def solve(directed: DirectedInput | PivotInput, settings: Settings, random_state) -> StressResult:
    """Minimise the directed stress; of several random starts the best counts."""
    if isinstance(directed, PivotInput):
        found = solve(directed.between_pivots, settings, random_state)
        return _refined(found, directed, settings)
    n = len(directed.distances)
    known, settings, rows, choice = _prepared(directed, settings)

    def fit(n_components: int) -> tuple[StressResult, ColumnTrial]:
        fewer = settings._replace(n_components=n_components, compare_columns=False)
        result = _solve(known, fewer, random_state)
        return result, column_trial(
            known,
            result.embedding,
            result.omega_norm,
            result.normalized_stress,
            result.gradient_share,
            result.transformation,
            settings.space,
        )

    with one_blas_thread():
        if settings.choose_columns:
            result, columns = choose_columns(fit)
        else:
            result, columns = _solve(known, settings, random_state), None
    if len(rows) < n:
        embedding = np.full((n, result.embedding.shape[1]), np.nan)
        embedding[rows] = result.embedding
        result = result._replace(embedding=embedding)
    return result._replace(scaling_choice=choice, column_choice=columns)


def _prepared(directed: DirectedInput, settings: Settings):
    """The points with known pairs, settings with the scaling chosen, their rows, the choice."""
    check_fit(directed, settings)
    rows, choice = directed.connected, None
    if len(rows) < len(directed.distances):
        directed, settings = directed.subset(rows), settings.for_rows(rows)
    if settings.scaling == "auto":
        with one_blas_thread():
            choice = choose_scaling(directed, settings, _solve)
        settings = settings._replace(scaling=choice.kind)
    return directed, settings, rows, choice


def _solve(directed: DirectedInput, settings: Settings, random_state) -> StressResult:
    objective, plain = made = objective_of(directed, settings)
    found, runs = None, []
    omega = settings.omega_norm
    if isinstance(omega, str):
        found, best = find_drift(directed, settings, random_state, made)
        omega = found.omega_norm
        if len(best.position) == len(directed.distances) and not settings.random_start:
            runs = [best]
    omega = settings.space.check_drift(omega)
    if not runs:
        starts = starts_of(plain, settings, random_state)
        repeats = settings.n_init if settings.random_start else 1
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
    lengths = scaled(graph.outgoing), scaled(graph.incoming)
    place = place_points(found.embedding, *lengths, omega, threads, space, found.skew_weight)
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


def warn_of_parts(result: StressResult, *, by_pivots: bool) -> None:
    """Say which points have no place, or none relative to others."""
    n_left_out = int(np.isnan(result.embedding[:, 0]).sum())
    if n_left_out and by_pivots:
        warn(
            f"{n_left_out} nodes are not connected to the largest part of the graph; their "
            "rows of the embedding are nan. Embed other parts one by one."
        )
    elif n_left_out:
        warn(
            f"{n_left_out} points have no known dissimilarity to or from any other; their rows "
            "of the embedding are nan."
        )
    if result.n_groups > 1:
        warn(
            f"The known pairs fall apart into {result.n_groups} groups of points with no distance "
            "between them in either direction. They are drawn side by side; distances and "
            "heights between groups mean nothing."
        )


def finsler_smacof(
    D,
    *,
    n_components=3,
    omega_norm=0.5,
    weights=None,
    init="finsler",
    n_init=4,
    max_iter=SMACOF_ITERATIONS,
    eps=1e-6,
    accelerate=True,
    missing="ignore",
    scaling="ratio",
    skew_weight=1.0,
    random_state=None,
    n_jobs=None,
    verbose=False,
) -> StressResult:
    """Embed directed dissimilarities by majorisation of the directed stress.

    Minimises, over positions Y in R^m with the drift ω = omega_norm · e_m,

        L(Y) = Σ_{i≠j} w_ij (F_ij − D_ij)²,   F_ij = ‖y_j − y_i‖ + ω · (y_j − y_i).

    Every iteration is one pass over the pairs, and the stress never rises.

    Parameters
    ----------
    D : whatever `finsler_ext.read_directed` reads
        D[i, j] is the dissimilarity from i to j; nan, inf or absent pairs get weight 0. float32
        stays float32 and takes half the memory and time.
    n_components, omega_norm, n_init, max_iter, eps, missing, scaling, skew_weight
        As in `finsler_ext.FinslerMDS`, but by default unknown pairs are left out and λ is 1.
        omega_norm=0 is SMACOF on (D + Dᵀ)/2.
    random_state, n_jobs, verbose
        As in `finsler_ext.FinslerMDS`.
    weights : array of shape (n, n) or "adjacent", optional
        w_ij may differ from w_ji; then steps are shorter. "adjacent" as in `FinslerMDS.fit`.
    init : {"finsler", "isomap", "random"} or array of m or m − 1 columns, default="finsler"
        "finsler" is classical MDS of (D + Dᵀ)/2 with its last axis turned to where the row
        means of D − Dᵀ point; "isomap" is classical MDS in m − 1 columns and a zero height.
    accelerate : bool, default=True
        Momentum, as long as the stress falls with it.

    Returns
    -------
    StressResult

    Examples
    --------
    >>> import numpy as np
    >>> from finsler_ext.geometry.randers import randers_distances
    >>> Y = np.random.default_rng(0).normal(size=(50, 3))
    >>> result = finsler_smacof(randers_distances(Y, 0.3), omega_norm=0.3, eps=1e-9)
    >>> bool(result.normalized_stress < 1e-6)
    True
    """
    return _solved(method="smacof", **locals())


def finsler_mds_gd(
    D,
    *,
    n_components=3,
    omega_norm=0.5,
    weights=None,
    init="isomap",
    n_init=4,
    max_iter=GD_EPOCHS,
    learning_rate=None,
    weight_decay=1e-5,
    space="randers",
    missing="ignore",
    scaling="ratio",
    skew_weight=1.0,
    random_state=None,
    n_jobs=None,
    verbose=False,
) -> StressResult:
    """Embed directed dissimilarities by gradient descent of the directed stress.

    Minimises the same stress as `finsler_smacof`, with any weights, by Adam with cosine
    annealing. Its stress may rise on the way; prefer `finsler_smacof`.

    Parameters
    ----------
    D, n_components, omega_norm, init, n_init, missing, scaling, skew_weight
        As in `finsler_smacof`.
    random_state, n_jobs, verbose
        As in `finsler_smacof`.
    weights : array of shape (n, n), optional
        w_ij need not equal w_ji.
    max_iter : int, default=100
        Epochs, over which the learning rate falls to zero.
    learning_rate : float, optional
        Longest step of a coordinate in one epoch, in the units of D; by default a tenth of the
        root mean square of D.
    weight_decay : float, default=1e-5
    space : {"randers", "matsumoto"} or Space, default="randers"

    Returns
    -------
    StressResult

    Examples
    --------
    >>> import numpy as np
    >>> from finsler_ext.geometry.randers import randers_distances
    >>> Y = np.random.default_rng(0).normal(size=(50, 3))
    >>> result = finsler_mds_gd(randers_distances(Y, 0.3), omega_norm=0.3)
    >>> result.embedding.shape, len(result.stress_history)
    ((50, 3), 100)
    """
    given = locals() | {"space": find_space(space)}
    return _solved(method="gd", **given)


def _solved(D, *, weights, missing, random_state, n_jobs, **given) -> StressResult:
    directed = checked_dissimilarities(D, weights, missing=missing)
    settings = Settings(n_threads=resolve_n_jobs(n_jobs), **given)
    check_settings(settings)
    return solve(directed, settings, check_random_state(random_state))
