"""omega_norm="auto" of FinslerMDS: fits at several drifts, and with one column fewer."""

from __future__ import annotations

import numpy as np

from finsler_ext._threads import RowPool
from finsler_ext.estimators._mds.columns import SPARE_STRESS, Fit, does_as_well, expressible
from finsler_ext.estimators._mds.input import DirectedInput
from finsler_ext.estimators._mds.problem import (
    Settings,
    is_init,
    objective_of,
    run_at,
    starts_of,
    transformation_at,
)
from finsler_ext.layout.stress.drift import (
    LARGEST_DRIFT,
    PILOT_ITERATIONS,
    PILOTS,
    DriftSearch,
    DriftTrial,
    next_drift,
    search_drift,
    suited_drift,
    suited_length,
)
from finsler_ext.layout.stress.majorization import Descent
from finsler_ext.layout.stress.start import InitialLayout, turned
from finsler_ext.metrics import explained_share
from finsler_ext.spaces import Space

__all__ = ["explained_skew", "find_drift"]

# A drift is searched on no more points than this: a sample has the same drift.
SEARCH_POINTS = 2000
# Fits that only show the way end at this precision; at 1e-3, lists of the nearest may lose it.
PILOT_EPS = 1e-4
# Whether a column is to spare is a question of a sixth of the stress.
COMPARE_EPS = 1e-3
# The stress has minima at small drifts and at large ones, and a search stays near where it began.
# A planted digraph of 800 nodes with half of the weight on adjacent pairs: the drift of the first
# layout leads to 0.02 and a stress of 0.074; at a drift of 0.9 it is 0.068.
FAR_DRIFT = 0.7
# With a column to spare, large drifts fit as well as small ones, and the smallest is wanted.
CLEARLY_LOWER = 0.95
# A layout at a smaller drift than this has no axis of its own for the height.
NEGLIGIBLE_DRIFT = 0.01


def find_drift(
    directed: DirectedInput, settings: Settings, random_state, made: tuple
) -> tuple[DriftSearch, Descent]:
    """omega_norm="auto", and the layout found; on a sample of the points where there are many.

    ``made`` is what `objective_of` made of the data.
    """
    n = len(directed.distances)
    init = settings.init
    if n > SEARCH_POINTS:
        rows = np.sort(random_state.permutation(n)[:SEARCH_POINTS])
        chosen = np.ix_(rows, rows)
        weights = None if directed.weights is None else directed.weights[chosen]
        directed = DirectedInput(directed.distances[chosen], weights)
        init = init if isinstance(init, str) else np.asarray(init)[rows]
        made = objective_of(directed, settings)
    settings = settings._replace(init="finsler" if is_init(init, "random") else init)
    objective, stand_in, share = made
    starts = starts_of(stand_in, settings, random_state)
    skew = stand_in.is_skew or not directed.symmetric_weights
    trials = _Trials(objective, starts, settings)
    first = 0.0
    if skew:
        first = starts.suited_drift() if isinstance(starts, InitialLayout) else 0.0
        first = trials.best_pilot((first, FAR_DRIFT) if trials.may_start_far else (first,))
    found = search_drift(trials.fit if skew else trials.fit_symmetric, first, trials.largest)
    best = trials.runs[found.omega_norm]
    if settings.compare_columns and settings.n_components > 1 and found.omega_norm > 0:
        starts = starts_of(stand_in, _one_fewer(settings), random_state)
        start = starts(found.omega_norm)
        share = expressible(share, len(directed.distances))
        found = _compared(found, best, directed, objective, start, settings, share)
    return found, best


class _Trials:
    """Fits at several drifts, each from the layout of the one before."""

    def __init__(self, objective, starts, settings: Settings):
        self.objective, self.starts, self.settings = objective, starts, settings
        self.runs: dict[float, Descent] = {}
        self.here: np.ndarray | None = None
        self.largest = LARGEST_DRIFT * settings.space.limit

    def _run(self, omega: float, settings: Settings) -> Descent:
        start = self.starts(omega) if self.here is None else self.here
        return run_at(self.objective, start, omega, settings)

    def _suited(self, run: Descent, *, turn: bool) -> float:
        """The drift that suits a layout: along its last axis, or along one to turn it to."""
        self.here = run.position
        if turn:
            drift = suited_drift(self.objective, run.position)
            self.here = turned(run.position, drift)
            return float(np.linalg.norm(drift))
        with RowPool(self.objective.n_points, self.settings.n_threads) as pool:
            return suited_length(self.objective, run.position, self.settings.space, pool)

    @property
    def may_start_far(self) -> bool:
        return isinstance(self.starts, InitialLayout)

    def best_pilot(self, starts: tuple[float, ...]) -> float:
        """Where to start the search: where the first leads, or others if clearly lower."""
        best, lowest, place = 0.0, np.inf, None
        for first in starts:
            self.here = None
            omega, stress = self.pilot(first)
            if place is None or stress < CLEARLY_LOWER * lowest:
                best, lowest, place = omega, stress, self.here
        self.here = place
        return best

    def pilot(self, omega: float) -> tuple[float, float]:
        """Where a few short fits lead from a drift, and the stress of the last."""
        short = self.settings._replace(
            max_iter=min(PILOT_ITERATIONS, self.settings.max_iter),
            eps=max(PILOT_EPS, self.settings.eps),
        )
        trials: list[DriftTrial] = []
        omega = min(omega, self.largest)
        for _ in range(PILOTS):
            run = self._run(omega, short)
            trials.append(DriftTrial(omega, run.stress, self._suited(run, turn=True)))
            omega = next_drift(trials, self.largest)
        return omega, trials[-1].stress

    def fit(self, omega: float) -> tuple[float, float]:
        run = self.runs[omega] = self._run(omega, self.settings)
        return run.stress, self._suited(run, turn=omega < NEGLIGIBLE_DRIFT)

    def fit_symmetric(self, omega: float) -> tuple[float, float]:
        """Without skew no drift is called for."""
        self.runs[omega] = self._run(omega, self.settings)
        return self.runs[omega].stress, 0.0


def _one_fewer(settings: Settings) -> Settings:
    eps = max(COMPARE_EPS, settings.eps)
    return settings._replace(n_components=settings.n_components - 1, init="finsler", eps=eps)


def _compared(found, best, directed, objective, start, settings, share) -> DriftSearch:
    """Whether one column fewer does as well at this drift: then larger drifts do as well, too."""
    omega, total = found.omega_norm, objective.total * objective.unit**2
    fewer = run_at(objective, start, omega, _one_fewer(settings))
    wide, narrow = (
        Fit(
            run.stress / total,
            explained_skew(directed, objective, run.position, omega, settings.space),
            share,
        )
        for run in (best, fewer)
    )
    return found._replace(
        narrower_stress=narrow.normalized_stress, ambiguous=does_as_well(narrow, wide, SPARE_STRESS)
    )


def explained_skew(
    directed: DirectedInput, objective, position, omega: float, space: Space
) -> float:
    """Share of the skew part of D̂ that a layout shows; nan if no pair is known both ways."""
    D = transformation_at(objective, position, omega).disparities(directed.with_nan())
    return explained_share(position, D, omega, space)
