"""Neighbour searches behind one protocol, `NeighborIndex`, and the rule that chooses among them."""

from finsler_ext.construct.index.base import DirectedNeighbors, NeighborIndex, NewNeighbors
from finsler_ext.construct.index.choice import compares_all_pairs
from finsler_ext.construct.index.exact import ExactIndex
from finsler_ext.construct.index.nndescent import NNDescentIndex
from finsler_ext.construct.index.precomputed import PrecomputedIndex

__all__ = [
    "DirectedNeighbors",
    "ExactIndex",
    "NNDescentIndex",
    "NeighborIndex",
    "NewNeighbors",
    "PrecomputedIndex",
    "compares_all_pairs",
]
