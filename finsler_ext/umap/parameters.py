"""Checks of FinslerUMAP's data and parameters, on top of umap-learn's own."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.optimize import OptimizeWarning
from sklearn.utils.validation import validate_data
from umap import UMAP
from umap.umap_ import find_ab_params

from finsler_ext import schema
from finsler_ext._messages import without_foreign
from finsler_ext.base import check_drift_of, scores
from finsler_ext.directed.read import check_node_names, check_range, fill_missing, unmask
from finsler_ext.height.acts import HEIGHTS, POTENTIAL, check_height, check_law
from finsler_ext.umap.graph import AFFINITIES
from finsler_ext.validation import (
    LENGTHS,
    AsFitted,
    as_stored,
    canonical,
    check_start,
    check_start_shape,
    readable,
)

# umap-learn's progress bar, which it may or may not write into tqdm_kwds.
PROGRESS_BAR = {
    "desc": "Epochs completed",
    "bar_format": "{desc}: {percentage:3.0f}%| {bar} {n_fmt}/{total_fmt} [{elapsed}]",
}
EPOCHS = schema.whole("[0, 1000000]")
OPTIONS = schema.NONE | schema.instance(dict)
ANYTHING = schema.Field("indices, distances and search", lambda value, scope: True)
# What each parameter may be; `fit` and `finsler_ext.load` refuse anything else.
PARAMETERS = {
    "n_neighbors": schema.whole("[2, inf)"),
    "n_components": schema.WIDTH,
    "metric": schema.TEXT | schema.CALLABLE,
    "metric_kwds": schema.METRIC_OPTIONS,
    "output_metric": schema.TEXT,
    "output_metric_kwds": OPTIONS,
    "n_epochs": schema.NONE | EPOCHS | schema.listed(EPOCHS) | schema.array_like("k"),
    "learning_rate": schema.number("[0, inf)"),
    "init": schema.one_of("spectral", "random", "pca", "tswspectral") | schema.instance(np.ndarray),
    "min_dist": schema.number("[0, inf)"),
    "spread": schema.number("(0, 1e9]"),
    "low_memory": schema.FLAG,
    "n_jobs": schema.JOBS,
    "set_op_mix_ratio": schema.number("[0, 1]"),
    "local_connectivity": schema.number("[0, inf)"),
    "repulsion_strength": schema.number("[0, inf)"),
    "negative_sample_rate": schema.number("[0, 10000]"),
    "transform_queue_size": schema.number("(0, inf)"),
    "a": schema.NONE | schema.number("(0, inf)"),
    "b": schema.NONE | schema.number("(0, inf)"),
    "random_state": schema.SEED,
    "angular_rp_forest": schema.FLAG,
    "target_n_neighbors": schema.whole("[-1, inf)"),
    "target_metric": schema.TEXT | schema.CALLABLE,
    "target_metric_kwds": OPTIONS,
    "target_weight": schema.number("[0, 1]"),
    "transform_seed": schema.SEED,
    "transform_mode": schema.one_of("embedding", "graph"),
    "force_approximation_algorithm": schema.FLAG,
    "verbose": schema.VERBOSE,
    "tqdm_kwds": OPTIONS,
    "unique": schema.FLAG,
    "densmap": schema.FLAG,
    "dens_lambda": schema.number("[0, inf)"),
    "dens_frac": schema.number("[0, 1]"),
    "dens_var_shift": schema.number("[0, inf)"),
    "output_dens": schema.FLAG,
    "disconnection_distance": schema.NONE | schema.number("[0, inf]"),
    "precomputed_knn": schema.listed(ANYTHING, least=2),
    "omega_norm": schema.DRIFT,
    "affinity": schema.one_of(*AFFINITIES),
    "geodesic_neighbors": schema.NONE | schema.whole("[1, inf)"),
    "local_scale": schema.SCALE,
    "height": schema.one_of(*HEIGHTS),
    "space": schema.SPACE,
    "output": schema.one_of("all", "map"),
    "ridge": schema.RIDGE,
}
# Attributes of a fitted model, as files hold them: n rows of the graph, N of the data (more with
# unique=True), d features, m columns.
DENSE_ROWS = schema.array("f4", "N d", "[-inf, inf]", nan=True) | schema.array("u1", "N d")
SPARSE_ROWS = schema.sparse("f4", "N d", "[-inf, inf]", nan=True)
PAIRS = schema.sparse("f4 f8", "n n") | schema.array("f4 f8", "n n", "[0, inf]", nan=True)
POSITIONS = schema.array("f4", "N m", nan=True)
FITTED = scores("N") | {
    "_raw_data": schema.NONE | DENSE_ROWS | SPARSE_ROWS,
    "graph_": schema.sparse("f4", "n n", "[0, 1]"),
    "embedding_": schema.maybe(POSITIONS),
    "embedding_list_": schema.maybe(schema.listed(POSITIONS)),
    "pinned_": schema.maybe(schema.NONE | schema.array("f8", "N m", nan=True)),
    "_unique_rows_": schema.maybe(schema.array("i8", "n", "[0, N)")),
    "_unique_inverse_": schema.maybe(schema.array("i8", "N", "[0, n)")),
    "_as_fitted": schema.maybe(schema.part("AsFitted", d="d")),
    "height_": schema.maybe(schema.one_of(*HEIGHTS[1:])),
    "drift_choice_": schema.maybe(schema.part("DriftChoice")),
    "loss_": schema.maybe(schema.NONE | schema.part("UmapLoss")),
    "islands_": schema.maybe(schema.part("Islands")),
    "graph_dists_": schema.maybe(schema.NONE),
    "_fitted_params": schema.maybe(schema.known_settings(PARAMETERS)),
    "_a": schema.number("(0, inf)"),
    "_b": schema.number("(0, inf)"),
    "_n_neighbors": schema.maybe(schema.whole("[1, n]")),
    "_knn_indices": schema.maybe(schema.array("i4", "n k", "[-1, n)")),
    "_knn_dists": schema.maybe(schema.array("f4", "n k", "[0, inf]")),
    "_knn_search_index": schema.maybe(
        schema.NONE | schema.part("KMeansGraphIndex", "pynndescent.NNDescent", n="n", d="d")
    ),
    "_geodesic": schema.maybe(schema.NONE | schema.part("DirectedNeighbors", n="n")),
    "_sigmas": schema.maybe(schema.array("f4", "n", "(0, inf)")),
    "_rhos": schema.maybe(schema.array("f4", "n", "[0, inf)")),
    "_density_sigmas": schema.maybe(schema.array("f4", "n", "(0, inf)")),
    "_given_scale": schema.NONE | schema.array("f8", "n", "(0, inf)"),
    "_mean_distance": schema.maybe(schema.number("[0, inf)", nan=True)),
    "_disconnection_distance": schema.maybe(schema.number("[0, inf]")),
    "_digraph": schema.NONE | schema.part("Edges", n="n"),
    "_skew_distances": schema.NONE | PAIRS,
    "_asymmetric_metric": schema.FLAG,
    "_directed_distances": schema.FLAG,
    "_supervised": schema.FLAG,
    "_small_data": schema.maybe(schema.FLAG),
    "_sparse_data": schema.maybe(schema.FLAG),
    "_initial_alpha": schema.maybe(schema.number("[0, inf)")),
    "_n_edges_removed": schema.maybe(schema.whole("[0, inf)")),
    "_n_epochs_list": schema.NONE | schema.listed(EPOCHS),
    "_given_knn": schema.maybe(schema.instance(tuple)),
    "_bar_kwds": OPTIONS,
    "_densmap_kwds": schema.maybe(OPTIONS),
    "_metric_kwds": schema.maybe(schema.METRIC_OPTIONS),
    "_output_metric_kwds": schema.maybe(OPTIONS),
    "_target_metric_kwds": schema.maybe(OPTIONS),
}


class Rows(NamedTuple):
    """What a fit embeds.

    X : checked data; None for a graph made of others
    init : the parameter, or positions to start from
    random_state : numpy RandomState
    y, ensure_all_finite, callback : as in `fit`
    pins : given places, nan where free
    strengths : of the edges of a digraph, if the data has any
    distinct, inverse : with unique=True, the rows kept, and which of them stands for each row
    """

    X: Any
    init: Any
    random_state: np.random.RandomState
    y: Any = None
    ensure_all_finite: Any = True
    callback: Callable | None = None
    pins: np.ndarray | None = None
    strengths: Any = None
    distinct: np.ndarray | None = None
    inverse: np.ndarray | None = None


def check_fitted(state: dict) -> None:
    """What must hold between the attributes of a model that is read from a file."""
    fitted = {**state, **state.get("_fitted_params", {})}
    check_drift_of(fitted)
    rows = state["_raw_data"]
    distinct = rows is None or "_unique_inverse_" in state
    if not distinct and rows.shape[0] != state["graph_"].shape[0]:
        raise ValueError("FinslerUMAP._raw_data and graph_ are of different rows")
    for value in (state.get("_metric_kwds") or {}).values():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is None or isinstance(value, (str, bool)) or (number and not np.isfinite(value)):
            raise ValueError("FinslerUMAP._metric_kwds must hold finite numbers")
    if bool(fitted["unique"]) != ("_unique_rows_" in state):
        raise ValueError("FinslerUMAP.unique does not fit its rows")
    n = state["graph_"].shape[0]
    if state.get("_n_neighbors", k := min(fitted["n_neighbors"], max(2, n - 1))) != k:
        raise ValueError("FinslerUMAP._n_neighbors is not that of its parameters")
    curve = fitted["a"], fitted["b"]
    if None in curve:
        curve = fit_curve(fitted["spread"], fitted["min_dist"])
    if not np.allclose(curve, (state["_a"], state["_b"]), rtol=1e-3):
        raise ValueError("FinslerUMAP._a and _b are not those of its parameters")
    check_law(state)
    if fitted["transform_mode"] == "embedding":
        columns = state["embedding_"].shape[1] if "embedding_" in state else 0
        if columns != fitted["n_components"]:
            raise ValueError(f"FinslerUMAP.embedding_ has {columns} columns")
        joined = np.diff(state["graph_"].indptr) > 0
        joined[state["graph_"].indices] = True
        rows = state.get("_unique_inverse_", slice(None))
        if np.isnan(state["embedding_"][joined[rows]]).any():
            raise ValueError("FinslerUMAP.embedding_ has no place for a point with neighbours")
        rising = state.get("height_") == POTENTIAL and "potential_" in state
        if rising and np.isnan(state["potential_"][joined[rows]]).any():
            raise ValueError("FinslerUMAP.potential_ is nan for a point with neighbours")
    elif state["_n_features_out"] != state["graph_"].shape[1]:
        raise ValueError("FinslerUMAP._n_features_out is not the number of columns")


def checked_data(model, X, ensure_all_finite, reset=True):
    """X as float32 (or bits), at the place and in the unit that the model computes in.

    With ``reset``, sets ``model._as_fitted``; otherwise X is treated as the training rows were.
    """
    bits = model.metric in ("bit_hamming", "bit_jaccard")
    pairs = isinstance(model.metric, str) and model.metric == "precomputed"
    masked = np.inf if pairs else np.nan
    X = readable(X, missing=None if ensure_all_finite is True and not pairs else masked)
    if pairs:
        if not reset:
            check_node_names(model, X)
        X = unmask(X)
        check_range(X)
    X = validate_data(
        model,
        X,
        reset=reset,
        dtype=np.uint8 if bits else _exact_dtype(X),
        order="C",
        accept_sparse=False if bits else "csr",
        # Missing pairs of a directed matrix are inf; other values are checked with it.
        ensure_all_finite=False if pairs else ensure_all_finite,
    )
    if pairs:
        X = fill_missing(X, np.inf, square=reset)
    if reset:
        model._as_fitted = AsFitted() if bits else AsFitted.of(X, model.metric)
    elif model._raw_data is not None:
        X = as_stored(X, model._raw_data, pairs=pairs)
    if not bits:
        X = _single(model, X, finite=not pairs and ensure_all_finite)
    return canonical(X, keep_zeros=pairs)


def _exact_dtype(X):
    """float32 for what it holds exactly, so that images need no float64 copy; or float64."""
    dtype = getattr(X, "dtype", None)
    short = isinstance(dtype, np.dtype) and dtype.kind in "iub" and dtype.itemsize <= 2
    return np.float32 if short else [np.float64, np.float32]


def _single(model, X, finite):
    with np.errstate(over="ignore", under="ignore"):
        # copy=False: like scikit-learn, data that are float32 already are not copied
        single = model._as_fitted.apply(X).astype(np.float32, copy=False)
    values = single.data if scipy.sparse.issparse(single) else single
    # X itself was checked, so what is infinite now has become so
    if finite and values.size and np.isinf(np.fmax.reduce(np.abs(values), axis=None)):
        raise ValueError(
            f"X contains a value too large for dtype('float32') (infinity) in "
            f"metric={model.metric!r}. Divide X by a constant."
        )
    return single if scipy.sparse.issparse(single) else np.ascontiguousarray(single)


@contextmanager
def upstream_validation(model, X) -> Iterator[None]:
    """What umap's own checks need in place, and what they change put back afterwards."""
    given = dict(vars(model))
    # umap tries a callable metric on rows drawn from the global generator.
    global_state = np.random.get_state() if callable(model.metric) else None
    # A later umap-learn may read parameters that FinslerUMAP does not know.
    for name, parameter in inspect.signature(UMAP).parameters.items():
        if name not in given:
            setattr(model, name, parameter.default)
    model._raw_data = X
    model._initial_alpha = model.learning_rate
    knn = (*model.precomputed_knn, None)[:3]
    model.knn_indices, model.knn_dists, model.knn_search_index = (
        item.copy() if isinstance(item, np.ndarray) else item for item in knn
    )
    model.n_jobs = 1
    model.tqdm_kwds = None if model.tqdm_kwds is None else dict(model.tqdm_kwds)
    if isinstance(model.init, np.ndarray):
        model.init = "random"  # one column fewer is fine here; checked below
    if isinstance(model.n_epochs, np.integer):
        model.n_epochs = int(model.n_epochs)
    try:
        with without_foreign("inverse_transform"):
            yield
        model._bar_kwds = PROGRESS_BAR | (model.tqdm_kwds or {})
        model._n_epochs_list = model.n_epochs_list
        model._given_knn = (model.knn_indices, model.knn_dists, model.knn_search_index)
    finally:
        # scikit-learn's convention: fit adds no public attribute without a final underscore.
        for name in ("knn_indices", "knn_dists", "knn_search_index", "n_epochs_list"):
            vars(model).pop(name, None)
        for name in inspect.signature(UMAP).parameters:
            vars(model).pop(name, None)
        for name, value in given.items():
            setattr(model, name, value)
        if global_state is not None:
            np.random.set_state(global_state)


