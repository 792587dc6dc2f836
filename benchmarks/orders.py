"""Orders of nodes: direction of edges held out, and orders that are known from elsewhere.

order   A fifth of the one-way edges is held out; the area under the ROC curve (AUC) of the
        difference of heights says how well their direction is predicted. 0.5 is chance. Nodes that
        an order does not know, because no edge is left to them, have 0.
truth   Chance that a pair of nodes of different stages, layers or classes is in the right order;
        of citations, Spearman's correlation with the month.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.stats import rankdata, spearmanr

from benchmarks.data.digraphs import digraph, strong_part
from benchmarks.data.orders import TRUTHS, import_graph, ordered
from benchmarks.ledger import Ledger
from benchmarks.peers.springrank import springrank
from finsler_ext import FinslerMDS, FinslerUMAP, read_directed
from finsler_ext.directed.potential import direction_auc
from finsler_ext.metrics import potential

__all__ = ["ORDERED", "TRUTHS", "held_out_edges", "right_pairs", "run_order", "run_truth"]

POPULAR = ("scikit-learn", "django", "pandas", "sympy")
ORDERED = (
    "polblogs", "celegans", "cora", "email", "airlines", *TRUTHS,
    *(f"imports:{name}" for name in POPULAR),
)  # fmt: skip
HELD_EDGES = 0.2
DRIFTS = (0.1, 0.3, 0.5, 0.9)


def held_out_edges(graph, seed: int, share: float = HELD_EDGES):
    """The graph without a share of its one-way edges, and the sources and targets of these."""
    rng = np.random.default_rng(seed)
    edges = scipy.sparse.coo_array(graph)
    source, target = edges.coords
    known = scipy.sparse.csr_array(
        (np.ones(edges.nnz), (source, target)), shape=graph.shape
    )  # stored zeros are edges
    one_way = np.flatnonzero(np.asarray(known[target, source]).ravel() == 0)
    out = rng.permutation(one_way)[: int(share * one_way.size)]
    kept = np.ones(edges.nnz, dtype=bool)
    kept[out] = False
    rest = scipy.sparse.coo_array((edges.data[kept], (source[kept], target[kept])), graph.shape)
    return scipy.sparse.csr_array(rest), source[out], target[out]


def degree_difference(strengths) -> np.ndarray:
    """What leaves a node less what enters it."""
    out, into = (np.asarray(strengths.sum(axis=axis)).ravel() for axis in (1, 0))
    return out - into


def umap_height(data, seed: int, **options) -> np.ndarray:
    model = FinslerUMAP(metric="precomputed", random_state=seed, **options)
    return model.fit(data).embedding_[:, -1]


def mds_height(data, seed: int) -> np.ndarray:
    model = FinslerMDS(metric="precomputed", omega_norm=0.9, random_state=seed, n_jobs=-1)
    return model.fit(data).embedding_[:, -1]


RANKS = {
    "SpringRank, α = 0": springrank,
    "SpringRank, α = 1": lambda strengths: springrank(strengths, 1.0),
    "out − in degree": degree_difference,
}


def strengths_of(name: str, data_dir) -> tuple[scipy.sparse.csr_array, str]:
    """Strengths of the edges of a digraph (1 where it has none), and what they are."""
    if name in TRUTHS:
        found = ordered(name, data_dir)
        values = "cost" if found.data.strengths is None else "strength"
        return scipy.sparse.csr_array(found.strengths), values
    if name.startswith("imports:"):
        return import_graph(name.partition(":")[2], data_dir)[0], "cost"
    return strong_part(digraph(name, data_dir), weak=True), "cost"


def run_order(ledger: Ledger, name: str, data_dir, seeds: int) -> None:
    strengths, values = strengths_of(name, data_dir)
    for seed in range(seeds):
        rest, source, target = held_out_edges(strengths, seed)
        data = read_directed(rest, values=values)
        orders = dict(RANKS) | {
            "potential": lambda _, data=data: potential(data).values,
            "potential, ridge auto": lambda _, data=data: potential(data, "auto").values,
            "FinslerUMAP": lambda _, data=data, seed=seed: umap_height(data, seed),
            "FinslerUMAP, ridge auto": lambda _, data=data, seed=seed: umap_height(
                data, seed, ridge="auto"
            ),
            "FinslerMDS, ω = 0.9": lambda _, data=data, seed=seed: mds_height(data, seed),
        }
        for method, order in orders.items():
            if not ledger.has(name, method, seed):
                height = np.nan_to_num(order(rest))
                auc = direction_auc(height[source] - height[target])
                ledger.add(name, method, seed, {"auc": auc, "edges": source.size})


def right_pairs(height, rank) -> float:
    """Chance that a pair with different ranks is in the right order; half for equal heights.

    Examples
    --------
    >>> right_pairs(np.array([3.0, 2.0, 2.0, np.nan]), np.array([1.0, 1.0, 0.0, 0.0]))
    0.75
    """
    known = np.isfinite(height) & np.isfinite(rank)
    height, rank = height[known], rank[known]
    right = total = 0.0
    for level in np.unique(rank):
        above, below = height[rank > level], height[rank == level]
        ranks = rankdata(np.concatenate([above, below]))[: above.size]
        right += ranks.sum() - above.size * (above.size + 1) / 2
        total += above.size * below.size
    return float(right / total)


def run_truth(ledger: Ledger, name: str, data_dir, seeds: int) -> None:
    found = ordered(name, data_dir)
    orders = {
        method: lambda seed, rank=rank: rank(found.strengths) for method, rank in RANKS.items()
    }
    orders["potential"] = lambda seed: potential(found.data).values
    orders["potential, ridge auto"] = lambda seed: potential(found.data, "auto").values
    for omega in DRIFTS:
        orders[f"FinslerUMAP, ω = {omega:g}"] = lambda seed, omega=omega: umap_height(
            found.data, seed, omega_norm=omega
        )
    for method, order in orders.items():
        for seed in range(seeds if method.startswith("Finsler") else 1):
            if ledger.has(name, method, seed):
                continue
            height = np.asarray(order(seed))
            if name == "citations":
                score = spearmanr(height, found.rank, nan_policy="omit").statistic
            else:
                score = right_pairs(height, found.rank)
            ledger.add(name, method, seed, {"right": float(score)})
