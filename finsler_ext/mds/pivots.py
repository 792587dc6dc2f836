"""FinslerMDS of large graphs: distances to and from some pivots, and along the edges.

Shortest paths between all N² pairs of a large graph neither fit into memory nor are needed. Some
pivots far apart are chosen, and every node knows its distance to and from each of them. The pivots
are laid out by the stress over all their pairs (which finds drift, scaling and columns), every
other node is placed against them, and all of them descend the stress over the pairs known,

    L(Y) = Σ_{(i, j) ∈ E} w_ij [(F_ij − D_ij)² + (F_ji − D_ji)²],      w symmetric.

In a Randers space it splits into a part of the distances and a part of the heights, as the stress
over all pairs does (`finsler_ext.mds.stress`), with V the Laplacian of the sparse weights. In other
spaces both directions of a pair are summed, for gradient descent. The step of the majorisation
solves V x = b by conjugate gradients, all columns in one pass; each of their iterations lowers the
quadratic, so a step that is cut short still lowers the stress.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit
from scipy.sparse.csgraph import connected_components, dijkstra

from finsler_ext._threads import RowPool
from finsler_ext.directed.digraph import both_ways, digraph_edges
from finsler_ext.directed.laplacian import conjugate_gradients
from finsler_ext.geometry import RANDERS, Space
from finsler_ext.mds.distances import DirectedInput
from finsler_ext.mds.stress import NOISE_FLOOR, SHORTEST_STEP, TINY, NoiseLevels, Slope, TwoParts
from finsler_ext.neighbors.geodesics import ZERO_LENGTH
from finsler_ext.schema import array, saved
from finsler_ext.validation import check_diagonal

# Graphs of more nodes are embedded by pivots.
ALL_PAIRS = 5000
# Streets of 2,500 nodes: 1.03 times the stress of a fit to all pairs, 1.05 with half as many.
N_PIVOTS = 100
# Share of all weight that pairs with an edge both ways have.
LOCAL_SHARE = 0.1
# A step that is cut short still lowers the stress. The level of the skew part enters the gradient
# share, and is exact to 1e-6 of that of all pairs (`tests/mds/test_pivots.py`).
STEP_TOLERANCE, STEP_ITERATIONS = 1e-2, 12
LEVEL_TOLERANCE, LEVEL_ITERATIONS = 1e-8, 500


@saved(
    outgoing=array("f8", "n p", "[0, inf]", nan=True),
    incoming=array("f8", "n p", "[0, inf]", nan=True),
    nodes=array("i8", "p", "[0, n)"),
)
class Pivots(NamedTuple):
    """Pivots of a fitted graph, and the distances of its nodes to and from them."""

    nodes: np.ndarray
    outgoing: np.ndarray
    incoming: np.ndarray


class PivotInput:
    """The largest connected part of a graph, pivots, and distances between these and its nodes.

    n_nodes, rows : number of nodes of the whole graph, and which of them are in the part
    pivots : array of shape (k,)
    outgoing, incoming : arrays of shape (n, k)
        Distances from the nodes to the pivots, and from the pivots to the nodes.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, graph, random_state, n_pivots: int = N_PIVOTS):
        check_diagonal(graph)
        edges = digraph_edges(graph)
        positive = edges.length[edges.length > 0]
        if positive.size == 0:
            raise ValueError("All dissimilarities are 0: there is nothing to embed.")
        self.n_nodes = graph.shape[0]
        part = connected_components(graph, connection="weak")[1]
        self.rows = np.flatnonzero(part == np.bincount(part).argmax())
        if len(self.rows) < self.n_nodes:
            graph = graph[self.rows][:, self.rows]
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
            nearest = np.minimum(nearest, (self.incoming[:, c] + self.outgoing[:, c]) / 2)
            pivot = int(nearest.argmax())

    def remembered(self) -> Pivots:
        """What places new nodes."""
        outgoing, incoming = (self.fill(value) for value in (self.outgoing, self.incoming))
        return Pivots(self.rows[self.pivots], outgoing, incoming)

    def fill(self, values: np.ndarray) -> np.ndarray:
        """Rows for all nodes, nan outside the part."""
        filled = np.full((self.n_nodes, values.shape[1]), np.nan)
        filled[self.rows] = values
        return filled

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
        near = self._local(place, float(weight.sum()))
        return Pairs(*(np.concatenate(both) for both in zip(far, near, strict=True)))

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
        """D of the pairs with a pivot, as a sparse matrix over all nodes."""
        n, k = self.outgoing.shape
        node, column = np.divmod(np.arange(n * k), k)
        pivot = self.pivots[column]
        fresh = node != pivot
        also = fresh & ~np.isin(node, self.pivots)  # pivots have the row of the other one
        data = np.concatenate([self.outgoing.ravel()[fresh], self.incoming.ravel()[also]])
        source = np.concatenate([node[fresh], pivot[also]])
        target = np.concatenate([pivot[fresh], node[also]])
        where, shape = (self.rows[source], self.rows[target]), (self.n_nodes, self.n_nodes)
        return scipy.sparse.csr_array(scipy.sparse.coo_array((data, where), shape))


