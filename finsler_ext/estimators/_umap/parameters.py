"""Checks of FinslerUMAP's data and parameters, on top of umap-learn's own."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import scipy.sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data
from umap import UMAP
from umap.umap_ import find_ab_params

from finsler_ext._warn import without_foreign
from finsler_ext.construct import AFFINITIES
from finsler_ext.construct.directed_input import check_range, marked, plain
from finsler_ext.construct.input import (
    LENGTHS,
    AsFitted,
    as_stored,
    canonical,
    check_whole,
    readable,
)
from finsler_ext.layout.height_mode import check_height

__all__ = ["check_finsler_parameters", "checked_data", "upstream_validation"]

# umap-learn's progress bar, which it may or may not write into tqdm_kwds.
PROGRESS_BAR = {
    "desc": "Epochs completed",
    "bar_format": "{desc}: {percentage:3.0f}%| {bar} {n_fmt}/{total_fmt} [{elapsed}]",
}


def checked_data(model, X, ensure_all_finite, reset=True):
    """X as float32 (or bits), at the place and in the unit that the model computes in.

    With ``reset``, sets ``model._as_fitted``; otherwise X is treated as the training rows were.
    """
    bits = model.metric in ("bit_hamming", "bit_jaccard")
    pairs = isinstance(model.metric, str) and model.metric == "precomputed"
    masked = np.inf if pairs else np.nan
    X = readable(X, missing=None if ensure_all_finite is True and not pairs else masked)
    if pairs:
        X = plain(X)
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
        X = marked(X, np.inf, square=reset)
    if reset:
        model._as_fitted = AsFitted() if bits else AsFitted.of(X, model.metric)
    elif model._raw_data is not None:
        X = as_stored(X, model._raw_data)
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


def check_finsler_parameters(model, X):
    check_whole("n_components", model.n_components)
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
    if model.metric in LENGTHS or model.metric == "precomputed":  # cosines have no unit
        limit = float(model._disconnection_distance)
        model._disconnection_distance = float(model._as_fitted.scaled(limit))
    if model.affinity not in AFFINITIES:
        raise ValueError(f"affinity must be one of {AFFINITIES}, got {model.affinity!r}.")
    columns = model.init.shape[1] if getattr(model.init, "ndim", 0) == 2 else None
    check_height(model.height, model.n_components, columns, "an init")
    if model._n_epochs_list is not None and not model._n_epochs_list:
        raise ValueError("n_epochs: the list of epochs is empty.")
    if model.transform_mode not in ("embedding", "graph"):
        raise ValueError(
            f"transform_mode must be 'embedding' or 'graph', got {model.transform_mode!r}."
        )
    if model.a is None or model.b is None:
        model._a, model._b = find_ab_params(model.spread, model.min_dist)
    else:
        model._a, model._b = model.a, model.b
    if isinstance(model.init, np.ndarray):
        m = model.n_components
        if model.init.ndim != 2 or model.init.shape[1] not in (m - 1, m):
            raise ValueError(
                f"init: an array must have n_components − 1 = {m - 1} columns (the map) or "
                f"{m} (map and height), got shape {model.init.shape}."
            )
        if model.init.shape[0] != X.shape[0]:
            raise ValueError(
                f"init: an array must have one row per sample ({X.shape[0]}), got "
                f"{model.init.shape[0]}."
            )
        check_array(model.init)
    if model.geodesic_neighbors is not None and model.disconnection_distance is not None:
        raise ValueError(
            "geodesic_neighbors joins all points, so it cannot be combined with a "
            "disconnection_distance."
        )
    if model.local_scale is not None and model.unique:
        raise ValueError("local_scale cannot be combined with unique=True.")
