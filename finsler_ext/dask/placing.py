"""``transform`` of a collection: lazy, by blocks, and the bits that it gives in memory."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from finsler_ext._collections import is_collection
from finsler_ext._warn import without_foreign
from finsler_ext.dask.blocks import matrix_of

__all__ = ["for_workers", "output_dtype", "place", "transform"]


def transform(model, X) -> Any:
    """Places for the rows of a Dask collection among the points of a fitted model.

    Parameters
    ----------
    model : FinslerUMAP, FinslerTSNE or FinslerMDS, fitted
    X : dask.array.Array of shape (n_new, n_features), or dask.dataframe.DataFrame

    Returns
    -------
    A lazy collection of the same kind, with ``n_components`` columns and the chunks of X. A row's
    place depends on no other row: it is, bit for bit, what ``model.transform`` gives in memory.

    Examples
    --------
    >>> import dask.array  # doctest: +SKIP
    >>> import numpy as np
    >>> from finsler_ext import FinslerMDS
    >>> from finsler_ext.dask import transform
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> model = FinslerMDS(random_state=0).fit(X[:30])
    >>> lazy = transform(model, dask.array.from_array(X[30:], chunks=(4, 3)))  # doctest: +SKIP
    >>> bool(np.array_equal(lazy.compute(), model.transform(X[30:])))  # doctest: +SKIP
    True
    """
    import dask

    check_is_fitted(model, "embedding_")
    if not is_collection(X):
        raise ValueError(f"X must be a Dask array or data frame, got a {type(X).__name__}.")
    held = dask.delayed(for_workers(model), traverse=False)
    dtype, n_columns = output_dtype(model), model.embedding_.shape[1]
    if hasattr(X, "columns"):
        import pandas as pd

        names = list(model.get_feature_names_out())
        meta = pd.DataFrame({name: np.empty(0, dtype=dtype) for name in names})
        return X.map_partitions(_place_frame, held, names, meta=meta)
    X = X.rechunk({1: -1})
    return X.map_blocks(place, held, dtype=dtype, chunks=(X.chunks[0], (n_columns,)))


def place(block, model, columns: list | None = None) -> np.ndarray:
    """Places for the rows of one block."""
    rows = matrix_of(block, columns)
    if len(rows) == 0:
        return np.empty((0, model.embedding_.shape[1]), dtype=output_dtype(model))
    with without_foreign("feature names"):
        return np.asarray(model.transform(rows))


def _place_frame(frame, model, names):
    import pandas as pd

    expected = getattr(model, "feature_names_in_", None)
    columns = list(frame.columns) if expected is None else list(expected)
    return pd.DataFrame(place(frame, model, columns), index=frame.index, columns=names)


def output_dtype(model) -> np.dtype:
    return np.asarray(model.embedding_).dtype


def for_workers(model):
    """The model with one thread: a worker has as many as it has tasks."""
    model = copy(model)
    model.n_jobs = 1
    if hasattr(model, "_n_threads"):
        model._n_threads = 1
    return model
