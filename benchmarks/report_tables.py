"""The tables of RESULTS.md, one function a section; a section without runs says so."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.claims import middle
from benchmarks.comparisons import best_of_four, compare, finsler_name
from benchmarks.experiments import DRIFTS, EXPERIMENTS
from benchmarks.markdown import interval, number, table
from benchmarks.naming import title_of
from benchmarks.scores import SCORES
from benchmarks.summary import values

__all__ = [
    "ablations",
    "classification",
    "default_drift",
    "directed",
    "full_size",
    "not_run",
    "places",
    "spread_of_means",
    "synthetic",
]

Runs = dict[str, pd.DataFrame]
NOT_RUN = "Not run yet.\n"


def _command(name: str) -> str:
    return f"    python -m benchmarks run {name}\n"


def _figure(name: str, words: str) -> str:
    return f"![{words}](figures/{name}.png)\n"


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
    return table(("method", *columns, "runs"), rows)


HEIGHT_NOTE = (
    "For methods without a height, the largest correlation of any principal axis is given in "
    "brackets, a choice made in hindsight. *Local scale itself* is no embedding: it is the ceiling of "
    "what density says. Procrustes: 0 is the known plane up to similarity, 1 is no likeness."
)


def synthetic(runs: Runs) -> str:
    parts = ["## Synthetic data\n", HEIGHT_NOTE + "\n"]
    parts += ["### Disk\n", _command("disk")]
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
                _figure(f"disk_{n}", f"Disk of {n} points, methods side by side"),
            ]  # fmt: skip
    if found.empty:
        parts.append(NOT_RUN)
    parts += ["### Swiss roll\n", _command("swiss_roll")]
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
            _figure("swiss_roll", "Swiss roll, methods side by side"),
        ]  # fmt: skip
    parts += ["### Clusters\n", _command("clusters")]
    found = runs["clusters"]
    if found.empty:
        parts.append(NOT_RUN)
    else:
        parts += [
            "500 points in five clusters of exponentially falling size, drawn anew for every seed. τ: "
            "Kendall correlation of mean height and label, which is the order of falling size.\n",
            _methods_table(found, "clusters", {
                "τ": ("height_order",), "height, local scale": ("density_height", "density_axis"),
                "sign": ("sign",), "AMI": ("ami",), "15-NN": ("knn15",),
            }) + "\n",
            _figure("clusters", "Clusters, methods side by side"),
        ]  # fmt: skip
    return "\n".join(parts)


def places(runs: Runs) -> str:
    parts = ["## US cities\n", _command("us_cities")]
    found = runs["us_cities"]
    if found.empty:
        return "\n".join([*parts, NOT_RUN])
    parts += [
        "The 2,000 largest places of the lower 48 states by latitude and longitude; elevation is not "
        "used in the fit. Procrustes: to the true plane. The height of *radius distance* is its "
        "radius.\n",
        _methods_table(found, "us_cities", {
            "height, local scale": ("density_height", "density_axis"),
            "height, elevation": ("height_elevation", "axis_elevation"),
            "sign": ("sign",), "Procrustes": ("procrustes",), "15-NN": ("knn15",),
        }) + "\n",
        _figure("us_cities", "US cities, methods side by side"),
    ]  # fmt: skip
    return "\n".join(parts)


def directed(runs: Runs) -> str:
    parts = ["## Directed data\n", _command("flights directed")]
    parts.append(
        "*explained*: share of the skew part D − Dᵀ that the model reproduces (for UMAP and t-SNE by "
        "the best multiple of the height). *sign*: share of pairs in the right order. UMAP, t-SNE and "
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
            parts.append(_figure(data, f"{data}: methods side by side"))
    return "\n".join(parts)


TITLES = {"umap": "UMAP", "tsne": "t-SNE"}
AGREEMENT = ("ami", "ari", "nmi", "homogeneity", "completeness", "v_measure", "fmi")
SEPARATION = ("silhouette", "davies_bouldin", "calinski_harabasz")
CLASSIFIERS = ("knn5", "linear")
OURS = ("trust", "knn15", "sign", "explained", "density_height")


def classification(runs: Runs, family: str) -> str:
    found, title = runs[family], TITLES[family]
    parts = [f"## Classes: the {title} family\n", _command(family)]
    if found.empty:
        return "\n".join([*parts, NOT_RUN])
    parts += [
        _figure(f"{family}_percent", f"Percent difference of Finsler {title} to {title}"),
        f"### AMI at every drift\n\nMedians, with the number of seeds. *{title} 3-D* has as many "
        "columns as a map with a height; ω = 0 is the directed graph without drift. *Best of four* is "
        "the paper's rule: of 0.001, 0.01, 0.1 and 0.5 the one with the highest mean AMI on the "
        "labels, chosen anew for every data set.\n",
        _drift_table(found, family) + "\n",
        "### AMI, paired differences\n",
        _difference_table(found, family, "ami") + "\n",
    ]
    for name, scores in (("Supervised", CLASSIFIERS), ("Label-free", SEPARATION[:2]),
                         ("Neighbourhoods", ("trust", "knn15"))):  # fmt: skip
        parts.append(f"### {name}\n")
        for score in scores:
            parts += [f"{SCORES[score][0]}:\n", _difference_table(found, family, score) + "\n"]
    parts += [
        "### Does the height mean anything?\n",
        "Share of neighbour pairs whose heights are in the order of their local scales (*sign*; 0.5 is "
        "chance), by drift.\n",
        _sign_table(found, family) + "\n",
        "### All scores\n",
        "Median, mean and standard deviation.\n",
        _all_scores(found, family) + "\n",
    ]
    if family == "umap":
        parts.append("### Galleries\n")
        parts += [
            _figure(f"gallery_{data.partition(':')[0]}", f"{data}: classes, k-means, height")
            for data in dict.fromkeys(found.data)
        ]
    return "\n".join(parts)


def _controls(found: pd.DataFrame, family: str) -> list[str]:
    names = [f"{family}_2d", f"{family}_3d", f"harmonic_{family}_2d", f"harmonic_{family}_3d"]
    return [name for name in names if name in set(found.method)]


def _drift_table(found: pd.DataFrame, family: str) -> str:
    methods = [*_controls(found, family), *(finsler_name(family, w) for w in sorted(DRIFTS))]
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
        seeds = len(values(found, data, finsler_name(family, 0.5), "ami"))
        rows.append((data, *cells, chosen, str(seeds)))
    return table(header, rows)


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


def _sign_table(found: pd.DataFrame, family: str) -> str:
    drifts = [w for w in sorted(DRIFTS) if w > 0]
    rows = [
        (data, *(number(middle(found, data, finsler_name(family, w), "sign"), 2) for w in drifts))
        for data in dict.fromkeys(found.data)
    ]
    return table(["data", *(f"ω = {w:g}" for w in drifts)], rows)


def _all_scores(found: pd.DataFrame, family: str) -> str:
    scores = (*AGREEMENT, *SEPARATION, *CLASSIFIERS, *OURS)
    methods = [*_controls(found, family)[:2], finsler_name(family, 0.0),
               finsler_name(family, 0.01), finsler_name(family, 0.5)]  # fmt: skip
    rows = []
    for data in dict.fromkeys(found.data):
        for method in methods:
            cells = []
            for score in scores:
                runs = values(found, data, method, score)
                digits = 0 if score == "calinski_harabasz" else 3
                cells.append(
                    "" if runs.empty else f"{number(runs.median(), digits)} "
                    f"({number(runs.mean(), digits)} ± {number(runs.std(ddof=0), digits)})"
                )  # fmt: skip
            rows.append((data, title_of(method), *cells))
    body = table(("data", "method", *(SCORES[s][0] for s in scores)), rows)
    return f"<details>\n<summary>Open the table</summary>\n\n{body}\n\n</details>"


def full_size(runs: Runs) -> str:
    parts = ["## All 60,000 rows\n", _command("full_size full_size_tsne")]
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


def ablations(runs: Runs) -> str:
    parts = ["## Ablations\n"]
    negatives = pd.concat([runs["negatives"], runs["umap"]])
    parts += ["### One-sided and two-sided negatives\n", _command("negatives")]
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
    parts += ["### Dimension\n", _command("dimension")]
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
        parts += [f"### {title}\n", EXPERIMENTS[name].question + ".\n", _command(name)]
        rows = [
            (data, title_of(m), *(number(middle(found, data, m, s)) for s in scores),
             str(len(values(found, data, m, "seconds"))))
            for data in dict.fromkeys(found.data)
            for m in dict.fromkeys(found[found.data == data].method)
        ]  # fmt: skip
        header = ("data", "method", *(SCORES[s][0] for s in scores), "runs")
        parts.append((table(header, rows) if rows else NOT_RUN) + "\n")
    return parts


def default_drift(runs: Runs) -> str:
    """Evidence for the default drift of FinslerUMAP and FinslerTSNE."""
    rows = []
    for family in ("umap", "tsne"):
        found = runs[family]
        for w in sorted(DRIFTS):
            name = finsler_name(family, w)
            per_score = {}
            for score in ("ami", "knn15", "sign", "knn5"):
                ratios = []
                for data in dict.fromkeys(found.data):
                    ours = middle(found, data, name, score)
                    base = 1.0 if score == "sign" else middle(found, data, f"{family}_3d", score)
                    if np.isfinite([ours, base]).all():
                        ratios.append(ours / base if score != "sign" else ours)
                per_score[score] = ratios
            if per_score["ami"]:
                rows.append((TITLES[family], f"{w:g}",
                             *(number(float(np.median(per_score[s]))) if per_score[s] else ""
                               for s in ("sign", "ami", "knn15", "knn5")),
                             number(min(per_score["ami"])), str(len(per_score["ami"]))))  # fmt: skip
    header = ("family", "ω", "sign", "AMI / parent 3-D", "15-NN / parent 3-D",
              "5-NN accuracy / parent 3-D", "worst AMI ratio", "data sets")  # fmt: skip
    body = table(header, rows) if rows else NOT_RUN
    return (
        "## The default drift\n\nMedians over data sets: how much the height means, and what it costs "
        "against the Euclidean parent with as many columns.\n\n" + body
    )


def spread_of_means(runs: Runs) -> str:
    found = runs["umap"]
    text = (
        "## Means with a large deviation\n\n"
        "The paper's table has entries such as 0.750 ± 0.375 over ten runs (Imagenette, UMAP) beside a "
        "silhouette of 0.830 ± 0.005. Eight runs at 0.9375 and two at 0 have exactly this mean and this "
        "deviation, and a silhouette that does not move says that the embedding did not change: "
        "such a row counts runs that failed in scoring, rather than comparing embeddings. That "
        "reading fits the numbers; it is ours, and the paper is not known to say so. "
    )
    here = values(found, "imagenette", "umap_2d", "ami")
    if len(here) > 1:
        text += (
            f"Here, with other features, UMAP in two dimensions on Imagenette has an AMI of "
            f"{here.mean():.3f} ± {here.std(ddof=0):.3f} over {len(here)} runs, between "
            f"{here.min():.3f} and {here.max():.3f}."
        )
    return text


def not_run() -> str:
    rows = [
        (name, "`python -m benchmarks.data.torchvision_features " + f"{name} OUT.npz`")
        for name in ("cifar10", "cifar100", "caltech256", "oxford_pets", "gtsrb", "dtd", "imagenet",
                     "emnist_digits")
    ]  # fmt: skip
    return (
        "## Data sets of the paper that were not run here\n\nThey could not be had. The loader makes the "
        "features that a folder given by `--data-dir` needs.\n\n" + table(("data", "loader"), rows)
    )
