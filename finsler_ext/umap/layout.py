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
# Share of the epochs of the first act. ω = 0.5, two seeds: the map's k-means AMI and 15-NN
# preservation of 1500 flowers 0.604 and 0.397 with 0.6, 0.604 and 0.399 with 0.7, 0.616 and 0.402
# with 0.8 (0.598 and 0.394 with 0.6 and steps that have not become zero); of 700 blood cells 0.609
# and 0.434, 0.607 and 0.434, 0.606 and 0.440 (0.609 and 0.427).
FIRST_ACT = 0.8
# Learning rates at the beginning of the second act: of the map, and of a height that moves freely.
# Three columns at ω = 0.01. Trustworthiness of the map with a map rate of 0.03, 0.02, 0.01: 0.811,
# 0.818, 0.825 for a Gaussian in 10 dimensions, 0.922, 0.924, 0.926 for breast cancer (UMAP in 2-D
# 0.831, 0.920). 15-NN preservation of all columns: 0.312, 0.311, 0.310; 0.495, 0.496, 0.490 (UMAP
# in 3-D 0.307, 0.495); of a mixture in 40 dimensions 0.651, 0.651, 0.650 (0.644), with a map at
# rest 0.635, with a height rate of 0.3 0.645.
MAP_RATE, HEIGHT_RATE = 0.01, 0.15
# That of a free layout, all columns alike: 15-NN preservation of all columns of three mixtures,
# breast cancer and wine, means of three seeds at ω = 0.01, 0.1, 0.5: 0.569, 0.568, 0.550 (0.562,
# 0.562, 0.544 where steps fall linearly to the end; the paper's rules 0.563, 0.562, 0.544).
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
        self.graph, self.moves = descent.graph, descent.n_epochs > 0
        self.n_threads = descent.n_threads
        self.pull = partial(attraction, a=descent.shape.a, b=descent.shape.b)
        self.kept: dict[int, np.ndarray] = {}

    def settle(self) -> FirstAct:
        release = self._first_epochs
        position = self.descent.run(
            self.start,
            self.progress(range(release)),
            omega_norm=0.0,
            rates=(1.0, 0.0),
            rate_until=release,
            fixed=self.fixed,
            after_epoch=self._after_epoch if self._is_watched else None,
        )
        return FirstAct(position, dict(self.kept))

    def release(self, position, omega_norm, *, share):
        return self._second_act(position, omega_norm, MAP_RATE, share * HEIGHT_RATE)

    def _second_act(self, position, omega_norm, map_rate, height_rate):
        first, n_epochs = self._first_epochs, self.descent.n_epochs
        begin = 1.0 - first / n_epochs  # what is left of the learning rate
        position = self.descent.run(
            position,
            self.progress(range(first, n_epochs)),
            omega_norm=omega_norm,
            rates=(map_rate / begin, height_rate / begin),
            fixed=self.fixed,
            after_epoch=self._after_epoch if self._is_watched else None,
        )
        return centred(position, self.pins)

    def descend(self, omega_norm):
        first = self._first_epochs or self.descent.n_epochs
        position = self.descent.run(
            keep_pins(self.start, self.pins),
            self.progress(range(first)),
            omega_norm=omega_norm,
            rate_until=first,
            fixed=self.fixed,
            after_epoch=self._after_epoch if self._is_watched else None,
        )
        if first == self.descent.n_epochs:
            return centred(position, self.pins)
        return self._second_act(position, omega_norm, FREE_RATE, FREE_RATE)

    def loss(self, position, omega_norm) -> UmapLoss:
        return umap_loss(
            position,
            self.graph,
            omega_norm=omega_norm,
            n_threads=self.descent.n_threads,
            **self.descent.shape._asdict(),
        )

    def rise_loss(self, position, omega_norm) -> float:
        return self.axis_loss(position, omega_norm)(np.eye(position.shape[1])[-1])[0]

    def axis_loss(self, position, omega_norm) -> AxisLoss:
        return AxisLoss(
            position,
            self.graph,
            self.descent.shape,
            omega_norm=omega_norm,
            n_threads=self.descent.n_threads,
            most_edges=AXIS_EDGES,
            partners=AXIS_PARTNERS,
        )

    def shown(self, layout: Layout) -> list[np.ndarray]:
        """The layout after each epoch asked for, in the frame of the final one."""
        kept = self.kept if layout.first_act is None else layout.first_act.kept | self.kept
        kept = {epoch: turned(part, layout.frame) for epoch, part in kept.items()}
        start = centred(keep_pins(self.start, self.pins), self.pins)
        kept |= {epoch: turned(start, layout.frame) for epoch in self.keep_epochs if epoch <= 0}
        kept[self.descent.n_epochs] = layout.position
        return [kept[epoch] for epoch in self.keep_epochs]

    @property
    def _first_epochs(self) -> int:
        return int(FIRST_ACT * self.descent.n_epochs)

    @property
    def _is_watched(self) -> bool:
        last = self.descent.n_epochs
        return self.callback is not None or any(0 < e < last for e in self.keep_epochs)

    def _after_epoch(self, epoch, position):
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
    distinct, inverse : with unique=True, the rows kept, and which of them stands for each row
    pins : given places, nan where free
    strengths : of the edges of a digraph, if the data has any
    """

    X: Any
    init: Any
    random_state: np.random.RandomState
    y: Any = None
    ensure_all_finite: Any = True
    callback: Callable | None = None
    distinct: np.ndarray | None = None
    inverse: np.ndarray | None = None
    strengths: Any = None
    pins: np.ndarray | None = None


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
        self.model, self.inverse, self.random_state = model, rows.inverse, rows.random_state
        self.n, self.init, self.epochs = model.graph_.shape[0], rows.init, epochs_of(model)
        self.joined = np.flatnonzero(~isolated(model.graph_))
        self.graph, self.pins = model.graph_, rows.pins
        self.features = None if model.metric == "precomputed" else rows.X
        if not self._everything:
            self.graph = model.graph_[self.joined][:, self.joined]
            self.features = None if self.features is None else self.features[self.joined]
            if isinstance(self.init, np.ndarray):
                self.init = self.init[self.joined]
        self.potential = model.asymmetry_.level()[self.joined] if self.joined.size else None
        self.symmetric = self.joined.size == 0 or is_symmetric(self.graph)
        self.starts: dict[str, tuple] = {}
        self.first_acts: dict[str, FirstAct] = {}
        self.before = deepcopy(rows.random_state)

    def __call__(self, omega_norm: float, callback: Callable | None = None) -> UmapLayout:
        model = self.model
        if self.joined.size == 0:
            nowhere = [self._whole(np.empty((0, model.n_components))) for _ in self.epochs]
            return UmapLayout(nowhere, FREE, UmapLoss(0.0, 0.0, 0.0, 0.0), NO_EDGES)

        def show(epoch, part):  # a copy: the layout goes on in its own buffers
            shown = self._whole(part.copy())
            callback(epoch, shown if self.inverse is None else shown[self.inverse])

        mode = self._mode(omega_norm)
        acts = self._acts(mode, None if callback is None else show)
        stage(LAYOUT)
        layout = lay_out(
            acts,
            omega_norm,
            mode=mode,
            find_axis=not self._frame_is_given and self.pins is None,
            potential=self.potential,
            noisy=model.asymmetry_.kind == DENSITY,
            # who watches sees both acts
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
            self._given_columns,
            model.asymmetry_.is_directed,
        )

    @property
    def _given_columns(self) -> int | None:
        return self.init.shape[1] if isinstance(self.init, np.ndarray) else None

    @property
    def _frame_is_given(self) -> bool:
        return self._given_columns == self.model.n_components

    @property
    def _everything(self) -> bool:
        return self.joined.size == self.n

    def _whole(self, part: np.ndarray) -> np.ndarray:
        if self._everything:
            return part
        placed = np.full((self.n, part.shape[1]), np.nan, dtype=np.float32)
        placed[self.joined] = part
        return keep_pins(placed, self.pins)

    def _acts(self, mode: str, callback: Callable | None = None) -> UmapActs:
        if mode not in self.starts:
            rng = deepcopy(self.before)
            stage("computing the start")
            pins = self._joined_pins
            start = _start(self.model, self.init, self.graph, self.features, rng, mode, pins)
            seed = int(rng.randint(np.iinfo(np.int32).max))
            descent = make_descent(self.model, self.graph, max(self.epochs), seed)
            self.starts[mode] = descent, start, rng.get_state()
        descent, start, after = self.starts[mode]
        self.random_state.set_state(after)
        progress = _progress(self.model)
        return UmapActs(
            descent,
            start,
            keep_epochs=self.epochs,
            callback=callback,
            progress=progress,
            pins=self._joined_pins,
        )

    @property
    def _joined_pins(self) -> np.ndarray | None:
        return None if self.pins is None else self.pins[self.joined]


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
    return LossShape(
        model._a,
        model._b,
        model.repulsion_strength,
        model.negative_sample_rate,
        model._space(),
    )


def _progress(model):
    bar = {"disable": not model.verbose} | model._bar_kwds
    # Even a disabled bar starts a thread that watches it.
    return iter if bar["disable"] else partial(tqdm, **bar)


def _start(model, init, graph, features, random_state, mode, pins=None):
    """Initial positions, with a height of zero where it was not given."""
    m = model.n_components
    given = init.shape[1] if isinstance(init, np.ndarray) else None
    # a free height starts from zero where a map remains, as in the paper
    flat = mode != EUCLIDEAN and (mode != FREE or m > MAP_COLUMNS)
    columns = given or (m - 1 if flat else m)
    if isinstance(init, str) and init == "tswspectral":
        from umap.spectral import tswspectral_layout

        symmetric = scipy.sparse.coo_matrix((graph + graph.T) * 0.5)
        with one_blas_thread():
            init = tswspectral_layout(
                features, symmetric, columns, random_state, model._input_distance_func
            )
    start = initial_positions(
        init, columns, graph, features, random_state, as_given=pins is not None
    )
    # the frame of a start that was not given means nothing
    start = keep_pins(start, pins) if given else on_pins(start, pins, graph)
    if columns < m:
        height = np.zeros(len(start), dtype=np.float32)
        if pins is not None and mode in (FREE, EUCLIDEAN):
            height = follow_pins(height, pins[:, -1], graph).astype(np.float32)
        start = np.column_stack([start, height])
    return start
