"""Tables of the ablations."""

from __future__ import annotations

import pandas as pd

from benchmarks.experiments import EXPERIMENTS
from benchmarks.naming import title_of
from benchmarks.report.comparisons import compare, finsler_name
from benchmarks.report.finding import Runs, middle
from benchmarks.report.markdown import NOT_RUN, command, interval, number, table
from benchmarks.scores import SCORES
from benchmarks.summary import values


def ablations(runs: Runs) -> str:
    parts = ["## Ablations\n"]
    negatives = pd.concat([runs["negatives"], runs["umap"]])
    parts += ["### One-sided and two-sided negatives\n", command("negatives")]
    rows = []
    for data in dict.fromkeys(runs["negatives"].data):
        for w in (0.01, 0.1, 0.5, 0.9):
            one, two = f"one_sided_umap_{w:g}_3d", finsler_name("umap", w)
            cells = []
            for score in ("ami", "sign", "knn15"):
                cells += [number(middle(negatives, data, m, score)) for m in (one, two)]
            cells.append(interval(compare(negatives, data, two, one, "ami")))
            cells.append(interval(compare(negatives, data, two, one, "sign")))
            rows.append((data, f"{w:g}", *cells))
    header = ("data", "ω", "AMI, one", "two", "sign, one", "two", "15-NN, one", "two",
              "AMI, two − one", "sign, two − one")  # fmt: skip
    parts.append((table(header, rows) if rows else NOT_RUN) + "\n")
    parts += ["### Dimension\n", command("dimension")]
    found = pd.concat([runs["dimension"], runs["umap"]])
    rows = []
    for data in dict.fromkeys(runs["dimension"].data):
        for d in (2, 3, 5, 10, 50):
            methods = (f"umap_{d}d", *(finsler_name("umap", w, d) for w in (0.0, 0.01, 0.5)))
            cells = [number(middle(found, data, m, "ami")) for m in methods]
            cells += [interval(compare(found, data, m, methods[0], "ami")) for m in methods[1:]]
            cells.append(number(middle(found, data, methods[3], "sign"), 2))
            rows.append((data, str(d), *cells))
    header = ("data", "columns", "UMAP", "ω = 0", "ω = 0.01", "ω = 0.5", "ω = 0 − UMAP",
              "ω = 0.01 − UMAP", "ω = 0.5 − UMAP", "sign at 0.5")  # fmt: skip
    parts.append((table(header, rows) if rows else NOT_RUN) + "\n")
    parts += _small_tables(runs)
    return "\n".join(parts)


def _small_tables(runs: Runs) -> list[str]:
    parts = []
    scores = ("ami", "knn5", "linear", "silhouette", "trust", "knn15", "sign", "seconds")
    for name, title in (("density", "densMAP"), ("tsne_plane", "t-SNE in the plane"),
                        ("poincare", "Poincaré maps")):  # fmt: skip
        found = runs[name]
        parts += [f"### {title}\n", EXPERIMENTS[name].question + ".\n", command(name)]
        rows = [
            (data, title_of(m), *(number(middle(found, data, m, s)) for s in scores),
             str(len(values(found, data, m, "seconds"))))
            for data in dict.fromkeys(found.data)
            for m in dict.fromkeys(found[found.data == data].method)
        ]  # fmt: skip
        header = ("data", "method", *(SCORES[s][0] for s in scores), "runs")
        parts.append((table(header, rows) if rows else NOT_RUN) + "\n")
    return parts
