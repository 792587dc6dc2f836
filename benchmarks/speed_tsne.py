"""Time and memory of FinslerTSNE against openTSNE and scikit-learn, interleaved in one run.

    python -m benchmarks.speed tsne --repeats 3                  10,000 and 60,000 × 50
    python -m benchmarks.speed tsne --data 300000
    python -m benchmarks.speed tsne --data 1000000 --methods finsler_3d --new 10000
    python -m benchmarks.speed tsne --data 1000000 --methods opentsne_2d --steps 50 50
    python -m benchmarks.speed tsne --data mnist --methods finsler_3d --data-dir DIR

Every fit runs in a process of its own, after a small fit that compiles everything; methods
take turns. All have 250 steps of early exaggeration, 500 more, perplexity 30 and two threads,
and FinslerTSNE the steps of its second act besides. ``--new`` is the number of further rows that
are then placed by `transform`; the peak of memory includes it. Processor time ("cpu", of all
threads and of the fit alone) says more than time on a busy machine. Fits are appended to
benchmarks/results/speed_tsne.csv; the tables give medians of this run.
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
STAGES = ("affinities", "layout", "total", "cpu", "transform", "ms_per_step", "peak_mib", "kl")
METHODS = ("finsler_3d", "opentsne_2d", "opentsne_3d", "sklearn_3d")
DEFAULT_METHODS = ("finsler_3d", "opentsne_2d")
EARLY_STEPS, LATE_STEPS = 250, 500
# Enough for the grid.
WARM_UP_ROWS = 6000
THREADS = 2


def fit_once(method: str, X, early: int, late: int, spent: dict, new=None):
    """Fit, place new rows if there are any, and note the time of the stages."""
    kind, dimension = method.split("_")
    m = int(dimension[0])
    steps = {"early_exaggeration_iter": early, "n_iter": late}
    seeded = {"random_state": 0, "n_jobs": THREADS}
    if kind == "sklearn":
        from sklearn.manifold import TSNE

        model = TSNE(m, max_iter=early + late, **seeded)
    else:
        from openTSNE import tsne as upstream

        from finsler_ext import FinslerTSNE
        from finsler_ext.tsne.optimizer import FinslerDescent

        if kind == "opentsne":
            gradient = "fft" if m == 2 else "bh"
            model = upstream.TSNE(m, negative_gradient_method=gradient, **seeded, **steps)
        else:
            model = FinslerTSNE(m, **seeded, **steps)
        if not spent.get("watched"):
            watch(upstream.gradient_descent if kind == "opentsne" else FinslerDescent,
                  "__call__", "layout", spent)  # fmt: skip
            spent["watched"] = 1
    started, cpu = time.perf_counter(), time.process_time()
    fitted = model.fit(X)
    spent["total"], spent["cpu"] = time.perf_counter() - started, time.process_time() - cpu
    spent["kl"] = float(fitted.kl_divergence if kind == "opentsne" else fitted.kl_divergence_)
    spent["transform"] = 0.0
    if new is not None and len(new):
        layout, started = spent.get("layout", 0.0), time.perf_counter()
        fitted.transform(new)
        spent["transform"], spent["layout"] = time.perf_counter() - started, layout


def child(options) -> None:
    warnings.simplefilter("ignore")
    data = options.data[0]
    rows = int(data) if data.isdigit() else None
    X = load(data if rows is None else str(rows + options.new), options.data_dir)
    X, new = X[:rows], X[rows:] if rows else None
    spent: dict = {}
    warm = X[:WARM_UP_ROWS]
    fit_once(options.methods[0], warm, 5, 250, spent, warm[: min(100, options.new)])
    spent.update(dict.fromkeys(STAGES, 0.0))
    early, late = options.steps
    fit_once(options.methods[0], X, early, late, spent, new)
    spent["affinities"] = spent["total"] - spent["layout"]
    spent["ms_per_step"] = 1e3 * spent["layout"] / (early + late)
    spent["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({stage: spent[stage] for stage in STAGES}))


def run(data: str, method: str, options) -> dict:
    command = [sys.executable, "-m", "benchmarks.speed", "tsne", "--child", "--data", data]
    command += ["--methods", method, "--steps", *map(str, options.steps), "--new", str(options.new)]
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
        for stage, words in (("total", "time"), ("cpu", "processor time"), ("peak_mib", "memory")):
            pairs = zip(runs["finsler_3d"], rows, strict=True)
            ratios = [ours[stage] / theirs[stage] for ours, theirs in pairs]
            print(f"whole fit: {statistics.median(ratios):.2f} of the {words} of {method} "
                  f"(runs: {', '.join(f'{r:.2f}' for r in ratios)})")  # fmt: skip


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed tsne", description=__doc__)
    parser.add_argument("--data", nargs="+", default=["10000", "60000"], help="sizes or names")
    parser.add_argument("--methods", nargs="+", default=list(DEFAULT_METHODS), choices=METHODS)
    parser.add_argument("--steps", type=int, nargs=2, default=[EARLY_STEPS, LATE_STEPS])
    parser.add_argument("--new", type=int, default=0, help="rows for transform")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--data-dir")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        child(options)
        return 0
    for data in options.data:
        table(data, measure(data, options.methods, options), options.steps)
    return 0
