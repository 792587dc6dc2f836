"""Where a layout starts: umap-learn's initial positions, computed on a directed graph.

The graph is symmetrised here, for the eigenvectors only.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.neighbors import NearestNeighbors

from finsler_ext._threads import one_blas_thread
from finsler_ext.layout.eigenvectors import leading_eigenvectors

__all__ = ["initial_positions", "spectral_map"]

# umap-learn's figures: every column spans [0, 10], with a little noise to break ties.
EXTENT = 10.0
NOISE = 1e-4


def initial_positions(init, n_columns: int, graph, X, random_state) -> np.ndarray:
    """Positions of shape (n, n_columns), float32, every column spanning [0, 10].

    Parameters
    ----------
    init : {"spectral", "pca", "random"} or array of shape (n, n_columns)
    n_columns : int
    graph : sparse array of shape (n, n)
        Directed memberships.
    X : array or sparse matrix with n rows, or None where there are no features
    random_state : numpy RandomState
    """
    n = graph.shape[0]
    with one_blas_thread():
        if not isinstance(init, str):
            positions = _distinct(np.asarray(init, dtype=np.float64), random_state)
        elif init == "random":
            positions = random_state.uniform(-EXTENT, EXTENT, size=(n, n_columns))
        elif init == "pca":
            positions = _noisy(_principal(X, n_columns, random_state), random_state)
        else:
            positions = _noisy(spectral_map(graph, n_columns, random_state, X), random_state)
    return _spanned(positions)


def _spanned(positions) -> np.ndarray:
    low, span = positions.min(axis=0), np.ptp(positions, axis=0)
    span = np.where(span > 0, span, 1.0)
    return (EXTENT * (positions - low) / span).astype(np.float32)


def _noisy(positions, random_state):
    largest = np.abs(positions).max()
    scaled = positions * (EXTENT / largest if largest > 0 else 1.0)
    return scaled + random_state.normal(scale=NOISE, size=positions.shape)


def _distinct(positions, random_state):
    """Given positions; where some coincide, all get a little noise, as in umap-learn."""
    if len(np.unique(positions, axis=0)) == len(positions):
        return positions
    spacing, _ = NearestNeighbors(n_neighbors=2).fit(positions).kneighbors()
    noise = 1e-3 * max(spacing[:, 0].mean(), NOISE)
    return positions + random_state.normal(scale=noise, size=positions.shape)


def _principal(X, n_columns, random_state):
    if X is None:
        raise ValueError(
            "init='pca' needs features, but metric='precomputed' has none. Use init='spectral', "
            "'random' or an array."
        )
    if n_columns > min(X.shape):
        raise ValueError(
            f"init='pca' cannot give {n_columns} columns from data of shape {X.shape}; use "
            "init='spectral' or 'random'."
        )
    with np.errstate(all="ignore"):  # shares of no variance at all, which nobody reads
        if scipy.sparse.issparse(X) and n_columns < X.shape[1] - 1:
            return TruncatedSVD(n_columns, random_state=random_state).fit_transform(X)
        dense = X.toarray() if scipy.sparse.issparse(X) else X  # a few columns only, if sparse
        return PCA(n_columns, random_state=random_state).fit_transform(dense)


def spectral_map(graph, n_columns: int, random_state, X=None) -> np.ndarray:
    """Eigenvectors of the normalised Laplacian of the symmetrised graph, without the constant.

    Components are laid out one by one around places of their own.
    """
    symmetric = scipy.sparse.csr_array((graph + graph.T) * 0.5, dtype=np.float64)
    n_parts, part = connected_components(symmetric, directed=False)
    if n_parts == 1:
        return _eigenvectors(symmetric, n_columns, random_state)
    places = _component_places(n_parts, part, n_columns, random_state, X)
    order = np.argsort(part, kind="stable")
    grouped = symmetric[order][:, order]
    bounds = np.searchsorted(part[order], np.arange(n_parts + 1))
    gap = _nearest_gap(places)
    positions = np.empty((graph.shape[0], n_columns))
    for c in range(n_parts):
        rows = slice(bounds[c], bounds[c + 1])
        size = bounds[c + 1] - bounds[c]
        if size <= 2 * n_columns:
            local = random_state.uniform(-1.0, 1.0, size=(size, n_columns))
        else:
            local = _eigenvectors(grouped[rows, rows], n_columns, random_state)
            local /= np.abs(local).max()
        positions[order[rows]] = places[c] + 0.5 * gap[c] * local
    return positions


def _eigenvectors(symmetric, n_columns, random_state):
    n = symmetric.shape[0]
    if n <= n_columns + 1:
        return random_state.uniform(-1.0, 1.0, size=(n, n_columns))
    root = 1.0 / np.sqrt(np.asarray(symmetric.sum(axis=1)).ravel())
    scale = scipy.sparse.dia_array((root[None, :], [0]), shape=(n, n))
    operator = scipy.sparse.csr_array(scale @ symmetric @ scale)
    return _signed(leading_eigenvectors(operator, n_columns + 1, random_state)[:, 1:])


def _signed(vectors):
    """Fix the arbitrary sign of eigenvectors, so that the start does not depend on it."""
    largest = np.abs(vectors).argmax(axis=0)
    return vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])


def _component_places(n_parts, part, n_columns, random_state, X):
    if n_parts <= 2 * n_columns:
        axes = np.eye(n_columns)
        return np.vstack([axes, -axes])[:n_parts]
    if X is None or min(n_parts, X.shape[1]) < n_columns:
        return random_state.uniform(-1.0, 1.0, size=(n_parts, n_columns))
    member = scipy.sparse.coo_array((np.ones(part.size), (part, np.arange(part.size)))).tocsr()
    centroids = member @ X / np.bincount(part)[:, None]
    if scipy.sparse.issparse(centroids):
        centroids = centroids.toarray()
    if np.allclose(centroids, centroids[0]):
        return random_state.uniform(-1.0, 1.0, size=(n_parts, n_columns))
    places = PCA(n_columns, random_state=random_state).fit_transform(centroids)
    largest = np.abs(places).max()
    places = places / (largest if largest > 0 else 1.0)
    return places + random_state.normal(scale=NOISE, size=places.shape)


def _nearest_gap(places):
    if len(places) < 2:
        return np.ones(len(places))
    gap, _ = NearestNeighbors(n_neighbors=1).fit(places).kneighbors()
    return np.maximum(gap[:, 0], NOISE)
