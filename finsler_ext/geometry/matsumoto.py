"""The Matsumoto space: F = ‖u‖²/(‖u‖ − ω u_m), the time a walk takes on a slope.

With t = u_m/‖u‖, the sine of the climb, F = ‖u‖/(1 − ω t): a step up takes up to 1/(1 − ω) of its
length, a step down at least 1/(1 + ω). For ω < ½ the unit ball of F is convex. To first order in ω
it is the Randers space of the same drift.

F² is not smooth at 0, so t-SNE sums its repulsion over all pairs, and the stress of MDS has no
closed majoriser, so MDS descends by gradients.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from finsler_ext.geometry.space import Space

# Far below any distance, and not 0 in single precision.
_ONE, _TINY = np.float32(1.0), np.float32(1e-30)


@register_jitable(inline="always")
def forward(length, rise, omega):
    """F, ∂F/∂d and ∂F/∂z divided by ω; see `finsler_ext.geometry.space.Space`."""
    bend = omega * (rise / (length + _TINY))
    stretch = _ONE / (_ONE - bend)
    return length * stretch, (_ONE - (bend + bend)) * stretch * stretch, stretch * stretch


def skew(length, rise, omega):
    """(F_ij − F_ji)/2ω."""
    return rise / (1.0 - (omega * rise / (length + _TINY)) ** 2)


MATSUMOTO = Space("matsumoto", forward, skew, limit=0.5)
