"""From data to the directed membership graph of a FinslerUMAP model.

Neighbours i → j have UMAP's memberships, or those of one of two symmetric controls:

    directed     p_ij = exp(−max(0, d_ij − ρ_i)/σ_i) on i → j; rows sum to log2(k)
    harmonic     exp(−max(0, d_ij − min(ρ_i, ρ_j))/σ_ij), 1/σ_ij = (1/σ_i + 1/σ_j)/2, on the
                 union of both directions: symmetric without averaging afterwards
    fuzzy_union  p_ij + p_ji − p_ij p_ji: what umap-learn does

All are CSR with rows as sources.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from umap.sparse import sparse_need_n_features
from umap.umap_ import raise_disconnected_warning

from finsler_ext._messages import warn
from finsler_ext.asymmetry import is_directed
from finsler_ext.directed.digraph import (
    Edges,
    digraph_edges,
    digraph_scales,
    is_digraph,
    strength_skews,
    with_ways_back,
)
from finsler_ext.neighbors import EXACT, cheapest_search, make_index
from finsler_ext.neighbors.exact import (
    EUCLIDEAN,
    ExactIndex,
    is_asymmetric,
    refuse_large_asymmetric,
    sampled_recall,
)
from finsler_ext.neighbors.geodesics import geodesic_neighbors, metric_between, shortest_pairs
from finsler_ext.neighbors.nndescent import as_index
from finsler_ext.neighbors.search import (
    DirectedNeighbors,
    NewNeighbors,
    SearchSettings,
    distances_between,
    precomputed_neighbors,
    with_self_first,
)
from finsler_ext.scales import mean_distance, mean_neighbor_distance, relative_scale, umap_scales
from finsler_ext.validation import UNITLESS

AFFINITIES = ("directed", "harmonic", "fuzzy_union")


@dataclass(frozen=True)
class Search:
    """Directed neighbours of the training rows, and what is known of their direction.

    neighbors : DirectedNeighbors, themselves first; −1 where missing or cut
    n_neighbors : int, at most as many as there are others
    n_cut : neighbours beyond the disconnection distance
    exact : whether all pairs were compared
    asymmetric : whether a metric of rows depends on the direction
    digraph : Edges, where the data is a digraph
    distances : directed distances whose skew the height is to show, of a digraph with the ways
        back, of strengths their `strength_skews`; None for features
    """

    neighbors: DirectedNeighbors
    n_neighbors: int
    n_cut: int = 0
    exact: bool = False
    asymmetric: bool = False
    digraph: Edges | None = None
    distances: Any = None


@dataclass(frozen=True)
class DirectedGraph:
    """The membership graph of a fit, and what new rows need to join it.

    matrix : csr_matrix of memberships p_ij, rows being sources
    search : Search
    geodesic : neighbours along shortest paths, or None
    mean_distance : float
    sigmas, rhos : scales of the memberships; ``density_sigmas`` without a scale of the user's
    local_scale : mean distance to the neighbours, or the scale given
    """

    matrix: scipy.sparse.csr_matrix
    search: Search
    geodesic: DirectedNeighbors | None
    mean_distance: float
    sigmas: np.ndarray
    rhos: np.ndarray
    density_sigmas: np.ndarray
    local_scale: np.ndarray

    def attributes(self) -> dict[str, Any]:
        """What a fitted model keeps of it, by name."""
        search = self.search
        given = search.digraph is not None and search.digraph.strength is not None
        directed = given or (search.distances is not None and is_directed(search.distances))
        return {
            "graph_": self.matrix,
            "graph_dists_": None,
            "local_scale_": self.local_scale,
            "_knn_indices": search.neighbors.indices,
            "_knn_dists": search.neighbors.distances,
            "_knn_search_index": search.neighbors.search_index,
            "_n_neighbors": search.n_neighbors,
            "_n_edges_removed": search.n_cut,
            "_small_data": search.exact,
            "_asymmetric_metric": search.asymmetric,
            "_directed_distances": directed,
            "_digraph": search.digraph,
            "_skew_distances": search.distances if search.digraph is not None else None,
            "_geodesic": self.geodesic,
            "_mean_distance": self.mean_distance,
            "_sigmas": self.sigmas,
            "_rhos": self.rhos,
            "_density_sigmas": self.density_sigmas,
        }


def find_neighbors(model, X, random_state, strengths=None) -> Search:
    """Directed neighbours; ``strengths`` are those of the edges of a digraph, if it has any."""
    n = X.shape[0]
    k = min(model.n_neighbors, max(2, n - 1))
    indices, distances, search_index = model._given_knn
    if distances is not None:
        indices, distances = _checked_knn(indices, distances, n)
        if not model._as_fitted.plain:
            search_index = None  # it was built in other units
        distances = model._as_fitted.scaled(distances)
        found = Search(with_self_first(indices[:, :k], distances[:, :k], search_index), k)
    elif model.metric == "precomputed":
        found = Search(precomputed_neighbors(X, k), k, distances=X)
        # Geodesics are made of neighbours; without them a digraph keeps all its edges.
        if model.geodesic_neighbors is None and (strengths is not None or is_digraph(X)):
            edges = digraph_edges(X, strengths)
            near = _within_reach(edges, model._disconnection_distance)
            n_cut = edges.length.size - near.length.size
            skewed = with_ways_back(X) if strengths is None else strength_skews(strengths)
            found = replace(found, digraph=near, distances=skewed, n_cut=n_cut)
    else:
        found = _search(model, X, k, random_state)
        if model.verbose:
            model._say(search_in_words(model, X, found.neighbors, symmetric=not found.asymmetric))
    if model.n_neighbors >= n and found.digraph is None:  # a digraph keeps all its edges
        warn("n_neighbors is larger than the dataset size; truncating to X.shape[0] - 1")
    indices, distances, _ = found.neighbors
    cut = (distances >= model._disconnection_distance) & (indices >= 0)
    indices[cut], distances[cut] = -1, np.inf
    return found if found.digraph is not None else replace(found, n_cut=int(cut.sum()))


def search_in_words(model, X, found: DirectedNeighbors, *, symmetric: bool = True) -> str:
    """Which search was taken, and its recall on a sample."""
    if found.search_index is None:
        return f"Neighbours: {ExactIndex.name}, all pairs of {X.shape[0]} rows were compared"
    index = exact_index(model, X, symmetric=symmetric)
    recall = sampled_recall(index, X, found.distances)
    name = as_index(found.search_index).name
    return f"Neighbours: {name}, recall {recall:.3f} on a sample of {X.shape[0]} rows"


def _checked_knn(indices, distances, n: int):
    """A user's neighbours, or a ValueError; rows that are not in order of distance are sorted."""
    if indices.dtype.kind not in "iu":
        raise ValueError(
            f"precomputed_knn[0] must hold row numbers (integers), got {indices.dtype}. Are "
            "indices and distances swapped?"
        )
    if indices.min() < -1 or indices.max() >= n:
        raise ValueError(
            f"precomputed_knn[0] must hold row numbers from 0 to {n - 1}, or -1 where a neighbour "
            f"is missing; got {indices.min()} to {indices.max()}."
        )
    distances = np.where(indices < 0, np.inf, distances)
    if np.isnan(distances).any() or distances.min() < 0:
        raise ValueError("precomputed_knn[1]: distances must be neither negative nor NaN.")
    if (distances[:, 1:] < distances[:, :-1]).any():
        order = np.argsort(distances, axis=1, kind="stable")
        indices = np.take_along_axis(indices, order, axis=1)
        distances = np.take_along_axis(distances, order, axis=1)
    return indices, distances


