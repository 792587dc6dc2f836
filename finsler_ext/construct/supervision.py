"""Supervised memberships: umap-learn's intersection with a target, without the averaging.

umap-learn ends each intersection with a fuzzy union of the graph and its transpose. Here the
rows are brought back to full local connectivity and keep their direction.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from sklearn.utils import check_array

from finsler_ext.construct.memberships import directed_memberships, fuzzy_union
from finsler_ext.construct.neighbors import approximate_neighbors, exact_neighbors
from finsler_ext.construct.scales import umap_scales

__all__ = ["categories", "intersect_with_target", "locally_connected"]

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
