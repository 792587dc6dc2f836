"""The paper's formulas, checked by numbers: each function returns errors, and takes little time.

Errors of gradients are relative to central differences of the loss that they belong to.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.optimize import minimize

__all__ = [
    "Errors",
    "clusters_as_printed",
    "collapse",
    "interpolated_length",
    "sklearn_gradient",
    "tsne_gradient",
    "umap_gradient",
]

POINTS, COLUMNS, STEP = 12, 3, 1e-6


class Errors(NamedTuple):
    """Relative error of a formula as printed in one place, and in another."""

    first: float
    second: float


def differences(function, Y) -> np.ndarray:
    """Gradient by central differences."""
    gradient = np.empty_like(Y)
    for at in np.ndindex(*Y.shape):
        moved = Y.copy()
        moved[at] += STEP
        above = function(moved)
        moved[at] -= 2 * STEP
        gradient[at] = (above - function(moved)) / (2 * STEP)
    return gradient


def _error(gradient, true) -> float:
    return float(np.linalg.norm(gradient - true) / np.linalg.norm(true))


def _layout(seed: int = 0):
    """Points, directed affinities that sum to 1, and pairs of points."""
    rng = np.random.default_rng(seed)
    P = rng.random((POINTS, POINTS))
    np.fill_diagonal(P, 0)
    return rng.normal(size=(POINTS, COLUMNS)), P / P.sum()


def _distances(Y, drift: float):
    """d_ij, F_ij and y_i − y_j; no point is a pair with itself."""
    rays = Y[:, None] - Y[None]
    d = np.linalg.norm(rays, axis=2)
    np.fill_diagonal(d, 1.0)
    F = d - drift * rays[:, :, -1]
    return d, F, rays


def _similarities(F, dof: float):
    t = 1 / (1 + F**2 / dof)
    w = t ** ((dof + 1) / 2)
    np.fill_diagonal(w, 0)
    return t, w / w.sum()


def tsne_gradient(drift: float = 0.5, dof: float = 1.0, seed: int = 0) -> Errors:
    """Error of the gradient of Finsler t-SNE: as the theorem states it, and as its proof ends."""
    Y, P = _layout(seed)

    def loss(Y):
        q = _similarities(_distances(Y, drift)[1], dof)[1]
        return -float(np.sum(P[q > 0] * np.log(q[q > 0])))

    d, F, rays = _distances(Y, drift)
    t, q = _similarities(F, dof)
    there, back = (P - q) * t * F, (P - q).T * t * F
    right = ((P - q) * t * F).T
    axis = np.eye(COLUMNS)[-1] * drift
    found = [
        (dof + 1) / dof
        * (np.einsum("ij,ijk->ik", (there + other) / d, rays)
           + np.sum(other - there, axis=1)[:, None] * axis)
        for other in (back, right)
    ]  # fmt: skip
    true = differences(loss, Y)
    return Errors(*(_error(g, true) for g in found))


def umap_gradient(drift: float = 0.5, a: float = 1.6, b: float = 0.9, seed: int = 0) -> Errors:
    """Error of the gradient of Finsler UMAP: with the theorem, and with the table's repulsion.

    The table of both pipelines has no y_i − y_j in the first term of the repulsion; it is read
    here as a vector of ones, so that the sum can be formed at all.
    """
    Y, P = _layout(seed)
    P = P / P.max() * 0.9
    others = ~np.eye(POINTS, dtype=bool)

    def loss(Y):
        q = 1 / (1 + a * _distances(Y, drift)[1] ** (2 * b))
        parts = P * np.log(q) + (1 - P) * np.log1p(-q)
        return -float(np.sum(parts[others]))

    d, F, rays = _distances(Y, drift)
    q = 1 / (1 + a * F ** (2 * b))
    axis = np.eye(COLUMNS)[-1] * drift
    attraction = (2 * a * b * F ** (2 * b - 1) * q)[:, :, None] * (rays / d[:, :, None] - axis)
    found = []
    for ray in (rays, np.ones_like(rays)):
        repulsion = -(2 * b * q / F)[:, :, None] * (ray / d[:, :, None] - axis)
        both = P[:, :, None] * attraction + (1 - P)[:, :, None] * repulsion
        # ∂c_ji/∂y_i = −∂c_ji/∂y_j, so the terms of the other direction are those of its head.
        both = np.where(others[:, :, None], both, 0.0)
        found.append(both.sum(axis=1) - both.sum(axis=0))
    true = differences(loss, Y)
    return Errors(*(_error(g, true) for g in found))


def interpolated_length(here: float = 1.0, there: float = 4.0) -> Errors:
    """Error of (c_i + c_j)/2 as the length of a unit segment whose metric is interpolated.

    First for the metric tensor M = c I of the theorem, whose length is √c; then for F = c ‖u‖.
    """
    formula = (here + there) / 2
    tensor = quad(lambda t: np.sqrt((1 - t) * here + t * there), 0, 1)[0]
    factor = quad(lambda t: (1 - t) * here + t * there, 0, 1)[0]
    return Errors(formula / tensor - 1, formula / factor - 1)


def collapse(drift: float = 0.1) -> Errors:
    """Height of the best Finsler MDS of symmetric data, in units of its widest column.

    First for four points of a plane, then for the four corners of a tetrahedron; 0 is collapsed.
    """
    square = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    corners = np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    return Errors(*(_best_height(X, drift) for X in (square, corners)))


def _best_height(X, drift: float) -> float:
    D = _distances(X, 0.0)[0]

    def stress(y):
        F = _distances(y.reshape(X.shape), drift)[1]
        return float(np.sum((F - D)[~np.eye(len(X), dtype=bool)] ** 2))

    rng = np.random.default_rng(0)
    starts = (X + rng.normal(scale=0.3, size=X.shape) for _ in range(8))
    ends = [minimize(stress, start.ravel(), tol=1e-12) for start in starts]
    best = min(ends, key=lambda end: end.fun).x.reshape(X.shape)
    extent = np.ptp(best, axis=0)
    return float(extent[-1] / extent.max())


def sklearn_gradient(dof: float, seed: int = 0) -> Errors:
    """Error of scikit-learn's exact t-SNE gradient, and the same after the best constant factor."""
    from scipy.spatial.distance import squareform
    from sklearn.manifold._t_sne import _kl_divergence

    Y, P = _layout(seed)
    pairs = squareform(P + P.T, checks=False)
    pairs = pairs / (2 * pairs.sum())

    def divergence(Y):
        return _kl_divergence(Y.ravel(), pairs, dof, POINTS, COLUMNS)[0]

    found = _kl_divergence(Y.ravel(), pairs, dof, POINTS, COLUMNS)[1].reshape(Y.shape)
    true = differences(divergence, Y)
    factor = np.sum(found * true) / np.sum(found**2)
    return Errors(_error(found, true), _error(factor * found, true))


def clusters_as_printed(draws: int = 500, seed: int = 0) -> tuple[list[int], list[int]]:
    """Sizes of the five clusters by the printed formula, and by ⌊5c̃/q⌋."""
    soft = np.random.default_rng(seed).exponential(size=draws)
    quantile = -np.log(1 - 0.99)
    sizes = []
    for labels in (soft / (5 * quantile), 5 * soft / quantile):
        found = np.clip(np.floor(labels).astype(int), 0, 4)
        sizes.append(np.bincount(found, minlength=5).tolist())
    return sizes[0], sizes[1]
