"""Is the height more than chance, and how sure is each point?

`Evidence` is what every fitted estimator has as ``evidence_``. `density_evidence` makes it of the
neighbours of each point, `direction_evidence` of directed data and `velocity_evidence` of
velocities.
"""

from finsler_ext.evidence.density import density_evidence, scale_error
from finsler_ext.evidence.direction import (
    MeasuredPairs,
    direction_evidence,
    measured_pairs,
    potential_error,
    velocity_evidence,
)
from finsler_ext.evidence.verdict import (
    LEVEL,
    ChanceWarning,
    Evidence,
    HeightError,
    HeldOutPairs,
    Reliability,
)

__all__ = [
    "LEVEL",
    "ChanceWarning",
    "Evidence",
    "HeightError",
    "HeldOutPairs",
    "MeasuredPairs",
    "Reliability",
    "density_evidence",
    "direction_evidence",
    "measured_pairs",
    "potential_error",
    "scale_error",
    "velocity_evidence",
]
