"""Where the asymmetry of a fitted estimator comes from, in words."""

from __future__ import annotations

import textwrap

import numpy as np

from finsler_ext.asymmetry import DENSITY, DISTANCES, SCALE, Asymmetry
from finsler_ext.drift import MEANINGFUL_SIGN

__all__ = ["HEIGHT", "asymmetry_of", "fidelity_words", "height_words", "write_title"]

# Of an array nothing is known: its height may show anything.
HEIGHT = "height"
WORDS = {
    DENSITY: "height: sparse above dense",
    DISTANCES: "height: costly to reach is high",
    SCALE: "height: large local scale is high",
}
NO_DRIFT = "last column (no drift)"
# Letters in a line of a title.
LINE = 62


def height_words(model) -> str:
    """What the height of a fitted estimator shows; "height" for anything else."""
    if getattr(model, "omega_norm_", None) == 0:
        return NO_DRIFT
    return WORDS.get(getattr(getattr(model, "asymmetry_", None), "kind", ""), HEIGHT)


def fidelity_words(model) -> str:
    """How far to trust the height of a fitted estimator; empty for anything else."""
    fidelity = getattr(model, "skew_fidelity_", None)
    if fidelity is None:
        return ""
    if getattr(model, "omega_norm_", 0) == 0:
        return "there is no drift: the last column is one more map column"
    if not np.isfinite(fidelity.sign):
        return f"the height shows nothing: {fidelity.reason or 'no pair differs'}"
    words = f"the height orders {fidelity.sign:.0%} of the pairs correctly (50% is chance)"
    if fidelity.sign < MEANINGFUL_SIGN:
        words += ": read it as one more map column"
    islands = getattr(model, "islands_", None)
    if islands is not None and islands.n_parts > 1 and not islands.settled:
        words += "; heights do not compare across gaps of the map"
    return words


def write_title(ax, model) -> None:
    """How far to trust the height, above a picture."""
    ax.set_title(textwrap.fill(fidelity_words(model), LINE), fontsize="small")


def asymmetry_of(model) -> Asymmetry:
    """What a fitted estimator compares its height with."""
    found = getattr(model, "asymmetry_", None)
    if found is None:
        raise ValueError(
            "This plot needs a fitted estimator (of this version), or an embedding with either "
            "distances=, or graph= and local_scale=."
        )
    return found
