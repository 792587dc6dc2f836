"""omega_norm="auto": the largest drift that the neighbourhoods can afford, found without labels.

A larger drift makes the height show more of the asymmetry and leaves less room for everything
else. The rule, the same for every estimator that embeds a neighbour graph: of a small grid,
take the largest drift at which the embedding keeps its neighbourhoods nearly as well as the
Euclidean one (drift 0) of the same graph.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from finsler_ext.metrics import SkewFidelity, neighborhood_preservation
from finsler_ext.randers import check_omega_norm

__all__ = [
    "DRIFTS",
    "MEANINGFUL_SIGN",
    "NO_ASYMMETRY",
    "TOLERANCE",
    "DriftChoice",
    "Trial",
    "check_drift_parameter",
    "choose_drift",
    "least_sign",
    "warn_of_chance",
]

# Below 0.3 the height says nothing, whatever the data.
DRIFTS = (0.3, 0.5, 0.7, 0.9)
# Share of the neighbourhood preservation of drift 0 that may be lost.
TOLERANCE = 0.1
# Below this share of rightly ordered edges the height is not worth reading.
MEANINGFUL_SIGN = 0.6
# At smaller drifts than this, heights that say nothing can reach 0.61 all the same (digits at 0.01
# after 200 epochs; 0.51 to 0.59 on ten data sets at 0.001 and 0.01 after the default number, 0.62
# and more at 0.1), so more is asked of them.
SMALL_DRIFT, CLEAR_SIGN = 0.05, 0.7
NO_ASYMMETRY = "no asymmetry to show"


class Trial(NamedTuple):
    """One embedding that was tried: its drift and how it scored."""

    omega_norm: float
    preservation: float
    sign: float


class DriftChoice(NamedTuple):
    """The drift chosen, why, and every embedding that was tried."""

    omega_norm: float
    reason: str
    trials: tuple[Trial, ...] = ()


def check_drift_parameter(omega_norm) -> float | None:
    """The parameter ``omega_norm`` of an estimator: a float in [0, 1), or None for "auto"."""
    if isinstance(omega_norm, str):
        if omega_norm == "auto":
            return None
        raise ValueError(
            f"omega_norm must be a number in [0, 1) or 'auto', got {omega_norm!r}. Try 0.5."
        )
    return check_omega_norm(omega_norm)


def least_sign(omega_norm: float) -> float:
    """From which share of rightly ordered neighbours on a height at this drift is worth reading."""
    return CLEAR_SIGN if omega_norm < SMALL_DRIFT else MEANINGFUL_SIGN


def warn_of_chance(
    fidelity: SkewFidelity, omega_norm: float, *, least: float = MEANINGFUL_SIGN, stacklevel: int
) -> None:
    """Tell the user of a fitted model that its height says nothing, if so."""
    if omega_norm == 0 or not fidelity.sign < least:
        return
    advice = ", or use a larger omega_norm such as 0.5" if omega_norm < 0.5 else ""
    warnings.warn(
        f"With omega_norm={omega_norm:g} the height says next to nothing about the asymmetry of "
        f"the data: it orders {fidelity.sign:.0%} of the pairs rightly, 50% is chance. Read it as "
        f"one more map column{advice}.",
        stacklevel=stacklevel + 1,
    )


def choose_drift(
    embed: Callable[[float], np.ndarray],
    fidelity: Callable[[np.ndarray], SkewFidelity],
    neighbors: np.ndarray,
    *,
    drifts: tuple[float, ...] = DRIFTS,
    tolerance: float = TOLERANCE,
) -> tuple[DriftChoice, np.ndarray]:
    """Try drifts from the largest down; return the choice and its embedding.

    Costs one embedding at drift 0 and one for each drift tried, two to five in all; ``embed``
    should reuse graph and initialisation.

    Parameters
    ----------
    embed : callable
        The embedding at a given drift.
    fidelity : callable
        The skew fidelity of an embedding.
    neighbors : array of shape (n, k)
        Data neighbours of each point, the point itself left out; −1 where missing.
    tolerance : float
        Share of the neighbourhood preservation at drift 0 that may be lost.
    """
    euclidean = embed(0.0)
    flat = fidelity(euclidean)
    trials = [Trial(0.0, neighborhood_preservation(neighbors, euclidean), flat.sign)]
    if NO_ASYMMETRY in flat.reason:
        return DriftChoice(0.0, flat.reason, tuple(trials)), euclidean
    enough = (1.0 - tolerance) * trials[0].preservation
    for omega_norm in sorted(drifts, reverse=True):
        embedding = embed(omega_norm)
        kept = neighborhood_preservation(neighbors, embedding)
        trials.append(Trial(omega_norm, kept, fidelity(embedding).sign))
        if kept >= enough:
            break
    else:
        reason = f"every drift tried loses more than {tolerance:.0%} of the neighbourhoods"
        return DriftChoice(0.0, reason, tuple(trials)), euclidean
    if not trials[-1].sign >= MEANINGFUL_SIGN:
        reason = f"{NO_ASYMMETRY}: at drift {omega_norm:g} the height orders pairs by chance"
        return DriftChoice(0.0, reason, tuple(trials)), euclidean
    reason = (
        f"the largest of {drifts} that keeps {1 - tolerance:.0%} of the neighbourhoods of drift 0"
    )
    return DriftChoice(omega_norm, reason, tuple(trials)), embedding
