"""Does the height mean anything? Label-free scores of a Finsler embedding.

`skew_fidelity` compares the asymmetry of the data with that of the embedding, see
`finsler_ext.asymmetry`; `density_height` and `neighborhood_preservation` look at the height and at
neighbours.
"""

from __future__ import annotations

import numpy as np

from finsler_ext.asymmetry import (
    Asymmetry,
    SkewFidelity,
    density_height,
    is_directed,
    skew_potential,
)
from finsler_ext.directed.digraph import (
    compares_lengths,
    digraph_edges,
    edge_strengths,
    is_digraph,
    with_ways_back,
)
from finsler_ext.directed.potential import Potential, graph_potential
from finsler_ext.directed.read import check_range, read_directed
from finsler_ext.geometry import RANDERS, Space, find_space
from finsler_ext.schema import RIDGE
from finsler_ext.validation import check_diagonal

__all__ = [
    "SkewFidelity",
    "asymmetry_between",
    "density_height",
    "explained_share",
    "is_directed",
    "neighborhood_preservation",
    "potential",
    "skew_fidelity",
    "skew_pairs",
    "skew_potential",
]


def skew_fidelity(
    embedding,
    *,
    graph=None,
    local_scale=None,
    distances=None,
    omega_norm: float | None = None,
    space: Space | str = RANDERS,
) -> SkewFidelity:
    """Compare the skew of the data with the skew of an embedding, pair by pair.

    The skew of a pair i, j is what changes its sign with the direction: a_ij of the data, below,
    and F_ij − F_ji of the embedding.

    Parameters
    ----------
    embedding : array of shape (n, m)
        The last column is the height. Rows with nan are left out.
    graph : sparse matrix of shape (n, n), optional
        Directed edges, for data given by ``local_scale``: a_ij = log s_j − log s_i.
    local_scale : array of shape (n,), optional
    distances : array or sparse matrix of shape (n, n), graph, frame or edge list, optional
        Directed distances, rows being sources: a_ij = D_ij − D_ji over all pairs that have
        both. Edges of a digraph that have no way back count as in a fit.
    omega_norm : float, optional
        With ``distances``: compare with F_ij − F_ji itself (β = 1) instead of with the
        best-fitting multiple of the height difference.
    space : Space or str
        Whose F it is.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> ring = scipy.sparse.csr_array(np.roll(np.eye(4), 1, axis=1))
    >>> scale = np.array([1.0, 2.0, 3.0, 4.0])
    >>> skew_fidelity(np.log(scale)[:, None], graph=ring, local_scale=scale).sign
    1.0
    """
    asymmetry = asymmetry_between(graph, local_scale, distances, omega_norm)
    return asymmetry.fidelity(embedding, omega_norm or 0.0, find_space(space))


def explained_share(embedding, distances, omega_norm: float, space: Space = RANDERS) -> float:
    """``explained`` of `skew_fidelity` alone, without the ranks of all pairs, which take long."""
    given = {"distances": distances, "omega_norm": omega_norm, "space": space}
    data, shown = skew_pairs(embedding, **given)
    if not data.any() or not shown.any():
        return float("nan")
    rest = data - shown
    return float(1.0 - (rest @ rest) / (data @ data))


def skew_pairs(
    embedding,
    *,
    graph=None,
    local_scale=None,
    distances=None,
    omega_norm: float | None = None,
    space: Space | str = RANDERS,
) -> tuple[np.ndarray, np.ndarray]:
    """The skew of the data and the skew of the embedding, pair by pair.

    Parameters are those of `skew_fidelity`, which compares the two.
    """
    asymmetry = asymmetry_between(graph, local_scale, distances, omega_norm)
    return asymmetry.compared(embedding, omega_norm or 0.0, find_space(space))


def asymmetry_between(graph, local_scale, distances, omega_norm=None) -> Asymmetry:
    """The asymmetry that the arguments of `skew_fidelity` describe."""
    if distances is not None:
        D = read_directed(distances).distances
        if is_digraph(D):
            D = with_ways_back(D)
        return Asymmetry.of_distances(D, absolute=omega_norm is not None)
    if graph is not None and local_scale is not None:
        return Asymmetry.of_scale(graph, local_scale)
    raise ValueError("The skew needs either distances, or graph and local_scale.")


def potential(data, ridge: float | str = 0.0) -> Potential:
    """The order of the nodes of directed data: ``potential_`` of a fit, without the fit.

    Parameters
    ----------
    data : what `finsler_ext.read_directed` reads
        A digraph, strengths or transitions: edges lead downhill. Distances, and graphs most of
        whose edges have a length there and another back: what is costly to reach lies high.
    ridge : float or "auto", default=0.0
        For a digraph: shrinks all values towards zero; a multiple of the mean degree. 0 gives the
        best order of distant nodes. "auto" is the ridge that best tells the direction of edges
        held out, among 0, 0.01, 0.03, 0.1, 0.3, 1, 3 and inf (what leaves a node less what
        enters it).

    Examples
    --------
    >>> potential([("spring", "river"), ("river", "lake"), ("lake", "sea")]).values
    array([-0.5,  0.5, -1.5,  1.5])
    """
    RIDGE.check("ridge", ridge)
    read = read_directed(data)
    D = read.distances
    check_range(D)
    check_diagonal(D)
    if read.strengths is None and not is_digraph(D):
        if ridge != 0:
            raise ValueError("ridge is for digraphs; the data has distances between most pairs.")
        found = Asymmetry.of_distances(D).potential()
        assert found is not None
        return found
    edges = digraph_edges(D, read.strengths)
    if compares_lengths(edges):
        found = Asymmetry.of_distances(with_ways_back(D)).potential(ridge)
        assert found is not None
        return found
    return graph_potential(edge_strengths(edges), ridge)


def neighborhood_preservation(neighbors, embedding) -> float:
    """Mean share of each point's data neighbours among as many embedding neighbours.

    Parameters
    ----------
    neighbors : array of shape (n, k)
        Indices of the data neighbours, the point itself left out; −1 where missing.
    embedding : array of shape (n, m)
    """
    from sklearn.neighbors import NearestNeighbors

    neighbors = np.asarray(neighbors)
    known = np.isfinite(embedding).all(axis=1)
    rows = np.flatnonzero(known)
    k = min(neighbors.shape[1], rows.size - 1)
    found = NearestNeighbors(n_neighbors=k).fit(np.asarray(embedding)[rows])
    shown = rows[found.kneighbors(return_distance=False)]
    wanted = neighbors[rows, :k]
    hits = sum((wanted == shown[:, [c]]).any(axis=1).astype(np.float64) for c in range(k))
    present = (wanted >= 0).sum(axis=1)
    return float(np.mean(hits[present > 0] / present[present > 0]))
