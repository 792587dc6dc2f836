"""scaling="auto" of FinslerMDS: the simplest scaling that predicts pairs it has not seen.

A stress says little about a scaling: with more freedom it is lower. So some pairs are held out,
each scaling is fitted to the others, and what it predicts for those held out is compared with D in
the units of the data: F (ratio), F + a (interval), or the isotonic regression of D on F over the
other pairs (ordinal).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.isotonic import IsotonicRegression

from finsler_ext.estimators._mds.input import DirectedInput
from finsler_ext.layout.laplacian import n_groups
from finsler_ext.layout.stress.scaling import SCALINGS, Transformation

__all__ = ["ScalingChoice", "ScalingTrial", "held_out_pairs", "predictions", "with_scaling"]

# A scaling belongs to the kind of data, not to its size: a sample shows it.
SAMPLE_POINTS = 300
# Share of the pairs that is held out.
HELD_OUT = 0.1
# A scaling with more freedom must leave less than this share of the error.
WORTH = 0.95


class ScalingTrial(NamedTuple):
    """A scaling that was tried: Σ w (D − prediction)²/Σ w D² over the pairs held out."""

    kind: str
    error: float


class ScalingChoice(NamedTuple):
    """The scaling chosen, why, and all that were tried."""

    kind: str
    reason: str
    trials: tuple[ScalingTrial, ...]


def with_scaling(directed: DirectedInput, settings, random_state, fit):
    """The settings with the scaling decided, and the choice (None if it was given).

    ``fit`` takes directed data, settings and a random state, and returns a StressResult.
    """
    if settings.scaling != "auto":
        return settings, None
    choice = choose_scaling(directed, settings, fit)
    return settings._replace(scaling=choice.kind), choice


def choose_scaling(directed: DirectedInput, settings, fit) -> ScalingChoice:
    rng = np.random.RandomState(0)  # the choice takes nothing from the caller's random numbers
    sample, rows = _sample(directed, rng)
    held = held_out_pairs(sample, rng)
    if held is None:
        reason = "too few pairs to hold any out: distances are taken as they are"
        return ScalingChoice("ratio", reason, ())
    weights = np.ones_like(sample.distances) if sample.weights is None else sample.weights
    rest = np.where(held, weights.dtype.type(0), weights)
    np.fill_diagonal(rest, 0.0)
    init = settings.init if isinstance(settings.init, str) else np.asarray(settings.init)[rows]
    settings = settings._replace(init=init, compare_columns=False, verbose=False)
    D, judged = sample.distances[held].astype(np.float64), weights[held].astype(np.float64)
    trials = []
    for kind in SCALINGS:
        result = fit(DirectedInput(sample.distances, rest), settings._replace(scaling=kind), rng)
        F = settings.space.distances(result.embedding, result.omega_norm)
        predicted = predictions(F, sample.distances, rest, result.transformation)[held]
        error = float(judged @ (D - predicted) ** 2 / max(judged @ D**2, np.finfo(float).tiny))
        trials.append(ScalingTrial(kind, error))
    chosen = trials[0]
    for trial in trials[1:]:
        if trial.error < WORTH * chosen.error:
            chosen = trial
    errors = ", ".join(f"{trial.kind} {trial.error:.3g}" for trial in trials)
    reason = f"the simplest that predicts pairs held out well (errors: {errors})"
    return ScalingChoice(chosen.kind, reason, tuple(trials))


def _sample(directed: DirectedInput, rng) -> tuple[DirectedInput, np.ndarray]:
    n = len(directed.distances)
    if n <= SAMPLE_POINTS:
        return directed, np.arange(n)
    rows = np.sort(rng.permutation(n)[:SAMPLE_POINTS])
    chosen = np.ix_(rows, rows)
    weights = None if directed.weights is None else directed.weights[chosen]
    if weights is not None and n_groups(weights + weights.T) > 1:
        return directed, np.arange(n)  # too sparse to be sampled
    return DirectedInput(directed.distances[chosen], weights), rows


def held_out_pairs(directed: DirectedInput, rng, share: float = HELD_OUT) -> np.ndarray | None:
    """A symmetric mask of pairs to hold out, so that the others still hold all points together.

    None if that cannot be had.
    """
    n = len(directed.distances)
    known = np.ones((n, n)) if directed.weights is None else directed.weights + directed.weights.T
    low, high = np.nonzero(np.triu(known > 0, 1))
    for attempt in range(4):
        chosen = rng.uniform(size=low.size) < share / 2**attempt
        held = np.zeros((n, n), dtype=bool)
        held[low[chosen], high[chosen]] = held[high[chosen], low[chosen]] = True
        if chosen.any() and n_groups(np.where(held, 0.0, known)) == 1:
            return held if directed.weights is None else held & (directed.weights > 0)
    return None


def predictions(
    F: np.ndarray, D: np.ndarray, weights: np.ndarray, transformation: Transformation
) -> np.ndarray:
    """What distances F of a model say about D, in the units of D.

    With an ordinal transformation, by the isotonic regression of D on F over the pairs with weight.
    """
    if transformation.kind != "ordinal":
        return F + transformation.constant
    fitted = weights > 0
    rising = IsotonicRegression(out_of_bounds="clip")
    rising.fit(F[fitted], D[fitted].astype(np.float64), sample_weight=weights[fitted])
    return rising.predict(F.ravel()).reshape(F.shape)
