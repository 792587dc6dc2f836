"""Series of data sets laid out together, against umap.AlignedUMAP and separate fits.

    python -m benchmarks.aligned planted
    python -m benchmarks.aligned worms --data-dir DIR

Planted: five data sets of 600 rows in 10 dimensions, clusters in a chain; from one to the next a
fifth of the rows is drawn anew and the others stay as they are. "move" is the median distance
between the places of a row that stayed, in shares of the spread of the maps (root mean square
distance from their centre). "15-NN" is the share of neighbours that the map keeps, beside a
separate fit of the same method.

Worms: the chemical synapses of eight stages of the worm (Witvliet 2021), neurons by name. The share
of synapses that lead down the height, with a bootstrap interval over neurons, beside the same of
connectomes that were rewired with all in- and out-degrees kept.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import scipy.sparse

from benchmarks.data import files
from finsler_ext import FinslerUMAP, read_directed
from finsler_ext.aligned import AlignedFinslerUMAP
from finsler_ext.metrics import neighborhood_preservation
from finsler_ext.neighbors.exact import exact_neighbors

N_SETS, N_ROWS, N_COLUMNS, N_CLUSTERS, CHANGED = 5, 600, 10, 8, 0.2
K = 15


def planted_series(seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Data sets, and which rows of the next are the same as before."""
    rng = np.random.default_rng(seed)
    centres = np.cumsum(rng.normal(size=(N_CLUSTERS, N_COLUMNS)) * 1.5, axis=0)
    spread = rng.uniform(0.5, 1.5, size=N_CLUSTERS)

    def drawn(n):
        cluster = rng.integers(N_CLUSTERS, size=n)
        return centres[cluster] + spread[cluster, None] * rng.normal(size=(n, N_COLUMNS))

    sets, same = [drawn(N_ROWS)], []
    for _ in range(N_SETS - 1):
        stays = rng.uniform(size=N_ROWS) >= CHANGED
        sets.append(np.where(stays[:, None], sets[-1], drawn(N_ROWS)))
        same.append(stays)
    return sets, same


def scores(embeddings, sets, same) -> tuple[float, float, float]:
    """Median move of rows that stayed, and 15-NN of the map and of all columns."""
    maps = [np.asarray(Y)[:, :2] for Y in embeddings]
    spread = np.mean([np.sqrt(((Y - Y.mean(axis=0)) ** 2).sum(axis=1).mean()) for Y in maps])
    steps = [
        np.linalg.norm(maps[t + 1][stays] - maps[t][stays], axis=1) for t, stays in enumerate(same)
    ]
    near = [exact_neighbors(X, K + 1).indices[:, 1 : K + 1] for X in sets]
    kept = [neighborhood_preservation(k, Y) for k, Y in zip(near, maps, strict=True)]
    every = [
        neighborhood_preservation(k, np.asarray(Y)) for k, Y in zip(near, embeddings, strict=True)
    ]
    return float(np.median(np.concatenate(steps)) / spread), np.mean(kept), np.mean(every)


def run_planted(seeds: int, alignment: float) -> None:
    from umap import UMAP, AlignedUMAP

    rows: dict[str, list] = {}
    for seed in range(seeds):
        sets, same = planted_series(seed)
        relations = [{int(i): int(i) for i in np.flatnonzero(stays)} for stays in same]
        ours = FinslerUMAP(random_state=seed)
        series = AlignedFinslerUMAP(ours, alignment=alignment).fit(sets, relations=relations)
        found = {
            "AlignedFinslerUMAP": series.embeddings_,
            "FinslerUMAP, separate": [ours.fit(X).embedding_.copy() for X in sets],
            "umap.AlignedUMAP": AlignedUMAP(random_state=seed)
            .fit(sets, relations=relations)
            .embeddings_,
            "umap.UMAP, separate": [UMAP(random_state=seed).fit_transform(X) for X in sets],
        }
        for name, embeddings in found.items():
            rows.setdefault(name, []).append(scores(embeddings, sets, same))
    print("| | move of rows that stayed | 15-NN, map | 15-NN, all columns |")
    print("| --- | --- | --- | --- |")
    for name, runs in rows.items():
        move, flat, every = np.median(runs, axis=0)
        print(f"| {name} | {move:.3f} | {flat:.3f} | {every:.3f} |")


