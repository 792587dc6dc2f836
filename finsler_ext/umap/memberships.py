"""UMAP memberships on directed edges, and two symmetric controls.

    directed     p_ij = exp(−max(0, d_ij − ρ_i)/σ_i) on i → j; rows sum to log2(k)
    harmonic     exp(−max(0, d_ij − min(ρ_i, ρ_j))/σ_ij), 1/σ_ij = (1/σ_i + 1/σ_j)/2, on the
                 union of both directions: symmetric without averaging afterwards
    fuzzy_union  p_ij + p_ji − p_ij p_ji: what umap-learn does

All are CSR with rows as sources.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from finsler_ext.directed.digraph import Edges
from finsler_ext.neighbors.search import DirectedNeighbors
from finsler_ext.neighbors.transform import NewNeighbors

AFFINITIES = ("directed", "harmonic", "fuzzy_union")


def directed_memberships(
    neighbors: DirectedNeighbors | Edges, sigma, rho, *, both_ways: bool = False
) -> scipy.sparse.csr_array:
    """p_ij = exp(−max(0, d_ij − ρ_i)/σ_i) on the neighbour edges i → j.

    Which edges there are depends on density: a sparse point counts dense ones among its
    neighbours and not the reverse. ``both_ways`` adds the reverse of every edge, at the new
    source's own scale, so that only the scales are left to differ; distances must then be
    symmetric.
    """
    source, target, distance = _edges(neighbors)
    if both_ways:
        low, high, distance = _undirected(source, target, distance)
        source, target = np.concatenate([low, high]), np.concatenate([high, low])
        distance = np.concatenate([distance, distance])
    strength = _membership(distance, rho[source], sigma[source])
    return _graph(source, target, strength, len(sigma))


def harmonic_memberships(
    neighbors: DirectedNeighbors | Edges, sigma, rho
) -> scipy.sparse.csr_array:
    """The Riemannian remedy: one scale per edge, the harmonic mean of its ends' scales.

    Where both directions are neighbour edges with different distances (directed input), the
    shorter one counts.
    """
    low, high, distance = _undirected(*_edges(neighbors))
    scale = 2.0 / (1.0 / sigma[low] + 1.0 / sigma[high])
    strength = _membership(distance, np.minimum(rho[low], rho[high]), scale)
    return _graph(
        np.concatenate([low, high]),
        np.concatenate([high, low]),
        np.concatenate([strength, strength]),
        len(sigma),
    )


def fuzzy_union(directed, set_op_mix_ratio: float = 1.0) -> scipy.sparse.csr_array:
    """umap-learn's symmetric graph: a mix of fuzzy union and intersection of p and pᵀ."""
    back = scipy.sparse.csr_array(directed.T)
    both = directed.multiply(back)
    union = directed + back - both
    mixed = scipy.sparse.csr_array(set_op_mix_ratio * union + (1.0 - set_op_mix_ratio) * both)
    mixed.eliminate_zeros()
    return mixed


def new_memberships(
    neighbors: NewNeighbors,
    new_scales: tuple[np.ndarray, np.ndarray],
    scales: tuple[np.ndarray, np.ndarray],
    affinity: str = "directed",
) -> tuple[np.ndarray, np.ndarray]:
    """Memberships from new points to their training neighbours, and from these to them.

    Parameters
    ----------
    neighbors : NewNeighbors of shape (n_new, k)
    new_scales, scales : pairs (σ, ρ)
        Of the new and of the training points.
    affinity : one of AFFINITIES
        "fuzzy_union" is the plain union here: an intersection could leave a new point without
        any edge.

    Returns
    -------
    outgoing, incoming : arrays of shape (n_new, k); 0 where missing
    """
    missing = neighbors.indices < 0
    other = np.where(missing, 0, neighbors.indices)
    (sigma, rho), (new_sigma, new_rho) = scales, (s[:, None] for s in new_scales)
    if affinity == "harmonic":
        scale = 2.0 / (1.0 / new_sigma + 1.0 / sigma[other])
        nearest = np.minimum(new_rho, rho[other])
        strength = _membership(np.minimum(neighbors.outgoing, neighbors.incoming), nearest, scale)
        out = into = np.where(missing, np.float32(0.0), strength)
        return out, into
    out = np.where(missing, np.float32(0.0), _membership(neighbors.outgoing, new_rho, new_sigma))
    into = _membership(neighbors.incoming, rho[other], sigma[other])
    into = np.where(missing, np.float32(0.0), into)
    if affinity == "fuzzy_union":
        out = into = out + into - out * into
    return out.astype(np.float32), into.astype(np.float32)


def _edges(neighbors: DirectedNeighbors | Edges):
    if isinstance(neighbors, Edges):
        return neighbors.source, neighbors.target, neighbors.length
    indices = neighbors.indices[:, 1:]
    row, column = np.nonzero(indices >= 0)
    return row, indices[row, column], neighbors.distances[:, 1:][row, column]


def _undirected(source, target, distance):
    """Every pair once, with the shorter of its distances."""
    low, high = np.minimum(source, target), np.maximum(source, target)
    order = np.lexsort((distance, high, low))
    low, high, distance = low[order], high[order], distance[order]
    first = np.ones(low.size, dtype=bool)
    first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    return low[first], high[first], distance[first]


def _membership(distance, rho, sigma):
    return np.exp(-np.maximum(0.0, distance - rho) / sigma).astype(np.float32)


def _graph(source, target, strength, n) -> scipy.sparse.csr_array:
    graph = scipy.sparse.coo_array((strength, (source, target)), shape=(n, n)).tocsr()
    graph.eliminate_zeros()
    return graph
