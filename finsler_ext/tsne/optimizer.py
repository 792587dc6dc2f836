"""openTSNE's gradient descent, made safe, the objectives that it descends, and its embedding.

Affinities survive whatever stops a descent. An objective takes the embedding and returns the error
and the gradient; those in this module change what another one returns, or where it is evaluated.
"""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from openTSNE.tsne import (
    OptimizationInterrupt,
    PartialTSNEEmbedding,
    TSNEEmbedding,
    gradient_descent,
    kl_divergence_bh,
    kl_divergence_fft,
)
from scipy.spatial import cKDTree
from tqdm.auto import tqdm

from finsler_ext._threads import run_light_rows
from finsler_ext.asymmetry import Asymmetry, SkewFidelity
from finsler_ext.geometry import Space, find_space
from finsler_ext.schema import NONE, array, saved
from finsler_ext.tsne.gradient import FinslerGradient, HeldAffinities

# Springs hold the map where it settled: SPRING times the pull, at the distance of the 15th
# neighbour on the map, of an affinity of 1/n. What all columns gain in neighbours by weaker
# springs, the map loses; with these, either keeps about 0.01 less than that of openTSNE.
SPRING, SPRING_NEIGHBORS = 0.12, 15
# The median distance to that neighbour is that of at most so many points.
SPRING_ROWS = 20_000
# The KL divergence takes about as long as the gradient; the bar shows a recent one.
KL_EVERY = 25


class Phase(NamedTuple):
    """Iterations of openTSNE's descent with one exaggeration and one momentum."""

    n_iter: int
    exaggeration: float | None
    momentum: float


class HeldMap:
    """An objective that descends at a share of the rate; springs hold the map where it settled.

    The smaller the share, the closer the map stays.
    """

    def __init__(self, objective, share: float, settled: np.ndarray):
        self.objective, self.share, self.settled = objective, share, np.array(settled)
        self.spring = SPRING / (len(settled) * (1.0 + neighbor_radius(self.settled) ** 2))

    def __call__(self, embedding, P, **params):
        error, gradient = self.objective(embedding, P, **params)
        gradient *= self.share
        gradient[:, :-1] += self.spring * (np.asarray(embedding)[:, :-1] - self.settled)
        return error, gradient


