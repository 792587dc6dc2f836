"""The acts of a t-SNE layout: when the drift acts and when the height may move.

Held. At zero height the gradient of the map columns is that of Euclidean t-SNE on the averaged
affinities, whatever the drift. So the map is laid out by itself, in as many iterations as
openTSNE takes, and stays. Then the height starts from its linear response
(`finsler_ext.layout.height`) and descends alone. Were the map to move on, it would use the height
as one more axis: its own neighbourhoods would suffer (15-NN of the map, ω = 0.01, 3000 flowers
0.46 held, 0.40 moving; 700 cells 0.47 and 0.44).

Free. All columns are laid out without a drift; then the drift finds its axis
(`finsler_ext.layout.axis`), and the descent goes on with it.

Neither first act depends on the drift, so layouts at several drifts share it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from openTSNE.tsne import OptimizationInterrupt, TSNEEmbedding

from finsler_ext.layout.axis import (
    best_axis,
    canonical_map,
    drift_start,
    rotation_onto_last,
    turned,
)
from finsler_ext.layout.height import NOISY_TOLERANCE, height_response, springs_between
from finsler_ext.layout.height_mode import FREE, HELD
from finsler_ext.layout.islands import (
    LOSS_RISE,
    NO_DRIFT,
    Islands,
    offset_components,
    settle_islands,
)
from finsler_ext.layout.tsne.descent import FinslerDescent

__all__ = ["Phase", "TsneLayout", "TsneSchedule", "edge_pull"]

# Share of the last phase in which a free layout has no drift yet.
FIRST_ACT = 0.6
# Iterations of a held height, at most those of the last phase, and their share of the learning
# rate. With the whole rate a small drift is lost in what the height gains as one more axis. Shares
# 1, 0.1 and 0.03, 700 cells and a generated mixture. Sign at ω = 0.01: 0.56, 0.61, 0.78 and 0.53,
# 0.67, 0.81; at 0.5: 0.90, 0.91, 0.92 and 0.86, 0.88, 0.90. 15-NN preservation of all columns at
# 0.5: 0.452, 0.451, 0.453 and 0.544, 0.543, 0.543; at 0.01: 0.501, 0.485, 0.468 and 0.572, 0.554,
# 0.537. With 25 iterations the divergence is higher by 2 %, with 100 the sign is lower.
HEIGHT_ITERATIONS, HEIGHT_RATE = 50, 0.03


class Phase(NamedTuple):
    """Iterations of openTSNE's descent with one exaggeration and one momentum."""

    n_iter: int
    exaggeration: float | None
    momentum: float


class TsneLayout(NamedTuple):
    """Where a descent ended, and whether its height was held."""

    embedding: TSNEEmbedding
    height: str
    islands: Islands


def edge_pull(distance, dof: float) -> np.ndarray:
    """Derivative of −ln of the kernel by the length of an edge: (ν+1)/ν · d/(1 + d²/ν)."""
    distance = np.asarray(distance, dtype=float)
    return (dof + 1.0) / dof * distance / (1.0 + distance**2 / dof)


