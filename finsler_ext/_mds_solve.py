"""From checked dissimilarities to a layout of low stress: starts, drift, method, repeats."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from tqdm.auto import tqdm

from finsler_ext._mds_columns import Fit, does_as_well, expressible
from finsler_ext._mds_input import DirectedInput
from finsler_ext._threads import one_blas_thread
from finsler_ext.layout.laplacian import n_groups
from finsler_ext.layout.stress import StressProblem, stress_problem
from finsler_ext.layout.stress_asymmetric import AsymmetricStress
from finsler_ext.layout.stress_descent import descend
from finsler_ext.layout.stress_drift import (
    LARGEST_DRIFT,
    PILOT_ITERATIONS,
    PILOTS,
    DriftSearch,
    DriftTrial,
    next_drift,
    search_drift,
    suited_drift,
)
from finsler_ext.layout.stress_initial import STARTS, InitialLayout, turned
from finsler_ext.layout.stress_majorization import Descent, majorize
from finsler_ext.metrics import skew_fidelity
from finsler_ext.randers import check_omega_norm

__all__ = [
    "GD_EPOCHS",
    "METHODS",
    "SMACOF_ITERATIONS",
    "Settings",
    "StressResult",
    "check_settings",
    "explained_skew",
    "solve",
]

METHODS = ("smacof", "gd")
GD_EPOCHS, SMACOF_ITERATIONS = 100, 300
# A drift is searched on no more points than this: a sample has the same drift.
SEARCH_POINTS = 2000
# A layout at a smaller drift than this has no axis of its own for the height.
NO_DRIFT = 0.01


class Settings(NamedTuple):
    """What to minimise with; the meaning of each is told in `finsler_ext.mds`."""

    n_components: int
    omega_norm: float | str
    method: str
    init: str | np.ndarray
    n_init: int
    max_iter: int
    eps: float = 1e-6
    accelerate: bool = True
    learning_rate: float | None = None
    weight_decay: float = 1e-5
    n_threads: int = 1
    verbose: bool = False
    compare_columns: bool = True
    """With omega_norm="auto": whether one column fewer would do as well."""


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
    """

    embedding: np.ndarray
    stress: float
    normalized_stress: float
    n_iter: int
    stress_history: np.ndarray
    omega_norm: float
    gradient_share: float
    drift_search: DriftSearch | None = None


def solve(directed: DirectedInput, settings: Settings, random_state) -> StressResult:
    """Minimise the directed stress; of several random starts the best counts."""
    check_settings(settings)
    _check_fit(directed, settings)
    with one_blas_thread():
        return _solve(directed, settings, random_state)


def _solve(directed: DirectedInput, settings: Settings, random_state) -> StressResult:
    objective, stand_in, gradient_share = _objective(directed, settings)
    found, runs = None, []
    omega = settings.omega_norm
    if isinstance(omega, str):
        found, best = _search(directed, settings, random_state)
        omega = found.omega_norm
        if len(best.position) == len(directed.distances) and not _is(settings.init, "random"):
            runs = [best]
    omega = check_omega_norm(omega)
    if not runs:
        starts = _starts(stand_in, settings, random_state)
        repeats = settings.n_init if _is(settings.init, "random") else 1
        runs = [_run(objective, starts(omega), omega, settings) for _ in range(repeats)]
    best = min(runs, key=lambda run: run.stress)
    return StressResult(
        embedding=best.position,
        stress=best.stress,
        normalized_stress=best.stress / (objective.total * objective.unit**2),
        n_iter=len(best.history),
        stress_history=best.history,
        omega_norm=omega,
        gradient_share=gradient_share,
        drift_search=found,
    )


def _is(init, name: str) -> bool:
    return isinstance(init, str) and init == name


