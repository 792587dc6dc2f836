"""Judges of what the paper's pictures of disk, roll, clusters and cities are said to show."""

from __future__ import annotations

import numpy as np

from benchmarks.paper.naming import title_of
from benchmarks.paper.report.finding import (
    DOES_NOT,
    FOLLOWS,
    HOLDS,
    NOT_YET,
    Finding,
    Runs,
    middle,
    of_cases,
)

DISKS = ("disk:300", "disk:1000", "disk:3000")
LAYOUTS = ("finsler_mds_0.5_3d", "finsler_umap_0.5_3d", "finsler_tsne_0.5_3d")
# A height whose spread is less than this share of a map column's is called near-flat.
NEAR_FLAT = 0.2
# Distance to a plane from which an embedding is called curved.
CURVED = 0.05


def _judged(words: str, parts: list[str], cases: list[bool], note: str = "") -> Finding:
    """The finding on some cases; nothing is said where there are none."""
    if not cases:
        return Finding("", NOT_YET)
    return Finding(words + "; ".join(parts), of_cases(cases), note)


def dense_is_low(all_runs: Runs) -> Finding:
    """Dense regions have the lower height, whatever the method and the data."""
    parts, good = [], []
    for name in ("disk", "swiss_roll", "clusters", "us_cities"):
        runs = all_runs[name]
        for data in dict.fromkeys(runs.data):
            found = [middle(runs, data, m, "density_height") for m in LAYOUTS]
            known = [v for v in found if np.isfinite(v)]
            good += [v > 0 for v in known]
            if known:
                parts.append(f"{data} {', '.join(f'{v:.2f}' for v in known)}")
    words = (
        "Spearman(height, local scale), ω = 0.5, MDS, UMAP, t-SNE; above 0 is dense below sparse: "
    )
    return _judged(words, parts, good, f"{sum(good)} of {len(good)} cases")


def near_flat(all_runs: Runs) -> Finding:
    """On the roll Finsler UMAP rises more than MDS and t-SNE, which are nearly flat."""
    runs = all_runs["swiss_roll"]
    names = {
        "UMAP": "finsler_umap_0.5_3d",
        "UMAP, k⁺ = 50": "finsler_umap_0.5_3d+k50",
        "MDS": "finsler_mds_0.5_3d",
        "t-SNE": "finsler_tsne_0.5_3d",
    }
    spread = {t: middle(runs, "swiss_roll", m, "height_spread") for t, m in names.items()}
    if not np.isfinite(list(spread.values())).all():
        return Finding("", NOT_YET)
    flat = [spread[t] < NEAR_FLAT for t in ("MDS", "t-SNE")]
    higher = [spread["UMAP, k⁺ = 50"] > spread[t] for t in ("MDS", "t-SNE")]
    return Finding(
        "Standard deviation of the height in units of a map column's, ω = 0.5: "
        + ", ".join(f"{t} {v:.2f}" for t, v in spread.items()),
        of_cases([*flat, *higher]),
    )


def parents_in_space(all_runs: Runs) -> Finding:
    """Euclidean parents do not show the density of the disk, not even with a third column."""
    runs, parts, hidden = all_runs["disk"], [], []
    for data in DISKS:
        found = {
            title_of(m): middle(runs, data, m, "density_axis")
            for d in (2, 3)
            for m in (f"isomap_{d}d", f"umap_{d}d", f"tsne_{d}d")
        }
        known = {t: v for t, v in found.items() if np.isfinite(v)}
        hidden += [v < FOLLOWS for v in known.values()]
        if known:
            parts.append(f"{data}: " + ", ".join(f"{t} {v:.2f}" for t, v in known.items()))
    words = "Best principal axis with the local scale, chosen in hindsight, |Spearman|. "
    return _judged(words, parts, hidden, f"hidden in {sum(hidden)} of {len(hidden)} cases")


def locally(all_runs: Runs) -> Finding:
    """On larger disks the height still orders neighbours by density."""
    runs, parts, good = all_runs["disk"], [], []
    for data in DISKS[1:]:
        for title, method in (("UMAP", "finsler_umap"), ("t-SNE", "finsler_tsne")):
            signs = {w: middle(runs, data, f"{method}_{w}_3d", "sign") for w in ("0.01", "0.5")}
            if np.isfinite(signs["0.5"]):
                good.append(signs["0.5"] >= FOLLOWS)
                both = ", ".join(f"{v:.2f} at ω = {w}" for w, v in signs.items())
                parts.append(f"{data} {title} {both}")
    return _judged("Share of neighbour pairs in the right order: ", parts, good)


