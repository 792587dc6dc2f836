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
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from tqdm.auto import tqdm

from finsler_ext._threads import RowPool
from finsler_ext.geometry import RANDERS, Space
from finsler_ext.mds.distances import DirectedInput
from finsler_ext.mds.general_stress import GeneralStress
from finsler_ext.mds.scaling import SCALINGS, OrdinalStress
from finsler_ext.mds.start import STARTS, InitialLayout
from finsler_ext.mds.stress import DenseStress, Slope, dense_stress
from finsler_ext.schema import DRIFT, NONE, WIDTH, array_like, number, one_of, whole
from finsler_ext.validation import check_start

# Below this share of Σ w D² what is left of the stress is rounding.
STRESS_ROUNDING = {np.dtype(np.float32): 1e-12, np.dtype(np.float64): 1e-28}
# Iterations in a row that must gain less than eps: one alone may be a restart.
QUIET_ITERATIONS = 3
# Adam's usual figures.
FIRST_MOMENT, SECOND_MOMENT, ADAM_TINY = 0.9, 0.999, 1e-8
# Longest step of a coordinate, as a share of the root mean square of D. Flight times reach 0.95 of
# the stress of majorisation in 100 epochs, 1.5 at 0.01 and 1.8 at 0.3.
LEARNING_RATE = 0.1
# Those that `LEARNING_RATE` was chosen with, and scikit-learn's default for SMACOF.
GD_EPOCHS, SMACOF_ITERATIONS = 100, 300
# The number of columns from which on the skew part has a noise level of its own by default. In two
# the height is an axis of the map, and plain stress finds the drift that travel times have.
TWO_LEVELS_FROM = 3


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
    """Lower the stress from ``start``, of shape (n, m) in the units of the data; it never rises.

    It ends when the stress falls by less than ``eps`` of itself, with acceleration three times in a
    row: that carries on in the direction of earlier steps (Nesterov's momentum) as long as the
    stress falls, and otherwise takes the plain step, which always lowers it. ``progress`` wraps the
    range of iterations.
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

    ``learning_rate`` is in the units of the data, by default ``LEARNING_RATE`` times the problem's
    unit; weight_decay · ½‖Y‖² is added to the stress, both in the problem's units.
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


# What settings may be, and the parameters of the estimator that have the same names.
SETTINGS = {
    "n_components": WIDTH,
    "omega_norm": DRIFT,
    "method": one_of("auto", "smacof", "gd"),
    "init": one_of(*STARTS) | array_like(),
    "n_init": whole("[1, inf)"),
    "max_iter": whole("[1, inf)"),
    "eps": number("[0, inf)"),
    "learning_rate": NONE | number("(0, inf)"),
    "scaling": one_of(*SCALINGS, "auto"),
    "skew_weight": NONE | number("(0, 1e30]") | one_of("auto"),
}


class Settings(NamedTuple):
    """Settings of a fit; `finsler_ext.mds.estimator` documents them."""

    n_components: int
    omega_norm: float | str
    method: str
    init: str | np.ndarray
    n_init: int
    max_iter: int
    eps: float = 1e-6
    accelerate: bool = True
    learning_rate: float | None = None
    weight_decay: float = 1e-5
    n_threads: int = 1
    verbose: bool = False
    space: Space = RANDERS
    scaling: str = "ratio"
    skew_weight: float | str | None = 1.0
    compare_columns: bool = True
    """With omega_norm="auto": whether one column fewer would do as well."""
    choose_columns: bool = False
    """Whether to take two columns if they do as well as three."""

    @property
    def noise_weight(self) -> float | None:
        """λ, or None to estimate it."""
        if self.skew_weight is None:
            return None if self.n_components >= TWO_LEVELS_FROM else 1.0
        return None if isinstance(self.skew_weight, str) else float(self.skew_weight)

    @property
    def random_start(self) -> bool:
        return isinstance(self.init, str) and self.init == "random"

    def for_rows(self, rows: np.ndarray) -> Settings:
        """Those of a fit to some of the points."""
        if isinstance(self.init, str):
            return self
        return self._replace(init=np.asarray(self.init)[rows])


def check_settings(settings: Settings) -> None:
    """Whatever can be refused before looking at the data."""
    for name, wanted in SETTINGS.items():
        wanted.check(name, getattr(settings, name))
    if settings.method == "smacof" and settings.space.majoriser is None:
        raise ValueError(
            f"method='smacof' needs a majoriser, and the space {settings.space.name!r} has none. "
            "Use method='auto' or 'gd'."
        )
    if settings.omega_norm != "auto":
        settings.space.check_drift(settings.omega_norm)
    weight = settings.skew_weight
    if weight not in (None, "auto", 1):
        if settings.scaling in ("ordinal", "auto"):
            raise ValueError(f"skew_weight={weight!r} needs scaling='ratio' or 'interval'.")
        if settings.space.majoriser is None:
            raise ValueError(f"skew_weight={weight!r} needs space='randers'.")
    if not isinstance(settings.init, str) and not np.all(np.isfinite(settings.init)):
        raise ValueError("init: an array must not contain nan or inf.")


def check_fit(directed: DirectedInput, settings: Settings) -> None:
    """Whether data and settings go together."""
    if not isinstance(settings.init, str):
        n, m = len(directed.distances), settings.n_components
        shape = np.shape(settings.init)
        if len(shape) != 2 or shape[0] != n or shape[1] not in (m - 1, m) or shape[1] == 0:
            raise ValueError(
                f"init: an array must have shape ({n}, {m}), or ({n}, {m - 1}) for a map whose "
                f"height starts at zero; got {shape}."
            )
    if settings.skew_weight not in (None, "auto", 1) and directed.uneven:
        raise ValueError(
            f"skew_weight={settings.skew_weight!r} needs weights that are equal in both directions."
        )


def objective_of(directed: DirectedInput, settings: Settings):
    """What to descend, and the plain stress of the same pairs to start from."""
    D, weights, space = directed.distances, directed.weights, settings.space
    interval = settings.scaling == "interval"
    even = directed.even_weights()
    plain = dense_stress(D, even, settings.n_threads, space=space)
    objective: DenseStress | GeneralStress | OrdinalStress
    if even is weights and space.majoriser is not None:
        objective = replace(plain, interval=interval)
        if settings.scaling != "ordinal":
            objective = objective.with_noise(settings.noise_weight)
    else:
        if weights is None:
            weights = np.ones_like(D)
            np.fill_diagonal(weights, 0.0)
        objective = GeneralStress(D, weights, plain.unit, plain.solver, space, interval=interval)
    if settings.scaling == "ordinal":
        objective = OrdinalStress(D, weights, objective)
    return objective, plain


def starts_of(problem: DenseStress, settings: Settings, random_state):
    """A function of the drift that returns positions of shape (n, m)."""
    if isinstance(settings.init, str):
        return InitialLayout(
            settings.init, settings.n_components, problem, random_state, settings.n_threads
        )
    given = np.asarray(settings.init, dtype=np.float64)
    check_start("init", given / problem.unit)
    if given.shape[1] < settings.n_components:
        given = np.column_stack([given, np.zeros(len(given))])
    return lambda omega_norm: given


def run_at(objective, start, omega_norm, settings: Settings) -> Descent:
    """One descent by the method of the settings."""
    progress = partial(
        tqdm, disable=not settings.verbose, desc=f"{settings.method}, drift {omega_norm:.3g}"
    )
    shared: dict = {
        "max_iter": settings.max_iter, "n_threads": settings.n_threads, "progress": progress
    }  # fmt: skip
    if settings.method == "smacof":
        shared |= {"eps": settings.eps, "accelerate": settings.accelerate}
        return majorize(objective, start, omega_norm, **shared)
    shared |= {"learning_rate": settings.learning_rate, "weight_decay": settings.weight_decay}
    return descend(objective, start, omega_norm, **shared)
