"""The paper's claims, what the runs say, and a verdict for each.

Of the paper, arXiv 2603.11396, the abstract, the beginning of the introduction and part of the
caption of Figure 1 were at hand in its own words; its protocol, printed formulas and a few
numbers from notes taken from it. Where only the existence of a comparison is known and not
what the paper concludes from it, ``wording`` is False and the report says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.comparisons import (
    DOES_NOT,
    HOLDS,
    compare,
    finsler_name,
    tally,
    verdict,
)
from benchmarks.summary import values

__all__ = ["CLAIMS", "Claim", "Finding"]

NOT_YET = "not tested here yet"
# Spearman correlations that a reader would call "follows".
FOLLOWS = 0.8


class Finding(NamedTuple):
    ours: str
    verdict: str


class Claim(NamedTuple):
    """A claim in our words, and how to judge it from the runs of all experiments."""

    where: str
    statement: str
    paper: str
    judge: Callable[[dict[str, pd.DataFrame]], Finding]
    wording: bool = True


def middle(runs: pd.DataFrame, data: str, method: str, score: str) -> float:
    found = values(runs, data, method, score)
    return float(found.median()) if len(found) else float("nan")


def _listed(runs, data, methods, score) -> str:
    known = {m: middle(runs, data, m, score) for m in methods}
    return ", ".join(f"{v:.2f}" for v in known.values() if np.isfinite(v)) or "none"


# ------------------------------------------------------------------ label agreement


def agreement(family: str, score: str = "ami"):
    def judge(all_runs) -> Finding:
        runs = all_runs[family]
        if runs.empty:
            return Finding("", NOT_YET)
        parts = []
        for title, drift in (("ω = 0.01", 0.01), ("ω = 0.5", 0.5), ("best of four", None)):
            two = tally(runs, family, drift, f"{family}_2d", score)
            three = tally(runs, family, drift, f"{family}_3d", score)
            parts.append(f"{title}: to 2-D {two}; to 3-D {three}")
        chosen = (tally(runs, family, None, f"{family}_{d}d", score) for d in (2, 3))
        return Finding(". ".join(parts) + ".", verdict(*chosen))

    return judge


def consistency(all_runs) -> Finding:
    """ "Consistently superior": every agreement score, both families, best of four."""
    parts, verdicts = [], []
    for family in ("umap", "tsne"):
        runs = all_runs[family]
        if runs.empty:
            return Finding("", NOT_YET)
        for score in ("ami", "silhouette", "knn5"):
            two, three = (tally(runs, family, None, f"{family}_{d}d", score) for d in (2, 3))
            parts.append(f"{family} {score}: to 2-D {two}; to 3-D {three}")
            verdicts.append(verdict(two, three))
    worst = DOES_NOT if DOES_NOT in verdicts else max(verdicts, key=len)
    return Finding(". ".join(parts) + ".", worst)


def third_dimension(all_runs) -> Finding:
    """How much of the gain over two dimensions the directed graph at no drift has already."""
    parts = []
    for family in ("umap", "tsne"):
        runs = all_runs[family]
        names = dict.fromkeys(runs.data)
        gains, control = [], []
        for data in names:
            ours = compare(runs, data, finsler_name(family, 0.5), f"{family}_2d", "ami")
            plain = compare(runs, data, f"{family}_3d", f"{family}_2d", "ami")
            if ours.pairs and plain.pairs:
                gains.append(ours.median)
                control.append(plain.median)
        if gains:
            parts.append(
                f"{family}: mean AMI gain over 2-D {np.mean(gains):+.3f} for Finsler at ω = 0.5, "
                f"{np.mean(control):+.3f} for the Euclidean parent in 3-D ({len(gains)} sets)"
            )
    return Finding(". ".join(parts), DOES_NOT if parts else NOT_YET)


def dimension(all_runs) -> Finding:
    runs = pd.concat([all_runs["dimension"], all_runs["umap"]])
    parts, signs = [], []
    for data in dict.fromkeys(all_runs["dimension"].data):
        for d in (5, 10, 50):
            for drift in (0.01, 0.5):
                gap = compare(runs, data, finsler_name("umap", drift, d), f"umap_{d}d", "ami")
                if gap.pairs > 1:
                    signs.append(np.sign(gap.low) + np.sign(gap.high))
                    parts.append(
                        f"{data} {d}-D, ω = {drift:g}: {gap.median:+.3f} "
                        f"[{gap.low:+.3f}, {gap.high:+.3f}]"
                    )
    if not parts:
        return Finding("", NOT_YET)
    won, lost = signs.count(2.0), signs.count(-2.0)
    result = HOLDS if lost == 0 and 2 * won > len(signs) else DOES_NOT
    return Finding("AMI against UMAP with as many columns: " + "; ".join(parts), result)


def plane(all_runs) -> Finding:
    runs = pd.concat([all_runs["dimension"], all_runs["umap"]])
    parts, lows = [], []
    for data in dict.fromkeys(all_runs["dimension"].data):
        for drift in (0.0, 0.01, 0.5):
            gap = compare(runs, data, finsler_name("umap", drift, 2), "umap_2d", "ami")
            if gap.pairs > 1:
                lows.append(gap.low)
                parts.append(
                    f"{data}, ω = {drift:g}: {gap.median:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"
                )
    if not parts:
        return Finding("", NOT_YET)
    return Finding(
        "Finsler UMAP in R² against UMAP in R², AMI: " + "; ".join(parts),
        HOLDS if min(lows) > 0 else DOES_NOT,
    )


def drift_effect(all_runs) -> Finding:
    runs, spreads, signs = all_runs["umap"], [], {}
    for data in dict.fromkeys(runs.data):
        scores = [
            middle(runs, data, finsler_name("umap", w), "ami") for w in (0.001, 0.01, 0.1, 0.5)
        ]
        if np.isfinite(scores).all():
            spreads.append(max(scores) - min(scores))
    for w in (0.001, 0.01, 0.1, 0.5):
        found = [middle(runs, d, finsler_name("umap", w), "sign") for d in dict.fromkeys(runs.data)]
        signs[w] = float(np.nanmedian(found)) if np.isfinite(found).any() else float("nan")
    if not spreads:
        return Finding("", NOT_YET)
    return Finding(
        f"AMI over the four drifts of the paper differs by {np.median(spreads):.3f} (median over "
        f"{len(spreads)} data sets, at most {max(spreads):.3f}); the share of neighbour pairs in the "
        "right order of height by "
        + ", ".join(f"{v:.2f} at {w:g}" for w, v in signs.items())
        + " (0.5 is chance).",
        "labels hardly notice the drift; the height is empty below 0.1",
    )


# ------------------------------------------------------------------ heights


def disk(all_runs) -> Finding:
    runs, parts, good = all_runs["disk"], [], []
    for n in (300, 1000, 3000):
        data = f"disk:{n}"
        found = {
            name: middle(runs, data, f"finsler_{name}_0.5_3d", "height_radius")
            for name in ("mds", "umap", "tsne")
        }
        if not np.isfinite(list(found.values())).any():
            continue
        ceiling = middle(runs, data, "spacing_1d", "height_radius")
        text = ", ".join(f"{k} {v:.2f}" for k, v in found.items())
        parts.append(f"{n} points: {text} (local scale itself {ceiling:.2f})")
        good += [v >= FOLLOWS for v in found.values() if np.isfinite(v)]
    if not parts:
        return Finding("", NOT_YET)
    result = HOLDS if all(good) else f"holds in {sum(good)} of {len(good)} cases"
    return Finding("Spearman(height, radius), ω = 0.5. " + "; ".join(parts), result)


def disk_small_drift(all_runs) -> Finding:
    runs = all_runs["disk"]
    parts = [
        f"{n} points: umap {_listed(runs, f'disk:{n}', [f'finsler_umap_{w}_3d' for w in ('0.01', '0.1', '0.5', '0.9')], 'height_radius')}"
        f"; tsne {_listed(runs, f'disk:{n}', [f'finsler_tsne_{w}_3d' for w in ('0.01', '0.1', '0.5', '0.9')], 'height_radius')}"
        for n in (300, 1000, 3000)
    ]
    return Finding(
        "Spearman(height, radius) at ω = 0.01, 0.1, 0.5, 0.9. " + ". ".join(parts),
        "depends on size: small drifts suffice on the smallest disk only",
    ) if len(runs) else Finding("", NOT_YET)  # fmt: skip


def disk_dimension(all_runs) -> Finding:
    runs, parts = all_runs["disk"], []
    for name in ("mds", "umap", "tsne"):
        pairs = ", ".join(
            f"{middle(runs, f'disk:{n}', f'finsler_{name}_0.5_3d', 'height_radius'):.2f} and "
            f"{middle(runs, f'disk:{n}', f'finsler_{name}_0.5_2d', 'height_radius'):.2f}"
            for n in (300, 1000, 3000)
        )
        parts.append(f"{name}: {pairs}")
    if runs.empty:
        return Finding("", NOT_YET)
    return Finding(
        "Spearman(height, radius) in R³ and in R², at 300, 1000, 3000 points. " + "; ".join(parts),
        HOLDS if "nan" not in "".join(parts) else NOT_YET,
    )


def printed_update(all_runs) -> Finding:
    parts, worse = [], 0
    for name in ("disk", "swiss_roll", "clusters", "flights"):
        runs = all_runs[name]
        for data in dict.fromkeys(runs.data):
            printed = "printed_mds_0.1_2d" if data == "flights" else "printed_mds_0.5_3d"
            ours = "finsler_mds_0.1_2d" if data == "flights" else "finsler_mds_0.5_3d"
            rises = middle(runs, data, printed, "rises")
            if not np.isfinite(rises):
                continue
            ratio = middle(runs, data, printed, "stress") / middle(runs, data, ours, "stress")
            worse += rises > 0
            parts.append(f"{data}: {rises:.0f} rises, final stress {ratio:.2f} times ours")
    if not parts:
        return Finding("", NOT_YET)
    return Finding(
        "; ".join(parts) + ". The factored update never rose.", DOES_NOT if worse else HOLDS
    )


def roll(all_runs) -> Finding:
    runs = all_runs["swiss_roll"]
    if runs.empty:
        return Finding("", NOT_YET)
    methods = ("finsler_umap_0.5_3d", "finsler_umap_0.5_3d+k50", "finsler_mds_0.5_3d",
               "finsler_tsne_0.5_3d")  # fmt: skip
    height = [middle(runs, "swiss_roll", m, "density_height") for m in methods]
    unrolled = [middle(runs, "swiss_roll", m, "procrustes") for m in methods]
    plain = [middle(runs, "swiss_roll", m, "procrustes") for m in ("isomap_2d", "umap_2d")]
    text = "; ".join(
        f"{name} {h:.2f}, {p:.2f}"
        for name, h, p in zip(("UMAP", "UMAP k⁺ = 50", "MDS", "t-SNE"), height, unrolled,
                              strict=True)
    )  # fmt: skip
    good = sum(h >= FOLLOWS for h in height)
    return Finding(
        "Spearman(height, local scale) and Procrustes distance of the map to the unrolled sheet, "
        f"ω = 0.5. {text}. Isomap and UMAP in 2-D: Procrustes {plain[0]:.2f}, {plain[1]:.2f}",
        f"density is shown by {good} of {len(height)}; the sheet is not unrolled better than by "
        "the parents" if min(unrolled) > min(plain) else f"holds for {good} of {len(height)}",
    )  # fmt: skip


def clusters(all_runs) -> Finding:
    runs = all_runs["clusters"]
    if runs.empty:
        return Finding("", NOT_YET)
    methods = {"MDS": "finsler_mds_0.5_3d", "UMAP": "finsler_umap_0.5_3d",
               "UMAP, k⁺ = 300": "finsler_umap_0.5_3d+k300", "t-SNE": "finsler_tsne_0.5_3d",
               "local scale itself": "spacing_1d"}  # fmt: skip
    parts, perfect = [], []
    for title, method in methods.items():
        tau = values(runs, "clusters", method, "height_order")
        if len(tau):
            share = float((tau > 1 - 1e-9).mean())
            parts.append(f"{title} {tau.median():.2f} ({share:.0%} of draws in full order)")
            if method != "spacing_1d":
                perfect.append(tau.median() >= FOLLOWS)
    result = HOLDS if all(perfect) else f"holds for {sum(perfect)} of {len(perfect)} methods"
    return Finding(
        "Kendall's τ of mean heights and label order, ω = 0.5. " + "; ".join(parts), result
    )


def extension(all_runs) -> Finding:
    runs = all_runs["clusters"]
    parts, better = [], 0
    for w in ("0.01", "0.1", "0.5", "0.9"):
        plain = middle(runs, "clusters", f"finsler_umap_{w}_3d", "height_order")
        far = middle(runs, "clusters", f"finsler_umap_{w}_3d+k300", "height_order")
        if np.isfinite([plain, far]).all():
            parts.append(f"ω = {w}: {plain:.2f} → {far:.2f}")
            better += far > plain
    if not parts:
        return Finding("", NOT_YET)
    return Finding(
        "Kendall's τ without → with k⁺ = 300: " + ", ".join(parts),
        HOLDS if better == len(parts) else f"better at {better} of {len(parts)} drifts",
    )


def cities(all_runs) -> Finding:
    runs = all_runs["us_cities"]
    if runs.empty:
        return Finding("", NOT_YET)
    methods = {"MDS": "finsler_mds_0.5_3d", "UMAP": "finsler_umap_0.5_3d",
               "t-SNE": "finsler_tsne_0.5_3d"}  # fmt: skip
    heights = {t: middle(runs, "us_cities", m, "density_height") for t, m in methods.items()}
    relief = {t: middle(runs, "us_cities", m, "height_elevation") for t, m in methods.items()}
    axis = {d: middle(runs, "us_cities", d, "axis_elevation") for d in ("isomap_2d", "umap_2d")}
    ceiling = middle(runs, "us_cities", "spacing_1d", "height_elevation")
    text = "; ".join(f"{t} {heights[t]:.2f} and {relief[t]:.2f}" for t in methods)
    return Finding(
        f"Spearman of the height with local scale and with elevation, ω = 0.5: {text}. Density "
        f"itself and elevation: {ceiling:.2f}. Best axis of Isomap and UMAP with elevation, in "
        f"hindsight: {axis['isomap_2d']:.2f}, {axis['umap_2d']:.2f} (that is longitude)",
        "density: " + (HOLDS if min(heights.values()) >= FOLLOWS else
                       f"partly ({min(heights.values()):.2f} to {max(heights.values()):.2f})")
        + "; relief: " + ("holds" if min(relief.values()) >= 0.5 else DOES_NOT),
    )  # fmt: skip


def large(all_runs) -> Finding:
    done = all_runs["full_size"]
    sizes = dict.fromkeys(done.data)
    if not len(sizes):
        return Finding("1,000,000 × 50: see ESTIMATORS.md", HOLDS)
    text = "; ".join(
        f"{d}: {middle(done, d, 'finsler_umap_0.5_3d', 'seconds'):.0f} s (UMAP 2-D "
        f"{middle(done, d, 'umap_2d', 'seconds'):.0f} s)"
        for d in sizes
    )
    return Finding(f"60,000 rows on one core, graph given: {text}. 1,000,000 × 50 finishes in "
                   "3.3 GiB (ESTIMATORS.md).", HOLDS)  # fmt: skip


def poincare(all_runs) -> Finding:
    runs = pd.concat([all_runs["poincare"], all_runs["tsne"]])
    theirs = middle(runs, "imagenette", "poincare_2d", "ami")
    ours = middle(runs, "imagenette", "finsler_tsne_0.5_3d", "ami")
    if not np.isfinite([theirs, ours]).all():
        return Finding("", NOT_YET)
    return Finding(
        f"Imagenette, AMI: Poincaré map {theirs:.3f}, Finsler t-SNE {ours:.3f}",
        HOLDS if ours > theirs else DOES_NOT,
    )


def stated(ours: str, result: str):
    return lambda all_runs: Finding(ours, result)


CLAIMS = (
    Claim(
        "abstract",
        "Finsler embeddings are consistently better than those of their Euclidean parents.",
        "no number",
        consistency,
    ),
    Claim(
        "classification table, UMAP",
        "Finsler UMAP agrees better with labels than UMAP (k-means, AMI).",
        "Imagenette, UMAP: 0.750 ± 0.375; other cells were not at hand",
        agreement("umap"),
    ),
    Claim(
        "classification table, t-SNE",
        "Finsler t-SNE agrees better with labels than t-SNE (k-means, AMI).",
        "cells were not at hand",
        agreement("tsne"),
    ),
    Claim(
        "label-free scores, UMAP",
        "Its clusters are more separate (silhouette).",
        "Imagenette, UMAP: 0.830 ± 0.005",
        agreement("umap", "silhouette"),
        wording=False,
    ),
    Claim(
        "supervised table, UMAP, 5-NN",
        "Classifiers do better on Finsler embeddings.",
        "not at hand",
        agreement("umap", "knn5"),
        wording=False,
    ),
    Claim(
        "supervised table, UMAP, linear",
        "Classifiers do better on Finsler embeddings.",
        "not at hand",
        agreement("umap", "linear"),
        wording=False,
    ),
    Claim(
        "ablation, equal dimension",
        "The gain is not that of the third dimension alone.",
        "not at hand",
        third_dimension,
        wording=False,
    ),
    Claim(
        "ablation, Finsler in R²",
        "Finsler UMAP in as many columns as UMAP is better, too.",
        "not at hand",
        plane,
        wording=False,
    ),
    Claim(
        "ablation, dimension",
        "The advantage holds in 5, 10 and 50 dimensions.",
        "not at hand",
        dimension,
        wording=False,
    ),
    Claim(
        "ablation, drift",
        "Results change little with ω.",
        "0.001, 0.01, 0.1, 0.5",
        drift_effect,
        wording=False,
    ),
    Claim(
        "Poincaré maps",
        "Finsler t-SNE is better than Poincaré maps on Imagenette.",
        "not at hand",
        poincare,
        wording=False,
    ),
    Claim(
        "abstract, disk",
        "On a disk that is dense at its centre the height shows the density.",
        "pictures",
        disk,
    ),
    Claim("disk", "It does so at small drifts.", "pictures", disk_small_drift, wording=False),
    Claim(
        "disk",
        "Map and height (R³) are recommended for planar data; the same dimension (R²) also works.",
        "pictures",
        disk_dimension,
        wording=False,
    ),
    Claim(
        "disk, MDS",
        "Finsler MDS is unstable and cannot be run beyond 3,000 points.",
        "3,000",
        stated(
            "The factored update never rises and runs 20,000 points in 3.3 GiB (ESTIMATORS.md).",
            "not a property of the method: its printed update is to blame",
        ),
    ),
    Claim("Swiss roll", "The roll is unrolled and its density shown.", "pictures", roll),
    Claim(
        "abstract, clusters",
        "Heights order clusters by their density: a hierarchy no Euclidean map shows.",
        "pictures; cluster sizes 294, 121, 48, 28, 9",
        clusters,
    ),
    Claim(
        "clusters",
        "Extending neighbours to k⁺ = 300 helps to order clusters.",
        "pictures",
        extension,
        wording=False,
    ),
    Claim(
        "Figure 1, US cities",
        "Hidden causes such as relief bias sampling; the height recovers what they left.",
        "pictures",
        cities,
    ),
    Claim("abstract", "The methods scale to large real data.", "no number", large),
    Claim(
        "convergence of Finsler SMACOF",
        "The printed update lowers the stress at every step.",
        "a guarantee, inherited from arXiv 2503.18010",
        printed_update,
    ),
    Claim(
        "gradient theorem of Finsler t-SNE",
        "The gradient as printed in the body.",
        "t_ij F_ij in all four places",
        stated(
            "Off by 12 to 23 % against finite differences; its own proof (t_ji F_ji in the "
            "reverse terms) is right to 1e-9: tests/layout/test_tsne_gradient.py.",
            DOES_NOT,
        ),
    ),
    Claim(
        "recipe of the clusters",
        "⌊c̃/(5q)⌋ gives the five clusters shown.",
        "294, 121, 48, 28, 9",
        stated(
            "As printed all 500 points fall into one cluster; ⌊5c̃/q⌋ expects 301, 120, 48, 19, "
            "13: tests/benchmarks/test_data.py.",
            DOES_NOT,
        ),
    ),
)
