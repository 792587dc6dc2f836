"""Judges of what the paper says about heights, and about the stress."""

from __future__ import annotations

import numpy as np

from benchmarks.report.comparisons import DOES_NOT, HOLDS
from benchmarks.report.finding import FOLLOWS, NOT_YET, Finding, Runs, middle
from benchmarks.summary import values


def disk(all_runs: Runs) -> Finding:
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
    return Finding("Spearman(height, radius), ω = 0.5. " + "; ".join(parts), _cases(good))


def disk_small_drift(all_runs: Runs) -> Finding:
    runs, parts = all_runs["disk"], []
    if runs.empty:
        return Finding("", NOT_YET)
    good: dict[str, list[bool]] = {"0.01": [], "0.1": []}
    for n in (300, 1000, 3000):
        for name in ("umap", "tsne"):
            found = {
                w: middle(runs, f"disk:{n}", f"finsler_{name}_{w}_3d", "height_radius")
                for w in ("0.01", "0.1", "0.5", "0.9")
            }
            parts.append(f"{n} points, {name}: " + ", ".join(f"{v:.2f}" for v in found.values()))
            for w, cases in good.items():
                cases += [found[w] >= FOLLOWS] if np.isfinite(found[w]) else []
    return Finding(
        "Spearman(height, radius) at ω = 0.01, 0.1, 0.5, 0.9. " + "; ".join(parts),
        "; ".join(f"ω = {w}: {_cases(cases)}" for w, cases in good.items()),
    )


def disk_dimension(all_runs: Runs) -> Finding:
    runs, parts, good = all_runs["disk"], [], []
    if runs.empty:
        return Finding("", NOT_YET)
    for name in ("mds", "umap", "tsne"):
        pairs = []
        for n in (300, 1000, 3000):
            three, two = (
                middle(runs, f"disk:{n}", f"finsler_{name}_0.5_{d}d", "height_radius")
                for d in (3, 2)
            )
            pairs.append(f"{three:.2f} and {two:.2f}")
            good += [two >= FOLLOWS] if np.isfinite(two) else []
        parts.append(f"{name}: " + ", ".join(pairs))
    return Finding(
        "Spearman(height, radius) in R³ and in R², at 300, 1000, 3000 points. " + "; ".join(parts),
        f"R²: {_cases(good)}",
    )


def _cases(good: list[bool]) -> str:
    """Whether something holds, by how many cases it holds in."""
    if not good:
        return NOT_YET
    return HOLDS if all(good) else f"holds in {sum(good)} of {len(good)} cases"


def printed_update(all_runs: Runs) -> Finding:
    parts, worse, ours_rose = [], 0, 0.0
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
            ours_rose += middle(runs, data, ours, "rises")
            parts.append(f"{data}: {rises:.0f} rises, final stress {ratio:.2f} times ours")
    if not parts:
        return Finding("", NOT_YET)
    return Finding(
        "; ".join(parts) + f". Rises of the factored update: {ours_rose:.0f}.",
        DOES_NOT if worse else HOLDS,
    )


def roll(all_runs: Runs) -> Finding:
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
    axis = middle(runs, "swiss_roll", "isomap_2d", "density_axis")
    good = sum(h >= FOLLOWS for h in height)
    return Finding(
        "Spearman(height, local scale) and Procrustes distance of the map to the unrolled sheet, "
        f"ω = 0.5. {text}. Isomap and UMAP in 2-D: Procrustes {plain[0]:.2f}, {plain[1]:.2f}; "
        f"density runs along the sheet, so an axis of Isomap shows it as well ({axis:.2f})",
        f"density is shown by {good} of {len(height)}; the sheet is not unrolled better than by "
        "the parents" if min(unrolled) > min(plain) else f"holds for {good} of {len(height)}",
    )  # fmt: skip


def clusters(all_runs: Runs) -> Finding:
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
    return Finding(
        "Kendall's τ of mean heights and label order, ω = 0.5. " + "; ".join(parts),
        _cases(perfect),
    )


def extension(all_runs: Runs) -> Finding:
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


def cities(all_runs: Runs) -> Finding:
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
