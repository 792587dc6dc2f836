"""Applications with a known answer: a brain, a lineage, flights.

    python -m benchmarks.applications worm lineage flights --data-dir DIR

worm     Chance that two neurons of different classes are in the order sensory, inter, motor.
lineage  Chance that two cells of different stages are in the order of their lineage. All methods
         read velocities in 50 principal components; diffusion pseudotime is told a ductal cell.
flights  Rank correlation of an order with degrees west, for a tenth of the flights left out at
         random, five times.

Intervals are 95 % over 500 bootstrap resamples of the neurons or cells, or the range over five
draws. Orders without a sign of their own get the better one.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import dijkstra
from scipy.stats import spearmanr

from benchmarks.data import files
from benchmarks.data.orders import ordered
from benchmarks.orders import degree_difference, right_pairs
from benchmarks.peers.springrank import springrank
from finsler_ext import FinslerMDS, FinslerUMAP
from finsler_ext.evidence import velocity_evidence

SEEDS, RESAMPLES, SHUFFLES = 5, 500, 100


def processing_depth(A: np.ndarray) -> np.ndarray:
    """z with L z = b, b_i = Σ_j w_ij sign(A_ij − A_ji), w = (A + Aᵀ)/2 (Varshney et al. 2011)."""
    w = (A + A.T) / 2
    return np.linalg.pinv(np.diag(w.sum(axis=1)) - w) @ (w * np.sign(A - A.T)).sum(axis=1)


def fiedler(A: np.ndarray) -> np.ndarray:
    w = A + A.T
    scale = 1 / np.sqrt(w.sum(axis=1))
    laplacian = np.eye(len(A)) - scale[:, None] * w * scale
    return scale * np.linalg.eigh(laplacian)[1][:, 1]


def umap_of_paths(A: np.ndarray, seed: int) -> np.ndarray:
    """First axis of UMAP of shortest paths, there and back averaged."""
    import umap

    paths = dijkstra(scipy.sparse.csr_array(A > 0), unweighted=True)
    paths[np.isinf(paths)] = 2 * paths[np.isfinite(paths)].max()
    map_ = umap.UMAP(metric="precomputed", random_state=seed).fit_transform((paths + paths.T) / 2)
    map_ = map_ - map_.mean(axis=0)
    return map_ @ np.linalg.svd(map_, full_matrices=False)[2][0]


def report(orders: dict, rank: np.ndarray) -> None:
    """A row per method: score, and its interval over resampled rows; seeds are averaged."""
    rng = np.random.default_rng(0)
    draws = [rng.integers(len(rank), size=len(rank)) for _ in range(RESAMPLES)]
    print("| order | right pairs | 95 % interval |\n| --- | --- | --- |")
    for name, heights in orders.items():
        scores = [right_pairs(h, rank) for h in heights]
        boot = [right_pairs(heights[k % len(heights)][d], rank[d]) for k, d in enumerate(draws)]
        low, high = np.quantile(boot, [0.025, 0.975])
        print(f"| {name} | {np.mean(scores):.3f} | {low:.3f} to {high:.3f} |", flush=True)


def better_sign(height, rank) -> np.ndarray:
    return height if right_pairs(height, rank) >= 0.5 else -height


def worm(data_dir) -> None:
    found = ordered("worm", data_dir)
    A, rank = np.asarray(found.strengths.todense(), dtype=float), found.rank
    np.fill_diagonal(A, 0.0)
    fits = [
        FinslerUMAP(metric="precomputed", omega_norm=0.9, random_state=seed).fit(found.data)
        for seed in range(SEEDS)
    ]
    report(
        {
            "FinslerUMAP, height": [fit.embedding_[:, -1] for fit in fits],
            "SpringRank, α = 0, and trophic levels": [springrank(found.strengths)],
            "SpringRank, α = 1": [springrank(found.strengths, 1.0)],
            "out − in degree": [degree_difference(found.strengths)],
            "processing depth": [processing_depth(A)],
            "Fiedler vector, better sign": [better_sign(fiedler(A), rank)],
            "UMAP of shortest paths, better sign": [
                better_sign(umap_of_paths(A, seed), rank) for seed in range(SEEDS)
            ],
        },
        rank,
    )
    print(f"\nevidence: {fits[0].evidence_}")


def cells(X, V):
    """AnnData with scvelo's velocity graph and pseudotime."""
    import anndata
    import scanpy as sc
    import scvelo as scv

    scv.settings.verbosity = 0
    adata = anndata.AnnData(X.copy())
    for layer, values in {"Ms": X, "spliced": X, "unspliced": X, "velocity": V}.items():
        adata.layers[layer] = values.copy()
    adata.obsm["X_pca"], adata.obsm["velocity_pca"] = X.copy(), V.copy()
    sc.pp.neighbors(adata, n_neighbors=30, use_rep="X_pca")
    scv.tl.velocity_graph(adata, xkey="Ms", n_jobs=1, show_progress_bar=False)
    scv.tl.velocity_pseudotime(adata)
    return adata


