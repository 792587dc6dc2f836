"""SMACOF in a Randers space: every step minimises a quadratic that lies above the stress.

With −∇L/4 = g at Y and V the Laplacian of symmetric weights,

    Y⁺ = Y + V† g (I − ωωᵀ/(1 + ‖ω‖²)),

because the norm alone is majorised (Cauchy–Schwarz), and the square of F contributes
2 tr(YᵀVY(I + ωωᵀ)): its cross term is antisymmetric and sums to zero. No matrix larger than
N × N appears, and for uniform weights no matrix at all. Asymmetric weights have a step of their
own, see `finsler_ext.layout.stress.asymmetric`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from finsler_ext._threads import RowPool
from finsler_ext.layout.stress.asymmetric import AsymmetricStress
from finsler_ext.layout.stress.objective import Slope, StressProblem
from finsler_ext.layout.stress.sparse import SparseStress

__all__ = ["Descent", "majorize"]

# Below this share of Σ w D² what is left of the stress is rounding.
STRESS_ROUNDING = {np.dtype(np.float32): 1e-12, np.dtype(np.float64): 1e-28}
# Iterations in a row that must gain less than eps: one alone may be a restart.
QUIET_ITERATIONS = 3


class Descent(NamedTuple):
    """Positions of shape (n, m), centred, and the stress after every iteration."""

    position: np.ndarray
    stress: float
    history: np.ndarray


def majorize(
    problem: StressProblem | AsymmetricStress | SparseStress,
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
    problem : StressProblem, AsymmetricStress or SparseStress
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
    with RowPool(problem.n_points, n_threads) as pool:
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
    position = (position - position.mean(axis=1, keepdims=True)).T * problem.unit
    scale = problem.unit**2
    return Descent(np.ascontiguousarray(position), here.stress * scale, np.array(history) * scale)


def _lower(problem, position, omega_norm, pool, here) -> Slope | None:
    there = problem.slope(position, omega_norm, pool)
    return there if there.stress <= here.stress else None