def check_settings(settings: Settings) -> None:
    """Whatever can be refused before looking at the data."""
    if settings.method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {settings.method!r}.")
    if isinstance(settings.omega_norm, str):
        if settings.omega_norm != "auto":
            raise ValueError(
                f"omega_norm must be a number in [0, 1) or 'auto', got {settings.omega_norm!r}."
            )
    else:
        check_omega_norm(settings.omega_norm)
    for name in ("n_components", "n_init", "max_iter"):
        value = getattr(settings, name)
        if isinstance(value, bool) or int(value) != value or value < 1:
            raise ValueError(f"{name} must be an integer ≥ 1, got {value!r}.")
    if not settings.eps >= 0:
        raise ValueError(f"eps must be a number ≥ 0, got {settings.eps!r}.")
    rate = settings.learning_rate
    if rate is not None and not rate > 0:
        raise ValueError(f"learning_rate must be positive, or None; got {rate!r}.")
    if isinstance(settings.init, str):
        if settings.init not in STARTS:
            raise ValueError(f"init must be one of {STARTS} or an array, got {settings.init!r}.")
    elif not np.all(np.isfinite(settings.init)):
        raise ValueError("init: an array must not contain nan or inf.")


def _check_fit(directed: DirectedInput, settings: Settings) -> None:
    """Whether data and settings go together."""
    if not isinstance(settings.init, str):
        n, m = len(directed.distances), settings.n_components
        shape = np.shape(settings.init)
        if len(shape) != 2 or shape[0] != n or shape[1] not in (m - 1, m) or shape[1] == 0:
            raise ValueError(
                f"init: an array must have shape ({n}, {m}), or ({n}, {m - 1}) for a map whose "
                f"height starts at zero; got {shape}."
            )


def _objective(directed, settings):
    """What to descend, a symmetric problem to start from, and the gradient share."""
    D, weights = directed.distances, directed.weights
    if directed.symmetric_weights:
        problem = stress_problem(D, weights, settings.n_threads)
        return problem, problem, problem.gradient_share
    # A pair known one way only is taken as the same both ways, for the start alone.
    known = weights > 0
    filled = np.where(known, D, np.where(known.T, D.T, D.dtype.type(0)))
    start_weights = (weights + weights.T) / 2
    stand_in = stress_problem(filled, start_weights, settings.n_threads)
    both = np.where(known & known.T, start_weights, D.dtype.type(0))
    share = float("nan")
    if n_groups(both) == 1:
        share = stress_problem(D, both, settings.n_threads).gradient_share
    return AsymmetricStress(D, weights, stand_in.unit, stand_in.solver), stand_in, share


def _starts(problem: StressProblem, settings: Settings, random_state):
    if isinstance(settings.init, str):
        return InitialLayout(
            settings.init, settings.n_components, problem, random_state, settings.n_threads
        )
    given = np.asarray(settings.init, dtype=np.float64)
    if given.shape[1] < settings.n_components:
        given = np.column_stack([given, np.zeros(len(given))])
    return lambda omega_norm: given


def _run(objective, start, omega_norm, settings: Settings) -> Descent:
    progress = partial(
        tqdm, disable=not settings.verbose, desc=f"{settings.method}, drift {omega_norm:.3g}"
    )
    if settings.method == "smacof":
        return majorize(
            objective,
            start,
            omega_norm,
            max_iter=settings.max_iter,
            eps=settings.eps,
            accelerate=settings.accelerate,
            n_threads=settings.n_threads,
            progress=progress,
        )
    return descend(
        objective,
        start,
        omega_norm,
        max_iter=settings.max_iter,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        n_threads=settings.n_threads,
        progress=progress,
    )


