"""The spectral family in a Randers space, for small data: N × N matrices throughout.

    finsler_isomap               Σ w_ij (F_ij² − D_ij²)²
    finsler_laplacian_eigenmaps  ½ Σ W_ij F(y_i, y_j)² + λ ‖YᵀAY − I‖²,       1ᵀAY = 0
    finsler_diffusion_maps       ½ Σ (Pᵗ)_ij F(y_i, y_j)² + λ ‖YᵀY − Λ²ᵗ‖²,   1ᵀY = 0
    finsler_lle                  Σ_i F(y_i, Σ_j W_ij y_j)² + λ ‖YᵀY − I‖²,    1ᵀY = 0

Without a drift these are eigenvalue problems (Isomap apart). With one they are minimised by
L-BFGS, from their Euclidean solution and its mirror image along the height, whichever starts
lower. The linear constraint, which excludes the constant vector, holds exactly; the quadratic
one is a penalty, and shrinks the columns a little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components

from finsler_ext._threads import one_blas_thread
from finsler_ext.geometry import RANDERS
from finsler_ext.geometry.randers import forward
from finsler_ext.mds.distances import checked_dissimilarities
from finsler_ext.mds.start import signed

__all__ = [
    "SpectralResult",
    "finsler_diffusion_maps",
    "finsler_isomap",
    "finsler_laplacian_eigenmaps",
    "finsler_lle",
    "lle_weights",
]

# The penalty is so strong that it leaves this share of each column's square, at least, when
# the drift is zero.
KEPT = 0.98
MAX_ITERATIONS = 2000
# L-BFGS stops at relative gains near rounding: compare with an eigenvalue problem, not a layout.
OPTIONS = {"maxiter": MAX_ITERATIONS, "maxfun": 2 * MAX_ITERATIONS, "ftol": 1e-14, "gtol": 1e-10}
# Share of the trace that regularises the local Gram matrices of LLE; scikit-learn's figure.
LLE_REGULARISATION = 1e-3


class SpectralResult(NamedTuple):
    """An embedding with map columns first and the height last, its loss and that of the start."""

    embedding: np.ndarray
    loss: float
    start: np.ndarray
    start_loss: float
    n_iter: int


def finsler_isomap(
    D, n_components: int = 3, *, omega_norm: float = 0.5, weights=None, missing: str = "ignore"
) -> SpectralResult:
    """Minimise Σ w_ij (F_ij² − D_ij²)² from the solution of Isomap (classical MDS).

    Parameters
    ----------
    D : array of shape (n, n)
        Directed geodesic distances, e.g. from
        `finsler_ext.neighbors.geodesics.directed_distances`.
    n_components : int
        All columns; the last one is the height.
    omega_norm : float in [0, 1)
        At 0 this is s-stress, whose minimum lies below the solution of Isomap.
    weights : array of shape (n, n), optional
    missing : {"ignore", "geodesic"}

    Examples
    --------
    >>> import numpy as np
    >>> from finsler_ext.geometry.randers import randers_distances
    >>> Y = np.random.default_rng(0).normal(size=(30, 2))
    >>> bool(finsler_isomap(randers_distances(Y, 0.4), 2, omega_norm=0.4).loss < 1e-6)
    True
    """
    omega = RANDERS.check_drift(omega_norm)
    directed = checked_dissimilarities(D, weights, missing=missing)
    D = directed.distances.astype(np.float64)
    n = len(D)
    _check_columns(n_components, n)
    W = np.ones((n, n)) if directed.weights is None else directed.weights.astype(np.float64)
    np.fill_diagonal(W, 0.0)
    unit = np.sqrt((W * D**2).sum() / W.sum())
    squares = (D / unit) ** 2
    known = np.where(W + W.T > 0, (W * squares + (W * squares).T), 0.0)
    known /= np.where(W + W.T > 0, W + W.T, 1.0)
    centring = np.eye(n) - 1.0 / n
    with one_blas_thread():
        values, vectors = scipy.linalg.eigh(
            -0.5 * centring @ known @ centring, subset_by_index=[n - n_components, n - 1]
        )
    start = (signed(vectors) * np.sqrt(np.maximum(values, 0.0)))[:, ::-1]
    result = _minimise(isomap_loss(squares, W, omega), start, centred)
    return result._replace(
        embedding=result.embedding * unit,
        start=result.start * unit,
        loss=result.loss * unit**4,
        start_loss=result.start_loss * unit**4,
    )


def finsler_laplacian_eigenmaps(
    W,
    n_components: int = 3,
    *,
    omega_norm: float = 0.5,
    normalized: bool = False,
    penalty: float | None = None,
) -> SpectralResult:
    """Minimise ½ Σ W_ij F(s_i y_i, s_j y_j)² + λ ‖YᵀAY − I‖² from Laplacian eigenmaps.

    A holds the degrees of (W + Wᵀ)/2. With ``normalized``, s_i = A_i^{-1/2}, and I takes the
    place of A in the constraints (that of the constant vector becomes 1ᵀA^{1/2}Y = 0).

    Parameters
    ----------
    W : array of shape (n, n)
        Directed affinities ≥ 0, rows being sources.
    penalty : float, optional
        λ; by default strong enough to keep 98 % of each column's square.
    """
    omega = RANDERS.check_drift(omega_norm)
    W = _checked_affinities(W, "W")
    n = len(W)
    _check_columns(n_components, n)
    degree = (W.sum(axis=0) + W.sum(axis=1)) / 2
    if degree.min() <= 0:
        raise ValueError(f"W: point {int(degree.argmin())} has no affinity to or from any other.")
    scale = degree**-0.5 if normalized else np.ones(n)
    mass = np.ones(n) if normalized else degree
    constant = degree**0.5 if normalized else np.ones(n)
    values, start = _lowest(scale[:, None] * _laplacian(W) * scale, mass, constant, n_components)
    target = np.eye(n_components)
    strength = _strength(values, np.ones(n_components)) if penalty is None else penalty
    loss = pairs_loss(W, omega, scale, mass, target, strength)
    return _minimise(loss, start, free_of(constant, mass))


def finsler_diffusion_maps(
    P, n_components: int = 3, *, t: int = 1, omega_norm: float = 0.5, penalty: float | None = None
) -> SpectralResult:
    """Minimise ½ Σ (Pᵗ)_ij F(y_i, y_j)² + λ ‖YᵀY − Λ²ᵗ‖² from its Euclidean solution.

    Λ are the largest eigenvalues, below 1, of the reversible chain (ΠP + (ΠP)ᵀ)/2 with Π the
    stationary distribution. For a symmetric P the Euclidean solution is the diffusion map.

    Parameters
    ----------
    P : array of shape (n, n)
        Transition probabilities; rows sum to 1.
    t : int
        Number of steps.
    """
    omega = RANDERS.check_drift(omega_norm)
    P = _checked_affinities(P, "P")
    n = len(P)
    _check_columns(n_components, n)
    if np.abs(P.sum(axis=1) - 1.0).max() > 1e-6:
        raise ValueError("P: rows must sum to 1. Divide each row by its sum.")
    if int(t) != t or t < 1:
        raise ValueError(f"t must be an integer ≥ 1, got {t!r}.")
    with one_blas_thread():
        steps = np.linalg.matrix_power(P, int(t))
        spectrum = _reversible_eigenvalues(P)[1 : n_components + 1]
    if spectrum[-1] <= 0:
        raise ValueError(
            f"n_components={n_components} is more than P has positive eigenvalues below 1."
        )
    squares = spectrum ** (2 * int(t))
    values, start = _lowest(_laplacian(steps), np.ones(n), np.ones(n), n_components)
    strength = _strength(values, squares) if penalty is None else penalty
    loss = pairs_loss(steps, omega, np.ones(n), np.ones(n), np.diag(squares), strength)
    return _minimise(loss, start * np.sqrt(squares), centred)


def finsler_lle(
    W, n_components: int = 3, *, omega_norm: float = 0.5, penalty: float | None = None
) -> SpectralResult:
    """Minimise Σ_i F(y_i, Σ_j W_ij y_j)² + λ ‖YᵀY − I‖² from locally linear embedding.

    Parameters
    ----------
    W : array of shape (n, n)
        Reconstruction weights, rows summing to 1: see `lle_weights`.
    """
    omega = RANDERS.check_drift(omega_norm)
    W = np.asarray(W, dtype=np.float64)
    n = len(W)
    _check_columns(n_components, n)
    if W.shape != (n, n) or np.abs(W.sum(axis=1) - 1.0).max() > 1e-6:
        raise ValueError("W must be a square matrix of weights whose rows sum to 1.")
    residual = W - np.eye(n)
    values, start = _lowest(residual.T @ residual, np.ones(n), np.ones(n), n_components)
    strength = _strength(2.0 * values, np.ones(n_components)) if penalty is None else penalty
    return _minimise(lle_loss(residual, omega, strength), start, centred)


def lle_weights(X, n_neighbors: int = 15) -> np.ndarray:
    """Weights of the neighbours of each point that best rebuild it; rows sum to 1."""
    from sklearn.neighbors import NearestNeighbors

    X = np.asarray(X, dtype=np.float64)
    near = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors(return_distance=False)
    W = np.zeros((len(X), len(X)))
    for i, neighbors in enumerate(near):
        step = X[neighbors] - X[i]
        gram = step @ step.T
        trace = np.trace(gram)
        gram[np.diag_indices_from(gram)] += LLE_REGULARISATION * (trace if trace > 0 else 1.0)
        weight = scipy.linalg.solve(gram, np.ones(n_neighbors), assume_a="pos")
        W[i, neighbors] = weight / weight.sum()
    return W


# ------------------------------------------------------------------ Euclidean solutions


def _laplacian(W):
    """L with ½ Σ W_ij ‖y_i − y_j‖² = tr YᵀLY."""
    symmetric = (W + W.T) / 2
    return np.diag(symmetric.sum(axis=1)) - symmetric


def _lowest(matrix, mass, constant, n_components):
    """Smallest generalised eigenpairs of matrix y = μ diag(mass) y, without the constant."""
    root = np.sqrt(mass)
    inner = matrix / root / root[:, None]
    direction = root * constant / np.linalg.norm(root * constant)
    # Lift the constant vector above the rest of the spectrum.
    top = np.abs(inner).sum(axis=1).max()
    with one_blas_thread():
        values, vectors = scipy.linalg.eigh(
            (inner + inner.T) / 2 + 2.0 * top * np.outer(direction, direction),
            subset_by_index=[0, n_components - 1],
        )
    return values, signed(vectors) / root[:, None]


def _strength(values, squares):
    """λ that leaves the share KEPT of every column's square: μ_k = 2 λ c_k (1 − kept)."""
    return float(np.max(np.maximum(values, 1e-12) / squares)) / (2.0 * (1.0 - KEPT))


