"""Which search is the cheapest for data of a given shape.

The choice depends on the shape and the metric alone, never on threads or on what the process has
compiled before: the same data give the same neighbours everywhere.
"""

from __future__ import annotations

import scipy.sparse

from finsler_ext.construct.index.reductions import REDUCIBLE

__all__ = ["compares_all_pairs"]

# umap-learn compares all pairs below this size, whatever the metric.
SMALL = 4096
# Seconds that one core takes to compare all pairs: per pair, and per pair and column
# (benchmarks/neighbor_search.py; EPYC, AVX-512).
SECONDS_PER_PAIR, SECONDS_PER_ENTRY = 0.9e-9, 0.018e-9
# NN-descent compiles for 41 s of processor time in every process, and takes longer to run than
# the rest.
EXACT_SECONDS = 60.0


def compares_all_pairs(X, metric) -> bool:
    """Whether comparing all pairs of rows of X is the cheapest search for them."""
    n = X.shape[0]
    if n < SMALL:
        return True
    if not isinstance(metric, str) or metric not in REDUCIBLE or scipy.sparse.issparse(X):
        return False
    return n * n * (SECONDS_PER_PAIR + SECONDS_PER_ENTRY * X.shape[1]) <= EXACT_SECONDS