def isomap_in_space(all_runs: Runs) -> Finding:
    """Isomap with a third column bends the flat disk."""
    runs, parts, bent = all_runs["disk"], [], []
    for data in DISKS:
        flat, space = (middle(runs, data, f"isomap_{d}d", "procrustes") for d in (2, 3))
        if np.isfinite([flat, space]).all():
            bent.append(space > CURVED)
            parts.append(f"{data} {flat:.3f} and {space:.3f}")
    return _judged("Procrustes distance to the disk of Isomap in R² and in R³: ", parts, bent)


def tsne_above_umap(all_runs: Runs) -> Finding:
    """t-SNE keeps the disk better than UMAP, Euclidean and Finsler alike."""
    runs, parts, good = all_runs["disk"], [], []
    for data in DISKS:
        for title, ours, theirs in (
            ("Euclidean", "tsne_2d", "umap_2d"),
            ("Finsler", "finsler_tsne_0.5_3d", "finsler_umap_0.5_3d"),
        ):
            a, b = (middle(runs, data, m, "procrustes") for m in (ours, theirs))
            if np.isfinite([a, b]).all():
                good.append(a < b)
                parts.append(f"{data} {title} {a:.3f} and {b:.3f}")
    words = "Procrustes distance of the map to the disk, t-SNE and UMAP: "
    return _judged(words, parts, good, f"{sum(good)} of {len(good)} cases")


def poor_parents(all_runs: Runs) -> Finding:
    """t-SNE and UMAP keep the disk poorly, Isomap well."""
    runs, parts, good = all_runs["disk"], [], []
    for data in DISKS:
        found = [middle(runs, data, m, "procrustes") for m in ("isomap_2d", "umap_2d", "tsne_2d")]
        if np.isfinite(found).all():
            good += [found[0] <= CURVED, found[1] > CURVED, found[2] > CURVED]
            parts.append(f"{data} {', '.join(f'{v:.3f}' for v in found)}")
    words = (
        f"Procrustes distance to the disk of Isomap, UMAP, t-SNE (up to {CURVED} is called good): "
    )
    return _judged(words, parts, good)


def descent(all_runs: Runs) -> Finding:
    """Gradient descent on the stress scales further than SMACOF and is stable."""
    parts, good = [], []
    for name in ("disk", "swiss_roll", "clusters"):
        runs = all_runs[name]
        for data in dict.fromkeys(runs.data):
            methods = ("paper_mds_gd_0.5_3d", "finsler_mds_0.5_3d")
            pair = [middle(runs, data, m, "stress") for m in methods]
            if np.isfinite(pair).all():
                good.append(pair[0] <= 1.1 * pair[1])
                parts.append(f"{data} {pair[0]:.4f} and {pair[1]:.4f}")
    words = "Final stress of 100 epochs of Adam, as in the paper, and of factored SMACOF, ω = 0.5: "
    return _judged(words, parts, good, f"within a tenth in {sum(good)} of {len(good)} cases")


def no_hierarchy(all_runs: Runs) -> Finding:
    """Euclidean maps of the clusters do not show which of them are sparse."""
    runs = all_runs["clusters"]
    found = {
        title_of(m): middle(runs, "clusters", m, "density_axis")
        for m in ("isomap_2d", "umap_2d", "tsne_2d", "isomap_3d", "umap_3d", "tsne_3d")
    }
    known = {t: v for t, v in found.items() if np.isfinite(v)}
    parts = [f"{t} {v:.2f}" for t, v in known.items()]
    words = "Best principal axis with the local scale, in hindsight: "
    return _judged(words, parts, [v < FOLLOWS for v in known.values()])


def found_clusters(all_runs: Runs) -> Finding:
    """The clusters are found as well as by the parents, or better."""
    runs, parts, good = all_runs["clusters"], [], []
    for title, ours, parent in (
        ("MDS", "finsler_mds_0.5_3d", "isomap_2d"),
        ("UMAP", "finsler_umap_0.5_3d", "umap_2d"),
        ("UMAP, k⁺ = 300", "finsler_umap_0.5_3d+k300", "umap_2d"),
        ("t-SNE", "finsler_tsne_0.5_3d", "tsne_2d"),
    ):
        pair = [middle(runs, "clusters", m, "ami") for m in (ours, parent)]
        if np.isfinite(pair).all():
            good.append(pair[0] >= pair[1])
            parts.append(f"{title} {pair[0]:.2f} ({title_of(parent)} {pair[1]:.2f})")
    return _judged("AMI, ω = 0.5, in brackets that of the parent: ", parts, good)


