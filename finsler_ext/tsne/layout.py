"""The two acts of a t-SNE layout as phases of openTSNE's descent, and where it starts.

At zero height the gradient of the map columns is that of Euclidean t-SNE on the averaged
affinities, whatever the drift. So the first act lays out the map by itself, in as many iterations
as openTSNE takes. In the second the height descends, as fast as `finsler_ext.height.acts` lets it,
and springs hold the map.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numba import njit
from openTSNE import initialization as upstream
from openTSNE.tsne import (
    OptimizationInterrupt,
    TSNEEmbedding,
    gradient_descent,
    kl_divergence_bh,
    kl_divergence_fft,
)
from scipy.spatial import cKDTree
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.utils import check_random_state
from tqdm.auto import tqdm

from finsler_ext._messages import LAYOUT, stage
from finsler_ext._threads import one_blas_thread, resolve_n_jobs, run_light_rows
from finsler_ext.asymmetry import DENSITY, is_symmetric
from finsler_ext.base import ANY_DRIFT
from finsler_ext.height.acts import (
    EUCLIDEAN,
    FREE,
    FirstAct,
    Layout,
    check_height,
    height_mode,
    lay_out,
)
from finsler_ext.height.axis import rotation_onto_last, turned
from finsler_ext.height.pins import keep_pins, on_pins
from finsler_ext.height.start import spectral_map
from finsler_ext.schema import NONE, array, saved
from finsler_ext.tsne.gradient import SAMPLED_ROWS, FinslerGradient, HeldAffinities
from finsler_ext.validation import check_start, large_offset

# The second act has so many iterations, at most those of the last phase, and as many more for a
# height that moves freely.
HEIGHT_ITERATIONS = 50
# Springs hold the map where it settled: SPRING times the pull, at the distance of the 15th
# neighbour on the map, of an affinity of 1/n. 15-NN preservation of all columns and of the map less
# that of openTSNE in three and two, ω = 0.01, means of five mixtures of 1000 points (two of them of
# curved sheets) and 1000 digits, two starts: with 0.05 −0.008 and −0.014, 0.1 −0.009 and −0.008,
# 0.14 −0.011 and −0.005, 0.2 −0.012 and −0.003; without springs, the map at 0.03 of the height's
# rate, −0.011 and −0.009, at rest −0.023 and +0.001. What all columns gain, the map loses.
SPRING, SPRING_NEIGHBORS = 0.12, 15
# The median distance to that neighbour is that of at most so many points.
SPRING_ROWS = 20_000


class Phase(NamedTuple):
    """Iterations of openTSNE's descent with one exaggeration and one momentum."""

    n_iter: int
    exaggeration: float | None
    momentum: float


def edge_pull(distance, dof: float) -> np.ndarray:
    """Derivative of −ln of the kernel by the length of an edge: (ν+1)/ν · d/(1 + d²/ν)."""
    distance = np.asarray(distance, dtype=float)
    return (dof + 1.0) / dof * distance / (1.0 + distance**2 / dof)


