"""Set operations on membership graphs: intersection with a target; +, * and − of fitted models.

umap-learn ends each of them with a fuzzy union of the graph and its transpose. Here the rows are
brought back to full local connectivity and keep their direction.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted
from umap import distances as umap_distances
from umap.umap_ import (
    fast_metric_intersection,
    general_simplicial_set_intersection,
    general_simplicial_set_union,
    reset_local_metrics,
)

from finsler_ext.neighbors.exact import exact_neighbors
from finsler_ext.neighbors.nndescent import approximate_neighbors
from finsler_ext.scales import umap_scales
from finsler_ext.umap.graph import directed_memberships, fuzzy_union
from finsler_ext.validation import readable

# umap-learn's figures.
UNKNOWN_LABEL = -1
UNKNOWN_DISTANCE = 1.0
# A target weight of 1 trusts the labels alone; umap-learn's stand-in for infinity.
FAR = 1.0e12
# umap-learn compares all pairs of targets below this size and searches approximately from it on.
EXACT_BELOW = 4096
# umap-learn combines models with equal weight.
EQUAL_WEIGHT = 0.5


def supervised(model, graph, n_neighbors: int, rows) -> scipy.sparse.csr_matrix:
    """The graph of the `Rows` of a fit, intersected with that of their target."""
    y, finite = rows.y, rows.ensure_all_finite
    if scipy.sparse.issparse(y):
        raise ValueError("y must be dense, got a sparse matrix. Pass y.toarray().")
    if model.target_metric == "string":
        y = np.asarray(y)
    elif model.target_metric == "categorical":
        y = categories(y, finite)
    else:
        y = check_array(
            readable(y, "y"),
            ensure_2d=False,
            ensure_all_finite=finite,
            dtype=None,
            input_name="y",
        )
    if y.ndim == 2 and y.shape[1] == 1:
        y = y.ravel()
    n = model._raw_data.shape[0]
    if len(y) != n:
        raise ValueError(f"Length of x = {n}, length of y = {len(y)}, while it must be equal.")
    given = model.target_n_neighbors
    return scipy.sparse.csr_matrix(
        intersect_with_target(
            graph,
            y if rows.distinct is None else y[rows.distinct],
            target_metric=model.target_metric,
            target_metric_kwds=model._target_metric_kwds,
            target_weight=model.target_weight,
            target_n_neighbors=n_neighbors if given == -1 else given,
            symmetric=model.affinity != "directed",
            random_state=rows.random_state,
            n_threads=model._n_threads if model.random_state is None else 1,
        )
    )


def intersect_with_target(
    graph,
    y,
    *,
    target_metric="categorical",
    target_metric_kwds=None,
    target_weight: float = 0.5,
    target_n_neighbors: int = 15,
    symmetric: bool = False,
    random_state=None,
    n_threads: int = 1,
) -> scipy.sparse.csr_array:
    """Weaken edges between points whose targets differ.

    The parameters are those of umap.UMAP; ``symmetric`` says whether the graph was symmetric
    before and is to be afterwards.
    """
    scale = 2.5 / (1.0 - target_weight) if target_weight < 1.0 else FAR
    edges = scipy.sparse.coo_array(graph, copy=True)
    source, target = edges.coords
    if target_metric == "categorical":
        unknown = (y[source] == UNKNOWN_LABEL) | (y[target] == UNKNOWN_LABEL)
        apart = np.where(unknown, UNKNOWN_DISTANCE, np.where(y[source] != y[target], scale, 0.0))
        edges.data *= np.exp(-apart).astype(edges.data.dtype)
    elif target_metric in umap_distances.DISCRETE_METRICS:
        kwds = tuple(umap_distances.get_discrete_params(y, target_metric).values())
        metric = umap_distances.named_distances[target_metric]
        fast_metric_intersection(source, target, edges.data, y, metric, kwds, scale)
    else:
        y = np.ascontiguousarray(y if y.ndim > 1 else y[:, None], dtype=np.float32)
        k, kwds = min(target_n_neighbors, len(y)), target_metric_kwds
        if len(y) < EXACT_BELOW:
            neighbors = exact_neighbors(y, k, metric=target_metric, metric_kwds=kwds)
        else:
            search = {"random_state": random_state, "n_threads": n_threads}
            neighbors = approximate_neighbors(
                y, k, metric=target_metric, metric_kwds=kwds, **search
            )
        sigma, rho = umap_scales(neighbors.distances, n_threads=n_threads)
        of_target = scipy.sparse.csr_matrix(directed_memberships(neighbors, sigma, rho))
        edges = general_simplicial_set_intersection(
            scipy.sparse.csr_matrix(graph), of_target, target_weight
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
    if hasattr(getattr(y, "dtype", None), "na_value") and y.isna().any():  # pandas' own types
        y = y.astype(object)
    y = np.asarray(y)
    if y.ndim > 1 and y.shape[-1] != 1:
        raise ValueError(
            f"y must have one class per row, got shape {y.shape}. For several targets choose a "
            "target_metric such as 'euclidean'."
        )
    y = y.ravel()
    if y.dtype.kind != "O":
        if ensure_all_finite is True or y.dtype.kind != "f":
            return check_array(
                y,
                ensure_2d=False,
                dtype=None,
                ensure_all_finite=ensure_all_finite,
                input_name="y",
            )
        return np.where(np.isnan(y), UNKNOWN_LABEL, y)
    codes = np.full(len(y), UNKNOWN_LABEL)
    number: dict = {}
    for place, value in enumerate(y):
        if not _is_unknown(value):
            codes[place] = number.setdefault(value, len(number))
    return codes


def _is_unknown(value) -> bool:
    if isinstance(value, (int, float, np.number)):
        return bool(value == UNKNOWN_LABEL or value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def locally_connected(graph: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Scale every row to a largest membership of 1."""
    largest = graph.max(axis=1).toarray().ravel()
    scale = np.where(largest > 0, largest, 1.0).astype(graph.dtype)
    graph.data /= np.repeat(scale, np.diff(graph.indptr))
    return graph


