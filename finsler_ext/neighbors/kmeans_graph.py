"""Approximate neighbours in large data: groups of rows, then neighbours of neighbours.

1. Centres are found by a few rounds of k-means on a sample, and every row joins the nearest.
2. The rows of a group are compared with those of the groups around it, all pairs by products of
   blocks (`finsler_ext.neighbors.distances`).
3. Every row is compared with the neighbours of its neighbours, in both directions of an edge, until
   hardly any row finds a nearer one. In a round all rows read what was found in the round before
   and write only their own row, so the result does not depend on the number of threads.

New rows are compared with the groups around them, and then with neighbours of what they found.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numba import njit
from sklearn.utils import check_random_state

from finsler_ext._messages import stage, step
from finsler_ext._threads import one_blas_thread, row_blocks, run_rows
from finsler_ext.neighbors.distances import (
    DenseRows,
    Reduction,
    insert,
    nearest_of_block,
    nearest_rows,
    quick_square_distance,
    reduction_of,
    square_distance,
)
from finsler_ext.neighbors.search import (
    DirectedNeighbors,
    NewNeighbors,
    with_missing,
    with_self_first,
)
from finsler_ext.schema import TEXT, array, saved, whole

# Rows per group on average, and groups that a group is compared with, itself included.
GROUP_ROWS, GROUPS_AROUND = 256, 32
# No group is larger than this many times the average; larger ones are cut.
LARGEST_GROUP = 4
# k-means: rows per centre in the sample, and rounds.
SAMPLE_ROWS, KMEANS_ROUNDS = 32, 4
# Neighbours of a row, and rows that have it as a neighbour, through which others are reached.
LINKS = 12
# Rounds of neighbours of neighbours, at most; fewer once a round replaces less than this share.
ROUNDS, REPLACED = 4, 0.005
# Groups that a new row is compared with, and rounds of neighbours of what it found.
GROUPS_FOR_NEW, HOPS_FOR_NEW = 16, 2
# Rows of more columns are searched by their principal directions: as many, in steps of DIRECTIONS,
# as hold a share ENOUGH of the variance of a sample, if MOST_DIRECTIONS hold LEAST_SHARE of it.
WIDE, PCA_ROWS, PROJECTED_ROWS = 128, 4096, 4096
DIRECTIONS, MOST_DIRECTIONS, ENOUGH, LEAST_SHARE = 16, 96, 0.9, 0.5
# The same if candidates hold less than this share of the nearest of a few rows.
TRIED_ROWS, KEPT = 64, 0.97
# Candidates per neighbour, and more of them, that are compared in all columns.
CANDIDATES, SPARE = 2, 15
# Slots for the rows that were looked at already, a power of two.
SEEN = 4096


def _check_groups(state: dict) -> None:
    """Groups follow each other from the first row to the last, and rows are in one each."""
    starts, n = state["starts"], len(state["X"])
    whole_cover = starts[0] == 0 and starts[-1] == n and (np.diff(starts) >= 0).all()
    if not whole_cover or len(state["centres"]) != len(starts) - 1:
        raise ValueError("KMeansGraphIndex.starts does not divide the rows into groups")
    if not np.array_equal(np.sort(state["order"]), np.arange(n)):
        raise ValueError("KMeansGraphIndex.order is no order of the rows")


@saved(
    metric=TEXT,
    n_threads=whole("[1, inf)"),
    X=array("f4 f8", "n d"),
    order=array("i8", "n", "[0, n)"),
    starts=array("i8", "g", "[0, n]"),
    centres=array("f4 f8", "c p"),
    links=array("i4", "n l", "[-1, n)"),
    relations=_check_groups,
)
class KMeansGraphIndex:
    """A `NeighborIndex` for dense rows in a metric that `reduction_of` knows."""

    name = "kmeans_graph"

    def __init__(self, metric="euclidean", *, random_state=None, n_threads=1, dtype=np.float32):
        self.metric = metric
        self.random_state = random_state
        self.n_threads = n_threads
        self.dtype = dtype

    def build(self, X, k: int) -> DirectedNeighbors:
        self.X = X
        reduction = self._reduction = self._reduced()
        rng = check_random_state(self.random_state)
        stage("dividing the rows into groups")
        narrow = projected(reduction.rows, k - 1, rng, self.n_threads)
        rows = DenseRows(reduction.rows if narrow is None else narrow)
        order, centres = self._divide(rows, rng)
        # rows of a group lie side by side, so that most of what is compared is in the cache
        grouped = rows.taken(order)
        candidates = min(k - 1 if narrow is None else _candidates(k - 1), len(X) - 1)
        stage("finding neighbours in groups")
        near, distances = self._compare_groups(grouped, centres, candidates)
        stage("finding neighbours of neighbours")
        near = refine_neighbors(grouped.X, near, distances, self.n_threads)
        self.order = order
        self._rows = grouped if narrow is None else DenseRows(reduction.rows).taken(order)
        self.centres = centres
        if narrow is not None:
            groups = pairwise(self.starts)
            means = [self._rows.X[a:b].mean(axis=0, dtype=np.float64) for a, b in groups]
            self.centres = np.array(means, dtype=self._rows.X.dtype)
        n_near = min(k, len(X)) - 1
        found = np.full((len(X), n_near), -1, dtype=np.int32), np.full((len(X), n_near), np.inf)
        run_rows(_choose, len(X), self.n_threads, self._rows.X, near, *found, heavy=True)
        near, distances = found[0], np.sqrt(found[1])
        self.links = near[:, :LINKS].copy()
        indices = np.empty((len(X), near.shape[1] + 1), dtype=np.int32)
        placed = np.zeros(indices.shape)
        indices[:, 0] = np.arange(len(X))
        indices[order, 1:] = np.where(near >= 0, order[near], -1)
        placed[order, 1:] = reduction.value(distances)
        return with_self_first(indices, placed, self, dtype=self.dtype)

    def _reduced(self) -> Reduction:
        reduction = reduction_of(self.metric, self.X)
        if reduction is None:
            raise ValueError(
                f"metric={self.metric!r} is not known to the k-means graph, or X is sparse or "
                "not finite. Use another search."
            )
        return reduction

    def __getstate__(self):
        kept = ("metric", "n_threads", "X", "order", "starts", "centres", "links")
        return {name: value for name, value in vars(self).items() if name in kept}

    def __setstate__(self, state):
        vars(self).update(state)
        self.random_state, self.dtype = None, np.float32
        if "X" in state:
            self._reduction = self._reduced()
            self._rows = DenseRows(self._reduction.rows).taken(self.order)

    def _divide(self, rows: DenseRows, rng) -> tuple[np.ndarray, np.ndarray]:
        """The rows in the order of their groups, and the centres; sets where each group starts."""
        n = len(rows)
        n_groups = max(1, n // max(GROUP_ROWS, int(np.sqrt(n / GROUPS_AROUND))))
        centres = _centres(rows, n_groups, rng, self.n_threads)
        middle = DenseRows(centres, like=rows)
        group = nearest_rows(rows, middle, 1, n_threads=self.n_threads)[0][:, 0]
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(n_groups + 1))
        most = LARGEST_GROUP * n // n_groups
        cuts = [np.arange(a, b, most) for a, b in pairwise(starts)]
        self.starts = np.append(np.concatenate(cuts), n)
        return order, centres[group[order[self.starts[:-1]]]]

    def _compare_groups(self, rows: DenseRows, centres: np.ndarray, k: int):
        n, starts = len(rows), self.starts
        indices, distances = np.empty((n, k), dtype=np.int32), np.empty((n, k))
        middle = DenseRows(centres, like=rows)
        around = nearest_rows(middle, middle, GROUPS_AROUND, n_threads=self.n_threads)[0]
        prepared, half = rows.prepared(np.float32)

        def compare(g: int) -> None:
            mine = slice(starts[g], starts[g + 1])
            groups = np.sort(around[g]) if g in around[g] else np.sort([*around[g], g])
            among = np.concatenate([np.arange(starts[h], starts[h + 1]) for h in groups])
            own = np.searchsorted(among, np.arange(mine.start, mine.stop))
            near, far, _ = nearest_of_block(
                prepared[mine], rows.X[mine], own, rows.X[among], prepared[among], half[among], k
            )
            indices[mine] = np.where(near >= 0, among[near], -1)
            distances[mine] = far

        with one_blas_thread(), ThreadPoolExecutor(self.n_threads) as pool:
            for done, _ in enumerate(pool.map(compare, range(len(centres))), start=1):
                step(done, len(centres))
        return indices, distances

    def query(self, new, k: int) -> NewNeighbors:
        asked = self._reduction.of(new)
        if asked is None:
            raise ValueError("X contains NaN or infinity, for which there are no neighbours.")
        asked = np.ascontiguousarray(asked, dtype=self._rows.X.dtype)
        centres = DenseRows(self.centres)
        around = nearest_rows(
            DenseRows(asked, like=centres), centres, GROUPS_FOR_NEW, n_threads=self.n_threads
        )[0]
        near = np.full((len(asked), k), -1, dtype=np.int64)
        squares = np.full((len(asked), k), np.inf)
        groups = self._rows.X, around, self.starts, self.links
        found = near, squares
        run_rows(_search_new, len(asked), self.n_threads, asked, *groups, *found, heavy=True)
        distances = self._reduction.value(np.sqrt(squares))
        return with_missing(np.where(near >= 0, self.order[near], -1), distances, distances)


def _centres(rows: DenseRows, n_groups: int, rng, n_threads: int) -> np.ndarray:
    n = len(rows)
    sample = np.sort(rng.permutation(n)[: SAMPLE_ROWS * n_groups])
    chosen = rows.taken(sample)
    centres = chosen.X[np.sort(rng.permutation(len(sample))[:n_groups])]
    for _ in range(KMEANS_ROUNDS):
        group = nearest_rows(chosen, DenseRows(centres, like=rows), 1, n_threads=n_threads)[0][:, 0]
        total = np.zeros(centres.shape)
        _add_rows(chosen.X, group, total)
        count = np.bincount(group, minlength=n_groups)
        kept = count > 0
        centres = centres.copy()
        centres[kept] = total[kept] / count[kept, None]
    return centres


@njit(cache=True)
def _add_rows(X, group, total):
    for i in range(X.shape[0]):
        for c in range(X.shape[1]):
            total[group[i], c] += X[i, c]


def refine_neighbors(X, indices, distances, n_threads: int) -> np.ndarray:
    """Neighbours, after comparing with neighbours of neighbours as long as that helps."""
    near, squares = indices, distances**2
    fresh = np.ones(near.shape, dtype=np.bool_)
    for done in range(ROUNDS):
        step(done, ROUNDS)
        back, back_fresh = _reverse(near, fresh, LINKS)
        found = near.copy(), squares.copy(), np.zeros_like(fresh)
        given = near, fresh, back, back_fresh
        run_rows(_refine, len(X), n_threads, X, *given, *found, heavy=True)
        near, squares, fresh = found
        if fresh.mean() < REPLACED:
            break
    return near


@njit(nogil=True, cache=True, fastmath=False)
def _choose(start, stop, X, candidates, near, squares):
    """The nearest among the candidates of every row, compared exactly."""
    for i in range(start, stop):
        for j in candidates[i]:
            if j < 0:
                continue
            if X.shape[1] > WIDE:
                total = _wide_square_distance(X, i, j)
            else:
                total = square_distance(X, i, X, j)
            insert(squares[i], near[i], total, j)


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _wide_square_distance(X, i, j):
    """In double precision, added in the order that suits the processor: six times as fast."""
    total = 0.0
    for c in range(X.shape[1]):
        step = np.float64(X[i, c] - X[j, c])
        total += step * step
    return total


def projected(X: np.ndarray, k: int, rng, n_threads: int) -> np.ndarray | None:
    """Wide rows in their first principal directions, or None where these hold too little.

    Directions come from a sample. The rows whose projections are nearest are candidates for the k
    nearest; on a few rows it is tried how many of these are among them.
    """
    n, d = X.shape
    if d <= WIDE:
        return None
    sample = X[np.sort(rng.permutation(n)[:PCA_ROWS])].astype(np.float64)
    sample -= sample.mean(axis=0)
    with one_blas_thread():
        values, vectors = np.linalg.eigh(sample.T @ sample)
        share = np.cumsum(values[::-1]) / max(values.sum(), np.finfo(float).tiny)
        if share[MOST_DIRECTIONS - 1] < LEAST_SHARE:
            return None
        m = int(np.searchsorted(share[:MOST_DIRECTIONS], ENOUGH)) + 1
        m = min(MOST_DIRECTIONS, -(-m // DIRECTIONS) * DIRECTIONS)
        axes = np.ascontiguousarray(vectors[:, : -m - 1 : -1], dtype=X.dtype)
        narrow = np.empty((n, m), dtype=X.dtype)
        for part in row_blocks(n, PROJECTED_ROWS):
            np.matmul(X[part], axes, out=narrow[part])
    tried = np.unique(np.linspace(0, n - 1, TRIED_ROWS).astype(np.int64))
    found = []
    for rows, n_near in ((DenseRows(X), k), (DenseRows(narrow), _candidates(k))):
        found.append(nearest_rows(rows.taken(tried), rows, n_near + 1, n_threads=n_threads)[0])
    kept = np.mean([np.isin(near, among).mean() for near, among in zip(*found, strict=True)])
    return narrow if kept >= KEPT else None


def _candidates(k: int) -> int:
    return CANDIDATES * k + SPARE


@njit(cache=True)
def _reverse(near, fresh, n_links):
    """Up to ``n_links`` rows that have each row as a neighbour, nearest ranks first."""
    n = near.shape[0]
    back = np.full((n, n_links), -1, dtype=np.int32)
    back_fresh = np.zeros((n, n_links), dtype=np.bool_)
    count = np.zeros(n, dtype=np.int32)
    for e in range(min(n_links, near.shape[1])):
        for i in range(n):
            j = near[i, e]
            if j >= 0 and count[j] < n_links:
                back[j, count[j]] = i
                back_fresh[j, count[j]] = fresh[i, e]
                count[j] += 1
    return back, back_fresh


@njit(nogil=True, cache=True)
def _refine(start, stop, X, near, fresh, back, back_fresh, new_near, new_squares, new_fresh):
    links = min(back.shape[1], near.shape[1])
    seen = np.empty(SEEN, dtype=np.int32)
    for i in range(start, stop):
        seen[:] = -1
        _unseen(seen, i)
        for e in range(near.shape[1]):
            _unseen(seen, near[i, e])
        for a in range(2 * links):
            if a < links:
                j, new = near[i, a], fresh[i, a]
            else:
                j, new = back[i, a - links], back_fresh[i, a - links]
            if j < 0:
                continue
            if a >= links and new and _unseen(seen, j):
                _offer(X, i, X, j, new_near, new_squares, new_fresh)
            for b in range(2 * links):
                if b < links:
                    c, also = near[j, b], fresh[j, b]
                else:
                    c, also = back[j, b - links], back_fresh[j, b - links]
                if c >= 0 and (new or also) and _unseen(seen, c):
                    _offer(X, i, X, c, new_near, new_squares, new_fresh)


@njit(nogil=True, cache=True, inline="always")
def _unseen(seen, j):
    """True once for every j; may be true again when nearly all slots are taken."""
    at = (j * 40503) & (SEEN - 1)
    for _ in range(16):
        if seen[at] == j:
            return False
        if seen[at] == -1:
            seen[at] = j
            return True
        at = (at + 1) & (SEEN - 1)
    return True


@njit(nogil=True, cache=True)
def _offer(Q, i, X, j, near, squares, fresh):
    """Put j among the neighbours of row i if it is nearer than the last."""
    k = near.shape[1]
    total = quick_square_distance(Q, i, X, j)
    at = k
    while at > 0 and (
        total < squares[i, at - 1] or (total == squares[i, at - 1] and j < near[i, at - 1])
    ):
        at -= 1
    if at == k:
        return
    for e in range(at):
        if near[i, e] == j:
            return
    for e in range(k - 1, at, -1):
        near[i, e], squares[i, e] = near[i, e - 1], squares[i, e - 1]
        fresh[i, e] = fresh[i, e - 1]
    near[i, at], squares[i, at], fresh[i, at] = j, total, True


@njit(nogil=True, cache=True)
def _search_new(start, stop, Q, X, groups, starts, links, near, squares):
    seen = np.empty(SEEN, dtype=np.int32)
    unused = np.empty(near.shape, dtype=np.bool_)
    for i in range(start, stop):
        for a in range(groups.shape[1]):
            g = groups[i, a]
            for m in range(starts[g], starts[g + 1]):
                _offer(Q, i, X, m, near, squares, unused)
        for _ in range(HOPS_FOR_NEW):
            seen[:] = -1
            reached = near[i, :LINKS].copy()
            for j in near[i]:
                _unseen(seen, j)
            for j in reached:
                if j >= 0:
                    for b in range(min(LINKS, links.shape[1])):
                        c = links[j, b]
                        if c >= 0 and _unseen(seen, c):
                            _offer(Q, i, X, c, near, squares, unused)
