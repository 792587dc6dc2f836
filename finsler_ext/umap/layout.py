"""From the graph of a FinslerUMAP model to its embedding, at a given drift or at the best one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from tqdm.auto import tqdm

from finsler_ext._messages import LAYOUT, stage
from finsler_ext._threads import one_blas_thread
from finsler_ext.asymmetry import DENSITY, is_symmetric
from finsler_ext.base import ANY_DRIFT
from finsler_ext.height.acts import (
    EUCLIDEAN,
    FREE,
    MAP_COLUMNS,
    FirstAct,
    Layout,
    height_mode,
    lay_out,
)
from finsler_ext.height.axis import turned
from finsler_ext.height.islands import Islands
from finsler_ext.height.pins import follow_pins, keep_pins, on_pins
from finsler_ext.height.start import initial_positions
from finsler_ext.umap.graph import isolated
from finsler_ext.umap.kernels import LossShape, UmapDescent, attraction, centred
from finsler_ext.umap.loss import AxisLoss, UmapLoss, umap_loss

# umap-learn's figures.
DEFAULT_EPOCHS, DEFAULT_EPOCHS_LARGE, LARGE = 500, 200, 10_000
# Share of the epochs of the first act. 15-NN preservation of the map of 1500 flowers at ω = 0.5:
# 0.397, 0.399, 0.402 with 0.6, 0.7, 0.8.
FIRST_ACT = 0.8
# Learning rates at the beginning of the second act: of the map, and of a height that moves freely.
# Trustworthiness of the map of a Gaussian in 10 dimensions, three columns, ω = 0.01: 0.811, 0.818,
# 0.825 with a map rate of 0.03, 0.02, 0.01 (UMAP in 2-D 0.831).
MAP_RATE, HEIGHT_RATE = 0.01, 0.15
# That of a free layout, all columns alike. 15-NN preservation of all columns, ω = 0.5, mean of five
# sets: 0.550 (0.544 where steps fall linearly to the end).
FREE_RATE = 0.03
# Edges that the search for the axis looks at; an evenly spaced selection stands for more.
AXIS_EDGES = 1_000_000
# Partners of each point in that search: to first order in ω repulsion does not enter.
AXIS_PARTNERS = 8

NO_EDGES = Islands(0, float("nan"), "no two points are connected")


class UmapActs:
    """The two acts as epochs of UMAP's kernel; a `finsler_ext.height.acts.Descent`.

    Parameters
    ----------
    descent : UmapDescent
    start : array of shape (n, m)
        The last column is the height.
    keep_epochs : sequence of int
        Epochs after which to keep a copy of the layout.
    callback : callable, optional
        Called as ``callback(epoch, position)`` after every epoch, counted from 1, with positions
        in the frame they have at that moment.
    progress : callable
        Wraps the range of epochs, e.g. in a progress bar.
    pins : array of shape (n, m), optional
        What is given and does not move; nan where free.
    """

    def __init__(
        self,
        descent: UmapDescent,
        start: np.ndarray,
        *,
        keep_epochs: Sequence[int] = (),
        callback: Callable[[int, np.ndarray], object] | None = None,
        progress: Callable[[range], Iterable[int]] = iter,
        pins: np.ndarray | None = None,
    ):
        self.pins, self.fixed = pins, None if pins is None else np.isfinite(pins)
        self.descent, self.start = descent, np.asarray(start, dtype=np.float32)
        self.keep_epochs, self.callback, self.progress = keep_epochs, callback, progress
        self.n_epochs, self.first = descent.n_epochs, int(FIRST_ACT * descent.n_epochs)
        self.graph, self.moves = descent.graph, descent.n_epochs > 0
        self.n_threads = descent.n_threads
        self.pull = partial(attraction, a=descent.shape.a, b=descent.shape.b)
        self.kept: dict[int, np.ndarray] = {}

    def settle(self) -> FirstAct:
        flat = self.start[:, :-1]  # without a drift a height of zero only costs time
        position = self._run(flat, range(self.first), 0.0, rate_until=self.first)
        return FirstAct(self._with_height(position), dict(self.kept))

    def release(self, position, omega_norm, *, share):
        return self._second_act(position, omega_norm, MAP_RATE, share * HEIGHT_RATE)

    def descend(self, omega_norm):
        first = self.first or self.n_epochs
        start = keep_pins(self.start, self.pins)
        position = self._run(start, range(first), omega_norm, rate_until=first)
        if first == self.n_epochs:
            return centred(position, self.pins)
        return self._second_act(position, omega_norm, FREE_RATE, FREE_RATE)

    def _second_act(self, position, omega_norm, map_rate, height_rate):
        epochs = range(self.first, self.n_epochs)
        left = 1.0 - self.first / self.n_epochs  # of the learning rate
        rates = map_rate / left, height_rate / left
        return centred(self._run(position, epochs, omega_norm, rates=rates), self.pins)

    def _run(self, position, epochs: range, omega_norm: float, **rates) -> np.ndarray:
        watched = self.callback is not None or any(0 < e < self.n_epochs for e in self.keep_epochs)
        return self.descent.run(
            position,
            self.progress(epochs),
            omega_norm=omega_norm,
            fixed=None if self.fixed is None else self.fixed[:, : position.shape[1]],
            after_epoch=self._after_epoch if watched else None,
            **rates,
        )

    def loss(self, position, omega_norm) -> UmapLoss:
        shape, n_threads = self.descent.shape, self.n_threads
        return umap_loss(position, self.graph, shape, omega_norm=omega_norm, n_threads=n_threads)

    def rise_loss(self, position, omega_norm) -> float:
        return self.axis_loss(position, omega_norm)(np.eye(position.shape[1])[-1])[0]

    def axis_loss(self, position, omega_norm) -> AxisLoss:
        return AxisLoss(
            position,
            self.graph,
            self.descent.shape,
            omega_norm=omega_norm,
            n_threads=self.n_threads,
            most_edges=AXIS_EDGES,
            partners=AXIS_PARTNERS,
        )

    def shown(self, layout: Layout) -> list[np.ndarray]:
        """The layout after each epoch asked for, in the frame of the final one."""
        kept = self.kept if layout.first_act is None else layout.first_act.kept | self.kept
        kept = {epoch: turned(part, layout.frame) for epoch, part in kept.items()}
        start = centred(keep_pins(self.start, self.pins), self.pins)
        kept |= {epoch: turned(start, layout.frame) for epoch in self.keep_epochs if epoch <= 0}
        kept[self.n_epochs] = layout.position
        return [kept[epoch] for epoch in self.keep_epochs]

    def _with_height(self, position):
        """With a height of zero, if it has none."""
        missing = self.start.shape[1] - position.shape[1]
        return np.pad(position, ((0, 0), (0, missing)))

    def _after_epoch(self, epoch, position):
        position = self._with_height(position)
        if epoch in self.keep_epochs:
            self.kept[epoch] = centred(position, self.pins)
        if self.callback is not None:
            self.callback(epoch, position)


class Rows(NamedTuple):
    """What a fit embeds.

    X : checked data; None for a graph made of others
    init : the parameter, or positions to start from
    random_state : numpy RandomState
    y, ensure_all_finite, callback : as in `fit`
    pins : given places, nan where free
    strengths : of the edges of a digraph, if the data has any
    distinct, inverse : with unique=True, the rows kept, and which of them stands for each row
    """

    X: Any
    init: Any
    random_state: np.random.RandomState
    y: Any = None
    ensure_all_finite: Any = True
    callback: Callable | None = None
    pins: np.ndarray | None = None
    strengths: Any = None
    distinct: np.ndarray | None = None
    inverse: np.ndarray | None = None


class UmapLayout(NamedTuple):
    """A layout of all rows; those without any neighbour are nan.

    embeddings : arrays of shape (n, m), one per epoch asked for
    height, loss, islands : as in `finsler_ext.height.acts.Layout`
    """

    embeddings: list[np.ndarray]
    height: str
    loss: UmapLoss
    islands: Islands


class Layouts:
    """From drift and callback to a layout; they share graph, starts and first acts."""

    def __init__(self, model, rows: Rows):
        self.model, self.rows, self.epochs = model, rows, epochs_of(model)
        self.joined = np.flatnonzero(~isolated(model.graph_))
        self.graph, self.init, self.pins = model.graph_, rows.init, rows.pins
        self.features = None if model.metric == "precomputed" else rows.X
        given = isinstance(self.init, np.ndarray)
        self.given_columns = self.init.shape[1] if given else None
        if self.joined.size < model.graph_.shape[0]:
            self.graph = model.graph_[self.joined][:, self.joined]
            self.features = None if self.features is None else self.features[self.joined]
            self.init = self.init[self.joined] if given else self.init
            self.pins = None if self.pins is None else self.pins[self.joined]
        self.potential = model.asymmetry_.level()[self.joined] if self.joined.size else None
        self.symmetric = self.joined.size == 0 or is_symmetric(self.graph)
        self.starts: dict[str, tuple] = {}
        self.first_acts: dict[str, FirstAct] = {}
        self.before = deepcopy(rows.random_state)

    def __call__(self, omega_norm: float, callback: Callable | None = None) -> UmapLayout:
        model, inverse = self.model, self.rows.inverse
        if self.joined.size == 0:
            nowhere = [self._whole(np.empty((0, model.n_components))) for _ in self.epochs]
            return UmapLayout(nowhere, FREE, UmapLoss(0.0, 0.0, 0.0, 0.0), NO_EDGES)

        def show(epoch, part):  # a copy: the layout goes on in its own buffers
            shown = self._whole(part.copy())
            callback(epoch, shown if inverse is None else shown[inverse])

        mode = self._mode(omega_norm)
        acts = self._acts(mode, None if callback is None else show)
        stage(LAYOUT)
        layout = lay_out(
            acts,
            omega_norm,
            mode=mode,
            find_axis=self.given_columns != model.n_components and self.pins is None,
            potential=self.potential,
            noisy=model.asymmetry_.kind == DENSITY,
            # a callback sees both acts
            first_act=None if callback is not None else self.first_acts.get(mode),
        )
        if layout.first_act is not None:
            self.first_acts[mode] = layout.first_act
        embeddings = [self._whole(part) for part in acts.shown(layout)]
        return UmapLayout(embeddings, layout.height, layout.loss, layout.islands)

    def before_drift(self) -> np.ndarray:
        """The map at the end of the first act; of a free layout, all columns without a drift."""
        mode = self._mode(ANY_DRIFT)
        if mode == FREE:
            return self(0.0).embeddings[-1]
        if mode not in self.first_acts:
            self.first_acts[mode] = self._acts(mode).settle()
        return self._whole(self.first_acts[mode].position[:, :-1])

    def _mode(self, omega_norm: float) -> str:
        model = self.model
        return height_mode(
            model.height,
            model.n_components,
            omega_norm,
            self.symmetric,
            self.given_columns,
            model.asymmetry_.is_directed,
        )

    def _whole(self, part: np.ndarray) -> np.ndarray:
        """Rows without any neighbour are nan, or where they are pinned."""
        n = self.model.graph_.shape[0]
        if self.joined.size == n:
            return part
        placed = np.full((n, part.shape[1]), np.nan, dtype=np.float32)
        placed[self.joined] = part
        return keep_pins(placed, self.rows.pins)

    def _acts(self, mode: str, callback: Callable | None = None) -> UmapActs:
        model = self.model
        if mode not in self.starts:
            rng = deepcopy(self.before)
            stage("computing the start")
            start = self._start(mode, rng)
            seed = int(rng.randint(np.iinfo(np.int32).max))
            descent = make_descent(model, self.graph, max(self.epochs), seed)
            self.starts[mode] = descent, start, rng.get_state()
        descent, start, after = self.starts[mode]
        self.rows.random_state.set_state(after)
        bar = {"disable": not model.verbose} | model._bar_kwds
        return UmapActs(
            descent,
            start,
            keep_epochs=self.epochs,
            callback=callback,
            # even a disabled bar starts a thread that watches it
            progress=iter if bar["disable"] else partial(tqdm, **bar),
            pins=self.pins,
        )

    def _start(self, mode: str, random_state) -> np.ndarray:
        """Initial positions, with a height of zero where it was not given."""
        m, init, graph, pins = self.model.n_components, self.init, self.graph, self.pins
        # a free height starts from zero where a map remains, as in the paper
        flat = mode != EUCLIDEAN and (mode != FREE or m > MAP_COLUMNS)
        columns = self.given_columns or (m - 1 if flat else m)
        if isinstance(init, str) and init == "tswspectral":
            from umap.spectral import tswspectral_layout

            symmetric = scipy.sparse.coo_matrix((graph + graph.T) * 0.5)
            metric = self.model._input_distance_func
            with one_blas_thread():
                init = tswspectral_layout(self.features, symmetric, columns, random_state, metric)
        start = initial_positions(
            init, columns, graph, self.features, random_state, as_given=pins is not None
        )
        # only a given start has a frame that matters
        start = keep_pins(start, pins) if self.given_columns else on_pins(start, pins, graph)
        if columns < m:
            height = np.zeros(len(start), dtype=np.float32)
            if pins is not None and mode in (FREE, EUCLIDEAN):
                height = follow_pins(height, pins[:, -1], graph).astype(np.float32)
            start = np.column_stack([start, height])
        return start


def epochs_of(model) -> list[int]:
    if model._n_epochs_list:
        return sorted(model._n_epochs_list)
    default = DEFAULT_EPOCHS if model.graph_.shape[0] <= LARGE else DEFAULT_EPOCHS_LARGE
    return [default if model.n_epochs is None else int(model.n_epochs)]


def make_descent(model, graph, n_epochs, seed) -> UmapDescent:
    return model._descent(
        graph,
        loss_shape(model),
        n_epochs=n_epochs,
        seed=seed,
        learning_rate=model.learning_rate,
        n_threads=model._n_threads,
    )


def loss_shape(model) -> LossShape:
    strength, rate = model.repulsion_strength, model.negative_sample_rate
    return LossShape(model._a, model._b, strength, rate, model._space())
