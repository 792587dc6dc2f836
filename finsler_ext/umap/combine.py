"""+, * and −: fitted models of the same samples combined into one, direction kept."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted
from umap.umap_ import (
    general_simplicial_set_intersection,
    general_simplicial_set_union,
    reset_local_metrics,
)

from finsler_ext.umap.graph import locally_connected
from finsler_ext.umap.memberships import fuzzy_union

# umap-learn combines with equal weight.
EQUAL_WEIGHT = 0.5


def combined_graph(left, right, operation: str) -> scipy.sparse.csr_matrix:
    """umap-learn's union, intersection or difference of two membership graphs.

    umap-learn ends each of them with a fuzzy union of the graph and its transpose. Here the
    rows are brought back to full local connectivity and keep their direction.
    """
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
    elif operation == "*":
        graph = general_simplicial_set_intersection(a, b, EQUAL_WEIGHT)
    else:
        graph = general_simplicial_set_intersection(a, b, EQUAL_WEIGHT, right_complement=True)
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
