"""omega_norm="auto" for MDS: the drift at which the stress is lowest.

Unlike a neighbour embedding, MDS has an objective that says by itself how strong the wind is:
directed data calls for one drift, and symmetric data for none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["DriftSearch", "DriftTrial", "search_drift"]

# Where to look first; the stress need not have a single minimum.
DRIFTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 0.95)
# The search ends when the drift is known this well.
PRECISION = 0.005
GOLDEN = 0.6180339887498949


class DriftTrial(NamedTuple):
    """A drift that was tried, and the stress it reached."""

    omega_norm: float
    stress: float


class DriftSearch(NamedTuple):
    """The drift with the lowest stress, and all that were tried, in this order."""

    omega_norm: float
    trials: tuple[DriftTrial, ...]


def search_drift(stress: Callable[[float], float]) -> DriftSearch:
    """Minimise ``stress(omega_norm)`` over [0, 0.95]: a coarse grid, then a golden section.

    Examples
    --------
    >>> search_drift(lambda omega: (omega - 0.37) ** 2).omega_norm
    0.37
    """
    trials = [DriftTrial(drift, stress(drift)) for drift in DRIFTS]
    best = min(range(len(DRIFTS)), key=lambda d: trials[d].stress)
    low, high = DRIFTS[max(best - 1, 0)], DRIFTS[min(best + 1, len(DRIFTS) - 1)]

    def at(drift):
        drift = round(drift, 3)
        known = [t for t in trials if t.omega_norm == drift]
        if not known:
            known = [DriftTrial(drift, stress(drift))]
            trials.append(known[0])
        return known[0]

    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    while high - low > PRECISION:
        if at(left).stress <= at(right).stress:
            high, right = right, left
            left = high - GOLDEN * (high - low)
        else:
            low, left = left, right
            right = low + GOLDEN * (high - low)
    # The smaller drift where two are as good: the height then claims no more than it must.
    chosen = min(trials, key=lambda t: (t.stress, t.omega_norm))
    return DriftSearch(chosen.omega_norm, tuple(trials))
