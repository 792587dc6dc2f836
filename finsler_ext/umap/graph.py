"""From data to the directed membership graph of a FinslerUMAP model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_array
from umap.umap_ import raise_disconnected_warning

from finsler_ext._messages import warn
from finsler_ext.asymmetry import Asymmetry, affinity_lengths, is_directed
from finsler_ext.directed.data import DirectedData
from finsler_ext.directed.digraph import (
    Edges,
    digraph_edges,
    digraph_scales,
    edge_strengths,
    is_digraph,
    with_ways_back,
)
from finsler_ext.neighbors import (
    EXACT,
    cheapest_search,
    kmeans_graph,  # noqa: F401  (a model file may hold its index)
    make_index,
)
from finsler_ext.neighbors.exact import (
    EUCLIDEAN,
    ExactIndex,
    exact_neighbors,
    is_asymmetric,
    sampled_recall,
)
from finsler_ext.neighbors.geodesics import geodesic_neighbors, metric_between
from finsler_ext.neighbors.nndescent import approximate_neighbors, as_index
from finsler_ext.neighbors.precomputed import distances_between, precomputed_neighbors
from finsler_ext.neighbors.search import DirectedNeighbors, SearchSettings, with_self_first
from finsler_ext.scales import mean_distance, mean_neighbor_distance, relative_scale, umap_scales
from finsler_ext.umap.memberships import directed_memberships, fuzzy_union, harmonic_memberships
from finsler_ext.validation import UNITLESS, readable

# umap-learn compares all pairs of targets below this size and searches approximately from it on.
EXACT_BELOW = 4096
# An asymmetric callable metric is compared on all pairs up to this size.
ASYMMETRIC_BELOW = 20_000


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
        back; None for features
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
        directed = search.distances is not None and is_directed(search.distances)
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
            found = replace(found, digraph=near, distances=with_ways_back(X), n_cut=n_cut)
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
    n = X.shape[0]
    directed = callable(model.metric) and is_asymmetric(
        model._input_distance_func, X, model._metric_kwds
    )
    if directed and n > ASYMMETRIC_BELOW:
        raise ValueError(
            f"metric: {model.metric!r} is asymmetric, and approximate neighbour search mixes "
            f"up directions; all pairs are compared up to {ASYMMETRIC_BELOW} points, X has "
            f"{n}. Compute the directed distances (a sparse matrix of the nearest ones will "
            "do) and pass metric='precomputed'."
        )
    search = EXACT
    if not directed:
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
    # products of sparse rows round, and differently in other company
    by_name = model.metric in EUCLIDEAN and not scipy.sparse.issparse(X)
    return ExactIndex(
        model.metric if by_name else model._input_distance_func,
        pair_kwds(model, X),
        symmetric=symmetric,
        n_threads=model._n_threads,
        named=model.metric if isinstance(model.metric, str) else None,
    )


def pair_kwds(model, X) -> dict:
    """Keyword arguments of ``_input_distance_func``, in its order."""
    from umap.sparse import sparse_need_n_features

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


def supervised(model, graph: DirectedGraph, y, rows, random_state, ensure_all_finite):
    """The graph, intersected with that of a target y of all rows, of which ``rows`` were kept."""
    if y is None:
        return graph
    if model.target_metric == "string":
        y = np.asarray(y)
    elif model.target_metric == "categorical":
        y = categories(y, ensure_all_finite)
    else:
        y = readable(y, "y")
        y = check_array(y, ensure_2d=False, ensure_all_finite=ensure_all_finite, dtype=None)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y.ravel()
    n = model._raw_data.shape[0]
    if len(y) != n:
        raise ValueError(f"Length of x = {n}, length of y = {len(y)}, while it must be equal.")
    given = model.target_n_neighbors
    matrix = intersect_with_target(
        graph.matrix,
        y if rows is None else y[rows],
        target_metric=model.target_metric,
        target_metric_kwds=model._target_metric_kwds,
        target_weight=model.target_weight,
        target_n_neighbors=graph.search.n_neighbors if given == -1 else given,
        exact_below=EXACT_BELOW,
        symmetric=model.affinity != "directed",
        random_state=random_state,
        n_threads=model._n_threads if model.random_state is None else 1,
    )
    return replace(graph, matrix=scipy.sparse.csr_matrix(matrix))


def asymmetry_of(model, X) -> Asymmetry:
    """What the height of a model with a graph is to show."""
    if model._directed_distances:
        strengths = None if model._digraph is None else edge_strengths(model._digraph)
        distances = X if model._skew_distances is None else model._skew_distances
        return Asymmetry.of_distances(distances, strengths=strengths)
    if model._asymmetric_metric:
        strengths = model.graph_ if model.affinity == "directed" else None
        distances = _neighbor_distances(model) if X is not None else affinity_lengths(model.graph_)
        return Asymmetry.of_distances(distances, strengths=strengths)
    given = model._given_scale is not None
    return Asymmetry.of_scale(model.graph_, model.local_scale_, given=given)


def measured_by(model, X, strengths=None):
    """What the asymmetry of a model with a graph was measured on."""
    if X is None:
        return "the graph was made of others"
    if model._directed_distances:
        return DirectedData(X, strengths=strengths)
    if model._asymmetric_metric:
        return "a directed metric of rows leaves nothing to randomise"
    own = model._knn_indices[:, 0] == np.arange(len(model._knn_indices))
    if not own.all():
        return "a point is not the first among its neighbours"
    return model._knn_indices[:, 1:], model._knn_dists[:, 1:]


def _neighbor_distances(model) -> scipy.sparse.csr_array:
    """Directed distances on the neighbour edges, rows being sources."""
    row, column = np.nonzero(model._knn_indices >= 0)
    target = model._knn_indices[row, column]
    off = target != row
    edges = (model._knn_dists[row, column][off], (row[off], target[off]))
    n = len(model._knn_indices)
    return scipy.sparse.csr_array(scipy.sparse.coo_array(edges, shape=(n, n)))


def isolated(graph) -> np.ndarray:
    """Points with neither an out-edge nor an in-edge."""
    out = np.asarray(graph.sum(axis=1)).ravel()
    into = np.asarray(graph.sum(axis=0)).ravel()
    return (out == 0) & (into == 0)


# Supervised memberships: umap-learn's intersection with a target, without the averaging.
#
# umap-learn ends each intersection with a fuzzy union of the graph and its transpose. Here the
# rows are brought back to full local connectivity and keep their direction.

# umap-learn's figures.
UNKNOWN_LABEL = -1
UNKNOWN_DISTANCE = 1.0
# A target weight of 1 trusts the labels alone; umap-learn's stand-in for infinity.
FAR = 1.0e12


def intersect_with_target(
    graph,
    y,
    *,
    target_metric="categorical",
    target_metric_kwds=None,
    target_weight: float = 0.5,
    target_n_neighbors: int = 15,
    exact_below: int,
    symmetric: bool = False,
    random_state=None,
    n_threads: int = 1,
) -> scipy.sparse.csr_array:
    """Weaken edges between points whose targets differ.

    The parameters are those of umap.UMAP; ``symmetric`` says whether the graph was symmetric
    before and is to be afterwards.
    """
    from umap import distances as umap_distances

    scale = 2.5 / (1.0 - target_weight) if target_weight < 1.0 else FAR
    edges = scipy.sparse.coo_array(graph, copy=True)
    source, target = edges.coords
    if target_metric == "categorical":
        unknown = (y[source] == UNKNOWN_LABEL) | (y[target] == UNKNOWN_LABEL)
        apart = np.where(unknown, UNKNOWN_DISTANCE, np.where(y[source] != y[target], scale, 0.0))
        edges.data *= np.exp(-apart).astype(edges.data.dtype)
    elif target_metric in umap_distances.DISCRETE_METRICS:
        from umap.umap_ import fast_metric_intersection

        kwds = umap_distances.get_discrete_params(y, target_metric)
        fast_metric_intersection(
            source,
            target,
            edges.data,
            y,
            umap_distances.named_distances[target_metric],
            tuple(kwds.values()),
            scale,
        )
    else:
        edges = _continuous(
            graph,
            y if y.ndim > 1 else y[:, None],
            target_metric,
            target_metric_kwds,
            target_weight,
            target_n_neighbors,
            exact_below,
            random_state,
            n_threads,
        )
    result = scipy.sparse.csr_array(edges)
    if not np.isfinite(result.data).all():
        raise ValueError(
            f"target_metric={target_metric!r} gives no finite distances for this y; choose another "
            "target_metric."
        )
    result.eliminate_zeros()
    result = locally_connected(result)
    return fuzzy_union(result) if symmetric else result


def categories(y, ensure_all_finite=True) -> np.ndarray:
    """Classes for comparison; what is missing (None, masked, pandas' NA) is unknown, as −1 is.

    NaN in numbers is refused, unless ``ensure_all_finite`` allows it: then it is unknown.
    """
    if isinstance(y, np.ma.MaskedArray):
        masked, y = np.ma.getmaskarray(y), y.data.astype(object)
        y[masked] = None
    y = np.asarray(y)
    if y.ndim > 1 and y.shape[-1] != 1:
        raise ValueError(
            f"y must have one class per row, got shape {y.shape}. For several targets choose a "
            "target_metric such as 'euclidean'."
        )
    y = y.ravel()
    if y.dtype.kind != "O":
        if ensure_all_finite is True or y.dtype.kind != "f":
            return check_array(y, ensure_2d=False, dtype=None, ensure_all_finite=ensure_all_finite)
        return np.where(np.isnan(y), UNKNOWN_LABEL, y)
    unknown = np.array([_is_missing(value) for value in y], dtype=bool)
    codes = np.full(len(y), UNKNOWN_LABEL)
    number: dict = {}
    for place in np.flatnonzero(~unknown):
        value = y[place]
        same = isinstance(value, (int, float, np.number)) and value == UNKNOWN_LABEL
        codes[place] = UNKNOWN_LABEL if same else number.setdefault(value, len(number))
    return codes


def _is_missing(value) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _continuous(
    graph, y, metric, metric_kwds, weight, n_neighbors, exact_below, random_state, n_threads
):
    from umap.umap_ import general_simplicial_set_intersection

    y = np.ascontiguousarray(y, dtype=np.float32)
    k = min(n_neighbors, len(y))
    if len(y) < exact_below:
        neighbors = exact_neighbors(y, k, metric=metric, metric_kwds=metric_kwds)
    else:
        neighbors = approximate_neighbors(
            y,
            k,
            metric=metric,
            metric_kwds=metric_kwds,
            random_state=random_state,
            n_threads=n_threads,
        )
    sigma, rho = umap_scales(neighbors.distances, n_threads=n_threads)
    target_graph = directed_memberships(neighbors, sigma, rho)
    return general_simplicial_set_intersection(
        scipy.sparse.csr_matrix(graph), scipy.sparse.csr_matrix(target_graph), weight
    )


def locally_connected(graph: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Scale every row to a largest membership of 1."""
    largest = graph.max(axis=1).toarray().ravel()
    graph.data /= np.repeat(np.where(largest > 0, largest, 1.0), np.diff(graph.indptr)).astype(
        graph.data.dtype
    )
    return graph
