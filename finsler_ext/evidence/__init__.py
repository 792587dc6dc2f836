"""Is the height more than chance, and how sure is each point?

`Evidence` is what every fitted estimator has as ``evidence_``. `density_evidence` makes it of the
neighbours of each point, `direction_evidence` of directed data and `velocity_evidence` of
velocities.
"""

from typing import NamedTuple

import numpy as np

from finsler_ext.asymmetry import DIRECTED_SHARE, NONE, SCALE
from finsler_ext.evidence.density import density_evidence, density_findings, scale_error
from finsler_ext.evidence.direction import (
    MeasuredPairs,
    direction_evidence,
    direction_findings,
    measured_pairs,
    potential_error,
    untestable,
    velocity_evidence,
)
from finsler_ext.evidence.verdict import LEVEL, Evidence, HeightError, HeldOutPairs, Reliability

__all__ = [
    "LEVEL",
    "Evidence",
    "Findings",
    "HeightError",
    "HeldOutPairs",
    "MeasuredPairs",
    "Reliability",
    "density_evidence",
    "direction_evidence",
    "find_evidence",
    "measured_pairs",
    "potential_error",
    "scale_error",
    "velocity_evidence",
]


class Findings(NamedTuple):
    """Evidence, the error of the potential or the pairs to make it of, and pairs held out."""

    evidence: Evidence
    error: HeightError | MeasuredPairs | None = None
    held_out: HeldOutPairs | None = None


def find_evidence(kind: str, measured) -> Findings:
    """The evidence for an asymmetry, and what errors and held-out pairs are made of.

    Parameters
    ----------
    kind : str
        That of the `Asymmetry`.
    measured : tuple, DirectedData or str
        Indices and distances of the neighbours of each point, itself left out; or directed data
        as it was measured; or why neither is known.
    """
    if kind in (NONE, SCALE):
        return Findings(Evidence(kind))
    if isinstance(measured, str):
        return Findings(Evidence(kind, reason=measured))
    if isinstance(measured, tuple):
        indices, distances = measured
        error = scale_error(indices, distances)
        level = error.potential[np.isfinite(error.potential)]
        if level.size == 0 or np.ptp(level) < DIRECTED_SHARE:
            return Findings(Evidence(kind, reason="all points have the same scale"))
        evidence, held_out = density_findings(indices, distances)
        return Findings(evidence, error, held_out)
    pairs = measured_pairs(measured.distances, measured.strengths)
    reason = untestable(measured.distances, pairs, measured.strengths)
    if reason:
        return Findings(Evidence(kind, reason=reason))
    evidence, held_out = direction_findings(pairs)
    if held_out is None:
        return Findings(evidence)
    return Findings(evidence, potential_error(pairs) if pairs.complete else pairs, held_out)
