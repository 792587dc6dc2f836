"""Does "auto" find a drift that was planted, and the number of columns?

    python -m benchmarks.planted_drift
    python -m benchmarks.planted_drift --seeds 1 --drifts 0.3 --sizes 60

Points in a plane with the drift in it, or in a box whose height the drift runs along; directed
distances with noise, 30 % of the ordered pairs unknown; and lists of the nearest targets of every
point. FinslerMDS(n_components="auto", omega_norm="auto") is told nothing else. Each line has

    error     largest relative error of the drift over the seeds
    columns   how many runs chose the right number of columns
    height    lowest correlation of the height with the true one
    cost      most iterations of a search for the drift with the true number of columns, in units
              of those of one fit at the drift it found
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from finsler_ext import FinslerMDS
from finsler_ext.geometry.randers import randers_distances
from finsler_ext.mds import drift as search

EXTENT = {"planar": (20, 40), "height": (40, 20, 10)}
MISSING = 0.3


def planted(kind: str, omega: float, n: int, noise: float, seed: int):
    """Points, the last column being along the drift, and their noisy directed distances."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(n, len(EXTENT[kind]))) * EXTENT[kind]
    D = randers_distances(points, omega) * (1 + noise * rng.normal(size=(n, n)))
    return points, np.abs(D), rng


def with_pairs_missing(D, rng) -> np.ndarray:
    D = np.where(rng.random(D.shape) < MISSING, np.nan, D)
    np.fill_diagonal(D, 0)
    return D


def nearest(D, k: int) -> np.ndarray:
    """Distances to the k nearest targets of every point; nan for the others."""
    listed = np.full_like(D, np.nan)
    near = np.argsort(D, axis=1)[:, : k + 1]
    np.put_along_axis(listed, near, np.take_along_axis(D, near, axis=1), axis=1)
    return listed


def runs_of(D, points, seed: int) -> dict:
    """One search: drift, columns, height, and its cost."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FinslerMDS("auto", omega_norm="auto", metric="precomputed", random_state=seed)
        embedding = model.fit_transform(D)
        cost = _cost(D, points.shape[1], seed)
    height = np.corrcoef(embedding[:, -1], points[:, -1])[0, 1]
    return {
        "drift": model.omega_norm_,
        "columns": embedding.shape[1] == points.shape[1],
        "height": height,
        "cost": cost,
    }


def _cost(D, n_columns: int, seed: int) -> float:
    """Iterations of a fit with omega_norm="auto" over those of a fit at the drift it found."""
    counted = []
    plain = search.run_at

    def counting(*args):
        run = plain(*args)
        counted.append(len(run.history))
        return run

    settings = {"metric": "precomputed", "random_state": seed}
    search.run_at = counting
    try:
        found = FinslerMDS(n_columns, omega_norm="auto", **settings).fit(D).omega_norm_
    finally:
        search.run_at = plain
    return sum(counted) / FinslerMDS(n_columns, omega_norm=found, **settings).fit(D).n_iter_


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planted_drift", description=__doc__)
    parser.add_argument("--drifts", type=float, nargs="+", default=[0.05, 0.1, 0.2, 0.3, 0.45, 0.6])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 0.02, 0.05])
    parser.add_argument("--neighbors", type=int, nargs="+", default=[8])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(argv)
    print(f"{'data':22s} {'n':>4s} noise drift  error columns height cost")
    for kind in EXTENT:
        for n in options.sizes:
            for noise in options.noise:
                for omega in options.drifts:
                    for k in (None, *options.neighbors):
                        runs = []
                        for seed in range(options.seeds):
                            points, D, rng = planted(kind, omega, n, noise, seed)
                            D = with_pairs_missing(D, rng) if k is None else nearest(D, k)
                            runs.append(runs_of(D, points, seed))
                        what = f"{kind}, " + ("30 % missing" if k is None else f"{k} nearest")
                        error = max(abs(run["drift"] / omega - 1) for run in runs)
                        right = sum(run["columns"] for run in runs)
                        height = min(run["height"] for run in runs)
                        cost = max(run["cost"] for run in runs)
                        print(
                            f"{what:22s} {n:4d} {noise:5.2f} {omega:5.2f} {error:6.1%} "
                            f"{right:3d}/{len(runs)} {height:8.3f} {cost:4.1f}"
                        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
