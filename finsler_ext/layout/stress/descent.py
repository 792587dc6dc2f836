"""Gradient descent of the directed stress, for any weights.

    L(Y) = Σ_{i≠j} w_ij (F_ij − D_ij)²
    ∂L/∂y_i = 2 Σ_j [ w_ij (F_ij − D_ij) ((y_i − y_j)/d_ij − ω)
                    + w_ji (F_ji − D_ji) ((y_i − y_j)/d_ij + ω) ]

Adam with cosine annealing and weight decay. The slope is that of the problem: see
`finsler_ext.layout.stress.objective` for symmetric weights and
`finsler_ext.layout.stress.asymmetric` for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from finsler_ext._threads import RowPool
from finsler_ext.layout.stress.asymmetric import AsymmetricStress
from finsler_ext.layout.stress.majorization import Descent
from finsler_ext.layout.stress.objective import StressProblem
from finsler_ext.layout.stress.sparse import SparseStress

__all__ = ["LEARNING_RATE", "descend"]

# Adam's usual figures.
FIRST_MOMENT, SECOND_MOMENT, ADAM_TINY = 0.9, 0.999, 1e-8
# Longest step of a coordinate, as a share of the root mean square of D. Stress after 100 epochs
# relative to majorisation from the same start, flight times (ω = 0.1) and a disk of 150 points
# (ω = 0.5): 4.9 and 1.8 at 0.001, 1.5 and 1.0 at 0.01, 0.95 and 1.0 at 0.1, 1.8 and 1.0 at 0.3.
LEARNING_RATE = 0.1


def descend(
    problem: StressProblem | AsymmetricStress | SparseStress,
    start: np.ndarray,
    omega_norm: float,
    *,
    max_iter: int = 100,
    learning_rate: float | None = None,
    weight_decay: float = 1e-5,
    n_threads: int = 1,
    progress: Callable[[range], Iterable[int]] = iter,
) -> Descent:
    """Adam from ``start``; the learning rate falls to zero over ``max_iter`` epochs.

    Parameters
    ----------
    problem : StressProblem, AsymmetricStress or SparseStress
    start : array of shape (n, m)
        In the units of the data; not modified.
    learning_rate : float, optional
        In the units of the data; by default ``LEARNING_RATE`` times the problem's unit.
    weight_decay : float
        Adds weight_decay · ½‖Y‖² to the stress, both in the problem's units.
    """
    position = np.ascontiguousarray(np.asarray(start, dtype=np.float64).T) / problem.unit
    rate = LEARNING_RATE if learning_rate is None else learning_rate / problem.unit
    first, second = np.zeros_like(position), np.zeros_like(position)
    history: list[float] = []
    with RowPool(problem.n_points, n_threads) as pool:
        here = problem.slope(position, omega_norm, pool)
        for epoch in progress(range(max_iter)):
            gradient = -4.0 * here.downhill + weight_decay * position
            first += (1.0 - FIRST_MOMENT) * (gradient - first)
            second += (1.0 - SECOND_MOMENT) * (gradient**2 - second)
            mean = first / (1.0 - FIRST_MOMENT ** (epoch + 1))
            power = second / (1.0 - SECOND_MOMENT ** (epoch + 1))
            annealed = rate * 0.5 * (1.0 + np.cos(np.pi * epoch / max_iter))
            position = position - annealed * mean / (np.sqrt(power) + ADAM_TINY)
            here = problem.slope(position, omega_norm, pool)
            history.append(here.stress)
    position = (position - position.mean(axis=1, keepdims=True)).T * problem.unit
    scale = problem.unit**2
    return Descent(np.ascontiguousarray(position), here.stress * scale, np.array(history) * scale)
