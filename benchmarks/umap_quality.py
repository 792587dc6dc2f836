"""What FinslerUMAP's height and map are worth, against UMAP in two and three dimensions.

    python -m benchmarks.umap_quality disk
    python -m benchmarks.umap_quality feature
    python -m benchmarks.umap_quality digits mnist:5000 mnist:10000 --data-dir DIR

Every run is a line of a CSV under benchmarks/results; runs found there are not repeated.
The closing table gives medians, with the paired bootstrap interval of the difference to
each UMAP. Methods of one data set share one neighbour graph.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.manifold import trustworthiness
from sklearn.metrics import adjusted_mutual_info_score

from benchmarks.data import disk, labelled
from benchmarks.ledger import RESULTS, Ledger, read_runs
from benchmarks.summary import print_medians
from finsler_ext.metrics import neighborhood_preservation
from finsler_ext.neighbors.exact import exact_neighbors
from finsler_ext.neighbors.nndescent import approximate_neighbors

# Trustworthiness compares all pairs; on more points than this a fixed sample is scored.
TRUST_SAMPLE = 2000
CONTROLS = ("umap_2d", "umap_3d")
METHODS = (*CONTROLS, "omega_0", "finsler_0.5")


def embed(method: str, X, seed: int, knn):
    """A fitted model by name: umap_2d, umap_3d, omega_0, finsler_OMEGA."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method.startswith("umap"):
            from umap import UMAP

            model = UMAP(n_components=int(method[5]), random_state=seed, precomputed_knn=knn)
        else:
            from finsler_ext import FinslerUMAP

            omega = float(method.split("_")[1])
            model = FinslerUMAP(omega_norm=omega, random_state=seed, precomputed_knn=knn)
        return model.fit(X)


def real_scores(model, X, y, knn, sample) -> dict[str, float]:
    Y = model.embedding_
    clusters = KMeans(len(np.unique(y)), n_init=10, random_state=0).fit_predict(Y)
    scores = {
        "ami": adjusted_mutual_info_score(y, clusters),
        "trust": trustworthiness(X[sample], Y[sample], n_neighbors=15),
        "knn15": neighborhood_preservation(knn[0][:, 1:16], Y),
    }
    if hasattr(model, "skew_fidelity_"):
        scores["sign"] = model.skew_fidelity_.sign
    return scores


def run_real(spec: str, seeds: int, data_dir, ledger: Ledger) -> None:
    name, _, size = spec.partition(":")
    X, y = labelled(name, int(size) if size else None, data_dir)
    if len(X) < 4096:
        found = exact_neighbors(X, 16)
    else:
        found = approximate_neighbors(X, 16, random_state=0)
    graph = (found.indices[:, :15].copy(), found.distances[:, :15].copy(), None)
    sample = np.random.RandomState(1).permutation(len(X))[:TRUST_SAMPLE]
    for seed in range(seeds):
        for method in METHODS:
            if ledger.has(spec, method, seed):
                continue
            started = time.perf_counter()
            model = embed(method, X, seed, tuple(None if g is None else g.copy() for g in graph))
            seconds = time.perf_counter() - started
            scores = real_scores(model, X, y, (found.indices,), sample) | {"seconds": seconds}
            ledger.add(spec, method, seed, scores)
            print(spec, method, seed, {k: round(v, 4) for k, v in scores.items()}, flush=True)


def run_disk(seeds: int, ledger: Ledger) -> None:
    """Heights on the disk, with rows shuffled, sorted and reversed: order must not matter."""
    for n in (300, 1000, 3000):
        points, radius = disk(n)
        orders = {
            "shuffled": np.random.RandomState(0).permutation(n),
            "sorted": np.arange(n),
            "reversed": np.arange(n)[::-1],
        }
        for omega in (0.01, 0.1, 0.5, 0.9):
            for seed in range(seeds):
                for order, rows in orders.items():
                    if order != "shuffled" and omega != 0.5:
                        continue
                    data, method = f"disk{n}_{order}", f"finsler_{omega:g}"
                    if ledger.has(data, method, seed):
                        continue
                    model = embed(method, points[rows], seed, (None, None, None))
                    level = model.embedding_[:, -1]
                    scores = {
                        "height_radius": spearmanr(level, radius[rows]).statistic,
                        "height_scale": model.density_height_,
                        "ceiling": spearmanr(model.local_scale_, radius[rows]).statistic,
                        "sign": model.skew_fidelity_.sign,
                    }
                    ledger.add(data, method, seed, scores)


FEATURES = {
    "bump": lambda x, y: 3 * np.exp(-10 * ((x - 0.5) ** 2 + (y - 0.5) ** 2)),
    "ramp1": lambda x, y: x,
    "ramp2": lambda x, y: 2 * x,
    "ramp5": lambda x, y: 5 * x,
    "wave": lambda x, y: np.sin(6 * x) * np.cos(6 * y),
}


def run_feature(seeds: int, ledger: Ledger) -> None:
    """Heights from a smooth log scale over a uniform square."""
    from finsler_ext import FinslerUMAP

    for n in (400, 2000):
        for seed in range(seeds):
            X = np.random.default_rng(seed).uniform(size=(n, 2)).astype(np.float32)
            for name, log_scale in FEATURES.items():
                if ledger.has(f"feature{n}", name, seed):
                    continue
                scale = np.exp(log_scale(*X.T))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = FinslerUMAP(local_scale=scale, random_state=seed).fit(X)
                scores = {
                    "height_feature": spearmanr(model.embedding_[:, -1], scale).statistic,
                    "sign": model.skew_fidelity_.sign,
                }
                ledger.add(f"feature{n}", name, seed, scores)


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.umap_quality", description=__doc__)
    parser.add_argument(
        "data", nargs="*", help="disk, feature, digits, NAME or NAME:SIZE; none: report"
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--data-dir")
    parser.add_argument("--results", type=Path, default=RESULTS / "umap_quality.csv")
    options = parser.parse_args(argv)
    ledger = Ledger(options.results)
    for spec in options.data:
        if spec == "disk":
            run_disk(options.seeds, ledger)
        elif spec == "feature":
            run_feature(options.seeds, ledger)
        else:
            run_real(spec, options.seeds, options.data_dir, ledger)
    print_medians(read_runs([options.results]), CONTROLS)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
