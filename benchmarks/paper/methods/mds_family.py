"""MDS, its directed relatives, and the local scale itself as a ceiling for heights."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.manifold import Isomap

from benchmarks.paper.methods import Embedded, Request
from benchmarks.paper.problem import MDS_NEIGHBORS, Problem
from benchmarks.peers.mds_peers import radius_distance_mds, slide_vector_mds, symmetric_mds
from benchmarks.peers.printed_smacof import printed_smacof
from finsler_ext import FinslerMDS
from finsler_ext.geometry.randers import randers_distances
from finsler_ext.metrics import skew_fidelity

# Learning rates of the paper's gradient descent, by data set; ours elsewhere.
PAPER_LEARNING_RATE = {"disk": 0.001, "swiss_roll": 0.1, "clusters": 0.1}


def isomap(problem: Problem, request: Request, seed: int) -> Embedded:
    # the iterative solver starts from numbers that no seed reaches
    near = min(MDS_NEIGHBORS, problem.n - 1)
    model = Isomap(n_neighbors=near, n_components=request.dimension, eigen_solver="dense")
    if problem.directed:
        model.set_params(metric="precomputed")
        return Embedded(model.fit_transform((problem.X + problem.X.T) / 2))
    return Embedded(model.fit_transform(problem.X.astype(np.float64)))


def symmetric(problem: Problem, request: Request, seed: int) -> Embedded:
    return _peer(symmetric_mds, problem, request)


def slide_vector(problem: Problem, request: Request, seed: int) -> Embedded:
    return _peer(slide_vector_mds, problem, request)


def radius_distance(problem: Problem, request: Request, seed: int) -> Embedded:
    """Places and radii; the radii, which carry all asymmetry, are taken for a height."""
    return _peer(radius_distance_mds, problem, request, radius_as_height=True)


def _peer(function, problem, request, radius_as_height: bool = False) -> Embedded:
    result = function(problem.distances, request.dimension, n_jobs=problem.n_threads)
    embedding = result.embedding
    if radius_as_height:
        embedding = np.column_stack([embedding, result.radius])
    return Embedded(
        embedding,
        has_height=radius_as_height,
        distances=result.distances,
        scores={"stress": result.normalized_stress},
    )


def smacof(problem: Problem, request: Request, seed: int) -> Embedded:
    return _finsler(problem, request, seed)


def gd(problem: Problem, request: Request, seed: int) -> Embedded:
    rate = PAPER_LEARNING_RATE.get(problem.dataset.name.partition(":")[0])
    return _finsler(problem, request, seed, method="gd", init="isomap", learning_rate=rate)


def _finsler(problem: Problem, request: Request, seed: int, **options) -> Embedded:
    model = FinslerMDS(
        request.dimension,
        omega_norm=request.omega,
        n_neighbors=MDS_NEIGHBORS,
        metric=problem.dataset.metric,
        random_state=seed,
        n_jobs=problem.n_threads,
        skew_weight=1,  # the stress of the paper
        **options,
    ).fit(problem.X.astype(np.float64))
    return Embedded(
        model.embedding_,
        has_height=model.omega_norm_ > 0,
        skew=model.skew_fidelity_,
        distances=partial(randers_distances, model.embedding_, model.omega_norm_),
        scores={
            "stress": model.normalized_stress_,
            "omega": model.omega_norm_,
            "gradient_share": model.gradient_share_,
            "rises": float((np.diff(model.stress_history_) > 0).sum()),
        },
    )


def printed(problem: Problem, request: Request, seed: int) -> Embedded:
    """Majorisation by the update as the paper prints it; its stress may rise."""
    D = problem.distances
    result = printed_smacof(D, n_components=request.dimension, omega_norm=request.omega)
    return Embedded(
        result.embedding,
        has_height=True,
        skew=skew_fidelity(result.embedding, distances=D, omega_norm=request.omega),
        distances=partial(randers_distances, result.embedding, request.omega),
        scores={
            "stress": result.normalized_stress,
            "rises": float((np.diff(result.stress_history) > 0).sum()),
        },
    )


def spacing(problem: Problem, request: Request, seed: int) -> Embedded:
    """No embedding at all: the log local scale as a height, the ceiling of what density tells."""
    return Embedded(np.log(problem.spacing)[:, None], has_height=True)
