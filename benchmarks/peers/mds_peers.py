"""Other models of directed dissimilarities, to compare FinslerMDS with.

    symmetric        d_ij = ‖x_i − x_j‖                  no asymmetry at all
    slide vector     d_ij = ‖x_i − x_j + z‖              one vector z for all pairs
    radius distance  d_ij = ‖x_i − x_j‖ − r_i + r_j      one number r per point

All minimise Σ_{i≠j} w_ij (d_ij − D̂_ij)² with symmetric weights by majorisation, where D̂ is D, D − a
or a rising function of D (`finsler_ext.mds.scaling`), the same as in FinslerMDS. For a
given D̂ the radius model (of Okada and Imaizumi) falls apart into symmetric MDS of (D̂ + D̂ᵀ)/2 and
the heights that (D̂ − D̂ᵀ)/2 calls for, so its r costs the map nothing, at N more parameters. The
slide vector (of Zielman and Heiser) shifts all targets against all sources.
"""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.spatial.distance import cdist
from sklearn.isotonic import isotonic_regression
from sklearn.utils import check_random_state

from finsler_ext._threads import RowPool, one_blas_thread, resolve_n_jobs
from finsler_ext.asymmetry import is_symmetric
from finsler_ext.mds.descent import majorize
from finsler_ext.mds.distances import checked_dissimilarities
from finsler_ext.mds.scaling import SCALINGS, OrdinalStress, Transformation, transformation_at
from finsler_ext.mds.start import InitialLayout
from finsler_ext.mds.stress import TINY, dense_stress

__all__ = ["PeerResult", "radius_distance_mds", "rescaled", "slide_vector_mds", "symmetric_mds"]

# A step is halved at most this often before it counts as none.
HALVINGS = 20


class PeerResult(NamedTuple):
    """A fitted model.

    embedding : array of shape (n, m), centred
    slide : array of shape (m,), the vector z; zero in the other models
    radius : array of shape (n,), the numbers r; zero in the other models
    stress, normalized_stress : Σ w (d − D̂)², and divided by Σ w D²
    stress_history : stress after each iteration
    transformation : what the distances stand for
    """

    embedding: np.ndarray
    slide: np.ndarray
    radius: np.ndarray
    stress: float
    normalized_stress: float
    stress_history: np.ndarray
    transformation: Transformation = Transformation()

    def distances(self) -> np.ndarray:
        """d_ij of the model, of shape (n, n)."""
        d = cdist(self.embedding + self.slide, self.embedding) + self.radius - self.radius[:, None]
        np.fill_diagonal(d, 0.0)
        return d


def _on_one_thread(method):
    """BLAS on one thread for the whole fit; to change it takes milliseconds each time."""

    @wraps(method)
    def fit(*args, **options):
        with one_blas_thread():
            return method(*args, **options)

    return fit


@_on_one_thread
def symmetric_mds(D, n_components=2, **options) -> PeerResult:
    """d_ij = ‖x_i − x_j‖: SMACOF on (D̂ + D̂ᵀ)/2; the stress is against D̂ itself.

    Parameters
    ----------
    D : whatever `finsler_ext.read_directed` reads
    n_components : int
    weights : array of shape (n, n), symmetric, optional
    scaling : {"ratio", "interval", "ordinal"}, default="ratio"
    max_iter, eps, init, random_state, n_jobs
        As in `finsler_ext.mds.estimator.finsler_smacof`.
    """
    problem, run, transformation = _euclidean(D, n_components, **options)
    return PeerResult(
        run.position,
        np.zeros(n_components),
        np.zeros(problem.n_points),
        run.stress,
        run.stress / (problem.total * problem.unit**2),
        run.history,
        transformation,
    )


