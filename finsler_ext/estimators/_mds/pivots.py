"""FinslerMDS of large graphs: distances to and from some pivots, and along the edges.

Shortest paths between all N² pairs of a large graph neither fit into memory nor are needed. Some
pivots far apart are chosen, and every node knows its distance to and from each of them. The pivots
are laid out by the stress over all their pairs (which finds drift, scaling and columns), every
other node is placed against them, and all of them descend the stress over the pairs known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import dijkstra

from finsler_ext.construct.digraph import both_ways, digraph_edges
from finsler_ext.construct.geodesics import ZERO_LENGTH
from finsler_ext.estimators._mds.input import DirectedInput
from finsler_ext.estimators._mds.problem import run_at
from finsler_ext.layout.stress.placement import place_points
from finsler_ext.layout.stress.sparse import Pairs, SparseStress

__all__ = ["ALL_PAIRS", "PivotInput", "Pivots", "refined", "through_edges"]

# Graphs of more nodes are embedded by pivots.
ALL_PAIRS = 5000
# Streets of 2,500 nodes, stress over all pairs relative to that of a fit to all pairs: 1.05 with 50
# pivots, 1.03 with 100, 1.02 with 200.
N_PIVOTS = 100
# Share of all weight that pairs with an edge both ways have.
LOCAL_SHARE = 0.1


class Pivots(NamedTuple):
    """Pivots of a fitted graph, and the distances of its nodes to and from them."""

    nodes: np.ndarray
    outgoing: np.ndarray
    incoming: np.ndarray


class PivotInput:
    """A large graph, its pivots, and the distances between these and all nodes.

    pivots : array of shape (k,)
    outgoing, incoming : arrays of shape (n, k)
        Distances from the nodes to the pivots, and from the pivots to the nodes.
    """

    def __init__(self, graph, random_state, n_pivots: int = N_PIVOTS):
        edges = digraph_edges(graph)
        if edges.length.size and edges.length.min() < 0:
            raise ValueError("Negative values in data: dissimilarities must be ≥ 0.")
        positive = edges.length[edges.length > 0]
        if positive.size == 0:
            raise ValueError("All dissimilarities are 0: there is nothing to embed.")
        self.graph = both_ways(graph)
        self.graph.data = np.maximum(self.graph.data, ZERO_LENGTH * np.median(positive))
        self.n_points = self.graph.shape[0]
        self._find_pivots(min(n_pivots, self.n_points), random_state)

    def _find_pivots(self, k: int, random_state) -> None:
        """Each pivot is the node farthest from those before it."""
        n = self.n_points
        back = scipy.sparse.csr_array(self.graph.T)
        self.outgoing, self.incoming = np.empty((n, k)), np.empty((n, k))
        self.pivots = np.empty(k, dtype=np.int64)
        nearest = np.full(n, np.inf)
        pivot = int(random_state.randint(n))
        for c in range(k):
            self.pivots[c] = pivot
            self.incoming[:, c] = dijkstra(self.graph, indices=pivot)
            self.outgoing[:, c] = dijkstra(back, indices=pivot)
            if c == 0 and not np.isfinite(self.incoming[:, 0]).all():
                raise ValueError(
                    "The known pairs fall apart into groups of points with no distance between "
                    "them in either direction. Embed them one by one."
                )
            nearest = np.minimum(nearest, (self.incoming[:, c] + self.outgoing[:, c]) / 2)
            pivot = int(nearest.argmax())

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float64)

    def remembered(self) -> Pivots:
        """What places new nodes."""
        return Pivots(self.pivots, self.outgoing, self.incoming)

    @property
    def between_pivots(self) -> DirectedInput:
        D = np.ascontiguousarray(self.outgoing[self.pivots])
        np.fill_diagonal(D, 0.0)
        return DirectedInput(D, None)

    def pairs(self) -> Pairs:
        """All pairs with a pivot, which stands for the nodes nearest to it, and two-way edges."""
        n, k = self.outgoing.shape
        nearest = ((self.outgoing + self.incoming) / 2).argmin(axis=1)
        region = np.maximum(1.0, np.bincount(nearest, minlength=k).astype(np.float64))
        node, column = np.divmod(np.arange(n * k), k)
        there, back = self.outgoing.ravel(), self.incoming.ravel()
        place = np.full(n, -1)
        place[self.pivots] = np.arange(k)
        # Two pivots are a pair twice, a pivot with itself is none.
        once = (place[node] < 0) | (place[node] < column)
        weight = np.where(
            place[node] < 0, region[column], (region[column] + region[place[node]]) / 2
        )
        node, column, weight = node[once], column[once], weight[once]
        far = Pairs(node, self.pivots[column], there[once], back[once], weight)
        return _joined(far, self._local(place, float(weight.sum())))

    def _local(self, place, total: float) -> Pairs:
        edges = digraph_edges(self.graph)
        there = scipy.sparse.csr_array(
            (edges.length, (edges.source, edges.target)), shape=self.graph.shape
        )
        back_length = np.asarray(there[edges.target, edges.source]).ravel()
        plain = (place[edges.source] < 0) & (place[edges.target] < 0)
        chosen = (edges.source < edges.target) & (back_length > 0) & plain
        count = int(chosen.sum())
        weight = LOCAL_SHARE / (1.0 - LOCAL_SHARE) * total / max(count, 1)
        return Pairs(
            edges.source[chosen],
            edges.target[chosen],
            edges.length[chosen],
            back_length[chosen],
            np.full(count, weight),
        )

    def known(self) -> scipy.sparse.csr_array:
        """D of the pairs with a pivot, as a sparse matrix of shape (n, n)."""
        n, k = self.outgoing.shape
        node, column = np.divmod(np.arange(n * k), k)
        pivot = self.pivots[column]
        fresh = node != pivot
        also = fresh & ~np.isin(node, self.pivots)  # pivots have the row of the other one
        data = np.concatenate([self.outgoing.ravel()[fresh], self.incoming.ravel()[also]])
        source = np.concatenate([node[fresh], pivot[also]])
        target = np.concatenate([pivot[fresh], node[also]])
        return scipy.sparse.csr_array(scipy.sparse.coo_array((data, (source, target)), (n, n)))


def refined(found, graph: PivotInput, settings):
    """From a StressResult of the pivots to that of all nodes."""
    scaled = found.transformation.disparities
    omega, threads = found.omega_norm, settings.n_threads
    place = place_points(
        found.embedding,
        scaled(graph.outgoing),
        scaled(graph.incoming),
        omega,
        threads,
        settings.space,
    )
    place[graph.pivots] = found.embedding
    pairs = graph.pairs()
    total = float(pairs.weight @ (pairs.there**2 + pairs.back**2))
    pairs = pairs._replace(there=scaled(pairs.there), back=scaled(pairs.back))
    problem = SparseStress(pairs, graph.n_points, threads, settings.space)
    run = run_at(problem, place, omega, settings)
    return found._replace(
        embedding=run.position,
        stress=run.stress,
        normalized_stress=run.stress / total,
        n_iter=len(run.history),
        stress_history=run.history,
        gradient_share=problem.gradient_share,
    )


def through_edges(edges, lengths: np.ndarray) -> np.ndarray:
    """Distances of new nodes to (or from) the pivots: one edge, then the shortest path known.

    ``edges`` is sparse, of shape (n_new, n); ``lengths`` of shape (n, k). nan where there is none.
    """
    edges = scipy.sparse.csr_array(edges)
    found = np.full((edges.shape[0], lengths.shape[1]), np.nan)
    for i in range(edges.shape[0]):
        row = slice(edges.indptr[i], edges.indptr[i + 1])
        if row.stop > row.start:
            found[i] = (edges.data[row, None] + lengths[edges.indices[row]]).min(axis=0)
    return found


def _joined(one: Pairs, two: Pairs) -> Pairs:
    return Pairs(*(np.concatenate(both) for both in zip(one, two, strict=True)))
