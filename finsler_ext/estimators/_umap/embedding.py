"""From the graph of a FinslerUMAP model to its embedding, at a given drift or at the best one."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from tqdm.auto import tqdm

from finsler_ext._progress import LAYOUT, stage
from finsler_ext._threads import one_blas_thread
from finsler_ext.construct.symmetry import is_symmetric
from finsler_ext.estimators._base import ANY_DRIFT
from finsler_ext.estimators._umap.graph import isolated
from finsler_ext.layout.height_mode import FREE, HELD, height_mode
from finsler_ext.layout.start import initial_positions
from finsler_ext.layout.umap.forces import LossShape
from finsler_ext.layout.umap.schedule import UmapSchedule

__all__ = ["Layouts", "Rows", "at_best_drift", "loss_shape"]

# umap-learn's figures.
DEFAULT_EPOCHS, DEFAULT_EPOCHS_LARGE, LARGE = 500, 200, 10_000


class Rows(NamedTuple):
    """What a fit embeds.

    X : checked data; None for a graph made of others
    init : the parameter, or positions to start from
    random_state : numpy RandomState
    y, ensure_all_finite, callback : as in `fit`
    distinct, inverse : with unique=True, the rows kept, and which of them stands for each row
    """

    X: Any
    init: Any
    random_state: np.random.RandomState
    y: Any = None
    ensure_all_finite: Any = True
    callback: Callable | None = None
    distinct: np.ndarray | None = None
    inverse: np.ndarray | None = None


def at_best_drift(model, lay_out, callback):
    """Layout and embeddings at the drift that omega_norm="auto" chooses."""
    found = {}

    def embed_at(omega_norm):
        found[omega_norm] = lay_out(omega_norm)
        return found[omega_norm][1][-1]

    chosen = model._chosen_drift(
        model.graph_, lambda: lay_out(None), embed_at, model._knn_indices[:, 1:]
    )
    if callback is None and chosen in found:
        return found[chosen]
    return lay_out(chosen, callback)


class Layouts:
    """From drift and callback to a layout and its embeddings after each epoch asked for.

    The layouts share graph, starts, random numbers and first acts. Points without any neighbour
    are nan.
    """

    def __init__(self, model, rows: Rows):
        self.model, self.inverse, self.random_state = model, rows.inverse, rows.random_state
        self.n, self.init, self.epochs = model.graph_.shape[0], rows.init, _epochs(model)
        self.joined = np.flatnonzero(~isolated(model.graph_))
        self.graph = model.graph_
        self.features = None if model.metric == "precomputed" else rows.X
        if not self._everything:
            self.graph = model.graph_[self.joined][:, self.joined]
            self.features = None if self.features is None else self.features[self.joined]
            if isinstance(self.init, np.ndarray):
                self.init = self.init[self.joined]
        self.level = model.asymmetry_.level()[self.joined] if self.joined.size else None
        self.symmetric = self.joined.size == 0 or is_symmetric(self.graph)
        self.schedules: dict[str, tuple] = {}
        self.before = deepcopy(rows.random_state)

    def __call__(self, omega_norm: float | None, callback: Callable | None = None):
        """Without a drift (None) it returns the layout before the drift acts."""
        model, m = self.model, self.model.n_components
        if self.joined.size == 0:
            model.height_ = FREE
            return None, [self._whole(np.empty((0, m))) for _ in self.epochs]

        def show(epoch, part):  # a copy: the layout goes on in its own buffers
            shown = self._whole(part.copy())
            callback(epoch, shown if self.inverse is None else shown[self.inverse])

        columns = self.init.shape[1] if isinstance(self.init, np.ndarray) else None
        drift = ANY_DRIFT if omega_norm is None else omega_norm
        schedule = self._schedule(height_mode(model.height, m, drift, self.symmetric, columns))
        if omega_norm is None:
            return self._whole(schedule.before_drift())
        stage(LAYOUT)
        layout = schedule.at(
            omega_norm,
            keep_epochs=self.epochs,
            callback=None if callback is None else show,
            progress=_progress(model),
        )
        return layout, [self._whole(part) for part in layout.kept]

    @property
    def _everything(self) -> bool:
        return self.joined.size == self.n

    def _whole(self, part: np.ndarray) -> np.ndarray:
        if self._everything:
            return part
        placed = np.full((self.n, part.shape[1]), np.nan, dtype=np.float32)
        placed[self.joined] = part
        return placed

    def _schedule(self, mode: str) -> UmapSchedule:
        if mode not in self.schedules:
            rng = deepcopy(self.before)
            stage("computing the start")
            start = _start(self.model, self.init, self.graph, self.features, rng, mode)
            seed = int(rng.randint(np.iinfo(np.int32).max))
            made = _schedule(
                self.model, self.graph, start, mode, max(self.epochs), seed, self.level
            )
            self.schedules[mode] = made, rng.get_state()
        found, after = self.schedules[mode]
        self.random_state.set_state(after)
        return found


def _epochs(model) -> list[int]:
    if model._n_epochs_list:
        return sorted(model._n_epochs_list)
    default = DEFAULT_EPOCHS if model.graph_.shape[0] <= LARGE else DEFAULT_EPOCHS_LARGE
    return [default if model.n_epochs is None else int(model.n_epochs)]


def _schedule(model, graph, start, mode, n_epochs, seed, level) -> UmapSchedule:
    descent = model._descent(
        graph,
        loss_shape(model),
        n_epochs=n_epochs,
        seed=seed,
        learning_rate=model.learning_rate,
        n_threads=model._n_threads,
    )
    positions, frame_is_given = start
    return UmapSchedule(
        descent,
        positions,
        height=HELD if mode == HELD else FREE,
        find_axis=mode == FREE and not frame_is_given,
        level=level,
        tolerance=model.asymmetry_.tolerance,
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


def _start(model, init, graph, features, random_state, mode):
    """Initial positions, and whether their frame was given and must stay."""
    m = model.n_components
    given = init.shape[1] if isinstance(init, np.ndarray) else None
    columns = given or (m - 1 if mode == HELD else m)
    if isinstance(init, str) and init == "tswspectral":
        from umap.spectral import tswspectral_layout

        symmetric = scipy.sparse.coo_matrix((graph + graph.T) * 0.5)
        with one_blas_thread():
            init = tswspectral_layout(
                features, symmetric, columns, random_state, model._input_distance_func
            )
    start = initial_positions(init, columns, graph, features, random_state)
    if columns < m:
        start = np.column_stack([start, np.zeros(len(start), dtype=np.float32)])
    return start, given == m
