"""Orders of the nodes of a digraph by one number each: SpringRank and trophic levels.

SpringRank (De Bacco, Larremore and Moore 2018) takes every edge i → j for a spring of rest length 1
and minimises

    H(s) = ½ Σ_ij A_ij (s_i − s_j − 1)² + ½ α Σ_i s_i².

Trophic levels (MacKay, Johnson and Sansom 2020) minimise Σ_ij A_ij (h_j − h_i − 1)²: the same at
α = 0, with the opposite sign.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import cg

__all__ = ["springrank", "trophic_levels"]

TOLERANCE = 1e-10


def springrank(graph, alpha: float = 0.0) -> np.ndarray:
    """s of each node, so that edges lead from higher to lower ranks; centred.

    Parameters
    ----------
    graph : sparse matrix of shape (n, n)
        Numbers of edges, rows being sources.
    alpha : float
        Pull of all ranks to zero. Without it, parts of the graph without an edge between them have
        zero mean each.

    Examples
    --------
    >>> chain = scipy.sparse.csr_array(np.diag(np.ones(3), k=1))
    >>> springrank(chain).round(3)
    array([ 1.5,  0.5, -0.5, -1.5])
    """
    A = scipy.sparse.csr_array(graph, dtype=np.float64)
    out, into = (np.asarray(A.sum(axis=axis)).ravel() for axis in (1, 0))
    both = A + A.T
    degree = out + into
    diagonal = scipy.sparse.diags_array(degree + alpha)
    inverse = np.divide(1.0, degree + alpha, out=np.zeros(len(degree)), where=degree + alpha > 0)
    preconditioner = scipy.sparse.diags_array(inverse)
    rank, failed = cg(
        diagonal - both, out - into, M=preconditioner, rtol=TOLERANCE, maxiter=100 * len(degree)
    )
    if failed:
        raise ArithmeticError("SpringRank's equations were not solved.")
    return rank - rank.mean() if alpha == 0 else rank


def trophic_levels(graph) -> np.ndarray:
    """h of each node, so that edges lead from lower to higher levels; the lowest is 0."""
    level = -springrank(graph)
    return level - level.min()
