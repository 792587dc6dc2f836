"""Judges of what the paper says about heights, and about the stress."""

from __future__ import annotations

import numpy as np

from benchmarks.markdown import interval
from benchmarks.paper.naming import title_of
from benchmarks.paper.report.comparisons import MIN_PAIRS, compare
from benchmarks.paper.report.finding import (
    DOES_NOT,
    FOLLOWS,
    HOLDS,
    NOT_YET,
    Finding,
    Runs,
    middle,
    middles,
    of_cases,
)
from benchmarks.summary import values

# Spearman correlation of height and elevation from which relief would be called recovered.
RELIEF = 0.5


def disk(all_runs: Runs) -> Finding:
    runs, parts = all_runs["disk"], []
    good: dict[str, list[bool]] = {"height_radius": [], "density_height": []}
    for n in (300, 1000, 3000):
        data, cells = f"disk:{n}", []
        for name in ("mds", "umap", "tsne"):
            found = [middle(runs, data, f"finsler_{name}_0.5_3d", score) for score in good]
            if not np.isfinite(found).any():
                continue
            cells.append(f"{name} {found[0]:.2f} and {found[1]:.2f}")
            for cases, value in zip(good.values(), found, strict=True):
                cases += [value >= FOLLOWS] if np.isfinite(value) else []
        if cells:
            scale = middle(runs, data, "spacing_1d", "height_radius")
            parts.append(f"{n} points: {', '.join(cells)} (local scale and radius {scale:.2f})")
    if not parts:
        return Finding("", NOT_YET)
    by_radius, by_scale = (_cases(cases) for cases in good.values())
    verdict = of_cases([case for cases in good.values() for case in cases])
    return Finding(
        "Spearman of the height with the radius and with the local scale, ω = 0.5. "
        + "; ".join(parts)
        + ". Procrustes distance of the map to the disk, in brackets that of the parent's map, at "
        + f"300, 1000, 3000 points: {_maps_of_the_disk(runs)}",
        verdict,
        f"radius: {by_radius}; local scale: {by_scale}",
    )


def _maps_of_the_disk(runs) -> str:
    parts = []
    for name, parent in (("mds", "isomap_2d"), ("umap", "umap_2d"), ("tsne", "tsne_2d")):
        pairs = [
            [middle(runs, f"disk:{n}", m, "procrustes") for m in (f"finsler_{name}_0.5_3d", parent)]
            for n in (300, 1000, 3000)
        ]
        parts.append(f"{name} " + ", ".join(f"{ours:.2f} ({theirs:.2f})" for ours, theirs in pairs))
    return "; ".join(parts)


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
        of_cases([case for cases in good.values() for case in cases]),
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
        of_cases(good),
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
            rises = values(runs, data, printed, "rises")
            if rises.empty:
                continue
            ratio = middle(runs, data, printed, "stress") / middle(runs, data, ours, "stress")
            worse += rises.max() > 0
            ours_rose += values(runs, data, ours, "rises").max()
            parts.append(
                f"{data}: up to {rises.max():.0f} rises, final stress {ratio:.2f} times ours"
            )
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
    methods = {
        "UMAP": ("finsler_umap_0.5_3d", "umap_2d"),
        "UMAP k⁺ = 50": ("finsler_umap_0.5_3d+k50", "umap_2d"),
        "MDS": ("finsler_mds_0.5_3d", "isomap_2d"),
        "t-SNE": ("finsler_tsne_0.5_3d", "tsne_2d"),
    }
    parts, shown, closer = [], 0, 0
    for title, (ours, parent) in methods.items():
        height = middle(runs, "swiss_roll", ours, "density_height")
        sheet, plain = (middle(runs, "swiss_roll", m, "procrustes") for m in (ours, parent))
        parts.append(f"{title} {height:.2f}, {sheet:.2f} ({parent} {plain:.2f})")
        shown += height >= FOLLOWS
        closer += sheet < plain
    axis = middle(runs, "swiss_roll", "isomap_2d", "density_axis")
    return Finding(
        "Spearman(height, local scale) and Procrustes distance of the map to the unrolled sheet, "
        f"ω = 0.5, in brackets that of the parent's map: {'; '.join(parts)}. Density runs along "
        f"the sheet, so an axis of Isomap shows it as well ({axis:.2f})",
        of_cases([shown == len(methods), closer == len(methods)]) if shown else DOES_NOT,
        f"density is shown by {shown} of {len(methods)}; the map is closer to the sheet than the "
        f"parent's in {closer} of {len(methods)} cases",
    )


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
        of_cases(perfect),
        f"order: {_cases(perfect)}",
    )


def extension(all_runs: Runs) -> Finding:
    runs = all_runs["clusters"]
    parts, better = [], 0
    for w in ("0.01", "0.1", "0.5", "0.9"):
        plain, far = f"finsler_umap_{w}_3d", f"finsler_umap_{w}_3d+k300"
        gap = compare(runs, "clusters", far, plain, "height_order")
        if gap.pairs >= MIN_PAIRS:
            before, after = middles(runs, "clusters", (plain, far), "height_order")
            parts.append(f"ω = {w}: {before:.2f} → {after:.2f} {interval(gap, 2)}")
            better += gap.low > 0
    if not parts:
        return Finding("", NOT_YET)
    return Finding(
        "Kendall's τ without → with k⁺ = 300, and interval of the difference: " + ", ".join(parts),
        of_cases([True] * better + [False] * (len(parts) - better)),
        f"better at {better} of {len(parts)} drifts",
    )


def cities(all_runs: Runs) -> Finding:
    runs = all_runs["us_cities"]
    if runs.empty:
        return Finding("", NOT_YET)
    methods = {"MDS": "finsler_mds_0.5_3d", "UMAP": "finsler_umap_0.5_3d",
               "t-SNE": "finsler_tsne_0.5_3d"}  # fmt: skip
    heights = {t: middle(runs, "us_cities", m, "density_height") for t, m in methods.items()}
    relief = {t: middle(runs, "us_cities", m, "height_elevation") for t, m in methods.items()}
    plain = [
        f"{title_of(m)} {middle(runs, 'us_cities', m, 'axis_elevation'):.2f}"
        for m in ("isomap_3d", "umap_2d", "umap_3d", "tsne_2d", "tsne_3d")
    ]
    density = middle(runs, "us_cities", "spacing_1d", "height_elevation")
    text = "; ".join(f"{t} {heights[t]:.2f} and {relief[t]:.2f}" for t in methods)
    return Finding(
        f"Spearman of the height with local scale and with elevation, ω = 0.5: {text}. Density "
        f"itself and elevation: {density:.2f}. Best axis of the parents with elevation, chosen in "
        f"hindsight: {', '.join(plain)}",
        of_cases([min(heights.values()) >= FOLLOWS, min(relief.values()) >= RELIEF]),
        f"density: {min(heights.values()):.2f} to {max(heights.values()):.2f} with the height; "
        f"relief: {min(relief.values()):.2f} to {max(relief.values()):.2f}",
    )
