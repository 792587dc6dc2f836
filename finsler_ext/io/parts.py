"""What of an object is written, and what is made anew when it is read.

Compiled functions, thread counts and progress bars belong to a process. They are left out, and
made from what the file says when it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from finsler_ext._threads import resolve_n_jobs

__all__ = ["put_together", "taken_apart"]

UMAP_DERIVED = (
    "_input_distance_func",
    "_inverse_distance_func",
    "_output_distance_func",
    "_n_threads",
)

# What openTSNE's indices are made from.
INDEX_PARAMETERS = (
    "data", "k", "metric", "metric_params", "n_jobs", "random_state", "verbose", "knn_kwargs",
)  # fmt: skip
# Of a search that has to be built anew; any number does.
REBUILD_SEED = 0


def taken_apart(value) -> dict[str, Any]:
    """The attributes of an object that a file keeps."""
    for cls in type(value).__mro__:
        if _kind(cls) in _APART:
            return _APART[_kind(cls)](value)
    return value.__getstate__() if _says_itself(type(value)) else dict(vars(value))


def put_together(cls: type, state: dict[str, Any]) -> Any:
    """An object of a class, with the attributes a file kept."""
    for base in cls.__mro__:
        if _kind(base) in _TOGETHER:
            return _TOGETHER[_kind(base)](cls, state)
    made: Any = object.__new__(cls)
    if _says_itself(cls):
        made.__setstate__(state)
    else:
        vars(made).update(state)
    return made


def _says_itself(cls: type) -> bool:
    """Own classes that know what of them is to be kept."""
    return "__getstate__" in vars(cls) and "__setstate__" in vars(cls)


def _kind(cls: type) -> str:
    """Foreign packages are known by their first name: importing them takes seconds."""
    return f"{cls.__module__.split('.')[0]}.{cls.__name__}"


def _umap_apart(model) -> dict[str, Any]:
    state = {name: value for name, value in vars(model).items() if name not in UMAP_DERIVED}
    if "_fitted_names" in state:
        state["_fitted_names"] = frozenset(state["_fitted_names"])
    return state


def _estimator(cls: type, state: dict[str, Any]) -> Any:
    made = cls()  # parameters that the file does not know keep their defaults
    vars(made).update(state)
    return made


def _umap_together(cls: type, state: dict[str, Any]) -> Any:
    made = _estimator(cls, state)
    made._n_threads = resolve_n_jobs(made.n_jobs)
    if "_sparse_data" in state:
        functions = named_metric(made.metric, made._sparse_data)
        made._input_distance_func, made._inverse_distance_func = functions
        made._output_distance_func = named_metric(made.output_metric, False)[1]
    return made


def named_metric(metric: str, sparse: bool) -> tuple[Any, Any]:
    """umap-learn's compiled distance of a name, and the one with its gradient or None."""
    import pynndescent.distances
    import pynndescent.sparse
    import umap.distances
    import umap.sparse

    if metric == "precomputed":
        return metric, None
    gradient = umap.distances.named_distances_with_gradients.get(metric)
    if sparse:
        tables = (umap.sparse.sparse_named_distances, pynndescent.sparse.sparse_named_distances)
    else:
        tables = (umap.distances.named_distances, pynndescent.distances.named_distances)
    for table in tables:
        if metric in table:
            return table[metric], gradient
    raise ValueError(f"the metric {metric!r} is not known to the installed umap-learn")


def _embedding_apart(embedding) -> dict[str, Any]:
    state = dict(vars(embedding))
    settings = dict(state["gradient_descent_params"])
    settings["callbacks"] = None  # a parameter of the model, and refused there
    return {**state, "gradient_descent_params": settings, "positions": np.array(embedding)}


def _embedding_together(cls: type, state: dict[str, Any]) -> Any:
    state = dict(state)
    made = state.pop("positions").view(cls)
    vars(made).update(state)
    return made


def _space_apart(space) -> dict[str, Any]:
    from finsler_ext.spaces import SPACES

    if space not in SPACES.values():
        raise ValueError(
            f"space: {space.name!r} is not one of {tuple(SPACES)}, and its functions cannot be "
            "saved, because a file holds data and no code. Keep the model with joblib."
        )
    return {"name": space.name}


def _space_together(cls: type, state: dict[str, Any]) -> Any:
    from finsler_ext.spaces import find_space

    return find_space(state["name"])


def _descent_apart(index) -> dict[str, Any]:
    """The search graph and trees of pynndescent, as the arrays they are."""
    state = {name: value for name, value in index.__getstate__().items() if not _is_code(value)}
    return {"version": version("pynndescent"), "state": state}


def _descent_together(cls: type, state: dict[str, Any]) -> Any:
    """The search that was saved, if its arrays are those of the installed pynndescent.

    Otherwise a new one of the same rows.
    """
    kept = state["state"]
    if state["version"] == version("pynndescent"):
        made: Any = object.__new__(cls)
        made.__setstate__(kept)
        return made
    from finsler_ext.construct import approximate_neighbors

    rows = kept["_raw_data"]
    if "_vertex_order" in kept:  # pynndescent stores rows in an order of its own
        rows = rows[np.argsort(kept["_vertex_order"])]
    found = approximate_neighbors(
        rows,
        kept["n_neighbors"],
        metric=kept["metric"],
        metric_kwds=kept["metric_kwds"],
        random_state=REBUILD_SEED,
        low_memory=kept["low_memory"],
    )
    return found.search_index


def _is_code(value) -> bool:
    return callable(value) and not isinstance(value, type)


def _foreign_apart(index) -> dict[str, Any]:
    """openTSNE's own indices are built again from the same rows and seed."""
    return {name: getattr(index, name) for name in INDEX_PARAMETERS}


def _foreign_together(cls: type, state: dict[str, Any]) -> Any:
    if state["random_state"] is None:  # one that gives the same every time it is read
        state = {**state, "random_state": REBUILD_SEED, "n_jobs": 1}
    made = cls(**state)
    made.build()
    return made


_APART: dict[str, Callable[[Any], dict[str, Any]]] = {
    "finsler_ext.FinslerUMAP": _umap_apart,
    "finsler_ext.Space": _space_apart,
    "openTSNE.Annoy": _foreign_apart,
    "openTSNE.NNDescent": _foreign_apart,
    "openTSNE.Sklearn": _foreign_apart,
    "openTSNE.TSNEEmbedding": _embedding_apart,
    "pynndescent.NNDescent": _descent_apart,
}
_TOGETHER: dict[str, Callable[[type, dict[str, Any]], Any]] = {
    "finsler_ext.FinslerMDS": _estimator,
    "finsler_ext.FinslerTSNE": _estimator,
    "finsler_ext.FinslerUMAP": _umap_together,
    "finsler_ext.Space": _space_together,
    "openTSNE.Annoy": _foreign_together,
    "openTSNE.NNDescent": _foreign_together,
    "openTSNE.Sklearn": _foreign_together,
    "openTSNE.TSNEEmbedding": _embedding_together,
    "pynndescent.NNDescent": _descent_together,
}
