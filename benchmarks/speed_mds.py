"""Time per iteration and memory of finsler_smacof, against scikit-learn's SMACOF.

    python -m benchmarks.speed_mds                        1k, 3k, 10k and 20k points
    python -m benchmarks.speed_mds --sizes 3000 --repeats 5

Directed distances of a Randers space with noise, three components, the same random start for all;
"fit" is the whole estimator, with its own start and its scores, after 12 iterations.
Every run is a process of its own, after a small one that compiles everything; methods take
turns. The time of an iteration is the difference between a long and a short run, divided by
the number of iterations between them, so that the set-up does not count; it is given beside.
Memory is the growth of the process over what it needed before the distances were made, in units
of N² floats of 4 bytes; the distances themselves are one such unit in float32 and two in
float64. Runs are appended to benchmarks/results/speed_mds.csv.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks import speed

RESULTS = Path(__file__).parent / "results" / "speed_mds.csv"
METHODS = ("sklearn", "finsler_float64", "finsler_float32", "finsler_float32_one", "fit_float32")
# scikit-learn's own temporaries are too large beyond this size for a shared machine.
SKLEARN_BELOW = 5000
# Two cores' worth of distances in float64 beyond this size tell nothing new.
FLOAT64_BELOW = 15_000
SHORT, LONG = 2, 12
BLOCK_ROWS = 512
OMEGA = 0.5


def directed(n: int, dtype) -> np.ndarray:
    """Randers distances of Gaussian points with 20 % noise, made in blocks of rows."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(n, 3)).astype(dtype)
    D = np.empty((n, n), dtype=dtype)
    for start in range(0, n, BLOCK_ROWS):
        rows = slice(start, min(start + BLOCK_ROWS, n))
        square = np.zeros((rows.stop - start, n), dtype=dtype)
        for column in Y.T:
            square += (column - column[rows, None]) ** 2
        D[rows] = np.sqrt(square) + dtype(0.3) * (Y[:, -1] - Y[rows, -1:])
        D[rows] *= 1 + dtype(0.2) * rng.random((rows.stop - start, n), dtype=dtype)
    np.fill_diagonal(D, 0)
    return D


def embed(method: str, D, start, n_iter: int) -> float:
    """Seconds for so many iterations."""
    if method == "sklearn":
        from sklearn.manifold import smacof

        started = time.perf_counter()
        smacof(D, n_components=3, init=start, n_init=1, max_iter=n_iter, eps=0,
               normalized_stress=False)  # fmt: skip
    elif method == "fit_float32":
        from finsler_ext import FinslerMDS

        started = time.perf_counter()
        FinslerMDS(metric="precomputed", omega_norm=OMEGA, max_iter=n_iter, eps=0, n_jobs=-1,
                   random_state=0).fit(D)  # fmt: skip
    else:
        from finsler_ext.mds.estimator import finsler_smacof

        jobs = 1 if method.endswith("one") else -1
        started = time.perf_counter()
        finsler_smacof(D, omega_norm=OMEGA, init=start, max_iter=n_iter, eps=0, accelerate=False,
                       n_jobs=jobs)  # fmt: skip
    return time.perf_counter() - started


def child(method: str, n: int) -> None:
    warnings.simplefilter("ignore")
    dtype = np.float32 if "float32" in method else np.float64
    small = directed(1200, dtype)
    if method == "sklearn":
        small = (small + small.T) / 2
    start = np.random.default_rng(1).normal(size=(n, 3))
    embed(method, small, start[:1200] if n >= 1200 else np.resize(start, (1200, 3)), 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    D = directed(n, dtype)
    if method == "sklearn":  # the same part of the data that SMACOF works on
        D += D.T.copy()
        D /= 2
    long = embed(method, D, start, LONG)
    whole = method == "fit_float32"
    short = long if whole else embed(method, D, start, SHORT)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step = float("nan") if whole else (long - short) / (LONG - SHORT)
    print(
        json.dumps(
            {
                "iteration_ms": 1e3 * step,
                "setup_ms": 1e3 * (long if whole else short - SHORT * step),
                "peak_mib": peak / 1024,
                "floats_per_pair": (peak - before) * 1024 / (4 * n * n),
            }
        )
    )


def run(method: str, n: int) -> dict:
    command = [sys.executable, "-m", "benchmarks.speed_mds", "--child", method, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{method} on {n} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def wanted(method: str, n: int) -> bool:
    if method == "sklearn":
        return n <= SKLEARN_BELOW
    return method != "finsler_float64" or n <= FLOAT64_BELOW


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed_mds", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 3000, 10_000, 20_000])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        child(options.child[0], int(options.child[1]))
        return 0
    for n in options.sizes:
        runs: dict[str, list[dict]] = {m: [] for m in options.methods if wanted(m, n)}
        for repeat in range(options.repeats):
            for method, rows in runs.items():
                spent = run(method, n)
                rows.append(spent)
                rounded = {name: round(value, 3) for name, value in spent.items()}
                speed.record({"n": n, "method": method, "repeat": repeat} | rounded, RESULTS)
                print(n, method, rounded, flush=True)
        table(n, runs)
    return 0


def table(n: int, runs: dict[str, list[dict]]) -> None:
    print(f"\n{n} points, medians of {len(next(iter(runs.values())))}")
    for method, rows in runs.items():
        middle = {name: statistics.median(r[name] for r in rows) for name in rows[0]}
        print(f"{method:20s}" + "".join(f"  {name} {v:9.2f}" for name, v in middle.items()))
    if "sklearn" in runs and "finsler_float64" in runs:
        ratios = [
            a["iteration_ms"] / b["iteration_ms"]
            for a, b in zip(runs["sklearn"], runs["finsler_float64"], strict=True)
        ]
        print(f"one iteration, float64: {statistics.median(ratios):.1f} times faster than "
              f"scikit-learn's (runs: {', '.join(f'{r:.1f}' for r in ratios)})")  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
