"""Percent differences to the Euclidean parent, per score and data set, with intervals."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd

from benchmarks.paper.experiments import EXPERIMENTS
from benchmarks.paper.methods import FAMILIES
from benchmarks.paper.scores import SCORES
from benchmarks.summary import difference, values

__all__ = ["draw_percent_chart"]

CHARTED = (
    "ami", "ari", "nmi", "fmi", "silhouette", "davies_bouldin", "knn5", "linear", "trust", "knn15",
)  # fmt: skip
DRIFTS = ("0", "0.01", "0.5")
COLOURS = {"0": "0.55", "0.01": "#4c9be8", "0.5": "#d1495b"}
HEIGHT_PER_DATA = 0.42


def draw_percent_chart(runs: pd.DataFrame, family: str):
    """Left of each panel worse, right better than the parent in two and three dimensions."""
    data = [name for name in EXPERIMENTS[family].data if name in set(runs.data)]
    columns = 5
    rows = -(-len(CHARTED) // columns)
    figure, axes = plt.subplots(
        rows, columns, sharey=True, layout="constrained",
        figsize=(2.5 * columns, rows * (HEIGHT_PER_DATA * len(data) + 0.8)),
    )  # fmt: skip
    for panel, score in zip(axes.flat, CHARTED, strict=True):
        title, better = SCORES[score]
        for parent, marker, shift in ((f"{family}_2d", "o", -0.16), (f"{family}_3d", "^", 0.16)):
            for step, drift in enumerate(DRIFTS):
                _points(panel, runs, data, score, better, f"finsler_{family}_{drift}_3d", parent,
                        marker, shift + 0.08 * (step - 1), COLOURS[drift])  # fmt: skip
        panel.axvline(0, color="0.3", lw=0.8)
        panel.set_title(
            title + (" (less is better: sign turned)" if better < 0 else ""), fontsize=8
        )
        panel.tick_params(labelsize=7)
        panel.set_xlabel("% better than the parent", fontsize=7)
        panel.grid(axis="y", color="0.92")
    axes.flat[0].set_yticks(range(len(data)), [d.partition(":")[0] for d in data])
    axes.flat[0].invert_yaxis()
    name = FAMILIES[family].title
    handles = [
        plt.Line2D([], [], marker="s", ls="", color=COLOURS[d], label=f"Finsler {name}, ω = {d}")
        for d in DRIFTS
    ]
    handles += [
        plt.Line2D([], [], marker=m, ls="", color="0.3", label=f"against {name} in {where}")
        for m, where in (("o", "two dimensions"), ("^", "three dimensions"))
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=5, fontsize=8, frameon=False)
    return figure


def _points(panel, runs, data, score, better, method, parent, marker, shift, colour):
    for y, name in enumerate(data):
        ours, theirs = values(runs, name, method, score), values(runs, name, parent, score)
        if ours.empty or theirs.empty:
            continue
        gap = difference(ours, theirs)
        unit = 100 * better / abs(theirs.median())
        ends = sorted((gap.low * unit, gap.high * unit))
        panel.plot(ends, [y + shift] * 2, color=colour, lw=1)
        panel.plot(gap.median * unit, y + shift, marker, color=colour, ms=3.5)
