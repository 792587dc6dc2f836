"""Figures of the experiments: the same axes and colours for all methods, scores in the titles.

Embeddings are made anew from seed 0, which is what the first run of each ledger is.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_mutual_info_score

from benchmarks.ledger import read_runs
from benchmarks.paper.experiments import LARGE, SMALL
from benchmarks.paper.methods import Embedded, embed
from benchmarks.paper.naming import title_of
from benchmarks.paper.percent_chart import draw_percent_chart
from benchmarks.paper.problem import Problem, problem_of
from benchmarks.paper.scores import clusters, height_scores, truth_scores

__all__ = ["draw"]

DPI = 90
PANEL = 2.3
DENSITY_COLOURS, LABEL_COLOURS = "viridis", "tab10"
MANY_LABELS = "nipy_spectral"
# Points of a picture; more would only cover each other.
SHOWN_POINTS = 6000
COLUMNS = 4
# Galleries leave out the farthest islands, and no colour scale reaches to the last outlier.
SHOWN_SHARE = 99.5
# Height of a side view in units of its width, at least.
MIN_SIDE_SHARE = 0.3


class Picture(NamedTuple):
    """Methods side by side on one data set."""

    data: str
    methods: tuple[str, ...]
    colour: str
    scores: tuple[str, ...]


SYNTHETIC_METHODS = (
    "isomap_2d", "umap_2d", "tsne_2d", "umap_3d",
    "finsler_mds_0.5_3d", "finsler_umap_0.5_3d", "finsler_tsne_0.5_3d", "paper_umap_0.5_3d",
)  # fmt: skip
PICTURES = {
    "disk": tuple(
        Picture(f"disk:{n}", SYNTHETIC_METHODS, "spacing", ("radius", "procrustes"))
        for n in (300, 1000, 3000)
    ),
    "swiss_roll": (
        Picture(
            "swiss_roll",
            (*SYNTHETIC_METHODS[:6], "finsler_umap_0.5_3d+k50", SYNTHETIC_METHODS[6]),
            "spacing",
            ("density", "procrustes"),
        ),
    ),
    "clusters": (
        Picture(
            "clusters",
            (*SYNTHETIC_METHODS[:6], "finsler_umap_0.5_3d+k300", SYNTHETIC_METHODS[6]),
            "labels",
            ("height_order", "density"),
        ),
    ),
    "us_cities": (
        Picture(
            "us_cities",
            ("isomap_2d", "umap_2d", "tsne_2d", "poincare_2d", "slide_vector_2d",
             "radius_distance_2d", "finsler_mds_0.5_3d", "finsler_umap_0.5_3d",
             "finsler_tsne_0.5_3d"),
            "spacing",
            ("density", "procrustes"),
        ),
    ),
    "flights": (
        Picture(
            "flights",
            ("symmetric_mds_2d", "slide_vector_2d", "radius_distance_2d", "finsler_mds_auto_2d",
             "finsler_mds_auto_3d", "finsler_umap_0.5_3d", "finsler_tsne_0.5_3d"),
            "longitude",
            ("longitude", "explained"),
        ),
    ),
    "directed": (
        Picture(
            "velocity",
            ("symmetric_mds_3d", "slide_vector_3d", "radius_distance_2d", "finsler_mds_auto_3d",
             "finsler_umap_0.5_3d", "finsler_tsne_0.5_3d"),
            "latent_time",
            ("latent_time", "sign"),
        ),
    ),
}  # fmt: skip
GALLERY_METHODS = ("umap_2d", "finsler_umap_0.5_3d")
# t-SNE takes minutes on the larger sets, and is shown on the small ones.
SMALL_GALLERY_METHODS = (*GALLERY_METHODS, "tsne_2d", "finsler_tsne_0.5_3d")


def draw(experiment: str, *, data_dir: str | None, results: Path, folder: Path) -> None:
    """All figures of an experiment."""
    folder.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES.get(experiment, ()):
        problem = problem_of(picture.data, data_dir, 0)
        figure = _side_by_side(picture, problem)
        _save(figure, folder / f"{picture.data.replace(':', '_')}.png")
    if experiment in ("umap", "tsne"):
        runs = read_runs([results / f"runs_{experiment}.csv"])
        if len(runs):
            _save(draw_percent_chart(runs, experiment), folder / f"{experiment}_percent.png")
    if experiment == "umap":
        for data in (*SMALL, *LARGE):
            figure = _gallery(data, problem_of(data, data_dir, 0))
            _save(figure, folder / f"gallery_{data.partition(':')[0]}.png")


def _save(figure, path: Path) -> None:
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
    print(path.name)


# ------------------------------------------------------------------ methods side by side


def _side_by_side(picture: Picture, problem: Problem):
    """Three or four methods a row, the map of each above its side view; one scale for all."""
    found = [embed(method, problem, 0) for method in picture.methods]
    views = [_views(embedded, problem) for embedded in found]
    highest = max(float(np.abs(level).max()) for _, level in views if level is not None)
    extent = 1.05 * max(highest, *(float(np.abs(places).max()) for places, _ in views))
    share = max(MIN_SIDE_SHARE, 1.05 * highest / extent)
    columns = COLUMNS if len(found) % COLUMNS != 1 else COLUMNS - 1
    groups = -(-len(found) // columns)
    figure, axes = plt.subplots(
        2 * groups, columns, layout="constrained", squeeze=False,
        height_ratios=[1, share] * groups,
        figsize=(PANEL * columns + 0.9, groups * ((1 + share) * PANEL + 0.7)),
    )  # fmt: skip
    colours, kind = _colours(picture.colour, problem)
    for panel in axes.flat:
        panel.axis("off")
    marks = None
    for place, (method, embedded, (places, level)) in enumerate(
        zip(picture.methods, found, views, strict=True)
    ):
        row, column = 2 * (place // columns), place % columns
        above, below = axes[row, column], axes[row + 1, column]
        scores = _score_line(picture, embedded, problem)
        above.set_title(f"{_two_lines(title_of(method))}\n{scores}", fontsize=8)
        marks = _dots(above, places[:, 0], places[:, 1], colours, kind, extent)
        if level is None:
            words = "no side view: two columns"
            below.text(0.5, 0.5, words, ha="center", va="center", fontsize=8, color="0.4",
                       transform=below.transAxes)  # fmt: skip
            continue
        _dots(below, places[:, 0], level, colours, kind, extent)
        below.set_ylim(-share * extent, share * extent)
        below.text(0.02, 0.95, "height" if embedded.has_height else "third axis", fontsize=7,
                   color="0.3", va="top", transform=below.transAxes)  # fmt: skip
    _legend(figure, axes, marks, kind, picture, problem)
    return figure


def _two_lines(title: str) -> str:
    name, comma, rest = title.partition(", ω")
    if comma:
        return f"{name}\nω{rest}"
    name, _, rest = title.rpartition(", ")
    return f"{name}\n{rest}"


def _score_line(picture: Picture, embedded: Embedded, problem: Problem) -> str:
    Y = np.asarray(embedded.embedding, dtype=np.float64)
    found = height_scores(embedded, Y, problem) | truth_scores(embedded, Y, problem)
    names = {
        "procrustes": "Procrustes", "height_order": "order τ", "explained": "explained",
        "sign": "sign", "density_height": "height–scale", "density_axis": "(axis–scale)",
    }  # fmt: skip
    parts = []
    for score in picture.scores:
        keys = (score, f"height_{score}", f"axis_{score}", f"{score}_height", f"{score}_axis")
        for key in keys:
            if key in found:
                name = names.get(key, key.replace("_", "–", 1).replace("_", " "))
                if key.startswith("axis_"):
                    name = f"({name})"
                parts.append(f"{name} {found[key]:.2f}")
                break
    return ", ".join(parts) or " "


def _views(embedded: Embedded, problem: Problem):
    """Map of unit size, turned onto the known places if there are any, and a third column."""
    Y = np.asarray(embedded.embedding, dtype=np.float64)
    Y = Y - Y.mean(axis=0)
    if not embedded.has_height and Y.shape[1] > 2:
        Y = PCA(3, random_state=0).fit_transform(Y)
    if Y.shape[1] == 2 and embedded.has_height:
        return Y / _size(Y), None
    places, level = Y[:, :2], Y[:, 2] if Y.shape[1] > 2 else None
    size = _size(places)
    places = _turned(places / size, problem.dataset.truth.get("plane"))
    return places, None if level is None else level / size


def _size(places) -> float:
    return float(np.sqrt((places**2).sum(axis=1).mean()))


def _turned(places, plane):
    if plane is None:
        return places
    plane = plane - plane.mean(axis=0)
    left, _, right = np.linalg.svd(places.T @ plane)
    return places @ (left @ right)


def _colours(what: str, problem: Problem):
    if what == "labels":
        return problem.dataset.labels, "labels"
    if what == "spacing":
        return np.log(problem.spacing), "values"
    return problem.dataset.truth[what], "values"


def _dots(axes, x, y, colours, kind, extent: float):
    shown = slice(None)
    if len(x) > SHOWN_POINTS:
        shown = np.random.RandomState(0).permutation(len(x))[:SHOWN_POINTS]
    size = 9 if len(x) < 1500 else 3 if len(x) < 5000 else 1.2
    low, high = np.nanpercentile(colours, [100 - SHOWN_SHARE, SHOWN_SHARE])
    options: dict = {"cmap": DENSITY_COLOURS, "vmin": low, "vmax": high}
    if kind == "labels":
        top = int(np.max(colours))
        options = {"cmap": LABEL_COLOURS if top < 10 else MANY_LABELS, "vmin": -0.5,
                   "vmax": 9.5 if top < 10 else top + 0.5}  # fmt: skip
    marks = axes.scatter(x[shown], y[shown], c=np.asarray(colours)[shown], s=size, lw=0, **options)
    axes.axis("on")
    axes.set(xlim=(-extent, extent), ylim=(-extent, extent), aspect="equal", xticks=[], yticks=[])
    return marks


def _legend(figure, axes, marks, kind, picture: Picture, problem: Problem) -> None:
    if kind == "labels":
        classes, counts = np.unique(problem.dataset.labels, return_counts=True)
        handles = [
            plt.Line2D([], [], marker="o", ls="", color=marks.cmap(marks.norm(c)),
                       label=f"{c} ({size})")
            for c, size in zip(classes, counts, strict=True)
        ]  # fmt: skip
        figure.legend(handles=handles, loc="outside right center", fontsize=8, frameon=False,
                      title="class (points)", title_fontsize=8)  # fmt: skip
        return
    words = {"spacing": "log local scale (yellow: sparse)", "latent_time": "latent time"}
    bar = figure.colorbar(marks, ax=axes, fraction=0.012, pad=0.005)
    bar.set_label(words.get(picture.colour, picture.colour), fontsize=8)
    bar.ax.tick_params(labelsize=7)


# ------------------------------------------------------------------ galleries


def _gallery(data: str, problem: Problem):
    """A row a method; columns: classes, k-means clusters, height."""
    methods = SMALL_GALLERY_METHODS if data in SMALL else GALLERY_METHODS
    figure, axes = plt.subplots(
        len(methods), 3, figsize=(3 * PANEL + 0.4, len(methods) * PANEL + 0.6),
        layout="constrained",
    )  # fmt: skip
    labels = problem.dataset.labels
    for row, method in zip(axes, methods, strict=True):
        embedded = embed(method, problem, 0)
        places, level = _views(embedded, problem)
        found = clusters(np.asarray(embedded.embedding, dtype=np.float64), labels)
        agreement = adjusted_mutual_info_score(labels, found)
        extent = 1.1 * float(np.percentile(np.abs(places), SHOWN_SHARE))
        row[0].set_ylabel(_two_lines(title_of(method)), fontsize=8)
        _dots(row[0], *places.T, labels, "labels", extent)
        row[0].set_title("classes", fontsize=8)
        _dots(row[1], *places.T, found, "labels", extent)
        row[1].set_title(f"k-means, AMI {agreement:.3f}", fontsize=8)
        if level is None:
            row[2].axis("off")
        else:
            _dots(row[2], *places.T, level, "values", extent)
            sign = "" if embedded.skew is None else f", sign {embedded.skew.sign:.2f}"
            row[2].set_title(f"height (yellow: high){sign}", fontsize=8)
    figure.suptitle(f"{data}: {problem.n} points, seed 0", fontsize=10)
    return figure
