"""Applications with a known answer: a brain, two lineages, flights.

    python -m benchmarks.applications worm dentate pancreas flights --data-dir DIR

planted  How many names of neurons out of line are false? Graphs of SpringRank's model with three
         classes, whose heights spread by 0.3 or 0.6 of a step; a node is out of line if its true
         height is nearer to the median of another class. The rule of the worm's page was chosen
         on these, not on the worm.
worm     Chance that two neurons of different classes are in the order sensory, inter, motor.
dentate  Chance that two cells of different stages are in the order of their lineage: 164 of 200
         cells of the dentate gyrus (dentate_gyrus.h5ad of the docs), with the velocity graph
         that scvelo made from all genes. Diffusion pseudotime is told a cell of the first stage,
         and does not read velocities. PAGA
         orders groups: the same chance for two groups of different stages, by paths along its
         arrows (half where it does not say); the other orders by the medians of the groups.
         Needs scvelo.
pancreas The same for 739 cells of the pancreas, the graph being made by scvelo from 50 principal
         components. Shuffled velocities: from principal components for both.
flights  Rank correlation of an order with degrees west, for a tenth of the flights left out at
         random, five times.

Intervals are 95 % over 500 bootstrap resamples of the neurons or cells, or the range over five
draws. Orders without a sign of their own get the better one.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import dijkstra
from scipy.stats import spearmanr

from benchmarks.data import files
from benchmarks.data.orders import ordered
from benchmarks.orders import degree_difference, right_pairs
from benchmarks.peers.mds_peers import radius_distance_mds, slide_vector_mds
from benchmarks.peers.springrank import springrank
from finsler_ext import FinslerMDS, FinslerUMAP
from finsler_ext.directed.potential import pair_potential
from finsler_ext.evidence import velocity_evidence
from finsler_ext.evidence.direction import measured_pairs, potential_error

SEEDS, RESAMPLES, SHUFFLES = 5, 500, 100
EXAMPLES = Path(__file__).parent.parent / "docs" / "examples" / "3_applications"
INTERVALS = {"90 %": 1.645, "95 %": 1.96, "99 %": 2.576}
# The lineage of granule cells in the dentate gyrus (Hochgerner et al. 2018).
GRANULE_CELLS = {
    "Radial Glia-like": 0, "nIPC": 1, "Neuroblast": 2, "Granule immature": 3, "Granule mature": 4,
}  # fmt: skip


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


def planted_classes(seed: int, spread: float, order: float, n: int = 280, degree: float = 10.0):
    """Strengths, classes 0 to 2 and true heights; a large ``order`` leaves few edges upwards."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, size=n, p=[0.3, 0.3, 0.4])
    height = 1.0 - kind + spread * rng.normal(size=n)
    activity = rng.lognormal(0.0, 0.7, size=n)
    rate = np.outer(activity, activity)
    rate *= np.exp(-order / 2 * (height[:, None] - height - 1.0) ** 2)
    np.fill_diagonal(rate, 0.0)
    there = rng.poisson(rate * (n * degree / rate.sum())) > 0
    return there * rng.geometric(0.15, size=(n, n)).astype(float), kind, height


def out_of_line(height, error, kind, width: float) -> np.ndarray:
    """Whether the interval of a height is wholly nearer to the median of another class."""
    median = [np.median(height[kind == k]) for k in range(3)]
    upper, lower = np.mean(median[:2]), np.mean(median[1:])
    least, most = np.array([upper, lower, -np.inf])[kind], np.array([np.inf, upper, lower])[kind]
    return (height + width * error < least) | (height - width * error > most)


def planted(data_dir, graphs: int = 20) -> None:
    print("| spread | order | right pairs | interval | names | of them false | found |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for spread in (0.3, 0.6):
        for order in (0.5, 1.5, 4.0):
            runs: dict[str, list] = {name: [] for name in INTERVALS}
            right = []
            for seed in range(graphs):
                A, kind, height = planted_classes(seed, spread, order)
                graph = scipy.sparse.csr_array(A)
                found = potential_error(measured_pairs(graph, graph))
                known = np.isfinite(found[0])
                kind, height, value, error = (
                    part[known] for part in (kind, height, found[0], found[1])
                )
                right.append(right_pairs(value, -kind.astype(float)))
                truth = out_of_line(height, 0.0, kind, 0.0)
                for name, width in INTERVALS.items():
                    named = out_of_line(value, error, kind, width)
                    runs[name].append((named.sum(), (named & ~truth).sum(), truth.sum()))
            for name, counts in runs.items():
                named, false, true = np.sum(counts, axis=0)
                print(
                    f"| {spread} | {order} | {np.mean(right):.3f} | {name} | {named / graphs:.1f} "
                    f"| {false / max(named, 1):.0%} | {(named - false) / true:.0%} |"
                )


def cells(X, V, cluster, graph=None):
    """AnnData with scvelo's velocity graph, if it is not given, pseudotime and directed PAGA."""
    import anndata
    import scanpy as sc
    import scvelo as scv

    scv.settings.verbosity = 0
    adata = anndata.AnnData(X.copy())
    adata.obs["clusters"] = np.asarray(cluster).astype(str)
    adata.obs["clusters"] = adata.obs["clusters"].astype("category")
    for layer, values in {"Ms": X, "spliced": X, "unspliced": X, "velocity": V}.items():
        adata.layers[layer] = values.copy()
    adata.obsm["X_pca"], adata.obsm["velocity_pca"] = X.copy(), V.copy()
    sc.pp.neighbors(adata, n_neighbors=30, use_rep="X_pca")
    if graph is None:
        scv.tl.velocity_graph(adata, xkey="Ms", n_jobs=1, show_progress_bar=False)
    else:
        adata.uns |= graph
    scv.tl.velocity_pseudotime(adata)
    scv.tl.paga(adata, groups="clusters")
    return adata


def cell_orders(adata, roots) -> dict[str, list[np.ndarray]]:
    import scanpy as sc
    from sklearn.neighbors import NearestNeighbors

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
        "diffusion pseudotime, told a first cell": diffusion,
        "SpringRank, α = 0": [springrank(strengths)],
        "SpringRank, α = 1": [springrank(strengths, 1.0)],
        "potential of the velocities": [velocity_potential(adata, NearestNeighbors)],
    }