def _search(model, X, k, random_state) -> Search:
    directed = callable(model.metric) and is_asymmetric(
        model._input_distance_func, X, model._metric_kwds
    )
    if directed:
        refuse_large_asymmetric(model.metric, X)
        search = EXACT
    else:
        metric = None if model._metric_kwds else model.metric
        search = cheapest_search(X, metric, approximate=model.force_approximation_algorithm)
    settings = SearchSettings(
        metric=model.metric,
        metric_kwds=model._metric_kwds,
        function=model._input_distance_func,
        function_kwds=pair_kwds(model, X),
        symmetric=not directed,
        random_state=random_state,
        n_threads=model._n_threads,
        seeded=model.random_state is not None,
        low_memory=model.low_memory,
        verbose=model.verbose,
    )
    found = make_index(search, settings).build(X, k)
    return Search(found, k, exact=search == EXACT, asymmetric=directed)


def exact_index(model, X, *, symmetric: bool) -> ExactIndex:
    """An index that compares new rows with all rows of X in the metric of the model."""
    # sums over sparse rows round differently in another batch
    by_name = model.metric in EUCLIDEAN and not scipy.sparse.issparse(X)
    return ExactIndex(
        model.metric if by_name else model._input_distance_func,
        pair_kwds(model, X),
        symmetric=symmetric,
        n_threads=model._n_threads,
        named=model.metric,
    )


