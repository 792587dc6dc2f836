"""``fit`` and ``transform`` of a collection.

Fit: neighbours on the cluster, graph and layout on this machine. The layout needs the rows, their
neighbours and the graph in the memory of one machine; collections that are larger are fitted to a
sample of their rows, which is said, and `transform` embeds all. Transform: lazy, by blocks, and the
bits that it gives in memory.
"""

from __future__ import annotations

import warnings
from copy import copy
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from finsler_ext._messages import warn, without_foreign
from finsler_ext.base import is_collection
from finsler_ext.dask.cluster import Blocks, Runner, blocks_of, matrix_of, runner_for, taken
from finsler_ext.dask.neighbors import nearest_by_parts
from finsler_ext.neighbors.search import SearchSettings

# Rows and bytes (in single precision) that are laid out on one machine without a word, and the
# rows of a sample otherwise. All pairs are compared: 10¹² of them in 50 columns take half an hour
# of one core (docs/sizes.md).
MOST_ROWS, MOST_BYTES, SAMPLE_ROWS = 1_000_000, 2**32, 200_000
# FinslerMDS keeps all pairs.
MDS_ROWS = 5_000


def fit(model, X, *, sample: int | str | None = "auto", client=None, rows_per_part=None):
    """Fit a model to a Dask collection.

    Parameters
    ----------
    model : FinslerUMAP, FinslerTSNE or FinslerMDS
    X : dask.array.Array of shape (n_samples, n_features), or dask.dataframe.DataFrame
    sample : int, None or "auto"
        Rows to fit the model to, drawn by its ``random_state``; all of them if None. "auto" takes
        all up to a million rows and 4 GiB (in float32), and 200,000 beyond; for FinslerMDS 5,000.
        Which rows are drawn depends neither on chunks nor on workers. ``sample_indices_`` holds
        their numbers.
    client : distributed.Client, optional
        The client in use by default; without one, Dask's own scheduler.
    rows_per_part : int, optional
        Rows that neighbours are searched in at a time; results do not depend on it.

    Returns
    -------
    The model. It is, bit for bit, the same for any chunks of X and any number of workers.
    """
    runner = runner_for(client)
    blocks = blocks_of(X, runner)
    return fit_blocks(model, blocks, runner, sample, rows_per_part)


def fit_blocks(model, blocks: Blocks, runner: Runner, sample="auto", rows_per_part=None):
    metric = getattr(model, "metric", "euclidean")
    if not isinstance(metric, str) or metric == "precomputed":
        raise ValueError(
            "metric: a Dask collection can be fitted with metrics that have a name, got "
            f"{metric!r}."
        )
    chosen = sampled_rows(model, blocks, sample)
    X = _gathered(blocks, chosen, runner)
    draft = copy(model)

    def find(prepare, k, settings):
        """The k nearest others of every row, found on the cluster."""
        options = {"chosen": chosen, "prepare": prepare, "rows_per_part": rows_per_part}
        found = nearest_by_parts(blocks, runner, k, settings, **options)
        return tuple(np.concatenate(part) for part in zip(*found, strict=True))

    FITTERS[_kind(model)](draft, X, find)
    draft.sample_indices_ = chosen
    added = {"sample_indices_"}
    if blocks.columns is not None:
        draft.feature_names_in_ = np.array(blocks.columns, dtype=object)
        added.add("feature_names_in_")
    if hasattr(draft, "_fitted_names"):  # the next fit takes them away
        draft._fitted_names = draft._fitted_names | added
    vars(model).clear()
    vars(model).update(vars(draft))
    return model


def sampled_rows(model, blocks: Blocks, sample) -> np.ndarray | None:
    """Numbers of the rows a model is fitted to, ascending; None for all."""
    n = blocks.n_rows
    size: Any = sample
    if sample == "auto":
        size = _affordable(model, n, blocks.n_columns)
    if size is None or (isinstance(size, (int, np.integer)) and size >= n):
        return None
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 2:
        raise ValueError(f"sample must be a number of rows, None or 'auto', got {sample!r}.")
    if sample == "auto":
        warn(
            f"X has {n:,} rows. The model is fitted to {size:,} of them, drawn by random_state; "
            "transform embeds the others. Pass sample=None to finsler_ext.dask.fit for all rows, "
            "or another number."
        )
    seed = check_random_state(model.random_state).randint(np.iinfo(np.int32).max)
    drawn = np.random.Generator(np.random.PCG64(seed)).choice(n, size, replace=False, shuffle=False)
    return np.sort(drawn)


