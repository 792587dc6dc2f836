"""What of an object is written, and what is made anew when it is read.

A file may name the classes that are declared by `finsler_ext.schema.saved`, and nothing it names
is called. Compiled functions and progress bars belong to a process. They are left
out, and made from what the file says when it is read. So are the searches of other packages.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from finsler_ext.schema import (
    FLAG,
    JOBS,
    NONE,
    SEED,
    TEXT,
    VERBOSE,
    Field,
    array,
    instance,
    name_of,
    saved,
    saved_class,
    sparse,
    whole,
)

# What save takes and load returns, and the modules that declare them; importing takes seconds.
ESTIMATORS = {
    "AlignedFinslerUMAP": "finsler_ext.aligned",
    "FinslerMDS": "finsler_ext.mds.estimator",
    "FinslerTSNE": "finsler_ext.tsne.estimator",
    "FinslerUMAP": "finsler_ext.umap.estimator",
    "opentsne.FinslerTSNE": "finsler_ext.tsne.opentsne",
    "opentsne.FinslerEmbedding": "finsler_ext.tsne.opentsne",
    "openTSNE.TSNEEmbedding": "finsler_ext.tsne.opentsne",
}
ROWS = array("f4 f8 u1", "n d") | sparse("f4 f8", "n d")
OPTIONS = NONE | instance(dict)
# Searches of other packages: what they are built from, again, when a file is read.
SEARCH: dict[str, Field] = {
    "data": ROWS, "k": whole("[1, n]"), "metric": TEXT, "metric_params": OPTIONS, "n_jobs": JOBS,
    "random_state": SEED, "verbose": VERBOSE, "knn_kwargs": OPTIONS,
}  # fmt: skip
FOREIGN: dict[str, tuple[str, dict[str, Field]]] = {
    "openTSNE.Annoy": ("openTSNE.nearest_neighbors", SEARCH),
    "openTSNE.NNDescent": ("openTSNE.nearest_neighbors", SEARCH),
    "openTSNE.Sklearn": ("openTSNE.nearest_neighbors", SEARCH),
    "pynndescent.NNDescent": (
        "pynndescent",
        {
            "rows": ROWS,
            "n_neighbors": whole("[1, n]"),
            "metric": TEXT,
            "metric_kwds": OPTIONS,
            "random_state": SEED,
            "low_memory": FLAG,
        },
    ),
}
# Of a search that was built without a seed; any number does.
REBUILD_SEED = 0
# What umap-learn makes of parameters; the last three with patches proposed to it.
UMAP_DERIVED = ("_input_distance_func", "_inverse_distance_func", "_output_distance_func",
                "_angular_rp_forest", "_n_jobs", "_symmetric_output_metric")  # fmt: skip


def class_named(name) -> type:
    """The class of a name, or a ValueError."""
    if isinstance(name, str):
        if name in FOREIGN:
            return _foreign_class(name)
        if name in ESTIMATORS:
            import_module(ESTIMATORS[name])
    return saved_class(name)


def name_in_files(cls: type) -> str | None:
    """The name of a class in files, None if a file may not hold it."""
    name = _kind(cls)
    if name in FOREIGN and cls is _foreign_class(name):
        return name
    return name_of(cls)


def is_estimator(cls: type) -> bool:
    return name_in_files(cls) in ESTIMATORS


def _foreign_class(name: str) -> type:
    module, fields = FOREIGN[name]
    cls = getattr(import_module(module), name.split(".")[1])
    if name_of(cls) is None:
        saved(fields, name=name)(cls)
    return cls


def _kind(cls: type) -> str:
    """Foreign packages are known by their first name: importing them takes seconds."""
    return f"{cls.__module__.split('.')[0]}.{cls.__name__}"


def get_state(value) -> dict[str, Any]:
    """The attributes of an object that a file keeps."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    for cls in type(value).__mro__:
        if _kind(cls) in _HOOKS:
            return _HOOKS[_kind(cls)][0](value)
    return value.__getstate__() if _has_state_hooks(type(value)) else dict(vars(value))


def set_state(cls: type, state: dict[str, Any]) -> Any:
    """An object of a class, with the attributes a file kept."""
    if issubclass(cls, tuple):
        return cls(**state)
    for base in cls.__mro__:
        if _kind(base) in _HOOKS:
            return _HOOKS[_kind(base)][1](cls, state)
    made: Any = object.__new__(cls)
    if _has_state_hooks(cls):
        made.__setstate__(state)
    else:
        vars(made).update(state)
    return made


def _has_state_hooks(cls: type) -> bool:
    """Own classes that know what of them is to be kept."""
    return "__getstate__" in vars(cls) and "__setstate__" in vars(cls)


def _estimator_state(model) -> dict[str, Any]:
    state = {name: value for name, value in vars(model).items() if name not in UMAP_DERIVED}
    if "_fitted_names" in state:
        state["_fitted_names"] = sorted(state["_fitted_names"])
    if "_fitted_params" in state:  # those that were changed after the fit
        fitted = state["_fitted_params"].items()
        state["_fitted_params"] = {k: v for k, v in fitted if not _is_same(v, state[k])}
    return state


def _is_same(one, other) -> bool:
    """Equal numbers and words are the same; a pickle makes two of what was one."""
    plain = type(one) is type(other) and isinstance(one, (bool, int, float, str))
    return one is other or (plain and one == other)


