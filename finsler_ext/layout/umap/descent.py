"""Epochs of the UMAP kernel: how long the steps are, and what is shown after each epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from finsler_ext._threads import RowPool
from finsler_ext.layout.umap.forces import LossShape, force_table
from finsler_ext.layout.umap.sgd import N_STEPS, edge_sampler, step_kernel

__all__ = ["UmapDescent", "centred"]


class UmapDescent:
    """Stochastic descent of the Finsler UMAP loss of one graph, epoch by epoch.

    An epoch's random numbers follow from the seed and the number of the epoch alone, so a descent
    may stop after any epoch and go on from there.

    Parameters
    ----------
    graph : sparse array of shape (n, n)
        Directed memberships, rows being sources.
    shape : LossShape
    n_epochs, learning_rate
        As in umap-learn; the learning rate falls linearly to 0.
    seed : int
        Everything random follows from it.
    n_threads : int
        Changes the time taken, never the result.
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
        self._edges = edge_sampler(graph, n_epochs)
        self._table = force_table(shape.a, shape.b, shape.repulsion_strength)
        self._negatives = float(shape.negative_sample_rate)
        self._seed = np.uint64(seed)

    def run(
        self,
        position: np.ndarray,
        epochs: Iterable[int],
        *,
        omega_norm: float,
        rate_share: float = 1.0,
        rate_until: int | None = None,
        hold_height: bool = False,
        after_epoch: Callable[[int, np.ndarray], object] | None = None,
    ) -> np.ndarray:
        """Positions after the given epochs, counted from 0; the start is not modified.

        Parameters
        ----------
        position : array of shape (n, m)
        epochs : iterable of int
        omega_norm : float
        rate_share : float
            Multiplies the learning rate.
        rate_until : int, optional
            The epoch at which the learning rate has fallen to 0; the last one by default.
        hold_height : bool
            Leave the last column as it is.
        after_epoch : callable, optional
            Called as ``after_epoch(epoch, position)``, epochs counted from 1.
        """
        position = np.array(position, dtype=np.float32, order="C")
        moved = np.empty_like(position)
        until = self.n_epochs if rate_until is None else rate_until
        kernel = step_kernel(self.shape.space.forward, position.shape[1])
        with RowPool(position.shape[0], self.n_threads) as pool:
            for epoch in epochs:
                rate = self.learning_rate * (1.0 - epoch / until) * rate_share
                for step in range(N_STEPS):
                    pool.run(
                        kernel,
                        position,
                        moved,
                        *self._edges,
                        self._table,
                        step,
                        epoch + 1,
                        np.float32(rate),
                        np.float32(0.0 if hold_height else rate),
                        np.float32(omega_norm),
                        self._negatives,
                        self._both_ways(omega_norm),
                        self._seed,
                    )
                    position, moved = moved, position
                if after_epoch is not None:
                    after_epoch(epoch + 1, position)
        return position

    def _both_ways(self, omega_norm: float) -> bool:
        """Whether a negative pushes by i → k and by k → i; without a drift the two are the same."""
        return omega_norm > 0


def centred(position: np.ndarray) -> np.ndarray:
    """The loss does not see translations, so a drift of the whole must not leak out."""
    return position - position.mean(axis=0, dtype=np.float64).astype(np.float32)