def _affordable(model, n: int, n_columns: int) -> int:
    if _kind(model) == "FinslerMDS":
        return min(n, MDS_ROWS)
    if n <= MOST_ROWS and 4 * n * n_columns <= MOST_BYTES:
        return n
    return max(2, min(n, SAMPLE_ROWS, MOST_BYTES // (4 * n_columns)))


def _gathered(blocks: Blocks, chosen, runner: Runner) -> np.ndarray:
    """The rows to fit, in the memory of this machine, block by block."""
    import dask

    rows = np.arange(blocks.n_rows) if chosen is None else chosen
    ends = pairwise(np.searchsorted(rows, blocks.starts))
    tasks = [
        dask.delayed(taken)(task, rows[first:last] - start, blocks.columns)
        for task, start, (first, last) in zip(blocks.tasks, blocks.starts, ends, strict=False)
        if last > first
    ]
    X, at = None, 0
    for piece in runner.in_order(tasks):
        if X is None:
            # float32 where the data are; numbers of other types are exact in float64
            dtype = np.float32 if piece.dtype == np.float32 else np.float64
            X = np.empty((len(rows), blocks.n_columns), dtype=dtype)
        X[at : at + len(piece)] = piece
        at += len(piece)
    if X is None:
        raise ValueError("X has no rows.")
    return X


def _fit_umap(model, X, find) -> None:
    from finsler_ext.umap.parameters import checked_data

    trial = copy(model)
    checked_data(trial, X, True)
    as_fitted, n = trial._as_fitted, len(X)
    k = min(model.n_neighbors, max(2, n - 1))
    settings = SearchSettings(
        model.metric, model.metric_kwds, function=_compiled_metric(model.metric)
    )
    indices, distances = find(partial(_single, as_fitted), k - 1, settings)
    own = np.arange(n)[:, None]
    indices = np.hstack([own, indices]).astype(np.int32)
    # exact: powers of two
    distances = np.ldexp(np.hstack([np.zeros((n, 1)), distances]), as_fitted.exponent)
    given = model.precomputed_knn
    model.precomputed_knn = (indices, distances)
    with without_foreign("given search"):
        model.fit(X)
    model.precomputed_knn, model._given_knn = given, (None, None, None)


def _compiled_metric(name: str):
    """The function that umap-learn takes for a metric: it rounds otherwise than scikit-learn's."""
    import pynndescent.distances
    import umap.distances

    ours = umap.distances.named_distances.get(name)
    return pynndescent.distances.named_distances.get(name) if ours is None else ours


def _single(as_fitted, X) -> np.ndarray:
    """Rows as FinslerUMAP computes with them."""
    X = X if X.dtype.kind == "f" else X.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        return np.ascontiguousarray(as_fitted.apply(X).astype(np.float32))


def _fit_tsne(model, X, find) -> None:
    from finsler_ext.scales import NEIGHBORS_PER_PERPLEXITY
    from finsler_ext.tsne.affinity import usable_perplexities
    from finsler_ext.tsne.neighbors import DirectedIndex

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit says it
        largest = max(usable_perplexities(model.perplexity, len(X)))
    k = min(len(X) - 1, max(1, int(NEIGHBORS_PER_PERPLEXITY * largest)))
    settings = SearchSettings(model.metric, model.metric_params)
    found = find(partial(np.ascontiguousarray, dtype=X.dtype), k, settings)
    index: Any = DirectedIndex(X, k, model.metric, model.metric_params, n_jobs=model.n_jobs)
    index.build = lambda: found
    given, model.neighbors = model.neighbors, index
    model.fit(X)
    model.neighbors = given
    del index.build  # what remains is an index like any other


# By the names of classes: importing these takes seconds.
FITTERS = {
    "FinslerUMAP": _fit_umap,
    "FinslerTSNE": _fit_tsne,
    "FinslerMDS": lambda model, X, find: model.fit(X),
}


def _kind(model) -> str:
    for cls in type(model).__mro__:
        if cls.__name__ in FITTERS:
            return cls.__name__
    raise ValueError(f"model: a {type(model).__name__} cannot be fitted to a Dask collection.")


def transform(model, X, **options) -> Any:
    """The rows of a Dask collection among the points of a fitted model.

    Parameters
    ----------
    model : FinslerUMAP, FinslerTSNE or FinslerMDS, fitted
    X : dask.array.Array of shape (n_new, n_features), or dask.dataframe.DataFrame
    **options
        Passed on to ``model.transform``, such as ``n_iter`` of FinslerTSNE.

    Returns
    -------
    A lazy collection of the same kind, with ``n_components`` columns and the chunks of X. A row's
    position depends on no other row: it is, bit for bit, what ``model.transform`` gives in memory.

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
    held = dask.delayed(single_threaded(model), traverse=False)
    dtype, n_columns = output_dtype(model), len(model.get_feature_names_out())
    if hasattr(X, "columns"):
        import dask.dataframe
        import pandas as pd

        names = list(model.get_feature_names_out())
        meta = pd.DataFrame({name: np.empty(0, dtype=dtype) for name in names})
        # before Dask 2025.5 map_partitions hands on a delayed model as it is
        of_part = dask.delayed(partial(_transform_frame, **options))
        parts = [of_part(part, held, names) for part in X.to_delayed()]
        return dask.dataframe.from_delayed(parts, meta=meta, divisions=X.divisions)
    X = X.rechunk({1: -1})
    by_block = partial(transform_block, **options)
    return X.map_blocks(by_block, held, dtype=dtype, chunks=(X.chunks[0], (n_columns,)))


def transform_block(block, model, columns: list | None = None, **options) -> np.ndarray:
    """The embedding of one block of new rows."""
    rows = matrix_of(block, columns)
    if len(rows) == 0:
        return np.empty((0, len(model.get_feature_names_out())), dtype=output_dtype(model))
    with without_foreign("feature names"):
        return np.asarray(model.transform(rows, **options))


def _transform_frame(frame, model, names, **options):
    import pandas as pd

    expected = getattr(model, "feature_names_in_", None)
    columns = list(frame.columns) if expected is None else list(expected)
    return pd.DataFrame(
        transform_block(frame, model, columns, **options), index=frame.index, columns=names
    )


def output_dtype(model) -> np.dtype:
    return np.asarray(model.embedding_).dtype


def single_threaded(model):
    """The model with one thread: a worker has as many as it has tasks."""
    model = copy(model)
    model.n_jobs = 1
    return model
