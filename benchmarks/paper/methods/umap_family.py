"""UMAP and what this project makes of it, on the shared neighbour graph."""

from __future__ import annotations

import numpy as np
from umap import UMAP

from benchmarks.paper.methods import Embedded, Request, upside_down
from benchmarks.paper.problem import Problem
from benchmarks.peers.one_sided import OneSidedFinslerUMAP
from finsler_ext import FinslerUMAP
from finsler_ext.umap.layout import loss_shape, umap_loss


def umap(problem: Problem, request: Request, seed: int) -> Embedded:
    """umap-learn itself; directed distances are averaged, since it cannot use them otherwise."""
    return _upstream(problem, request, seed)


def densmap(problem: Problem, request: Request, seed: int) -> Embedded:
    return _upstream(problem, request, seed, densmap=True)


def _upstream(problem: Problem, request: Request, seed: int, **options) -> Embedded:
    model = UMAP(n_components=request.dimension, random_state=seed, **options)
    if problem.directed:
        model.set_params(metric="precomputed")
        return Embedded(model.fit((problem.X + problem.X.T) / 2).embedding_)
    model.set_params(precomputed_knn=problem.umap_graph(min(15, problem.n)))
    return Embedded(model.fit(problem.X).embedding_)


def finsler(problem: Problem, request: Request, seed: int) -> Embedded:
    return _ours(FinslerUMAP, problem, request, seed)


def one_sided(problem: Problem, request: Request, seed: int) -> Embedded:
    return _ours(OneSidedFinslerUMAP, problem, request, seed)


def free(problem: Problem, request: Request, seed: int) -> Embedded:
    """All columns start from eigenvectors and move from the first epoch on.

    FinslerUMAP itself holds the height at zero while the map settles; a start that has all
    columns leaves nothing to hold.
    """
    start = fitted(FinslerUMAP, problem, request, seed, omega_norm=0.0, n_epochs=0).embedding_
    return _ours(FinslerUMAP, problem, request, seed, init=np.asarray(start))


def held(problem: Problem, request: Request, seed: int) -> Embedded:
    """The map settles first, in any number of columns."""
    return _ours(FinslerUMAP, problem, request, seed, height="held")


def free_axis(problem: Problem, request: Request, seed: int) -> Embedded:
    """All columns settle together, then the drift finds its axis."""
    return _ours(FinslerUMAP, problem, request, seed, height="free")


def harmonic(problem: Problem, request: Request, seed: int) -> Embedded:
    """One symmetric scale per edge, in Euclidean space."""
    model = fitted(FinslerUMAP, problem, request, seed, omega_norm=0.0, affinity="harmonic")
    return Embedded(np.asarray(model.embedding_))


def _ours(estimator, problem: Problem, request: Request, seed: int, **options) -> Embedded:
    model = fitted(estimator, problem, request, seed, omega_norm=request.omega, **options)
    scores = {"omega": model.omega_norm_, "loss": model.loss_.value}
    if model.omega_norm_ > 0:
        scores["loss_opposite"] = _loss_opposite(model)
    return Embedded(
        np.asarray(model.embedding_),
        has_height=model.omega_norm_ > 0,
        skew=model.skew_fidelity_,
        scores=scores,
    )


def _loss_opposite(model) -> float:
    """The loss of the same layout under the opposite drift."""
    turned, shape = upside_down(model.embedding_), loss_shape(model)
    return umap_loss(turned, model.graph_, shape, omega_norm=model.omega_norm_).value


def fitted(estimator, problem: Problem, request: Request, seed: int, **options):
    model = estimator(
        n_components=request.dimension,
        geodesic_neighbors=request.extension,
        random_state=seed,
        n_jobs=problem.n_threads,
        **options,
    )
    if problem.directed:
        model.set_params(metric="precomputed")
    else:
        model.set_params(precomputed_knn=problem.umap_graph(min(15, problem.n)))
    return model.fit(problem.X)
