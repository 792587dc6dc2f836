"""Epochs of the UMAP kernel: how long the steps are, and what is shown after each epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from finsler_ext._threads import RowPool
from finsler_ext.layout.umap.forces import force_table
from finsler_ext.layout.umap.sgd import N_STEPS, edge_sampler, step_kernel
from finsler_ext.spaces import RANDERS, Space

__all__ = ["UmapDescent", "centred"]


class UmapDescent:
    """Stochastic descent of the Finsler UMAP loss of one graph, epoch by epoch.

    An epoch's random numbers follow from the seed and the number of the epoch alone, so a descent
    may stop after any epoch and go on from there.

    Parameters
    ----------
    graph : sparse array of shape (n, n)
        Directed memberships, rows being sources.
    a, b : float
        Shape of q(F) = 1/(1 + a F^{2b}).
    n_epochs, learning_rate, repulsion_strength, negative_sample_rate
        As in umap-learn; the learning rate falls linearly to 0.
    seed : int
        Everything random follows from it.
    space : Space
    n_threads : int
        Changes the time taken, never the result.
    """

    def __init__(
        self,
        graph,
        *,
        a: float,
        b: float,
        n_epochs: int,
        seed: int,
        learning_rate: float = 1.0,
        repulsion_strength: float = 1.0,
        negative_sample_rate: float = 5,
        space: Space = RANDERS,
        n_threads: int = 1,
    ):
        self.graph, self.n_epochs, self.space = graph, n_epochs, space
        self.learning_rate, self.n_threads = learning_rate, n_threads
        # What the loss is made of, as `umap_loss` takes it.
        self.shape: dict[str, Any] = {
            "space": space,
            "a": a,
            "b": b,
            "repulsion_strength": repulsion_strength,
            "negative_sample_rate": negative_sample_rate,
        }
        self._edges = edge_sampler(graph, n_epochs)
        self._table = force_table(a, b, repulsion_strength)
        self._negatives = float(negative_sample_rate)
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
        kernel = step_kernel(self.space.forward, position.shape[1])
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
