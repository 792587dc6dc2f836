"""When the drift acts and when the height may move: the two acts of a UMAP layout.

Held. A height that starts at zero needs care. Noise at the step size that a map needs to
untangle moves parts of the layout up and down at random before the asymmetry has an effect,
and the long-range part of a height builds up only at the pace of diffusion along the graph. So in
the first act the height is held at zero and the map settles as in UMAP, until its steps have
become zero. Then the height starts from its linear response to the asymmetry
(`finsler_ext.layout.height`), everything is released, and the loss is descended with steps small
enough to keep it. The response is that of the map half way: there its edges still have much the
same lengths, and the noise of single ones counts less.

Free. In the first act all columns settle without a drift, as in UMAP. Then the drift finds its
axis (`finsler_ext.layout.axis`), the layout is rotated so that it becomes the last one, and the
descent goes on with the drift. At the end the axis is sought once more.

Neither first act depends on the drift, so layouts at several drifts share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

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
from finsler_ext.layout.umap.descent import UmapDescent, centred
from finsler_ext.layout.umap.forces import attraction
from finsler_ext.layout.umap.loss import AxisLoss, UmapLoss, umap_loss

__all__ = ["UmapLayout", "UmapSchedule"]

# Share of the epochs of the first act, free and held. Held, ω = 0.5, two seeds: the map's k-means
# AMI and 15-NN preservation of 1500 flowers 0.604 and 0.397 with 0.6, 0.604 and 0.399 with 0.7,
# 0.616 and 0.402 with 0.8 (0.598 and 0.394 with 0.6 and steps that have not become zero); of 700
# blood cells 0.609 and 0.434, 0.607 and 0.434, 0.606 and 0.440 (0.609 and 0.427).
FREE_ACT, HELD_ACT = 0.6, 0.8
# When the first height is computed, as a share of the held act. Disks of 1000 and 3000 random
# points, denser inside, ω = 0.5, Spearman(height, radius): 0.87 and 0.90 at 0.3, 0.88 and 0.89 at
# 0.45, 0.84 and 0.89 at 0.6, 0.78 and 0.83 at the end. Flowers and cells do not depend on it.
RESPONSE_AT = 0.5
# Learning rate at the beginning of the second act of a held layout. The first of those disks,
# ω = 0.01 and 0.5: 0.74 and 0.78 with 0.03, 0.68 and 0.78 with 0.06; 15-NN of the flowers'
# map 0.409 and 0.399, 0.402 and 0.394.
RELEASED_RATE = 0.03
# Edges that the search for the axis looks at; an evenly spaced selection stands for more.
AXIS_EDGES = 1_000_000
# Partners of each point in that search: to first order in ω repulsion does not enter.
AXIS_PARTNERS = 8


class UmapLayout(NamedTuple):
    """Where a descent ended.

    position : array of shape (n, m), centred
    kept : centred arrays, one per epoch asked for
    height : "held" or "free"
    loss : UmapLoss
    islands : Islands
    """

    position: np.ndarray
    kept: list[np.ndarray]
    height: str
    loss: UmapLoss
    islands: Islands


class UmapSchedule:
    """Layouts of one graph from one start, at any drift.

    Parameters
    ----------
    descent : UmapDescent
    start : array of shape (n, m)
        The last column is the height.
    height : {"held", "free"}
    find_axis : bool
        Whether a free layout may be rotated; False keeps the frame of the start, and the drift
        acts from the first epoch.
    level : array of shape (n,), optional
        What heights follow within the connected parts, see `finsler_ext.layout.islands`.
    tolerance : float
        How exactly the height of the second act answers to the asymmetry.
    """

    def __init__(
        self,
        descent: UmapDescent,
        start: np.ndarray,
        *,
        height: str = HELD,
        find_axis: bool = True,
        level=None,
        tolerance: float = NOISY_TOLERANCE,
    ):
        self.descent, self.start, self.height = descent, start, height
        self.find_axis, self.level, self.tolerance = find_axis, level, tolerance
        self._pull = partial(attraction, a=descent.shape.a, b=descent.shape.b)
        self._first_act: tuple | None = None

    def at(
        self,
        omega_norm: float,
        *,
        keep_epochs: Sequence[int] = (),
        callback: Callable[[int, np.ndarray], object] | None = None,
        progress: Callable[[range], Iterable[int]] = iter,
    ) -> UmapLayout:
        """The layout at one drift.

        Parameters
        ----------
        omega_norm : float in [0, 1)
        keep_epochs : sequence of int
            Epochs after which to keep a copy of the layout, in this order. Copies are in the
            frame of the final layout.
        callback : callable, optional
            Called as ``callback(epoch, position)`` after every epoch, counted from 1, with
            positions in the frame they have at that moment.
        progress : callable
            Wraps the range of epochs, e.g. in a progress bar.
        """
        n_epochs = self.descent.n_epochs
        turns = self.height == FREE and self.find_axis and omega_norm > 0
        release = self._first_epochs() if turns or self.height == HELD else 0
        kept = {epoch: centred(self._start()) for epoch in keep_epochs if epoch <= 0}

        def after_epoch(epoch, position):
            if epoch in keep_epochs:
                kept[epoch] = centred(position)
            if callback is not None:
                callback(epoch, position)

        position, half_way = self._settled(release, kept, after_epoch, callback, progress)
        frame = np.eye(position.shape[1])
        rate_share = 1.0
        if self.height == HELD and release < n_epochs:
            position = self._raised(position, half_way, omega_norm)
            rate_share = RELEASED_RATE / (1.0 - release / n_epochs)
        elif turns:
            frame = self._axis(position, omega_norm, anywhere=True)
            position = turned(position, frame)
        position = self.descent.run(
            position,
            progress(range(release, n_epochs)),
            omega_norm=omega_norm,
            rate_share=rate_share,
            after_epoch=after_epoch,
        )
        position = centred(position)
        last = np.eye(position.shape[1])
        if turns and n_epochs:
            last = self._axis(position, omega_norm, anywhere=False)
            last = canonical_map(turned(position, last)) @ last
        early = last @ frame
        kept = {e: turned(part, early if e <= release else last) for e, part in kept.items()}
        position, loss, islands = self._compared(turned(position, last), omega_norm)
        if n_epochs in kept:
            kept[n_epochs] = position
        kept_in_order = [kept[epoch] for epoch in keep_epochs]
        return UmapLayout(position, kept_in_order, self.height, loss, islands)

    def before_drift(self) -> np.ndarray:
        """The layout at the end of the first act: the map alone, or all columns."""
        position, _ = self._settled(self._first_epochs(), {}, None, None, iter)
        return position[:, :-1] if self.height == HELD else position

    def _start(self):
        return np.asarray(self.start, dtype=np.float32)

    def _first_epochs(self) -> int:
        share = HELD_ACT if self.height == HELD else FREE_ACT
        return int(share * self.descent.n_epochs)

    def _settled(self, release, kept, after_epoch, callback, progress):
        """The layout at the end of the first act and half way, at no drift.

        Both are kept from an earlier call if nobody watches.
        """
        if release == 0:
            return self._start(), self._start()
        if self._first_act is None or callback is not None:
            held = self.height == HELD
            half_way = {0: self._start()}

            def watched(epoch, position):
                if epoch == int(RESPONSE_AT * release):
                    half_way[0] = position.copy()
                if after_epoch is not None:
                    after_epoch(epoch, position)

            position = self.descent.run(
                self._start(),
                progress(range(release)),
                omega_norm=0.0,
                rate_until=release if held else None,
                hold_height=held,
                after_epoch=watched,
            )
            self._first_act = position, half_way[0], dict(kept)
        position, early, kept_early = self._first_act
        kept.update({epoch: part.copy() for epoch, part in kept_early.items()})
        return position, early

    def _raised(self, position, half_way, omega_norm):
        """The map with the height that answers to the asymmetry at this drift."""
        flat, graph = half_way[:, :-1], self.descent.graph
        height = height_response(flat, graph, self._pull, omega_norm, self.tolerance)
        height, _ = settle_islands(flat, height, graph, self._pull, self.level)
        return np.column_stack([position[:, :-1], height.astype(np.float32)])

    def _axis(self, position, omega_norm, *, anywhere: bool):
        """The rotation that makes the best direction of the drift the last axis.

        It is sought ``anywhere``, or near the last axis only.
        """
        objective = AxisLoss(
            position,
            self.descent.graph,
            self.descent.shape,
            omega_norm=omega_norm,
            n_threads=self.descent.n_threads,
            most_edges=AXIS_EDGES,
            partners=AXIS_PARTNERS,
        )
        flow = springs_between(position, self.descent.graph, self._pull).flow
        start = drift_start(position, flow) if anywhere else None
        return rotation_onto_last(best_axis(objective, position.shape[1], start))

    def _compared(self, position, omega_norm):
        """Loss, and heights that compare across islands where the loss leaves that open."""
        graph = self.descent.graph
        if omega_norm == 0 or not self.descent.n_epochs:
            return position, self._loss(position, omega_norm), NO_DRIFT
        if self.height == HELD:
            height, islands = settle_islands(
                position[:, :-1], position[:, -1], graph, self._pull, self.level
            )
            position = np.column_stack([position[:, :-1], height.astype(np.float32)])
            return position, self._loss(position, omega_norm), islands
        loss = self._loss(position, omega_norm)
        height, islands = offset_components(
            position, position[:, -1], graph, self._pull, self.level
        )
        if not islands.settled or islands.n_parts == 1:
            return position, loss, islands
        settled = np.column_stack([position[:, :-1], height.astype(np.float32)])
        after = self._loss(settled, omega_norm)
        if after.value > loss.value + LOSS_RISE * abs(loss.value):
            return position, loss, islands._replace(reason="the parts would collide")
        return settled, after, islands

    def _loss(self, position, omega_norm):
        return umap_loss(
            position,
            self.descent.graph,
            omega_norm=omega_norm,
            n_threads=self.descent.n_threads,
            **self.descent.shape._asdict(),
        )
