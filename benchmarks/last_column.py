"""What the last column is worth: drop-in quality over the drift, and the height on data held out.

    python -m benchmarks.last_column drifts --data-dir DIR      # default height, eight drifts
    python -m benchmarks.last_column held_out --data-dir DIR    # judged by the other half
    python -m benchmarks.last_column free --data-dir DIR        # height="free", the paper's rules
    python -m benchmarks.last_column components --data-dir DIR  # 2, 4, 5, 10 and 50 columns
    python -m benchmarks.last_column plot                       # last_column.png, of the drifts

Runs are kept in benchmarks/results/last_column.csv with the commit they were made with; those
found there are not repeated, and each command ends with its tables. Methods of a data set and seed
share one neighbour graph.

Held out (the clean protocol): rows are divided at random into halves A and B; neighbours, scales,
graph and layout come from A alone. Heights of A are scored by Spearman correlation over the
neighbour pairs of A, both orientations, with the log of the mean distance to 14 points of B.
"""

from __future__ import annotations

import argparse
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.manifold import trustworthiness
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from benchmarks.data import load
from benchmarks.ledger import RESULTS, Ledger, read_runs
from benchmarks.summary import RESAMPLES, difference, values
from finsler_ext.metrics import neighborhood_preservation

LEDGER = RESULTS / "last_column.csv"
LABELLED = (
    "digits", "mnist", "fashion_mnist", "kmnist", "emnist_balanced", "imagenette", "caltech101",
    "flowers102", "dtd10", "pbmc68k",
)  # fmt: skip
PLANE = ("disk:300", "swiss_roll:1000", "us_cities:2000")
DRIFTS = (0.0, 0.001, 0.01, 0.03, 0.1, 0.3, 0.5, 0.9)
FREE_DRIFTS, HEIGHT_DRIFTS = (0.01, 0.1, 0.5), (0.1, 0.3, 0.5, 0.9)
COLUMNS = (2, 4, 5, 10, 50)
UMAPS, OURS = ("umap_2d", "umap_3d"), [f"default_{w:g}" for w in DRIFTS]
FREE = [f"{kind}_{w:g}" for w in FREE_DRIFTS for kind in ("free", "paper", "paper_both_ways")]
WIDE = [f"columns_{kind}_{m}" for m in COLUMNS for kind in ("umap", "0.01", "0.5")]
NEIGHBORS, TARGETS = 15, 14
# What may be lost to UMAP before a set counts as behind.
MARGIN = 0.005
TINY = 1e-12


class Problem:
    """Rows, labels and neighbours of one data set."""

    def __init__(self, spec: str, rows: int, data_dir: str | None):
        name, _, size = spec.partition(":")
        plain = name in ("iris", "digits", "dtd10", "pbmc68k")
        found = load(spec if size or plain else f"{name}:{rows}", data_dir=data_dir)
        self.name = name
        self.X = np.asarray(found.X, dtype=np.float32)
        labels = found.labels
        self.labels = None if labels is None or len(np.unique(labels)) > 200 else np.asarray(labels)
        if name in ("disk", "swiss_roll", "us_cities"):
            self.labels = None

    def knn(self):
        finder = NearestNeighbors(n_neighbors=NEIGHBORS + 1).fit(self.X)
        distances, indices = finder.kneighbors(self.X)
        return indices, distances.astype(np.float32)


def fitted(kind: str, X, knn, seed: int, **options):
    """A fitted umap.UMAP or FinslerUMAP on a copy of the neighbours."""
    indices, distances = knn
    given = indices[:, :NEIGHBORS].copy(), distances[:, :NEIGHBORS].copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == "umap":
            from umap import UMAP

            return UMAP(random_state=seed, precomputed_knn=(*given, None), **options).fit(X)
        from finsler_ext import FinslerUMAP

        return FinslerUMAP(random_state=seed, precomputed_knn=(*given, None), **options).fit(X)


def scores_of(problem: Problem, knn, Y, prefix: str = "") -> dict[str, float]:
    """15-NN preservation, trustworthiness, 5-NN accuracy and AMI of k-means."""
    found = {
        "nn15": neighborhood_preservation(knn[0][:, 1:], Y),
        "trust": trustworthiness(problem.X, Y, n_neighbors=NEIGHBORS),
    }
    y = problem.labels
    if y is not None:
        clusters = KMeans(len(np.unique(y)), n_init=10, random_state=0).fit_predict(Y)
        found["ami"] = adjusted_mutual_info_score(y, clusters)
        rare = np.bincount(np.unique(y, return_inverse=True)[1]).min() < 5
        folds = 2 if rare else 5
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            votes = KNeighborsClassifier(n_neighbors=5)
            found["knn5"] = cross_val_score(votes, Y, y, cv=folds).mean()
    return {prefix + score: value for score, value in found.items()}