def peers(all_runs: Runs) -> Finding:
    """Finsler MDS models directed distances better than slide vectors and radius distances."""
    parts, good = [], []
    cases = (("us_cities", "us_cities", "finsler_mds_0.5_3d", "2d"),
             ("flights", "flights", "finsler_mds_auto_3d", "3d"),
             *(("directed", d, "finsler_mds_auto_3d", "3d")
               for d in ("morse", "polblogs", "velocity")))  # fmt: skip
    for name, data, ours, columns in cases:
        methods = (ours, f"slide_vector_{columns}", f"radius_distance_{columns}")
        stress = [middle(all_runs[name], data, m, "stress") for m in methods]
        if np.isfinite(stress).all():
            good += [stress[0] < stress[1], stress[0] < stress[2]]
            parts.append(f"{data} {', '.join(f'{v:.3f}' for v in stress)}")
    words = "Stress of Finsler MDS, slide vector, radius distance: "
    note = f"lower in {sum(good)} of {len(good)} comparisons; more on the other page"
    return _judged(words, parts, good, note)


def cities_by_others(all_runs: Runs) -> Finding:
    """On the cities, symmetric maps miss the density and asymmetric ones show it."""
    runs = all_runs["us_cities"]
    missed = {
        title_of(m): middle(runs, "us_cities", m, "density_axis")
        for m in ("isomap_2d", "umap_2d", "tsne_2d", "poincare_2d")
    }
    shown = {
        title_of(m): middle(runs, "us_cities", m, "density_height")
        for m in ("radius_distance_2d", "finsler_mds_0.5_3d", "finsler_tsne_0.5_3d")
    }
    # The slide-vector model has one vector for all points, so no column is a height.
    slide = middle(runs, "us_cities", "slide_vector_2d", "sign")
    cases = [v < FOLLOWS for v in missed.values() if np.isfinite(v)]
    cases += [v >= FOLLOWS for v in shown.values() if np.isfinite(v)]
    if np.isfinite(slide):
        cases.append(slide >= FOLLOWS)
    if not cases:
        return Finding("", NOT_YET)
    return Finding(
        "Spearman with the local scale. Best axis of symmetric methods: "
        + ", ".join(f"{t} {v:.2f}" for t, v in missed.items() if np.isfinite(v))
        + ". Height of asymmetric ones: "
        + ", ".join(f"{t} {v:.2f}" for t, v in shown.items() if np.isfinite(v))
        + f". Slide vector: {slide:.2f} of pairs in the right order",
        of_cases(cases),
        f"{sum(cases)} of {len(cases)} cases",
    )


def preserved_manifold(all_runs: Runs) -> Finding:
    """Extending neighbours (k⁺) keeps the sheet of the roll better."""
    runs, parts, good = all_runs["swiss_roll"], [], []
    for w in ("0.01", "0.1", "0.5", "0.9"):
        plain, far = (
            middle(runs, "swiss_roll", f"finsler_umap_{w}_3d{k}", "procrustes")
            for k in ("", "+k50")
        )
        if np.isfinite([plain, far]).all():
            good.append(far < plain)
            parts.append(f"ω = {w}: {plain:.2f} → {far:.2f}")
    return _judged(
        "Procrustes distance of the map to the sheet without → with k⁺ = 50: ", parts, good
    )


def mds_size(all_runs: Runs) -> Finding:
    """Finsler MDS is for a thousand points and unstable at three thousand."""
    runs, parts = all_runs["disk"], []
    rises = 0.0
    for data in DISKS:
        stress = middle(runs, data, "finsler_mds_0.5_3d", "stress")
        if np.isfinite(stress):
            rises += max(0.0, middle(runs, data, "finsler_mds_0.5_3d", "rises"))
            parts.append(f"{data} {stress:.3f}")
    if not parts:
        return Finding("", NOT_YET)
    return Finding(
        f"Stress of the factored SMACOF at 300, 1000, 3000 points: {', '.join(parts)}; rises: "
        f"{rises:.0f}. 20,000 points take 3.3 GiB (the other page). Its height on the disk of 3000 "
        "is worth little, by SMACOF as well.",
        DOES_NOT if rises == 0 else HOLDS,
        "the solver is stable; the heights at 3000 points are not good",
    )
