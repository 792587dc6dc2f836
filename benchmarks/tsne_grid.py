"""Would a grid beat the tree? The repulsion of finished layouts, and the FFTs a grid would need.

    python -m benchmarks.tsne_grid --sizes 10000 50000

A grid method spreads the points over a regular grid, convolves with the even kernel W by one
forward and one inverse real FFT on twice the extent, and interpolates back. The FFTs alone are
a lower bound of its time. Spacing 1/3 is what openTSNE uses (three nodes in an interval of 1);
spacing 1 cannot resolve a kernel whose half-width against a drift of 0.5 is 0.67, and is given
as the cheapest conceivable case.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import scipy.fft

from benchmarks.data import blobs
from finsler_ext import opentsne
from finsler_ext.layout.octree import build_octree, padded
from finsler_ext.layout.tsne_tree import tree_repulsion

SPACINGS = (1 / 3, 1.0)
THREADS = 2
REPEATS = 5
# Larger grids are not allocated; their time is scaled from the largest one by n log n.
MAX_NODES = 2**27


def fastest(function) -> float:
    best = np.inf
    for _ in range(REPEATS):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
    return 1e3 * best


def fft_pair(shape) -> float:
    """Milliseconds of a forward and an inverse transform of this shape."""
    nodes = float(np.prod(shape))
    shrink = max(1.0, (nodes / MAX_NODES) ** (1 / len(shape)))
    small = tuple(scipy.fft.next_fast_len(max(2, int(s / shrink)), real=True) for s in shape)
    grid = np.random.default_rng(0).random(small, dtype=np.float32)

    def both():
        scipy.fft.irfftn(scipy.fft.rfftn(grid, workers=THREADS), s=small, workers=THREADS)

    done = float(np.prod(small))
    return fastest(both) * nodes * np.log(nodes) / (done * np.log(done))


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tsne_grid", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--n-iter", type=int, default=500)
    options = parser.parse_args(argv)
    for n in options.sizes:
        X = blobs(n)
        affinities = None
        for m in options.dimensions:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = opentsne.FinslerTSNE(m, n_iter=options.n_iter, random_state=0)
                Y = np.asarray(model.fit(X, affinities=affinities))
            affinities = model.affinities_

            def tree(Y=Y):
                octree = build_octree(padded(Y, np.float32))
                tree_repulsion(octree, omega_norm=0.5, dof=1, theta=0.5, n_threads=THREADS)

            extent = np.ptp(Y, axis=0)
            grids = [[scipy.fft.next_fast_len(2 * int(e / h + 4), real=True) for e in extent]
                     for h in SPACINGS]  # fmt: skip
            times = ", ".join(
                f"spacing {h:.2f} {' × '.join(map(str, g))} {fft_pair(g):.0f} ms"
                for h, g in zip(SPACINGS, grids, strict=True)
            )
            size = " × ".join(f"{e:.0f}" for e in extent)
            print(f"{n} points, {m}-D, {size}: tree {fastest(tree):.0f} ms; FFTs alone: {times}",
                  flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
