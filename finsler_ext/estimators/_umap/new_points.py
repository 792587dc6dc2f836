"""transform and update: new rows for a fitted FinslerUMAP model."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from sklearn.utils import check_random_state

from finsler_ext import construct
from finsler_ext.construct.index import as_index
from finsler_ext.construct.new_points import checked_new_scale, refuse_one_way
from finsler_ext.estimators._umap.embedding import Rows, loss_shape
from finsler_ext.estimators._umap.graph import exact_index
from finsler_ext.estimators._umap.parameters import checked_data
from finsler_ext.layout.height_mode import HELD
from finsler_ext.layout.umap.placement import place_points

__all__ = ["add_rows", "check_own_data", "transform_rows"]

# umap-learn's figures. It counts the new points; here the training points are counted, so
# that a row alone gets as many epochs as the row among others.
FEW_ROWS, EPOCHS_FEW, EPOCHS_MANY = 10_000, 100, 30
# New points move more carefully than points that are all in motion; umap-learn's figure.
RATE_SHARE = 0.25


def transform_rows(model, X, ensure_all_finite=True, *, local_scale=None, incoming=None):
    """Embedding (or memberships, for ``transform_mode="graph"``) of the rows of X.

    Rows equal to a training row return what that row was given in fit.
    """
    check_own_data(model, "transform")
    X = checked_data(model, X, ensure_all_finite, reset=False)
    if incoming is not None:
        incoming = _checked_incoming(model, X, incoming)
    if local_scale is not None:
        local_scale = _new_scale(model, local_scale, X.shape[0])
    training, fixed = _training(model)
    known = construct.training_rows(X, training)
    if incoming is not None:  # the same point in both directions
        back = scipy.sparse.csr_matrix(training.T) if scipy.sparse.issparse(X) else training.T
        known[construct.training_rows(incoming, back) != known] = -1
    new = np.flatnonzero(known < 0)
    if model.transform_mode == "graph":
        return _new_graph(model, X, known, new, training, local_scale, incoming)
    embedding = np.empty((X.shape[0], model.n_components), dtype=np.float32)
    embedding[known >= 0] = fixed[known[known >= 0]]
    if new.size:
        found, out, into = _edges(model, X, new, training, local_scale, incoming)
        embedding[new] = place_points(
            fixed,
            found.indices,
            out,
            into,
            loss_shape(model),
            omega_norm=model.omega_norm_,
            n_epochs=_epochs(model),
            seed=_seed(model.transform_seed),
            learning_rate=model.learning_rate * RATE_SHARE,
            n_threads=model._n_threads,
        )
    return embedding


def check_own_data(model, method: str) -> None:
    """Combined models have no data, and the map plane of a model has lost the height."""
    if getattr(model, "_raw_data", None) is None:
        raise ValueError(
            f"{method}: a model made by +, * or - has no data of its own. Use the models it was "
            "made from."
        )
    if model.transform_mode == "embedding" and model.embedding_.shape[1] != model.n_components:
        raise ValueError(f"{method}: the map plane has no height. Use the model it was taken from.")


def _epochs(model) -> int:
    if model._n_epochs_list:
        return max(model._n_epochs_list) // 3
    if model.n_epochs is not None:
        return int(model.n_epochs) // 3
    return EPOCHS_FEW if model.graph_.shape[0] <= FEW_ROWS else EPOCHS_MANY


def add_rows(model, X, ensure_all_finite=True, local_scale=None) -> None:
    """Append rows to the data of a model and embed everything from the present map."""
    check_own_data(model, "update")
    if model.metric == "precomputed":
        raise ValueError(
            "update is not available for metric='precomputed': the distances between old and "
            "new points are missing. Fit the whole matrix."
        )
    if model._supervised:
        raise ValueError("update is not available for supervised models. Fit all rows with y.")
    init = "spectral"
    if model.transform_mode == "embedding":
        placed = transform_rows(model, X, ensure_all_finite, local_scale=local_scale)
        random_state = check_random_state(model.transform_seed)
        init = _present_map(model, np.vstack([model.embedding_, placed]), random_state)
    X = checked_data(model, X, ensure_all_finite, reset=False)
    if model._given_scale is not None:
        added = _new_scale(model, local_scale, X.shape[0])
        model._given_scale = np.concatenate([model._given_scale, added])
    stack = scipy.sparse.vstack if scipy.sparse.issparse(X) else np.vstack
    model._raw_data = stack([model._raw_data, X])
    if scipy.sparse.issparse(X):
        model._raw_data = scipy.sparse.csr_matrix(model._raw_data)
    model._given_knn = (None, None, None)  # it was for the old rows
    model._run(Rows(model._raw_data, init, check_random_state(model.transform_seed)))


def _present_map(model, positions, random_state):
    """Map columns to start from if the height was held; otherwise all, in the frame they have."""
    start = positions[:, :-1] if model.height_ == HELD else positions
    lost = ~np.isfinite(start).all(axis=1)
    spread = np.nanstd(start, axis=0) if not lost.all() else np.ones(start.shape[1])
    start[lost] = random_state.normal(size=(lost.sum(), start.shape[1])) * spread
    return start


def _training(model):
    """Distinct training rows in the order of the graph, and their places."""
    rows = model._unique_rows_ if model.unique else slice(None)
    fixed = model.embedding_[rows] if model.transform_mode == "embedding" else None
    return model._raw_data[rows], fixed


def _new_graph(model, X, known, new, training, local_scale, incoming):
    shape = (X.shape[0], training.shape[0])
    row, column = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    value = np.empty(0, dtype=np.float32)
    if new.size:
        found, out, _ = _edges(model, X, new, training, local_scale, incoming)
        here, place = np.nonzero(out > 0)
        row, column, value = new[here], found.indices[here, place], out[here, place]
    old = np.flatnonzero(known >= 0)
    copied = scipy.sparse.coo_matrix(model.graph_[known[old]])
    row = np.concatenate([row, old[copied.row]])
    column = np.concatenate([column, copied.col])
    value = np.concatenate([value, copied.data])
    return scipy.sparse.csr_matrix((value, (row, column)), shape=shape)


def _edges(model, X, new, training, local_scale, incoming):
    """Neighbours of the new rows, and memberships to and from them."""
    n = training.shape[0]
    if n < 2:
        raise ValueError("transform needs a model that was fitted to more than one point.")
    found = _find(model, X[new], training, None if incoming is None else incoming[new])
    cut = found.outgoing >= model._disconnection_distance
    digraph = getattr(model, "_digraph", None) is not None
    if digraph:  # where there is an edge from a training point only, none is to be cut
        cut &= np.isfinite(found.outgoing)
    found.indices[cut], found.outgoing[cut], found.incoming[cut] = -1, np.inf, np.inf
    target_k = model._n_neighbors
    if model._geodesic is not None:
        target_k = model._geodesic.indices.shape[1]
        found = construct.extended_new_neighbors(
            found, model._geodesic.indices, model._geodesic.distances, target_k - 1
        )
    # As in fit, a point is its own first neighbour.
    own = np.zeros((new.size, 1))
    if digraph:
        scales = construct.new_scales(
            found, local_connectivity=model.local_connectivity, n_threads=model._n_threads
        )
    else:
        scales = construct.umap_scales(
            np.hstack([own, found.outgoing]),
            local_connectivity=model.local_connectivity,
            n_neighbors=target_k,
            overall=model._mean_distance,
            n_threads=model._n_threads,
        )
    if model._given_scale is not None:
        given = _new_scale(model, local_scale, X.shape[0])[new]
        sigma = construct.relative_scale(given, model._density_sigmas, among=model._given_scale)
        scales = (sigma, scales[1])
    out, into = construct.new_memberships(
        found,
        scales,
        (model._sigmas, model._rhos),
        model.affinity,
    )
    return found, out, into


def _find(model, rows, training, incoming):
    k = min(model._n_neighbors - 1, training.shape[0])
    if model.metric == "precomputed":
        if incoming is None and model._directed_distances:
            refuse_one_way()
        _check_distances("X", rows)
        if getattr(model, "_digraph", None) is not None:
            return construct.new_edges(rows, rows if incoming is None else incoming)
        return construct.precomputed_new_neighbors(rows, rows if incoming is None else incoming, k)
    if model._knn_search_index is not None:
        return as_index(model._knn_search_index).query(rows, k)
    return exact_index(model, training, new_rows=True).over(training).query(rows, k)


def _checked_incoming(model, X, incoming):
    if model.metric != "precomputed":
        raise ValueError("incoming is for metric='precomputed'; other metrics give it themselves.")
    incoming = checked_data(model, incoming, True, reset=False)
    same_storage = scipy.sparse.issparse(incoming) == scipy.sparse.issparse(X)
    if incoming.shape != X.shape or not same_storage:
        raise ValueError(
            f"incoming must have the shape of X, {X.shape}, and be sparse where X is; got shape "
            f"{incoming.shape}."
        )
    _check_distances("incoming", incoming)
    return incoming


def _check_distances(name, D):
    values = D.data if scipy.sparse.issparse(D) else D
    if values.size and (np.isnan(values).any() or values.min() < 0):
        raise ValueError(f"{name}: distances must be neither negative nor NaN.")


def _new_scale(model, local_scale, n_rows):
    return checked_new_scale(local_scale, n_rows, fitted=model._given_scale is not None)


def _seed(transform_seed) -> int:
    return int(check_random_state(transform_seed).randint(np.iinfo(np.int32).max))
