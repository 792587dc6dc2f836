"""New rows: where transform puts them, against umap-learn's transform.

    python -m benchmarks.umap_new_rows digits
    python -m benchmarks.umap_new_rows mnist:6000 --seeds 3 --data-dir DIR

A third of the rows is held back. Scores of each run:

    accuracy      5-NN classification of the held-back rows in the embedding of the others
    shift         median distance from a training row's place to where transform puts it again,
                  in units of the median nearest-neighbour distance of the embedding
    height_shift  mean of that shift along the last column, in standard deviations of it
    back          median error of inverse_transform(transform(held-back row)), against the
                  error of the mean row
    seconds       of transform, after a first call that compiles

Training rows are told from themselves by one part in 10^5: transform would recognise them
otherwise. Every run is a line of a CSV; runs found there are not repeated.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from benchmarks.data import labelled
from benchmarks.ledger import RESULTS, Ledger, read_runs
from benchmarks.summary import print_medians
from benchmarks.umap_quality import CONTROLS, embed

METHODS = (*CONTROLS, "finsler_0", "finsler_0.3", "finsler_0.6", "finsler_0.9")
NEARLY = np.float32(1 + 1e-5)
# umap-learn's inverse takes seconds per row where there are many features: a few rows must do,
# and for it none beyond this many features.
N_INVERSE, MAX_FEATURES = 50, 100


def scores_of(model, old, new, y_old, y_new) -> dict[str, float]:
    model.transform(new[:5] * NEARLY)
    started = time.perf_counter()
    placed = model.transform(new)
    seconds = time.perf_counter() - started
    Y = model.embedding_
    shift = model.transform(old * NEARLY) - Y
    spacing = NearestNeighbors(n_neighbors=1).fit(Y).kneighbors()[0]
    scores = {}
    if hasattr(model, "omega_norm_") or old.shape[1] <= MAX_FEATURES:
        back = model.inverse_transform(placed[:N_INVERSE]) - new[:N_INVERSE]
        spread = new[:N_INVERSE] - old.mean(axis=0)
        error = np.linalg.norm(back, axis=1) / np.linalg.norm(spread, axis=1)
        scores["back"] = np.median(error)
    return scores | {
        "accuracy": KNeighborsClassifier(5).fit(Y, y_old).score(placed, y_new),
        "shift": np.median(np.linalg.norm(shift, axis=1)) / np.median(spacing),
        "height_shift": shift[:, -1].mean() / Y[:, -1].std(),
        "seconds": seconds,
    }


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.umap_new_rows", description=__doc__)
    parser.add_argument("data", nargs="*", help="digits, NAME or NAME:SIZE; none: report")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data-dir")
    parser.add_argument("--results", type=Path, default=RESULTS / "umap_new_rows.csv")
    options = parser.parse_args(argv)
    ledger = Ledger(options.results)
    for spec in options.data:
        name, _, size = spec.partition(":")
        X, y = labelled(name, int(size) if size else None, options.data_dir)
        old, new, y_old, y_new = train_test_split(X, y, test_size=1 / 3, random_state=0, stratify=y)
        for seed in range(options.seeds):
            for method in METHODS:
                if ledger.has(spec, method, seed):
                    continue
                model = embed(method, old, seed, (None, None, None))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    scores = scores_of(model, old, new, y_old, y_new)
                ledger.add(spec, method, seed, scores)
                print(spec, method, seed, {k: round(float(v), 4) for k, v in scores.items()})
    print_medians(read_runs([options.results]), CONTROLS)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