def _reversible_eigenvalues(P):
    n = len(P)
    if connected_components(P > 0, connection="strong")[0] > 1:
        raise ValueError(
            "P must be irreducible, but some points cannot be reached from others. Keep to a "
            "strongly connected part."
        )
    # The stationary distribution: the null vector of Pᵀ − I, with the sum fixed to 1.
    equations = np.vstack([P.T - np.eye(n), np.ones(n)])
    stationary, *_ = np.linalg.lstsq(equations, np.append(np.zeros(n), 1.0), rcond=None)
    flow = stationary[:, None] * P
    root = np.sqrt(np.maximum(stationary, np.finfo(np.float64).tiny))
    return scipy.linalg.eigvalsh((flow + flow.T) / 2 / root / root[:, None])[::-1]


# ------------------------------------------------------------------ descent


def centred(Y):
    return Y - Y.mean(axis=0)


def free_of(constant, mass):
    """The projection onto 1ᵀ diag(constant · mass) Y = 0."""
    direction = constant * mass
    direction = direction / np.linalg.norm(direction)
    return lambda Y: Y - np.outer(direction, direction @ Y)


def _minimise(loss: Loss, start, project) -> SpectralResult:
    """L-BFGS within the linear constraint, from the start or its mirror image."""
    mirrored = start * np.append(np.ones(start.shape[1] - 1), -1.0)
    with one_blas_thread():
        start = min((project(start), project(mirrored)), key=lambda Y: loss(Y)[0])

        # Scaled, so that tolerances mean the same for every objective.
        scale = loss(start)[0] or 1.0

        def flat(y):
            value, gradient = loss(project(y.reshape(start.shape)))
            return value / scale, project(gradient).ravel() / scale

        found = minimize(flat, start.ravel(), jac=True, method="L-BFGS-B", options=OPTIONS)
    embedding = project(found.x.reshape(start.shape))
    return SpectralResult(embedding, loss(embedding)[0], start, loss(start)[0], int(found.nit))