class TsneSchedule:
    """Layouts of one set of affinities from one start, at any drift.

    Parameters
    ----------
    build : callable
        ``build(position, omega_norm)`` returns a TSNEEmbedding with a `FinslerGradient`.
    start : array of shape (n, m)
    phases : sequence of Phase
    mode : {"held", "free", "euclidean"}
    find_axis : bool
        Whether a free layout may be rotated; False keeps the frame of the start, and the drift
        acts from the first iteration.
    level : array of shape (n,), optional
        What heights follow within the connected parts, see `finsler_ext.layout.islands`.
    tolerance : float
        How exactly the first height answers to the asymmetry.
    """

    def __init__(
        self,
        build: Callable[[np.ndarray, float], TSNEEmbedding],
        start: np.ndarray,
        phases: list[Phase],
        *,
        mode: str,
        find_axis: bool = True,
        level=None,
        tolerance: float = NOISY_TOLERANCE,
    ):
        self.build, self.start, self.phases = build, start, phases
        self.mode, self.find_axis = mode, find_axis and mode == FREE
        self.level, self.tolerance = level, tolerance
        self._first_act: tuple | None = None

    def at(self, omega_norm: float, show: Callable[[TSNEEmbedding], object]) -> TsneLayout:
        """The layout at one drift; ``show`` is given the embedding before it starts to move."""
        embedding = self.build(self.start, omega_norm)
        show(embedding)
        if self.mode == HELD:
            return self._held(embedding, omega_norm)
        if not self.find_axis:
            embedding, _ = _run(embedding, self.phases)
            islands = NO_DRIFT if omega_norm == 0 else self._apart(embedding)
            return TsneLayout(embedding, FREE, islands)
        return self._free(embedding)

    def before_drift(self, show: Callable[[TSNEEmbedding], object]) -> np.ndarray:
        """The layout at the end of the first act: the map alone, or all columns."""
        embedding = self.build(self.start, 0.0)
        show(embedding)
        if self.mode == HELD:
            self._settle_map(embedding)
            return np.array(embedding[:, :-1])
        if self.find_axis:
            self._settle_all(embedding)
            return np.array(embedding)
        return np.array(_run(embedding, self.phases)[0])

    def _held(self, embedding, omega_norm):
        stopped = self._settle_map(embedding)
        P = embedding.affinities.P
        pull = partial(edge_pull, dof=embedding.gradient_descent_params["dof"])
        flat = np.array(embedding[:, :-1])
        height = height_response(flat, P, pull, omega_norm, self.tolerance)
        embedding[:, -1], islands = settle_islands(flat, height, P, pull, self.level)
        if not stopped:
            alone = _HeightOnly(embedding.gradient_descent_params["negative_gradient_method"])
            last = self.phases[-1]
            phase = last._replace(n_iter=min(HEIGHT_ITERATIONS, last.n_iter))
            embedding, _ = _run(
                embedding,
                [phase],
                negative_gradient_method=alone,
                learning_rate=HEIGHT_RATE * _learning_rate(embedding, phase),
            )
            height = np.array(embedding[:, -1])
            embedding[:, -1], islands = settle_islands(flat, height, P, pull, self.level)
        embedding.kl_divergence = _divergence(embedding, embedding)[0]
        return TsneLayout(embedding, HELD, islands)

    def _settle_map(self, embedding) -> bool:
        """Lay out the map columns alone, in place; True if a callback stopped it."""
        if self._first_act is None:
            flat = self.build(self.start[:, :-1], 0.0)
            try:
                flat, stopped = _run(flat, self.phases)
            finally:  # after Ctrl-C, the map is what was reached
                embedding[:, :-1] = flat
            self._first_act = np.array(flat), stopped
        flat, stopped = self._first_act
        embedding[:, :-1] = flat
        return stopped

    def _settle_all(self, embedding) -> bool:
        """Lay out all columns without a drift, in place; True if a callback stopped it."""
        if self._first_act is None:
            without = self.build(self.start, 0.0).gradient_descent_params
            *early, last = self.phases
            embedding, stopped = _run(
                embedding,
                [*early, last._replace(n_iter=int(FIRST_ACT * last.n_iter))],
                negative_gradient_method=without["negative_gradient_method"],
            )
            self._first_act = np.array(embedding), stopped
        embedding[:], stopped = self._first_act
        return stopped

    def _free(self, embedding):
        if not self._settle_all(embedding):
            embedding[:] = turned(np.array(embedding), self._axis(embedding, anywhere=True))
            embedding.optimizer = FinslerDescent()  # its gains belong to the old axes
            last = self.phases[-1]
            rest = last._replace(n_iter=last.n_iter - int(FIRST_ACT * last.n_iter))
            embedding, _ = _run(embedding, [rest])
        turn = self._axis(embedding, anywhere=False)
        position = turned(np.array(embedding), turn)
        embedding[:] = turned(position, canonical_map(position))
        return TsneLayout(embedding, FREE, self._apart(embedding))

    def _axis(self, embedding, *, anywhere: bool):
        """The rotation that makes the best direction of the drift the last axis.

        It is sought ``anywhere``, or near the last axis only.
        """
        position = np.array(embedding)
        pull = partial(edge_pull, dof=embedding.gradient_descent_params["dof"])
        flow = springs_between(position, embedding.affinities.P, pull).flow

        def objective(axis):
            rotation = rotation_onto_last(axis)
            Y = turned(position, rotation)
            value, gradient = _divergence(embedding, Y)
            slope = np.zeros(len(axis))
            # turning the last axis towards another moves every point along an arc
            slope[:-1] = np.einsum("nc,n->c", Y[:, :-1], gradient[:, -1])
            slope[:-1] -= np.einsum("nc,n->c", gradient[:, :-1], Y[:, -1])
            return value, slope @ rotation

        start = drift_start(position, flow) if anywhere else None
        return rotation_onto_last(best_axis(objective, position.shape[1], start))

    def _apart(self, embedding) -> Islands:
        """Let connected parts differ in height by the law within them, where the loss is flat."""
        pull = partial(edge_pull, dof=embedding.gradient_descent_params["dof"])
        position = np.array(embedding)
        height, islands = offset_components(
            position, position[:, -1], embedding.affinities.P, pull, self.level
        )
        before = _divergence(embedding, position)[0]
        if islands.settled and islands.n_parts > 1 and self.find_axis:
            settled = np.column_stack([position[:, :-1], height])
            after = _divergence(embedding, settled)[0]
            if after <= before + LOSS_RISE * abs(before):
                embedding[:], before = settled, after
            else:
                islands = islands._replace(reason="the parts would collide")
        embedding.kl_divergence = before
        return islands


class _HeightOnly:
    """An objective whose gradient moves nothing but the last column."""

    def __init__(self, objective):
        self.objective = objective

    def __call__(self, embedding, P, **params):
        error, gradient = self.objective(embedding, P, **params)
        gradient[:, :-1] = 0.0
        return error, gradient


def _learning_rate(embedding, phase: Phase) -> float:
    """openTSNE's: as given, or the number of points over the exaggeration."""
    given = embedding.gradient_descent_params["learning_rate"]
    if isinstance(given, str):
        return embedding.shape[0] / (phase.exaggeration or 1.0)
    return float(given)


def _run(embedding, phases, **params) -> tuple[TSNEEmbedding, bool]:
    """Optimise in place; also whether a callback stopped it."""
    try:
        for phase in phases:
            if phase.n_iter > 0:
                embedding.optimize(
                    n_iter=phase.n_iter,
                    exaggeration=phase.exaggeration,
                    momentum=phase.momentum,
                    inplace=True,
                    propagate_exception=True,
                    **params,
                )
    except OptimizationInterrupt as stop:  # a callback has seen enough
        return stop.final_embedding, True
    return embedding, False


def _divergence(embedding, position) -> tuple[float, np.ndarray]:
    """KL divergence and four times openTSNE's gradient, its true one, at ``position``."""
    params = embedding.gradient_descent_params
    grid = ("n_interpolation_points", "min_num_intervals", "ints_in_interval")
    value, quarter = params["negative_gradient_method"](
        np.asarray(position),
        embedding.affinities.P,
        dof=params["dof"],
        bh_params={"theta": params["theta"]},
        fft_params={name: params[name] for name in grid},
        n_jobs=params["n_jobs"],
        should_eval_error=True,
    )
    return float(value), 4.0 * quarter
