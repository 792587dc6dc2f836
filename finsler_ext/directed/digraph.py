"""Sparse digraphs as they are: every stored edge is kept, however many a node has.

A list of nearest neighbours has the same number of entries in every row, and what is not listed is
farther than what is. A digraph is something else: its degrees mean something, many of its lengths
are equal, and an edge without its reverse is a one-way street. Its memberships are

    p_ij = exp(−max(0, d_ij − ρ_i)/σ_i) on every edge,   Σ_j p_ij = 1 + (degree_i − 1)/2,

so that rows keep their degrees: the nearest counts 1, the others one half on average (all of them
1 where lengths are equal). Strengths and transition probabilities stay what they are:
p_ij = s_ij / max_j s_ij, which is σ = 1 for lengths of −log s. The way back along a one-way edge is
taken as `WAY_BACK` times as long; in a graph without lengths it cannot be shorter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from finsler_ext.directed.data import check_square
from finsler_ext.neighbors.search import NewNeighbors
from finsler_ext.scales import umap_scales
from finsler_ext.schema import NONE, array, saved, whole

# Length of the way back along a one-way edge. There is no edge back, so in a graph without lengths
# it takes two steps at least.
WAY_BACK = 2.0
# With more of the pairs known than this, those that are not are unknown distances.
MOST_PAIRS = 0.5
# With fewer of the edges than this known both ways, the one-way edges say what lies high.
MOSTLY_TWO_WAY = 0.5


@saved(
    n_points=whole("[1, inf)", size="n"),
    source=array("i4 i8", "e", "[0, n)"),
    target=array("i4 i8", "e", "[0, n)"),
    length=array("f4 f8", "e", "[0, inf)"),
    strength=NONE | array("f4 f8", "e", "[0, inf)"),
)
class Edges(NamedTuple):
    """All edges, sorted by source, then by length."""

    source: np.ndarray
    target: np.ndarray
    length: np.ndarray
    n_points: int
    strength: np.ndarray | None = None
    """As in the data, where it has strengths; lengths are then −log of their shares."""


def is_digraph(D) -> bool:
    """Whether directed data is a digraph, rather than distances or a list of the nearest.

    Less than half of the pairs are known, rows know different numbers of them, and something
    depends on the direction; or all lengths are equal.
    """
    check_square(D.shape)
    if not scipy.sparse.issparse(D):
        known = np.isfinite(D) & ~np.eye(len(D), dtype=np.bool_)
        if np.count_nonzero(known) >= MOST_PAIRS * len(D) * (len(D) - 1):
            # sorting the edges of a full matrix would take long
            return bool(np.ptp(D[known]) == 0) if known.any() else False
    edges = digraph_edges(D)
    n, n_edges = edges.n_points, edges.source.size
    if n_edges == 0:
        return False
    if edges.length.min() == edges.length.max():
        return True
    degree = np.bincount(edges.source, minlength=n)
    if n_edges >= MOST_PAIRS * n * (n - 1) or degree.min() == degree.max():
        return False
    there = _matrix(edges)
    return abs(there - there.T).max() > 0


def digraph_edges(D, strengths=None) -> Edges:
    """The finite entries of a matrix (the stored ones, if sparse), the diagonal left out."""
    check_square(D.shape)  # compiled code would write beyond its arrays
    stored = _stored(D)
    source, target = (index.astype(np.int64) for index in stored.coords)
    length = stored.data.astype(np.float64)
    proper = np.flatnonzero((source != target) & np.isfinite(length))
    proper = proper[np.lexsort((target[proper], length[proper], source[proper]))]
    source, target, length = source[proper], target[proper], length[proper]
    strength = None if strengths is None else np.asarray(strengths[source, target]).ravel()
    return Edges(source, target, length, D.shape[0], strength)


def with_ways_back(D) -> scipy.sparse.csr_array:
    """D, and for every edge without its reverse a way back that is `WAY_BACK` times as long.

    Examples
    --------
    >>> with_ways_back(scipy.sparse.csr_array(np.array([[0.0, 3.0], [0.0, 0.0]]))).toarray()
    array([[0., 3.],
           [6., 0.]])
    """
    edges = digraph_edges(D)
    stored = _matrix(edges._replace(length=np.ones(edges.source.size)))
    return _with_back(edges, np.asarray(stored[edges.target, edges.source]).ravel() == 0)


def both_ways(D) -> scipy.sparse.csr_array:
    """D, and ways back along the edges that lead from one strongly connected part to another.

    All that was connected is then connected both ways, at `WAY_BACK` times the length against an
    edge that has no way back at all.
    """
    edges = digraph_edges(D)
    _, part = connected_components(_matrix(edges), connection="strong")
    return _with_back(edges, part[edges.source] != part[edges.target])


def _with_back(edges: Edges, some: np.ndarray) -> scipy.sparse.csr_array:
    """All edges, and ways back along some of them."""
    source = np.concatenate([edges.source, edges.target[some]])
    target = np.concatenate([edges.target, edges.source[some]])
    length = np.concatenate([edges.length, WAY_BACK * edges.length[some]])
    return _matrix(Edges(source, target, length, edges.n_points))


def digraph_scales(
    edges: Edges, *, local_connectivity: float = 1.0, n_threads: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(σ, ρ) of every source, and the mean length of its edges (nan where it has none)."""
    n = edges.n_points
    degree = np.bincount(edges.source, minlength=n)
    first = np.concatenate([[0], np.cumsum(degree)])
    overall = float(edges.length.mean()) if edges.length.size else 0.0
    sigma = np.full(n, overall if overall > 0 else 1.0, dtype=np.float32)
    # Nodes without an edge of their own: what is no longer than usual counts fully.
    rho = np.full(n, overall, dtype=np.float32)
    mean = np.full(n, np.nan)
    if edges.strength is not None:
        some = np.flatnonzero(degree)
        rho[some], sigma[:] = edges.length[first[some]], 1.0
        mean[some] = (np.bincount(edges.source, edges.length, n) / np.maximum(degree, 1))[some]
        return sigma, rho, mean
    for size in np.unique(degree[degree > 0]):
        rows = np.flatnonzero(degree == size)
        lengths = edges.length[first[rows][:, None] + np.arange(size)]
        mean[rows] = lengths.mean(axis=1)
        sigma[rows], rho[rows] = umap_scales(
            np.hstack([np.zeros((rows.size, 1)), lengths]),
            local_connectivity=local_connectivity,
            row_sum=1.0 + (size - 1.0) / 2.0,
            overall=overall,
            n_threads=n_threads,
        )
    return sigma, rho, mean


