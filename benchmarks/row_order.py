"""Does the height depend on the order of the rows? It must not.

    python -m benchmarks.row_order

The disk's points are given sorted by radius, reversed, and shuffled. A sequential sweep over
the edges, as umap-learn's kernel does it (here with the Randers forces and two-sided
negatives), is compared with this project's layout, and so are one-sided negatives. Spearman
correlation between height and radius, ω = 0.5, 500 epochs, median of the seeds.
"""

from __future__ import annotations

import argparse

import numpy as np
from numba import njit
from scipy.stats import spearmanr
from umap.umap_ import find_ab_params

from benchmarks.data import disk
from benchmarks.peers.one_sided import OneSidedDescent
from finsler_ext.height.acts import HELD, lay_out
from finsler_ext.height.start import initial_positions
from finsler_ext.neighbors.exact import exact_neighbors
from finsler_ext.scales import umap_scales
from finsler_ext.umap.graph import directed_memberships
from finsler_ext.umap.kernels import FORCE_LIMIT, LossShape
from finsler_ext.umap.layout import UmapActs, UmapDescent

OMEGA, EPOCHS, NEGATIVES = 0.5, 500, 5
A, B = find_ab_params(1.0, 0.1)


@njit(fastmath=True)
def sweep(Y, source, target, interval, a, b, omega, n_epochs, negatives, seed):
    """Edge after edge, every move seen at once by the next: umap-learn's order of work."""
    np.random.seed(seed)
    n, m = Y.shape
    due = interval.copy()
    pair = np.empty(2, dtype=np.int64)
    for epoch in range(n_epochs):
        rate = 1.0 - epoch / n_epochs
        for e in range(len(source)):
            if due[e] > epoch:
                continue
            due[e] += interval[e]
            for draw in range(negatives + 1):
                i = source[e]
                j = target[e] if draw == 0 else np.random.randint(n)
                forward = draw == 0 or np.random.random() < 0.5
                pair[0], pair[1] = (i, j) if forward else (j, i)
                step = Y[pair[0]] - Y[pair[1]]
                length = np.sqrt((step * step).sum())
                if length == 0.0:
                    continue
                F = length - omega * step[m - 1]
                q = 1.0 / (1.0 + a * F ** (2 * b))
                if draw == 0:
                    factor = -2 * a * b * F ** (2 * b - 1) * q
                else:
                    factor = 2 * b * q * F / (0.001 + F * F)
                for c in range(m):
                    slope = factor * (step[c] / length - (omega if c == m - 1 else 0.0))
                    move = rate * min(FORCE_LIMIT, max(-FORCE_LIMIT, slope))
                    if draw == 0 or forward:
                        Y[i, c] += move
                    if draw == 0:
                        Y[j, c] -= move
                    elif not forward:
                        Y[i, c] -= move
    return Y


def heights(X, seed: int) -> dict[str, np.ndarray]:
    found = exact_neighbors(X.astype(np.float32), 15)
    graph = directed_memberships(found, *umap_scales(found.distances))
    log_scale = np.log(found.distances[:, 1:].mean(axis=1))
    start = initial_positions("spectral", 2, graph, X, np.random.RandomState(seed))
    start = np.column_stack([start, np.zeros(len(X), dtype=np.float32)])
    edges = graph.tocoo()
    kept = edges.data >= edges.data.max() / EPOCHS
    swept = sweep(
        start.astype(np.float64),
        edges.coords[0][kept],
        edges.coords[1][kept],
        (edges.data.max() / edges.data[kept]).astype(np.float64),
        A, B, OMEGA, EPOCHS, NEGATIVES, seed,
    )  # fmt: skip
    ours = {}
    for name, kind in {"finsler_ext": UmapDescent, "one-sided negatives": OneSidedDescent}.items():
        descent = kind(graph, LossShape(A, B), n_epochs=EPOCHS, seed=seed)
        layout = lay_out(
            UmapActs(descent, start), OMEGA, mode=HELD, potential=log_scale, noisy=True
        )
        ours[name] = layout.position[:, -1]
    return {"sequential sweep": swept[:, -1]} | ours


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.row_order", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 1000, 3000])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(argv)
    for n in options.sizes:
        X, radius = disk(n)
        orders = {
            "sorted": np.arange(n),
            "reversed": np.arange(n)[::-1],
            "shuffled": np.random.RandomState(0).permutation(n),
        }
        scores: dict = {}
        for order, rows in orders.items():
            for seed in range(options.seeds):
                for method, level in heights(X[rows], seed).items():
                    score = spearmanr(level, radius[rows]).statistic
                    scores.setdefault(method, {}).setdefault(order, []).append(score)
        for method, by_order in scores.items():
            text = ", ".join(f"{o} {np.median(v):+.2f}" for o, v in by_order.items())
            print(f"disk {n:5d}  {method:20s} {text}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
