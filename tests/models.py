"""What the tests of FinslerUMAP share."""

import threading
import warnings

import numba
import numpy as np

from finsler_ext import FinslerUMAP
from finsler_ext.layout.umap.descent import UmapDescent
from finsler_ext.layout.umap.forces import LossShape
from finsler_ext.layout.umap.schedule import UmapLayout, UmapSchedule

# Fits of a few epochs need not have a height worth reading.
SMALL_DRIFT_WARNING = "ignore:With omega_norm:UserWarning"


def quick(**kwds):
    return FinslerUMAP(**({"random_state": 0, "n_epochs": 30} | kwds))


def optimize_layout(
    position, graph, *, omega_norm, hold_height=True, keep_epochs=(), callback=None, **options
) -> UmapLayout:
    """Move positions down the loss of a graph, in their frame; options of the shape and descent."""
    shape = LossShape(**{name: options.pop(name) for name in LossShape._fields if name in options})
    height = "held" if hold_height else "free"
    descent = UmapDescent(graph, shape, **options)
    schedule = UmapSchedule(descent, position, height=height, find_axis=False)
    return schedule.at(omega_norm, keep_epochs=keep_epochs, callback=callback)


def global_state():
    """What a call must leave as it found it."""
    return (
        numba.get_num_threads(),
        np.random.get_state()[1].tolist(),
        list(warnings.filters),
        threading.active_count(),
        {name: value for name, value in np.geterr().items()},
    )
