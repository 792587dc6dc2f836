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

from finsler_ext.dissimilarity import AFFINITIES
from finsler_ext.dissimilarity.directed_input import check_range, marked, plain
from finsler_ext.layout.height_mode import check_height

__all__ = ["check_finsler_parameters", "checked_data", "upstream_validation"]

# umap-learn's progress bar, which it may or may not write into tqdm_kwds.
PROGRESS_BAR = {
    "desc": "Epochs completed",
    "bar_format": "{desc}: {percentage:3.0f}%| {bar} {n_fmt}/{total_fmt} [{elapsed}]",
}


def checked_data(model, X, ensure_all_finite, reset=True):
    bits = model.metric in ("bit_hamming", "bit_jaccard")
    precomputed = isinstance(model.metric, str) and model.metric == "precomputed"
    if precomputed:
        X = plain(X)
        check_range(X, np.float32)
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused as infinite
        X = validate_data(
            model,
            X,
            reset=reset,
            dtype=np.uint8 if bits else np.float32,
            order="C",
            accept_sparse=False if bits else "csr",
            # Missing pairs of a directed matrix are nan or inf; others are checked with it.
            ensure_all_finite=False if precomputed else ensure_all_finite,
        )
    if precomputed:
        X = marked(X, np.inf, square=reset)
    if scipy.sparse.issparse(X):
        X = scipy.sparse.csr_matrix(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
    return X


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
        yield
        model._angular = model.angular_rp_forest
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
