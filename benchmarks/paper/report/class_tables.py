"""Tables of the data with classes, and what follows from them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.markdown import NOT_RUN, command, figure, folded, interval, number, table
from benchmarks.paper.experiments import DRIFTS, PAPER_DRIFTS
from benchmarks.paper.methods import FAMILIES
from benchmarks.paper.naming import title_of
from benchmarks.paper.report.comparisons import (
    CHOICES,
    best_of_four,
    choice_title,
    compare,
    finsler_name,
    tally,
)
from benchmarks.paper.report.finding import Runs, middle, middles
from benchmarks.paper.scores import SCORES
from benchmarks.summary import difference, values

TITLES = {family: FAMILIES[family].title for family in ("umap", "tsne")}
SEPARATION = ("silhouette", "davies_bouldin", "calinski_harabasz")
CLASSIFIERS = ("knn5", "linear")
TALLIED = ("ami", "silhouette", "knn5", "linear", "knn15")


def classification(runs: Runs, family: str) -> str:
    found, title = runs[family], TITLES[family]
    parts = [f"## Classes: the {title} family\n", command(family)]
    if found.empty:
        return "\n".join([*parts, NOT_RUN])
    parts += [
        figure(f"{family}_percent", f"Percent difference of Finsler {title} to {title}"),
        f"### AMI at every drift\n\nMedians, with the number of seeds. *{title} 3-D* has as many "
        "columns as a map with a height; ω = 0 is the directed graph without drift, all columns "
        "moving from the start. *Best of four* is the paper's rule: of 0.001, 0.01, 0.1 and 0.5 "
        "the one with the highest mean AMI on the labels, chosen anew for every data set, on the "
        "same runs that it is then judged by.\n",
        _drift_table(found, family) + "\n",
        "### Won and lost\n",
        "Data sets won, lost and even, and the mean difference over data sets with its interval; "
        "+ is better. ω = 0 is the same graph without drift, from a start in all columns.\n",
        _tally_table(found, family) + "\n",
        "### Does the height mean anything?\n",
        "Share of neighbour pairs whose heights are in the order of their local scales "
        "(*sign*; 0.5 is chance), by drift.\n",
        _sign_table(found, family) + "\n",
        folded(
            f"AMI of the map columns alone, without the height, and its difference to {title} in "
            "as many columns",
            _map_table(found, family),
        )
        + "\n",
    ]
    for score in ("ami", *CLASSIFIERS, *SEPARATION[:2], "trust", "knn15"):
        turned = " (less is better; + in the brackets is better)" if SCORES[score][1] < 0 else ""
        summary = f"{SCORES[score][0]}, paired differences{turned}"
        parts.append(folded(summary, _difference_table(found, family, score)) + "\n")
    if family == "umap":
        pictures = (
            figure(f"gallery_{data.partition(':')[0]}", f"{data}: classes, k-means, height")
            for data in dict.fromkeys(found.data)
        )
        parts.append(folded("Galleries", "\n".join(pictures)) + "\n")
    return "\n".join(parts)


def _drifts(found: pd.DataFrame, family: str) -> list[float]:
    """The drifts that have been run."""
    names = set(found.method)
    return [w for w in sorted(DRIFTS) if finsler_name(family, w) in names]


def _controls(found: pd.DataFrame, family: str) -> list[str]:
    names = [f"{family}_2d", f"{family}_3d", f"harmonic_{family}_2d", f"harmonic_{family}_3d"]
    return [name for name in names if name in set(found.method)]


def _drift_table(found: pd.DataFrame, family: str) -> str:
    methods = [
        *_controls(found, family),
        *(finsler_name(family, w) for w in _drifts(found, family)),
    ]
    header = ["data", *(title_of(m).replace(f"Finsler {TITLES[family]}, ", "").replace(", 3-D", "")
                        if m.startswith("finsler") else title_of(m) for m in methods),
              "best of four", "seeds"]  # fmt: skip
    rows = []
    for data in dict.fromkeys(found.data):
        cells = [number(middle(found, data, m, "ami")) for m in methods]
        best = best_of_four(found, family, data)
        chosen = (
            ""
            if best is None
            else f"{number(middle(found, data, best, 'ami'))} ({best.split('_')[2]})"
        )
        rows.append((data, *cells, chosen, _seeds(found, data, methods)))
    return table(header, rows)


def _seeds(found: pd.DataFrame, data: str, methods: list[str]) -> str:
    """How many seeds the methods have."""
    counts = {len(values(found, data, m, "ami")) for m in methods}
    return " to ".join(str(n) for n in sorted({min(counts), max(counts)}))


def _tally_table(found: pd.DataFrame, family: str) -> str:
    parents = (f"{family}_2d", f"{family}_3d")
    no_drift = finsler_name(family, 0.0)
    rows = []
    for score in TALLIED:
        for choice in CHOICES:
            cells = [str(tally(found, family, choice, parent, score)) for parent in parents]
            cells.append("" if choice == 0 else str(tally(found, family, choice, no_drift, score)))
            rows.append((SCORES[score][0], choice_title(choice), *cells))
    return table(("score", "drift", "to 2-D", "to 3-D", "to ω = 0"), rows)


def _difference_table(found: pd.DataFrame, family: str, score: str) -> str:
    parents = (f"{family}_2d", f"{family}_3d")
    rows = []
    for data in dict.fromkeys(found.data):
        cells = [number(middle(found, data, p, score)) for p in parents]
        for ours in (finsler_name(family, 0.0), finsler_name(family, 0.01),
                     finsler_name(family, 0.5), best_of_four(found, family, data)):  # fmt: skip
            for parent in parents:
                gap = None if ours is None else compare(found, data, ours, parent, score)
                cells.append("" if gap is None else interval(gap))
        rows.append((data, *cells))
    header = ["data", "2-D", "3-D"]
    for name in ("ω = 0", "ω = 0.01", "ω = 0.5", "best of four"):
        header += [f"{name}, to 2-D", f"{name}, to 3-D"]
    return table(header, rows)


def _map_table(found: pd.DataFrame, family: str) -> str:
    parent = f"{family}_2d"
    methods = [finsler_name(family, w) for w in PAPER_DRIFTS]
    rows = []
    for data in dict.fromkeys(found.data):
        theirs = values(found, data, parent, "ami")
        cells = [number(middle(found, data, parent, "ami"))]
        for method in methods:
            gap = difference(values(found, data, method, "ami_map"), theirs)
            cells.append(f"{number(middle(found, data, method, 'ami_map'))} {interval(gap)}")
        rows.append((data, *cells))
    wins = [str(tally(found, family, w, parent, "ami_map", "ami")) for w in PAPER_DRIFTS]
    rows.append(("all", "", *wins))
    return table(["data", title_of(parent), *(f"ω = {w:g}" for w in PAPER_DRIFTS)], rows)


def _sign_table(found: pd.DataFrame, family: str) -> str:
    drifts = [w for w in _drifts(found, family) if w > 0]
    rows = [
        (data, *(number(middle(found, data, finsler_name(family, w), "sign"), 2) for w in drifts))
        for data in dict.fromkeys(found.data)
    ]
    return table(["data", *(f"ω = {w:g}" for w in drifts)], rows)


def full_size(runs: Runs) -> str:
    parts = ["## All 60,000 rows\n", command("full_size full_size_tsne")]
    empty = True
    for name, family in (("full_size", "umap"), ("full_size_tsne", "tsne")):
        found = runs[name]
        if found.empty:
            continue
        empty = False
        rows = []
        for data in dict.fromkeys(found.data):
            for method in dict.fromkeys(found[found.data == data].method):
                cells = [number(middle(found, data, method, s))
                         for s in ("ami", "knn5", "trust", "knn15", "sign")]  # fmt: skip
                gaps = [
                    "" if method == f"{family}_{d}d" else
                    interval(compare(found, data, method, f"{family}_{d}d", "ami"))
                    for d in (2, 3)
                ]  # fmt: skip
                seeds = len(values(found, data, method, "ami"))
                rows.append((data, title_of(method), *cells, *gaps, str(seeds)))
        header = ("data", "method", "AMI", "5-NN accuracy", "trustworthiness", "15-NN", "sign",
                  "AMI, to 2-D", "AMI, to 3-D", "seeds")  # fmt: skip
        parts.append(table(header, rows) + "\n")
    return "\n".join([*parts, NOT_RUN] if empty else parts)


def default_drift(runs: Runs) -> str:
    """Evidence for the default drift of FinslerUMAP and FinslerTSNE."""
    rows = []
    for family in ("umap", "tsne"):
        for w in sorted(DRIFTS):
            ours = finsler_name(family, w)
            signs = _over_data(runs[family], ours, None, "sign")
            ratios = [
                _over_data(runs[family], ours, f"{family}_3d", score)
                for score in ("ami", "knn15", "knn5")
            ]
            if ratios[0].size:
                medians = (number(float(np.median(v))) if v.size else "" for v in (signs, *ratios))
                worst, sets = number(float(ratios[0].min())), str(ratios[0].size)
                rows.append((TITLES[family], f"{w:g}", *medians, worst, sets))
    header = ("family", "ω", "sign", "AMI / parent 3-D", "15-NN / parent 3-D",
              "5-NN accuracy / parent 3-D", "worst AMI ratio", "data sets")  # fmt: skip
    body = table(header, rows) if rows else NOT_RUN
    return (
        "## The default drift\n\nMedians over data sets: how much the height means, and what it "
        "costs against the Euclidean parent with as many columns, over the seeds that both "
        "have. Both defaults are 0.5; they were set before these runs, which are a check and not "
        "a choice. On the digits, on which the layout of UMAP was tuned, they are not even a "
        "check.\n\n" + body
    )


def _over_data(found: pd.DataFrame, ours: str, parent: str | None, score: str) -> np.ndarray:
    """A method's medians on every data set, divided by the parent's if there is one."""
    ratios = []
    for data in dict.fromkeys(found.data):
        if parent is None:
            ratios.append(middle(found, data, ours, score))
        else:
            above, below = middles(found, data, (ours, parent), score)
            ratios.append(above / below)
    return np.array([r for r in ratios if np.isfinite(r)])


def not_run() -> str:
    rows = [
        (name, "`python -m benchmarks.data.torchvision_features " + f"{name} OUT.npz`")
        for name in ("cifar10", "cifar100", "caltech256", "oxford_pets", "gtsrb", "dtd", "imagenet",
                     "emnist_digits")
    ]  # fmt: skip
    return (
        "## Data sets of the paper that were not run here\n\nThey could not be had. The loader "
        "makes the "
        "features that a folder given by `--data-dir` needs.\n\n" + table(("data", "loader"), rows)
    )
