"""What a fit of FinslerMDS minimises, from where and how: settings, objective, starts, one run."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from tqdm.auto import tqdm

from finsler_ext._threads import RowPool
from finsler_ext.construct.gradient_share import gradient_share
from finsler_ext.estimators._mds.input import DirectedInput
from finsler_ext.layout.stress.asymmetric import AsymmetricStress
from finsler_ext.layout.stress.descent import descend
from finsler_ext.layout.stress.majorization import Descent, majorize
from finsler_ext.layout.stress.objective import StressProblem, stress_problem
from finsler_ext.layout.stress.scaling import SCALINGS, Transformation, scaled_stress
from finsler_ext.layout.stress.start import STARTS, InitialLayout
from finsler_ext.spaces import RANDERS, Space

__all__ = [
    "GD_EPOCHS",
    "METHODS",
    "SMACOF_ITERATIONS",
    "Settings",
    "check_fit",
    "check_settings",
    "is_init",
    "objective_of",
    "run_at",
    "solver_of",
    "starts_of",
    "transformation_at",
]

METHODS = ("auto", "smacof", "gd")
# Those that `LEARNING_RATE` was chosen with, and scikit-learn's default for SMACOF.
GD_EPOCHS, SMACOF_ITERATIONS = 100, 300


class Settings(NamedTuple):
    """Settings of a fit; `finsler_ext.estimators.mds` documents them."""

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
    compare_columns: bool = True
    """With omega_norm="auto": whether one column fewer would do as well."""


def solver_of(method: str, space: Space) -> str:
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


def objective_of(directed: DirectedInput, settings: Settings):
    """What to descend, a symmetric ratio problem to start from, and the gradient share."""
    D, weights, space = directed.distances, directed.weights, settings.space
    if weights is None or directed.symmetric_weights:
        problem = stress_problem(D, weights, settings.n_threads)
        if space.majoriser is not None:
            scaled = scaled_stress(problem, settings.scaling, D, weights)
            return scaled, problem, problem.gradient_share
        if weights is None:
            weights = np.ones_like(D)
            np.fill_diagonal(weights, 0.0)
        stress = AsymmetricStress(D, weights, problem.unit, space=space)
        scaled = scaled_stress(stress, settings.scaling, D, weights)
        return scaled, problem, problem.gradient_share
    # A pair known one way only is taken as the same both ways, for the start alone.
    known = weights > 0
    filled = np.where(known, D, np.where(known.T, D.T, D.dtype.type(0)))
    start_weights = (weights + weights.T) / 2
    stand_in = stress_problem(filled, start_weights, settings.n_threads)
    share = gradient_share(directed.with_nan())
    objective = AsymmetricStress(D, weights, stand_in.unit, stand_in.solver, space)
    return scaled_stress(objective, settings.scaling, D, weights), stand_in, share


def transformation_at(objective, position: np.ndarray, omega: float) -> Transformation:
    """What the distances of a layout of shape (n, m) stand for."""
    if isinstance(objective, (StressProblem, AsymmetricStress)):
        return Transformation()
    with RowPool(objective.n_points, 1) as pool:
        return objective.transformation(
            np.ascontiguousarray(position.T) / objective.unit, omega, pool
        )


def starts_of(problem: StressProblem, settings: Settings, random_state):
    if isinstance(settings.init, str):
        return InitialLayout(
            settings.init, settings.n_components, problem, random_state, settings.n_threads
        )
    given = np.asarray(settings.init, dtype=np.float64)
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