def edge_strengths(edges: Edges) -> scipy.sparse.csr_array:
    """The strengths of edges as given; of a digraph of lengths its memberships p_ij."""
    if edges.strength is not None:
        return _matrix(edges._replace(length=edges.strength))
    sigma, rho, _ = digraph_scales(edges)
    excess = np.maximum(edges.length - rho[edges.source], 0.0)
    return _matrix(edges._replace(length=np.exp(-excess / sigma[edges.source])))


def compares_lengths(edges: Edges) -> bool:
    """Whether what lies high follows from the lengths there and back, and not from the edges.

    Lengths differ, and most edges have a way back, as streets have: D_ij − D_ji then says which
    end is costly to reach. Memberships of i and j, each by its own scale, say it only roughly.
    """
    if edges.strength is not None or edges.source.size == 0 or np.ptp(edges.length) == 0:
        return False
    n = np.int64(edges.n_points)
    back = np.isin(edges.source * n + edges.target, edges.target * n + edges.source)
    return bool(np.count_nonzero(back) >= MOSTLY_TWO_WAY * back.size)


def strength_skews(strengths) -> scipy.sparse.csr_array:
    """C with C_ij − C_ji = (s_ji − s_ij)/(s_ij + s_ji), what the potential of strengths explains.

    All pairs with a strength in either direction are stored both ways.

    Examples
    --------
    >>> strength_skews(scipy.sparse.csr_array(np.array([[0.0, 3.0], [1.0, 0.0]]))).toarray()
    array([[0.  , 0.25],
           [0.75, 0.  ]])
    """
    there = scipy.sparse.csr_array(strengths, dtype=np.float64)
    both = scipy.sparse.coo_array(there + there.T)
    source, target = both.coords
    proper = (source != target) & (both.data > 0)
    source, target, total = source[proper], target[proper], both.data[proper]
    share = np.asarray(there[target, source]).ravel() / total
    return scipy.sparse.csr_array((share, (source, target)), shape=there.shape)


def new_edges(outgoing, incoming) -> NewNeighbors:
    """All edges of new points, from matrices of shape (n_new, n): out of them, and into them."""
    out, into = (_stored(D) for D in (outgoing, incoming))
    n_new, n = out.shape
    row = np.concatenate([out.coords[0], into.coords[0]]).astype(np.int64)
    column = np.concatenate([out.coords[1], into.coords[1]]).astype(np.int64)
    pair, where = np.unique(row * n + column, return_inverse=True)
    there, back = np.full(pair.size, np.inf), np.full(pair.size, np.inf)
    there[where[: out.nnz]], back[where[out.nnz :]] = out.data, into.data
    row, column = np.divmod(pair, n)
    order = np.lexsort((column, there, row))
    row, column, there, back = row[order], column[order], there[order], back[order]
    count = np.bincount(row, minlength=n_new)
    place = np.arange(row.size) - (np.cumsum(count) - count)[row]
    shape = (n_new, max(1, int(count.max(initial=0))))
    found = NewNeighbors(
        np.full(shape, -1, dtype=np.int64), np.full(shape, np.inf), np.full(shape, np.inf)
    )
    known = np.isfinite(there) | np.isfinite(back)
    row, place = row[known], place[known]
    found.indices[row, place] = column[known]
    found.outgoing[row, place], found.incoming[row, place] = there[known], back[known]
    return found


def new_scales(
    found: NewNeighbors,
    *,
    strengths: bool = False,
    local_connectivity: float = 1.0,
    n_threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """(σ, ρ) of new points, by the edges out of them; ``strengths`` as those of the digraph."""
    row, place = np.nonzero(np.isfinite(found.outgoing))
    length = found.outgoing[row, place]
    strength = np.exp(-length) if strengths else None
    edges = Edges(row, found.indices[row, place], length, len(found.indices), strength)
    return digraph_scales(edges, local_connectivity=local_connectivity, n_threads=n_threads)[:2]


def _stored(D) -> scipy.sparse.coo_array:
    """What a sparse matrix stores, or the finite entries of a dense one."""
    if scipy.sparse.issparse(D):
        return scipy.sparse.coo_array(D)
    known = np.nonzero(np.isfinite(D))
    return scipy.sparse.coo_array((np.asarray(D)[known], known), shape=D.shape)


def _matrix(edges: Edges) -> scipy.sparse.csr_array:
    """CSR that keeps stored zeros."""
    shape = (edges.n_points, edges.n_points)
    order = np.lexsort((edges.target, edges.source))
    count = np.bincount(edges.source, minlength=edges.n_points)
    indptr = np.concatenate([[0], np.cumsum(count)])
    return scipy.sparse.csr_array((edges.length[order], edges.target[order], indptr), shape=shape)
