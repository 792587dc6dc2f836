"""Has directed data a direction? Randomise what was measured and see what a height still explains.

Of a pair that was measured both ways, or an edge that has a direction, swapping the two directions
is as likely as not if there is no direction. With skews f (D_ij − D_ji; of a graph, the strength of
j → i less that of i → j) and springs w, a height explains at most

    T = max_φ Σ [2 f (φ_j − φ_i) − w (φ_j − φ_i)²] = Rᵀ V⁺ R,

V being the Laplacian of w, and R the sum of f at the targets less that at the sources. T of the
data against T of random signs is an exact test. It needs what was *measured*: shortest paths and
hops of a random graph have a direction that the graph has not, and cannot be told from measured
distances.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import chi2
from scipy.stats import t as student

from finsler_ext._threads import one_blas_thread
from finsler_ext.asymmetry import (
    DISTANCES,
    SkewPairs,
    compare_skew,
    distance_skew,
    knows_one_way,
)
from finsler_ext.directed.digraph import (
    compares_lengths,
    digraph_edges,
    is_digraph,
    with_ways_back,
)
from finsler_ext.directed.laplacian import centred_parts, conjugate_gradients, narrow_solver
from finsler_ext.evidence.verdict import Evidence, HeightError, HeldOutPairs, Reliability, longer
from finsler_ext.schema import FLAG, array, saved, whole

VELOCITIES = "velocities"
# Draws of random directions: as many as this, fewer for many pairs (pairs × draws is bounded).
MOST_DRAWS, FEWEST_DRAWS, PAIR_DRAWS = 199, 39, 8_000_000
# With more pairs than this, moments of T take the place of draws, if it needs no solve; there is
# one division into halves, and as many pairs of each are compared.
MANY_PAIRS = 100_000
# Share of all pairs from which on they are as good as complete.
COMPLETE = 0.9
# Of conjugate gradients, relative. All draws are treated alike, so the test is exact at any.
TOLERANCE, MAX_STEPS = 1e-4, 300
# Entries that factors of V may have.
LARGEST_FACTOR = 1e6
# Random divisions into halves whose agreement is averaged.
N_SPLITS = 2
# Solves for the error of a potential.
ERROR_DRAWS = 50
UNTESTABLE = "transition probabilities do not tell what was measured; velocities would"
FOREST = "the edges form no loop, so a height explains them whatever their directions are"
ONE_WAY = (
    "most distances are known one way only, and lists of the nearest are like that by themselves; "
    "strengths of edges could be tested, read_directed(data, values='strength')"
)
# Rows of transition probabilities sum to 1 at most, up to this.
STOCHASTIC = 1e-3


@saved(
    n_points=whole("[1, inf)", size="n"),
    source=array("i4 i8", "e", "[0, n)"),
    target=array("i4 i8", "e", "[0, n)"),
    skew=array("f8", "e"),
    spring=array("f8", "e", "[0, inf)"),
    transitions=FLAG,
)
class MeasuredPairs(NamedTuple):
    """Every measured pair once; ``skew`` > 0 puts the target above the source."""

    source: np.ndarray
    target: np.ndarray
    skew: np.ndarray
    spring: np.ndarray
    n_points: int
    transitions: bool = False
    """Whether they are transition probabilities."""

    @property
    def complete(self) -> bool:
        """Whether nearly all pairs are known, with equal springs: V is n I − 1 1ᵀ, nearly."""
        n = self.n_points
        return len(self.skew) > COMPLETE * n * (n - 1) / 2 and float(np.ptp(self.spring)) == 0

    @property
    def matrix(self) -> scipy.sparse.csr_array:
        """The springs, both ways."""
        n = self.n_points
        once = scipy.sparse.csr_array((self.spring, (self.source, self.target)), shape=(n, n))
        return scipy.sparse.csr_array(once + once.T)

    def groups(self) -> tuple[int, np.ndarray]:
        """How many groups of points the pairs connect, and the group of each point."""
        return connected_components(self.matrix, directed=False)

    def part(self, chosen) -> MeasuredPairs:
        source, target, skew, spring = (part[chosen] for part in self[:4])
        return MeasuredPairs(source, target, skew, spring, self.n_points)


def direction_evidence(D, strengths=None, *, random_state: int = 0) -> Evidence:
    """Evidence that directed data has a direction.

    Parameters
    ----------
    D : array or sparse matrix of shape (n, n)
        What was measured: distances from row to column, nan, inf or absent where unknown; or a
        digraph. Shortest paths have to be given as the graph they were made from.
    strengths : sparse matrix of shape (n, n), optional
        Of the edges of a digraph, if it was measured by these.
    random_state : int
        Decides on draws and halves.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> noise = rng.normal(size=(30, 30))
    >>> direction_evidence(5 + 0.1 * noise).more_than_chance
    False
    >>> direction_evidence(5 + 0.1 * noise + 0.1 * rng.normal(size=30)).more_than_chance
    True
    """
    pairs = measured_pairs(D, strengths)
    reason = untestable(D, pairs, strengths)
    if reason:
        return Evidence(DISTANCES, reason=reason)
    return direction_findings(pairs, random_state=random_state)[0]


def direction_findings(
    pairs: MeasuredPairs, *, random_state: int = 0
) -> tuple[Evidence, HeldOutPairs | None]:
    """`direction_evidence` of measured pairs, and those that were held out."""
    if pairs.skew.size == 0 or not pairs.skew.any():
        return Evidence(DISTANCES, reason="no pair that is known depends on the direction"), None
    rng = np.random.default_rng(random_state)
    with one_blas_thread():
        p_value, share, null = _swap_test(pairs, rng)
        reliability, held_out, kept = _halves(pairs, rng)
    is_forest = len(pairs.skew) == pairs.n_points - pairs.groups()[0]
    reason = UNTESTABLE if pairs.transitions else FOREST if is_forest else ""
    evidence = Evidence(
        DISTANCES,
        float("nan") if reason else p_value,
        reliability,
        held_out,
        gradient_share=share,
        gradient_share_null=null,
        cyclic=_cyclic_share(pairs),
        reason=reason,
    )
    return evidence, kept


def velocity_evidence(indices, positions, velocities, *, random_state: int = 0) -> Evidence:
    """Evidence that velocities of points have a common direction along their neighbours.

    The skew of neighbours i and j is the mean cosine between their velocities and the way from j
    to i: what is left behind lies high. Under "no direction", velocities are exchangeable among
    the points; so a velocity that all points share is no evidence.

    Parameters
    ----------
    indices : array of shape (n, k)
        Neighbours of each point, the point itself left out.
    positions, velocities : arrays of shape (n, d)
    random_state : int
        Decides on draws and halves.
    """
    positions = np.asarray(positions, dtype=np.float64)
    velocities = np.nan_to_num(np.asarray(velocities, dtype=np.float64))
    n = len(positions)
    if velocities.shape != positions.shape:
        raise ValueError(
            f"velocities must have the shape of positions, {positions.shape}; got "
            f"{velocities.shape}."
        )
    source = np.repeat(np.arange(n), np.shape(indices)[1])
    target = np.ravel(indices)
    known = (target >= 0) & (target != source)
    low, high = (np.minimum, np.maximum)
    code = np.unique(low(source, target)[known] * n + high(source, target)[known])
    source, target = np.divmod(code, n)
    way = _unit(positions[target] - positions[source])
    heading = _unit(velocities)
    rng = np.random.default_rng(random_state)

    def pairs_of(heading):
        skew = -((heading[source] + heading[target]) * way).sum(axis=1) / 2
        return MeasuredPairs(source, target, skew, np.ones(len(source)), n)

    pairs = pairs_of(heading)
    if not pairs.skew.any():
        return Evidence(VELOCITIES, reason="all velocities are zero")
    draws = _n_draws(len(source))
    with one_blas_thread():
        skews = [pairs.skew]
        skews += [pairs_of(heading[rng.permutation(n)]).skew for _ in range(draws)]
        columns = np.stack(skews, axis=1)
        explained = _explained(pairs, columns) / np.maximum((columns**2).sum(axis=0), 1e-300)
        reliability, held_out, _ = _halves(pairs, rng)
    return Evidence(
        VELOCITIES,
        _share_above(explained),
        reliability,
        held_out,
        gradient_share=float(explained[0]),
        gradient_share_null=float(explained[1:].mean()),
        cyclic=_cyclic_share(pairs),
    )


def measured_pairs(D, strengths=None) -> MeasuredPairs:
    """The skew of all pairs that were measured.

    Of distances D_ij − D_ji, where both are known; so of a digraph most of whose edges have a
    length there and another back. Of other digraphs the difference of strengths, by default
    exp(−d/mean d), an absent edge having none.
    """
    n = D.shape[0]
    if strengths is None:
        chances = _chances(D)
        strengths = chances if is_transition_matrix(chances) else None
    measured = D
    if strengths is None and is_digraph(D) and compares_lengths(digraph_edges(D)):
        measured = with_ways_back(D)
    if strengths is None and (measured is not D or not is_digraph(D)):
        source, target, skew = distance_skew(measured)
        known = np.isfinite(skew)
        source, target, skew = source[known], target[known], skew[known]
        return MeasuredPairs(source, target, skew, np.ones(len(skew)), n)
    if strengths is None:
        edges = digraph_edges(D)
        strength = np.exp(-edges.length / max(float(edges.length.mean()), 1e-300))
        strengths = scipy.sparse.csr_array((strength, (edges.source, edges.target)), shape=(n, n))
    there = scipy.sparse.csr_array(strengths, dtype=np.float64)
    springs = scipy.sparse.triu(there + there.T, k=1).tocoo()
    source, target = springs.coords
    back = scipy.sparse.triu(there.T - there, k=1).tocsr()
    skew = np.asarray(back[source, target]).ravel()
    return MeasuredPairs(source, target, skew, springs.data, n, is_transition_matrix(there))


def untestable(D, pairs: MeasuredPairs, strengths=None) -> str:
    """Why measured pairs of D are no evidence; empty if they are.

    Where most distances are known one way only, the potential is that of the edges, as of a
    digraph, and the few pairs that are known both ways say nothing about it.
    """
    if strengths is not None or pairs.transitions or is_digraph(D):
        return ""
    return ONE_WAY if knows_one_way(D, SkewPairs(*pairs[:3])) else ""


def is_transition_matrix(strengths) -> bool:
    """Whether strengths are probabilities, perhaps without those of staying where one is.

    They vary, no row sums to more than 1, and half of the rows to more than one half.
    """
    if strengths is None or strengths.nnz == 0 or np.ptp(strengths.data) == 0:
        return False
    sums = strengths.sum(axis=1)
    return bool(sums.max() < 1.0 + STOCHASTIC and np.median(sums[sums > 0]) > 0.5)


def _chances(D):
    """Probabilities whose −log are the lengths of a sparse matrix, if all rows sum to 1."""
    if not scipy.sparse.issparse(D) or D.nnz == 0:
        return None
    chances = scipy.sparse.csr_array(D, dtype=np.float64, copy=True)
    chances.data = np.exp(-chances.data)
    sums = chances.sum(axis=1)[np.diff(chances.indptr) > 0]
    return chances if np.abs(sums - 1.0).max() < STOCHASTIC else None


@one_blas_thread()
def potential_error(pairs: MeasuredPairs) -> HeightError:
    """Error of the potential of each point, over other measurements of the same pairs.

    What the potential leaves of every pair gets a random sign, and the potential of that is
    solved for, fifty times. The variance of a pair is the mean of its own square and of that of
    all, and errors are widened by Student's t for points with few pairs.
    """
    n, m = pairs.n_points, len(pairs.skew)
    potential = _potentials(pairs, pairs.skew[:, None])[:, 0]
    left = pairs.skew - pairs.spring * (potential[pairs.target] - potential[pairs.source])
    degree = np.bincount(pairs.source, minlength=n) + np.bincount(pairs.target, minlength=n)
    square = left**2 * (m / max(m - n + pairs.groups()[0], 1))
    spread = np.sqrt((square + square.mean()) / 2)
    freedom = 2 * degree - 1
    if pairs.complete:  # V⁺ is 1/n: no solve
        ends = (np.bincount(end, spread**2, n) for end in (pairs.source, pairs.target))
        error = np.sqrt(sum(ends)) / (n * float(pairs.spring[0]))
        deviation, noise = potential, error
    else:
        rng = np.random.default_rng(0)
        signs = rng.integers(0, 2, size=(m, ERROR_DRAWS), dtype=np.int8) * 2.0 - 1.0
        drawn = _potentials(pairs, spread[:, None] * signs)
        freedom = np.minimum(freedom, ERROR_DRAWS - 1)
        around = _means_around(pairs, np.column_stack([potential, drawn]))
        error, noise = drawn.std(axis=1), (drawn - around[:, 1:]).std(axis=1)
        deviation = potential - around[:, 0]
    widened = student.ppf(0.95, np.maximum(freedom, 1)) / 1.645
    unsure = ~(np.abs(deviation) > 1.645 * widened * noise)
    potential, error = (np.where(degree > 0, part, np.nan) for part in (potential, error * widened))
    return HeightError(potential, error, unsure)


def _swap_test(pairs: MeasuredPairs, rng) -> tuple[float, float, float]:
    """p-value, share of the asymmetry that a height explains, and its mean for random signs."""
    m = len(pairs.skew)
    total = float((pairs.skew**2 / pairs.spring).sum())
    if m > MANY_PAIRS and pairs.complete:
        return _moments_test(pairs, total)
    signs = rng.integers(0, 2, size=(m, 1 + _n_draws(m)), dtype=np.int8) * 2.0 - 1.0
    signs[:, 0] = 1.0
    explained = _explained(pairs, pairs.skew[:, None] * signs)
    return _share_above(explained), float(explained[0]) / total, float(explained[1:].mean()) / total


def _moments_test(pairs: MeasuredPairs, total: float) -> tuple[float, float, float]:
    """The same for (nearly) complete pairs with equal springs, where V is n I − 1 1ᵀ.

    T = Σ R_i²/n has the mean Σ_i v_i/n with v_i = Σ_j f_ij², and a known variance; a multiple of
    chi² with these two is its distribution.
    """
    source, target, n = pairs.source, pairs.target, pairs.n_points
    square = pairs.skew**2
    surplus = np.bincount(target, pairs.skew, n) - np.bincount(source, pairs.skew, n)
    each = np.bincount(source, square, n) + np.bincount(target, square, n)
    mean = float(each.sum())
    # 2 Σ_ij cov_ij² less what a random sign has not: its own square does not vary
    variance = 2.0 * float((each**2).sum()) - 4.0 * float((square**2).sum())
    freedom = 2.0 * mean**2 / max(variance, 1e-300)
    found = float((surplus**2).sum())
    return float(chi2.sf(found * freedom / mean, freedom)), found / n / total, mean / n / total


def _n_draws(n_pairs: int) -> int:
    return int(np.clip(PAIR_DRAWS // max(n_pairs, 1), FEWEST_DRAWS, MOST_DRAWS))


def _share_above(values: np.ndarray) -> float:
    """p-value of the first among all, itself included."""
    return float(np.mean(values >= values[0] * (1.0 - 1e-9)))


def _halves(pairs: MeasuredPairs, rng):
    """Agreement of the potentials of random halves, and of each with the pairs of the other."""
    near, far, made, held = [], [], [], []
    many = len(pairs.skew) > MANY_PAIRS
    for _ in range(1 if many else N_SPLITS):
        first = rng.permutation(len(pairs.skew)) < len(pairs.skew) // 2
        halves = pairs.part(first), pairs.part(~first)
        levels = [_potentials(half, half.skew[:, None])[:, 0] for half in halves]
        groups = [half.groups()[1] for half in halves]
        common = np.logical_and(*(np.bincount(g, minlength=g.max() + 1)[g] > 1 for g in groups))
        if common.sum() > 2:
            far.append(_correlation(*(level[common] for level in levels)))
        rises = [level[pairs.target] - level[pairs.source] for level in levels]
        joined = np.logical_and(*(g[pairs.target] == g[pairs.source] for g in groups))
        if joined.any():
            near.append(_correlation(rises[0][joined], rises[1][joined], centred=False))
        for level, group, other in zip(levels, groups, halves[::-1], strict=True):
            half = other.part(slice(None, None, -(-len(other.skew) // MANY_PAIRS) or 1))
            known = group[half.source] == group[half.target]
            made.append((level[half.target] - level[half.source])[known])
            held.append((half.skew / half.spring)[known])
    # from half of the data to all of it
    found = (longer(float(np.mean(r)), 2.0) if r else float("nan") for r in (near, far))
    reliability = Reliability(*found)
    there, here = np.concatenate(held), np.concatenate(made)
    return reliability, compare_skew(there, here, 1.0), HeldOutPairs.some_of(there, here)


def _correlation(x, y, centred: bool = True) -> float:
    # by powers of two, which round nothing: squares of large distances overflow
    x, y = (np.ldexp(v, -np.frexp(np.abs(v).max(initial=0.0))[1]) for v in (x, y))
    if centred:
        x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size > 0 else 0.0


def _cyclic_share(pairs: MeasuredPairs) -> float:
    """Share of Σ f²/w between points that can reach each other downhill, pair by pair."""
    downhill = pairs.skew != 0
    high = np.where(pairs.skew > 0, pairs.target, pairs.source)[downhill]
    low = np.where(pairs.skew > 0, pairs.source, pairs.target)[downhill]
    n = pairs.n_points
    graph = scipy.sparse.csr_array((np.ones(len(low)), (high, low)), shape=(n, n))
    _, part = connected_components(graph, connection="strong")
    square = (pairs.skew**2 / pairs.spring)[downhill]
    return float(square[part[high] == part[low]].sum() / square.sum())


def _surplus(pairs: MeasuredPairs, skews: np.ndarray) -> np.ndarray:
    """Σ f at the targets less that at the sources, a column for each column of skews."""
    m, n = len(pairs.skew), pairs.n_points
    entries = np.concatenate([np.ones(m), -np.ones(m)])
    rows = np.concatenate([pairs.target, pairs.source])
    ends = scipy.sparse.csr_array((entries, (rows, np.tile(np.arange(m), 2))), shape=(n, m))
    return ends @ skews


def _explained(pairs: MeasuredPairs, skews: np.ndarray) -> np.ndarray:
    surplus = _surplus(pairs, skews)
    return np.maximum((surplus * _solved(pairs, surplus)).sum(axis=0), 0.0)


def _potentials(pairs: MeasuredPairs, skews: np.ndarray) -> np.ndarray:
    """One potential per column of skews, each component of the pairs with zero mean."""
    return centred_parts(_solved(pairs, _surplus(pairs, skews)), pairs.groups()[1])


def _solved(pairs: MeasuredPairs, surplus: np.ndarray) -> np.ndarray:
    """V⁺ applied to every column: by its factors, or by conjugate gradients for all together."""
    springs = pairs.matrix
    solve = narrow_solver(springs, LARGEST_FACTOR)
    if solve is not None:  # on paths and chains, conjugate gradients stall
        return solve(surplus)
    degree = np.asarray(springs.sum(axis=1)).ravel()
    return conjugate_gradients(
        lambda x: degree[:, None] * x - springs @ x, degree, surplus, TOLERANCE, MAX_STEPS
    )


def _means_around(pairs: MeasuredPairs, levels: np.ndarray) -> np.ndarray:
    springs = pairs.matrix
    degree = np.asarray(springs.sum(axis=1)).ravel()[:, None]
    return (springs @ levels) / np.where(degree > 0, degree, 1.0)


def _unit(vectors: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 0, length, 1.0)