def neighbor_radius(plane: np.ndarray) -> float:
    """Median distance to the 15th neighbour."""
    n = len(plane)
    some = plane[:: -(-n // SPRING_ROWS)]
    last = min(SPRING_NEIGHBORS, n - 1) + 1  # the nearest is the point itself
    distance, _ = cKDTree(plane).query(some, k=[last])
    return float(np.median(distance))


class BoundedHeight:
    """An objective that moves heights into their bounds, in place, and then at a share of the rate.

    openTSNE's descent evaluates its objective before every step and after the last one, so this
    is projected descent. Between fixed points of nearly equal heights nothing else holds a new one:
    their repulsion drives it out of the layer.
    """

    def __init__(self, objective, low, high, share: float = 1.0):
        self.objective, self.low, self.high, self.share = objective, low, high, share

    def __call__(self, embedding, P, **params):
        height = np.asarray(embedding)[:, -1]
        np.clip(height, self.low, self.high, out=height)
        error, gradient = self.objective(embedding, P, **params)
        gradient[:, -1] *= self.share
        return error, gradient


class PinnedPoints:
    """An objective whose gradient leaves pinned entries alone.

    openTSNE's descent then centres the whole; that is undone before the next step, in place.
    """

    def __init__(self, objective, pins):
        self.objective, self.pins, self.fixed = objective, pins, np.isfinite(pins)
        self.columns = np.flatnonzero(self.fixed.any(axis=0))

    def __call__(self, embedding, P, **params):
        self.put_back(embedding)
        error, gradient = self.objective(embedding, P, **params)
        gradient[self.fixed] = 0.0
        return error, gradient

    def put_back(self, embedding) -> None:
        position = np.asarray(embedding)
        for c in self.columns:
            fixed = self.fixed[:, c]
            position[:, c] += np.mean(self.pins[fixed, c] - position[fixed, c])
        np.copyto(position, self.pins, where=self.fixed)


def run_phases(embedding, phases, pins=None, **params) -> tuple[TSNEEmbedding, bool]:
    """Optimise in place; also whether a callback stopped it."""
    pinned = None
    if pins is not None:
        own = embedding.gradient_descent_params["negative_gradient_method"]
        own = params.get("negative_gradient_method", own)
        pinned = PinnedPoints(own, pins[:, : embedding.shape[1]])
        params["negative_gradient_method"] = pinned
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
    finally:
        if pinned is not None:
            pinned.put_back(embedding)
    return embedding, False


@saved(gains=NONE | array("f8", "n m", "[0, inf)"), update=NONE | array("f8", "n m"))
class FinslerDescent(gradient_descent):
    """Momentum and gains as in openTSNE. Different are the following points.

    * Exaggeration is a factor beside P. A gradient of the user's is given P itself, multiplied in
      place; it is put back also after an exception or Ctrl-C.
    * An embedding stopped by a callback carries the KL divergence of that moment.
    * ``verbose`` shows a progress bar with the KL divergence.
    * The Euclidean gradients of openTSNE are refused: they would undo the drift.
    """

    def __getstate__(self) -> dict:
        """Gains and last step; what an openTSNE keeps beside them, it computes again."""
        return {"gains": self.gains, "update": self.update}

    def __setstate__(self, state: dict) -> None:
        gradient_descent.__init__(self)
        self.__dict__.update(state)

    def __call__(
        self,
        embedding,
        P,
        n_iter,
        objective_function,
        learning_rate,
        momentum=0.8,
        exaggeration=None,
        dof=1,
        min_gain=0.01,
        max_grad_norm=None,
        max_step_norm=5,
        theta=0.5,
        n_interpolation_points=3,
        min_num_intervals=50,
        ints_in_interval=1,
        reference_embedding=None,
        n_jobs=1,
        use_callbacks=False,
        callbacks=None,
        callbacks_every_iters=50,
        verbose=False,
    ):
        if objective_function in (kl_divergence_bh, kl_divergence_fft):
            raise ValueError(
                "negative_gradient_method: the names known to openTSNE are Euclidean gradients. "
                "Pass a finsler_ext.tsne.gradient.FinslerGradient, or set the method in "
                "FinslerTSNE(negative_gradient_method=…)."
            )
        factor = 1 if exaggeration is None else exaggeration
        objective, held = objective_function, held_affinities(P, objective_function)
        kept = P.data.copy() if held is P and factor != 1 else None
        settings = {
            "dof": dof,
            "bh_params": {"theta": theta},
            "fft_params": {
                "n_interpolation_points": n_interpolation_points,
                "min_num_intervals": min_num_intervals,
                "ints_in_interval": ints_in_interval,
            },
            "reference_embedding": reference_embedding,
            "n_jobs": n_jobs,
        }
        limits = (np.inf if norm is None else norm for norm in (max_grad_norm, max_step_norm))
        rates = momentum, float(learning_rate), min_gain, *limits
        position = np.asarray(embedding)
        start = np.zeros(position.shape), np.ones(position.shape)
        self.update, self.gains = (
            np.array(fresh if known is None else known)
            for known, fresh in zip((self.update, self.gains), start, strict=True)
        )
        callbacks = list(callbacks or ()) if use_callbacks else []
        bar = tqdm(total=n_iter, disable=not verbose, desc=_title(exaggeration))
        if verbose:
            objective = _Watched(objective, bar, factor)
        try:
            if factor != 1:
                held *= factor
            for callback in callbacks:
                getattr(callback, "optimization_about_to_start", lambda: None)()
            for done in range(1, n_iter + 1):
                due = bool(callbacks) and done % callbacks_every_iters == 0
                error, gradient = objective(embedding, held, should_eval_error=due, **settings)
                if due:
                    error = error / factor - np.log(factor)
                    if any(callback(done, error, embedding) for callback in callbacks):
                        embedding.kl_divergence = error
                        raise OptimizationInterrupt(error=error, final_embedding=embedding)
                moving = position, np.asarray(gradient), self.update, self.gains
                run_light_rows(_step, len(position), n_jobs, *moving, *rates)
                if reference_embedding is None:
                    _centre(position)
            if kept is not None:
                P.data[:] = kept
            elif factor != 1:
                held /= factor
            error, _ = objective(embedding, held, should_eval_error=True, **settings)
            return error, embedding
        finally:
            bar.close()
            if kept is not None:
                P.data[:] = kept


@njit(nogil=True, cache=True, error_model="numpy")
def _step(
    start, stop, position, gradient, update, gains, momentum, rate, min_gain, steepest, longest
):  # fmt: skip
    """Descend by momentum and gains; gradients and steps of a row are no longer than given."""
    m = position.shape[1]
    for i in range(start, stop):
        square = 0.0
        for c in range(m):
            square += gradient[i, c] ** 2
        least = min(1.0, steepest / (np.sqrt(square) + 1e-6))
        square = 0.0
        for c in range(m):
            slope = gradient[i, c] * least if least < 1.0 else gradient[i, c]
            if np.sign(update[i, c]) != np.sign(slope):
                gains[i, c] += 0.2
            else:
                gains[i, c] = gains[i, c] * 0.8 + min_gain
            update[i, c] = momentum * update[i, c] - rate * gains[i, c] * slope
            square += update[i, c] ** 2
        norm = np.sqrt(square)
        for c in range(m):
            if norm > longest:
                update[i, c] = update[i, c] / norm * longest
            position[i, c] += update[i, c]


@njit(nogil=True, cache=True)
def _centre(position):
    n, m = position.shape
    for c in range(m):
        mean = 0.0
        for i in range(n):
            mean += position[i, c]
        mean /= n
        for i in range(n):
            position[i, c] -= mean


def _innermost(objective):
    while hasattr(objective, "objective"):
        objective = objective.objective
    return objective


def held_affinities(P, objective):
    """P as our own gradient takes it."""
    return HeldAffinities(P) if isinstance(_innermost(objective), FinslerGradient) else P


def forget_edges(objective) -> None:
    objective = _innermost(objective)
    if isinstance(objective, FinslerGradient):
        objective.forget_edges()


def _title(exaggeration) -> str:
    return "t-SNE" if exaggeration in (None, 1) else f"t-SNE, exaggeration {exaggeration:g}"


class _Watched:
    """An objective that tells a progress bar how far it has come."""

    def __init__(self, objective, bar, exaggeration):
        self.objective, self.bar, self.exaggeration = objective, bar, exaggeration

    def __call__(self, embedding, P, should_eval_error=False, **params):
        due = self.bar.n % KL_EVERY == KL_EVERY - 1 and self.bar.n < self.bar.total
        error, gradient = self.objective(
            embedding, P, should_eval_error=should_eval_error or due, **params
        )
        if due:
            divergence = error / self.exaggeration - np.log(self.exaggeration)
            self.bar.set_postfix(KL=f"{divergence:.4f}", refresh=False)
        if self.bar.n < self.bar.total:
            self.bar.update()
        return error, gradient


# What openTSNE's pickles do not know of.
OWN = ("asymmetry_", "omega_norm_", "space")


class FinslerEmbedding(TSNEEmbedding):
    """An `openTSNE.TSNEEmbedding` whose `skew_fidelity_` follows its positions.

    Attributes
    ----------
    skew_fidelity_ : SkewFidelity
        How faithfully the height shows the asymmetry of the data, at the present positions.
    asymmetry_ : Asymmetry
        What the height is to show.
    omega_norm_ : float
    space : Space
    """

    # of parts of an embedding (``embedding[:, :2]``) nothing is known
    asymmetry_: Asymmetry | None = None
    omega_norm_: float = 0.0
    space: Any = "randers"

    @classmethod
    def of(
        cls, embedding: TSNEEmbedding, asymmetry: Asymmetry, omega_norm: float, space: Space
    ) -> FinslerEmbedding:
        """The same embedding, with what its height is to show."""
        made = embedding.view(cls)
        vars(made).update(vars(embedding))
        made.asymmetry_, made.omega_norm_, made.space = asymmetry, omega_norm, space
        return made

    @property
    def skew_fidelity_(self) -> SkewFidelity:
        if self.asymmetry_ is None:
            raise AttributeError("skew_fidelity_ belongs to the whole embedding, not to a part")
        return self.asymmetry_.fidelity(np.asarray(self), self.omega_norm_, find_space(self.space))

    def optimize(self, n_iter, inplace=False, propagate_exception=False, **params):
        """As in openTSNE; what it returns knows its fidelity, too."""
        moved = self if inplace else self._copied()
        return TSNEEmbedding.optimize(
            moved, n_iter, inplace=True, propagate_exception=propagate_exception, **params
        )

    def prepare_partial(self, X, initialization="median", k=25, **affinity_params):
        """As in openTSNE; with a drift, heights of new points stay within those of the fitted."""
        return self._bounded(super().prepare_partial(X, initialization, k, **affinity_params))

    def partial(self, start, P, share: float) -> PartialTSNEEmbedding:
        """New points with affinities P at ``start``, whose heights move at a share of the rate."""
        made = PartialTSNEEmbedding(start, self, P=P, **self.gradient_descent_params)
        return self._bounded(made, share)

    def _bounded(self, partial, share: float = 1.0):
        if self.omega_norm_ > 0:
            params, height = partial.gradient_descent_params, np.asarray(self)[:, -1]
            params["negative_gradient_method"] = BoundedHeight(
                params["negative_gradient_method"], height.min(), height.max(), share
            )
        return partial

    def _copied(self) -> FinslerEmbedding:
        """Positions, settings and optimiser of its own, as openTSNE's ``optimize`` makes them."""
        made: Any = np.array(self).view(type(self))
        vars(made).update(vars(self))
        made.optimizer = self.optimizer.copy()
        made.gradient_descent_params = copy(self.gradient_descent_params)
        made.kl_divergence = None
        return made

    def __reduce__(self):
        make, arguments, state = super().__reduce__()
        return make, arguments, (state, {name: getattr(self, name) for name in OWN})

    def __setstate__(self, state):
        theirs, own = state
        super().__setstate__(theirs)
        vars(self).update(own)

    def __deepcopy__(self, memo):
        """By the route of pickle: numpy's own loses what a whole embedding carries."""
        if "optimizer" not in vars(self):
            return super().__deepcopy__(memo)
        rebuild, arguments, state = self.__reduce__()
        copied = memo[id(self)] = rebuild(*arguments)
        copied.__setstate__(deepcopy(state, memo))
        return copied
