"""What FinslerMDS's height and map are worth, against other models of directed data.

    python -m benchmarks.mds_quality disk
    python -m benchmarks.mds_quality flights morse polblogs velocity cities --data-dir DIR

Every score of every run is a line of benchmarks/results/mds_quality.csv; runs found there are not
repeated. The data folder holds npz files:

    flights_us_2015jan       D: air minutes between airports (rows are sources); latlon
    morse_rothkopf           D: dissimilarity of Morse signals, one minus confusions
    polblogs                 D_scc: clicks between blogs of the strongly connected part
    sc_velocity_cellrank200  T: transition probabilities between cells; latent_time
    us_cities_geonames       X: latitude and longitude, largest cities first; elevation_m
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial import procrustes
from scipy.stats import spearmanr

from benchmarks.data import disk, load
from benchmarks.ledger import RESULTS, Ledger, read_runs
from benchmarks.peers.mds_peers import radius_distance_mds, slide_vector_mds, symmetric_mds
from finsler_ext import FinslerMDS
from finsler_ext.geometry.randers import randers_distances

DISKS = (300, 1000, 3000)
DISK_DRIFTS = (0.01, 0.1, 0.5, 0.9)
N_CITIES = 2000
# What heights of directed data are compared with.
COMPARED = ("longitude", "latent_time")
PEERS = {
    "symmetric": symmetric_mds,
    "slide_vector": slide_vector_mds,
    "radius_distance": radius_distance_mds,
}


def rank(a, b) -> float:
    return float(spearmanr(a, b).statistic)


def fit(X, **options) -> FinslerMDS:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FinslerMDS(n_jobs=-1, random_state=0, **options).fit(X)


def fit_scores(model: FinslerMDS) -> dict[str, float]:
    history = model.stress_history_
    return {
        "stress": model.normalized_stress_,
        "iterations": model.n_iter_,
        "largest_rise": max(0.0, float(np.diff(history).max(initial=0.0)) / model.stress_),
        "omega": model.omega_norm_,
        "gradient_share": model.gradient_share_,
        "sign": model.skew_fidelity_.sign,
        "rank": model.skew_fidelity_.rank,
        "explained": model.skew_fidelity_.explained,
    }


def explained_skew(D, shown) -> float:
    """1 − Σ(a − b)²/Σa² of D_ij − D_ji and the model's."""
    a, b = D - D.T, shown - shown.T
    return float(1 - ((a - b) ** 2).sum() / (a**2).sum())


# ------------------------------------------------------------------ disk


def run_disk(ledger: Ledger, seeds: int, sizes) -> None:
    for n in sizes:
        X, radius = disk(n)
        for seed in range(seeds):
            rows = np.random.RandomState(seed).permutation(n)
            jobs = [(f"smacof_{w:g}", {"omega_norm": w}) for w in DISK_DRIFTS]
            jobs += [("gd_0.5", {"omega_norm": 0.5, "method": "gd"})]
            for method, options in jobs:
                if not ledger.has(f"disk{n}", method, seed):
                    model = fit(X[rows], **options)
                    scores = disk_scores(model, X[rows], radius[rows])
                    ledger.add(f"disk{n}", method, seed, scores)


def disk_scores(model, X, radius) -> dict[str, float]:
    D, height = model.dissimilarity_matrix_, model.embedding_[:, -1]
    level = (D.sum(axis=0) - D.sum(axis=1)) / (2 * len(D))
    return {
        "height_radius": rank(height, radius),
        "height_row_means": rank(height, level),
        "height_scale": model.density_height_,
        "ceiling_scale_radius": rank(model.local_scale_, radius),
        "ceiling_row_means_radius": rank(level, radius),
        "procrustes": procrustes(X, model.embedding_[:, :2])[2],
    } | fit_scores(model)


# ------------------------------------------------------------------ directed data


def directed_data(name: str, data_dir):
    """Directed dissimilarities, and what the height might be compared with."""
    data = load(name, data_dir=data_dir)
    return data.X, {what: data.truth[what] for what in COMPARED if what in data.truth}


def run_directed(name: str, ledger: Ledger, data_dir) -> None:
    D, known = directed_data(name, data_dir)
    for m in (2, 3):
        for method, peer in PEERS.items():
            if not ledger.has(name, f"{method}_{m}d", 0):
                result = peer(D, m)
                scores = {
                    "stress": result.normalized_stress,
                    "explained": explained_skew(D, result.distances()),
                }
                ledger.add(name, f"{method}_{m}d", 0, scores)
        for drift in ("auto", 0.0, 0.05, 0.1, 0.15, 0.3):
            method = f"finsler_{drift}_{m}d" if drift == "auto" else f"finsler_{drift:g}_{m}d"
            if ledger.has(name, method, 0):
                continue
            model = fit(D, n_components=m, omega_norm=drift, metric="precomputed")
            scores = fit_scores(model)
            scores["explained"] = explained_skew(
                D, randers_distances(model.embedding_, model.omega_norm_)
            )
            for what, values in known.items():
                usable = np.isfinite(values)
                height = model.embedding_[usable, -1]
                scores[f"r_{what}"] = float(np.corrcoef(height, values[usable])[0, 1])
            ledger.add(name, method, 0, scores)


# ------------------------------------------------------------------ cities


def run_cities(ledger: Ledger, data_dir) -> None:
    cities = load(f"us_cities:{N_CITIES}", data_dir=data_dir)
    X, elevation = cities.X, cities.truth["elevation"]
    for scale in ("mean", "none", "kth", "umap", "perplexity"):
        for drift in (0.1, 0.5, "auto"):
            method = f"{scale}_{drift}"
            if ledger.has("cities", method, 0):
                continue
            model = fit(X, omega_norm=drift, source_scale=scale)
            height = model.embedding_[:, -1]
            spacing = model._known.neighbors.distances[:, 1:].mean(axis=1)
            scores = {
                "height_scale": rank(height, spacing),
                "height_elevation": rank(height, elevation),
                "scale_elevation": rank(spacing, elevation),
                "procrustes": procrustes(X, model.embedding_[:, :2])[2],
            }
            ledger.add("cities", method, 0, scores | fit_scores(model))


# ------------------------------------------------------------------ report


def report(runs: pd.DataFrame) -> None:
    for data, found in runs.groupby("data", sort=False):
        print(f"\n{data}")
        for method, scores in found.groupby("method", sort=False):
            medians = scores.groupby("score", sort=False).value.median()
            print(f"  {method:20s} " + "  ".join(f"{s} {v:.4g}" for s, v in medians.items()))


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mds_quality", description=__doc__)
    parser.add_argument(
        "data", nargs="*", help="disk, flights, morse, polblogs, velocity, cities; none: report"
    )
    parser.add_argument("--seeds", type=int, default=3, help="shuffles of the rows of the disk")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(DISKS), help="of the disk")
    parser.add_argument("--data-dir")
    parser.add_argument("--results", type=Path, default=RESULTS / "mds_quality.csv")
    options = parser.parse_args(argv)
    ledger = Ledger(options.results)
    for name in options.data:
        if name == "disk":
            run_disk(ledger, options.seeds, options.sizes)
        elif name == "cities":
            run_cities(ledger, options.data_dir)
        elif name in ("flights", "morse", "polblogs", "velocity"):
            run_directed(name, ledger, options.data_dir)
        else:
            parser.error(f"unknown data {name!r}")
    report(read_runs([options.results]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