class TsneActs:
    """The acts of a layout at one drift; a `finsler_ext.height.acts.Descent`.

    Parameters
    ----------
    build : callable
        ``build(position, omega_norm)`` returns a TSNEEmbedding with a `FinslerGradient`.
    start : array of shape (n, m)
    phases : sequence of Phase
    omega_norm : float
    pins : array of shape (n, m), optional
        What is given and does not move; nan where free.

    Attributes
    ----------
    embedding : TSNEEmbedding
        The one that moves; when a descent is interrupted, what was reached.
    """

    def __init__(
        self,
        build: Callable[[np.ndarray, float], TSNEEmbedding],
        start: np.ndarray,
        phases: list[Phase],
        omega_norm: float,
        pins: np.ndarray | None = None,
    ):
        self.build, self.start, self.phases = build, keep_pins(start, pins), phases
        self.pins = pins
        self.embedding = build(self.start, omega_norm)
        self.graph = self.embedding.affinities.P
        self.pull = partial(edge_pull, dof=self.embedding.gradient_descent_params["dof"])
        self.n_threads = resolve_n_jobs(self.embedding.gradient_descent_params["n_jobs"])
        self.moves = any(phase.n_iter > 0 for phase in phases)
        self.held = _held(self.graph, self._gradient)

    @property
    def _gradient(self):
        return self.embedding.gradient_descent_params["negative_gradient_method"]

    def forget_edges(self) -> None:
        """Once nothing moves any more."""
        forget_edges(self._gradient)

    def settle(self) -> FirstAct:
        """The map alone, without a drift."""
        moving = self.build(self.start[:, :-1], 0.0)
        gradient = moving.gradient_descent_params["negative_gradient_method"]
        try:
            moving, stopped = _run(moving, self.phases, self.pins)
        finally:
            self.embedding[:, :-1] = moving
            forget_edges(gradient)
        return FirstAct(np.array(self.embedding), stopped=stopped)

    def release(self, position, omega_norm, *, share):
        if share == 0:  # the map stays as it settled
            return position
        last = self.phases[-1]
        n_iter = min(round(HEIGHT_ITERATIONS * (1.0 + share)), last.n_iter)
        gradient = self._gradient
        self.embedding[:] = position
        self.embedding, _ = _run(
            self.embedding,
            [last._replace(n_iter=n_iter)],
            self.pins,
            negative_gradient_method=HeldMap(gradient, share, position[:, :-1]),
        )
        return np.array(self.embedding)

    def descend(self, omega_norm):
        self.embedding, _ = _run(self.embedding, self.phases, self.pins)
        return np.array(self.embedding)

    def loss(self, position, omega_norm) -> float:
        return self._divergence(position)[0]

    def axis_loss(self, position, omega_norm):
        def objective(axis):
            rotation = rotation_onto_last(axis)
            Y = turned(position, rotation)
            value, gradient = self._divergence(Y)
            slope = np.zeros(len(axis))
            # turning the last axis towards another moves every point along an arc
            slope[:-1] = np.einsum("nc,n->c", Y[:, :-1], gradient[:, -1])
            slope[:-1] -= np.einsum("nc,n->c", gradient[:, :-1], Y[:, -1])
            return value, slope @ rotation

        return objective

    def rise_loss(self, position, omega_norm) -> float:
        if len(position) < 2 * SAMPLED_ROWS or not isinstance(self._gradient, FinslerGradient):
            return self._divergence(position)[0]
        params = self.embedding.gradient_descent_params
        given = params["dof"], params["theta"], params["n_jobs"]
        return self._gradient.sampled_divergence(np.asarray(position), self.held, *given)

    def _divergence(self, position) -> tuple[float, np.ndarray]:
        """KL divergence and its gradient, which is four times openTSNE's."""
        params = self.embedding.gradient_descent_params
        grid = ("n_interpolation_points", "min_num_intervals", "ints_in_interval")
        value, quarter = params["negative_gradient_method"](
            np.asarray(position),
            self.held,
            dof=params["dof"],
            bh_params={"theta": params["theta"]},
            fft_params={name: params[name] for name in grid},
            n_jobs=params["n_jobs"],
            should_eval_error=True,
        )
        return float(value), 4.0 * quarter


class TsneLayouts:
    """Layouts of one problem at any drift; they share starts and first acts.

    What moves is the model's ``embedding_``: after Ctrl-C, it is what was reached.
    """

    def __init__(self, model, problem):
        self.model, self.affinities, self.pins = model, problem.affinities, problem.pinned
        self.features = None if model._is_precomputed else problem.X
        given = problem.initialization
        self.initialization = model.initialization if given is None else given
        self.columns = None
        if not isinstance(self.initialization, str):
            self.columns = np.shape(np.atleast_2d(self.initialization))[1]
        check_height(model.height, model.n_components, self.columns, "an initialization")
        self.symmetric = is_symmetric(self.affinities.P)
        self.seed = model.random_state
        if model.omega_norm == "auto":  # every trial has the same start
            self.seed = check_random_state(self.seed).randint(np.iinfo(np.int32).max)
        self.starts: dict[bool, np.ndarray] = {}
        self.first_act: FirstAct | None = None
        self.gradients: list[Any] = []

    def mode(self, omega_norm: float) -> str:
        model = self.model
        if callable(model.negative_gradient_method):
            return EUCLIDEAN  # a gradient of the user's: nothing is known of it
        m = model.n_components
        directed = model.asymmetry_.is_directed
        return height_mode(model.height, m, omega_norm, self.symmetric, self.columns, directed)

    def start(self, mode: str) -> np.ndarray:
        """Where layouts in a mode start: flat, unless nothing would ever raise a height."""
        m = self.model.n_components
        flat = mode != EUCLIDEAN and m > 1
        if flat not in self.starts:
            start = initial_embedding(
                self.initialization, m, self.affinities.P, self.features, self.seed, flat=flat
            )
            if self.columns is None:  # the frame of any other start means nothing
                start = on_pins(start, self.pins, self.affinities.P)
            self.starts[flat] = start
        return self.starts[flat]

    def at(self, omega_norm: float) -> Layout:
        model, mode = self.model, self.mode(omega_norm)
        model.omega_norm_ = omega_norm
        stage(LAYOUT)
        acts = self._acts(mode, omega_norm)
        layout = lay_out(
            acts,
            omega_norm,
            mode=mode,
            find_axis=self.columns != model.n_components and self.pins is None,
            potential=model.asymmetry_.level(),
            noisy=model.asymmetry_.kind == DENSITY,
            first_act=self.first_act,
        )
        self.first_act = layout.first_act or self.first_act
        acts.embedding[:] = layout.position
        acts.embedding.kl_divergence = layout.loss
        acts.forget_edges()
        used: Counter[str] = Counter()
        for gradient in self.gradients:
            used += getattr(gradient, "used", Counter())
        if len(used) > 1:
            steps = ", ".join(f"{count} by {method}" for method, count in used.items())
            model._say(f"Gradient: {steps}, as the grid was small enough or not")
        return layout

    def before_drift(self) -> np.ndarray:
        """The layout before the drift acts: the map alone, or all columns."""
        mode = self.mode(ANY_DRIFT)
        if mode in (FREE, EUCLIDEAN):
            return self._acts(EUCLIDEAN, 0.0).descend(0.0)
        if self.first_act is None:
            self.first_act = self._acts(mode, 0.0).settle()
        return self.first_act.position[:, :-1]

    def _acts(self, mode: str, omega_norm: float) -> TsneActs:
        model = self.model

        def build(position, omega_norm):
            embedding = model._build(self.affinities, position, omega_norm)
            self.gradients.append(embedding.gradient_descent_params["negative_gradient_method"])
            return embedding

        acts = TsneActs(build, self.start(mode), model._phases(), omega_norm, self.pins)
        model.embedding_ = acts.embedding
        return acts


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