def cell_orders(adata, roots) -> dict[str, list[np.ndarray]]:
    import scanpy as sc

    import finsler_ext.scanpy as fsc
    from finsler_ext import read_directed

    heights = []
    for seed in range(SEEDS):
        fsc.velocity(adata, random_state=seed)
        heights.append(adata.obs["finsler_velocity_height"].to_numpy())
    sc.tl.diffmap(adata)
    diffusion = []
    for root in roots:
        adata.uns["iroot"] = int(root)
        sc.tl.dpt(adata)
        diffusion.append(-adata.obs["dpt_pseudotime"].to_numpy())
    strengths = read_directed(adata).strengths
    return {
        "fsc.velocity, height": heights,
        "scvelo velocity pseudotime": [-adata.obs["velocity_pseudotime"].to_numpy()],
        "diffusion pseudotime, told a ductal cell": diffusion,
        "SpringRank, α = 0": [springrank(strengths)],
        "SpringRank, α = 1": [springrank(strengths, 1.0)],
    }


def lineage(data_dir) -> None:
    from sklearn.neighbors import NearestNeighbors

    keys = ("X_pca", "velocity_pca", "lineage_rank", "cluster")
    stored = files.read("pancreas_velocity", data_dir, keys, route="scvelo.datasets.pancreas()")
    X, V, stage = stored["X_pca"], stored["velocity_pca"], stored["lineage_rank"]
    rng = np.random.default_rng(0)
    roots = rng.permutation(np.flatnonzero(stored["cluster"] == 0))[:SEEDS]
    rank = -stage.astype(float)
    report(cell_orders(cells(X, V), roots), rank)
    print("\nThe same with velocities shuffled among the cells:\n")
    report(cell_orders(cells(X, rng.permutation(V)), roots), rank)
    near = NearestNeighbors(n_neighbors=15).fit(X).kneighbors(return_distance=False)
    called = [
        velocity_evidence(near, X, rng.permutation(V)).more_than_chance for _ in range(SHUFFLES)
    ]
    print(f"\nevidence: {velocity_evidence(near, X, V)}")
    print(f"shuffled {SHUFFLES} times, it abstains in {1 - np.mean(called):.0%}")


def flights(data_dir) -> None:
    keys = ("W_direct", "latlon")
    stored = files.read("flights_us_2015jan", data_dir, keys, route="US BTS on-time performance")
    west = -stored["latlon"][:, 1]
    scores: dict[str, list[float]] = {}
    for seed in range(SEEDS):
        W = stored["W_direct"].astype(np.float64)
        W[np.random.default_rng(seed).uniform(size=W.shape) < 0.1] = np.nan
        model = FinslerMDS(2, metric="precomputed", omega_norm="auto", missing="geodesic")
        model.set_params(random_state=seed).fit(W)
        there = np.isfinite(W) & np.isfinite(W.T)
        skew = np.where(there, W - W.T, 0.0)
        orders = {
            "FinslerMDS, height": model.embedding_[:, -1],
            "potential_": model.potential_,
            # what it costs more to reach than to leave
            "mean minutes in − out": -skew.sum(axis=1) / np.maximum(there.sum(axis=1), 1),
        }
        for name, order in orders.items():
            score = spearmanr(order, west, nan_policy="omit").statistic
            scores.setdefault(name, []).append(float(score))
    print("| order | Spearman with degrees west, mean | range |\n| --- | --- | --- |")
    for name, runs in scores.items():
        print(f"| {name} | {np.mean(runs):.3f} | {min(runs):.3f} to {max(runs):.3f} |")


APPLICATIONS = {"worm": worm, "lineage": lineage, "flights": flights}


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+", choices=APPLICATIONS)
    parser.add_argument("--data-dir")
    options = parser.parse_args(argv)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in options.names:
            print(f"### {name}\n")
            APPLICATIONS[name](options.data_dir)
            print()


if __name__ == "__main__":
    main()
