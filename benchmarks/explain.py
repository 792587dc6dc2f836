"""Does `finsler_ext.explain` find the features that a height was made of?

    python -m benchmarks.explain planted
    python -m benchmarks.explain airports --data-dir DIR

Planted: five of thirty features set the local scale of rows (``features``), or the order of the
nodes of a digraph (``digraph``); five more are copies of the drivers with as much noise again. All
but the drivers have a third of their spread, so that neighbours resemble each other in the drivers.
The features are then seen through noise, in units of their own spread. Precision among the first
five, and that of an oracle that knows how the data were made.

Airports: attributes of US airports beside the height that flight times alone have given them; the
height is known to point west.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import scipy.sparse
from scipy.stats import rankdata

from benchmarks.data import files
from benchmarks.data.directed import FLIGHTS, FLIGHTS_ROUTE
from finsler_ext import FinslerMDS, FinslerUMAP
from finsler_ext.explain import explain

N, N_FEATURES, N_DRIVERS = 800, 30, 5
NOISES = (0.0, 0.5, 1.0, 2.0)
OTHERS = 0.3
# Weights of the drivers; one of them bends.
WEIGHTS = np.array([1.0, -0.9, 0.8, 0.8])


def planted_features(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features whose first five drive the order, which is returned beside them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(N, N_FEATURES))
    X[:, N_DRIVERS : 2 * N_DRIVERS] = X[:, :N_DRIVERS] + rng.normal(size=(N, N_DRIVERS))
    order = X[:, : N_DRIVERS - 1] @ WEIGHTS + 1.8 * (X[:, N_DRIVERS - 1] ** 2 - 1 / 3)
    X[:, N_DRIVERS:] *= OTHERS
    return X, order


def planted_digraph(order: np.ndarray, seed: int, degree: int = 12) -> scipy.sparse.csr_array:
    """Edges between random pairs, most of them from the higher to the lower."""
    rng = np.random.default_rng(seed + 1000)
    i = np.repeat(np.arange(N), degree)
    j = (i + rng.integers(1, N, size=i.size)) % N
    down = rng.uniform(size=i.size) < 1 / (1 + np.exp(-4.0 * (order[i] - order[j])))
    source, target = np.where(down, i, j), np.where(down, j, i)
    edges = scipy.sparse.coo_array((np.ones(i.size), (source, target)), shape=(N, N)).tocsr()
    edges.data[:] = 1.0
    return edges


def precision(explanation) -> float:
    return float(np.mean(explanation.order[:N_DRIVERS] < N_DRIVERS))


def oracle(X, seen, noise: float, column) -> tuple[int, ...]:
    """The first five of someone who knows how the data were made, but for which are the drivers.

    That is the distribution of every feature, the noise, and that four drivers are straight and one
    is bent. Of each feature it takes the expected value and square behind the noise, and asks how
    much worse the column's ranks are explained by all features without them.
    """
    drawn, _ = planted_features(10**6)
    lines, bends = seen.copy(), seen**2
    for c in range(N_FEATURES) if noise else ():
        off = (seen[:, c, None] - drawn[:, c]) / (noise * X[:, c].std())
        chance = np.exp(-0.5 * off**2)
        chance /= chance.sum(axis=1, keepdims=True)
        lines[:, c], bends[:, c] = chance @ drawn[:, c], chance @ drawn[:, c] ** 2
    basis = np.hstack([lines, bends])
    basis = (basis - basis.mean(axis=0)) / basis.std(axis=0)
    ranks = rankdata(column) - (len(column) + 1) / 2

    def error(left_out: int) -> float:
        rest = np.delete(basis, left_out, axis=1)
        return float(np.sum((ranks - rest @ np.linalg.lstsq(rest, ranks, rcond=None)[0]) ** 2))

    worse = np.array([error(j) for j in range(basis.shape[1])])
    straight = np.argsort(-worse[:N_FEATURES])[: N_DRIVERS - 1]
    bent = next(j for j in np.argsort(-worse[N_FEATURES:]) if j not in straight)
    return (*straight.tolist(), int(bent))


def run_planted(seeds: range, n_draws: int) -> list[tuple]:
    """(kind, column, noise, seed, precision, first five)."""
    runs = []
    for seed in seeds:
        X, order = planted_features(seed)
        models = {
            "features": FinslerUMAP(local_scale=np.exp(order), random_state=seed).fit(X),
            "digraph": FinslerUMAP(metric="precomputed", omega_norm=0.9, random_state=seed).fit(
                planted_digraph(order, seed)
            ),
        }
        rng = np.random.default_rng(seed + 2000)
        for noise in NOISES:
            seen = X + noise * X.std(axis=0) * rng.normal(size=X.shape)
            for kind, model in models.items():
                for column in ("height", "potential"):
                    found = explain(model, seen, column, n_draws=n_draws, random_state=seed)
                    first = tuple(sorted(found.order[:N_DRIVERS].tolist()))
                    runs.append((kind, column, noise, seed, precision(found), first))
                    first = oracle(X, seen, noise, found.values)
                    right = float(np.mean(np.array(first) < N_DRIVERS))
                    runs.append((f"{kind}, oracle", column, noise, seed, right, first))
    return runs


def print_planted(runs) -> None:
    print("| what | column | noise | precision@5, mean | worst seed | same five in seeds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind, column, noise in dict.fromkeys(run[:3] for run in runs):
        mine = [run for run in runs if run[:3] == (kind, column, noise)]
        scores = [run[4] for run in mine]
        sets = [run[5] for run in mine]
        same = max(sets.count(found) for found in sets) / len(sets)
        print(
            f"| {kind} | {column} | {noise:g} | {np.mean(scores):.2f} | {min(scores):.2f} | "
            f"{same:.0%} |"
        )


def run_airports(data_dir) -> None:
    keys = ("D", "latlon", "elevation_ft", "n_flights")
    stored = files.read(FLIGHTS, data_dir, keys, route=FLIGHTS_ROUTE)
    attributes = np.column_stack(
        [stored["latlon"], stored["elevation_ft"], stored["n_flights"].sum(axis=1)]
    )
    names = ["latitude", "longitude", "elevation", "number of flights"]
    model = FinslerMDS(n_components=2, metric="precomputed", omega_norm="auto", random_state=0)
    print(explain(model.fit(stored["D"]), attributes, names=names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("planted", "airports"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--data-dir")
    args = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if args.what == "planted":
            print_planted(run_planted(range(args.seeds), args.draws))
        else:
            run_airports(args.data_dir)


if __name__ == "__main__":
    main()