def _check_columns(n_components, n):
    if int(n_components) != n_components or not 1 <= n_components < n - 1:
        raise ValueError(
            f"n_components must lie between 1 and n − 2 = {n - 2}, got {n_components!r}."
        )


def _checked_affinities(W, name):
    W = np.asarray(W.toarray() if hasattr(W, "toarray") else W, dtype=np.float64)
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {W.shape}.")
    if not np.all(np.isfinite(W)) or W.min() < 0:
        raise ValueError(f"{name} must be finite and not negative.")
    return W


# A loss takes positions of shape (n, m) and returns its value and its gradient there.
Loss = Callable[[np.ndarray], tuple[float, np.ndarray]]


def isomap_loss(squares, W, omega) -> Loss:
    """Σ w_ij (F_ij² − D_ij²)² with ``squares`` = D²."""

    def loss(Y):
        F, inverse = _randers(Y, omega)
        rest = F**2 - squares
        force = 4.0 * W * rest * F
        return float((W * rest**2).sum()), _pulled(Y, force, inverse, omega)

    return loss


def pairs_loss(W, omega, scale, mass, target, strength) -> Loss:
    """½ Σ W_ij F(s_i y_i, s_j y_j)² + λ ‖Yᵀ diag(mass) Y − target‖²."""

    def loss(Y):
        scaled = scale[:, None] * Y
        F, inverse = _randers(scaled, omega)
        value, gradient = _penalty(Y, mass, target, strength)
        pulled = _pulled(scaled, W * F, inverse, omega)
        return 0.5 * float((W * F**2).sum()) + value, scale[:, None] * pulled + gradient

    return loss


