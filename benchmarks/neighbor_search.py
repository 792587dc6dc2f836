"""Neighbour searches on the same rows: time, recall, memory, and equality over thread counts.

    python -m benchmarks.neighbor_search --shapes 20000x50 200000x50 --k 15
    python -m benchmarks.neighbor_search --searches groups faiss_hnsw --shapes 1000000x50

Every search runs in a process of its own. ``cold`` is its first search, importing and compiling
included (with what earlier processes have cached); ``warm`` the second. ``cpu`` is the processor
time of the warm one. Recall is on 500 rows. ``equal`` says whether one thread gives the same
neighbours. Rows are a smooth image of 8 hidden variables with noise (``curved``), 20 round
groups (``blobs``), or groups of 200 rows that are far from each other (``islands``).
faiss, hnswlib and usearch are left out where they are not installed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np

SAMPLE = 500
SEED = 0
# Out-degree of HNSW graphs, and how many candidates are kept while they are built and asked.
LINKS, BUILD, ASK = 16, 100, 100


KINDS = ("curved", "blobs", "islands")
ISLAND_ROWS = 200


def rows_of(kind: str, n: int, d: int) -> np.ndarray:
    rng = np.random.default_rng(SEED)
    if kind == "islands":
        centres = 20.0 * rng.normal(size=(-(-n // ISLAND_ROWS), d)).astype(np.float32)
        X = rng.standard_normal((n, d), dtype=np.float32)
        X += centres[rng.integers(len(centres), size=n)]
        return X
    if kind == "blobs":
        centres = 2.0 * rng.normal(size=(20, d))
        return (centres[rng.integers(20, size=n)] + rng.normal(size=(n, d))).astype(np.float32)
    bend, tilt = rng.normal(size=(8, d)), rng.normal(size=(8, d))
    X = np.empty((n, d), dtype=np.float32)
    for start in range(0, n, 4096):
        hidden = rng.normal(size=(min(4096, n - start), 8))
        noise = 0.05 * rng.normal(size=(len(hidden), d))
        X[start : start + 4096] = np.sin(0.5 * hidden @ bend) + 0.3 * hidden @ tilt + noise
    return X


def exact(X, k, threads):
    from finsler_ext.neighbors.exact import ExactIndex

    return ExactIndex(n_threads=threads).build(X, k).indices


def groups(X, k, threads):
    from finsler_ext.neighbors.kmeans_graph import KMeansGraphIndex

    return KMeansGraphIndex(random_state=SEED, n_threads=threads).build(X, k).indices


def nn_descent(X, k, threads):
    from finsler_ext.neighbors.nndescent import approximate_neighbors

    # seeded, as estimators call it: on one thread
    return approximate_neighbors(X, k, random_state=SEED, n_threads=1).indices


def scikit_learn(X, k, threads):
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=threads).fit(X)
    return search.kneighbors(X, return_distance=False)


def faiss_flat(X, k, threads):
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexFlatL2(X.shape[1])
    index.add(X)
    return index.search(X, k)[1]


def faiss_ivf(X, k, threads):
    import faiss

    faiss.omp_set_num_threads(threads)
    lists = max(1, len(X) // 256)
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], lists)
    index.cp.seed = SEED
    index.cp.niter = 4
    index.cp.max_points_per_centroid = 64
    index.train(X)
    index.add(X)
    index.nprobe = 24
    return index.search(X, k)[1]


def faiss_hnsw(X, k, threads):
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexHNSWFlat(X.shape[1], LINKS)
    index.hnsw.efConstruction, index.hnsw.efSearch = BUILD, max(ASK, 2 * k)
    index.add(X)
    return index.search(X, k)[1]


def hnswlib(X, k, threads):
    import hnswlib

    index = hnswlib.Index("l2", X.shape[1])
    index.init_index(len(X), M=LINKS, ef_construction=BUILD, random_seed=SEED)
    index.set_num_threads(threads)
    index.add_items(X)
    index.set_ef(max(ASK, 2 * k))
    return index.knn_query(X, k)[0].astype(np.int64)


def usearch(X, k, threads):
    from usearch.index import Index

    index = Index(
        ndim=X.shape[1],
        metric="l2sq",
        dtype="f32",
        connectivity=LINKS,
        expansion_add=BUILD,
        expansion_search=max(ASK, 2 * k),
    )
    index.add(np.arange(len(X)), X, threads=threads)
    return np.asarray(index.search(X, k, threads=threads).keys).astype(np.int64)


SEARCHES = {
    search.__name__: search
    for search in (
        exact,
        groups,
        nn_descent,
        scikit_learn,
        faiss_flat,
        faiss_ivf,
        faiss_hnsw,
        hnswlib,
        usearch,
    )
}


def recall(X, found: np.ndarray, k: int) -> float:
    from finsler_ext.neighbors.exact import ExactIndex

    rows = np.unique(np.linspace(0, len(X) - 1, SAMPLE).astype(np.int64))
    nearest = ExactIndex().over(X).query(X[rows], k).outgoing[:, -1:]
    steps = X[rows][:, None, :].astype(np.float64) - X[found[rows]]
    return float(np.mean(np.linalg.norm(steps, axis=2) <= nearest * (1 + 1e-6)))


def measure(name: str, kind: str, n: int, d: int, k: int, equal: bool) -> dict:
    """Of one search, in this process."""
    X, search, threads = rows_of(kind, n, d), SEARCHES[name], len(os.sched_getaffinity(0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    search(X, k, threads)
    cold = time.perf_counter() - started
    started, processor = time.perf_counter(), time.process_time()
    found = search(X, k, threads)
    result = {
        "cold": cold,
        "warm": time.perf_counter() - started,
        "cpu": time.process_time() - processor,
        "mib": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
        "recall": recall(X, np.asarray(found), k),
    }
    if equal:
        result["equal"] = bool((search(X, k, 1) == found).all())
    return result


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shapes", nargs="+", default=["20000x50"], metavar="ROWSxCOLUMNS")
    parser.add_argument("--k", nargs="+", type=int, default=[15])
    parser.add_argument("--searches", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    parser.add_argument("--kind", choices=KINDS, default="curved")
    parser.add_argument("--equal", action="store_true", help="compare with one thread")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(measure(**json.loads(options.one))))
        return
    print("| rows | k | search | cold s | warm s | cpu s | MiB | recall | equal |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for text in options.shapes:
        n, d = (int(part) for part in text.split("x"))
        for k in options.k:
            for name in options.searches:
                task = {"name": name, "kind": options.kind, "n": n, "d": d, "k": k}
                task["equal"] = options.equal
                command = [sys.executable, "-W", "ignore", "-m", "benchmarks.neighbor_search"]
                done = subprocess.run(
                    [*command, "--one", json.dumps(task)], capture_output=True, text=True
                )
                if done.returncode:
                    print(f"{name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                    continue
                m = json.loads(done.stdout.splitlines()[-1])
                print(
                    f"| {n} × {d} | {k} | {name} | {m['cold']:.1f} | {m['warm']:.1f} | "
                    f"{m['cpu']:.1f} | {m['mib']:.0f} | {m['recall']:.3f} | "
                    f"{m.get('equal', '')} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
