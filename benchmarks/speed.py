"""Time and memory of FinslerUMAP against umap.UMAP(n_components=3), interleaved in one run.

    python -m benchmarks.speed                        10k and 60k × 50
    python -m benchmarks.speed --data mnist imagenette --data-dir DIR
    python -m benchmarks.speed --data 1000000 --methods finsler_free --repeats 1
    python -m benchmarks.speed --cold                 first fit of a process, import included
    python -m benchmarks.speed tsne …                 FinslerTSNE, see benchmarks/speed_tsne.py
    python -m benchmarks.speed mds …                  FinslerMDS, see benchmarks/speed_mds.py

Every fit runs in a process of its own, after a small fit that compiles everything; methods
take turns, so that a noisy machine is noisy for all. Fits are appended to
benchmarks/results/speed.csv; the table gives medians of this run.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "speed.csv"
STAGES = ("knn", "graph", "init", "layout", "total", "peak_mib")
# seeded: random_state=0; free: none; one: seeded, and one thread for everything
METHODS = ("umap_seeded", "finsler_seeded", "umap_free", "finsler_free", "finsler_one")
WARM_UP_ROWS = 4500


def load(name: str, data_dir):
    """Features by name, or that many rows of blobs."""
    from benchmarks import data

    if name.isdigit():
        return data.blobs(int(name))
    return data.load(name, data_dir=data_dir).X.astype("float32", copy=False)


def watch(module, name: str, stage: str, spent: dict) -> None:
    """Replace a function by one that adds its time to a stage."""
    function = getattr(module, name)

    def timed(*args, **kwds):
        started = time.perf_counter()
        try:
            return function(*args, **kwds)
        finally:
            spent[stage] = spent.get(stage, 0.0) + time.perf_counter() - started

    setattr(module, name, timed)


def fit_once(method: str, X, n_epochs: int, spent: dict):
    """A fitted model, with the time of its stages."""
    kind, how = method.split("_")
    seed = None if how == "free" else 0
    if kind == "umap":
        from umap import UMAP, umap_

        if not spent.get("watched"):
            watch(umap_, "nearest_neighbors", "knn", spent)
            watch(umap_, "fuzzy_simplicial_set", "graph", spent)
            watch(umap_, "spectral_layout", "init", spent)
            watch(umap_, "optimize_layout_euclidean", "layout", spent)
        model = UMAP(n_components=3, n_epochs=n_epochs, random_state=seed)
    else:
        import finsler_ext.umap.estimator as ours
        import finsler_ext.umap.layout as stages

        if not spent.get("watched"):
            watch(ours, "find_neighbors", "knn", spent)
            watch(ours, "build_graph", "graph", spent)
            watch(stages, "initial_positions", "init", spent)
            watch(stages, "lay_out", "layout", spent)
        jobs = 1 if how == "one" else -1
        model = ours.FinslerUMAP(n_epochs=n_epochs, random_state=seed, n_jobs=jobs)
    spent["watched"] = 1
    started = time.perf_counter()
    model.fit(X)
    spent["total"] = time.perf_counter() - started
    return model


def child(options) -> None:
    warnings.simplefilter("ignore")
    X = load(options.data[0], options.data_dir)
    spent: dict = {}
    if not options.cold:
        fit_once(options.methods[0], X[:WARM_UP_ROWS], 11, spent)
    spent.update(dict.fromkeys(STAGES, 0.0))
    fit_once(options.methods[0], X, options.n_epochs, spent)
    spent["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({stage: spent[stage] for stage in STAGES}))


def run(data: str, method: str, options, **environment: str) -> dict:
    command = [sys.executable, "-m", "benchmarks.speed", "--child", "--data", data]
    command += ["--methods", method, "--n-epochs", str(options.n_epochs)]
    if options.data_dir:
        command += ["--data-dir", options.data_dir]
    if options.cold:
        command += ["--cold"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | environment
    )
    if done.returncode:
        raise RuntimeError(f"{method} on {data} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def record(row: dict, path: Path | None = None) -> None:
    path = path or RESULTS
    path.parent.mkdir(exist_ok=True)
    new = not path.is_file()
    with path.open("a", newline="") as out:
        writer = csv.DictWriter(out, row)
        if new:
            writer.writeheader()
        writer.writerow(row)


def table(data: str, runs: dict[str, list[dict]], n_epochs: int) -> None:
    middle = {
        m: {s: statistics.median(r[s] for r in rows) for s in STAGES} for m, rows in runs.items()
    }
    print(f"\n{data}, {n_epochs} epochs, seconds (median of {len(next(iter(runs.values())))})")
    print(f"{'':16s}" + "".join(f"{s:>10s}" for s in STAGES))
    for method, row in middle.items():
        print(f"{method:16s}" + "".join(f"{row[s]:10.2f}" for s in STAGES))
    for how in ("seeded", "free"):
        ours, theirs = f"finsler_{how}", f"umap_{how}"
        if ours in runs and theirs in runs:
            ratios = [
                a["total"] / b["total"] for a, b in zip(runs[ours], runs[theirs], strict=True)
            ]
            print(f"whole fit, {how}: {statistics.median(ratios):.2f} of umap's time "
                  f"(runs: {', '.join(f'{r:.2f}' for r in ratios)})")  # fmt: skip
    if "finsler_one" in runs and "umap_seeded" in runs:
        ratio = middle["umap_seeded"]["layout"] / middle["finsler_one"]["layout"]
        print(f"layout per epoch, one thread each: {ratio:.1f} times faster than umap's")


def cold(options) -> None:
    """Whole processes with an empty cache of compiled code, and again with the one they left."""
    for data in options.data:
        for method in ("umap_seeded", "finsler_seeded"):
            with tempfile.TemporaryDirectory() as cache:
                for when in ("empty cache", "second process"):
                    started = time.perf_counter()
                    run(data, method, options, NUMBA_CACHE_DIR=cache)
                    seconds = time.perf_counter() - started
                    print(f"{data} {method:16s} {when}: {seconds:.1f} s", flush=True)


def main(argv=None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["tsne"]:
        from benchmarks import speed_tsne

        return speed_tsne.main(argv[1:])
    if argv[:1] == ["mds"]:
        from benchmarks import speed_mds

        return speed_mds.main(argv[1:])
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--data", nargs="+", default=["10000", "60000"], help="sizes or names")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--n-epochs", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data-dir")
    parser.add_argument("--cold", action="store_true", help="time first fits instead")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        child(options)
        return 0
    if options.cold:
        cold(options)
        return 0
    for data in options.data:
        runs: dict[str, list[dict]] = {m: [] for m in options.methods}
        for repeat in range(options.repeats):
            for method in options.methods:
                spent = run(data, method, options)
                runs[method].append(spent)
                rounded = {stage: round(value, 3) for stage, value in spent.items()}
                record(
                    {"data": data, "method": method, "n_epochs": options.n_epochs,
                     "repeat": repeat} | rounded
                )  # fmt: skip
                print(data, method, rounded, flush=True)
        table(data, runs, options.n_epochs)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
