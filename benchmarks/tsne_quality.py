"""What FinslerTSNE's height and map are worth, against openTSNE in two and three dimensions.

    python -m benchmarks.tsne_quality labelled --seeds 3 --data-dir DIR     ten sets with classes
    python -m benchmarks.tsne_quality mnist:2000 --methods free_0.5 paper_0.5 --data-dir DIR
    python -m benchmarks.tsne_quality disk planted
    python -m benchmarks.tsne_quality divergence              final KL: exact, tree, grid, openTSNE

Methods are opentsne_2d, opentsne_3d, finsler_OMEGA (the default height), free_OMEGA, paper_OMEGA
(the rules of arXiv 2603.11396 on 15 equal neighbours), paper_wide_OMEGA (the same on our
affinities), and new_OMEGA, which fits three quarters of the rows and places the others.

Every run is a line of a CSV under benchmarks/results; runs found there are not repeated. Seeds
change the start and the neighbour search, never the rows. Behind is a set where the median paired
difference to openTSNE is below -0.005 and its bootstrap interval below 0.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse
from scipy.stats import spearmanr
from sklearn.neighbors import NearestNeighbors

from benchmarks.data import blobs, disk, labelled
from benchmarks.last_column import (
    LABELLED,
    Problem,
    commit,
    gap_of_means,
    print_behind,
    scores_of,
    table,
)
from benchmarks.ledger import RESULTS, Ledger, read_runs
from benchmarks.summary import print_medians
from finsler_ext.neighbors.exact import exact_neighbors
from finsler_ext.tsne.affinity import DirectedPerplexity, PrecomputedDirected

DRIFTS = (0, 0.01, 0.1, 0.5)
OPENTSNE, OURS = ("opentsne_2d", "opentsne_3d"), [f"finsler_{omega:g}" for omega in DRIFTS]
METHODS = (*OPENTSNE, *OURS, "new_0.01", "new_0.5")
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


def run_real(spec: str, rows: int, seeds: int, data_dir, ledger: Ledger, methods) -> str:
    problem = Problem(spec, rows, data_dir)
    name, X, knn = problem.name, problem.X, problem.knn()
    for seed in range(seeds):
        for method in methods:
            if ledger.has(name, method, seed):
                continue
            if method.startswith("new_"):
                scores = placed(float(method.split("_")[1]), X, seed)
            else:
                Y, asymmetry = embed(method, X, seed)
                scores = scores_of(problem, knn, Y)
                if asymmetry is not None:
                    scores |= scores_of(problem, knn, Y[:, :-1], "map_")
                    scores["sign"] = asymmetry.fidelity(Y, 0.0).sign
            ledger.add(name, method, seed, scores, note=commit())
            print(name, method, seed, {k: round(v, 4) for k, v in scores.items()}, flush=True)
    return name


def print_real(runs, names, methods) -> None:
    flat_control, control = OPENTSNE
    ours = [method for method in methods if method not in OPENTSNE and "new_" not in method]
    for score in ("nn15", "trust", "knn5", "ami"):
        table(runs, names, [control, *ours], score, f"All columns, {score}")
        theirs = runs.method.eq(flat_control) | runs.score.str.startswith("map_")
        flat = runs[theirs].assign(score=runs.score.str.removeprefix("map_"))
        table(flat, names, [flat_control, *ours], score, f"Map columns, {score}")
        print_behind(runs, names, ours, score, flat_control, control)
        for method in ours:
            full = gap_of_means(runs, names, method, control, score)
            of_map = gap_of_means(flat, names, method, flat_control, score)
            print(f"{method} less {control}: {full}; map less {flat_control}: {of_map}")
    table(runs, names, ours, "sign", "In-sample sign of the height")
    new = [method for method in methods if method.startswith("new_")]
    table(runs, names, new, "outside", "Share of new heights outside the training range")
    table(runs, names, new, "beyond_sd", "The farthest of them, standard deviations")


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
    parser.add_argument(
        "data",
        nargs="+",
        help="labelled (ten sets), name[:size], disk, planted or divergence",
    )
    parser.add_argument("--rows", type=int, default=1500, help="of labelled data without a size")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data-dir")
    parser.add_argument("--results", type=Path, default=RESULTS / "tsne_quality.csv")
    options = parser.parse_args(argv)
    ledger = Ledger(options.results)
    tasks = {"disk": run_disk, "planted": run_planted, "divergence": run_divergence}
    names = []
    for spec in options.data:
        if spec in tasks:
            tasks[spec](options.seeds, ledger)
            continue
        for name in LABELLED if spec == "labelled" else [spec]:
            names.append(run_real(name, options.rows, options.seeds, options.data_dir, ledger,
                                  options.methods))  # fmt: skip
    runs = read_runs([options.results])
    print_medians(runs[~runs.data.isin(names)], ())
    if names:
        print_real(runs, names, options.methods)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
