"""The two acts of a t-SNE layout as phases of openTSNE's descent, and where it starts.

At zero height the gradient of the map columns is that of Euclidean t-SNE on the averaged
affinities, whatever the drift. So the first act lays out the map by itself, in as many iterations
as openTSNE takes. In the second the height descends, as fast as `finsler_ext.height.acts` lets it,
and springs hold the map. A layout starts from one of openTSNE's small maps and a height of zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from openTSNE import initialization as upstream
from openTSNE.tsne import TSNEEmbedding
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.utils import check_random_state

from finsler_ext._messages import LAYOUT, stage
from finsler_ext._threads import one_blas_thread, resolve_n_jobs
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
    rotation_onto_last,
    turned,
)
from finsler_ext.height.start import keep_pins, on_pins, spectral_map
from finsler_ext.tsne.gradient import SAMPLED_ROWS
from finsler_ext.tsne.optimizer import HeldMap, Phase, forget_edges, held_affinities, run_phases
from finsler_ext.validation import check_start, check_start_shape, large_offset

# The second act has so many iterations, at most those of the last phase, and as many more for a
# height that moves freely.
HEIGHT_ITERATIONS = 50
STARTS = ("pca", "spectral", "random")
# openTSNE's figure: the first column starts with this standard deviation.
START_SPREAD = 1e-4


def edge_pull(distance, dof: float) -> np.ndarray:
    """Derivative of −ln of the kernel by the length of an edge: (ν+1)/ν · d/(1 + d²/ν)."""
    distance = np.asarray(distance, dtype=float)
    return (dof + 1.0) / dof * distance / (1.0 + distance**2 / dof)


class TsneActs:
    """The acts of a layout at one drift; a `finsler_ext.height.acts.Descent`.

    ``build(position, omega_norm)`` returns a TSNEEmbedding with a `FinslerGradient`. The one that
    moves is ``embedding``: when a descent is interrupted, what was reached.
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
        self.held = held_affinities(self.graph, self.gradient)

    @property
    def gradient(self):
        return self.embedding.gradient_descent_params["negative_gradient_method"]

    def settle(self) -> FirstAct:
        """The map alone, without a drift."""
        moving = self.build(self.start[:, :-1], 0.0)
        gradient = moving.gradient_descent_params["negative_gradient_method"]
        try:
            moving, stopped = run_phases(moving, self.phases, self.pins)
        finally:
            self.embedding[:, :-1] = moving
            forget_edges(gradient)
        return FirstAct(np.array(self.embedding), stopped=stopped)

    def release(self, position, omega_norm, *, share):
        if share == 0:  # the map stays as it settled
            return position
        last = self.phases[-1]
        n_iter = min(round(HEIGHT_ITERATIONS * (1.0 + share)), last.n_iter)
        gradient = self.gradient
        self.embedding[:] = position
        self.embedding, _ = run_phases(
            self.embedding,
            [last._replace(n_iter=n_iter)],
            self.pins,
            negative_gradient_method=HeldMap(gradient, share, position[:, :-1]),
        )
        forget_edges(gradient)  # what comes next needs as much memory
        return np.array(self.embedding)

    def descend(self, omega_norm):
        self.embedding, _ = run_phases(self.embedding, self.phases, self.pins)
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
        if len(position) < 2 * SAMPLED_ROWS:
            return self._divergence(position)[0]
        params = self.embedding.gradient_descent_params
        given = params["dof"], params["theta"], params["n_jobs"]
        return self.gradient.sampled_divergence(np.asarray(position), self.held, *given)

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
        forget_edges(acts.gradient)  # nothing moves any more
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


def initial_embedding(initialization, n_components: int, P, X, random_state, *, flat: bool):
    """Start of shape (n, n_components); if ``flat``, its map has one column fewer and no height.

    An array may have one column fewer, too. X are the features, or None.
    """
    n, m = P.shape[0], n_components
    if not isinstance(initialization, str):
        given = np.array(initialization, dtype=np.float64)
        check_start_shape("initialization", given.shape, n, m)
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
    sparse = scipy.sparse.issparse(X)
    found = min(columns, X.shape[0], X.shape[1] - 1 if sparse else X.shape[1])
    start = np.zeros((X.shape[0], columns))
    offset = large_offset(X)
    X = X if offset is None else X - offset
    if found > 0 and (sparse or np.ptp(X, axis=0).any()):
        solver = TruncatedSVD if sparse else PCA
        with np.errstate(all="ignore"):  # shares of no variance at all, which nobody reads
            start[:, :found] = solver(found, random_state=random_state).fit_transform(X)
    return start


def _rescaled(start, random_state):
    start = start - start.mean(axis=0)
    if start[:, 0].std() == 0 or not np.isfinite(start[:, 0].std()):
        return random_state.normal(scale=START_SPREAD, size=start.shape)
    upstream.rescale(start, inplace=True, target_std=START_SPREAD)
    return upstream.jitter(start, inplace=True, random_state=random_state)
