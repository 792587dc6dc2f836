"""Neighbour searches behind one protocol, `NeighborIndex`, and the rule that chooses among them."""

from finsler_ext.construct.index.base import DirectedNeighbors, NeighborIndex, NewNeighbors
from finsler_ext.construct.index.choice import EXACT, GROUPS, NN_DESCENT, cheapest_search
from finsler_ext.construct.index.exact import ExactIndex
from finsler_ext.construct.index.groups import GroupIndex
from finsler_ext.construct.index.nndescent import NNDescentIndex, as_index
from finsler_ext.construct.index.precomputed import PrecomputedIndex
from finsler_ext.construct.index.recall import sampled_recall

__all__ = [
    "EXACT",
    "GROUPS",
    "NN_DESCENT",
    "DirectedNeighbors",
    "ExactIndex",
    "GroupIndex",
    "NNDescentIndex",
    "NeighborIndex",
    "NewNeighbors",
    "PrecomputedIndex",
    "as_index",
    "cheapest_search",
    "sampled_recall",
]
