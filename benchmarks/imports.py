"""Import graphs: does the order of the modules agree with the layers that packages declare?

    python -m benchmarks.imports --data-dir DIR

Eight packages with layers of import-linter. Chance that two modules of different layers are in the
right order, with a 90 % interval of 500 resamples of the modules; FinslerUMAP with five seeds.
Share of imports that lead up (level ones count half). Seconds, and crossings of straight edges per
pair of edges, of dot (graphviz, if it is installed) and of the side view of FinslerUMAP.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import time
import warnings

import numpy as np

from benchmarks.data.orders import PACKAGES, import_graph
from benchmarks.orders import degree_difference, right_pairs
from benchmarks.peers.springrank import springrank
from finsler_ext.cli.imports import Imports, Landscape, fit_imports, side_view

RESAMPLES, SEEDS, PATIENCE = 500, 5, 60


def eades_lin_smyth(graph) -> np.ndarray:
    """Greedy order with few edges that lead up (Eades, Lin and Smyth 1993); first is highest."""
    out = [set(row) for row in np.split(graph.indices, graph.indptr[1:-1])]
    by_target = graph.T.tocsr()
    into = [set(row) for row in np.split(by_target.indices, by_target.indptr[1:-1])]
    left, first, last = set(range(graph.shape[0])), [], []
    while left:
        sinks = sorted(v for v in left if not out[v])
        sources = sorted(v for v in left if out[v] and not into[v])
        chosen = sinks or sources or [max(sorted(left), key=lambda v: len(out[v]) - len(into[v]))]
        for v in chosen:
            (last if sinks else first).append(v)
            left.discard(v)
            for w in out[v]:
                into[w].discard(v)
            for w in into[v]:
                out[w].discard(v)
    height = np.empty(graph.shape[0])
    height[first + last[::-1]] = np.arange(graph.shape[0], 0, -1)
    return height


def dot_places(graph) -> np.ndarray | None:
    """x and y of dot, or None if it takes too long or is not installed."""
    if shutil.which("dot") is None:
        return None
    edges = "".join(f"{i}->{j};" for i, j in np.column_stack(graph.nonzero()))
    nodes = "".join(f"{i};" for i in range(graph.shape[0]))
    try:
        text = subprocess.run(
            ["dot", "-Tplain"], input=f"digraph{{node[shape=point];{nodes}{edges}}}", text=True,
            capture_output=True, timeout=PATIENCE, check=True,
        ).stdout  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    cells = [line.split() for line in text.splitlines() if line.startswith("node ")]
    places = np.empty((graph.shape[0], 2))
    for _, name, x, y, *_ in cells:
        places[int(name)] = float(x), float(y)
    return places


def crossings(places, graph) -> float:
    """Share of the pairs of edges without a common end whose straight lines cross."""
    ends = np.column_stack(graph.nonzero())
    a, b = places[ends[:, 0]], places[ends[:, 1]]

    def side(p, q, r):
        return np.sign((q[0] - p[0]) * (r[:, 1] - p[1]) - (q[1] - p[1]) * (r[:, 0] - p[0]))

    crossed = pairs = 0
    for k in range(len(ends) - 1):
        rest = slice(k + 1, None)
        apart = ~np.isin(ends[rest], ends[k]).any(axis=1)
        pairs += np.count_nonzero(apart)
        ours = side(a[k], b[k], a[rest]) * side(a[k], b[k], b[rest]) < 0
        d, start = b[rest] - a[rest], a[rest]
        one = d[:, 0] * (a[k, 1] - start[:, 1]) - d[:, 1] * (a[k, 0] - start[:, 0])
        two = d[:, 0] * (b[k, 1] - start[:, 1]) - d[:, 1] * (b[k, 0] - start[:, 0])
        crossed += np.count_nonzero(apart & ours & (one * two < 0))
    return crossed / max(pairs, 1)


def score(height, graph, layer) -> tuple[float, float, float, float]:
    """Right pairs with its interval, and the share of imports that lead up."""
    rank = np.where(layer < 0, np.nan, -layer.astype(float))
    rng, resampled = np.random.default_rng(0), []
    for _ in range(RESAMPLES):
        rows = rng.integers(0, len(rank), len(rank))
        if len(np.unique(rank[rows][np.isfinite(rank[rows])])) > 1:
            resampled.append(right_pairs(height[rows], rank[rows]))
    source, target = graph.nonzero()
    up = np.mean((height[source] < height[target]) + 0.5 * (height[source] == height[target]))
    return right_pairs(height, rank), *np.quantile(resampled, (0.05, 0.95)), float(up)


def run(package: str, data_dir) -> None:
    graph, layer = import_graph(package, data_dir)
    imports = Imports([str(i) for i in range(graph.shape[0])], graph)
    first = fit_imports(imports)  # the largest part; all orders are judged on it
    rows = np.array([int(name) for name in first.imports.names])
    graph, layer = first.imports.graph, layer[rows]
    found: dict[str, tuple] = {}
    for seed in range(SEEDS):
        started = time.perf_counter()
        fitted: Landscape = fit_imports(imports, seed)
        spent = time.perf_counter() - started
        cross = crossings(side_view(fitted), graph) if seed == 0 else float("nan")
        found[f"FinslerUMAP, seed {seed}"] = (fitted.height, spent, cross)
    ranks = {
        "SpringRank, α = 0": springrank,
        "Eades-Lin-Smyth": eades_lin_smyth,
        "out − in degree": degree_difference,
    }
    for method, order in ranks.items():
        started = time.perf_counter()
        height = np.asarray(order(graph), dtype=float)
        found[method] = (height, time.perf_counter() - started, float("nan"))
    started = time.perf_counter()
    places = dot_places(graph)
    spent = time.perf_counter() - started
    if places is None:
        print(f"| {package} | dot | not installed, or more than {PATIENCE} s | | | |", flush=True)
    else:
        found["dot"] = (places[:, 1], spent, crossings(places, graph))
    for method, (height, spent, cross) in found.items():
        right, low, high, up = score(height, graph, layer)
        print(
            f"| {package} | {method} | {right:.3f} [{low:.3f}, {high:.3f}] | {up:.3f} | "
            f"{spent:.2f} | {'' if np.isnan(cross) else f'{cross:.4f}'} |",
            flush=True,
        )


def main(argv=None) -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    parser.add_argument("--data-dir")
    options = parser.parse_args(argv)
    print("| package | order | right pairs [90 %] | imports up | seconds | crossings |")
    print("| --- | --- | --- | --- | --- | --- |")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for package in options.packages:
            run(package, options.data_dir)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
