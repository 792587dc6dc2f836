"""The Matsumoto space: F = ‖u‖²/(‖u‖ − ω u_m), the time a walk takes on a slope.

With t = u_m/‖u‖, the sine of the climb, F = ‖u‖/(1 − ω t): a step up takes up to 1/(1 − ω) of its
length, a step down at least 1/(1 + ω). For ω < ½ the unit ball of F is convex. To first order in ω
it is the Randers space of the same drift.

F² is not smooth at 0, so t-SNE sums its repulsion over all pairs, and the stress of MDS has no
closed majoriser, so MDS descends by gradients.
"""

from __future__ import annotations

from numba.extending import register_jitable

from finsler_ext.geometry.space import ONE, TINY, Space


@register_jitable(inline="always")
def forward(length, rise, omega):
    """F, ∂F/∂d and ∂F/∂z divided by ω; see `finsler_ext.geometry.space.Space`."""
    bend = omega * (rise / (length + TINY))
    stretch = ONE / (ONE - bend)
    return length * stretch, (ONE - (bend + bend)) * stretch * stretch, stretch * stretch


def skew(length, rise, omega):
    """(F_ij − F_ji)/2ω."""
    return rise / (1.0 - (omega * rise / (length + TINY)) ** 2)


MATSUMOTO = Space("matsumoto", forward, skew, limit=0.5)