def _run(embedding, phases, pins=None, **params) -> tuple[TSNEEmbedding, bool]:
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


# openTSNE's gradient descent, made safe: affinities survive whatever stops it.

# The KL divergence takes about as long as the gradient; the bar shows a recent one.
KL_EVERY = 25


@saved(gains=NONE | array("f8", "n m", "[0, inf)"), update=NONE | array("f8", "n m"))
class FinslerDescent(gradient_descent):
    """Momentum and gains as in openTSNE. Different are the following points.

    * Exaggeration is a factor beside P. A gradient of the user's is given P itself, multiplied in
      place; it is put back also after an exception or Ctrl-C.
    * An embedding stopped by a callback carries the KL divergence of that moment.
    * ``verbose`` shows a progress bar with the KL divergence.
    * The Euclidean gradients of openTSNE are refused: they would undo the drift.
    """

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
        objective, held = objective_function, _held(P, objective_function)
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


def _held(P, objective):
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


# Where a Finsler t-SNE starts: openTSNE's small initial maps, and a height of zero.

# openTSNE's figure: the first column starts with this standard deviation.
START_SPREAD = 1e-4
STARTS = ("pca", "spectral", "random")


def initial_embedding(initialization, n_components: int, P, X, random_state, *, flat: bool):
    """Start of shape (n, n_components).

    Parameters
    ----------
    initialization : {"pca", "spectral", "random"} or array of n_components − 1 or n_components
        columns
    P : sparse matrix, affinities
    X : array or sparse matrix of features, or None
    flat : bool
        Whether the map has one column fewer, and the height is zero.
    """
    n, m = P.shape[0], n_components
    if not isinstance(initialization, str):
        given = np.array(initialization, dtype=np.float64)
        if given.ndim != 2 or given.shape[0] != n or given.shape[1] not in (m - 1, m):
            raise ValueError(
                f"initialization: an array must have {n} rows and n_components − 1 = {m - 1} "
                f"columns (the map) or {m} (map and height), got shape {given.shape}."
            )
        check_start("initialization", given)
        return given if given.shape[1] == m else np.column_stack([given, np.zeros(n)])
    if initialization not in STARTS:
        raise ValueError(f"initialization must be an array or one of {STARTS}, got "
                         f"{initialization!r}.")  # fmt: skip
    columns = m - 1 if flat else m
    random_state = check_random_state(random_state)
    with one_blas_thread():
        if initialization == "pca" and X is not None:
            start = _principal(X, columns, random_state)
        elif initialization == "random":
            start = random_state.normal(size=(n, columns))
        else:
            start = spectral_map(scipy.sparse.csr_array(P), columns, random_state, X)
    start = _rescaled(np.asarray(start, dtype=np.float64), random_state)
    return start if columns == m else np.column_stack([start, np.zeros(n)])


def _principal(X, columns, random_state):
    """Principal components; columns that the data cannot fill are zero here and get noise later."""
    found = min(columns, *X.shape) if not scipy.sparse.issparse(X) else min(columns, X.shape[1] - 1)
    start = np.zeros((X.shape[0], columns))
    offset = large_offset(X)
    X = X if offset is None else X - offset
    if found > 0 and (scipy.sparse.issparse(X) or np.ptp(X, axis=0).any()):
        solver = TruncatedSVD if scipy.sparse.issparse(X) else PCA
        start[:, :found] = solver(found, random_state=random_state).fit_transform(X)
    return start


def _rescaled(start, random_state):
    start = start - start.mean(axis=0)
    if start[:, 0].std() == 0 or not np.isfinite(start[:, 0].std()):
        return random_state.normal(scale=START_SPREAD, size=start.shape)
    upstream.rescale(start, inplace=True, target_std=START_SPREAD)
    return upstream.jitter(start, inplace=True, random_state=random_state)
