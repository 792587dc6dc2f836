"""Poincaré maps, on the shared neighbour graph."""

from __future__ import annotations

from benchmarks.paper.methods import Embedded, Request
from benchmarks.paper.methods.poincare import poincare_map
from benchmarks.paper.problem import MDS_NEIGHBORS, Problem


def poincare(problem: Problem, request: Request, seed: int) -> Embedded:
    found = problem.neighbors
    result = poincare_map(
        found.indices[:, 1 : MDS_NEIGHBORS + 1],
        found.distances[:, 1 : MDS_NEIGHBORS + 1],
        n_components=request.dimension,
        random_state=seed,
        n_jobs=problem.n_threads,
    )
    return Embedded(result.embedding, scores={"loss": float(result.loss_history[-1])})
