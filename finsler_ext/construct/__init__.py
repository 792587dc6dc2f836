"""Stage 1: directed dissimilarities of the data. Rows are sources; nothing is averaged."""

from finsler_ext.construct.connectivity import strongly_connected
from finsler_ext.construct.digraph import (
    Edges,
    digraph_edges,
    digraph_scales,
    is_digraph,
    new_edges,
    new_scales,
    with_ways_back,
)
from finsler_ext.construct.geodesics import geodesic_neighbors, neighbor_graph
from finsler_ext.construct.memberships import (
    AFFINITIES,
    directed_memberships,
    fuzzy_union,
    harmonic_memberships,
    new_memberships,
)
from finsler_ext.construct.neighbors import (
    DirectedNeighbors,
    NewNeighbors,
    approximate_neighbors,
    exact_neighbors,
    exact_new_neighbors,
    is_asymmetric,
    precomputed_neighbors,
    precomputed_new_neighbors,
    searched_new_neighbors,
    with_self_first,
)
from finsler_ext.construct.new_points import extended_new_neighbors, training_rows
from finsler_ext.construct.scales import (
    mean_distance,
    mean_neighbor_distance,
    relative_scale,
    umap_scales,
)

__all__ = [
    "AFFINITIES",
    "DirectedNeighbors",
    "Edges",
    "NewNeighbors",
    "approximate_neighbors",
    "digraph_edges",
    "digraph_scales",
    "directed_memberships",
    "exact_neighbors",
    "exact_new_neighbors",
    "extended_new_neighbors",
    "fuzzy_union",
    "geodesic_neighbors",
    "harmonic_memberships",
    "is_asymmetric",
    "is_digraph",
    "mean_distance",
    "mean_neighbor_distance",
    "neighbor_graph",
    "new_edges",
    "new_memberships",
    "new_scales",
    "precomputed_neighbors",
    "precomputed_new_neighbors",
    "relative_scale",
    "searched_new_neighbors",
    "strongly_connected",
    "training_rows",
    "umap_scales",
    "with_self_first",
    "with_ways_back",
]
