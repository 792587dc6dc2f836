"""omega_norm="auto": the largest drift that the neighbourhoods can afford, found without labels.

A larger drift makes the height show more of the asymmetry and leaves less room for everything
else. The rule, the same for every estimator that embeds a neighbour graph: of a small grid,
take the largest drift at which all columns together keep nearly as many of each point's
neighbours as the layout did before the drift acted. With a held height that layout is the map
alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from finsler_ext._warn import warn
from finsler_ext.asymmetry import Asymmetry, SkewFidelity
from finsler_ext.metrics import neighborhood_preservation
from finsler_ext.spaces import RANDERS, Space

__all__ = [
    "DRIFTS",
    "MEANINGFUL_SIGN",
    "TOLERANCE",
    "ChanceWarning",
    "DriftChoice",
    "Trial",
    "check_drift_parameter",
    "choose_drift",
    "warn_of_chance",
]

# As shares of the largest drift of the space. Below 0.3 the height says nothing, whatever the data.
DRIFTS = (0.3, 0.5, 0.7, 0.9)
# Share of the neighbours kept before the drift acted that may be lost.
TOLERANCE = 0.1
# Below this share of correctly ordered edges the height is not worth reading.
MEANINGFUL_SIGN = 0.6
# From this share of the largest drift on a height was asked for; a smaller one is a choice, not a
# mistake.
ASKED_FOR = 0.3


class ChanceWarning(UserWarning):
    """A height that was asked for orders the data no better than chance."""


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


def check_drift_parameter(omega_norm, space: Space = RANDERS) -> float | None:
    """The parameter ``omega_norm`` of an estimator: a float, or None for "auto"."""
    if isinstance(omega_norm, str):
        if omega_norm == "auto":
            return None
        raise ValueError(
            f"omega_norm must be a number in [0, {space.limit:g}) or 'auto', got {omega_norm!r}. "
            f"Try {0.5 * space.limit:g}."
        )
    return space.check_drift(omega_norm)


def warn_of_chance(
    fidelity: SkewFidelity,
    omega_norm: float,
    *,
    directed: bool = False,
    space: Space = RANDERS,
) -> None:
    """Tell the user of a fitted model that a height which was asked for is at chance.

    It was asked for by a drift of 0.3 of the largest or more, or by data that is ``directed``.
    """
    if omega_norm == 0 or not fidelity.sign < MEANINGFUL_SIGN:
        return
    if omega_norm < ASKED_FOR * space.limit and not directed:
        return
    usual = 0.5 * space.limit
    advice = f", or use a larger omega_norm such as {usual:g}" if omega_norm < usual else ""
    warn(
        f"With omega_norm={omega_norm:g} the height says next to nothing about the asymmetry of "
        f"the data: it orders {fidelity.sign:.0%} of the pairs correctly, 50% is chance. Read it "
        f"as one more map column{advice}.",
        ChanceWarning,
    )


def choose_drift(
    before: np.ndarray,
    embed: Callable[[float], np.ndarray],
    asymmetry: Asymmetry,
    neighbors: np.ndarray,
    *,
    space: Space = RANDERS,
    tolerance: float = TOLERANCE,
) -> DriftChoice:
    """Try drifts from the largest down, one to four embeddings.

    Parameters
    ----------
    before : array of shape (n, m)
        The layout before the drift acts.
    embed : callable
        The embedding at a given drift; it should reuse that layout.
    asymmetry : Asymmetry
        What the height is to show.
    neighbors : array of shape (n, k)
        Data neighbours of each point, the point itself left out; −1 where missing.
    space : Space
        Drifts are DRIFTS times the largest one of the space.
    tolerance : float
        Share of the neighbours kept in ``before`` that may be lost.
    """
    trials = [Trial(0.0, neighborhood_preservation(neighbors, before), float("nan"))]
    enough = (1.0 - tolerance) * trials[0].preservation
    drifts = tuple(round(space.limit * share, 3) for share in DRIFTS)
    for omega_norm in sorted(drifts, reverse=True):
        embedding = embed(omega_norm)
        kept = neighborhood_preservation(neighbors, embedding)
        found = asymmetry.fidelity(embedding, omega_norm, space)
        trials.append(Trial(omega_norm, kept, found.sign))
        if not found.defined:
            return DriftChoice(0.0, found.reason, tuple(trials))
        if kept >= enough:
            break
    else:
        reason = f"every drift tried loses more than {tolerance:.0%} of the neighbours"
        return DriftChoice(0.0, reason, tuple(trials))
    if not trials[-1].sign >= MEANINGFUL_SIGN:
        reason = (
            "the data has no asymmetry that a height could show: at drift "
            f"{omega_norm:g} it orders pairs by chance"
        )
        return DriftChoice(0.0, reason, tuple(trials))
    reason = (
        f"the largest of {drifts} at which all columns keep {1 - tolerance:.0%} of the neighbours "
        "that the layout kept before the drift acted"
    )
    return DriftChoice(omega_norm, reason, tuple(trials))
