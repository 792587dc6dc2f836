"""From the graph of a FinslerUMAP model to its embedding, at a given drift or at the best one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.sparse
from tqdm.auto import tqdm
from umap.spectral import tswspectral_layout

from finsler_ext._messages import LAYOUT, stage
from finsler_ext._threads import RowPool, one_blas_thread, run_rows
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
    turned,
)
from finsler_ext.height.islands import Islands
from finsler_ext.height.start import follow_pins, initial_positions, keep_pins, on_pins
from finsler_ext.schema import number, saved
from finsler_ext.umap.graph import isolated
from finsler_ext.umap.kernels import (
    N_STEPS,
    SUMMED,
    LossShape,
    Schedule,
    attraction,
    draw_partners,
    force_table,
    potential_table,
    schedule,
    step_kernel,
    sum_kernel,
)
from finsler_ext.umap.parameters import Rows

# umap-learn's figures.
DEFAULT_EPOCHS, DEFAULT_EPOCHS_LARGE, LARGE = 500, 200, 10_000
# Share of the epochs of the first act; with less, the map keeps fewer neighbours (15-NN: 0.402 of
# 1500 flowers, 0.397 with a share of 0.6).
FIRST_ACT = 0.8
# Learning rates at the beginning of the second act: of the map, and of a height that moves freely.
# Larger ones shake the map (trustworthiness of a Gaussian: 0.825, and 0.811 with 0.03).
MAP_RATE, HEIGHT_RATE = 0.01, 0.15
# That of a free layout, all columns alike; it keeps more neighbours (15-NN 0.550) than steps that
# fall linearly to the end (0.544).
FREE_RATE = 0.03
# Edges that the search for the axis looks at; an evenly spaced selection stands for more.
AXIS_EDGES = 1_000_000
# Partners of each point in that search: to first order in ω repulsion does not enter.
AXIS_PARTNERS = 8

NO_EDGES = Islands(0, float("nan"), "no two points are connected")


class UmapDescent:
    """Stochastic descent of the Finsler UMAP loss of one graph of memberships, epoch by epoch.

    An epoch's random numbers follow from the seed and the number of the epoch alone, so a descent
    may stop after any epoch and go on from there. The learning rate falls linearly to 0.
    """

    def __init__(
        self,
        graph,
        shape: LossShape,
        *,
        n_epochs: int,
        seed: int,
        learning_rate: float = 1.0,
        n_threads: int = 1,
    ):
        self.graph, self.shape, self.n_epochs = graph, shape, n_epochs
        self.learning_rate, self.n_threads = learning_rate, n_threads
        self._seed = np.uint64(seed)
        a, b, strength, negatives, _ = shape
        self._forces = tuple(np.float32(value) for value in (a, 2.0 * b, strength, negatives))
        self._stored: Schedule | None = None

    def run(
        self,
        position: np.ndarray,
        epochs: Iterable[int],
        *,
        omega_norm: float,
        rates: tuple[float, float] = (1.0, 1.0),
        rate_until: int | None = None,
        fixed: np.ndarray | None = None,
        after_epoch: Callable[[int, np.ndarray], object] | None = None,
    ) -> np.ndarray:
        """Positions after the given epochs, counted from 0; the start is not modified.

        ``rates`` multiply the learning rate of the map and that of the height, which falls to 0 at
        the epoch ``rate_until``, the last one by default. Entries that are ``fixed`` do not move.
        ``after_epoch(epoch, position)`` is called with epochs counted from 1.
        """
        position = np.asarray(position, dtype=np.float32)
        n, m = position.shape
        stored = self._schedule(position)
        position = position[stored.row]
        fixed = None if fixed is None else fixed[stored.row]
        moved = np.empty_like(position)
        until = self.n_epochs if rate_until is None else rate_until
        kernel = step_kernel(self.shape.space.forward, m)
        both_ways = self._both_ways(omega_norm)
        with RowPool(n, self.n_threads) as threads:
            for epoch in epochs:
                rate = self.learning_rate * (1.0 - epoch / until)
                both_rates = np.float32(rate * rates[0]), np.float32(rate * rates[1])
                for step in range(N_STEPS):
                    threads.run(
                        kernel, position, moved, *stored, self._forces, step, epoch + 1,
                        both_rates, np.float32(omega_norm), both_ways, self._seed,
                    )  # fmt: skip
                    if fixed is not None:
                        np.copyto(moved, position, where=fixed)
                    position, moved = moved, position
                if after_epoch is not None:
                    after_epoch(epoch + 1, position[stored.place])
        return position[stored.place]

    def _schedule(self, position: np.ndarray) -> Schedule:
        """Made with the first positions given."""
        if self._stored is None:
            self._stored = schedule(self.graph, self.n_epochs, position)
        return self._stored

    def _both_ways(self, omega_norm: float) -> bool:
        """Whether a negative pushes by i → k and by k → i; without a drift the two are the same."""
        return omega_norm > 0


def centred(position: np.ndarray, pins: np.ndarray | None = None) -> np.ndarray:
    """The loss does not see translations, so a drift of the whole must not leak out.

    Columns with a pin stay as they are.
    """
    mean = position.mean(axis=0, dtype=np.float64)
    if pins is not None:
        mean[np.isfinite(pins).any(axis=0)] = 0.0
    return position - mean.astype(np.float32)


# The loss: what the sampling kernel descends, as a number.
#
# An edge i → j is sampled in proportion to its membership p_ij, and each time its source draws r
# negatives, which push the source only. The potential of these moves is
#
#     L(Y) = Σ p_ij A(F_ij) + (r/2n) Σ_{i≠k} ½ (K_i + K_k) R(F_ik),   K_i = Σ_j p_ij,
#
# with A = −ln q and R = −ln(1 − q), both softened and limited as in the kernel. Where the K_i are
# equal, as in a membership graph, the expected move is −∇L up to a factor; a negative moves one end
# only, hence r/2. Edges are summed exactly. The second sum goes over all pairs of few points and
# over a random sample of many, with its standard error beside it.

# Partners that every point draws: all others if they are as few, and fewer from MANY_PAIRS on.
MOST_PARTNERS, FEWEST_PARTNERS = 200, 16
MANY_PAIRS = 300_000


@saved(
    value=number(nan=True),
    attraction=number(nan=True),
    repulsion=number(nan=True),
    error=number("[0, inf)", nan=True),
)
class UmapLoss(NamedTuple):
    """The loss of a layout.

    value : attraction + repulsion
    attraction : Σ p_ij A(F_ij), exact
    repulsion : the second sum
    error : standard error of the repulsion; 0 where all pairs were summed
    """

    value: float
    attraction: float
    repulsion: float
    error: float

    def __float__(self) -> float:
        return self.value


def umap_loss(
    position, graph, shape: LossShape, *, omega_norm: float, seed: int = 0, n_threads: int = 1
) -> UmapLoss:
    """The loss above, at positions whose last column is the axis of the drift.

    ``seed`` is that of the partners drawn where there are too many pairs.
    """
    at = AxisLoss(position, graph, shape, omega_norm=omega_norm, seed=seed, n_threads=n_threads)
    return at.loss(np.eye(at.position.shape[1])[-1])


class AxisLoss:
    """The loss as a function of the direction of the drift, on the same pairs for all directions.

    Called with a unit vector, it returns the loss and its derivative by the vector.
    """

    def __init__(
        self,
        position,
        graph,
        shape: LossShape,
        *,
        omega_norm,
        seed=0,
        n_threads=1,
        most_edges=None,
        partners=MOST_PARTNERS,
    ):
        self.position = np.ascontiguousarray(position, dtype=np.float32)
        self.omega_norm, self.n_threads = float(omega_norm), n_threads
        self.kernel = sum_kernel(shape.space.forward)
        self.forces = force_table(shape.a, shape.b, shape.repulsion_strength)
        self.potentials = potential_table(shape.a, shape.b, shape.repulsion_strength)
        edges = scipy.sparse.coo_array(graph)
        weight = edges.data.astype(np.float64)
        n = graph.shape[0]
        strength = np.bincount(edges.coords[0], weight, n)
        stride = 1 if most_edges is None else max(1, -(-weight.size // most_edges))
        source, target = (c[::stride].astype(np.int64) for c in edges.coords)
        self.edges = source, target, weight[::stride] * stride
        source, target = _pairs(n, seed, partners)
        share = n * (n - 1) / max(source.size, 1)
        weight = share * shape.negative_sample_rate / (4.0 * n)
        self.pairs = source, target, weight * (strength[source] + strength[target])
        self.exact = source.size == n * (n - 1)

    def __call__(self, axis) -> tuple[float, np.ndarray]:
        pull, push = self._sums(axis)
        return pull[0] + push[0], pull[2:] + push[2:]

    def loss(self, axis) -> UmapLoss:
        pull, push = (sums[:2] for sums in self._sums(axis))
        count = max(self.pairs[0].size, 1)
        error = 0.0 if self.exact else float(np.sqrt(max(push[1] - push[0] ** 2 / count, 0.0)))
        return UmapLoss(float(pull[0] + push[0]), float(pull[0]), float(push[0]), error)

    def _sums(self, axis) -> list[np.ndarray]:
        """Of edges and of pairs: Σ w c, Σ (w c)², and the derivative of the first by the axis."""
        axis, totals = np.asarray(axis, dtype=np.float64), []
        for terms, attract in ((self.edges, True), (self.pairs, False)):
            n_blocks = -(-terms[0].size // SUMMED)
            sums = np.zeros((n_blocks, 2 + axis.size))
            run_rows(
                self.kernel, n_blocks, self.n_threads, self.position, *terms, axis,
                self.omega_norm, self.forces, self.potentials, attract, sums, heavy=True,
            )  # fmt: skip
            totals.append(sums.sum(axis=0))
        return totals


def _pairs(n: int, seed: int, most: int):
    if n - 1 <= most:
        source, target = np.nonzero(~np.eye(n, dtype=bool))
        return source.astype(np.int64), target.astype(np.int64)
    partners = int(np.clip(MANY_PAIRS // n, min(most, FEWEST_PARTNERS), most))
    source = np.repeat(np.arange(n, dtype=np.int64), partners)
    target = np.empty_like(source)
    draw_partners(source, np.uint64(seed), n, target)
    return source, target


class UmapActs:
    """The two acts as epochs of UMAP's kernel; a `finsler_ext.height.acts.Descent`.

    A copy of the layout is kept after each of ``keep_epochs``. ``callback(epoch, position)`` is
    called after every epoch, counted from 1, with positions in the frame of that moment.
    ``progress`` wraps the range of epochs, e.g. in a progress bar.
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
