"""Do heights order blobs by their spread? Kendall τ over several draws, dimensions and sizes.

python -m benchmarks.island_heights
python -m benchmarks.island_heights --methods umap --draws 5
"""

from __future__ import annotations

import argparse
import warnings
from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.stats import kendalltau

N_BLOBS = 8
SPREADS = np.geomspace(0.5, 3.0, N_BLOBS)
OMEGA = 0.5


class Setting(NamedTuple):
    """Distance of the centres in units of √dimension, dimension, points per blob."""

    gap: float
    dimension: int
    size: int


SETTINGS = (
    Setting(30, 10, 200),
    Setting(20, 20, 60),
    Setting(12, 2, 100),
    Setting(5, 10, 200),
    Setting(3, 5, 150),
    Setting(6, 2, 200),
)


def draw(setting: Setting, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, blob of each, and spread of each blob, in random order."""
    rng = np.random.RandomState(seed)
    spread = SPREADS.copy()
    rng.shuffle(spread)
    centre = rng.randn(N_BLOBS, setting.dimension)
    centre /= np.linalg.norm(centre, axis=1, keepdims=True)
    if setting.dimension == 2:  # on a circle, or they would lie upon each other
        angle = 2 * np.pi * np.arange(N_BLOBS) / N_BLOBS
        centre = np.column_stack([np.cos(angle), np.sin(angle)])
    centre *= setting.gap * np.sqrt(setting.dimension)
    points = [
        c + s * rng.randn(setting.size, setting.dimension)
        for c, s in zip(centre, spread, strict=True)
    ]
    blob = np.repeat(np.arange(N_BLOBS), setting.size)
    return np.concatenate(points).astype(np.float32), blob, spread


def order(method: str, setting: Setting, seed: int) -> tuple[float, int]:
    """Kendall τ of mean heights with spreads, and the parts of the graph."""
    from finsler_ext import FinslerTSNE, FinslerUMAP

    X, blob, spread = draw(setting, seed)
    estimator = {"umap": FinslerUMAP, "tsne": FinslerTSNE}[method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator(omega_norm=OMEGA, random_state=seed).fit(X)
    graph = model.graph_ if method == "umap" else model.affinities_.P
    height = np.asarray(model.embedding_)[:, -1]
    means = np.bincount(blob, height) / np.bincount(blob)
    parts = connected_components(graph, directed=False)[0]
    return float(kendalltau(means, spread).statistic), parts


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.island_heights")
    parser.add_argument("--methods", nargs="+", choices=("umap", "tsne"), default=["umap", "tsne"])
    parser.add_argument("--draws", type=int, default=3, help="of every setting")
    options = parser.parse_args(argv)
    for method in options.methods:
        found = []
        for setting in SETTINGS:
            runs = [order(method, setting, 10 + s) for s in range(options.draws)]
            found += [tau for tau, _ in runs]
            print(
                f"{method:5s} gap {setting.gap:3g}, {setting.dimension:2d} dimensions, "
                f"{setting.size} points a blob: τ {', '.join(f'{t:.2f}' for t, _ in runs)}; parts "
                f"{', '.join(str(parts) for _, parts in runs)}",
                flush=True,
            )
        print(f"{method}: median τ {np.median(found):.2f}, lowest {min(found):.2f}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
