"""Pinned points: are they kept, what do they cost, and where do old points go in `update`?

    python -m benchmarks.pins

Digits, a share of the rows pinned to the places of a layout with another seed ("own") or to random
places within its range ("random"). 15-NN of all columns, of the free rows alone, beside the same
rows of a free fit. Then a tenth of the rows is added by `update`, with old points pinned and free.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_digits

from finsler_ext import FinslerTSNE, FinslerUMAP
from finsler_ext.neighbors.exact import exact_neighbors

K = 15


def kept(near, Y, rows) -> float:
    """Share of the nearest neighbours of these rows that a layout keeps."""
    shown = exact_neighbors(Y, K + 1).indices[:, 1 : K + 1]
    return float(np.mean([np.isin(near[i], shown[i]).mean() for i in rows]))


def run(seeds: int) -> None:
    X = load_digits().data
    near = exact_neighbors(X, K + 1).indices[:, 1 : K + 1]
    print("| method | pinned | places | equal bit for bit | 15-NN of free rows | free fit |")
    print("| --- | --- | --- | --- | --- | --- |")
    for estimator in (FinslerUMAP, FinslerTSNE):
        for share in (0.01, 0.5):
            for kind in ("own", "random"):
                found = [_pinned(estimator, X, near, share, kind, seed) for seed in range(seeds)]
                equal = all(run[0] for run in found)
                score, free = np.median([run[1:] for run in found], axis=0)
                print(
                    f"| {estimator.__name__} | {share:.0%} | {kind} | {'yes' if equal else 'no'} | "
                    f"{score:.3f} | {free:.3f} |"
                )
    first = len(X) * 9 // 10
    print("| update by a tenth | median move of old points / spread | 15-NN of new rows |")
    print("| --- | --- | --- |")
    for pinned in (None, "old"):
        model = FinslerUMAP(random_state=0).fit(X[:first])
        before = model.embedding_.copy()
        model.update(X[first:], pinned=pinned)
        move = np.linalg.norm(model.embedding_[:first] - before, axis=1)
        spread = np.sqrt(((before - before.mean(axis=0)) ** 2).sum(axis=1).mean())
        new = kept(near, model.embedding_, range(first, len(X)))
        print(f"| pinned={pinned!r} | {np.median(move) / spread:.3f} | {new:.3f} |")


def _pinned(estimator, X, near, share, kind, seed) -> tuple[bool, float, float]:
    rng = np.random.default_rng(seed)
    other = np.array(estimator(random_state=seed + 100).fit(X).embedding_)
    rows = rng.permutation(len(X))
    pinned, rest = np.split(rows, [int(share * len(X))])
    places = np.full(other.shape, np.nan)
    places[pinned] = other[pinned]
    if kind == "random":
        places[pinned] = other[rng.permutation(pinned)]
    Y = np.array(estimator(random_state=seed).fit(X, pinned=places).embedding_)
    free = np.array(estimator(random_state=seed).fit(X).embedding_)
    equal = bool((Y[pinned] == places[pinned].astype(Y.dtype)).all())
    return equal, kept(near, Y, rest), kept(near, free, rest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(args.seeds)


if __name__ == "__main__":
    main()
