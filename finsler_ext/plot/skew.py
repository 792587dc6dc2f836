"""Where the asymmetry of a fitted estimator comes from, in words."""

from __future__ import annotations

import numpy as np

from finsler_ext.asymmetry import DISTANCES, SCALE, Asymmetry

__all__ = ["HEIGHT", "asymmetry_of", "fidelity_words", "height_words"]

HEIGHT = "height: sparse above dense"
WORDS = {
    DISTANCES: "height: costly to reach is high",
    SCALE: "height: large local scale is high",
}


def height_words(model) -> str:
    """What the height of an estimator shows; of an array nothing else is known than `HEIGHT`."""
    return WORDS.get(getattr(getattr(model, "asymmetry_", None), "kind", ""), HEIGHT)


def fidelity_words(model) -> str:
    """How far to trust the height of a fitted estimator, for a title; empty for anything else."""
    sign = getattr(getattr(model, "skew_fidelity_", None), "sign", float("nan"))
    if not np.isfinite(sign) or getattr(model, "omega_norm_", 0) == 0:
        return ""
    words = f"the height orders {sign:.0%} of the pairs rightly (50% is chance)"
    islands = getattr(model, "islands_", None)
    if islands is not None and islands.n_parts > 1 and not islands.settled:
        words += "; it does not compare across gaps"
    return words


def asymmetry_of(model) -> Asymmetry:
    """What a fitted estimator compares its height with."""
    found = getattr(model, "asymmetry_", None)
    if found is None:
        raise ValueError(
            "This plot needs a fitted estimator (of this version), or an embedding with either "
            "distances=, or graph= and local_scale=."
        )
    return found