class Pairs(NamedTuple):
    """Unordered pairs, each once: D_ij there, D_ji back, and a weight."""

    low: np.ndarray
    high: np.ndarray
    there: np.ndarray
    back: np.ndarray
    weight: np.ndarray


class SparseStress(TwoParts):
    """Directed dissimilarities of some pairs, ready for passes over them."""

    dtype = np.dtype(np.float64)

    def __init__(
        self,
        pairs: Pairs,
        n_points: int,
        n_threads: int = 1,
        space: Space = RANDERS,
        skew_weight: float | None = 1.0,
    ):
        low, high, there, back, weight = pairs
        self.n_points, self.n_threads, self.space = n_points, n_threads, space
        total = float(weight @ (there**2 + back**2))
        self.total_weight = 2.0 * float(weight.sum())
        unit = 2.0 ** round(0.5 * np.log2(total / self.total_weight)) if total > 0 else 1.0
        self.unit, self.total = unit, total / unit**2
        mean, half = (there + back) / (2 * unit), (there - back) / (2 * unit)
        self.indptr, self.indices, order = _both_ways(low, high, n_points)
        self.mean, self.half, self.weight = (
            np.concatenate([value, sign * value])[order]
            for value, sign in ((mean, 1), (half, -1), (weight, 1))
        )
        self.degree = np.bincount(low, weight, n_points) + np.bincount(high, weight, n_points)
        out = np.bincount(low, weight * half, n_points) - np.bincount(high, weight * half, n_points)
        level = self._solve(-out[None, :], LEVEL_TOLERANCE, LEVEL_ITERATIONS)[0]
        self.level = level - level.mean()
        self.skew = 2.0 * float(weight @ half**2)
        rest = half - self.level[high] + self.level[low]
        self.cyclic = 2.0 * float(weight @ rest**2)
        if skew_weight is None and not self.is_skew:
            skew_weight = 1.0
        self.noise = NoiseLevels(skew_weight, len(low), len(low), NOISE_FLOOR * self.skew)
        # a constant that was subtracted may leave negative distances, which majorise nothing
        self.shortest_step = SHORTEST_STEP if mean.min(initial=0.0) < 0 else 1.0

    def slope(self, position: np.ndarray, omega: float, pool: RowPool) -> Slope:
        """Stress and −∇L/4 at ``position``, of shape (m, n)."""
        place = np.ascontiguousarray(position.T, dtype=np.float64)
        pull = np.empty_like(place)
        if self.space.majoriser is None:
            stress = np.empty(self.n_points)
            lengths = self.indptr, self.indices, self.mean, self.half, self.weight
            kernel = _pair_kernel(self.space.forward)
            pool.run(kernel, place, float(omega), *lengths, pull, stress)
            total = float(stress.sum())
            return Slope(total, np.ascontiguousarray(pull.T), plain=total)
        error = omega * position[-1] - self.level
        error -= error.mean()
        sums = np.empty((self.n_points, 2))
        pool.run(_pull, place, error, self.indptr, self.indices, self.mean, self.weight, pull, sums)
        misfit, tilt = sums.T
        skew = 2.0 * float(error @ tilt) + self.cyclic
        pull = np.ascontiguousarray(pull.T)
        return self.noise.slope(float(misfit.sum()), skew, pull, -omega * tilt)

    def step(self, here: Slope, omega: float) -> np.ndarray:
        """The step Y⁺ − Y of the majorisation, of shape (m, n)."""
        if self.space.majoriser is None:
            raise ValueError("A step needs a space with a majoriser.")
        move = self._solve(here.downhill, STEP_TOLERANCE, STEP_ITERATIONS)
        move[-1] /= 1.0 + here.skew_weight * (self.space.majoriser.height(omega) - 1.0)
        return move

    def _solve(self, b, tolerance: float, most: int) -> np.ndarray:
        """V x = b for all rows of b at once."""
        with RowPool(self.n_points, self.n_threads, heavy=True) as pool:

            def product(x):
                out = np.empty_like(x)
                pairs = self.degree, self.indptr, self.indices, self.weight
                pool.run(_product, x, *pairs, out)
                return out

            centred = np.ascontiguousarray((b - b.mean(axis=1, keepdims=True)).T)
            x = conjugate_gradients(product, self.degree, centred, tolerance, most)
        return np.ascontiguousarray((x - x.mean(axis=0)).T)


