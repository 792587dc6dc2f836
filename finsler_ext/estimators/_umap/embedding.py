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
from finsler_ext.construct.symmetry import is_symmetric
from finsler_ext.estimators._base import ANY_DRIFT
from finsler_ext.estimators._umap.graph import isolated
from finsler_ext.layout.height_mode import FREE, HELD, height_mode
from finsler_ext.layout.start import initial_positions
from finsler_ext.layout.umap.schedule import UmapSchedule

__all__ = ["Rows", "at_best_drift", "layouts"]

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


def layouts(model, rows: Rows) -> Callable:
    """A function from drift and callback to a layout and its embeddings after each epoch asked for.

    Its runs share graph, starts, random numbers and first acts. Points without any neighbour
    are nan. Without a drift (None) it returns the layout before the drift acts.
    """
    n, m = model.graph_.shape[0], model.n_components
    X, init, random_state, inverse = rows.X, rows.init, rows.random_state, rows.inverse
    epochs = _epochs(model)
    joined = np.flatnonzero(~isolated(model.graph_))
    everything = joined.size == n
    graph = model.graph_ if everything else model.graph_[joined][:, joined]
    features = None if model.metric == "precomputed" else X
    if not everything:
        features = features if features is None else features[joined]
        init = init[joined] if isinstance(init, np.ndarray) else init
    level = model.asymmetry_.level()[joined] if joined.size else None
    symmetric = joined.size == 0 or is_symmetric(graph)
    schedules: dict[str, tuple] = {}
    before = deepcopy(random_state)

    def schedule_of(mode):
        if mode not in schedules:
            rng = deepcopy(before)
            stage("computing the start")
            start = _start(model, init, graph, features, rng, mode)
            seed = int(rng.randint(np.iinfo(np.int32).max))
            schedules[mode] = (
                _schedule(model, graph, start, mode, max(epochs), seed, level),
                (rng.get_state()),
            )
        found, after = schedules[mode]
        random_state.set_state(after)
        return found

    def whole(part):
        if everything:
            return part
        placed = np.full((n, part.shape[1]), np.nan, dtype=np.float32)
        placed[joined] = part
        return placed

    def lay_out(omega_norm, callback=None):
        if joined.size == 0:
            model.height_ = FREE
            return None, [whole(np.empty((0, m))) for _ in epochs]

        def show(epoch, part):  # a copy: the layout goes on in its own buffers
            callback(epoch, whole(part.copy())[slice(None) if inverse is None else inverse])

        columns = init.shape[1] if isinstance(init, np.ndarray) else None
        drift = ANY_DRIFT if omega_norm is None else omega_norm
        mode = height_mode(model.height, m, drift, symmetric, columns)
        if omega_norm is None:
            return whole(schedule_of(mode).before_drift())
        schedule = schedule_of(mode)
        stage(LAYOUT)
        layout = schedule.at(
            omega_norm,
            keep_epochs=epochs,
            callback=None if callback is None else show,
            progress=_progress(model),
        )
        return layout, [whole(part) for part in layout.kept]

    return lay_out


def _epochs(model) -> list[int]:
    if model._n_epochs_list:
        return sorted(model._n_epochs_list)
    default = DEFAULT_EPOCHS if model.graph_.shape[0] <= LARGE else DEFAULT_EPOCHS_LARGE
    return [default if model.n_epochs is None else int(model.n_epochs)]


def _schedule(model, graph, start, mode, n_epochs, seed, level) -> UmapSchedule:
    descent = model._descent(
        graph,
        a=model._a,
        b=model._b,
        n_epochs=n_epochs,
        seed=seed,
        learning_rate=model.learning_rate,
        repulsion_strength=model.repulsion_strength,
        negative_sample_rate=model.negative_sample_rate,
        space=model._space(),
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
        init = tswspectral_layout(
            features, symmetric, columns, random_state, model._input_distance_func
        )
    start = initial_positions(init, columns, graph, features, random_state)
    if columns < m:
        start = np.column_stack([start, np.zeros(len(start), dtype=np.float32)])
    return start, given == m
