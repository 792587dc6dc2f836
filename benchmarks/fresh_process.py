"""From starting Python to the embedding: what a script, a command or a new notebook waits for.

    python -m benchmarks.fresh_process
    python -m benchmarks.fresh_process --shapes 10000x50 --repeats 3 --rivals DIR/bin/python

Every fit is a process of its own that imports, reads the data from a file and embeds it, seeded;
methods take turns. ``import umap`` is the time that importing umap-learn alone takes: ours and
umap-learn's contain it. umappp is called through scranpy; it, fastumap and PaCMAP run with the
Python given by ``--rivals`` and are left out without it. ``--empty-cache`` gives every process an
empty folder for compiled functions, as a new environment has.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

READ = "import numpy as np; X = np.load({file!r}); "
PROGRAMS = {
    "import umap": "import umap",
    "finsler": READ
    + "from finsler_ext import FinslerUMAP; FinslerUMAP(random_state=0).fit_transform(X)",
    "finsler, transform": READ
    + "from finsler_ext import FinslerUMAP; m = FinslerUMAP(random_state=0).fit(X); "
    "m.transform(X[:100] + 0.01)",
    "umap-learn": READ
    + "import umap; umap.UMAP(n_components=3, random_state=0, n_jobs=1).fit_transform(X)",
}
RIVALS = {
    "umappp": READ
    + "import scranpy; scranpy.run_umap(X.T.astype(float), num_dim=3, num_threads={threads})",
    "fastumap": READ + "import fastumap; fastumap.umap_project(X, 3)",
    "PaCMAP": READ
    + "import pacmap; pacmap.PaCMAP(n_components=3, random_state=0).fit_transform(X)",
}


def shape(text: str) -> tuple[int, int]:
    rows, columns = text.split("x")
    return int(rows), int(columns)


def blobs(rows: int, columns: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    centres = 2.0 * rng.normal(size=(20, columns))
    chosen = centres[rng.integers(20, size=rows)]
    return (chosen + rng.normal(size=(rows, columns))).astype(np.float32)


def seconds(python: str, program: str, empty_cache: bool) -> float:
    """Of one process from its start to its end; nan if it fails."""
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ)
        if empty_cache:
            environment["NUMBA_CACHE_DIR"] = cache
        started = time.perf_counter()
        done = subprocess.run(
            [python, "-W", "ignore", "-c", program], env=environment, capture_output=True
        )
        taken = time.perf_counter() - started
    if done.returncode:
        print(done.stderr.decode().strip().splitlines()[-1], file=sys.stderr)
        return float("nan")
    return taken


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    shapes = [(5000, 50), (10_000, 50), (30_000, 50), (10_000, 784)]
    parser.add_argument("--shapes", nargs="+", type=shape, default=shapes, metavar="ROWSxCOLUMNS")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=[*PROGRAMS, *RIVALS])
    parser.add_argument("--rivals", help="a Python that has scranpy, fastumap and pacmap")
    parser.add_argument("--empty-cache", action="store_true")
    options = parser.parse_args(arguments)
    known = {name: (sys.executable, program) for name, program in PROGRAMS.items()}
    if options.rivals:
        known |= {name: (options.rivals, program) for name, program in RIVALS.items()}
    chosen = {name: known[name] for name in options.methods if name in known}
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print("| data | " + " | ".join(chosen) + " |")
    print("| --- |" + " --- |" * len(chosen), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for rows, columns in options.shapes:
            file = str(Path(folder) / "X.npy")
            np.save(file, blobs(rows, columns))
            taken: dict[str, list[float]] = {name: [] for name in chosen}
            for _ in range(options.repeats):
                for name, (python, program) in chosen.items():
                    text = program.format(file=file, threads=threads)
                    taken[name].append(seconds(python, text, options.empty_cache))
            medians = (f"{statistics.median(values):.1f}" for values in taken.values())
            print(f"| {rows} × {columns} | " + " | ".join(medians) + " |", flush=True)


if __name__ == "__main__":
    main()
