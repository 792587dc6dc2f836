"""Where a Finsler t-SNE starts: openTSNE's small initial maps, and a height of zero."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from openTSNE import initialization as upstream
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.utils import check_random_state

from finsler_ext._threads import one_blas_thread
from finsler_ext.construct.input import large_offset
from finsler_ext.layout.start import spectral_map

__all__ = ["initial_embedding"]

# openTSNE's figure: the first column starts with this standard deviation.
START_SPREAD = 1e-4
NAMES = ("pca", "spectral", "random")


def initial_embedding(initialization, n_components: int, P, X, random_state, *, flat: bool):
    """Start of shape (n, n_components).

    Parameters
    ----------
    initialization : {"pca", "spectral", "random"} or array of n_components − 1 or n_components
        columns
    P : sparse matrix, affinities
    X : array or sparse matrix of features, or None
    flat : bool
        Whether the map has one column fewer, and the height is zero.
    """
    n, m = P.shape[0], n_components
    if not isinstance(initialization, str):
        given = np.array(initialization, dtype=np.float64)
        if given.ndim != 2 or given.shape[0] != n or given.shape[1] not in (m - 1, m):
            raise ValueError(
                f"initialization: an array must have {n} rows and n_components − 1 = {m - 1} "
                f"columns (the map) or {m} (map and height), got shape {given.shape}."
            )
        if not np.isfinite(given).all():
            raise ValueError("initialization: the array contains NaN or infinity.")
        return given if given.shape[1] == m else np.column_stack([given, np.zeros(n)])
    if initialization not in NAMES:
        raise ValueError(f"initialization must be an array or one of {NAMES}, got "
                         f"{initialization!r}.")  # fmt: skip
    columns = m - 1 if flat else m
    random_state = check_random_state(random_state)
    with one_blas_thread():
        if initialization == "pca" and X is not None:
            start = _principal(X, columns, random_state)
        elif initialization == "random":
            start = random_state.normal(size=(n, columns))
        else:
            start = spectral_map(scipy.sparse.csr_array(P), columns, random_state, X)
    start = _rescaled(np.asarray(start, dtype=np.float64), random_state)
    return start if columns == m else np.column_stack([start, np.zeros(n)])


def _principal(X, columns, random_state):
    """Principal components; columns that the data cannot fill are zero here and get noise later."""
    found = min(columns, *X.shape) if not scipy.sparse.issparse(X) else min(columns, X.shape[1] - 1)
    start = np.zeros((X.shape[0], columns))
    offset = large_offset(X)
    X = X if offset is None else X - offset
    if found > 0 and (scipy.sparse.issparse(X) or np.ptp(X, axis=0).any()):
        solver = TruncatedSVD if scipy.sparse.issparse(X) else PCA
        start[:, :found] = solver(found, random_state=random_state).fit_transform(X)
    return start


def _rescaled(start, random_state):
    start = start - start.mean(axis=0)
    if start[:, 0].std() == 0 or not np.isfinite(start[:, 0].std()):
        return random_state.normal(scale=START_SPREAD, size=start.shape)
    upstream.rescale(start, inplace=True, target_std=START_SPREAD)
    return upstream.jitter(start, inplace=True, random_state=random_state)
