"""omega_norm="auto": the largest drift that the neighbourhoods can afford, found without labels.

A larger drift makes the height show more of the asymmetry and leaves less room for everything
else. The rule, the same for every estimator that embeds a neighbour graph: of a small grid,
take the largest drift at which all columns together keep nearly as many of each point's
neighbours as the layout did before the drift acted. With a held height that layout is the map
alone. Data held out prefers the largest drift nearly always, so it cannot bound it; but it says
whether there is anything to show, and if not, the drift is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from finsler_ext.asymmetry import Asymmetry
from finsler_ext.evidence.verdict import NEAR_SIGN
from finsler_ext.geometry import RANDERS, Space
from finsler_ext.metrics import neighborhood_preservation
from finsler_ext.schema import TEXT, listed, number, part, saved

# As shares of the largest drift of the space. Below 0.3 the height says nothing, whatever the data.
DRIFTS = (0.3, 0.5, 0.7, 0.9)
# Share of the neighbours kept before the drift acted that may be lost.
TOLERANCE = 0.1


@saved(omega_norm=number("[0, 1)"), preservation=number(nan=True), sign=number(nan=True))
class Trial(NamedTuple):
    """One embedding that was tried: its drift and how it scored."""

    omega_norm: float
    preservation: float
    sign: float


@saved(omega_norm=number("[0, 1)"), reason=TEXT, trials=listed(part("Trial")))
class DriftChoice(NamedTuple):
    """The drift chosen, why, and every embedding that was tried."""

    omega_norm: float
    reason: str
    trials: tuple[Trial, ...] = ()


def choose_drift(
    before: np.ndarray,
    embed: Callable[[float], np.ndarray],
    asymmetry: Asymmetry,
    neighbors: np.ndarray,
    *,
    space: Space = RANDERS,
) -> DriftChoice:
    """Try drifts from the largest down, one to four embeddings.

    Parameters
    ----------
    before : array of shape (n, m)
        The layout before the drift acts.
    embed : callable
        The embedding at a given drift; it should reuse that layout.
    neighbors : array of shape (n, k)
        Data neighbours of each point, the point itself left out; −1 where missing.
    """
    trials = [Trial(0.0, neighborhood_preservation(neighbors, before), float("nan"))]
    enough = (1.0 - TOLERANCE) * trials[0].preservation
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
        reason = f"every drift tried loses more than {TOLERANCE:.0%} of the neighbours"
        return DriftChoice(0.0, reason, tuple(trials))
    if not trials[-1].sign >= NEAR_SIGN:
        reason = (
            "the data has no asymmetry that a height could show: at drift "
            f"{omega_norm:g} it orders pairs by chance"
        )
        return DriftChoice(0.0, reason, tuple(trials))
    reason = (
        f"the largest of {drifts} at which all columns keep {1 - TOLERANCE:.0%} of the neighbours "
        "that the layout kept before the drift acted"
    )
    return DriftChoice(omega_norm, reason, tuple(trials))
