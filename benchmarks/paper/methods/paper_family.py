"""The paper's own methods, on the shared neighbour graph: what the idea gives by itself."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from benchmarks.paper.methods import Embedded, Request, mds_family, paper_tsne, paper_umap
from benchmarks.paper.methods.umap_family import fitted
from benchmarks.paper.problem import Problem
from finsler_ext import FinslerUMAP
from finsler_ext.asymmetry import Asymmetry

# The neighbours that all methods of the paper share. At a perplexity of 30 the search for a scale
# has no solution among 15 neighbours and ends in equal affinities.
SHARED_NEIGHBORS = 15


def umap(problem: Problem, request: Request, seed: int) -> Embedded:
    """Negatives in both directions, as the gradient of the loss has them."""
    return _umap(problem, request, seed, two_sided=True)


def umap_one_sided(problem: Problem, request: Request, seed: int) -> Embedded:
    """Negatives in one direction, as umap-learn draws them."""
    return _umap(problem, request, seed, two_sided=False)


def _umap(problem: Problem, request: Request, seed: int, two_sided: bool) -> Embedded:
    constructed = fitted(FinslerUMAP, problem, request, seed, omega_norm=0.0, n_epochs=0)
    P, omega_norm = scipy.sparse.csr_matrix(constructed.graph_), _drift(request)
    embedding = paper_umap.lay_out(
        problem.X,
        P,
        request.dimension,
        omega_norm=omega_norm,
        a=constructed._a,
        b=constructed._b,
        two_sided=two_sided,
        seed=seed,
    )
    return _scored(embedding, constructed.asymmetry_, omega_norm, {})


def tsne(problem: Problem, request: Request, seed: int) -> Embedded:
    """On the 15 neighbours that all methods of the paper share."""
    return _tsne(problem, request, _equal_affinities(problem), _drift(request))


def tsne_wide(problem: Problem, request: Request, seed: int) -> Embedded:
    """On three times the perplexity of neighbours, as t-SNE is usually run."""
    P = problem.affinities("directed", request.extension).P
    return _tsne(problem, request, P, _drift(request))


def tsne_parent(problem: Problem, request: Request, seed: int) -> Embedded:
    """The Euclidean parent on the 15 neighbours, symmetrised, by the same descent."""
    P = _equal_affinities(problem)
    return _tsne(problem, request, scipy.sparse.csr_matrix((P + P.T) / 2), 0.0)


def _tsne(problem: Problem, request: Request, P, omega_norm: float) -> Embedded:
    embedding, divergence = paper_tsne.lay_out(
        problem.X, P, request.dimension, omega_norm=omega_norm, n_threads=problem.n_threads
    )
    usual = problem.affinities("directed", request.extension)
    asymmetry = Asymmetry.of_scale(usual.P, usual.local_scale)
    return _scored(embedding, asymmetry, omega_norm, {"kl": divergence})


def mds_gd(problem: Problem, request: Request, seed: int) -> Embedded:
    """Adam for 100 epochs from Isomap and a zero height, at the paper's learning rates."""
    return mds_family.gd(problem, request, seed)


def _drift(request: Request) -> float:
    return float(request.omega or 0.0)


def _equal_affinities(problem: Problem) -> scipy.sparse.csr_matrix:
    near = problem.neighbors.indices[:, 1 : SHARED_NEIGHBORS + 1]
    source = np.repeat(np.arange(len(near)), near.shape[1])
    equal = np.full(near.size, 1.0 / near.size)
    return scipy.sparse.csr_matrix((equal, (source, near.ravel())), shape=2 * (len(near),))


def _scored(embedding, asymmetry: Asymmetry, omega_norm: float, scores: dict) -> Embedded:
    """Heights are compared with the asymmetry that ours are compared with."""
    has_height = omega_norm > 0
    return Embedded(
        np.asarray(embedding),
        has_height=has_height,
        skew=asymmetry.fidelity(embedding, omega_norm) if has_height else None,
        scores=scores | {"omega": omega_norm},
    )
