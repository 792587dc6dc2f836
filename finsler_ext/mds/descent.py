"""Descents of a directed stress: majorisation (SMACOF), whose stress never rises, and Adam.

**Majorisation** in a Randers space: every step minimises a quadratic that lies above the stress.
With g = −∇/4 of L_S + λ L_K at Y and V the Laplacian of symmetric weights,

    Y⁺ = Y + V† g (I − λ ωωᵀ/(1 + λ ‖ω‖²)),

because the norm alone is majorised (Cauchy–Schwarz), and the squares of F contribute
2 tr(YᵀVY(I + λ ωωᵀ)): their cross term is antisymmetric and sums to zero. No matrix larger than
N × N appears, and for uniform weights no matrix at all. Other weights have steps of their own, see
`finsler_ext.mds.stress`.

**Gradient descent**, for any weights in any space,

    ∂L/∂y_i = 2 Σ_j [ w_ij (F_ij − D_ij) ((y_i − y_j)/d_ij − ω)
                    + w_ji (F_ji − D_ji) ((y_i − y_j)/d_ij + ω) ]      in a Randers space,

by Adam with cosine annealing and weight decay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import numpy as np

from finsler_ext._threads import RowPool
from finsler_ext.mds.stress import Slope

# Below this share of Σ w D² what is left of the stress is rounding.
STRESS_ROUNDING = {np.dtype(np.float32): 1e-12, np.dtype(np.float64): 1e-28}
# Iterations in a row that must gain less than eps: one alone may be a restart.
QUIET_ITERATIONS = 3
# Adam's usual figures.
FIRST_MOMENT, SECOND_MOMENT, ADAM_TINY = 0.9, 0.999, 1e-8
# Longest step of a coordinate, as a share of the root mean square of D. Stress after 100 epochs
# relative to majorisation from the same start, flight times (ω = 0.1) and a disk of 150 points
# (ω = 0.5): 4.9 and 1.8 at 0.001, 1.5 and 1.0 at 0.01, 0.95 and 1.0 at 0.1, 1.8 and 1.0 at 0.3.
LEARNING_RATE = 0.1


class Stress(Protocol):
    """What a descent asks of a stress; positions are of shape (m, n), in its units."""

    unit: float
    n_points: int
    total: float

    @property
    def dtype(self) -> np.dtype: ...

    @property
    def shortest_step(self) -> float:
        """A step is shortened to this share if the stress does not fall."""

    def slope(self, position: np.ndarray, omega: float, pool: RowPool) -> Slope: ...

    def step(self, here: Slope, omega: float) -> np.ndarray: ...


class Descent(NamedTuple):
    """A layout, in the units of the data.

    position : array of shape (n, m), centred
    stress : what was minimised
    history : the same after every iteration
    plain_stress : L_S + L_K
    skew_weight : λ
    """

    position: np.ndarray
    stress: float
    history: np.ndarray
    plain_stress: float
    skew_weight: float


def majorize(
    problem: Stress,
    start: np.ndarray,
    omega_norm: float,
    *,
    max_iter: int = 300,
    eps: float = 1e-6,
    accelerate: bool = True,
    n_threads: int = 1,
    progress: Callable[[range], Iterable[int]] = iter,
) -> Descent:
    """Lower the stress from ``start``, of shape (n, m); it never rises.

    Parameters
    ----------
    problem : Stress
    start : array of shape (n, m)
        In the units of the data; not modified.
    omega_norm : float
    max_iter : int
    eps : float
        Stop when the stress falls by less than this share of itself (three times in a row
        with acceleration).
    accelerate : bool
        Carry on in the direction of earlier steps (Nesterov's momentum) as long as the stress
        falls; otherwise take the plain step, which always lowers it.
    n_threads : int
        Changes the time taken, never the result.
    progress : callable
        Wraps the range of iterations, e.g. in a progress bar.
    """
    position = np.ascontiguousarray(np.asarray(start, dtype=np.float64).T) / problem.unit
    position -= position.mean(axis=1, keepdims=True)
    rounding = STRESS_ROUNDING[problem.dtype] * problem.total
    history: list[float] = []
    with RowPool(problem.n_points, n_threads, heavy=True) as pool:
        here = problem.slope(position, omega_norm, pool)
        before, momentum, quiet = position, 0, 0
        for _ in progress(range(max_iter)):
            plain = position + problem.step(here, omega_norm)
            there = None
            if accelerate and momentum:
                onward = plain + momentum / (momentum + 3.0) * (plain - before)
                there = _lower(problem, onward, omega_norm, pool, here)
            momentum += 1
            if there is None:
                onward, momentum = plain, 1
                there = _lower(problem, onward, omega_norm, pool, here)
            share = 0.5
            while there is None and share >= problem.shortest_step:
                onward = position + share * (plain - position)
                there = _lower(problem, onward, omega_norm, pool, here)
                share *= 0.5
            if there is None:  # nothing but rounding left to gain
                history.append(here.stress)
                break
            gain = here.stress - there.stress
            before, position, here = plain, onward, there
            history.append(here.stress)
            quiet = quiet + 1 if gain <= eps * here.stress else 0
            if quiet >= (QUIET_ITERATIONS if accelerate else 1) or here.stress <= rounding:
                break
    return _descent(problem, position, here, history)


def _descent(problem: Stress, position: np.ndarray, here: Slope, history: list[float]) -> Descent:
    position = (position - position.mean(axis=1, keepdims=True)).T * problem.unit
    scale = problem.unit**2
    return Descent(
        np.ascontiguousarray(position),
        here.stress * scale,
        np.array(history) * scale,
        here.plain * scale,
        here.skew_weight,
    )


def _lower(problem, position, omega_norm, pool, here) -> Slope | None:
    there = problem.slope(position, omega_norm, pool)
    return there if there.stress <= here.stress else None


def descend(
    problem: Stress,
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
    problem : Stress
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
    with RowPool(problem.n_points, n_threads, heavy=True) as pool:
        here = problem.slope(position, omega_norm, pool)
        for epoch in progress(range(max_iter)):
            gradient = -4.0 * here.factor * here.downhill + weight_decay * position
            first += (1.0 - FIRST_MOMENT) * (gradient - first)
            second += (1.0 - SECOND_MOMENT) * (gradient**2 - second)
            mean = first / (1.0 - FIRST_MOMENT ** (epoch + 1))
            power = second / (1.0 - SECOND_MOMENT ** (epoch + 1))
            annealed = rate * 0.5 * (1.0 + np.cos(np.pi * epoch / max_iter))
            position = position - annealed * mean / (np.sqrt(power) + ADAM_TINY)
            here = problem.slope(position, omega_norm, pool)
            history.append(here.stress)
    return _descent(problem, position, here, history)