def pair_kwds(model, X) -> dict:
    """Keyword arguments of ``_input_distance_func``, in its order."""
    if scipy.sparse.issparse(X) and model.metric in sparse_need_n_features:
        return {"n_features": X.shape[1], **model._metric_kwds}
    return model._metric_kwds


def build_graph(model, X, search: Search) -> DirectedGraph:
    """Memberships of the neighbours, or of the edges of a digraph."""
    neighbors, target_k, geodesic = search.neighbors, search.n_neighbors, None
    if model.geodesic_neighbors is not None:
        between = None
        if model.metric == "precomputed":
            between = partial(distances_between, X)
        elif model.metric not in ("euclidean", "l2"):
            between = partial(metric_between, X, model._input_distance_func, pair_kwds(model, X))
        target_k = model.geodesic_neighbors
        neighbors = geodesic = geodesic_neighbors(neighbors, target_k, X, distances=between)
    overall = mean_distance(neighbors.distances)
    options = {"local_connectivity": model.local_connectivity, "n_threads": model._n_threads}
    edges: Edges | DirectedNeighbors = neighbors
    if search.digraph is not None:
        edges = search.digraph
        sigmas, rhos, local_scale = digraph_scales(edges, **options)
    else:
        distances = neighbors.distances
        sigmas, rhos = umap_scales(distances, n_neighbors=target_k, overall=overall, **options)
        local_scale = mean_neighbor_distance(distances)
    if model._as_fitted.exponent and model.metric not in UNITLESS:
        local_scale = np.ldexp(local_scale, model._as_fitted.exponent)
    density_sigmas = sigmas
    if model._given_scale is not None:
        sigmas = relative_scale(model._given_scale, sigmas)
        local_scale = model._given_scale.copy()
    if model.affinity == "harmonic":
        graph = harmonic_memberships(edges, sigmas, rhos)
    else:
        # With a scale of the user's, an edge that either end chose counts for both: the choice of
        # neighbours depends on density.
        given = model._given_scale is not None and model.metric != "precomputed"
        graph = directed_memberships(edges, sigmas, rhos, both_ways=given)
    if model.affinity == "fuzzy_union":
        graph = fuzzy_union(graph, model.set_op_mix_ratio)
    raise_disconnected_warning(
        search.n_cut,
        int(np.sum(isolated(graph))),
        model._disconnection_distance,
        X.shape[0],
        verbose=model.verbose,
    )
    matrix = scipy.sparse.csr_matrix(graph)
    return DirectedGraph(
        matrix, search, geodesic, overall, sigmas, rhos, density_sigmas, local_scale
    )


def _within_reach(edges: Edges, limit: float) -> Edges:
    """The edges of a digraph that are shorter than the disconnection distance."""
    source, target, length, n, strength = edges
    near = length < limit
    strength = None if strength is None else strength[near]
    return Edges(source[near], target[near], length[near], n, strength)


def isolated(graph) -> np.ndarray:
    """Points with neither an out-edge nor an in-edge."""
    out = np.asarray(graph.sum(axis=1)).ravel()
    into = np.asarray(graph.sum(axis=0)).ravel()
    return (out == 0) & (into == 0)


