"""The SMACOF update of Finsler MDS as it was printed: what the factored one corrects.

For the directed stress L(Y) = Σ_{i≠j} w_ij (F_ij − D_ij)² with symmetric w, arXiv 2503.18010 and
2603.11396 give, according to notes on the two papers from which it is taken, the update (written
here with its Kronecker factor inverted)

    Y⁺ = V† (B Y − C) (I − ωωᵀ/(1 + ‖ω‖²)),
    B_ij = −w_ij D_ij/F_ij for i ≠ j,   B_ii = Σ_{j≠i} w_ij D_ij/F_ij,
    C = ((w∘D) 1 − (w∘D)ᵀ 1) ωᵀ,        V the Laplacian of w.

It differs from `finsler_ext.mds.estimator.finsler_smacof` in three ways: D is not symmetrised
in B, the denominator is the Finsler distance F_ij and not the Euclidean one, and C counts
whole, not half. A minimiser of the stress is therefore no fixed point of it, and the
stress may rise. At ω = 0 with a symmetric D both are SMACOF.

What the printed form leaves open, and our reading of it: the diagonal of B makes its rows sum to
zero (its columns do not, as B is not symmetric), so the constant part of B Y − C is dropped, as
V† does; where F_ij = 0, B_ij = 0 as in SMACOF. There is no safeguard and no momentum: the last
step counts, not the best.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from sklearn.utils import check_random_state

from finsler_ext._threads import RowPool, one_blas_thread, resolve_n_jobs
from finsler_ext.asymmetry import is_symmetric
from finsler_ext.geometry import RANDERS
from finsler_ext.mds.distances import checked_dissimilarities
from finsler_ext.mds.start import InitialLayout
from finsler_ext.mds.stress import dense_stress

__all__ = ["PrintedResult", "printed_smacof"]


class PrintedResult(NamedTuple):
    """Where the printed update leads.

    embedding : array of shape (n, m), map columns first, height last; centred
    stress_history : stress at the start and after each iteration
    normalized_stress : the last of them, divided by Σ w D²
    start : array of shape (n, m), the positions it started from
    """

    embedding: np.ndarray
    stress_history: np.ndarray
    normalized_stress: float
    start: np.ndarray


def printed_smacof(
    D,
    *,
    n_components=3,
    omega_norm=0.5,
    weights=None,
    init="finsler",
    max_iter=300,
    eps=1e-6,
    random_state=None,
    n_jobs=None,
) -> PrintedResult:
    """Iterate the printed update from the start of `finsler_ext.mds.estimator.finsler_smacof`.

    Parameters
    ----------
    D, n_components, omega_norm, weights, random_state, n_jobs
        As in `finsler_smacof`; the drift must be a number, the weights symmetric.
    init : {"finsler", "isomap", "random"} or array of shape (n, n_components)
    max_iter : int, default=300
    eps : float, default=1e-6
        Stop when the stress changes, either way, by less than this share of itself.

    Returns
    -------
    PrintedResult

    Examples
    --------
    >>> import numpy as np
    >>> from finsler_ext.geometry.randers import randers_distances
    >>> D = randers_distances(np.random.default_rng(0).normal(size=(50, 3)), 0.3)
    >>> result = printed_smacof(D, omega_norm=0.3)
    >>> result.embedding.shape, bool((np.diff(result.stress_history) > 0).any())
    ((50, 3), True)
    """
    omega = RANDERS.check_drift(omega_norm)
    directed = checked_dissimilarities(D, weights)
    if directed.weights is not None and not is_symmetric(directed.weights, 0.0):
        raise ValueError("weights must be symmetric: the update was derived for such alone.")
    n_threads = resolve_n_jobs(n_jobs)
    distances = directed.distances.astype(np.float64)
    counts = directed.weights
    counts = np.empty((0, 0)) if counts is None else counts.astype(np.float64)
    with one_blas_thread(), RowPool(len(distances), n_threads) as pool:
        problem = dense_stress(directed.distances, directed.weights, n_threads)
        if isinstance(init, str):
            rng = check_random_state(random_state)
            start = InitialLayout(init, n_components, problem, rng, n_threads)(omega)
        else:
            start = np.array(init, dtype=np.float64)
            if start.shape != (len(distances), n_components):
                raise ValueError(
                    f"init: an array must have shape ({len(distances)}, {n_components}), "
                    f"got {start.shape}."
                )
        start = start - start.mean(axis=0)
        weighted = distances * counts if counts.size else distances
        flow = weighted.sum(axis=1) - weighted.sum(axis=0)
        position, history = start, []
        for _ in range(max_iter):
            stress, target = _stress_and_product(position, distances, counts, omega, pool)
            history.append(stress)
            if len(history) > 1 and abs(history[-2] - stress) <= eps * stress:
                break
            target[:, -1] -= omega * flow
            position = problem.solver.solve(np.ascontiguousarray(target.T), exactly=True).T
            position[:, -1] /= 1.0 + omega**2
        else:
            history.append(_stress_and_product(position, distances, counts, omega, pool)[0])
    total = problem.total * problem.unit**2
    return PrintedResult(position, np.array(history), history[-1] / total, start)


def _stress_and_product(position, distances, counts, omega, pool):
    """L(Y), and B Y as printed."""
    product = np.empty_like(position)
    sums = np.empty(len(position))
    pool.run(_printed_rows, np.ascontiguousarray(position), distances, counts, omega, product, sums)
    return float(sums.sum()), product


@njit(nogil=True, cache=True)
def _printed_rows(start, stop, position, distances, counts, omega, product, sums):
    n, m = position.shape
    for i in range(start, stop):
        product[i] = 0.0
        sums[i] = 0.0
        for j in range(n):
            if i == j:
                continue
            square = 0.0
            for c in range(m):
                square += (position[j, c] - position[i, c]) ** 2
            finsler = np.sqrt(square) + omega * (position[j, m - 1] - position[i, m - 1])
            weight = counts[i, j] if counts.shape[0] > 0 else 1.0
            sums[i] += weight * (finsler - distances[i, j]) ** 2
            if finsler > 0.0:
                ratio = weight * distances[i, j] / finsler
                for c in range(m):
                    product[i, c] += ratio * (position[i, c] - position[j, c])