def _both_ways(low, high, n):
    """CSR with every pair in both rows: indptr, indices, and the number of the pair."""
    source, target = np.concatenate([low, high]), np.concatenate([high, low])
    number = np.arange(1, source.size + 1, dtype=np.int64)
    where = scipy.sparse.csr_array(scipy.sparse.coo_array((number, (source, target)), shape=(n, n)))
    return where.indptr.astype(np.int64), where.indices.astype(np.int32), where.data - 1


@njit(nogil=True, cache=True, error_model="numpy")
def _pull(start, stop, place, error, indptr, indices, mean, weight, pull, sums):
    """pull_i = Σ_j w (S/d − 1)(y_i − y_j); sums = Σ_j w (d − S)², Σ_j w (e_i − e_j)."""
    m = place.shape[1]
    for i in range(start, stop):
        misfit, lift = 0.0, 0.0
        for c in range(m):
            pull[i, c] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            square = 0.0
            for c in range(m):
                square += (place[i, c] - place[j, c]) ** 2
            length = np.sqrt(square)
            lacking = mean[e] - length
            misfit += weight[e] * lacking * lacking
            lift += weight[e] * (error[i] - error[j])
            ratio = weight[e] * lacking / (length + TINY)
            for c in range(m):
                pull[i, c] += ratio * (place[i, c] - place[j, c])
        sums[i, 0], sums[i, 1] = misfit, lift


@cache
def _pair_kernel(forward):
    """Stress and slope of the rows, in one space."""

    @njit(nogil=True, cache=True, error_model="numpy")
    def sum_pairs(start, stop, place, omega, indptr, indices, mean, half, weight, pull, stress):
        """pull_i = −∇L/4, and the stress of the out-edges of i."""
        m = place.shape[1]
        for i in range(start, stop):
            misfit, lift = 0.0, 0.0
            pull[i] = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                square = 0.0
                for c in range(m):
                    square += (place[i, c] - place[j, c]) ** 2
                length, rise = np.sqrt(square), place[j, m - 1] - place[i, m - 1]
                distance, along_out, up_out = forward(length, rise, omega)
                out = distance - (mean[e] + half[e])
                distance, along_in, up_in = forward(length, -rise, omega)
                into = distance - (mean[e] - half[e])
                misfit += weight[e] * out * out
                lift += weight[e] * (out * up_out - into * up_in)
                ratio = 0.5 * weight[e] * (out * along_out + into * along_in) / (length + TINY)
                for c in range(m):
                    pull[i, c] -= ratio * (place[i, c] - place[j, c])
            pull[i, m - 1] += 0.5 * omega * lift
            stress[i] = misfit

    return sum_pairs


@njit(nogil=True, cache=True)
def _product(start, stop, x, degree, indptr, indices, weight, out):
    m = x.shape[1]
    for i in range(start, stop):
        for c in range(m):
            out[i, c] = degree[i] * x[i, c]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            for c in range(m):
                out[i, c] -= weight[e] * x[j, c]
