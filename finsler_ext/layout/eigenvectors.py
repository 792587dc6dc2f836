"""Leading eigenvectors of a normalised graph: those that vary least along its edges.

The operator is D^{-1/2} W D^{-1/2}, its eigenvalues μ ≤ 1; those of the normalised Laplacian are
1 − μ, so the slowest eigenvectors have the largest μ.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

__all__ = ["leading_eigenvectors"]

# Below this size a dense eigensolver is faster and never fails.
DENSE_SIZE = 256
# Subspace of the iterative eigensolver.
KRYLOV_VECTORS = 40
# Eigenvectors are a start of a layout, so a loose tolerance will do ...
LOOSE_TOLERANCE = 1e-4
# ... unless it is coarse beside what it has to resolve: smooth data have many μ close to 1. A
# residual of more than this share of 1 − μ, and the vectors are computed again, to a fifth of it,
# and once more if 1 − μ turns out to be still smaller than it seemed.
RESOLVED = 0.05
REFINEMENTS = 3
# The finest tolerance, for graphs that hang together by a thread.
FINEST_TOLERANCE = 1e-10
# Restarts of a further attempt, at most: what has not converged by then takes longer than a fit.
RESTARTS = 200
# Another eigenvector counts as missed if its 1 − μ is smaller than the last one's by this share.
MISSED = 0.01
# Start of the search for missed ones. Not a seed that people use: from the first search's own start
# the same vectors would be missed.
SEARCH_SEED = 271_828


def leading_eigenvectors(operator, n_vectors: int, random_state) -> np.ndarray:
    """Eigenvectors of the ``n_vectors`` largest eigenvalues, largest first, as columns.

    Parameters
    ----------
    operator : sparse array of shape (n, n), n > n_vectors
        Symmetric, normalised, of a connected graph.
    n_vectors : int
    random_state : numpy RandomState
    """
    n = operator.shape[0]
    if n <= DENSE_SIZE:
        dense = operator.toarray()
        _, vectors = scipy.linalg.eigh(dense, subset_by_index=[n - n_vectors, n - 1])
        if vectors.shape[1] < n_vectors:  # LAPACK lost some of a multiple eigenvalue
            vectors = np.linalg.eigh(dense)[1][:, n - n_vectors :]
        return vectors[:, ::-1]
    values, vectors = _lanczos(operator, n_vectors, random_state, LOOSE_TOLERANCE, 5 * n)
    if len(values) < n_vectors:
        filler = random_state.normal(scale=n**-0.5, size=(n, n_vectors - len(values)))
        return np.hstack([vectors, filler])
    for _ in range(REFINEMENTS):
        if _resolved(operator, values, vectors):
            break
        finer = _lanczos(operator, n_vectors, random_state, _fine(values[1]), RESTARTS)
        if len(finer[0]) < n_vectors:
            break
        values, vectors = finer
    return _with_missed_ones(operator, values, vectors)


def _resolved(operator, values, vectors) -> bool:
    residuals = np.linalg.norm(operator @ vectors - vectors * values, axis=0)
    return bool((residuals[1:] <= RESOLVED * (1.0 - values[1:])).all())


def _fine(value: float) -> float:
    """A tolerance that resolves an eigenvalue."""
    return max(RESOLVED / 5 * (1.0 - value), FINEST_TOLERANCE)


def _lanczos(operator, n_vectors: int, random_state, tolerance: float, restarts: int):
    """Eigenvalues and vectors that converged, largest first."""
    n = operator.shape[0]
    try:
        values, vectors = eigsh(
            operator,
            k=n_vectors,
            which="LA",
            ncv=min(n - 1, max(2 * n_vectors + 1, KRYLOV_VECTORS)),
            tol=tolerance,
            v0=random_state.uniform(-1.0, 1.0, size=n),
            maxiter=restarts,
        )
    except ArpackNoConvergence as failure:
        values, vectors = failure.eigenvalues, failure.eigenvectors
    order = np.argsort(-values)
    return values[order], vectors[:, order]


def _with_missed_ones(operator, values, vectors):
    """Exchange the last vectors for slower ones that are orthogonal to all of them.

    From one start vector the Lanczos method finds the second vector of a double eigenvalue, as
    symmetric data have, by rounding errors only, and may stop before it does, with a vector of a
    smaller eigenvalue in its place.
    """
    for _ in range(len(values)):

        def deflated(x, found=vectors, weights=values):
            return operator @ x - found @ (weights * (found.T @ x))

        rest = LinearOperator(operator.shape, matvec=deflated, dtype=np.float64)
        # a generator of its own: where nothing was missed, what is drawn later stays the same
        start = np.random.RandomState(SEARCH_SEED)
        other, vector = _lanczos(rest, 1, start, _fine(values[-1]), RESTARTS)
        if not len(other) or 1.0 - other[0] > (1.0 - MISSED) * (1.0 - values[-1]):
            break
        basis, _ = np.linalg.qr(np.hstack([vectors, vector]))
        all_values, turn = np.linalg.eigh(basis.T @ (operator @ basis))
        values, vectors = all_values[:0:-1], basis @ turn[:, :0:-1]
    return vectors
