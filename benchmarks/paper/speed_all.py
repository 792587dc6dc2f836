"""Whole fits of every method and of its parent on one data set, interleaved in one run.

    python -m benchmarks.paper.speed_all --data imagenette --data-dir DIR
    python -m benchmarks.paper.speed_all --data digits --repeats 1

From features to embedding, each at its own defaults, with random_state=0 and all threads it
will use (umap-learn uses one when seeded). Every fit runs in a process of its own, after a small
fit that compiles everything; methods take turns, so that a noisy machine is noisy for all.
MDS compares all pairs: it has the first rows only, and starts from their distances. Fits are
appended to benchmarks/paper/results/speed_all.csv, from which RESULTS.md has its table.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.speed import load, record

__all__ = ["METHODS", "RESULTS", "Timed"]

RESULTS = Path(__file__).parent / "results" / "speed_all.csv"
MDS_ROWS = 2000
# Rows of the fit that compiles everything. From 4096 on umap-learn and FinslerUMAP search
# neighbours by NN-descent, whose code pynndescent compiles anew in every process.
WARM_UP_ROWS, UMAP_WARM_UP_ROWS = 1500, 4500


class Timed(NamedTuple):
    """A method to time.

    parent : the method it stands in for; its time is given as a share of the parent's
    paper : seconds that the paper gives for it on Imagenette, on another processor
    rows : at most so many rows of the data
    warm_up : rows of the fit before the timed one
    """

    title: str
    fit: Callable[[np.ndarray], object]
    parent: str | None = None
    paper: int | None = None
    rows: int | None = None
    warm_up: int = WARM_UP_ROWS


def _umap(**options):
    def fit(X):
        from umap import UMAP

        return UMAP(random_state=0, **options).fit(X)

    return fit


def _finsler_umap(**options):
    def fit(X):
        from finsler_ext import FinslerUMAP

        return FinslerUMAP(random_state=0, **options).fit(X)

    return fit


def _opentsne(dimension: int, gradient: str):
    def fit(X):
        from openTSNE import TSNE

        model = TSNE(dimension, random_state=0, n_jobs=-1, negative_gradient_method=gradient)
        return model.fit(X)

    return fit


def _finsler_tsne(**options):
    def fit(X):
        from finsler_ext import FinslerTSNE

        return FinslerTSNE(random_state=0, n_jobs=-1, **options).fit(X)

    return fit


def _smacof(D):
    from sklearn.manifold import smacof

    symmetric = (D + D.T) / 2
    return smacof(symmetric, n_components=3, n_init=1, random_state=0, normalized_stress=False)


def _finsler_mds(D):
    from finsler_ext import FinslerMDS

    return FinslerMDS(metric="precomputed", omega_norm=0.5, n_jobs=-1, random_state=0).fit(D)


METHODS = {
    "umap_random": Timed(
        "UMAP, 2-D, random start", _umap(init="random"), paper=10, warm_up=UMAP_WARM_UP_ROWS
    ),
    "umap_2d": Timed("UMAP, 2-D", _umap(), paper=16, warm_up=UMAP_WARM_UP_ROWS),
    "umap_3d": Timed("UMAP, 3-D", _umap(n_components=3), warm_up=UMAP_WARM_UP_ROWS),
    "finsler_umap": Timed(
        "Finsler UMAP, 3-D", _finsler_umap(), "umap_3d", paper=12, warm_up=UMAP_WARM_UP_ROWS
    ),
    "opentsne_2d": Timed("t-SNE, 2-D (openTSNE, grid)", _opentsne(2, "fft")),
    "opentsne_3d": Timed("t-SNE, 3-D (openTSNE, tree)", _opentsne(3, "bh")),
    "finsler_tsne": Timed("Finsler t-SNE, 3-D", _finsler_tsne(), "opentsne_3d"),
    "exact_tsne": Timed(
        "t-SNE, 2-D, all pairs (this project's solver at no drift)",
        _finsler_tsne(n_components=2, omega_norm=0.0, affinity="symmetrized",
                      negative_gradient_method="exact"),
        paper=2500,
    ),
    "exact_finsler_tsne": Timed(
        "Finsler t-SNE, 3-D, all pairs",
        _finsler_tsne(negative_gradient_method="exact"), "exact_tsne", paper=9700,
    ),
    "sklearn_mds": Timed("MDS, 3-D (scikit-learn's SMACOF)", _smacof, rows=MDS_ROWS),
    "finsler_mds": Timed("Finsler MDS, 3-D", _finsler_mds, "sklearn_mds", rows=MDS_ROWS),
}  # fmt: skip


def rows_of(method: str, X: np.ndarray) -> np.ndarray:
    """What the method is given: features, or for MDS the directed distances of fewer rows."""
    timed = METHODS[method]
    X = X[: timed.rows]
    if timed.rows is None:
        return X
    from benchmarks.paper.problem import MDS_NEIGHBORS
    from finsler_ext.neighbors.geodesics import directed_distances

    return directed_distances(X.astype(np.float64), MDS_NEIGHBORS).distances


def child(method: str, data: str, data_dir: str | None) -> None:
    warnings.simplefilter("ignore")
    X = load(data, data_dir)
    timed = METHODS[method]
    timed.fit(rows_of(method, X[: timed.warm_up]))
    given = rows_of(method, X)
    started, cpu = time.perf_counter(), time.process_time()
    timed.fit(given)
    print(json.dumps({
        "rows": len(given),
        "seconds": round(time.perf_counter() - started, 3),
        "cpu": round(time.process_time() - cpu, 3),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }))  # fmt: skip


def run(method: str, data: str, data_dir: str | None) -> dict:
    command = [sys.executable, "-m", "benchmarks.paper.speed_all", "--child", method]
    command += ["--data", data] + (["--data-dir", data_dir] if data_dir else [])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{method} on {data} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def table(data: str, runs: dict[str, list[dict]]) -> None:
    print(f"\n{data}, whole fits, seconds (median of {len(next(iter(runs.values())))})")
    for method, found in runs.items():
        line = f"{method:20s}{statistics.median(r['seconds'] for r in found):10.2f}"
        parent = METHODS[method].parent
        if parent in runs:
            pairs = zip(found, runs[parent], strict=True)
            ratios = [ours["seconds"] / theirs["seconds"] for ours, theirs in pairs]
            line += f"   {statistics.median(ratios):.2f} of {parent}"
        print(line)


def main(argv=None) -> int:
    name = "python -m benchmarks.paper.speed_all"
    parser = argparse.ArgumentParser(prog=name, description=__doc__)
    parser.add_argument("--data", default="digits", help="name, or a size of blobs")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--data-dir")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        child(options.child, options.data, options.data_dir)
        return 0
    runs: dict[str, list[dict]] = {m: [] for m in options.methods}
    started = datetime.now().isoformat(timespec="seconds")
    for repeat in range(options.repeats):
        for method, found in runs.items():
            spent = run(method, options.data, options.data_dir)
            found.append(spent)
            row = {"run": started, "cores": os.cpu_count(), "data": options.data,
                   "method": method, "repeat": repeat} | spent  # fmt: skip
            record(row, options.results)
            print(options.data, method, spent, flush=True)
    table(options.data, runs)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
