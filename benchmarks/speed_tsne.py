"""Time and memory of FinslerTSNE against openTSNE and scikit-learn, interleaved in one run.

    python -m benchmarks.speed tsne                              10k and 50k × 50
    python -m benchmarks.speed tsne --data mnist --methods finsler_3d --data-dir DIR
    python -m benchmarks.speed tsne --growth 2000 10000 50000 200000

Every fit runs in a process of its own, after a small fit that compiles everything; methods
take turns. All have 250 steps of early exaggeration, 500 more, perplexity 30 and two threads.
Processor time ("cpu", of all threads) says more than time on a busy machine. Fits are appended
to benchmarks/results/speed_tsne.csv; the tables give medians of this run.
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

from benchmarks.speed import load, record, watch

RESULTS = Path(__file__).parent / "results" / "speed_tsne.csv"
STAGES = ("affinities", "layout", "total", "cpu", "ms_per_step", "peak_mib", "kl")
METHODS = ("finsler_3d", "opentsne_2d", "opentsne_3d", "sklearn_3d")
DEFAULT_METHODS = ("finsler_3d", "opentsne_2d", "sklearn_3d")
# scikit-learn's three-dimensional fit is compared at this size only: it takes half an hour at 50k.
SKLEARN_UP_TO = 10_000
EARLY_STEPS, LATE_STEPS = 250, 500
WARM_UP_ROWS = 2500
THREADS = 2


def fit_once(method: str, X, early: int, late: int, spent: dict):
    """Fit, and note the time of the stages."""
    kind, dimension = method.split("_")
    m = int(dimension[0])
    if kind == "sklearn":
        from sklearn.manifold import TSNE

        model = TSNE(m, max_iter=early + late, random_state=0, n_jobs=THREADS)
        started = time.perf_counter()
        model.fit(X)
        spent["total"] = time.perf_counter() - started
        spent["layout"], spent["kl"] = float("nan"), float(model.kl_divergence_)
        return
    from openTSNE import tsne as upstream

    if not spent.get("watched"):
        watch(upstream.gradient_descent, "__call__", "layout", spent)
        spent["watched"] = 1
    steps = {"early_exaggeration_iter": early, "n_iter": late}
    if kind == "opentsne":
        gradient = "fft" if m == 2 else "bh"
        model = upstream.TSNE(
            m, negative_gradient_method=gradient, random_state=0, n_jobs=THREADS, **steps
        )
    else:
        from finsler_ext.tsne.opentsne import OpenFinslerTSNE

        model = OpenFinslerTSNE(m, random_state=0, n_jobs=THREADS, **steps)
    started = time.perf_counter()
    embedding = model.fit(X)
    spent["total"] = time.perf_counter() - started
    spent["kl"] = float(embedding.kl_divergence)


def child(options) -> None:
    warnings.simplefilter("ignore")
    X = load(options.data[0], options.data_dir)
    spent: dict = {}
    fit_once(options.methods[0], X[:WARM_UP_ROWS], 5, 250, spent)  # scikit-learn's least is 250
    spent.update(dict.fromkeys(STAGES, 0.0))
    early, late = options.steps
    cpu = time.process_time()
    fit_once(options.methods[0], X, early, late, spent)
    spent["cpu"] = time.process_time() - cpu
    spent["affinities"] = spent["total"] - spent["layout"]
    spent["ms_per_step"] = 1e3 * spent["layout"] / (early + late)
    spent["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({stage: spent[stage] for stage in STAGES}))


def run(data: str, method: str, options) -> dict:
    command = [sys.executable, "-m", "benchmarks.speed", "tsne", "--child", "--data", data]
    command += ["--methods", method, "--steps", *map(str, options.steps)]
    if options.data_dir:
        command += ["--data-dir", options.data_dir]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{method} on {data} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(data: str, methods, options) -> dict[str, list[dict]]:
    runs: dict[str, list[dict]] = {m: [] for m in methods}
    for repeat in range(options.repeats):
        for method in methods:
            spent = run(data, method, options)
            runs[method].append(spent)
            rounded = {stage: round(value, 3) for stage, value in spent.items()}
            steps = sum(options.steps)
            record({"data": data, "method": method, "steps": steps, "repeat": repeat} | rounded,
                   options.results)  # fmt: skip
            print(data, method, rounded, flush=True)
    return runs


def table(data: str, runs: dict[str, list[dict]], steps) -> None:
    count = len(next(iter(runs.values())))
    print(f"\n{data}, {sum(steps)} steps, seconds (median of {count})")
    print(f"{'':14s}" + "".join(f"{s:>12s}" for s in STAGES))
    for method, rows in runs.items():
        middle = (statistics.median(r[s] for r in rows) for s in STAGES)
        print(f"{method:14s}" + "".join(f"{value:12.2f}" for value in middle))
    for method, rows in runs.items():
        if method.startswith("finsler") or "finsler_3d" not in runs:
            continue
        for stage, words in (("total", "time"), ("cpu", "processor time")):
            pairs = zip(runs["finsler_3d"], rows, strict=True)
            ratios = [ours[stage] / theirs[stage] for ours, theirs in pairs]
            print(f"whole fit: {statistics.median(ratios):.2f} of the {words} of {method} "
                  f"(runs: {', '.join(f'{r:.2f}' for r in ratios)})")  # fmt: skip


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed tsne", description=__doc__)
    parser.add_argument("--data", nargs="+", default=["10000", "50000"], help="sizes or names")
    parser.add_argument("--growth", nargs="+", metavar="N", help="FinslerTSNE alone, these sizes")
    parser.add_argument("--methods", nargs="+", default=list(DEFAULT_METHODS), choices=METHODS)
    parser.add_argument("--steps", type=int, nargs=2, default=[EARLY_STEPS, LATE_STEPS])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--data-dir")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        child(options)
        return 0
    for data in options.growth or options.data:
        methods = ["finsler_3d"] if options.growth else options.methods
        if data.isdigit() and int(data) > SKLEARN_UP_TO:
            methods = [m for m in methods if m != "sklearn_3d"]
        table(data, measure(data, methods, options), options.steps)
    return 0