def directed_memberships(
    neighbors: DirectedNeighbors | Edges, sigma, rho, *, both_ways: bool = False
) -> scipy.sparse.csr_array:
    """p_ij = exp(−max(0, d_ij − ρ_i)/σ_i) on the neighbour edges i → j.

    Which edges there are depends on density: a sparse point counts dense ones among its
    neighbours and not the reverse. ``both_ways`` adds the reverse of every edge, at the new
    source's own scale, so that only the scales are left to differ; distances must then be
    symmetric.
    """
    source, target, distance = _edges(neighbors)
    if both_ways:
        low, high, distance = _undirected(source, target, distance)
        source, target = np.concatenate([low, high]), np.concatenate([high, low])
        distance = np.concatenate([distance, distance])
    strength = _membership(distance, rho[source], sigma[source])
    return _graph(source, target, strength, len(sigma))


def harmonic_memberships(
    neighbors: DirectedNeighbors | Edges, sigma, rho
) -> scipy.sparse.csr_array:
    """The Riemannian remedy: one scale per edge, the harmonic mean of its ends' scales.

    Where both directions are neighbour edges with different distances (directed input), the
    shorter one counts.
    """
    low, high, distance = _undirected(*_edges(neighbors))
    scale = 2.0 / (1.0 / sigma[low] + 1.0 / sigma[high])
    strength = _membership(distance, np.minimum(rho[low], rho[high]), scale)
    return _graph(
        np.concatenate([low, high]),
        np.concatenate([high, low]),
        np.concatenate([strength, strength]),
        len(sigma),
    )


def fuzzy_union(directed, set_op_mix_ratio: float = 1.0) -> scipy.sparse.csr_array:
    """umap-learn's symmetric graph: a mix of fuzzy union and intersection of p and pᵀ."""
    back = scipy.sparse.csr_array(directed.T)
    both = directed.multiply(back)
    union = directed + back - both
    mixed = scipy.sparse.csr_array(set_op_mix_ratio * union + (1.0 - set_op_mix_ratio) * both)
    mixed.eliminate_zeros()
    return mixed


def new_memberships(
    neighbors: NewNeighbors,
    new_scales: tuple[np.ndarray, np.ndarray],
    scales: tuple[np.ndarray, np.ndarray],
    affinity: str = "directed",
) -> tuple[np.ndarray, np.ndarray]:
    """Memberships from new points to their training neighbours, and from these to them; or 0.

    Scales are pairs (σ, ρ). "fuzzy_union" is the plain union here: an intersection could leave a
    new point without any edge.
    """
    missing = neighbors.indices < 0
    other = np.where(missing, 0, neighbors.indices)
    (sigma, rho), (new_sigma, new_rho) = scales, (s[:, None] for s in new_scales)
    if affinity == "harmonic":
        scale = 2.0 / (1.0 / new_sigma + 1.0 / sigma[other])
        nearest = np.minimum(new_rho, rho[other])
        strength = _membership(np.minimum(neighbors.outgoing, neighbors.incoming), nearest, scale)
        out = into = np.where(missing, np.float32(0.0), strength)
        return out, into
    out = _membership(neighbors.outgoing, new_rho, new_sigma)
    into = _membership(neighbors.incoming, rho[other], sigma[other])
    out, into = (np.where(missing, np.float32(0.0), part) for part in (out, into))
    if affinity == "fuzzy_union":
        out = into = out + into - out * into
    return out.astype(np.float32), into.astype(np.float32)


def _edges(neighbors: DirectedNeighbors | Edges):
    return neighbors[:3] if isinstance(neighbors, Edges) else neighbors.edges()


def _undirected(source, target, distance):
    """Every pair once, with the shorter of its distances."""
    return shortest_pairs(np.minimum(source, target), np.maximum(source, target), distance)


def _membership(distance, rho, sigma):
    return np.exp(-np.maximum(0.0, distance - rho) / sigma).astype(np.float32)


def _graph(source, target, strength, n) -> scipy.sparse.csr_array:
    graph = scipy.sparse.coo_array((strength, (source, target)), shape=(n, n)).tocsr()
    graph.eliminate_zeros()
    return graph
