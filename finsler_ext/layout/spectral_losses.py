"""Objectives of the spectral family in a Randers space, each with its gradient.

A loss takes positions of shape (n, m) and returns its value and its gradient there; N × N
matrices are formed, one per coordinate at most.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from finsler_ext.spaces.randers import forward

__all__ = ["Loss", "isomap_loss", "lle_loss", "pairs_loss"]

Loss = Callable[[np.ndarray], tuple[float, np.ndarray]]


def isomap_loss(squares, W, omega) -> Loss:
    """Σ w_ij (F_ij² − D_ij²)² with ``squares`` = D²."""

    def loss(Y):
        F, inverse = _randers(Y, omega)
        rest = F**2 - squares
        force = 4.0 * W * rest * F
        return float((W * rest**2).sum()), _pulled(Y, force, inverse, omega)

    return loss


def pairs_loss(W, omega, scale, mass, target, strength) -> Loss:
    """½ Σ W_ij F(s_i y_i, s_j y_j)² + λ ‖Yᵀ diag(mass) Y − target‖²."""

    def loss(Y):
        scaled = scale[:, None] * Y
        F, inverse = _randers(scaled, omega)
        value, gradient = _penalty(Y, mass, target, strength)
        pulled = _pulled(scaled, W * F, inverse, omega)
        return 0.5 * float((W * F**2).sum()) + value, scale[:, None] * pulled + gradient

    return loss


def lle_loss(residual, omega, strength) -> Loss:
    """Σ_i F(0, v_i)² + λ ‖YᵀY − I‖² with v = (W − I) Y."""

    def loss(Y):
        step = residual @ Y
        length = np.sqrt((step**2).sum(axis=1, keepdims=True))
        F, _, _ = forward(length[:, 0], step[:, -1], omega)
        unit = np.divide(step, length, out=np.zeros_like(step), where=length > 0)
        unit[:, -1] += omega
        value, gradient = _penalty(Y, np.ones(len(Y)), np.eye(Y.shape[1]), strength)
        return float(F @ F) + value, residual.T @ (2.0 * F[:, None] * unit) + gradient

    return loss


def _randers(Y, omega):
    """F_ij, and 1/d_ij (0 where points coincide)."""
    square = np.zeros((len(Y), len(Y)))
    for column in Y.T:
        square += (column[:, None] - column) ** 2
    length = np.sqrt(square)
    lift = Y[:, -1] - Y[:, -1][:, None]
    inverse = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return forward(length, lift, omega)[0], inverse


def _pulled(Y, force, inverse, omega):
    """Gradient of a sum over pairs whose derivative by F_ij is ``force``."""
    # ∂F_ij/∂y_i = (y_i − y_j)/d_ij − ω e and ∂F_ij/∂y_j is its negative.
    along = (force + force.T) * inverse
    gradient = along.sum(axis=1)[:, None] * Y - along @ Y
    gradient[:, -1] += omega * (force.sum(axis=0) - force.sum(axis=1))
    return gradient


def _penalty(Y, mass, target, strength):
    rest = Y.T @ (mass[:, None] * Y) - target
    return strength * float((rest**2).sum()), 4.0 * strength * mass[:, None] * (Y @ rest)
