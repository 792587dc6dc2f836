"""What the asymmetry of the data is, on which pairs, and how faithfully a height shows it.

The *skew* of data is what changes sign when source and target are swapped: log s_j − log s_i on
the edges of a neighbour graph with local scales s, or D_ij − D_ji for directed distances. The skew
of an embedding is F_ij − F_ji, in a Randers space 2 ω (height_j − height_i). An `Asymmetry` is made
once in every fit; the drift choice, the scores, the warnings and the plots read it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.stats import rankdata, spearmanr

from finsler_ext._threads import row_blocks
from finsler_ext.directed.data import check_square, without_duplicates
from finsler_ext.directed.digraph import (
    MOSTLY_TWO_WAY,
    digraph_edges,
    edge_strengths,
    with_ways_back,
)
from finsler_ext.directed.laplacian import solve_laplacian
from finsler_ext.directed.potential import Potential, graph_potential, pair_potential
from finsler_ext.geometry import RANDERS, Space
from finsler_ext.scales import log_level
from finsler_ext.schema import FLAG, TEXT, array, maybe, number, one_of, part, saved, sparse
from finsler_ext.schema import NONE as ABSENT

# Where an asymmetry comes from.
DENSITY, SCALE, DISTANCES, NONE = "density", "scale", "distances", "none"
# More pairs than this are not ranked, and not taken from a dense matrix or a neighbour graph: an
# evenly spaced selection stands for them.
MAX_RANKED_PAIRS = 1_000_000
MAX_PAIRS = 4_000_000
# Entries that differ by less than this share of the largest one are equal but for rounding.
SYMMETRY_ROUNDING = 1e-6
# Distances there and back that differ by less than this share of their sum are equal: they may
# have been computed in single precision.
DIRECTED_SHARE = 1e-5
# Below this share of Σ D² the squares of the skew part are rounding, in single precision too.
NEGLIGIBLE_SKEW = 1e-12
# Rows summed at a time: another number would change the last digits of the share.
SUMMED_ROWS = 1024


@saved(
    sign=number("[0, 1]", nan=True),
    rank=number("[-1.000001, 1.000001]", nan=True),
    explained=number(nan=True),
    reason=TEXT,
)
class SkewFidelity(NamedTuple):
    """How well a height fits the asymmetry of the data it is compared with.

    Compared with the data it was made from, it says how much of that the height shows, and nothing
    about chance: noise is fitted as well (`finsler_ext.evidence`).

    sign : share of pairs whose skew has the same sign in data and embedding (0.5 is chance)
    rank : Spearman correlation of the two skews, every pair counted in both directions
    explained : 1 − Σ(a − βb)²/Σa²
    reason : why the numbers are nan; empty otherwise
    """

    sign: float
    rank: float
    explained: float
    reason: str = ""

    @classmethod
    def undefined(cls, reason: str) -> SkewFidelity:
        nan = float("nan")
        return cls(nan, nan, nan, reason)

    @property
    def defined(self) -> bool:
        return not self.reason

    def __str__(self) -> str:
        if not self.defined:
            return f"skew fidelity undefined: {self.reason}"
        return (
            f"skew fidelity, to the data the height was made from: sign {self.sign:.2f}, rank "
            f"{self.rank:.2f}, explained {self.explained:.2f}"
        )


class SkewPairs(NamedTuple):
    """Pairs of points and the skew of the data on each: positive where the target is higher."""

    source: np.ndarray
    target: np.ndarray
    skew: np.ndarray


@saved(
    kind=one_of("density", "scale", "distances", "none"),
    absolute=FLAG,
    _graph=ABSENT | sparse("f4 f8", "n n", "[0, inf)"),
    _local_scale=ABSENT | array("f4 f8", "n", "[0, inf)", nan=True),
    _distances=ABSENT
    | array("f4 f8", "n n", "[0, inf]", nan=True)
    | sparse("f4 f8", "n n", "[0, inf)"),
    _strengths=ABSENT | sparse("f4 f8", "n n", "[0, inf)"),
    _pairs=ABSENT,
    _potential=maybe(ABSENT | part("Potential", n="n")),
)
class Asymmetry:
    """The asymmetry of some data; `of_scale`, `of_distances` and `none` make one.

    Attributes
    ----------
    kind : {"density", "scale", "distances", "none"}
        From local scales that were fitted, from a scale that was given, from directed distances;
        or there is none.
    absolute : bool
        Whether F_ij − F_ji is compared with the distances as it is, rather than up to a factor.
    pairs : SkewPairs
    """

    _potential: Potential | None = None

    def __init__(
        self,
        kind: str,
        *,
        graph=None,
        local_scale=None,
        distances=None,
        strengths=None,
        absolute: bool = False,
    ):
        self.kind, self.absolute = kind, absolute
        self._graph, self._local_scale, self._distances = graph, local_scale, distances
        self._strengths = strengths
        self._pairs: SkewPairs | None = None

    @classmethod
    def of_scale(cls, graph, local_scale, *, given: bool = False) -> Asymmetry:
        """a_ij = log s_j − log s_i on the edges of a graph."""
        return cls(SCALE if given else DENSITY, graph=graph, local_scale=local_scale)

    @classmethod
    def of_distances(cls, distances, *, strengths=None, absolute: bool = False) -> Asymmetry:
        """a_ij = D_ij − D_ji over all pairs that are known both ways.

        ``strengths`` of the edges of a digraph make its potential, in place of the distances.
        """
        return cls(DISTANCES, distances=distances, strengths=strengths, absolute=absolute)

    @classmethod
    def none(cls) -> Asymmetry:
        return cls(NONE)

    @property
    def is_directed(self) -> bool:
        """Whether it comes from directed distances."""
        return self.kind == DISTANCES

    @property
    def pairs(self) -> SkewPairs:
        if self._pairs is None:
            self._pairs = self._made_pairs()
        return self._pairs

    def forget(self) -> None:
        """Free the pairs; they are made anew when asked for."""
        self._pairs = None

    def __getstate__(self):
        return {**vars(self), "_pairs": None}

    def __setstate__(self, state):
        vars(self).update(state)

    def potential(self, ridge: float | str = 0.0) -> Potential | None:
        """One number per point for heights to follow; None if there is no asymmetry.

        The potential of a digraph's strengths or of directed distances, or the log local scale. It
        is made once; a digraph's has a ridge (`graph_potential`).
        """
        if self.kind != NONE and self._potential is None:
            if self._strengths is not None:
                self._potential = graph_potential(self._strengths, ridge)
            elif self.kind == DISTANCES:
                self._potential = _distance_potential(self._distances, ridge)
            else:
                values = log_level(self._local_scale)
                self._potential = Potential(values, np.where(np.isfinite(values), 0, -1))
            self._strengths = None  # of no further use, and as large as the data
        return self._potential

    def level(self, ridge: float | str = 0.0) -> np.ndarray | None:
        """Values of the potential."""
        potential = self.potential(ridge)
        return None if potential is None else potential.values

    def gradient_share(self) -> float:
        """Of directed distances: how much of their asymmetry any height can show. Otherwise nan."""
        return gradient_share(self._distances) if self.kind == DISTANCES else float("nan")

    def compared(
        self, embedding, omega_norm: float = 0.0, space: Space = RANDERS
    ) -> tuple[np.ndarray, np.ndarray]:
        """The skew of the data and that of an embedding, pair by pair.

        The latter is F_ij − F_ji if ``absolute``, and a half of it divided by ω otherwise: the
        difference of the heights, in a Randers space. Rows with nan are left out.
        """
        source, target, data = self.pairs
        shown = space.shown_skew(np.asarray(embedding), source, target, omega_norm)
        if self.absolute:
            shown = 2.0 * omega_norm * shown
        known = np.isfinite(data) & np.isfinite(shown)
        return (data, shown) if known.all() else (data[known], shown[known])

    def fidelity(self, embedding, omega_norm: float = 0.0, space: Space = RANDERS) -> SkewFidelity:
        """How faithfully an embedding shows it."""
        data, shown = self.compared(embedding, omega_norm, space)
        if data.size == 0 and self.is_directed:
            return SkewFidelity.undefined("no pair is known both ways")
        return compare_skew(data, shown, 1.0 if self.absolute else None)

    def _made_pairs(self) -> SkewPairs:
        if self.kind == NONE:
            nobody = np.empty(0, dtype=np.int64)
            return SkewPairs(nobody, nobody, np.empty(0))
        if self.kind == DISTANCES:
            pairs = distance_skew(self._distances)
            if self.absolute or not knows_one_way(self._distances, pairs):
                return pairs
            return distance_skew(with_ways_back(self._distances))
        graph = scipy.sparse.csr_array(self._graph)
        edges = np.arange(0, graph.nnz, max(1, -(-graph.nnz // MAX_PAIRS)))
        target = graph.indices[edges]
        source = (np.searchsorted(graph.indptr, edges, side="right") - 1).astype(target.dtype)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_scale = np.log(np.asarray(self._local_scale, dtype=np.float64))
            skew = log_scale[target] - log_scale[source]
        skew[np.abs(skew) < DIRECTED_SHARE] = 0.0
        return SkewPairs(source, target, skew)


def affinity_lengths(P) -> scipy.sparse.csr_array:
    """Affinities as lengths: the larger p_ij, the shorter the way from i to j."""
    lengths = scipy.sparse.csr_array(P, copy=True)
    lengths.data = -np.log(lengths.data / lengths.data.max())
    return lengths


def skew_potential(distances) -> np.ndarray:
    """The levels s with the least Σ (s_j − s_i − (D_ij − D_ji))² over pairs known both ways.

    Points of which no pair is known both ways are nan. Groups of points without a known pair
    between them have zero mean each.

    Examples
    --------
    >>> skew_potential(np.array([[0.0, 3.0], [1.0, 0.0]]))
    array([-1.,  1.])
    """
    return _distance_potential(distances).values


def _distance_potential(distances, ridge: float | str = 0.0) -> Potential:
    n = distances.shape[0]
    if _is_complete(distances):
        into, out = (np.sum(distances, axis=axis, dtype=np.float64) for axis in (0, 1))
        return Potential((into - out) / n, np.zeros(n, dtype=np.int64))
    pairs = distance_skew(distances)
    if knows_one_way(distances, pairs):
        return graph_potential(edge_strengths(digraph_edges(distances)), ridge)
    known = np.isfinite(pairs.skew)
    source, target, skew = (part[known] for part in pairs)
    # nothing is one-way that could be held out
    return pair_potential(source, target, skew, n, 0.0 if ridge == "auto" else float(ridge))


def knows_one_way(distances, pairs: SkewPairs) -> bool:
    """Whether most distances are known one way only; ``pairs`` are those of `distance_skew`.

    What lies high is then said by the edges, as in a digraph.
    """
    if _is_complete(distances):
        return False
    if scipy.sparse.issparse(distances):
        both = 2 * np.count_nonzero(np.isfinite(pairs.skew))
        return bool(both < MOSTLY_TWO_WAY * digraph_edges(distances).source.size)
    known = np.isfinite(distances)  # of many points, ``pairs`` are a selection
    np.fill_diagonal(known, False)
    both = np.count_nonzero(known & known.T)
    return bool(both < MOSTLY_TWO_WAY * np.count_nonzero(known))


def _is_complete(distances) -> bool:
    return not scipy.sparse.issparse(distances) and bool(np.isfinite(distances).all())


def distance_skew(distances) -> SkewPairs:
    if scipy.sparse.issparse(distances):
        source, target, there, back = _stored_both_ways(distances)
    else:
        D = np.asarray(distances)  # taken as it is: a float64 copy may be larger than all else
        source, target = _all_pairs(D.shape[0])
        there, back = (D[pair].astype(np.float64) for pair in ((source, target), (target, source)))
    with np.errstate(invalid="ignore"):
        skew = there - back
        skew[np.abs(skew) < DIRECTED_SHARE * (there + back)] = 0.0
    return SkewPairs(source, target, skew)


def _stored_both_ways(distances):
    """Pairs i < j that a sparse matrix stores in both directions, and their two distances."""
    D = scipy.sparse.csr_array(distances, dtype=np.float64)
    stored = scipy.sparse.csr_array((np.ones_like(D.data), D.indices, D.indptr), shape=D.shape)
    source, target = scipy.sparse.triu(stored.multiply(stored.T), k=1).tocoo().coords
    if source.size == 0:
        return source, target, np.empty(0), np.empty(0)
    there, back = D[source, target], D[target, source]
    return source, target, np.asarray(there).ravel(), np.asarray(back).ravel()


def _all_pairs(n: int):
    """All pairs of n points, or those at an evenly spaced selection of index offsets."""
    if n * (n - 1) // 2 <= MAX_PAIRS:
        return np.triu_indices(n, k=1)
    offsets = np.unique(np.linspace(1, n // 2, max(1, MAX_PAIRS // n)).astype(np.int64))
    source = np.repeat(np.arange(n), offsets.size)
    return source, (source + np.tile(offsets, n)) % n


def compare_skew(data, shown, slope) -> SkewFidelity:
    if data.size == 0 or not np.any(data):
        return SkewFidelity.undefined("the data has no asymmetry to show")
    if not np.any(shown):
        return SkewFidelity.undefined("the height is flat")
    unequal = (data != 0) & (shown != 0)
    same = np.count_nonzero(unequal & ((data > 0) == (shown > 0)))
    signed = np.count_nonzero(unequal)
    sign = float(same / signed) if signed else float("nan")
    few = slice(None, None, -(-data.size // MAX_RANKED_PAIRS))
    rank = _rank_both_ways(data[few], shown[few])
    if slope is None:
        slope = float(data @ shown / (shown @ shown))
    rest = data - slope * shown
    return SkewFidelity(sign, rank, float(1.0 - (rest @ rest) / (data @ data)))


def _rank_both_ways(a, b) -> float:
    """Spearman correlation of (a, −a) and (b, −b).

    Both orientations of a pair count: with one of them, the rank depends on the order of rows.
    Among a and −a together, a has the rank of |a| with a's sign, but for a constant.
    """
    a, b = (np.sign(skew) * (rankdata(np.abs(skew)) - 0.5) for skew in (a, b))
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else float("nan")


def density_height(embedding, local_scale) -> float:
    """Spearman correlation between height and log local scale: sparse above dense is +1."""
    level = np.asarray(embedding, dtype=np.float64)[:, -1]
    with np.errstate(divide="ignore", invalid="ignore"):
        log_scale = np.log(np.asarray(local_scale, dtype=np.float64))
    known = np.isfinite(level) & np.isfinite(log_scale)
    if known.sum() < 3 or np.ptp(level[known]) == 0 or np.ptp(log_scale[known]) == 0:
        return float("nan")
    return float(spearmanr(level[known], log_scale[known]).statistic)


# Does anything depend on the direction?


def is_symmetric(matrix, rtol: float = SYMMETRY_ROUNDING) -> bool:
    """Whether a matrix equals its transpose, up to ``rtol`` of its largest finite entry.

    nan equals nan, and inf equals inf. Absent entries of a sparse matrix are zeros.
    """
    if scipy.sparse.issparse(matrix):
        return _is_symmetric_sparse(matrix, rtol)
    blocks = list(row_blocks(matrix.shape[0]))  # no second matrix is needed
    largest = (m.max(initial=0.0, where=np.isfinite(m)) for m in (matrix[rows] for rows in blocks))
    allowed = rtol * float(max(largest, default=0.0))
    return all(
        np.allclose(matrix[rows], matrix[:, rows].T, rtol=0.0, atol=allowed, equal_nan=True)
        for rows in blocks
    )


def _is_symmetric_sparse(matrix, rtol: float) -> bool:
    if matrix.nnz == 0:
        return True
    matrix = scipy.sparse.csr_array(matrix)
    finite = np.isfinite(matrix.data)
    if not finite.all():
        marks = np.select([finite, matrix.data > 0, matrix.data < 0], [0.0, 1.0, 2.0], 3.0)
        parts = (np.where(finite, matrix.data, 0.0), marks)
        return all(
            _is_symmetric_sparse(
                scipy.sparse.csr_array((part, matrix.indices, matrix.indptr), matrix.shape), rtol
            )
            for part in parts
        )
    allowed = rtol * float(abs(matrix).max())
    out, into = (np.asarray(matrix.sum(axis=axis)).ravel() for axis in (1, 0))
    if abs(out - into).max() > allowed * matrix.shape[0]:  # saves the transpose
        return False
    return bool(abs(matrix - matrix.T).max() <= allowed)


def is_directed(D) -> bool:
    """Whether some pair of distances that is known both ways depends on the direction."""
    there, back = _stored_both_ways(D)[2:] if scipy.sparse.issparse(D) else (D, D.T)
    with np.errstate(invalid="ignore"):  # inf - inf: both directions are missing
        return bool(np.any(np.abs(there - back) > DIRECTED_SHARE * (there + back)))


class CyclicWarning(UserWarning):
    """Most of the asymmetry of the data has no height."""


def gradient_share(D) -> float:
    """Share of the asymmetry of D that is a difference of heights, from 0 to 1.

    Of the skew part K_ij = (D_ij − D_ji)/2 a height shows what is a difference u_j − u_i. The best
    u solves V u = −K 1 with V the Laplacian of the pairs that are known both ways, and takes the
    share 2 uᵀVu / Σ K². The rest is cyclic (A → B → C → A costs more than the way back) or noise.

    Parameters
    ----------
    D : array or sparse matrix of shape (n, n)
        Directed distances. Pairs that are nan, inf or absent in either direction are not looked
        at. nan if there is no asymmetry, or no pair that is known both ways.

    Examples
    --------
    >>> import numpy as np
    >>> round(gradient_share(np.array([[0.0, 2.0, 3.0], [1.0, 0.0, 2.0], [1.0, 1.0, 0.0]])), 9)
    1.0
    >>> gradient_share(np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 2.0], [2.0, 1.0, 0.0]]))
    0.0
    """
    check_square(np.shape(D))
    if not scipy.sparse.issparse(D):
        D = np.asarray(D)
        if np.isfinite(D).all():
            return _share_of_all_pairs(D)
        source, target = np.nonzero(np.isfinite(D))
        D = scipy.sparse.csr_array((D[source, target], (source, target)), shape=D.shape)
    return _share_of_some_pairs(without_duplicates(D))


def _share_of_all_pairs(D: np.ndarray) -> float:
    n = len(D)
    total = skew = gradient = 0.0
    for rows in row_blocks(n, SUMMED_ROWS):
        there = D[rows].astype(np.float64)
        half = (there - D[:, rows].T) / 2
        total += float(np.einsum("ij,ij", there, there))
        skew += float(np.einsum("ij,ij", half, half))
        gradient += 2.0 * float((half.sum(axis=1) ** 2).sum()) / n
    return gradient / skew if skew > NEGLIGIBLE_SKEW * total else float("nan")


def _share_of_some_pairs(D: scipy.sparse.csr_array) -> float:
    source, target, there, back = _stored_both_ways(D)
    if source.size == 0:
        return float("nan")
    half = (there - back) / 2
    skew = 2.0 * float(half @ half)
    if not skew > NEGLIGIBLE_SKEW * float(there @ there + back @ back):
        return float("nan")
    n = D.shape[0]
    pull = np.bincount(target, half, n) - np.bincount(source, half, n)  # −K 1
    pairs = scipy.sparse.csr_array((np.ones(source.size), (source, target)), shape=D.shape)
    level, _ = solve_laplacian(pairs + pairs.T, pull)
    return float(np.clip(2.0 * (level @ pull) / skew, 0.0, 1.0))