def velocity_potential(adata, search) -> np.ndarray:
    """The height that best explains the cosines of velocities with the ways to 15 neighbours."""
    X, V = (np.asarray(adata.obsm[key], dtype=float) for key in ("X_pca", "velocity_pca"))
    near = search(n_neighbors=15).fit(X).kneighbors(return_distance=False)
    source, target = np.repeat(np.arange(len(X)), 15), near.ravel()
    way = X[target] - X[source]
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    heading = V / np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-12)
    skew = -((heading[source] + heading[target]) * way).sum(axis=1) / 2
    return pair_potential(source, target, skew, len(X)).values


def group_pairs(orders: dict, adata, stage: dict[str, int]) -> None:
    """Chance that two groups of different stages are in order: medians of heights, and PAGA."""
    names = [str(name) for name in adata.obs["clusters"].cat.categories]
    known = [i for i, name in enumerate(names) if name in stage]
    pairs = [(a, b) for a in known for b in known if stage[names[a]] < stage[names[b]]]
    # scvelo stores the confidence of j -> i in row i
    arrows = scipy.sparse.csr_array(adata.uns["paga"]["transitions_confidence"]).T
    reached = np.isfinite(dijkstra(scipy.sparse.csr_array(arrows > 0), unweighted=True))
    paga = [0.5 + 0.5 * (int(reached[a, b]) - int(reached[b, a])) for a, b in pairs]
    print(f"\n| order | right pairs of groups, of {len(pairs)} |\n| --- | --- |")
    cluster = adata.obs["clusters"].to_numpy().astype(str)
    for name, heights in orders.items():
        found = []
        for height in heights:
            level = [np.nanmedian(height[cluster == group]) for group in names]
            found.append(np.mean([level[a] > level[b] for a, b in pairs]))
        print(f"| {name} | {np.mean(found):.3f} |")
    said = [reached[a, b] != reached[b, a] for a, b in pairs]
    print(f"| PAGA by scvelo, which orders {np.sum(said)} of them | {np.mean(paga):.3f} |")


def dentate(data_dir) -> None:
    import anndata

    stored = anndata.read_h5ad(EXAMPLES / "dentate_gyrus.h5ad")
    cluster = stored.obs["clusters"].to_numpy().astype(str)
    graph = {key: stored.uns[key] for key in ("velocity_graph", "velocity_graph_neg")}
    lineage(stored.obsm["X_pca"], stored.obsm["velocity_pca"], cluster, GRANULE_CELLS, graph)


def pancreas(data_dir) -> None:
    keys = ("X_pca", "velocity_pca", "lineage_rank", "cluster", "cluster_names")
    stored = files.read("pancreas_velocity", data_dir, keys, route="scvelo.datasets.pancreas()")
    cluster = stored["cluster_names"][stored["cluster"]]
    stage = dict(zip(cluster.tolist(), stored["lineage_rank"].tolist(), strict=True))
    lineage(stored["X_pca"], stored["velocity_pca"], cluster, stage)


def lineage(X, V, cluster, stage: dict[str, int], graph=None) -> None:
    from sklearn.neighbors import NearestNeighbors

    rank = np.array([-float(stage[name]) if name in stage else np.nan for name in cluster])
    rng = np.random.default_rng(0)
    roots = rng.permutation(np.flatnonzero(rank == 0))[:SEEDS]
    for heading, known in ((V, graph), (rng.permutation(V), None)):
        if heading is not V:
            print("\nThe same with velocities shuffled among the cells:\n")
        adata = cells(X, heading, cluster, known)
        orders = cell_orders(adata, roots)
        report(orders, rank)
        group_pairs(orders, adata, stage)
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
        paths = dijkstra(scipy.sparse.csr_array(np.nan_to_num(W)))
        # the other models need a way from every airport to every other
        strong = np.isfinite(paths[0]) & np.isfinite(paths[:, 0])
        paths = paths[np.ix_(strong, strong)]
        slide = slide_vector_mds(paths, 2, random_state=seed)
        radius = radius_distance_mds(paths, 2, random_state=seed).radius
        orders = {
            "FinslerMDS, height": model.embedding_[:, -1],
            "slide vector": spread(-slide.embedding @ slide.slide, strong),
            "radius distance": spread(radius, strong),
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


def spread(values, rows) -> np.ndarray:
    """The values of these rows, and nan for the others."""
    out = np.full(len(rows), np.nan)
    out[rows] = values
    return out


APPLICATIONS = {
    "planted": planted, "worm": worm, "dentate": dentate, "pancreas": pancreas, "flights": flights,
}  # fmt: skip


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
