"""Tables of synthetic data, places and directed data: what the height shows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.markdown import NOT_RUN, command, figure, folded, number, table
from benchmarks.paper.naming import title_of
from benchmarks.paper.report.finding import Runs, middle


def _methods_table(runs: pd.DataFrame, data: str, columns: dict[str, tuple[str, ...]]) -> str:
    """Medians, a row a method; a column may be filled by the first of several scores."""
    rows = []
    for method in dict.fromkeys(runs[runs.data == data].method):
        cells = []
        for scores in columns.values():
            for score in scores:
                value = middle(runs, data, method, score)
                if np.isfinite(value):
                    hindsight = score.startswith("axis_") or score == "density_axis"
                    cells.append(f"({number(value)})" if hindsight else number(value))
                    break
            else:
                cells.append("")
        seeds = runs[(runs.data == data) & (runs.method == method)].seed.nunique()
        rows.append((title_of(method), *cells, str(seeds)))
    return folded(f"{data}, all methods", table(("method", *columns, "runs"), rows))


HEIGHT_NOTE = (
    "For methods without a height, the largest correlation of any principal axis is given in "
    "brackets, a choice made in hindsight. *Local scale itself* is no embedding: it is what the 15 "
    "nearest neighbours say of density, and a height that sees farther may say more. *Sign* is of "
    "neighbour pairs and local scales; for *as printed*, over all pairs and distances. Procrustes: "
    "0 is the known plane up to similarity, 1 is no likeness."
)


def synthetic(runs: Runs) -> str:
    parts = ["## Synthetic data\n", HEIGHT_NOTE + "\n"]
    parts += ["### Disk\n", command("disk")]
    found = runs["disk"]
    for n in (300, 1000, 3000):
        data = f"disk:{n}"
        if data in set(found.data):
            parts += [
                f"{n} points on 20 rays, rows shuffled by the seed.\n",
                _methods_table(found, data, {
                    "height, radius": ("height_radius", "axis_radius"),
                    "height, local scale": ("density_height", "density_axis"),
                    "sign": ("sign",), "Procrustes": ("procrustes",), "15-NN": ("knn15",),
                }) + "\n",
                figure(f"disk_{n}", f"Disk of {n} points, methods side by side"),
            ]  # fmt: skip
    if found.empty:
        parts.append(NOT_RUN)
    parts += ["### Swiss roll\n", command("swiss_roll")]
    found = runs["swiss_roll"]
    if found.empty:
        parts.append(NOT_RUN)
    else:
        parts += [
            "1887 points, a regular grid rolled up, sparser outwards; GD with the paper's learning "
            "rate of 0.1.\n",
            _methods_table(found, "swiss_roll", {
                "height, local scale": ("density_height", "density_axis"), "sign": ("sign",),
                "Procrustes": ("procrustes",), "15-NN": ("knn15",), "stress": ("stress",),
            }) + "\n",
            figure("swiss_roll", "Swiss roll, methods side by side"),
        ]  # fmt: skip
    parts += ["### Clusters\n", command("clusters")]
    found = runs["clusters"]
    if found.empty:
        parts.append(NOT_RUN)
    else:
        parts += [
            "500 points in five clusters of exponentially falling size, drawn anew for every "
            "seed. τ: "
            "Kendall correlation of mean height and label, with which sizes fall in expectation.\n",
            _methods_table(found, "clusters", {
                "τ": ("height_order",), "height, local scale": ("density_height", "density_axis"),
                "sign": ("sign",), "AMI": ("ami",), "15-NN": ("knn15",),
            }) + "\n",
            figure("clusters", "Clusters, methods side by side"),
        ]  # fmt: skip
    return "\n".join(parts)


def places(runs: Runs) -> str:
    parts = ["## US cities\n", command("us_cities")]
    found = runs["us_cities"]
    if found.empty:
        return "\n".join([*parts, NOT_RUN])
    parts += [
        "The 2,000 largest places of the lower 48 states by latitude and longitude; elevation "
        "is not "
        "used in the fit. Procrustes: to the true plane. The height of *radius distance* is its "
        "radius.\n",
        _methods_table(found, "us_cities", {
            "height, local scale": ("density_height", "density_axis"),
            "height, elevation": ("height_elevation", "axis_elevation"),
            "sign": ("sign",), "Procrustes": ("procrustes",), "15-NN": ("knn15",),
        }) + "\n",
        figure("us_cities", "US cities, methods side by side"),
    ]  # fmt: skip
    return "\n".join(parts)


def directed(runs: Runs) -> str:
    parts = ["## Directed data\n", command("flights directed")]
    parts.append(
        "*explained*: share of the skew part D − Dᵀ that the model reproduces (for UMAP and "
        "t-SNE by "
        "the best multiple of the height). *sign*: share of pairs in the right order. UMAP, "
        "t-SNE and "
        "Isomap get the mean of both directions, as they cannot use them.\n"
    )
    known = {"flights": "longitude", "morse": None, "polblogs": None, "velocity": "latent_time"}
    for data, truth in known.items():
        found = runs["flights" if data == "flights" else "directed"]
        if data not in set(found.data):
            continue
        columns: dict[str, tuple[str, ...]] = {
            "stress": ("stress",), "drift": ("omega",), "explained": ("explained",),
            "sign": ("sign",), "15-NN": ("knn15",),
        }  # fmt: skip
        if truth:
            columns[f"height, {truth.replace('_', ' ')}"] = (f"height_{truth}", f"axis_{truth}")
        parts += [f"### {data}\n", _methods_table(found, data, columns) + "\n"]
        if data in ("flights", "velocity"):
            parts.append(figure(data, f"{data}: methods side by side"))
    return "\n".join(parts)
