"""omega_norm="auto" for MDS: the drift at which the stress is lowest.

For a layout Y in a Randers space the stress is quadratic in the drift, lowest at

    ω(Y) = Σ w (D_ij − d_ij)(h_j − h_i) / Σ w (h_j − h_i)².

Where a layout has settled at a drift ω, ω(Y) > ω says that a larger drift lowers the stress and
ω(Y) < ω that a smaller one does (the derivative of the lowest stress is 2 Σ w (h_j − h_i)² times
ω − ω(Y)). So a few fits, each from the layout of the one before, find where ω(Y) = ω.

With two noise levels the height settles where ω h is what the skew part calls for, whatever the
drift, and ω(Y) hardly differs from ω. There the drift is sought at which the stress is lowest if
ω h is kept: at which heights fit the distances best.

n_components="auto": the drift may lie in the map, so that the height is one of its axes. Distances
of dimension p with a drift need p columns, not p + 1: travel times over a plane with a drift fit
into two. With a column to spare they can be tilted, and every larger drift fits as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from finsler_ext._threads import RowPool
from finsler_ext.geometry import Space
from finsler_ext.mds.descent import Descent, Settings, objective_of, run_at, starts_of
from finsler_ext.mds.distances import DirectedInput
from finsler_ext.mds.scaling import Transformation, transformation_at
from finsler_ext.mds.start import InitialLayout, turned
from finsler_ext.metrics import explained_share
from finsler_ext.schema import FLAG, TEXT, listed, number, part, saved, whole

# What n_components="auto" compares: the drift in the map, or beside a map of two columns.
COLUMNS = (2, 3)
# A column is worth having if it leaves less than this share of the stress. Real data always has
# some use for one more: a third column leaves a half of the stress of flight times.
WORTH_STRESS = 1 / 3
# A column is to spare if it leaves more than this share: planted planar distances with up to 20 %
# noise keep 0.98 and more of their stress.
SPARE_STRESS = 0.85
# A column is also worth having if it shows this much more of the asymmetry that any height could
# show (see gradient_share).
WORTH_SKEW = 0.25
# A height fits 2/n of the asymmetry of pure noise; less than this many times n⁻¹ is not looked at.
NOISY_SHARE = 20
# Below this share of Σ w D² there is no stress worth a column.
NO_STRESS = 1e-4
# A Randers drift of 1 would let points be at distance 0 from others; the search ends here, or at
# this share of the largest drift of another space.
LARGEST_DRIFT = 0.95
# Short fits that find where to start, and fits of the search itself. With the one that compares
# the number of columns a search costs less than five fits.
PILOTS, PILOT_ITERATIONS = 4, 30
MOST_TRIALS = 3
# The search ends when the next step is shorter than this, or than this share of the drift.
PRECISION, RELATIVE_PRECISION = 1e-3, 0.005
# ω(Y) follows ω, so the answer lies beyond it: planted drifts needed 1.0 to 2.1 times the step.
FIRST_STRIDE = 1.3
# A longer step than this rests on a difference of two noisy numbers.
LONGEST_STRIDE = 2.5
# A drift is searched on no more points than this: a sample has the same drift.
SEARCH_POINTS = 1000
# Fits that only show the way end at this precision; at 1e-3, lists of the nearest may lose it.
PILOT_EPS = 1e-4
# Whether a column is to spare is a question of a sixth of the stress.
COMPARE_EPS = 1e-3
# The stress has minima at small drifts and at large ones, and a search stays near where it began
# (a planted digraph: stress 0.074 at 0.02, where its start leads, and 0.068 at 0.9).
FAR_DRIFT = 0.7
# With a column to spare, large drifts fit as well as small ones, and the smallest is wanted.
CLEARLY_LOWER = 0.95
# With two noise levels: a percent of the stress is a large ratio of likelihoods. At smaller drifts
# than this share of the largest a height shows nothing, and the likelihood may prefer a map column.
LIKELIER = 0.99
SMALLEST_DRIFT = 0.05
# A layout at a smaller drift than this has no axis of its own for the height.
NEGLIGIBLE_DRIFT = 0.01


@saved(
    n_components=whole("[1, inf)"),
    omega_norm=number("[0, 1)"),
    normalized_stress=number("[0, inf)"),
    explained=number(nan=True),
    expressible=number(nan=True),
)
class ColumnTrial(NamedTuple):
    """A number of columns that was tried, its drift, and how well it fits.

    explained : share of the asymmetry that the layout shows; nan if not known
    expressible : share that any height could show, or that noise might make of it; 1 if not known
    """

    n_components: int
    omega_norm: float
    normalized_stress: float
    explained: float
    expressible: float = 1.0


def column_trial(
    directed: DirectedInput,
    position: np.ndarray,
    omega: float,
    normalized_stress: float,
    gradient_share: float,
    transformation: Transformation,
    space: Space,
) -> ColumnTrial:
    D = transformation.disparities(directed.with_nan())
    explained = explained_share(position, D, omega, space)
    known = gradient_share == gradient_share
    share = max(gradient_share, NOISY_SHARE / len(position)) if known else 1.0
    return ColumnTrial(position.shape[1], omega, normalized_stress, explained, share)


@saved(n_components=whole("[1, inf)"), reason=TEXT, trials=listed(part("ColumnTrial")))
class ColumnChoice(NamedTuple):
    """The number of columns chosen, why, and all that were tried."""

    n_components: int
    reason: str
    trials: tuple[ColumnTrial, ...]


def does_as_well(narrow: ColumnTrial, wide: ColumnTrial, share: float = WORTH_STRESS) -> bool:
    """Whether the last column shows no more and leaves more than this share of the stress."""
    if shows_more(narrow, wide):
        return False
    return narrow.normalized_stress <= max(wide.normalized_stress / share, NO_STRESS)


def shows_more(narrow: ColumnTrial, wide: ColumnTrial) -> bool:
    """Whether one more column shows a good deal more of the asymmetry."""
    return wide.explained - narrow.explained > WORTH_SKEW * wide.expressible


def choose_columns(
    fit: Callable[[int], tuple[Any, ColumnTrial]],
) -> tuple[Any, ColumnChoice]:
    """The result of ``fit`` with as many columns as the data needs, and the choice."""
    (few, narrow), (many, wide) = (fit(m) for m in COLUMNS)
    both = (
        f"stress {narrow.normalized_stress:.2g} with {COLUMNS[0]} columns and "
        f"{wide.normalized_stress:.2g} with {COLUMNS[1]}"
    )
    if does_as_well(narrow, wide):
        reason = f"{both}: {COLUMNS[0]} are enough, and the height is one of the axes of the map"
        return few, ColumnChoice(COLUMNS[0], reason, (narrow, wide))
    if shows_more(narrow, wide):
        both = f"{both}, asymmetry shown {narrow.explained:.0%} and {wide.explained:.0%}"
    reason = f"{both}: the height needs a column of its own"
    return many, ColumnChoice(COLUMNS[1], reason, (narrow, wide))


@saved(omega_norm=number("[0, 1)"), stress=number("[0, inf)"), suited=number(nan=True))
class DriftTrial(NamedTuple):
    """A drift that was tried, the stress it reached, and the drift that suits its layout best."""

    omega_norm: float
    stress: float
    suited: float = float("nan")


@saved(
    omega_norm=number("[0, 1)"),
    trials=listed(part("DriftTrial")),
    narrower_stress=number("[0, inf)", nan=True),
    ambiguous=FLAG,
)
class DriftSearch(NamedTuple):
    """The drift with the lowest stress, and all that were tried, in this order.

    narrower_stress : normalized stress with one column fewer, at this drift; nan if not tried
    ambiguous : whether one column fewer does as well, so that larger drifts fit as well as this
    """

    omega_norm: float
    trials: tuple[DriftTrial, ...]
    narrower_stress: float = float("nan")
    ambiguous: bool = False


def search_drift(
    fit: Callable[[float], tuple[float, float]], first: float, largest: float = LARGEST_DRIFT
) -> DriftSearch:
    """Find the drift at which a layout settles that suits this drift best.

    ``fit`` lays out at a drift, and returns the stress and the drift that suits the layout best.

    Examples
    --------
    >>> found = search_drift(lambda omega: ((omega - 0.37) ** 2, 0.37 + 0.6 * (omega - 0.37)), 0.1)
    >>> round(found.omega_norm, 3)
    0.37
    """
    trials: list[DriftTrial] = []
    omega = float(np.clip(first, 0.0, largest))
    for _ in range(MOST_TRIALS):
        trials.append(DriftTrial(omega, *fit(omega)))
        step = next_drift(trials, largest) - omega
        if abs(step) <= max(PRECISION, RELATIVE_PRECISION * omega):
            break
        omega += step
    # The smaller drift where two are as good: the height then claims no more than it must.
    chosen = min(trials, key=lambda t: (t.stress, t.omega_norm))
    return DriftSearch(chosen.omega_norm, tuple(trials))


def next_drift(trials: list[DriftTrial], largest: float) -> float:
    """Where ω(Y) − ω would vanish if it were linear (secant, within what is known)."""
    last = trials[-1]
    wish = last.suited - last.omega_norm
    stride = FIRST_STRIDE
    if len(trials) > 1:
        before = trials[-2]
        run = last.omega_norm - before.omega_norm
        slope = (wish - (before.suited - before.omega_norm)) / run if run else 0.0
        stride = min(-1.0 / slope, LONGEST_STRIDE) if slope < 0 else LONGEST_STRIDE
    low = max((t.omega_norm for t in trials if t.suited > t.omega_norm), default=0.0)
    high = min((t.omega_norm for t in trials if t.suited < t.omega_norm), default=largest)
    return float(np.clip(last.omega_norm + stride * wish, min(low, high), max(low, high)))


def find_drift(
    directed: DirectedInput, settings: Settings, random_state, made: tuple
) -> tuple[DriftSearch, Descent]:
    """omega_norm="auto", and the layout found; on a sample of the points where there are many.

    ``made`` is what `objective_of` made of the data.
    """
    n = len(directed.distances)
    directed, rows = directed.sample(SEARCH_POINTS, random_state)
    if len(rows) < n:
        settings = settings.for_rows(rows)
        made = objective_of(directed, settings)
    if settings.random_start:
        settings = settings._replace(init="finsler")
    objective, plain = made
    starts = starts_of(plain, settings, random_state)
    with RowPool(objective.n_points, settings.n_threads, heavy=True) as pool:
        trials = _Trials(made, starts, settings, pool)
        found = search_drift(trials.fit, trials.first_drift(), trials.largest)
    best, omega = trials.runs[found.omega_norm], found.omega_norm
    if not settings.compare_columns or settings.n_components == 1 or omega == 0:
        return found, best
    fewer = settings._replace(
        n_components=settings.n_components - 1, init="finsler", eps=max(COMPARE_EPS, settings.eps)
    )
    narrow = run_at(objective, starts_of(plain, fewer, random_state)(omega), omega, fewer)
    few, many = (
        column_trial(
            directed,
            run.position,
            omega,
            run.plain_stress / (objective.total * objective.unit**2),
            plain.gradient_share,
            transformation_at(objective, run.position, omega),
            settings.space,
        )
        for run in (narrow, best)
    )
    # If one column fewer does as well at this drift, larger drifts do as well, too.
    ambiguous = does_as_well(few, many, SPARE_STRESS)
    return found._replace(narrower_stress=few.normalized_stress, ambiguous=ambiguous), best


class _Pilot(NamedTuple):
    """Where to start a search, and what is known there."""

    omega_norm: float
    stress: float
    position: np.ndarray | None
    drift: float | None


class _Trials:
    """Fits at several drifts, each from the layout of the one before."""

    def __init__(self, made: tuple, starts, settings: Settings, pool: RowPool):
        self.objective, plain = made
        self.starts, self.settings, self.pool = starts, settings, pool
        self.symmetric = not plain.is_skew and plain.side is None  # no drift is called for
        self.runs: dict[float, Descent] = {}
        self.here: np.ndarray | None = None
        # if heights are to be kept in proportion to 1/ω, the drift they were found at
        self.drift: float | None = None
        self.largest = LARGEST_DRIFT * settings.space.limit
        self.short = settings._replace(
            max_iter=min(PILOT_ITERATIONS, settings.max_iter), eps=max(PILOT_EPS, settings.eps)
        )

    def fit(self, omega: float) -> tuple[float, float]:
        """The stress reached at a drift, and the drift that suits the layout best."""
        run = self.runs[omega] = self._run(omega, self.settings)
        if self.symmetric:
            return run.stress, 0.0
        return run.stress, self._suited(run, omega, turn=omega < NEGLIGIBLE_DRIFT)

    def first_drift(self) -> float:
        """Where to start the search: where short fits lead from the drift that suits the start.

        Or where they lead from elsewhere, if the stress is clearly lower there.
        """
        if self.symmetric:
            return 0.0
        made = isinstance(self.starts, InitialLayout)
        chosen = self._pilot(self.starts.suited_drift() if made else 0.0)
        plain, total = chosen.drift is None, self.objective.total * self.objective.unit**2
        fits = plain and chosen.stress <= NO_STRESS * total
        if made and not fits:
            other = self._pilot(FAR_DRIFT)
            lower = CLEARLY_LOWER if plain else LIKELIER
            if other.stress < lower * chosen.stress:
                chosen = other
        self.here, self.drift = chosen.position, chosen.drift
        return chosen.omega_norm

    def _pilot(self, omega: float) -> _Pilot:
        """Where a few short fits lead from a drift."""
        self.here = None
        trials: list[DriftTrial] = []
        omega = min(omega, self.largest)
        for _ in range(PILOTS):
            run = self._run(omega, self.short)
            trials.append(DriftTrial(omega, run.stress, self._suited(run, omega, turn=True)))
            omega = next_drift(trials, self.largest)
            if run.skew_weight > 1:
                omega = max(omega, SMALLEST_DRIFT * self.largest)
        return _Pilot(omega, run.stress, self.here, self.drift)

    def _run(self, omega: float, settings: Settings) -> Descent:
        start = self.starts(omega) if self.here is None else self.here
        if self.here is not None and self.drift is not None and omega > 0:
            start = start.copy()
            start[:, -1] *= self.drift / omega
        return run_at(self.objective, start, omega, settings)

    def _suited(self, run: Descent, omega: float, *, turn: bool) -> float:
        """The drift that suits a layout: along its last axis, or along one to turn it to."""
        self.here, self.drift = run.position, None
        place = np.ascontiguousarray(run.position.T) / self.objective.unit
        if run.skew_weight > 1:
            self.drift = omega
            return self._suited_by_slope(place, omega)
        if not turn and self.settings.space.majoriser is None:
            bounds = (0.0, self.largest)
            return self._lowest(lambda other: self._stress(place, other), bounds)[0]
        # the stress is quadratic in the drift
        square, pull = self.objective.drift_pull(place, omega, self.pool)
        if not turn:
            return float(pull[-1] / square[-1, -1]) if square[-1, -1] > 0 else 0.0
        drift = np.linalg.lstsq(square, pull, rcond=None)[0]
        self.here = turned(run.position, drift)
        return float(np.linalg.norm(drift))

    def _suited_by_slope(self, place: np.ndarray, omega: float) -> float:
        """The drift with the lowest stress if heights change as 1/ω.

        They then show the same asymmetry, and what changes is how they fit the distances.
        """
        if omega == 0:
            return 0.0

        def stress(other: float) -> float:
            scaled = place.copy()
            scaled[-1] *= omega / other
            return self._stress(scaled, other)

        found, lowest = self._lowest(stress, (SMALLEST_DRIFT * self.largest, self.largest))
        return found if lowest < stress(omega) else omega

    def _stress(self, place: np.ndarray, omega: float) -> float:
        return self.objective.slope(place, omega, self.pool).stress

    def _lowest(self, stress: Callable[[float], float], bounds) -> tuple[float, float]:
        options = {"xatol": PRECISION}
        found = minimize_scalar(stress, bounds=bounds, method="bounded", options=options)
        return float(found.x), found.fun