@_on_one_thread
def radius_distance_mds(D, n_components=2, **options) -> PeerResult:
    """d_ij = ‖x_i − x_j‖ − r_i + r_j; the options are those of `symmetric_mds`.

    Examples
    --------
    >>> import numpy as np
    >>> D = np.array([[0.0, 3.0, 4.0], [1.0, 0.0, 2.0], [2.0, 2.0, 0.0]])
    >>> radius_distance_mds(D).radius.round(3)
    array([-0.667,  0.333,  0.333])
    """
    problem, run, transformation = _euclidean(D, n_components, **options)
    # The share of the skew part that the radii take away; a constant has no skew part.
    taken = (problem.skew - problem.cyclic) * problem.unit**2
    stress = run.stress - taken
    found = PeerResult(
        run.position,
        np.zeros(n_components),
        problem.level * problem.unit,
        stress,
        stress / (problem.total * problem.unit**2),
        run.history - taken,
        transformation,
    )
    if transformation.kind != "ordinal":
        return found
    return _radius_in_order(D, found, **options)


def _radius_in_order(D, found, *, weights=None, max_iter=1000, eps=1e-6, **_) -> PeerResult:
    """Ordinal: the rising function and the radii depend on each other, so they take turns."""
    directed = checked_dissimilarities(D, weights)
    solver, history = None, []
    while True:
        scaled, transformation, stress = rescaled(found.distances(), directed, "ordinal")
        history.append(stress)
        quiet = len(history) > 1 and history[-2] - stress <= eps * stress
        if quiet or len(history) > max_iter:
            break
        problem = dense_stress(scaled, directed.weights, solver=solver, unit=1.0)
        solver = problem.solver
        run = majorize(problem, found.embedding, 0.0, max_iter=1, accelerate=False)
        found = found._replace(embedding=run.position, radius=problem.level)
    total = _total(directed)
    return found._replace(
        stress=history[-1],
        normalized_stress=history[-1] / total,
        stress_history=np.array(history[1:]),
        transformation=transformation,
    )


@_on_one_thread
def slide_vector_mds(D, n_components=2, *, max_iter=1000, eps=1e-6, **options) -> PeerResult:
    """d_ij = ‖x_i − x_j + z‖; starts from symmetric MDS and z along its steepest axis.

    With e_ij = x_i − x_j + z, R_ij = w_ij D̂_ij/‖e_ij‖ and V the Laplacian of w the update is

        V x ← Σ_j (R_ij e_ij − R_ji e_ji)/2,      z ← Σ_{i≠j} R_ij e_ij/Σ w,

    the minimum of a quadratic above the stress where D̂ ≥ 0, so the stress never rises; where some
    D̂ are negative, a step is halved until it falls. The options are those of `symmetric_mds`.
    """
    problem, run, _ = _euclidean(D, n_components, max_iter=max_iter, eps=eps, **options)
    directed = checked_dissimilarities(D, options.get("weights"))
    kind, n_threads = options.get("scaling", "ratio"), resolve_n_jobs(options.get("n_jobs"))
    n = problem.n_points
    position = run.position / problem.unit
    # To first order ‖x_i − x_j + z‖ − ‖x_i − x_j‖ grows with z along x_i − x_j: a K that falls
    # along an axis calls for z against it. The mean pair is 1/√m of its length along each.
    trend, *_ = np.linalg.lstsq(position, -problem.level, rcond=None)
    here = PeerResult(
        run.position,
        trend * np.sqrt(problem.total / problem.total_weight) * problem.unit,
        np.zeros(n), np.nan, np.nan, np.empty(0),
    )  # fmt: skip
    scaled, transformation, stress = rescaled(here.distances(), directed, kind)
    history: list[float] = []
    with RowPool(n, n_threads) as pool:
        for _ in range(max_iter):
            aim = _slide_step(here, scaled, directed.weights, problem, pool)
            for halving in range(HALVINGS):
                share = 0.5**halving
                there = here._replace(
                    embedding=here.embedding + share * (aim.embedding - here.embedding),
                    slide=here.slide + share * (aim.slide - here.slide),
                )
                found = rescaled(there.distances(), directed, kind)
                if found[2] <= stress:
                    break
            else:
                break
            gain, here = stress - found[2], there
            scaled, transformation, stress = found
            history.append(stress)
            if gain <= eps * stress:
                break
    return here._replace(
        stress=stress,
        normalized_stress=stress / _total(directed),
        stress_history=np.array(history),
        transformation=transformation,
    )