def fit_curve(spread: float, min_dist: float) -> tuple[float, float]:
    """a and b of 1/(1 + a F^{2b}), as umap-learn fits them.

    Its fit starts at a = b = 1 and ends at a negative b where the spread is far from 1. The curve
    of another unit of length has the same b, so it is fitted in units of the spread then.

    Examples
    --------
    >>> a, b = fit_curve(0.1, 0.01)
    >>> print(f"{a:.2f}, {b:.3f}")
    97.26, 0.895
    """
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", OptimizeWarning)
        a, b = find_ab_params(spread, min_dist)
    if not (a > 0 and b > 0):
        a, b = find_ab_params(1.0, min_dist / spread)
        a *= spread ** (-2.0 * b)
    return a, b


# umap-learn's default.
N_NEIGHBORS = 15
# umap-learn's metrics with an array of the size of a row, and its name in metric_kwds. Their code
# reads past the end of a shorter one, and without one takes that of rows of two columns.
METRIC_ARRAYS = {
    "seuclidean": "sigma",
    "standardised_euclidean": "sigma",
    "wminkowski": "w",
    "weighted_minkowski": "w",
    "mahalanobis": "vinv",
}


def check_metric_array(metric, kwds: dict, n_columns: int) -> None:
    """Refuse a metric without the array that it reads a whole row of."""
    name = METRIC_ARRAYS.get(metric) if isinstance(metric, str) else None
    if name is None:
        return
    shape = (n_columns,) * (2 if name == "vinv" else 1)
    given = np.shape(kwds[name]) if name in kwds else None
    if given != shape:
        got = "none" if given is None else f"one of shape {given}"
        raise ValueError(
            f"metric={metric!r} needs metric_kwds={{{name!r}: array}}, an array of shape {shape} "
            f"for rows of {n_columns} columns; got {got}."
        )