def _estimator(cls: Any, state: dict[str, Any]) -> Any:
    made = cls()
    vars(made).update(state)
    if "_fitted_names" in state:
        made._fitted_names = frozenset(state["_fitted_names"])
    if "_fitted_params" in state:
        kept = {name: state[name] for name in cls._parameters if name not in cls._free_after_fit}
        made._fitted_params = kept | state["_fitted_params"]
    return made


def _umap(cls: type, state: dict[str, Any]) -> Any:
    made = _estimator(cls, state)
    if "_sparse_data" in state:
        metric = getattr(made, "_fitted_params", {}).get("metric", made.metric)
        functions = named_metric(metric, made._sparse_data)
        made._input_distance_func, made._inverse_distance_func = functions
        made._output_distance_func = named_metric(made.output_metric, False)[1]
    return made


def _series_state(series) -> dict[str, Any]:
    """The maps are those of the models; of the estimator only the parameters count."""
    given = series.estimator
    parameters = None if given is None else given.get_params(deep=False)
    kept = {name: value for name, value in vars(series).items() if name != "embeddings_"}
    return {**kept, "estimator": parameters}


def _series(cls: Any, state: dict[str, Any]) -> Any:
    given = state["estimator"]
    made = cls(None if given is None else class_named("FinslerUMAP")(**given))
    vars(made).update({name: value for name, value in state.items() if name != "estimator"})
    made.embeddings_ = [model.embedding_ for model in made.models_]
    return made


def named_metric(metric: str, is_sparse: bool) -> tuple[Any, Any]:
    """umap-learn's compiled distance of a name, and the one with its gradient or None."""
    import pynndescent.distances
    import pynndescent.sparse
    import umap.distances
    import umap.sparse

    if metric == "precomputed":
        return metric, None
    gradient = umap.distances.named_distances_with_gradients.get(metric)
    if is_sparse:
        tables = (umap.sparse.sparse_named_distances, pynndescent.sparse.sparse_named_distances)
    else:
        tables = (umap.distances.named_distances, pynndescent.distances.named_distances)
    for table in tables:
        if metric in table:
            return table[metric], gradient
    raise ValueError(f"the metric {metric!r} is not known to the installed umap-learn")


# What openTSNE keeps of the last step: it is made anew.
SCRATCH = ("interp_coeffs", "box_x_lower_bounds", "box_y_lower_bounds")


def _embedding_state(embedding) -> dict[str, Any]:
    state = {name: value for name, value in vars(embedding).items() if name not in SCRATCH}
    given = dict(state["gradient_descent_params"])
    given["callbacks"] = None  # a parameter of the model, and refused there
    return {**state, "gradient_descent_params": given, "positions": np.array(embedding)}


def _embedding(cls: type, state: dict[str, Any]) -> Any:
    state = dict(state)
    made: Any = np.array(state.pop("positions")).view(cls)
    vars(made).update(dict.fromkeys(SCRATCH) | state)
    return made


def _space_state(space) -> dict[str, Any]:
    from finsler_ext.geometry import SPACES

    if space not in SPACES.values():
        raise ValueError(
            f"space: {space.name!r} is not one of {tuple(SPACES)}, and its functions cannot be "
            "saved, because a file holds data and no code. Keep the model with joblib."
        )
    return {"name": space.name}


def _space(cls: type, state: dict[str, Any]) -> Any:
    from finsler_ext.geometry import find_space

    return find_space(state["name"])


def _descent_state(index) -> dict[str, Any]:
    """What pynndescent's search was built from."""
    if not hasattr(index, "_built_from"):  # by the user; rows are stored in an order of its own
        index.prepare()
        index._built_from = index._raw_data[np.argsort(index._vertex_order)], None
    rows, seed = index._built_from
    names = ("n_neighbors", "metric", "metric_kwds", "low_memory")
    return {"rows": rows, "random_state": seed} | {name: getattr(index, name) for name in names}


def _descent(cls: type, state: dict[str, Any]) -> Any:
    from finsler_ext.neighbors.nndescent import approximate_neighbors

    seed = REBUILD_SEED if state["random_state"] is None else state["random_state"]
    rest = {name: state[name] for name in ("metric", "metric_kwds", "low_memory")}
    found = approximate_neighbors(state["rows"], state["n_neighbors"], random_state=seed, **rest)
    return found.search_index


def _search_state(index) -> dict[str, Any]:
    return {name: getattr(index, name) for name in SEARCH}


def _search(cls: type, state: dict[str, Any]) -> Any:
    if state["random_state"] is None:  # one that gives the same every time it is read
        state = {**state, "random_state": REBUILD_SEED, "n_jobs": 1}
    made = cls(**state)
    made.build()
    return made


# How to take objects of a class apart, and how to put them together.
_HOOKS: dict[str, tuple[Callable[[Any], dict[str, Any]], Callable[[Any, dict[str, Any]], Any]]] = {
    "finsler_ext.AlignedFinslerUMAP": (_series_state, _series),
    "finsler_ext.FinslerMDS": (_estimator_state, _estimator),
    "finsler_ext.OpenFinslerTSNE": (_estimator_state, _estimator),
    "finsler_ext.FinslerUMAP": (_estimator_state, _umap),
    "finsler_ext.Space": (_space_state, _space),
    "openTSNE.Annoy": (_search_state, _search),
    "openTSNE.NNDescent": (_search_state, _search),
    "openTSNE.Sklearn": (_search_state, _search),
    "openTSNE.TSNEEmbedding": (_embedding_state, _embedding),
    "pynndescent.NNDescent": (_descent_state, _descent),
}
