"""What the tests of FinslerUMAP share."""

import threading
import warnings
from typing import NamedTuple

import numba
import numpy as np
import scipy.sparse

from finsler_ext import FinslerUMAP
from finsler_ext.geometry import RANDERS
from finsler_ext.height.acts import Layout, lay_out
from finsler_ext.umap.kernels import N_STEPS, LossShape, step_kernel
from finsler_ext.umap.layout import UmapActs, UmapDescent

# Fits of a few epochs need not have a height worth reading.
SMALL_DRIFT_WARNING = "ignore:With omega_norm:UserWarning"


def quick(**kwds):
    return FinslerUMAP(**({"random_state": 0, "n_epochs": 30} | kwds))


class Optimized(NamedTuple):
    """A layout, and copies of it after the epochs asked for."""

    layout: Layout
    kept: list[np.ndarray]

    @property
    def position(self):
        return self.layout.position

    @property
    def loss(self):
        return self.layout.loss


def optimize_layout(
    position, graph, *, omega_norm, mode="held", potential=None, keep_epochs=(), callback=None,
    **options,
) -> Optimized:  # fmt: skip
    """Move positions down the loss of a graph, in their frame; options of the shape and descent."""
    shape = LossShape(**{name: options.pop(name) for name in LossShape._fields if name in options})
    descent = UmapDescent(graph, shape, **options)
    acts = UmapActs(descent, position, keep_epochs=keep_epochs, callback=callback)
    layout = lay_out(acts, omega_norm, mode=mode, potential=potential, find_axis=False)
    return Optimized(layout, acts.shown(layout))


def regular_graph(n, degree, rng):
    """Random directed graph whose rows have the same memberships, so the same sums."""
    weight = np.linspace(1.0, 0.2, degree)
    rows = [rng.permutation(np.delete(np.arange(n), i))[:degree] for i in range(n)]
    source = np.repeat(np.arange(n), degree)
    return scipy.sparse.csr_array((np.tile(weight, n), (source, np.concatenate(rows))))


def one_epoch_moves(
    position, stored, a, b, omega, negatives, epoch, *, both_ways=True, seed=1, space=RANDERS
):
    """Sum of the moves of all steps of an epoch, each from the same position, by a schedule."""
    position = np.ascontiguousarray(position, dtype=np.float32)
    n, m = position.shape
    moved = np.empty_like(position)
    forces = tuple(np.float32(value) for value in (a, 2 * b, 1.0, negatives))
    stored = stored._replace(step_share=np.ones(n, dtype=np.float32))
    total = np.zeros(position.shape)
    for step in range(N_STEPS):
        step_kernel(space.forward, m)(
            0, n, position, moved, *stored, forces, step, epoch,
            (np.float32(1), np.float32(1)), np.float32(omega), both_ways, np.uint64(seed),
        )  # fmt: skip
        total += moved.astype(float) - position
    return total


def global_state():
    """What a call must leave as it found it."""
    return (
        numba.get_num_threads(),
        np.random.get_state()[1].tolist(),
        list(warnings.filters),
        threading.active_count(),
        {name: value for name, value in np.geterr().items()},
    )
