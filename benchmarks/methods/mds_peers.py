"""Other models of directed dissimilarities, to compare FinslerMDS with.

    symmetric        d_ij = ‖x_i − x_j‖                  no asymmetry at all
    slide vector     d_ij = ‖x_i − x_j + z‖              one vector z for all pairs
    radius distance  d_ij = ‖x_i − x_j‖ − r_i + r_j      one number r per point

All minimise Σ_{i≠j} (d_ij − D_ij)², with uniform weights, by majorisation. The radius model (of
Okada and Imaizumi) falls apart into symmetric MDS of (D + Dᵀ)/2 and r_i = minus the row mean of
(D − Dᵀ)/2, so its r is a height that costs the map nothing, at N more parameters. The slide
vector (of Zielman and Heiser) shifts all targets against all sources.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from finsler_ext._threads import RowPool, resolve_n_jobs
from finsler_ext.estimators._mds.input import checked_dissimilarities
from finsler_ext.layout.stress.majorization import majorize
from finsler_ext.layout.stress.objective import TINY, stress_problem
from finsler_ext.layout.stress.start import InitialLayout

__all__ = ["PeerResult", "radius_distance_mds", "slide_vector_mds", "symmetric_mds"]


class PeerResult(NamedTuple):
    """A fitted model.

    embedding : array of shape (n, m), centred
    slide : array of shape (m,), the vector z; zero in the other models
    radius : array of shape (n,), the numbers r; zero in the other models
    stress, normalized_stress : Σ (d − D)², and divided by Σ D²
    stress_history : stress after each iteration
    """

    embedding: np.ndarray
    slide: np.ndarray
    radius: np.ndarray
    stress: float
    normalized_stress: float
    stress_history: np.ndarray

    def distances(self) -> np.ndarray:
        """d_ij of the model, of shape (n, n)."""
        d = cdist(self.embedding + self.slide, self.embedding) + self.radius - self.radius[:, None]
        np.fill_diagonal(d, 0.0)
        return d


def symmetric_mds(
    D, n_components=2, *, max_iter=300, eps=1e-6, init="finsler", random_state=None, n_jobs=None
) -> PeerResult:
    """d_ij = ‖x_i − x_j‖: SMACOF on (D + Dᵀ)/2; the stress is against D itself."""
    problem, run = _euclidean(D, n_components, max_iter, eps, init, random_state, n_jobs)
    n = problem.n_points
    return PeerResult(
        run.position,
        np.zeros(n_components),
        np.zeros(n),
        run.stress,
        run.stress / (problem.total * problem.unit**2),
        run.history,
    )


def radius_distance_mds(
    D, n_components=2, *, max_iter=300, eps=1e-6, init="finsler", random_state=None, n_jobs=None
) -> PeerResult:
    """d_ij = ‖x_i − x_j‖ − r_i + r_j, metric and with uniform weights.

    Examples
    --------
    >>> import numpy as np
    >>> D = np.array([[0.0, 3.0, 4.0], [1.0, 0.0, 2.0], [2.0, 2.0, 0.0]])
    >>> radius_distance_mds(D).radius.round(3)
    array([-0.667,  0.333,  0.333])
    """
    problem, run = _euclidean(D, n_components, max_iter, eps, init, random_state, n_jobs)
    # 2 n ‖u‖² is the share of the skew part that the radii take away.
    taken = (problem.skew - problem.cyclic) * problem.unit**2
    stress = run.stress - taken
    return PeerResult(
        run.position,
        np.zeros(n_components),
        problem.level * problem.unit,
        stress,
        stress / (problem.total * problem.unit**2),
        run.history - taken,
    )


def slide_vector_mds(
    D, n_components=2, *, max_iter=300, eps=1e-6, init="finsler", random_state=None, n_jobs=None
) -> PeerResult:
    """d_ij = ‖x_i − x_j + z‖; starts from symmetric MDS and z along its steepest axis.

    With e_ij = x_i − x_j + z and R_ij = D_ij/‖e_ij‖ the update is

        x_i ← Σ_j (R_ij e_ij − R_ji e_ji)/2n,      z ← Σ_{i≠j} R_ij e_ij/(n(n − 1)),

    the minimum of a quadratic above the stress, so the stress never rises.
    """
    problem, run = _euclidean(D, n_components, max_iter, eps, init, random_state, n_jobs)
    there = checked_dissimilarities(D).distances / problem.mean.dtype.type(problem.unit)
    back = np.ascontiguousarray(there.T)
    n = problem.n_points
    position = run.position / problem.unit
    # To first order ‖x_i − x_j + z‖ − ‖x_i − x_j‖ grows with z along x_i − x_j: a K that falls
    # along an axis calls for z against it. The mean pair is 1/√m of its length along each.
    trend, *_ = np.linalg.lstsq(position, -problem.level, rcond=None)
    slide = trend * np.sqrt(problem.total / problem.total_weight)
    pull, drag, misfit = np.empty((n, n_components)), np.empty((n, n_components)), np.empty(n)
    history: list[float] = []
    with RowPool(n, resolve_n_jobs(n_jobs)) as pool:
        for _ in range(max_iter + 1):
            pool.run(_slide_kernel, position, slide, there, back, pull, drag, misfit)
            history.append(float(misfit.sum()))
            done = len(history) > 1 and history[-2] - history[-1] <= eps * history[-1]
            if done or len(history) > max_iter:
                break
            position = pull / (2.0 * n)
            position -= position.mean(axis=0)
            slide = drag.sum(axis=0) / (n * (n - 1.0))
    scale = problem.unit**2
    return PeerResult(
        position * problem.unit,
        slide * problem.unit,
        np.zeros(n),
        history[-1] * scale,
        history[-1] / problem.total,
        np.array(history[1:]) * scale,
    )


def _euclidean(D, n_components, max_iter, eps, init, random_state, n_jobs):
    directed = checked_dissimilarities(D)
    if directed.weights is not None:
        raise ValueError(
            "The peers need all pairs (uniform weights), but some are missing. Complete them "
            "along shortest paths (finsler_ext.construct.readers.complete_paths)."
        )
    n_threads = resolve_n_jobs(n_jobs)
    problem = stress_problem(directed.distances, None, n_threads)
    start = InitialLayout(init, n_components, problem, check_random_state(random_state), n_threads)(
        0.0
    )
    run = majorize(problem, start, 0.0, max_iter=max_iter, eps=eps, n_threads=n_threads)
    return problem, run


@njit(nogil=True, cache=True, error_model="numpy")
def _slide_kernel(start, stop, position, slide, there, back, pull, drag, misfit):
    """Rows of Σ_j (R_ij e_ij − R_ji e_ji) and Σ_j R_ij e_ij, and Σ_j (‖e_ij‖ − D_ij)²."""
    n, m = position.shape
    for i in range(start, stop):
        pull[i], drag[i], misfit[i] = 0.0, 0.0, 0.0
        for j in range(n):
            if i == j:
                continue
            out, into = 0.0, 0.0
            for c in range(m):
                step = position[i, c] - position[j, c]
                out += (slide[c] + step) ** 2
                into += (slide[c] - step) ** 2
            out, into = np.sqrt(out), np.sqrt(into)
            misfit[i] += (out - there[i, j]) ** 2
            ratio_out, ratio_into = there[i, j] / (out + TINY), back[i, j] / (into + TINY)
            for c in range(m):
                step = position[i, c] - position[j, c]
                drag[i, c] += ratio_out * (slide[c] + step)
                pull[i, c] += ratio_out * (slide[c] + step) - ratio_into * (slide[c] - step)
