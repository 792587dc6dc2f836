"""What FinslerTSNE's height and map are worth, against openTSNE in two and three dimensions.

    python -m benchmarks.tsne_quality disk planted digits
    python -m benchmarks.tsne_quality mnist:2000 --data-dir DIR
    python -m benchmarks.tsne_quality mnist:2000 --methods free_0.5 paper_0.5 --data-dir DIR
    python -m benchmarks.tsne_quality mnist:2000 --methods new_0.01 new_0.5 --data-dir DIR
    python -m benchmarks.tsne_quality divergence              final KL: exact, tree, grid, openTSNE

Methods are opentsne_2d, opentsne_3d, finsler_OMEGA (the default height), free_OMEGA, paper_OMEGA
(the rules of arXiv 2603.11396 on 15 equal neighbours), paper_wide_OMEGA (the same on our
affinities), and new_OMEGA, which fits three quarters of the rows and places the others.

Every run is a line of a CSV under benchmarks/results; runs found there are not repeated. The
closing table gives medians, with the paired bootstrap interval of the difference to openTSNE.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.manifold import trustworthiness
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.neighbors import NearestNeighbors

from benchmarks.data import blobs, disk, labelled
from benchmarks.ledger import RESULTS, Ledger, read_runs
from benchmarks.summary import print_medians
from benchmarks.umap_quality import TRUST_SAMPLE
from finsler_ext.metrics import neighborhood_preservation
from finsler_ext.neighbors.exact import exact_neighbors
from finsler_ext.neighbors.nndescent import approximate_neighbors
from finsler_ext.tsne.affinity import DirectedPerplexity, PrecomputedDirected

DRIFTS = (0, 0.001, 0.01, 0.03, 0.1, 0.3, 0.5, 0.9)
METHODS = ("opentsne_2d", "opentsne_3d", *(f"finsler_{omega:g}" for omega in DRIFTS))
DISK_DRIFTS = (0.01, 0.1, 0.5, 0.9)
PLANTED_DRIFTS = (0.1, 0.3, 0.5, 0.7, 0.9)
PLANTED_POINTS = 600
# three times the perplexity
PLANTED_NEIGHBORS = 90
# Share of the rows that are fitted, where the others are placed among them.
FITTED = 0.75


def embed(method: str, X, seed: int):
    """Embedding by name, and the fitted model or an asymmetry to score its height by."""
    kind, _, omega = method.rpartition("_")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "opentsne":
            from openTSNE import TSNE

            gradient = "auto" if omega == "2d" else "bh"
            # its threads wait actively, and for ever on a machine that is busy
            settings = {"random_state": seed, "n_jobs": 1, "negative_gradient_method": gradient}
            return np.asarray(TSNE(int(omega[0]), **settings).fit(X)), None
        from finsler_ext import FinslerTSNE

        if kind in ("finsler", "free"):
            height = "free" if kind == "free" else "auto"
            model = FinslerTSNE(omega_norm=float(omega), height=height, random_state=seed).fit(X)
            return np.asarray(model.embedding_), model.asymmetry_
        return _paper(kind, X, float(omega))


def _paper(kind: str, X, omega_norm: float):
    from benchmarks.paper.methods.paper_tsne import lay_out
    from finsler_ext.asymmetry import Asymmetry

    usual = DirectedPerplexity(X, 30, n_jobs=2)
    P = usual.P
    if kind == "paper":
        near = exact_neighbors(X, 16).indices[:, 1:]
        row = np.repeat(np.arange(len(X)), near.shape[1])
        edges = np.full(near.size, 1.0 / near.size), (row, near.ravel())
        P = scipy.sparse.csr_matrix(edges, shape=2 * (len(X),))
    embedding, _ = lay_out(X, P, 3, omega_norm=omega_norm, n_threads=2)
    return embedding, Asymmetry.of_scale(usual.P, usual.local_scale)


def agreement(Y, labels, start: int = 0) -> float:
    """AMI of k-means with as many clusters as labels."""
    clusters = KMeans(len(np.unique(labels)), n_init=10, random_state=start).fit_predict(Y)
    return adjusted_mutual_info_score(labels, clusters)


def run_real(spec: str, seeds: int, data_dir, ledger: Ledger, methods) -> None:
    name, _, size = spec.partition(":")
    X, y = labelled(name, int(size) if size else None, data_dir)
    search = exact_neighbors if len(X) < 4096 else approximate_neighbors
    near = search(X, 16).indices[:, 1:]
    sample = np.random.RandomState(1).permutation(len(X))[:TRUST_SAMPLE]
    for seed in range(seeds):
        for method in methods:
            if ledger.has(spec, method, seed):
                continue
            if method.startswith("new_"):
                scores = placed(float(method.split("_")[1]), X, seed)
            else:
                Y, asymmetry = embed(method, X, seed)
                scores = _scores(Y, "", X, y, near, sample)
                if asymmetry is not None:
                    scores |= _scores(Y[:, :-1], "_map", X, y, near, sample)
                    scores["sign"] = asymmetry.fidelity(Y, 0.0).sign
            ledger.add(spec, method, seed, scores)
            print(spec, method, seed, {k: round(v, 4) for k, v in scores.items()}, flush=True)


def _scores(Y, of: str, X, y, near, sample) -> dict[str, float]:
    return {
        f"ami{of}": agreement(Y, y),
        f"trust{of}": float(trustworthiness(X[sample], Y[sample], n_neighbors=15)),
        f"knn15{of}": neighborhood_preservation(near, Y),
    }


def placed(omega_norm: float, X, seed: int) -> dict[str, float]:
    """How far heights of new rows leave those of the fitted, and what they follow."""
    from finsler_ext import FinslerTSNE

    rows = np.random.RandomState(seed).permutation(len(X))
    fitted, new = np.split(X[rows], [int(FITTED * len(X))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FinslerTSNE(omega_norm=omega_norm, random_state=seed).fit(fitted)
        old, height = np.asarray(model.embedding_)[:, -1], model.transform(new)[:, -1]
    beyond = np.maximum(np.maximum(old.min() - height, height - old.max()), 0.0)
    distance = NearestNeighbors(n_neighbors=15).fit(fitted).kneighbors(new)[0]
    return {
        "outside": float(np.mean(beyond > 0)),
        "beyond_sd": float(beyond.max() / old.std()),
        "height_scale": float(spearmanr(height, distance.mean(axis=1)).statistic),
        "fitted_height_scale": model.density_height_,
    }


def run_disk(seeds: int, ledger: Ledger) -> None:
    """Heights on the disk against radius and local scale; the order of the rows changes."""
    for n in (300, 1000, 3000):
        points, radius = disk(n)
        for omega in DISK_DRIFTS:
            for seed in range(seeds):
                data, method = f"disk{n}", f"finsler_{omega:g}"
                if ledger.has(data, method, seed):
                    continue
                rows = np.random.RandomState(seed).permutation(n)
                Y, asymmetry = embed(method, points[rows], seed)
                scale = asymmetry.level()
                scores = {
                    "height_radius": spearmanr(Y[:, -1], radius[rows]).statistic,
                    "height_scale": spearmanr(Y[:, -1], scale).statistic,
                    "ceiling": spearmanr(scale, radius[rows]).statistic,
                    "sign": asymmetry.fidelity(Y, 0.0).sign,
                }
                ledger.add(data, method, seed, scores)
                print(data, method, seed, {k: round(v, 4) for k, v in scores.items()}, flush=True)


def run_planted(seeds: int, ledger: Ledger) -> None:
    """A layout with known heights, seen through its affinities q_ij or its directed distances.

    In between: the affinities with every row normalised, and those of the nearest only, as many
    as the distances are given. They tell what the distances lose.
    """
    from finsler_ext import FinslerTSNE
    from finsler_ext.geometry.randers import randers_distances

    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        area = rng.uniform(-15, 15, size=(PLANTED_POINTS, 2))
        truth = np.column_stack([area, rng.uniform(-3, 3, size=PLANTED_POINTS)])
        for omega in PLANTED_DRIFTS:
            D = randers_distances(truth, omega)
            q = 1.0 / (1.0 + D**2)
            np.fill_diagonal(q, 0.0)
            nearest = np.sort(q, axis=1)[:, -PLANTED_NEIGHBORS, None]
            seen = {
                "planted_affinities": q,
                "planted_rows": q / q.sum(axis=1, keepdims=True),
                "planted_near": np.where(q >= nearest, q, 0.0),
                "planted_distances": None,
            }
            model = FinslerTSNE(omega_norm=omega, random_state=seed)
            for data, p in seen.items():
                method = f"finsler_{omega:g}"
                if ledger.has(data, method, seed):
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    if p is not None:
                        model.fit(None, affinities=PrecomputedDirected(p))
                    else:
                        model.set_params(metric="precomputed").fit(D)
                found = np.asarray(model.embedding_)[:, -1]
                scores = {"height_truth": float(spearmanr(found, truth[:, -1]).statistic)}
                ledger.add(data, method, seed, scores)
                print(data, method, seed, scores, flush=True)


def run_divergence(seeds: int, ledger: Ledger, sizes=(2000, 10_000)) -> None:
    """KL of finished layouts, all by the exact sum: against exact descent, and openTSNE.

    Seeds change the jitter of the start only.
    """
    import openTSNE
    from openTSNE.affinity import PerplexityBasedNN

    from finsler_ext.tsne import opentsne
    from finsler_ext.tsne.gradient import FinslerGradient

    for n in sizes:
        X = blobs(n)
        affinities = DirectedPerplexity(X, 30, n_jobs=2)
        judge = FinslerGradient(0.5, "exact")
        for seed in range(seeds):
            for data, method in (
                (f"kl{n}", "exact"), (f"kl{n}", "bh"),
                (f"kl{n}_2d", "exact"), (f"kl{n}_2d", "bh"), (f"kl{n}_2d", "fft"),
            ):  # fmt: skip
                if ledger.has(data, method, seed):
                    continue
                model = opentsne.OpenFinslerTSNE(
                    2 if data.endswith("2d") else 3,
                    random_state=seed,
                    negative_gradient_method=method,
                    height="free",
                )
                Y = np.asarray(model.fit(X, affinities=affinities))
                kl, _ = judge(Y, affinities.P, n_jobs=2, should_eval_error=True)
                ledger.add(data, method, seed, {"kl": kl})
                print(data, method, seed, round(kl, 5), flush=True)
    X, _ = labelled("digits", None, None)
    affinities = PerplexityBasedNN(X, 30)
    judge = FinslerGradient(0.0, "exact")
    for seed in range(seeds):
        start = openTSNE.initialization.pca(X, 2, random_state=seed)
        for method in ("opentsne_default", "opentsne_theta_0.2", "omega_0"):
            if ledger.has("kl_digits_2d", method, seed):
                continue
            if method == "omega_0":
                model = opentsne.OpenFinslerTSNE(2, omega_norm=0.0)
            else:
                theta = 0.5 if method.endswith("default") else 0.2
                model = openTSNE.TSNE(theta=theta, negative_gradient_method="bh", n_jobs=2)
            Y = np.asarray(model.fit(affinities=affinities, initialization=start))
            kl, _ = judge(Y, affinities.P, should_eval_error=True)
            ledger.add("kl_digits_2d", method, seed, {"kl": kl})
            print("digits 2-D", method, seed, round(kl, 5), flush=True)


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tsne_quality", description=__doc__)
    parser.add_argument("data", nargs="+", help="disk, planted, divergence, digits, or name[:size]")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data-dir")
    parser.add_argument("--results", type=Path, default=RESULTS / "tsne_quality.csv")
    options = parser.parse_args(argv)
    ledger = Ledger(options.results)
    tasks = {"disk": run_disk, "planted": run_planted, "divergence": run_divergence}
    for spec in options.data:
        if spec in tasks:
            tasks[spec](options.seeds, ledger)
        else:
            run_real(spec, options.seeds, options.data_dir, ledger, options.methods)
    print_medians(read_runs([options.results]), ("opentsne_2d", "opentsne_3d"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
