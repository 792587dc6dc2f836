"""Grid against tree: time and error of the repulsion on layouts of FinslerTSNE, in one run.

    python -m benchmarks.tsne_grid --sizes 5000 10000 20000 50000 200000

Layouts are taken from fits of the script's own, at the end of early exaggeration and at the end.
In one and two dimensions tree and grid take turns on the same positions, and times are those of
the processor, all threads together, which a busy machine does not change much. The grid finds the
transform of its kernel ready, as in most steps of a fit, and the time to make it is given beside.
Errors are those of the force at some of the points, against the sum over all pairs. In three
dimensions there is no grid: a forward and an inverse real FFT on twice the extent, which it would
need at the least, are timed alone, at the spacing of 1/3 and, as the cheapest conceivable case, at
the spacing of 1, which is wider than the kernel against a drift of 0.5.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import cache

import numpy as np
import scipy.fft

from benchmarks.data import blobs
from finsler_ext.geometry import RANDERS
from finsler_ext.tsne import opentsne
from finsler_ext.tsne.exact import exact_repulsion, padded
from finsler_ext.tsne.grid import grid_repulsion, kernel_transform, plan_grid
from finsler_ext.tsne.tree import build_octree, tree_repulsion

SPACE = {"omega_norm": 0.5, "dof": 1}
SPACINGS = (1 / 3, 1.0)
EARLY_STEPS, EXAGGERATION = 250, 12
REPEATS = 7
# Points at which the error is measured.
SAMPLE = 500
# Larger grids are not allocated; their time is scaled from the largest one by n log n.
MAX_NODES = 2**27
# Above this size a perplexity of 10 keeps the search for neighbours short; layouts differ little.
PERPLEXITY_30_UP_TO = 50_000


def fastest(*functions) -> list[float]:
    """Least milliseconds of the processor for each, taking turns."""
    best = [np.inf] * len(functions)
    for _ in range(REPEATS):
        for k, function in enumerate(functions):
            started = time.process_time()
            function()
            best[k] = min(best[k], 1e3 * (time.process_time() - started))
    return best


def fft_pair(shape, threads: int) -> float:
    """Milliseconds of a forward and an inverse transform of this shape."""
    nodes = float(np.prod(shape))
    shrink = max(1.0, (nodes / MAX_NODES) ** (1 / len(shape)))
    small = tuple(scipy.fft.next_fast_len(max(2, int(s / shrink)), real=True) for s in shape)
    grid = np.random.default_rng(0).random(small, dtype=np.float32)

    def both():
        scipy.fft.irfftn(scipy.fft.rfftn(grid, workers=threads), s=small, workers=threads)

    done = float(np.prod(small))
    return fastest(both)[0] * nodes * np.log(nodes) / (done * np.log(done))


def compare(Y: np.ndarray, threads: int, tight: bool) -> str:
    """Tree and grid on one layout of one or two columns."""
    point = np.ascontiguousarray(Y.T, dtype=np.float64)
    plan = plan_grid(point, **SPACE, tight=tight)
    transform = cache(kernel_transform)

    def tree():
        octree = build_octree(padded(Y, np.float32))
        return tree_repulsion(octree, **SPACE, theta=0.5, n_threads=threads)

    def grid():
        return grid_repulsion(point, plan, **SPACE, transform=transform, n_threads=threads)

    started = time.process_time()
    transform(plan.period, RANDERS, *SPACE.values(), threads)
    kernel = 1e3 * (time.process_time() - started)
    rows = np.random.default_rng(0).permutation(len(Y))[:SAMPLE]
    _, exact = exact_repulsion(point, **SPACE, targets=point[:, rows].copy(), n_threads=threads)
    size = np.linalg.norm(exact)
    by_tree = tree()[1][[*range(len(point) - 1), 2]]
    errors = [np.linalg.norm(by[:, rows] - exact) / size for by in (by_tree, grid()[1])]
    slow, fast = fastest(tree, grid)
    return (
        f"tree {slow:.1f} ms ({errors[0]:.2%}), grid {' × '.join(map(str, plan.length))} "
        f"{fast:.1f} ms ({errors[1]:.2%}), {fast / slow:.2f} of the tree, "
        f"{plan.size / len(Y):.1f} nodes per point; kernel {kernel:.0f} ms"
    )


def transforms_alone(Y: np.ndarray, threads: int) -> str:
    def tree():
        octree = build_octree(padded(Y, np.float32))
        tree_repulsion(octree, **SPACE, theta=0.5, n_threads=threads)

    tree()
    text = f"tree {fastest(tree)[0]:.1f} ms; FFTs alone:"
    for h in SPACINGS:
        length = [scipy.fft.next_fast_len(2 * int(e / h + 4), real=True) for e in np.ptp(Y, axis=0)]
        text += (
            f" spacing {h:.2f} {' × '.join(map(str, length))} {fft_pair(length, threads):.0f} ms"
        )
    return text


def layouts(X, m: int, affinities, n_iter: int, threads: int):
    """Name and positions at the end of both phases, and the affinities."""
    perplexity = 30 if len(X) <= PERPLEXITY_30_UP_TO else 10
    model = opentsne.OpenFinslerTSNE(m, perplexity=perplexity, random_state=0, n_jobs=threads)
    embedding = model.prepare_initial(X, affinities=affinities)
    embedding.optimize(EARLY_STEPS, exaggeration=EXAGGERATION, inplace=True)
    early = np.array(embedding)
    embedding.optimize(n_iter, inplace=True)
    return (("exaggerated", early), ("final", np.array(embedding))), model.affinities_


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tsne_grid", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--n-iter", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(argv)
    for n in options.sizes:
        X = blobs(n)
        affinities = None
        for m in options.dimensions:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found, affinities = layouts(X, m, affinities, options.n_iter, options.threads)
            for name, Y in found:
                extent = " × ".join(f"{e:.3g}" for e in np.ptp(Y, axis=0))
                if m > 2:
                    text = transforms_alone(Y, options.threads)
                else:
                    text = compare(Y, options.threads, name == "exaggerated")
                print(f"{n} points, {m}-D, {name}, {extent}: {text}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
