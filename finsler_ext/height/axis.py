"""Where the drift points: the direction in a finished layout at which its loss is lowest.

For a layout Y and a drift ω u with a unit vector u, only F_ij = d_ij + ω u·(y_j − y_i) depends on
u. To first order in ω the loss is L + ω g·u with g = Σ p_ij A(d_ij) (y_j − y_i): moving single
points never gets there, because this force is spread over all of them. So u is sought by itself,
from −g/‖g‖ and from the last axis, and the layout is rotated so that u becomes the last axis.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

# Evaluations of a quasi-Newton search, in one or two unknowns: to first order in ω its start is
# the answer.
MAX_EVALUATIONS = 6
# The search ends where the slope has fallen to this share of what it was.
SLOPE_SHARE = 1e-2
# A loss that falls by less than this share has not fallen.
LOSS_ROUNDING = 1e-9

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]


def best_axis(objective: Objective, n_components: int, start=None) -> np.ndarray:
    """The unit vector with the lowest loss found; the last axis if nothing lies below it.

    ``objective`` returns the loss and its derivative at a unit vector; only the part of the
    derivative that is orthogonal to the vector is used. ``start`` is where to start from, beside
    the last axis; it need not have length 1.
    """
    last = np.zeros(n_components)
    last[-1] = 1.0
    at_last = objective(last)
    lowest, best = at_last[0], last
    starts = [(last, at_last)]
    if start is not None and np.linalg.norm(start) > 0:
        first = start / np.linalg.norm(start)
        starts.insert(0, (first, objective(first)))
    for first, at_first in starts:
        found, value = _descend(objective, first, at_first)
        if value < lowest - LOSS_ROUNDING * abs(lowest):
            lowest, best = value, found
    return best


def _descend(objective: Objective, first: np.ndarray, at_first) -> tuple[np.ndarray, float]:
    """Quasi-Newton steps on the sphere, in coordinates of the plane that touches it."""
    value, slope = at_first
    plane = np.linalg.svd(first[None, :])[2][1:]
    steepness = float(np.linalg.norm(plane @ slope))
    if steepness == 0:  # in one dimension, always
        return first, value

    def local(x):
        long = first + x @ plane
        length = np.linalg.norm(long)
        unit = long / length
        value, slope = objective(unit)
        return value / steepness, plane @ (slope - (slope @ unit) * unit) / (length * steepness)

    result = minimize(
        local,
        np.zeros(len(plane)),
        jac=True,
        method="L-BFGS-B",
        options={"maxfun": MAX_EVALUATIONS, "gtol": SLOPE_SHARE, "ftol": 0.0},
    )
    found = first + result.x @ plane
    return found / np.linalg.norm(found), float(result.fun) * steepness


def drift_start(position: np.ndarray, flow: np.ndarray) -> np.ndarray:
    """−g of the module's docstring, ``flow`` being Σ_j A(d_ij)(p_ij − p_ji)."""
    # Sums of einsum do not depend on the number of threads, as those of BLAS do.
    return np.einsum("n,nc->c", flow, position - position.mean(axis=0, dtype=np.float64))


def rotation_onto_last(axis: np.ndarray) -> np.ndarray:
    """Orthogonal matrix R with R @ axis = the last axis; a rotation in two or more dimensions.

    It turns in the plane of the two, and leaves what is orthogonal to both where it is.
    """
    m = len(axis)
    last = np.zeros(m)
    last[-1] = 1.0
    if m == 1:
        return np.sign(axis)[:, None]
    cosine = float(axis @ last)
    side = axis - cosine * last
    sine = float(np.linalg.norm(side))
    if sine == 0:
        if cosine > 0:
            return np.eye(m)
        side, sine = np.eye(m)[0], 0.0
    else:
        side = side / sine
    turned = np.outer(side, side) + np.outer(last, last)
    quarter = np.outer(last, side) - np.outer(side, last)
    return np.eye(m) + (cosine - 1.0) * turned + sine * quarter


def turned(position: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Every row multiplied by an orthogonal matrix, in the dtype of the rows."""
    if np.array_equal(matrix, np.eye(len(matrix))):
        return position
    return np.einsum("nc,dc->nd", position.astype(np.float64), matrix).astype(position.dtype)


def canonical_map(position: np.ndarray) -> np.ndarray:
    """Orthogonal matrix that gives the map columns a frame of their own and keeps the height.

    Columns of the map in the order of their spread (principal axes), each with its largest entry
    positive.
    """
    m = position.shape[1]
    frame = np.eye(m)
    if m == 1 or len(position) < 2:
        return frame
    flat = position[:, :-1].astype(np.float64)
    flat = flat - flat.mean(axis=0)
    axes = np.linalg.eigh(np.einsum("ni,nj->ij", flat, flat))[1][:, ::-1].T
    shown = turned(flat, axes)
    farthest = shown[np.abs(shown).argmax(axis=0), np.arange(m - 1)]
    frame[:-1, :-1] = axes * np.where(farthest < 0, -1.0, 1.0)[:, None]
    return frame
