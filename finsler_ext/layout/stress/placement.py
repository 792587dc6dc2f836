"""Places for new points: the same stress against fixed ones.

For one new point y, with F the distance of the space,

    L(y) = Σ_j (F(y, y_j) − D_out_j)² + Σ_j (F(y_j, y) − D_in_j)²

is minimised by damped Gauss–Newton steps (Levenberg–Marquardt), which only ever lower it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit
from numba.extending import register_jitable

from finsler_ext._threads import run_rows
from finsler_ext.layout.stress.objective import TINY
from finsler_ext.spaces import RANDERS, Space

__all__ = ["place_points"]

# Gauss–Newton took 5 to 8 on planted distances with 20 % noise; a bound for contradictory ones.
MAX_STEPS = 200
# A step that gains less than this share of the stress, or of the extent, is the last.
GAIN = 1e-12
# New points start at the centre of this many nearest fixed points.
NEAREST = 3
# Embeddings of another extent are brought to 1 first, so that TINY is tiny.
SMALL, LARGE = 1e-9, 1e9


def place_points(
    embedding: np.ndarray,
    outgoing: np.ndarray,
    incoming: np.ndarray,
    omega_norm: float,
    n_threads: int = 1,
    space: Space = RANDERS,
) -> np.ndarray:
    """Positions of new points, of shape (n_new, m).

    Parameters
    ----------
    embedding : array of shape (n, m)
        The fixed points.
    outgoing, incoming : arrays of shape (n_new, n)
        Dissimilarities from the new to the fixed points, and from the fixed to the new ones;
        nan where unknown.
    """
    fixed = np.ascontiguousarray(embedding, dtype=np.float64)
    outgoing = np.ascontiguousarray(outgoing, dtype=np.float64)
    incoming = np.ascontiguousarray(incoming, dtype=np.float64)
    extent = float(np.abs(fixed).max(initial=0.0))
    if extent > 0 and not SMALL < extent < LARGE:
        unit = 2.0 ** int(np.frexp(extent)[1])  # rounds nothing
        fixed, outgoing, incoming = fixed / unit, outgoing / unit, incoming / unit
        return unit * place_points(fixed, outgoing, incoming, omega_norm, n_threads, space)
    placed = np.empty((len(outgoing), fixed.shape[1]))
    kernel, omega = place_kernel(space.forward), float(omega_norm)
    run_rows(kernel, len(outgoing), n_threads, fixed, outgoing, incoming, omega, placed)
    return placed


@cache
def place_kernel(forward):
    """``kernel(start, stop, …)`` places rows ``start:stop`` in one space."""

    @njit(nogil=True, cache=True)
    def place(start, stop, fixed, outgoing, incoming, omega, placed):
        n, m = fixed.shape
        nearness = np.empty(n)
        for i in range(start, stop):
            out, into = outgoing[i], incoming[i]
            for j in range(n):
                total, count = 0.0, 0
                if not np.isnan(out[j]):
                    total, count = total + out[j], count + 1
                if not np.isnan(into[j]):
                    total, count = total + into[j], count + 1
                nearness[j] = total / count if count > 0 else np.inf
            nearest = np.argsort(nearness)[:NEAREST]
            y = np.zeros(m)
            if nearness[nearest[0]] == 0.0:  # a twin: start where it is
                y += fixed[nearest[0]]
            else:
                for j in nearest:
                    y += fixed[j] / len(nearest)
            _descend(forward, y, fixed, out, into, omega)
            placed[i] = y

    return place


@register_jitable
def _descend(forward, y, fixed, out, into, omega):
    m = fixed.shape[1]
    normal, matrix = np.empty((m, m)), np.empty((m, m))
    gradient, trial = np.empty(m), np.empty(m)
    stress = _linearise(forward, y, fixed, out, into, omega, normal, gradient)
    damping = 1e-3
    for _ in range(MAX_STEPS):
        for a in range(m):
            for b in range(m):
                matrix[a, b] = normal[a, b]
            matrix[a, a] += damping * normal[a, a] + TINY
        step = np.linalg.solve(matrix, gradient)
        for c in range(m):
            trial[c] = y[c] - step[c]
        reached = _stress(forward, trial, fixed, out, into, omega)
        if reached < stress:
            gain = stress - reached
            y[:] = trial
            stress = _linearise(forward, y, fixed, out, into, omega, normal, gradient)
            damping = max(0.1 * damping, 1e-12)
            if gain <= GAIN * stress:
                return
        else:
            damping *= 10.0
            if damping > 1e12:
                return


@register_jitable
def _stress(forward, y, fixed, out, into, omega):
    n, m = fixed.shape
    total = 0.0
    for j in range(n):
        square = 0.0
        for c in range(m):
            square += (y[c] - fixed[j, c]) ** 2
        length = np.sqrt(square)
        rise = fixed[j, m - 1] - y[m - 1]
        if not np.isnan(out[j]):
            total += (forward(length, rise, omega)[0] - out[j]) ** 2
        if not np.isnan(into[j]):
            total += (forward(length, -rise, omega)[0] - into[j]) ** 2
    return total


@register_jitable
def _linearise(forward, y, fixed, out, into, omega, normal, gradient):
    """Σ J Jᵀ and Σ J f over the residuals f, and the stress."""
    n, m = fixed.shape
    normal[:], gradient[:] = 0.0, 0.0
    unit = np.empty(m)
    total = 0.0
    for j in range(n):
        square = 0.0
        for c in range(m):
            unit[c] = y[c] - fixed[j, c]
            square += unit[c] ** 2
        length = np.sqrt(square)
        for c in range(m):
            unit[c] /= length + TINY
        rise = fixed[j, m - 1] - y[m - 1]
        for way in range(2):
            sign = 1.0 - 2.0 * way
            wanted = out[j] if way == 0 else into[j]
            if np.isnan(wanted):
                continue
            distance, along, up = forward(length, sign * rise, omega)
            residual = distance - wanted
            total += residual**2
            # J = along · (unit ∓ (up/along) ω e_m)
            tilt = sign * omega * (up / along)
            unit[m - 1] -= tilt
            for a in range(m):
                gradient[a] += along * unit[a] * residual
                for b in range(m):
                    normal[a, b] += along * unit[a] * (along * unit[b])
            unit[m - 1] += tilt
    return total