def combined_graph(left, right, operation: str) -> scipy.sparse.csr_matrix:
    """umap-learn's union, intersection or difference of two membership graphs."""
    for model in (left, right):
        if not isinstance(model, type(left)) or not isinstance(left, type(model)):
            raise ValueError(
                f"A {type(left).__name__} can be combined with its own kind only, got a "
                f"{type(model).__name__}: its graph has lost the direction. Fit "
                "FinslerUMAP(affinity='fuzzy_union', omega_norm=0), which is UMAP, instead."
            )
        check_is_fitted(model, "graph_", msg="Only fitted models can be combined.")
        if model.unique:
            raise ValueError("unique: models fitted with unique=True cannot be combined.")
    if left.graph_.shape != right.graph_.shape:
        raise ValueError(
            "Only models of the same samples can be combined, got "
            f"{left.graph_.shape[0]} and {right.graph_.shape[0]} samples."
        )
    a, b = (scipy.sparse.csr_matrix(model.graph_, copy=True) for model in (left, right))
    if operation == "+":
        graph = general_simplicial_set_union(a, b)
    else:
        minus = operation == "-"
        graph = general_simplicial_set_intersection(a, b, EQUAL_WEIGHT, right_complement=minus)
    graph = scipy.sparse.csr_array(graph)
    graph.eliminate_zeros()
    graph = locally_connected(graph)
    if operation != "-":
        reset_local_metrics(graph.indptr, graph.data)
    if "directed" not in (left.affinity, right.affinity):
        graph = fuzzy_union(graph)
    return scipy.sparse.csr_matrix(graph)


def combined_parameters(left, right) -> dict:
    """Parameters of the combined model: umap-learn's rules, and the mean of the drifts."""
    parameters = left.get_params(deep=False)
    for name, rule in (
        ("n_components", min),
        ("learning_rate", min),
        ("repulsion_strength", _mean),
        ("negative_sample_rate", _mean),
        ("verbose", max),
    ):
        parameters[name] = rule((getattr(left, name), getattr(right, name)))
    epochs = [m.n_epochs for m in (left, right)]
    whole = all(isinstance(n, (int, np.integer)) for n in epochs)
    parameters["n_epochs"] = max(epochs) if whole else None
    parameters["a"], parameters["b"] = _mean((left._a, right._a)), _mean((left._b, right._b))
    parameters["omega_norm"] = _mean((left.omega_norm_, right.omega_norm_))
    if left.affinity != right.affinity:
        parameters["affinity"] = "directed"
    if not isinstance(left.init, str) or left.init not in ("spectral", "random"):
        parameters["init"] = "spectral"
    parameters["transform_mode"] = "embedding"
    parameters["local_scale"] = parameters["geodesic_neighbors"] = None
    return parameters


def _mean(values):
    return float(np.mean(values))
