"""From data to the directed membership graph of a FinslerUMAP model."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse
from sklearn.utils import check_array
from umap.umap_ import raise_disconnected_warning

from finsler_ext import construct
from finsler_ext._warn import warn
from finsler_ext.asymmetry import Asymmetry
from finsler_ext.construct.directed_distances import metric_between
from finsler_ext.construct.index import (
    EXACT,
    GROUPS,
    ExactIndex,
    GroupIndex,
    as_index,
    cheapest_search,
    sampled_recall,
)
from finsler_ext.construct.index.precomputed import distances_between
from finsler_ext.construct.input import UNITLESS, readable
from finsler_ext.construct.supervision import categories, intersect_with_target
from finsler_ext.construct.symmetry import is_directed

__all__ = [
    "asymmetry_of",
    "build_graph",
    "exact_index",
    "find_neighbors",
    "isolated",
    "pair_kwds",
    "search_in_words",
    "skew_distances",
    "supervise",
]

# umap-learn compares all pairs of targets below this size and searches approximately from it on.
EXACT_BELOW = 4096
LARGEST = 1e18
# An asymmetric callable metric is compared on all pairs up to this size.
ASYMMETRIC_BELOW = 20_000


def find_neighbors(model, X, random_state) -> construct.DirectedNeighbors:
    n = X.shape[0]
    if model.n_neighbors >= n:
        warn("n_neighbors is larger than the dataset size; truncating to X.shape[0] - 1")
    k = model._n_neighbors = min(model.n_neighbors, max(2, n - 1))
    model._small_data = model._asymmetric_metric = model._directed_distances = False
    model._digraph = model._skew_distances = None
    indices, distances, search_index = model._given_knn
    if distances is not None:
        indices, distances = _checked_knn(indices, distances, n)
        if not model._as_fitted.plain:
            search_index = None  # it was built in other units
        distances = model._as_fitted.scaled(distances)
        found = construct.with_self_first(indices[:, :k], distances[:, :k], search_index)
    elif model.metric == "precomputed":
        found = construct.precomputed_neighbors(X, k)
        # Geodesics are made of neighbours; without them a digraph keeps all its edges.
        if model.geodesic_neighbors is None and construct.is_digraph(X):
            model._digraph = construct.digraph_edges(X)
            model._skew_distances = construct.with_ways_back(X)
        model._directed_distances = is_directed(skew_distances(model, X))
    else:
        found = _search(model, X, k, random_state)
        if model.verbose:
            model._say(search_in_words(model, X, found))
    cut = (found.distances >= model._disconnection_distance) & (found.indices >= 0)
    model._n_edges_removed = int(cut.sum())
    found.indices[cut], found.distances[cut] = -1, np.inf
    return found


def search_in_words(model, X, found: construct.DirectedNeighbors) -> str:
    """Which search was taken, and its recall on a sample."""
    if found.search_index is None:
        return f"Neighbours: {ExactIndex.name}, all pairs of {X.shape[0]} rows were compared"
    recall = sampled_recall(exact_index(model, X, new_rows=True), X, found.distances)
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


def _search(model, X, k, random_state):
    n = X.shape[0]
    directed = callable(model.metric) and construct.is_asymmetric(
        model._input_distance_func, X, model._metric_kwds
    )
    if directed and n > ASYMMETRIC_BELOW:
        raise ValueError(
            f"metric: {model.metric!r} is asymmetric, and approximate neighbour search mixes "
            f"up directions; all pairs are compared up to {ASYMMETRIC_BELOW} points, X has "
            f"{n}. Compute the directed distances (a sparse matrix of the nearest ones will "
            "do) and pass metric='precomputed'."
        )
    model._asymmetric_metric = directed
    search = cheapest_search(
        X,
        None if model._metric_kwds else model.metric,
        approximate=model.force_approximation_algorithm,
    )
    model._small_data = directed or search == EXACT
    sparse = scipy.sparse.issparse(X)
    if model._small_data:
        return exact_index(model, X).build(X, k)
    if search == GROUPS and np.isfinite([X.min(), X.max()]).all():
        index = GroupIndex(model.metric, random_state=random_state, n_threads=model._n_threads)
        return index.build(X, k)
    values = X.data if sparse else X
    if values.size and np.abs(values).max() > LARGEST:
        raise ValueError(
            f"X has values beyond {LARGEST:g}, whose squares single precision cannot hold, as the "
            "search in large data needs. Divide X by a constant."
        )
    from pynndescent.distances import named_distances
    from pynndescent.sparse import sparse_named_distances

    named = sparse_named_distances if sparse else named_distances
    known = isinstance(model.metric, str) and model.metric in named
    return construct.approximate_neighbors(
        X,
        k,
        metric=model.metric if known else model._input_distance_func,
        metric_kwds=model._metric_kwds,
        random_state=random_state,
        # NN-descent depends on its thread count, a seeded result must not.
        n_threads=model._n_threads if model.random_state is None else 1,
        low_memory=model.low_memory,
        verbose=model.verbose,
    )


def exact_index(model, X, *, new_rows: bool = False) -> ExactIndex:
    """An index that compares all pairs in the metric of the model."""
    by_name = model.metric in ("euclidean", "l2")
    if new_rows and scipy.sparse.issparse(X):
        by_name = False  # products of sparse rows round, and differently in other company
    return ExactIndex(
        model.metric if by_name else model._input_distance_func,
        pair_kwds(model, X),
        symmetric=not model._asymmetric_metric,
        n_threads=model._n_threads,
        named=model.metric if isinstance(model.metric, str) else None,
    )


def pair_kwds(model, X) -> dict:
    """Keyword arguments of ``_input_distance_func``, in its order."""
    from umap.sparse import sparse_need_n_features

    if scipy.sparse.issparse(X) and model.metric in sparse_need_n_features:
        return {"n_features": X.shape[1], **model._metric_kwds}
    return model._metric_kwds


def build_graph(model, X, neighbors):
    model._knn_indices, model._knn_dists, model._knn_search_index = neighbors
    target_k = model._n_neighbors
    model._geodesic = None
    if model.geodesic_neighbors is not None:
        between = None
        if model.metric == "precomputed":
            between = partial(distances_between, X)
        elif model.metric not in ("euclidean", "l2"):
            between = partial(metric_between, X, model._input_distance_func, pair_kwds(model, X))
        neighbors = model._geodesic = construct.geodesic_neighbors(
            neighbors, model.geodesic_neighbors, X, distances=between
        )
        target_k = model.geodesic_neighbors
    model._mean_distance = construct.mean_distance(neighbors.distances)
    if model._digraph is not None:
        neighbors = model._digraph = _within_reach(model)
        model._sigmas, model._rhos, model.local_scale_ = construct.digraph_scales(
            neighbors, local_connectivity=model.local_connectivity, n_threads=model._n_threads
        )
    else:
        model._sigmas, model._rhos = construct.umap_scales(
            neighbors.distances,
            local_connectivity=model.local_connectivity,
            n_neighbors=target_k,
            overall=model._mean_distance,
            n_threads=model._n_threads,
        )
        model.local_scale_ = construct.mean_neighbor_distance(neighbors.distances)
    if model._as_fitted.exponent and model.metric not in UNITLESS:
        model.local_scale_ = np.ldexp(model.local_scale_, model._as_fitted.exponent)
    model._density_sigmas = model._sigmas
    if model._given_scale is not None:
        model._sigmas = construct.relative_scale(model._given_scale, model._sigmas)
        model.local_scale_ = model._given_scale.copy()
    if model.affinity == "harmonic":
        graph = construct.harmonic_memberships(neighbors, model._sigmas, model._rhos)
    else:
        # With a scale of the user's, an edge that either end chose counts for both: the choice of
        # neighbours depends on density.
        given = model._given_scale is not None and model.metric != "precomputed"
        graph = construct.directed_memberships(
            neighbors, model._sigmas, model._rhos, both_ways=given
        )
    if model.affinity == "fuzzy_union":
        graph = construct.fuzzy_union(graph, model.set_op_mix_ratio)
    model.graph_ = scipy.sparse.csr_matrix(graph)
    model.graph_dists_ = None
    raise_disconnected_warning(
        model._n_edges_removed,
        int(np.sum(isolated(graph))),
        model._disconnection_distance,
        X.shape[0],
        verbose=model.verbose,
    )


def skew_distances(model, X):
    """Directed distances whose skew the height is to show: of a digraph, with the ways back."""
    completed = getattr(model, "_skew_distances", None)
    return X if completed is None else completed


def _within_reach(model) -> construct.Edges:
    """The edges of a digraph that are shorter than the disconnection distance."""
    source, target, length, n = model._digraph
    near = length < model._disconnection_distance
    model._n_edges_removed = int(near.size - near.sum())
    return construct.Edges(source[near], target[near], length[near], n)


def supervise(model, y, rows, random_state, ensure_all_finite):
    model._supervised = y is not None
    if y is None:
        return
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
    k = model._n_neighbors if model.target_n_neighbors == -1 else model.target_n_neighbors
    graph = intersect_with_target(
        model.graph_,
        y if rows is None else y[rows],
        target_metric=model.target_metric,
        target_metric_kwds=model._target_metric_kwds,
        target_weight=model.target_weight,
        target_n_neighbors=k,
        exact_below=EXACT_BELOW,
        symmetric=model.affinity != "directed",
        random_state=random_state,
        n_threads=model._n_threads if model.random_state is None else 1,
    )
    model.graph_ = scipy.sparse.csr_matrix(graph)


def asymmetry_of(model, X) -> Asymmetry:
    """What the height of a model with a graph is to show."""
    if model._directed_distances:
        return Asymmetry.of_distances(skew_distances(model, X))
    if model._asymmetric_metric:
        return Asymmetry.of_distances(_neighbor_distances(model))
    given = model._given_scale is not None
    return Asymmetry.of_scale(model.graph_, model.local_scale_, given=given)


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
