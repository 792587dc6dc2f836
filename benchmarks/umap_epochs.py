"""Whether small data need the 500 epochs that umap-learn gives them.

    python -m benchmarks.umap_epochs

FinslerUMAP in three columns after 200, 300, 400 and 500 epochs, from the same graph, at two
drifts, on generated sets and on three that scikit-learn ships; no other page reports them. Prints
the scores at 500 epochs and what fewer epochs change: the mean over sets, drifts and seeds, with
its 95 % interval. Runs are kept in benchmarks/results/umap_epochs.csv and not repeated.
"""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import numpy as np
from sklearn import datasets
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import scale

from benchmarks.last_column import NEIGHBORS, fitted, gap_of_means, run, scores_of
from benchmarks.ledger import RESULTS, Ledger, read_runs
from benchmarks.summary import values

FULL, FEWER, DRIFTS = 500, (200, 300, 400), (0.01, 0.5)
SCORES = ("nn15", "map_nn15", "trust", "map_trust", "knn5", "map_knn5", "ami", "map_ami")


def mixture(seed: int, n_groups: int, n_features: int, n: int):
    """Gaussian groups whose spreads differ fourfold."""
    rng = np.random.default_rng(seed)
    centres = 2.0 * rng.normal(size=(n_groups, n_features))
    spread = rng.uniform(0.5, 2.0, n_groups)
    group = rng.integers(n_groups, size=n)
    return centres[group] + rng.normal(size=(n, n_features)) * spread[group, None], group


def torus(n: int):
    turn, tube = np.random.default_rng(5).uniform(0, 2 * np.pi, (2, n))
    across = 2 + np.cos(tube)
    return np.column_stack([across * np.cos(turn), across * np.sin(turn), np.sin(tube)])


def standardised(loader):
    X, y = loader(return_X_y=True)
    return scale(X), y


def data_sets():
    """Rows and labels by name."""
    return {
        "10 groups, 20 columns": mixture(1, 10, 20, 1500),
        "30 groups, 40 columns": mixture(2, 30, 40, 1500),
        "8 groups, 10 columns": mixture(3, 8, 10, 5000),
        "breast cancer": standardised(datasets.load_breast_cancer),
        "wine": standardised(datasets.load_wine),
        "iris": standardised(datasets.load_iris),
        "S-curve": (datasets.make_s_curve(2000, noise=0.05, random_state=0)[0], None),
        "torus": (torus(2000), None),
        "Gaussian": (np.random.default_rng(6).normal(size=(2000, 10)), None),
    }


def method(omega_norm: float, epochs: int) -> str:
    return f"{omega_norm:g}, {epochs} epochs"


def scores(problem, knn, *, seed: int, **options) -> dict[str, float]:
    Y = fitted("ours", problem.X, knn, seed, **options).embedding_
    return scores_of(problem, knn, Y) | scores_of(problem, knn, Y[:, :-1], "map_")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(argv)
    ledger = Ledger(RESULTS / "umap_epochs.csv")
    sets = data_sets()
    for name, (X, y) in sets.items():
        problem = SimpleNamespace(name=name, X=X.astype(np.float32), labels=y)
        distances, near = NearestNeighbors(n_neighbors=NEIGHBORS + 1).fit(problem.X).kneighbors()
        near = np.column_stack([np.arange(len(X)), near[:, :NEIGHBORS]])
        distances = np.column_stack([np.zeros(len(X)), distances[:, :NEIGHBORS]])
        knn = near, distances.astype(np.float32)
        for seed in range(options.seeds):
            for omega_norm in DRIFTS:
                for epochs in (*FEWER, FULL):
                    given = {"omega_norm": omega_norm, "n_epochs": epochs}
                    key = name, method(omega_norm, epochs), seed
                    run(ledger, *key, scores, problem, knn, **given)
    runs = read_runs([ledger.path])
    print(f"| score, ω | {FULL} epochs | " + " | ".join(f"{e} epochs" for e in FEWER) + " |")
    print("|" + " --- |" * (len(FEWER) + 2))
    for score in SCORES:
        for omega_norm in DRIFTS:
            full = method(omega_norm, FULL)
            means = [values(runs, name, full, score).mean() for name in sets]
            gaps = [gap_of_means(runs, sets, method(omega_norm, e), full, score) for e in FEWER]
            cells = f"{np.nanmean(means):.4f} | " + " | ".join(gaps)
            print(f"| {score}, {omega_norm:g} | {cells} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
