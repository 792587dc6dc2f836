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
from scipy.sparse.linalg import cg
from scipy.stats import spearmanr

from finsler_ext._threads import one_blas_thread
from finsler_ext.construct.symmetry import DIRECTED_SHARE
from finsler_ext.layout.height import GIVEN_TOLERANCE, NOISY_TOLERANCE
from finsler_ext.layout.islands import log_level
from finsler_ext.spaces import RANDERS, Space

__all__ = [
    "DENSITY",
    "DISTANCES",
    "NONE",
    "SCALE",
    "Asymmetry",
    "SkewFidelity",
    "affinity_lengths",
    "skew_potential",
]

# Where an asymmetry comes from.
DENSITY, SCALE, DISTANCES, NONE = "density", "scale", "distances", "none"
# More pairs than this are not ranked, and not taken from a dense matrix: an evenly spaced
# selection stands for them.
MAX_RANKED_PAIRS = 1_000_000
MAX_PAIRS = 4_000_000
# Of the potential of directed distances, relative.
POTENTIAL_TOLERANCE = 1e-6


class SkewFidelity(NamedTuple):
    """How faithfully the height shows the asymmetry of the data.

    sign : share of pairs whose skew has the same sign in data and embedding (0.5 is chance)
    rank : Spearman correlation of the two skews
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
            f"skew fidelity: sign {self.sign:.2f} (0.50 is chance), rank {self.rank:.2f}, "
            f"explained {self.explained:.2f}"
        )


class SkewPairs(NamedTuple):
    """Pairs of points and the skew of the data on each: positive where the target is higher."""

    source: np.ndarray
    target: np.ndarray
    skew: np.ndarray


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

    def __init__(
        self, kind: str, *, graph=None, local_scale=None, distances=None, absolute: bool = False
    ):
        self.kind, self.absolute = kind, absolute
        self._graph, self._local_scale, self._distances = graph, local_scale, distances
        self._pairs: SkewPairs | None = None

    @classmethod
    def of_scale(cls, graph, local_scale, *, given: bool = False) -> Asymmetry:
        """a_ij = log s_j − log s_i on the edges of a graph."""
        return cls(SCALE if given else DENSITY, graph=graph, local_scale=local_scale)

    @classmethod
    def of_distances(cls, distances, *, absolute: bool = False) -> Asymmetry:
        """a_ij = D_ij − D_ji over all pairs that are known both ways."""
        return cls(DISTANCES, distances=distances, absolute=absolute)

    @classmethod
    def none(cls) -> Asymmetry:
        return cls(NONE)

    @property
    def is_directed(self) -> bool:
        """Whether it comes from directed distances."""
        return self.kind == DISTANCES

    @property
    def tolerance(self) -> float:
        """How exactly a height should answer to it: what is given is meant, density is noisy."""
        return GIVEN_TOLERANCE if self.kind in (SCALE, DISTANCES) else NOISY_TOLERANCE

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

    def level(self) -> np.ndarray | None:
        """What heights follow: the potential of directed distances, or the log local scale."""
        if self.kind == NONE:
            return None
        if self.kind == DISTANCES:
            return _potential(self.pairs, self._distances.shape[0])
        return log_level(self._local_scale)

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
        return data[known], shown[known]

    def fidelity(self, embedding, omega_norm: float = 0.0, space: Space = RANDERS) -> SkewFidelity:
        """How faithfully an embedding shows it."""
        data, shown = self.compared(embedding, omega_norm, space)
        if data.size == 0 and self.is_directed:
            return SkewFidelity.undefined("no pair is known both ways")
        return _compare(data, shown, 1.0 if self.absolute else None)

    def _made_pairs(self) -> SkewPairs:
        if self.kind == NONE:
            nobody = np.empty(0, dtype=np.int64)
            return SkewPairs(nobody, nobody, np.empty(0))
        if self.kind == DISTANCES:
            return _distance_skew(self._distances)
        edges = scipy.sparse.coo_array(self._graph)
        source, target = edges.coords
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
    return _potential(_distance_skew(distances), distances.shape[0])


def _potential(pairs: SkewPairs, n: int) -> np.ndarray:
    known = np.isfinite(pairs.skew)
    source, target, skew = (part[known] for part in pairs)
    ones = np.ones(source.size)
    joined = scipy.sparse.coo_array((ones, (source, target)), shape=(n, n)).tocsr()
    joined = joined + joined.T
    degree = np.asarray(joined.sum(axis=1)).ravel()
    inverse = np.divide(1.0, degree, out=np.zeros(n), where=degree > 0)
    diagonal, scaling = (
        scipy.sparse.dia_array((d[None, :], [0]), shape=(n, n)) for d in (degree, inverse)
    )
    surplus = np.bincount(target, skew, n) - np.bincount(source, skew, n)
    with one_blas_thread():
        level, _ = cg(diagonal - joined, surplus, M=scaling, rtol=POTENTIAL_TOLERANCE)
    return np.where(degree > 0, level, np.nan)


def _distance_skew(distances) -> SkewPairs:
    if scipy.sparse.issparse(distances):
        D = scipy.sparse.csr_array(distances, dtype=np.float64)
        stored = scipy.sparse.csr_array((np.ones_like(D.data), D.indices, D.indptr), shape=D.shape)
        both = scipy.sparse.triu(stored.multiply(stored.T), k=1).tocoo()
        source, target = both.coords
        if source.size == 0:
            return SkewPairs(source, target, np.empty(0))
        there = np.asarray(D[source, target]).ravel()
        back = np.asarray(D[target, source]).ravel()
    else:
        D = np.asarray(distances)  # taken as it is: a float64 copy may be larger than all else
        source, target = _all_pairs(D.shape[0])
        there, back = (D[pair].astype(np.float64) for pair in ((source, target), (target, source)))
    with np.errstate(invalid="ignore"):
        skew = there - back
        skew[np.abs(skew) < DIRECTED_SHARE * (there + back)] = 0.0
    return SkewPairs(source, target, skew)


def _all_pairs(n: int):
    """All pairs of n points, or those at an evenly spaced selection of index offsets."""
    if n * (n - 1) // 2 <= MAX_PAIRS:
        return np.triu_indices(n, k=1)
    offsets = np.unique(np.linspace(1, n // 2, max(1, MAX_PAIRS // n)).astype(np.int64))
    source = np.repeat(np.arange(n), offsets.size)
    return source, (source + np.tile(offsets, n)) % n


def _compare(data, shown, slope) -> SkewFidelity:
    if data.size == 0 or not np.any(data):
        return SkewFidelity.undefined("the data has no asymmetry to show")
    if not np.any(shown):
        return SkewFidelity.undefined("the height is flat")
    unequal = (data != 0) & (shown != 0)
    same = np.sign(data[unequal]) == np.sign(shown[unequal])
    undefined = float("nan")
    sign = float(np.mean(same)) if same.size else undefined
    stride = -(-data.size // MAX_RANKED_PAIRS)
    few = slice(None, None, stride)
    constant = np.ptp(data[few]) == 0 or np.ptp(shown[few]) == 0
    rank = undefined if constant else float(spearmanr(data[few], shown[few]).statistic)
    if slope is None:
        slope = float(data @ shown / (shown @ shown))
    rest = data - slope * shown
    return SkewFidelity(sign, rank, float(1.0 - (rest @ rest) / (data @ data)))
