"""omega_norm="auto" for MDS: the drift at which the stress is lowest.

For a layout Y in a Randers space the stress is quadratic in the drift, lowest at

    ω(Y) = Σ w (D_ij − d_ij)(h_j − h_i) / Σ w (h_j − h_i)².

Where a layout has settled at a drift ω, ω(Y) > ω says that a larger drift lowers the stress and
ω(Y) < ω that a smaller one does (the derivative of the lowest stress is 2 Σ w (h_j − h_i)² times
ω − ω(Y)). So a few fits, each from the layout of the one before, find where ω(Y) = ω.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from finsler_ext._threads import RowPool
from finsler_ext.spaces import Space

__all__ = [
    "LARGEST_DRIFT",
    "PILOTS",
    "PILOT_ITERATIONS",
    "DriftSearch",
    "DriftTrial",
    "next_drift",
    "search_drift",
    "suited_drift",
    "suited_length",
]

# A Randers drift of 1 would let points be at distance 0 from others; the search ends here, or at
# this share of the largest drift of another space.
LARGEST_DRIFT = 0.95
# Short fits that find where to start, and fits of the search itself. With the one that compares
# the number of columns a search costs less than five fits.
PILOTS, PILOT_ITERATIONS = 4, 30
MOST_TRIALS = 3
# The search ends when the next step is shorter than this, or than this share of the drift.
PRECISION, RELATIVE_PRECISION = 1e-3, 0.005
# ω(Y) follows ω, so the answer lies beyond it: planted drifts of 0.05 to 0.6 in two and three
# columns needed 1.0 to 2.1 times the step to ω(Y), and 3 to 4 times where all pairs are one-way.
FIRST_STRIDE = 1.3
# A longer step than this rests on a difference of two noisy numbers.
LONGEST_STRIDE = 2.5


class DriftTrial(NamedTuple):
    """A drift that was tried, the stress it reached, and the drift that suits its layout best."""

    omega_norm: float
    stress: float
    suited: float = float("nan")


class DriftSearch(NamedTuple):
    """The drift with the lowest stress, and all that were tried, in this order.

    narrower_stress : normalized stress with one column fewer, at this drift; nan if not tried
    ambiguous : whether one column fewer does as well, so that larger drifts fit as well as this
    """

    omega_norm: float
    trials: tuple[DriftTrial, ...]
    narrower_stress: float = float("nan")
    ambiguous: bool = False


def suited_drift(problem, position: np.ndarray) -> np.ndarray:
    """The drift vector that suits positions of shape (n, m) best: linear least squares."""
    square, pull = problem.drift_pull(np.ascontiguousarray(position.T) / problem.unit)
    return np.linalg.lstsq(square, pull, rcond=None)[0]


def suited_length(problem, position: np.ndarray, space: Space, pool: RowPool) -> float:
    """The drift along the last axis at which the stress of a layout of shape (n, m) is lowest."""
    place = np.ascontiguousarray(position.T) / problem.unit
    if space.majoriser is not None:  # the stress is quadratic in the drift
        square, pull = problem.drift_pull(place)
        return float(pull[-1] / square[-1, -1]) if square[-1, -1] > 0 else 0.0
    found = minimize_scalar(
        lambda omega: problem.slope(place, omega, pool).stress,
        bounds=(0.0, LARGEST_DRIFT * space.limit),
        method="bounded",
        options={"xatol": PRECISION},
    )
    return float(found.x)


def search_drift(
    fit: Callable[[float], tuple[float, float]], first: float, largest: float = LARGEST_DRIFT
) -> DriftSearch:
    """Find the drift at which a layout settles that suits this drift best.

    Parameters
    ----------
    fit : callable
        Lays out at a drift; returns the stress and the drift that suits the layout best.
    first : float
        Where to start.
    largest : float
        Where the search ends.

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


def next_drift(trials: list[DriftTrial], largest: float = LARGEST_DRIFT) -> float:
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
