"""Which search is the cheapest for data of a given shape.

The choice depends on the shape and the metric alone, never on threads or on what the process has
compiled before: the same data give the same neighbours everywhere.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from finsler_ext.construct.index.reductions import REDUCIBLE

__all__ = ["EXACT", "GROUPS", "NN_DESCENT", "cheapest_search"]

EXACT, GROUPS, NN_DESCENT = "exact", "groups", "NN-descent"

# umap-learn compares all pairs below this size, whatever the metric.
SMALL = 4096
# Seconds that one core takes to compare all pairs: per pair, and per pair and column
# (benchmarks/neighbor_search.py; EPYC, AVX-512).
SECONDS_PER_PAIR, SECONDS_PER_ENTRY = 0.9e-9, 0.018e-9
# Up to here all pairs are compared, which misses no neighbour: 40,000 rows of 50 columns, 14,000 of
# 784. Groups take half as long there, and as long at 20,000 rows of 50 columns.
EXACT_SECONDS = 3.0


def cheapest_search(X, metric, *, approximate: bool = False) -> str:
    """The search to take for the rows of X; ``approximate`` leaves out the exact one."""
    n = X.shape[0]
    if n < SMALL and not approximate:
        return EXACT
    dense = isinstance(X, np.ndarray) and not scipy.sparse.issparse(X) and X.dtype.kind == "f"
    if not dense or not isinstance(metric, str) or metric not in REDUCIBLE:
        return NN_DESCENT
    seconds = n * n * (SECONDS_PER_PAIR + SECONDS_PER_ENTRY * X.shape[1])
    return EXACT if seconds <= EXACT_SECONDS and not approximate else GROUPS