def check_finsler_parameters(model, X, strengths: bool = False):
    if strengths and model.geodesic_neighbors is None and model.n_neighbors != N_NEIGHBORS:
        raise ValueError(
            f"n_neighbors={model.n_neighbors} has no meaning for strengths and transitions: every "
            "edge counts by its strength. Leave it out, or take edges out of the data."
        )
    if model.densmap or model.output_dens:
        raise ValueError(
            "densmap and output_dens are not available in a Randers space: its volume is not "
            "that of the Euclidean balls densMAP counts in. The height shows density "
            "instead; or use umap.UMAP(densmap=True)."
        )
    if model.output_metric not in ("euclidean", "l2"):
        raise ValueError(
            f"output_metric={model.output_metric!r} is not available: the embedding space is "
            "a Randers space over the Euclidean plane. Use umap.UMAP for other output metrics."
        )
    check_metric_array(model.metric, model._metric_kwds, X.shape[1])
    if model.metric in LENGTHS or model.metric == "precomputed":  # cosines have no unit
        limit = float(model._disconnection_distance)
        model._disconnection_distance = float(model._as_fitted.scaled(limit))
    columns = model.init.shape[1] if getattr(model.init, "ndim", 0) == 2 else None
    check_height(model.height, model.n_components, columns, "an init")
    if model._n_epochs_list is not None and not model._n_epochs_list:
        raise ValueError("n_epochs: the list of epochs is empty.")
    if model.a is None or model.b is None:
        model._a, model._b = fit_curve(model.spread, model.min_dist)
    else:
        model._a, model._b = model.a, model.b
    if isinstance(model.init, np.ndarray):
        check_start_shape("init", model.init.shape, X.shape[0], model.n_components)
        check_start("init", model.init)
    if model.geodesic_neighbors is not None and model.disconnection_distance is not None:
        raise ValueError(
            "geodesic_neighbors joins all points, so it cannot be combined with a "
            "disconnection_distance."
        )
    if model.local_scale is not None and model.unique:
        raise ValueError("local_scale cannot be combined with unique=True.")
