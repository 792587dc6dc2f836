"""Directed nearest neighbours: an edge i → j says that j is among the nearest of i.

The searches are in `finsler_ext.construct.index`; these are their names as functions.
"""

from finsler_ext.construct.index.base import DirectedNeighbors, NewNeighbors, with_self_first
from finsler_ext.construct.index.exact import exact_neighbors, exact_new_neighbors
from finsler_ext.construct.index.metrics import EUCLIDEAN, block_function, is_asymmetric
from finsler_ext.construct.index.nndescent import approximate_neighbors, searched_new_neighbors
from finsler_ext.construct.index.precomputed import (
    precomputed_neighbors,
    precomputed_new_neighbors,
)

__all__ = [
    "EUCLIDEAN",
    "DirectedNeighbors",
    "NewNeighbors",
    "approximate_neighbors",
    "block_function",
    "exact_neighbors",
    "exact_new_neighbors",
    "is_asymmetric",
    "precomputed_neighbors",
    "precomputed_new_neighbors",
    "searched_new_neighbors",
    "with_self_first",
]
