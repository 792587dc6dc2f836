"""What a fit of FinslerMDS minimises, from where and how: settings, objective, starts, one run."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Real
from typing import NamedTuple

import numpy as np
from tqdm.auto import tqdm

from finsler_ext.geometry import RANDERS, Space
from finsler_ext.mds.descent import Descent, descend, majorize
from finsler_ext.mds.distances import DirectedInput
from finsler_ext.mds.general_stress import GeneralStress
from finsler_ext.mds.scaling import SCALINGS, OrdinalStress
from finsler_ext.mds.start import STARTS, InitialLayout
from finsler_ext.mds.stress import DenseStress, dense_stress
from finsler_ext.validation import check_start

__all__ = [
    "GD_EPOCHS",
    "METHODS",
    "SMACOF_ITERATIONS",
    "Settings",
    "check_fit",
    "check_settings",
    "is_init",
    "method_of",
    "objective_of",
    "run_at",
    "starts_of",
]

METHODS = ("auto", "smacof", "gd")
# Those that `LEARNING_RATE` was chosen with, and scikit-learn's default for SMACOF.
GD_EPOCHS, SMACOF_ITERATIONS = 100, 300
# The number of columns from which on the skew part has a noise level of its own by default. In two
# the height is an axis of the map, and plain stress finds the drift that travel times have.
TWO_LEVELS_FROM = 3


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

    @property
    def noise_weight(self) -> float | None:
        """λ, or None to estimate it."""
        if self.skew_weight is None:
            return None if self.n_components >= TWO_LEVELS_FROM else 1.0
        return None if isinstance(self.skew_weight, str) else float(self.skew_weight)


def method_of(method: str, space: Space) -> str:
    """What method="auto" means in this space."""
    if method != "auto":
        return method
    return "gd" if space.majoriser is None else "smacof"


def is_init(init, name: str) -> bool:
    return isinstance(init, str) and init == name


def check_settings(settings: Settings) -> None:
    """Whatever can be refused before looking at the data."""
    if settings.method not in METHODS:
        raise ValueError(f"method must be one of {METHODS}, got {settings.method!r}.")
    if settings.method == "smacof" and settings.space.majoriser is None:
        raise ValueError(
            f"method='smacof' needs a majoriser, and the space {settings.space.name!r} has none. "
            "Use method='auto' or 'gd'."
        )
    if isinstance(settings.omega_norm, str):
        if settings.omega_norm != "auto":
            raise ValueError(
                f"omega_norm must be a number in [0, 1) or 'auto', got {settings.omega_norm!r}."
            )
    else:
        settings.space.check_drift(settings.omega_norm)
    if settings.scaling not in (*SCALINGS, "auto"):
        raise ValueError(f"scaling must be one of {(*SCALINGS, 'auto')}, got {settings.scaling!r}.")
    for name in ("n_components", "n_init", "max_iter"):
        value = getattr(settings, name)
        if isinstance(value, (bool, str)) or int(value) != value or value < 1:
            raise ValueError(f"{name} must be an integer ≥ 1, got {value!r}.")
    if not settings.eps >= 0:
        raise ValueError(f"eps must be a number ≥ 0, got {settings.eps!r}.")
    weight = settings.skew_weight
    if weight not in (None, "auto") and not (isinstance(weight, Real) and weight > 0):
        raise ValueError(f"skew_weight must be a positive number, 'auto' or None, got {weight!r}.")
    if weight not in (None, "auto", 1):
        if settings.scaling in ("ordinal", "auto"):
            raise ValueError(f"skew_weight={weight!r} needs scaling='ratio' or 'interval'.")
        if settings.space.majoriser is None:
            raise ValueError(f"skew_weight={weight!r} needs space='randers'.")
    rate = settings.learning_rate
    if rate is not None and not rate > 0:
        raise ValueError(f"learning_rate must be positive, or None; got {rate!r}.")
    if isinstance(settings.init, str):
        if settings.init not in STARTS:
            raise ValueError(f"init must be one of {STARTS} or an array, got {settings.init!r}.")
    elif not np.all(np.isfinite(settings.init)):
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
    progress = partial(
        tqdm, disable=not settings.verbose, desc=f"{settings.method}, drift {omega_norm:.3g}"
    )
    if settings.method == "smacof":
        return majorize(
            objective,
            start,
            omega_norm,
            max_iter=settings.max_iter,
            eps=settings.eps,
            accelerate=settings.accelerate,
            n_threads=settings.n_threads,
            progress=progress,
        )
    return descend(
        objective,
        start,
        omega_norm,
        max_iter=settings.max_iter,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        n_threads=settings.n_threads,
        progress=progress,
    )