@cache
def commit() -> str:
    """The commit the runs are made with, their note in the ledger."""
    command = ["git", "-C", str(RESULTS), "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def run(ledger: Ledger, data: str, method: str, seed: int, scores: Callable, *given, **options):
    """Scores of one run, unless it is in the ledger."""
    if ledger.has(data, method, seed):
        return
    started = time.perf_counter()
    found = scores(*given, seed=seed, **options)
    found |= {"seconds": time.perf_counter() - started}
    ledger.add(data, method, seed, found, note=commit())
    short = {score: round(float(value), 3) for score, value in found.items()}
    print(data, method, seed, short, flush=True)


def of_umap(problem: Problem, knn, *, seed: int, **options) -> dict[str, float]:
    return scores_of(problem, knn, fitted("umap", problem.X, knn, seed, **options).embedding_)


def of_ours(problem: Problem, knn, *, seed: int, **options) -> dict[str, float]:
    model = fitted("ours", problem.X, knn, seed, **options)
    Y = model.embedding_
    found = scores_of(problem, knn, Y) | {"sign": model.skew_fidelity_.sign}
    if Y.shape[1] == 3:
        found |= scores_of(problem, knn, Y[:, :-1], "map_")
    if problem.name == "disk":
        radius = np.linalg.norm(problem.X, axis=1)
        found["radius"] = spearmanr(Y[:, -1], radius).statistic
    return found


def of_paper(problem: Problem, knn, *, seed: int, omega_norm: float, two_sided: bool):
    from umap.umap_ import find_ab_params

    from benchmarks.paper.methods import paper_umap

    a, b = find_ab_params(1.0, 0.1)
    graph = fitted("ours", problem.X, knn, seed, transform_mode="graph").graph_
    Y = paper_umap.lay_out(
        problem.X, graph, 3, omega_norm=omega_norm, a=a, b=b, two_sided=two_sided, seed=seed
    )
    log_scale = np.log(knn[1][:, 1:NEIGHBORS].mean(axis=1))
    source, target = graph.nonzero()
    data = np.sign(log_scale[target] - log_scale[source])
    shown = np.sign(Y[target, -1] - Y[source, -1])
    return scores_of(problem, knn, Y) | {"sign": float((data == shown)[data != 0].mean())}


def of_halves(problem: Problem, *, seed: int) -> dict[str, float]:
    order = np.random.RandomState(seed).permutation(len(problem.X))
    A, B = problem.X[order[: len(order) // 2]], problem.X[order[len(order) // 2 :]]
    distances, near = NearestNeighbors(n_neighbors=NEIGHBORS + 1).fit(A).kneighbors(A)
    knn = near, distances.astype(np.float32)
    truth = NearestNeighbors(n_neighbors=TARGETS).fit(B).kneighbors(A)[0]
    truth = np.log(truth.mean(axis=1) + TINY)
    raw = np.log(distances[:, 1:].mean(axis=1) + TINY)
    rank = partial(pair_rank, truth=truth, near=near[:, 1:])
    found = {"raw": rank(raw), "smooth": rank(raw[near[:, 1:]].mean(axis=1))}
    for omega in HEIGHT_DRIFTS:
        model = fitted("ours", A, knn, seed, omega_norm=omega)
        found[f"height_{omega:g}"] = rank(model.embedding_[:, -1])
        found[f"sign_{omega:g}"] = model.skew_fidelity_.sign
        found["potential"] = rank(getattr(model, "potential_", raw))
    return found


def pair_rank(level, truth, near) -> float:
    """Spearman correlation of differences over neighbour pairs, both orientations."""
    source, target = np.repeat(np.arange(len(near)), near.shape[1]), near.ravel()
    ours, theirs = (v[target] - v[source] for v in (level, truth))
    return float(spearmanr(np.concatenate([ours, -ours]), np.concatenate([theirs, -theirs]))[0])


def problems(specs, options, ledger: Ledger, methods, rows=None) -> Iterator[tuple[Problem, int]]:
    """Data sets and seeds with something left to run."""
    for spec in specs:
        problem = None
        for seed in range(options.seeds):
            if all(ledger.has(spec.partition(":")[0], method, seed) for method in methods):
                continue
            problem = problem or Problem(spec, rows or options.rows, options.data_dir)
            yield problem, seed


def drifts(options, ledger: Ledger) -> None:
    for problem, seed in problems((*LABELLED, *PLANE), options, ledger, [*UMAPS, *OURS]):
        name, knn = problem.name, problem.knn()
        for m, method in zip((2, 3), UMAPS, strict=True):
            run(ledger, name, method, seed, of_umap, problem, knn, n_components=m)
        for omega, method in zip(DRIFTS, OURS, strict=True):
            run(ledger, name, method, seed, of_ours, problem, knn, omega_norm=omega)


def held_out(options, ledger: Ledger) -> None:
    """Split halves, of ``--rows`` each."""
    sets = (*LABELLED, "us_cities:2950")
    for problem, seed in problems(sets, options, ledger, [options.name], 2 * options.rows):
        run(ledger, problem.name, options.name, seed, of_halves, problem)


def free(options, ledger: Ledger) -> None:
    for problem, seed in problems(LABELLED[:6], options, ledger, FREE):
        name, knn = problem.name, problem.knn()
        for omega in FREE_DRIFTS:
            given = {"omega_norm": omega}
            run(
                ledger, name, f"free_{omega:g}", seed, of_ours, problem, knn, height="free", **given
            )
            for method, both in (("paper", False), ("paper_both_ways", True)):
                method = f"{method}_{omega:g}"
                run(ledger, name, method, seed, of_paper, problem, knn, two_sided=both, **given)


def components(options, ledger: Ledger) -> None:
    sets = ("digits", "fashion_mnist", "imagenette")
    for problem, seed in problems(sets, options, ledger, WIDE):
        name, knn = problem.name, problem.knn()
        for m in COLUMNS:
            given = {"n_components": m}
            run(ledger, name, f"columns_umap_{m}", seed, of_umap, problem, knn, **given)
            for omega in (0.01, 0.5):
                method = f"columns_{omega:g}_{m}"
                run(ledger, name, method, seed, of_ours, problem, knn, omega_norm=omega, **given)


# ------------------------------------------------------------------ tables


def table(runs: pd.DataFrame, data, methods, score: str, title: str) -> None:
    print(f"\n{title}, means over seeds")
    print("| | " + " | ".join(methods) + " |\n|" + " --- |" * (len(methods) + 1))
    rows = []
    for name in data:
        means = [values(runs, name, method, score).mean() for method in methods]
        if not np.isnan(means).all():
            rows.append(means)
            print(f"| {name} | " + " | ".join(f"{v:.3f}" for v in means) + " |")
    if rows:
        print("| mean | " + " | ".join(f"{v:.3f}" for v in np.mean(rows, axis=0)) + " |")


def behind(runs: pd.DataFrame, data, method: str, control: str, score: str, theirs: str) -> list:
    """Sets on which a method is behind a control by more than the margin, and by an interval."""
    found = []
    for name in data:
        gap = difference(
            values(runs, name, method, score), values(runs, name, control, theirs), once=True
        )
        if gap.pairs and gap.median < -MARGIN and not gap.high >= 0:
            found.append(f"{name} {gap.median:+.3f}")
    return found


def gap_of_means(runs: pd.DataFrame, data, method: str, control: str, score: str) -> str:
    """The paired difference of two means over sets; seeds of each set are resampled."""
    gaps = [values(runs, name, method, score) - values(runs, name, control, score) for name in data]
    gaps = [gap.dropna().to_numpy() for gap in gaps if gap.notna().any()]
    if not gaps:
        return "no runs"
    rng = np.random.default_rng(0)
    drawn = [gap[rng.integers(gap.size, size=(RESAMPLES, gap.size))].mean(axis=1) for gap in gaps]
    low, high = np.quantile(np.mean(drawn, axis=0), (0.025, 0.975))
    return f"{np.mean([gap.mean() for gap in gaps]):+.4f} [{low:+.4f}, {high:+.4f}]"


def print_behind(runs, data, methods, score: str, flat: str, full: str) -> None:
    """Where all columns are behind one control, and the map behind the other."""
    for method in methods:
        late = behind(runs, data, method, full, score, score)
        flat_late = behind(runs, data, method, flat, "map_" + score, score)
        print(f"{method}: behind {full} on {late or 'no set'}; map behind {flat} on "
              f"{flat_late or 'no set'}")  # fmt: skip


def print_tables(which: str, runs: pd.DataFrame) -> None:
    names = [spec.partition(":")[0] for spec in (*LABELLED, *PLANE)]
    ours = OURS
    if which == "drifts":
        for score in ("nn15", "trust", "knn5", "ami"):
            table(runs, names, ["umap_3d", *ours], score, f"All columns, {score}")
            shown = runs.assign(score=runs.score.str.removeprefix("map_"))
            flat = runs.method.str.startswith("umap") | runs.score.str.startswith("map_")
            table(shown[flat], names, ["umap_2d", *ours], score, f"Map columns, {score}")
            print_behind(runs, names, ours, score, *UMAPS)
        table(runs, names, ours, "sign", "In-sample sign of the height")
        table(runs, ["disk"], ours, "radius", "Spearman(height, radius) of the disk")
    elif which == "held_out":
        print("\nRank on the other half, means over splits")
        columns = ["raw", "smooth", "potential", *(f"height_{w:g}" for w in HEIGHT_DRIFTS)]
        print("| | " + " | ".join(columns) + " |\n|" + " --- |" * (len(columns) + 1))
        for name in names:
            for method in runs.method[runs.method.str.startswith("held_out")].unique():
                means = [values(runs, name, method, column).mean() for column in columns]
                if not np.isnan(means).all():
                    print(f"| {name}, {method} | " + " | ".join(f"{v:.2f}" for v in means) + " |")
    elif which == "free":
        for score in ("nn15", "ami", "sign"):
            table(runs, names, FREE, score, f"Free and the paper's rules, {score}")
            for omega, kind in product(FREE_DRIFTS, ("paper", "paper_both_ways")):
                pair = f"free_{omega:g}", f"{kind}_{omega:g}"
                print(" - ".join(pair) + ":", gap_of_means(runs, names, *pair, score))
    else:
        for score in ("nn15", "ami"):
            table(runs, names, WIDE, score, f"More columns, {score}")


def plot(runs: pd.DataFrame, file: Path) -> None:
    """Scores over the drift, means over sets and seeds; lines without points are UMAP's."""
    from matplotlib.figure import Figure

    names = [spec.partition(":")[0] for spec in (*LABELLED, *PLANE)]
    kinds = [
        ("", "all columns", "C0o", "umap_3d", "UMAP 3-D"),
        ("map_", "map columns", "C1s", "umap_2d", "UMAP 2-D"),
    ]
    titles = {
        "nn15": "15-NN preservation", "trust": "trustworthiness", "knn5": "5-NN accuracy",
        "ami": "AMI", "sign": "sign of the height", "radius": "disk: Spearman(height, radius)",
    }  # fmt: skip

    of_sets = runs[runs.data.isin(names)].groupby(["method", "score", "data"]).value.mean()
    mean = of_sets.groupby(["method", "score"]).mean()
    figure = Figure(figsize=(10.5, 6), layout="constrained")
    for axes, (score, title) in zip(figure.subplots(2, 3).flat, titles.items(), strict=True):
        single = score in ("sign", "radius")
        for prefix, label, style, control, theirs in kinds[: 1 if single else 2]:
            level = [mean[method, prefix + score] for method in OURS]
            axes.plot(range(len(DRIFTS)), level, style + "-", label=label)
            if not single:
                dash = "--" if prefix else ":"
                axes.axhline(mean[control, score], color=style[:2], linestyle=dash, label=theirs)
        axes.set_title(title)
        axes.set_xticks(range(len(DRIFTS)), [f"{omega:g}" for omega in DRIFTS], fontsize=8)
        axes.set_xlabel("ω")
        if score == "nn15":
            figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(file, dpi=100)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table", choices=("drifts", "held_out", "free", "components", "plot"))
    parser.add_argument("--data-dir")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--name", default="held_out", help="of the runs of held_out, by version")
    parser.add_argument("--print", action="store_true", dest="only_print", help="run nothing")
    options = parser.parse_args(argv)
    if options.table == "plot":
        plot(read_runs([options.ledger]), options.ledger.with_suffix(".png"))
        return 0
    if not options.only_print:
        globals()[options.table](options, Ledger(options.ledger))
    print_tables(options.table, read_runs([options.ledger]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
