"""t-SNE and what this project makes of it, on affinities from the shared neighbour graph."""

from __future__ import annotations

import numpy as np
from openTSNE import TSNE
from openTSNE.affinity import PrecomputedAffinities

from benchmarks.paper.methods import Embedded, Request, upside_down
from benchmarks.paper.problem import Problem
from finsler_ext import FinslerTSNE
from finsler_ext.metrics import skew_fidelity
from finsler_ext.tsne.gradient import FinslerGradient


def opentsne(problem: Problem, request: Request, seed: int) -> Embedded:
    """openTSNE itself, on its own symmetrised affinities."""
    affinities = problem.affinities("symmetrized", request.extension)
    few = problem.X.shape[1] < request.dimension
    model = TSNE(
        request.dimension,
        random_state=seed,
        n_jobs=problem.n_threads,
        # its "auto" takes a grid for many points, which has no third dimension
        negative_gradient_method="auto" if request.dimension < 3 else "bh",
        # as on directed data, there may be no principal components, or too few of them
        initialization="spectral" if problem.directed or few else "pca",
    )
    X = None if problem.directed else problem.X
    fitted = model.fit(X, affinities=PrecomputedAffinities(affinities.P.copy()))
    return Embedded(np.asarray(fitted), scores={"kl": float(fitted.kl_divergence)})


def held(problem: Problem, request: Request, seed: int) -> Embedded:
    """The map settles first, in any number of columns."""
    return finsler(problem, request, seed, height="held")


def free_axis(problem: Problem, request: Request, seed: int) -> Embedded:
    """All columns settle together, then the drift finds its axis."""
    return finsler(problem, request, seed, height="free")


def finsler(problem: Problem, request: Request, seed: int, **options) -> Embedded:
    model = _fitted(problem, request, seed, "directed", omega_norm=request.omega, **options)
    skew = model.skew_fidelity_
    if problem.directed:
        skew = skew_fidelity(np.asarray(model.embedding_), distances=problem.X)
    scores = {"omega": model.omega_norm_, "kl": model.kl_divergence_}
    if model.omega_norm_ > 0:
        P = problem.affinities("directed", request.extension).P
        scores["loss_opposite"] = _loss_opposite(model, P)
    return Embedded(
        np.asarray(model.embedding_), has_height=model.omega_norm_ > 0, skew=skew, scores=scores
    )


def _loss_opposite(model: FinslerTSNE, P) -> float:
    """The divergence of the same layout under the opposite drift."""
    divergence, _ = FinslerGradient(model.omega_norm_)(
        upside_down(model.embedding_),
        P,
        dof=model.dof,
        bh_params={"theta": model.theta},
        fft_params={},
        should_eval_error=True,
    )
    return float(divergence)


def harmonic(problem: Problem, request: Request, seed: int) -> Embedded:
    """One symmetric scale per edge, in Euclidean space."""
    return _euclidean(problem, request, seed, "harmonic")


def exact(problem: Problem, request: Request, seed: int) -> Embedded:
    """openTSNE's affinities and the sum over all pairs, by this project's solver at no drift."""
    return _euclidean(problem, request, seed, "symmetrized", negative_gradient_method="exact")


def _euclidean(problem, request, seed, kind, **options) -> Embedded:
    model = _fitted(problem, request, seed, kind, omega_norm=0.0, **options)
    return Embedded(np.asarray(model.embedding_), scores={"kl": model.kl_divergence_})


def _fitted(problem: Problem, request: Request, seed: int, kind: str, **options) -> FinslerTSNE:
    model = FinslerTSNE(
        n_components=request.dimension,
        random_state=seed,
        n_jobs=problem.n_threads,
        initialization="spectral" if problem.directed else "pca",
        **options,
    )
    X = None if problem.directed else problem.X
    return model.fit(X, affinities=problem.affinities(kind, request.extension))
