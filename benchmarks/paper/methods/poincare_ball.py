"""The Poincaré ball: points of norm < 1 with the metric λ_x² ⟨·,·⟩, λ_x = 2/(1 − ‖x‖²).

Rows are points; tangent vectors are rows too. Everything follows from Möbius addition
(Ungar, 2008),

    x ⊕ y = ((1 + 2⟨x,y⟩ + ‖y‖²) x + (1 − ‖x‖²) y) / (1 + 2⟨x,y⟩ + ‖x‖²‖y‖²).
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "ball_distances",
    "expmap",
    "mobius_add",
    "projected",
    "riemannian_factor",
    "tangent_norm",
    "translated",
    "transported",
]

# Beyond this radius (12.2 from the centre) float32 no longer tells points from the boundary.
MAX_RADIUS = 1.0 - 1e-5
# Gyration is linear, and exact on vectors far from the boundary; this is how long they are made.
SHORT = 1e-3


def _dot(x, y):
    return np.sum(x * y, axis=-1, keepdims=True)


def mobius_add(x, y):
    """x ⊕ y, row by row."""
    inner, square_x, square_y = _dot(x, y), _dot(x, x), _dot(y, y)
    top = (1 + 2 * inner + square_y) * x + (1 - square_x) * y
    return top / (1 + 2 * inner + square_x * square_y)


def ball_distances(x, y):
    """Hyperbolic distances between all rows of x and all rows of y."""
    square = np.square(x[:, None] - y[None]).sum(axis=-1)
    room = (1 - np.square(x).sum(axis=1))[:, None] * (1 - np.square(y).sum(axis=1))[None]
    u = 2 * square / room
    return np.log1p(u + np.sqrt(u * (u + 2)))


def riemannian_factor(x):
    """1/λ²: what turns a Euclidean gradient into a Riemannian one."""
    return np.square(1 - np.square(x).sum(axis=1)) / 4


def tangent_norm(x, v):
    """Hyperbolic length of the tangent vectors v at x."""
    return 2 * np.sqrt(np.square(v).sum(axis=1)) / (1 - np.square(x).sum(axis=1))


def expmap(x, v):
    """Where the geodesic from x with velocity v is after one unit of time."""
    length = np.sqrt(_dot(v, v))
    reach = np.tanh(length / (1 - _dot(x, x)))
    direction = np.divide(v, length, out=np.zeros_like(v), where=length > 0)
    return mobius_add(x, reach * direction)


def transported(x, y, v):
    """Tangent vectors v at x, carried to y along the geodesic: gyr[y, −x] v · λ_x/λ_y."""
    length = np.sqrt(_dot(v, v))
    short = np.divide(SHORT * v, length, out=np.zeros_like(v), where=length > 0)
    turned = mobius_add(-mobius_add(y, -x), mobius_add(y, mobius_add(-x, short)))
    return turned * (length / SHORT) * (1 - _dot(y, y)) / (1 - _dot(x, x))


def translated(x, origin):
    """The isometry that moves ``origin`` to the centre: (−origin) ⊕ x."""
    return projected(mobius_add(-np.broadcast_to(origin, x.shape), x))


def projected(x):
    """x, with rows beyond the largest radius moved back to it."""
    radius = np.sqrt(_dot(x, x))
    return np.where(radius > MAX_RADIUS, x * (MAX_RADIUS / np.maximum(radius, MAX_RADIUS)), x)