def rewired(A: np.ndarray, rng, swaps_per_edge: int = 20) -> np.ndarray:
    """The same in- and out-degrees: targets of two random edges are swapped, many times."""
    source, target = np.nonzero(A)
    weight, m = A[source, target], source.size
    taken = set(zip(source.tolist(), target.tolist(), strict=True))
    for _ in range(swaps_per_edge * m):
        e, f = rng.integers(m, size=2)
        a, b, c, d = source[e], target[e], source[f], target[f]
        if a == d or c == b or b == d or (a, d) in taken or (c, b) in taken:
            continue
        taken -= {(a, b), (c, d)}
        taken |= {(a, d), (c, b)}
        target[e], target[f] = d, b
    out = np.zeros_like(A)
    out[source, target] = weight
    return out


def downhill(A: np.ndarray, height: np.ndarray, weights=None) -> float:
    """Share of synapses between neurons with a height that lead down."""
    i, j = np.nonzero(A)
    known = np.isfinite(height[i]) & np.isfinite(height[j])
    i, j = i[known], j[known]
    count = A[i, j].astype(float) if weights is None else A[i, j] * weights[i] * weights[j]
    return float(np.sum(count * (height[i] > height[j])) / count.sum())


def worm_series(stages, names, seed: int = 0) -> list[np.ndarray]:
    """Heights by stage, of neurons in the order of the names; nan for those that are not there."""
    estimator = FinslerUMAP(
        metric="precomputed", omega_norm=0.9, height="potential", random_state=seed
    )
    frames = []
    for A in stages:
        there = np.flatnonzero((A + A.T).any(axis=1))
        counts = scipy.sparse.csr_array(A[np.ix_(there, there)].astype(float))
        frames.append((there, read_directed(counts, values="strength")))
    series = AlignedFinslerUMAP(estimator).fit(
        [graph for _, graph in frames], names=[names[there] for there, _ in frames]
    )
    heights = []
    for (there, _), Y in zip(frames, series.embeddings_, strict=True):
        height = np.full(len(names), np.nan)
        height[there] = Y[:, -1]
        heights.append(height)
    return heights


def run_worms(data_dir, n_null: int, n_boot: int) -> None:
    stored = files.read(
        "worm_connectomes",
        data_dir,
        ("witvliet_chem", "names", "witvliet_stage", "witvliet_common"),
        route="PyPI cect, WitvlietDataReader1..8",
    )
    names, rng = stored["names"], np.random.default_rng(0)
    common = stored["witvliet_common"]
    pairs = np.outer(common, common) & ~np.eye(len(common), dtype=bool)
    stages = [A * pairs for A in stored["witvliet_chem"]]
    heights = worm_series(stages, names)
    null = [
        [downhill(A, h) for A, h in zip(chance, worm_series(chance, names), strict=True)]
        for chance in ([rewired(A, rng) for A in stages] for _ in range(n_null))
    ]
    null = np.array(null)
    print("| stage | synapses | leading down | 95 % interval | rewired, mean (sd) | z |")
    print("| --- | --- | --- | --- | --- | --- |")
    shares = []
    for t, (A, height) in enumerate(zip(stages, heights, strict=True)):
        share = downhill(A, height)
        boot = [
            downhill(A, height, rng.multinomial(len(names), np.full(len(names), 1 / len(names))))
            for _ in range(n_boot)
        ]
        low, high = np.quantile(boot, [0.025, 0.975])
        mean, sd = null[:, t].mean(), null[:, t].std(ddof=1)
        shares.append(share)
        print(
            f"| {stored['witvliet_stage'][t]} | {int(A.sum())} | {share:.3f} | {low:.3f} to "
            f"{high:.3f} | {mean:.3f} ({sd:.3f}) | {(share - mean) / sd:+.1f} |"
        )
    excess = np.array(shares) - null.mean(axis=0)
    age = np.arange(len(shares)) - (len(shares) - 1) / 2
    trend = float(age @ excess / (age @ age))
    chances = [(age @ (run - null.mean(axis=0))) / (age @ age) for run in null]
    print(
        f"trend of the share beyond rewired, per stage: {trend:+.4f}; of rewired series "
        f"{np.mean(chances):+.4f} (sd {np.std(chances, ddof=1):.4f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("planted", "worms"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--alignment", type=float, default=5.0)
    parser.add_argument("--null", type=int, default=20)
    parser.add_argument("--boot", type=int, default=1000)
    parser.add_argument("--data-dir")
    args = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if args.what == "planted":
            run_planted(args.seeds, args.alignment)
        else:
            run_worms(args.data_dir, args.null, args.boot)


if __name__ == "__main__":
    main()