def rescaled(F, directed, kind: str) -> tuple[np.ndarray, Transformation, float]:
    """The best D̂ for distances F of a model, what it is of D, and Σ w (F − D̂)²."""
    D = directed.distances.astype(np.float64)
    n = len(D)
    weights = np.ones((n, n)) if directed.weights is None else directed.weights.astype(np.float64)
    known = (weights > 0) & ~np.eye(n, dtype=bool)
    w = weights[known]
    transformation = Transformation()
    if kind == "interval":
        constant = max(0.0, float(w @ (D[known] - F[known]) / w.sum()))
        transformation = Transformation("interval", constant)
    elif kind == "ordinal":
        knots, rank = np.unique(D[known], return_inverse=True)
        weight = np.bincount(rank, w)
        rising = isotonic_regression(np.bincount(rank, w * F[known]) / weight, sample_weight=weight)
        size = np.sqrt(w @ D[known] ** 2 / (weight @ rising**2))
        transformation = Transformation("ordinal", 0.0, knots, rising * size)
    scaled = np.zeros_like(D)
    scaled[known] = transformation.disparities(D[known])
    return scaled, transformation, float(w @ (F[known] - scaled[known]) ** 2)


def _total(directed) -> float:
    D = directed.distances.astype(np.float64)
    square = D**2 if directed.weights is None else directed.weights * D**2
    return float(square.sum() - np.trace(square))


def _slide_step(here, scaled, weights, problem, pool) -> PeerResult:
    n, m = here.embedding.shape
    pull, drag = np.empty((n, m)), np.empty((n, m))
    weighted = scaled if weights is None else weights * scaled
    there, back = np.ascontiguousarray(weighted), np.ascontiguousarray(weighted.T)
    pool.run(_slide_kernel, here.embedding, here.slide, there, back, pull, drag)
    pull -= pull.mean(axis=0)
    moved = problem.solver.solve(np.ascontiguousarray(pull.T) / 2.0).T
    return here._replace(
        embedding=moved - moved.mean(axis=0), slide=drag.sum(axis=0) / problem.total_weight
    )


def _euclidean(
    D, n_components, *, weights=None, scaling="ratio", max_iter=300, eps=1e-6, init="finsler",
    random_state=None, n_jobs=None,
):  # fmt: skip
    directed = checked_dissimilarities(D, weights)
    if directed.weights is not None and not is_symmetric(directed.weights, 0.0):
        raise ValueError(
            "The peers need symmetric weights, but some pairs are known one way only. Complete "
            "them along shortest paths (finsler_ext.directed.data.complete_paths)."
        )
    if scaling not in SCALINGS:
        raise ValueError(f"scaling must be one of {SCALINGS}, got {scaling!r}.")
    n_threads = resolve_n_jobs(n_jobs)
    problem = dense_stress(directed.distances, directed.weights, n_threads)
    start = InitialLayout(init, n_components, problem, check_random_state(random_state), n_threads)(
        0.0
    )
    scaled = replace(problem, interval=scaling == "interval")
    if scaling == "ordinal":
        scaled = OrdinalStress(directed.distances, directed.weights, problem)
    run = majorize(scaled, start, 0.0, max_iter=max_iter, eps=eps, n_threads=n_threads)
    return problem, run, transformation_at(scaled, run.position, 0.0)


@njit(nogil=True, cache=True, error_model="numpy")
def _slide_kernel(start, stop, position, slide, there, back, pull, drag):
    """Rows of Σ_j (R_ij e_ij − R_ji e_ji) and Σ_j R_ij e_ij, for w D̂ there and back."""
    n, m = position.shape
    for i in range(start, stop):
        pull[i], drag[i] = 0.0, 0.0
        for j in range(n):
            if i == j:
                continue
            out, into = 0.0, 0.0
            for c in range(m):
                step = position[i, c] - position[j, c]
                out += (slide[c] + step) ** 2
                into += (slide[c] - step) ** 2
            out, into = np.sqrt(out), np.sqrt(into)
            ratio_out, ratio_into = there[i, j] / (out + TINY), back[i, j] / (into + TINY)
            for c in range(m):
                step = position[i, c] - position[j, c]
                drag[i, c] += ratio_out * (slide[c] + step)
                pull[i, c] += ratio_out * (slide[c] + step) - ratio_into * (slide[c] - step)
