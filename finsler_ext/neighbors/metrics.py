"""Distances between blocks of rows, for any metric that an estimator accepts."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import scipy.sparse
from numba import njit
from numba.core.registry import CPUDispatcher
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

EUCLIDEAN = ("euclidean", "l2")
# Pairs on which a callable metric is tried for symmetry.
SYMMETRY_TRIALS = 32
# Cosines of equal rows are 1 but for rounding.
NEGATIVE_ROUNDING = 1e-5


def refuse_nan(distances, metric, X) -> None:
    """Finite rows without a distance between them: the metric is not meant for these data."""
    if not np.isnan(distances).any():
        return
    if np.isfinite(X.data if scipy.sparse.issparse(X) else X).all():
        raise ValueError(
            f"metric={metric!r} gives NaN for some pairs of rows: it is not meant for such data "
            "(some metrics need numbers > 0), or needs parameters. Choose another metric."
        )


def refuse_negative(distances, metric) -> None:
    """Rounding aside, a distance is not negative."""
    lowest = np.fmin.reduce(distances, axis=None)
    if lowest < -NEGATIVE_ROUNDING:
        raise ValueError(
            f"metric={metric!r} gives negative distances, such as {lowest:g}. A metric returns "
            "numbers ≥ 0; turn similarities into distances first."
        )


def block_function(sources, targets, metric, kwds) -> Callable[[int, int], np.ndarray]:
    """A function (start, stop) → distances from those sources to all targets."""
    if isinstance(metric, str):
        return lambda lo, hi: named_distances(sources[lo:hi], targets, metric, kwds)
    if not isinstance(metric, CPUDispatcher):
        if scipy.sparse.issparse(targets):
            raise ValueError(
                "metric: a plain Python function cannot be used on sparse data. Compile it with "
                "numba.njit, or pass dense data."
            )
        return lambda lo, hi: cdist(sources[lo:hi], targets, lambda u, v: metric(u, v, **kwds))
    args = positional_arguments(metric, kwds, 4 if scipy.sparse.issparse(targets) else 2)
    if scipy.sparse.issparse(targets):
        S, T = sources, targets
        return lambda lo, hi: _sparse_block(
            S.indptr, S.indices, S.data, T.indptr, T.indices, T.data, lo, hi, metric, args
        )
    return lambda lo, hi: _dense_block(sources, targets, lo, hi, metric, args)


def named_distances(sources, targets, metric: str, kwds) -> np.ndarray:
    """scikit-learn's distances; what it has for dense data only is refused with the way out."""
    try:
        return np.asarray(pairwise_distances(sources, targets, metric=metric, **kwds))
    except TypeError as error:
        if kwds:
            raise ValueError(
                f"metric={metric!r} does not take the options {kwds!r} with this data: {error}."
            ) from None
        if not scipy.sparse.issparse(targets):
            raise
        raise ValueError(
            f"metric={metric!r} is not available for sparse data here. Pass dense data "
            "(X.toarray()), or use 'euclidean', 'manhattan' or 'cosine'."
        ) from None


def positional_arguments(metric: CPUDispatcher, kwds: dict, n_rows: int) -> tuple:
    """Keyword arguments in the order of a compiled metric, which takes no names.

    ``n_rows`` leading parameters hold the two rows; defaults fill the gaps.
    """
    parameters = list(inspect.signature(metric.py_func).parameters.values())[n_rows:]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return tuple(kwds.values())
    names = [p.name for p in parameters]
    unknown = [name for name in kwds if name not in names]
    if unknown:
        raise ValueError(f"metric_kwds: the metric takes {names}, got {unknown}.")
    needed = max((names.index(name) + 1 for name in kwds), default=0)
    return tuple(kwds.get(p.name, p.default) for p in parameters[:needed])


@njit(nogil=True)
def _dense_block(sources, targets, start, stop, metric, args):
    out = np.empty((stop - start, targets.shape[0]), dtype=np.float64)
    for i in range(start, stop):
        for j in range(targets.shape[0]):
            out[i - start, j] = metric(sources[i], targets[j], *args)
    return out


@njit(nogil=True)
def _sparse_block(
    s_indptr, s_indices, s_data, t_indptr, t_indices, t_data, start, stop, metric, args
):
    n = t_indptr.shape[0] - 1
    out = np.empty((stop - start, n), dtype=np.float64)
    for i in range(start, stop):
        mine = slice(s_indptr[i], s_indptr[i + 1])
        for j in range(n):
            other = slice(t_indptr[j], t_indptr[j + 1])
            out[i - start, j] = metric(
                s_indices[mine], s_data[mine], t_indices[other], t_data[other], *args
            )
    return out


def is_asymmetric(metric: Callable, X, metric_kwds=None) -> bool:
    """Try a callable metric on a few pairs of rows in both directions."""
    kwds = metric_kwds or {}
    rng = np.random.default_rng(0)
    for i, j in rng.integers(0, X.shape[0], size=(SYMMETRY_TRIALS, 2)):
        if scipy.sparse.issparse(X):
            x, y = X[[i]], X[[j]]
            there = metric(x.indices, x.data, y.indices, y.data, **kwds)
            back = metric(y.indices, y.data, x.indices, x.data, **kwds)
        else:
            there, back = metric(X[i], X[j], **kwds), metric(X[j], X[i], **kwds)
        there, back = np.ravel(there)[0], np.ravel(back)[0]
        if not np.isclose(there, back, rtol=1e-4, atol=1e-6):
            return True
    return False