def lle_loss(residual, omega, strength) -> Loss:
    """Σ_i F(0, v_i)² + λ ‖YᵀY − I‖² with v = (W − I) Y."""

    def loss(Y):
        step = residual @ Y
        length = np.sqrt((step**2).sum(axis=1, keepdims=True))
        F, _, _ = forward(length[:, 0], step[:, -1], omega)
        unit = np.divide(step, length, out=np.zeros_like(step), where=length > 0)
        unit[:, -1] += omega
        value, gradient = _penalty(Y, np.ones(len(Y)), np.eye(Y.shape[1]), strength)
        return float(F @ F) + value, residual.T @ (2.0 * F[:, None] * unit) + gradient

    return loss


def _randers(Y, omega):
    """F_ij, and 1/d_ij (0 where points coincide)."""
    square = np.zeros((len(Y), len(Y)))
    for column in Y.T:
        square += (column[:, None] - column) ** 2
    length = np.sqrt(square)
    lift = Y[:, -1] - Y[:, -1][:, None]
    inverse = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return forward(length, lift, omega)[0], inverse


def _pulled(Y, force, inverse, omega):
    """Gradient of a sum over pairs whose derivative by F_ij is ``force``."""
    # ∂F_ij/∂y_i = (y_i − y_j)/d_ij − ω e and ∂F_ij/∂y_j is its negative.
    along = (force + force.T) * inverse
    gradient = along.sum(axis=1)[:, None] * Y - along @ Y
    gradient[:, -1] += omega * (force.sum(axis=0) - force.sum(axis=1))
    return gradient


def _penalty(Y, mass, target, strength):
    rest = Y.T @ (mass[:, None] * Y) - target
    return strength * float((rest**2).sum()), 4.0 * strength * mass[:, None] * (Y @ rest)