def _search(directed: DirectedInput, settings: Settings, random_state):
    """omega_norm="auto", and the layout found; on a sample of the points where there are many."""
    n = len(directed.distances)
    init = settings.init
    if n > SEARCH_POINTS:
        rows = np.sort(random_state.permutation(n)[:SEARCH_POINTS])
        chosen = np.ix_(rows, rows)
        weights = None if directed.weights is None else directed.weights[chosen]
        directed = DirectedInput(directed.distances[chosen], weights)
        init = init if isinstance(init, str) else np.asarray(init)[rows]
    settings = settings._replace(init="finsler" if _is(init, "random") else init)
    objective, stand_in, gradient_share = _objective(directed, settings)
    starts = _starts(stand_in, settings, random_state)
    skew = stand_in.is_skew or isinstance(objective, AsymmetricStress)
    trials = _Trials(objective, starts, settings)
    first = 0.0
    if skew:
        first = starts.suited_drift() if isinstance(starts, InitialLayout) else 0.0
        first = trials.pilot(first)
    found = search_drift(trials.fit if skew else trials.fit_symmetric, first)
    best = trials.runs[found.omega_norm]
    if settings.compare_columns and settings.n_components > 1 and found.omega_norm > 0:
        starts = _starts(stand_in, _one_fewer(settings), random_state)
        share = expressible(gradient_share, len(directed.distances))
        start = starts(found.omega_norm)
        found = _compared(found, best, directed, objective, start, settings, share)
    return found, best


class _Trials:
    """Fits at several drifts, each from the layout of the one before."""

    def __init__(self, objective, starts, settings: Settings):
        self.objective, self.starts, self.settings = objective, starts, settings
        self.runs: dict[float, Descent] = {}
        self.here: np.ndarray | None = None

    def _run(self, omega: float, settings: Settings) -> Descent:
        start = self.starts(omega) if self.here is None else self.here
        return _run(self.objective, start, omega, settings)

    def _suited(self, run: Descent, *, turn: bool) -> float:
        """The drift that suits a layout: along its last axis, or along one to turn it to."""
        self.here = run.position
        if turn:
            drift = suited_drift(self.objective, run.position)
            self.here = turned(run.position, drift)
            return float(np.linalg.norm(drift))
        square, pull = self.objective.drift_pull(
            np.ascontiguousarray(run.position.T) / self.objective.unit
        )
        return float(pull[-1] / square[-1, -1]) if square[-1, -1] > 0 else 0.0

    def pilot(self, omega: float) -> float:
        """Where to start the search: a few short fits."""
        short = self.settings._replace(max_iter=min(PILOT_ITERATIONS, self.settings.max_iter))
        trials: list[DriftTrial] = []
        omega = min(omega, LARGEST_DRIFT)
        for _ in range(PILOTS):
            run = self._run(omega, short)
            trials.append(DriftTrial(omega, run.stress, self._suited(run, turn=True)))
            omega = next_drift(trials)
        return omega

    def fit(self, omega: float) -> tuple[float, float]:
        run = self.runs[omega] = self._run(omega, self.settings)
        return run.stress, self._suited(run, turn=omega < NO_DRIFT)

    def fit_symmetric(self, omega: float) -> tuple[float, float]:
        """Without skew no drift is called for."""
        self.runs[omega] = self._run(omega, self.settings)
        return self.runs[omega].stress, 0.0


def _one_fewer(settings: Settings) -> Settings:
    return settings._replace(n_components=settings.n_components - 1, init="finsler")


def _compared(found, best, directed, objective, start, settings, share) -> DriftSearch:
    """Whether one column fewer does as well at this drift: then larger drifts do as well, too."""
    omega, total = found.omega_norm, objective.total * objective.unit**2
    fewer = _run(objective, start, omega, _one_fewer(settings))
    wide, narrow = (
        Fit(run.stress / total, explained_skew(directed, run.position, omega), share)
        for run in (best, fewer)
    )
    return found._replace(
        narrower_stress=narrow.normalized_stress, ambiguous=does_as_well(narrow, wide)
    )


def explained_skew(directed: DirectedInput, position, omega: float) -> float:
    """Share of the skew part of D that a layout shows; nan if no pair is known both ways."""
    D = directed.with_nan()
    return skew_fidelity(position, distances=D, omega_norm=omega).explained
