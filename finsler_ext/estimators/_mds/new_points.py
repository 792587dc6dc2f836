"""Dissimilarities between new points and those a FinslerMDS model was fitted to."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from finsler_ext.construct.directed_distances import distances_of_new
from finsler_ext.construct.directed_input import check_range, marked, plain
from finsler_ext.construct.input import readable
from finsler_ext.construct.new_points import checked_new_scale, refuse_one_way
from finsler_ext.construct.symmetry import is_directed
from finsler_ext.estimators._mds.pivots import through_edges

__all__ = ["constructed_distances", "given_distances"]


def given_distances(model, X, incoming) -> tuple[np.ndarray, np.ndarray]:
    """``metric="precomputed"``: to and from the training points, nan where unknown.

    For a graph that was embedded by pivots: to and from these, along paths.
    """
    pivots = getattr(model, "_pivots", None)
    if pivots is not None:
        if incoming is None:
            raise ValueError(
                "incoming: new nodes of a graph need the edges from the training nodes, too. Pass "
                "transform(X, incoming=E) with E[i, j] the length of the edge from j to i."
            )
        return _along_pivots(pivots, X, readable(incoming, "incoming", missing=np.nan))
    there = _with_nan(X)
    if incoming is None:
        if is_directed(model.dissimilarity_matrix_):
            refuse_one_way()
        back = there.copy()
    else:
        incoming = readable(incoming, "incoming", missing=np.nan)
        back = _with_nan(incoming)
        if back.shape != there.shape:
            raise ValueError(f"incoming must have the shape of X, {there.shape}, got {back.shape}.")
    if (there < 0).any() or (back < 0).any():
        raise ValueError("Negative values in data: dissimilarities must be ≥ 0.")
    known = ~(np.isnan(there) & np.isnan(back)).all(axis=1)
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        raise ValueError(f"New point {row} has no finite dissimilarity to place it by.")
    return there, back


def _along_pivots(pivots, X, incoming) -> tuple[np.ndarray, np.ndarray]:
    if not (scipy.sparse.issparse(X) and scipy.sparse.issparse(incoming)):
        raise ValueError("X and incoming: edges of new nodes must be sparse, as the graph was.")
    if X.shape != incoming.shape:
        raise ValueError(f"incoming must have the shape of X, {X.shape}, got {incoming.shape}.")
    there = through_edges(plain(X), pivots.outgoing)
    back = through_edges(plain(incoming), pivots.incoming)
    lost = np.flatnonzero(np.isnan(there).all(axis=1) & np.isnan(back).all(axis=1))
    if lost.size:
        raise ValueError(f"New point {lost[0]} has no edge to place it by.")
    return there, back


def _with_nan(X) -> np.ndarray:
    """A dense copy with nan for missing pairs."""
    X = plain(X)
    check_range(X)
    if scipy.sparse.issparse(X):
        entries = X.tocoo()
        X = np.full(entries.shape, np.nan)
        X[entries.coords] = entries.data
    return marked(np.array(X, dtype=np.float64), square=False)


def constructed_distances(model, X, local_scale) -> tuple[np.ndarray, np.ndarray]:
    """Directed distances of new rows, made as those of the training rows were."""
    new_scale = None
    rule = model._source_scale()
    fitted = not isinstance(rule, str)
    if fitted or local_scale is not None:
        level = np.exp(np.log(np.asarray(rule, dtype=np.float64)).mean()) if fitted else 1.0
        new_scale = checked_new_scale(local_scale, X.shape[0], fitted=fitted) / level
    return distances_of_new(
        X,
        model._X,
        model._known,
        metric=model.metric,
        metric_kwds=model.metric_params,
        local_scale=rule,
        new_scale=new_scale,
    )
