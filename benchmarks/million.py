"""One fit of many rows, ours and umap-learn's, each in a process of its own.

    python -m benchmarks.million --rows 1000000 --columns 50
    python -m benchmarks.million --rows 100000 --methods finsler --threads 1 2

Prints the time, the processor time and the peak memory of the fit, then those of the first
``transform`` of 10,000 new rows. Ours is seeded and gives the same bits with any number of
threads; umap-learn runs without a seed, because a seed would confine it to one thread. The rows
are those of ``benchmarks.neighbor_search``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from benchmarks.neighbor_search import KINDS, rows_of

METHODS = ("finsler", "umap")
NEW_ROWS = 10_000


def estimator(method: str, threads: int):
    if method == "umap":
        import umap

        return umap.UMAP(n_components=3, n_jobs=threads, verbose=True)
    from finsler_ext import FinslerUMAP

    return FinslerUMAP(random_state=0, n_jobs=threads, verbose=True)


def timed(call) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def one(method: str, rows: int, columns: int, kind: str, threads: int) -> dict:
    X = rows_of(kind, rows, columns)
    new = X[:: max(1, rows // NEW_ROWS)][:NEW_ROWS] + np.float32(0.01)
    model = estimator(method, threads)
    fit = timed(lambda: model.fit(X))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    transform = timed(lambda: model.transform(new))
    return {"fit": fit, "transform": transform, "peak": peak, "sum": float(model.embedding_.sum())}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--kind", choices=KINDS, default="curved")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--threads", nargs="+", type=int, default=[2])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        found = one(options.one, options.rows, options.columns, options.kind, options.threads[0])
        print(json.dumps(found))
        return
    print("| method | threads | fit s | cpu s | peak GiB | first transform s |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    for method in options.methods:
        for threads in options.threads:
            command = [sys.executable, "-m", "benchmarks.million", "--one", method]
            command += ["--rows", str(options.rows), "--columns", str(options.columns)]
            command += ["--kind", options.kind, "--threads", str(threads)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            *stages, last = done.stdout.splitlines()
            print(*stages, sep="\n", file=sys.stderr)
            found = json.loads(last)
            (fit, cpu), (transform, _) = found["fit"], found["transform"]
            row = f"| {method} | {threads} | {fit:.0f} | {cpu:.0f} | {found['peak']:.1f} "
            print(row + f"| {transform:.1f} |", flush=True)


if __name__ == "__main__":
    main()
