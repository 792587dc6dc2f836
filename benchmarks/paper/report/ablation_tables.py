"""Tables of the ablations."""

from __future__ import annotations

import pandas as pd

from benchmarks.markdown import (
    NOT_RUN,
    command,
    folded,
    interval,
    number,
    table,
    with_interval,
)
from benchmarks.paper.experiments import EXPERIMENTS
from benchmarks.paper.naming import title_of
from benchmarks.paper.report.comparisons import compare, finsler_name
from benchmarks.paper.report.finding import Runs, joined, middle, middles
from benchmarks.paper.scores import SCORES
from benchmarks.summary import mean_difference, values

SMALL_TABLES = {
    "density": "densMAP",
    "tsne_plane": "t-SNE in the plane",
    "poincare": "Poincaré maps",
}


def ablations(runs: Runs) -> str:
    parts = ["## Ablations\n", *_negatives(runs), *_dimension(runs), *_held_height(runs)]
    for name, title in SMALL_TABLES.items():
        parts += _small_table(runs[name], name, title)
    return "\n".join(parts)


def _or_not_run(header, rows) -> str:
    return (folded("Open the table", table(header, rows)) if rows else NOT_RUN) + "\n"


def _negatives(runs: Runs) -> list[str]:
    found = joined(runs["negatives"], runs["umap"])
    rows = []
    for data in dict.fromkeys(runs["negatives"].data):
        for w in (0.01, 0.1, 0.5, 0.9):
            one, two = f"one_sided_umap_{w:g}_3d", finsler_name("umap", w)
            cells = []
            for score in ("ami", "sign", "knn15"):
                cells += [number(v) for v in middles(found, data, (one, two), score)]
            cells.append(interval(compare(found, data, two, one, "ami")))
            cells.append(interval(compare(found, data, two, one, "sign")))
            rows.append((data, f"{w:g}", *cells))
    header = ("data", "ω", "AMI, one", "two", "sign, one", "two", "15-NN, one", "two",
              "AMI, two − one", "sign, two − one")  # fmt: skip
    return [
        "### One-sided and two-sided negatives\n",
        command("negatives"),
        _or_not_run(header, rows),
    ]


def _dimension(runs: Runs) -> list[str]:
    found = joined(runs["dimension"], runs["umap"])
    rows = []
    for data in dict.fromkeys(runs["dimension"].data):
        for d, layout in ((2, "finsler"), (2, "free"), *((d, "finsler") for d in (3, 5, 10, 50))):
            drifts = (f"{layout}_umap_{w:g}_{d}d" for w in (0.01, 0.5))
            methods = (f"umap_{d}d", finsler_name("umap", 0.0, d), *drifts)
            cells = [number(v) for v in middles(found, data, methods, "ami")]
            cells += [interval(compare(found, data, m, methods[0], "ami")) for m in methods[1:]]
            cells.append(number(middle(found, data, methods[3], "sign"), 2))
            rows.append((data, f"{d}{', never held' if layout == 'free' else ''}", *cells))
    header = ("data", "columns", "UMAP", "ω = 0", "ω = 0.01", "ω = 0.5", "ω = 0 − UMAP",
              "ω = 0.01 − UMAP", "ω = 0.5 − UMAP", "sign at 0.5")  # fmt: skip
    return ["### Dimension\n", command("dimension"), _or_not_run(header, rows)]


def _held_height(runs: Runs) -> list[str]:
    """Where the difference between ω = 0 and any drift comes from."""
    found = joined(runs["held_height"], runs["umap"])
    alone, flat = finsler_name("umap", 0.0, 2), finsler_name("umap", 0.0)
    names = list(dict.fromkeys(runs["held_height"].data))
    rows, means = [], []
    for w in (0.01, 0.5):
        held, free = finsler_name("umap", w), f"free_umap_{w:g}_3d"
        gaps = {
            "held − map alone": (held, alone),
            "free − held": (free, held),
            "free − ω = 0": (free, flat),
        }
        gaps = {
            title: [compare(found, data, *pair, "ami") for data in names]
            for title, pair in gaps.items()
        }
        words = ", ".join(f"{t} {with_interval(mean_difference(g))}" for t, g in gaps.items())
        means.append(f"ω = {w:g}: {words}")
        for data, *differences in zip(names, *gaps.values(), strict=True):
            ami = middles(found, data, (alone, held, free, flat), "ami")
            sign, near = (middles(found, data, (held, free), s) for s in ("sign", "knn15"))
            rows.append(
                (data, f"{w:g}", *map(number, ami), *map(interval, differences),
                 *(number(v, 2) for v in sign), *map(number, near))
            )  # fmt: skip
    header = ("data", "ω", "AMI, map alone", "held", "free", "ω = 0, 3-D", "held − map alone",
              "free − held", "free − ω = 0", "sign, held", "free", "15-NN, held",
              "free")  # fmt: skip
    return [
        "### Holding the height\n",
        "FinslerUMAP lets its map settle in two columns before the height is released; at "
        "ω = 0 all three columns move from the start. *Map alone* is the same layout without "
        "drift in two columns. *Free* starts in three columns, as ω = 0 does, and all of them "
        "move from the first epoch on, at one rate. Where *held* agrees with *map alone* and "
        "*free* with ω = 0, label agreement is that of a map in two or in three columns, whatever "
        "the drift; where an interval excludes 0, the drift or the schedule has a part in it.\n",
        command("held_height"),
        f"Mean AMI differences over data sets. {'. '.join(means)}.\n" if rows else "",
        _or_not_run(header, rows),
    ]


def _small_table(found: pd.DataFrame, name: str, title: str) -> list[str]:
    scores = ("ami", "knn5", "linear", "silhouette", "trust", "knn15", "sign")
    rows = [
        (data, title_of(m), *(number(middle(found, data, m, s)) for s in scores),
         str(len(values(found, data, m, "ami"))))
        for data in dict.fromkeys(found.data)
        for m in dict.fromkeys(found[found.data == data].method)
    ]  # fmt: skip
    header = ("data", "method", *(SCORES[s][0] for s in scores), "runs")
    question = EXPERIMENTS[name].question + ".\n"
    return [f"### {title}\n", question, command(name), _or_not_run(header, rows)]
