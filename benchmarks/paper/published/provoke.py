"""Attempts to make umap-learn fail as in the paper's tables, on small data.

Each attempt is a way to run UMAP or to score it. The ledger keeps AMI, NMI, FMI, silhouette and
Davies–Bouldin of every run, as benchmarks/paper/results/provoked.csv.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.neighbors import NearestNeighbors

from benchmarks.ledger import FIELDS, Ledger
from benchmarks.paper import RESULTS
from benchmarks.paper.scores import agreement_scores, clusters, separation_scores

__all__ = ["ATTEMPTS", "DATA", "LEDGER", "islands", "main", "neighbors"]

LEDGER = RESULTS / "provoked.csv"
SEEDS = 30
NEIGHBORS = 15
KEPT = ("ami", "nmi", "fmi", "silhouette", "davies_bouldin")


def islands() -> tuple[np.ndarray, np.ndarray]:
    """Ten classes far apart: their neighbour graph falls into ten components."""
    return make_blobs(600, 20, centers=10, cluster_std=0.5, random_state=0)


def _iris():
    found = load_iris()
    return found.data, found.target


def _digits():
    found = load_digits()
    return found.data[:600], found.target[:600]


DATA: dict[str, Callable] = {"islands": islands, "iris": _iris, "digits:600": _digits}


def neighbors(X) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours and distances as umap-learn takes them, each point first of its own."""
    distances, found = NearestNeighbors(n_neighbors=NEIGHBORS).fit(X).kneighbors(X)
    return found.astype(np.int32), distances.astype(np.float32)


def _umap(X, seed, **options):
    import warnings

    import umap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return umap.UMAP(random_state=seed, **options).fit_transform(X)


def _random_graph(X, seed):
    """A layout of neighbours that are drawn at random: no clusters at all."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, len(X), (len(X), NEIGHBORS), dtype=np.int32)
    drawn[:, 0] = np.arange(len(X))
    distances = np.sort(rng.random(drawn.shape, dtype=np.float32), axis=1)
    distances[:, 0] = 0
    return _umap(X, seed, precomputed_knn=(drawn, distances))


def _other_order(X, seed):
    """Neighbours of the same rows in another order: good clusters, with the labels of others."""
    order = np.random.default_rng(seed).permutation(len(X))
    return _umap(X, seed, precomputed_knn=neighbors(X[order]))


# Name: what is run, from rows and a seed.
ATTEMPTS: dict[str, Callable] = {
    "spectral": _umap,
    "random": lambda X, seed: _umap(X, seed, init="random"),
    "unseeded": lambda X, seed: _umap(X, None, n_jobs=-1),
    "other_order": _other_order,
    "random_graph": _random_graph,
}


def run(data: str, attempt: str, seed: int) -> dict[str, float]:
    X, labels = DATA[data]()
    Y = np.asarray(ATTEMPTS[attempt](X, seed), dtype=np.float64)
    found = clusters(Y, labels)
    scores = agreement_scores(found, labels) | separation_scores(Y, found)
    return {name: scores[name] for name in KEPT}


def main(path: Path = LEDGER, seeds: int = SEEDS, data=tuple(DATA)) -> None:
    """Run what is missing, and print how many runs of each kind fail."""
    import pandas as pd

    ledger = Ledger(path)
    for name in data:
        for attempt in ATTEMPTS:
            for seed in range(seeds):
                if not ledger.has(name, attempt, seed):
                    ledger.add(name, attempt, seed, run(name, attempt, seed))
    runs = pd.read_csv(path, usecols=list(FIELDS))
    table = runs.pivot_table(index=["data", "method"], columns="score", values="value", sort=False)
    ami = runs[runs.score == "ami"]
    table["runs"] = ami.groupby(["data", "method"]).size()
    table["failed"] = ami[ami.value < 0.1].groupby(["data", "method"]).size()
    print(table.fillna({"failed": 0}).round(3).to_string())
