"""The paper's claims in our words, and who judges each.

Of the paper, arXiv 2603.11396, the abstract, the beginning of the introduction and part of the
caption of Figure 1 were at hand in its own words; its protocol, printed formulas and a few
numbers from notes taken from it; of some comparisons it is only known that the paper makes them,
not what it concludes. The report marks which is which.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from benchmarks.report.class_claims import (
    agreement,
    consistency,
    dimension,
    drift_effect,
    free_height,
    large,
    plane,
    poincare,
    third_dimension,
)
from benchmarks.report.comparisons import DOES_NOT
from benchmarks.report.finding import Finding, Runs
from benchmarks.report.height_claims import (
    cities,
    clusters,
    disk,
    disk_dimension,
    disk_small_drift,
    extension,
    printed_update,
    roll,
)
from benchmarks.report.speed_tables import tsne_time, umap_time

__all__ = ["CLAIMS", "Claim", "Source"]


class Source(Enum):
    """Where a claim is known from; the value is its mark in the report."""

    WORDS = ""
    NOTES = " ‡"
    COMPARISON = " †"


class Claim(NamedTuple):
    """A claim, what the paper prints for it, and how to judge it from all runs."""

    where: str
    statement: str
    paper: str
    judge: Callable[[Runs], Finding]
    source: Source = Source.WORDS


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
        Source.NOTES,
    ),
    Claim(
        "classification table, UMAP, height never held",
        "Finsler UMAP agrees better with labels than UMAP (k-means, AMI).",
        "whether it holds the height at first is not known",
        free_height,
        Source.COMPARISON,
    ),
    Claim(
        "classification table, t-SNE",
        "Finsler t-SNE agrees better with labels than t-SNE (k-means, AMI).",
        "cells were not at hand",
        agreement("tsne"),
        Source.NOTES,
    ),
    *(
        Claim(
            f"label-free scores, {title}",
            "Its clusters are more separate (silhouette).",
            paper,
            agreement(family, "silhouette"),
            Source.COMPARISON,
        )
        for family, title, paper in (
            ("umap", "UMAP", "Imagenette, UMAP: 0.830 ± 0.005"),
            ("tsne", "t-SNE", "not at hand"),
        )
    ),
    *(
        Claim(
            f"supervised table, {title}, {classifier}",
            "Classifiers do better on Finsler embeddings.",
            "not at hand",
            agreement(family, score),
            Source.COMPARISON,
        )
        for family, title in (("umap", "UMAP"), ("tsne", "t-SNE"))
        for score, classifier in (("knn5", "5-NN"), ("linear", "linear"))
    ),
    Claim(
        "ablation, equal dimension",
        "The gain is not that of the third dimension alone.",
        "not at hand",
        third_dimension,
        Source.COMPARISON,
    ),
    Claim(
        "ablation, Finsler in R²",
        "Finsler UMAP in as many columns as UMAP is better, too.",
        "not at hand",
        plane,
        Source.COMPARISON,
    ),
    Claim(
        "ablation, dimension",
        "The advantage holds in 5, 10 and 50 dimensions.",
        "not at hand",
        dimension,
        Source.COMPARISON,
    ),
    Claim(
        "ablation, drift",
        "Results change little with ω.",
        "0.001, 0.01, 0.1, 0.5",
        drift_effect,
        Source.COMPARISON,
    ),
    Claim(
        "Poincaré maps",
        "Finsler t-SNE is better than Poincaré maps on Imagenette.",
        "not at hand",
        poincare,
        Source.COMPARISON,
    ),
    Claim(
        "abstract, disk",
        "On a disk that is dense at its centre the height shows the density.",
        "pictures",
        disk,
    ),
    Claim("disk", "It does so at small drifts.", "pictures", disk_small_drift, Source.COMPARISON),
    Claim(
        "disk",
        "Planar data in R³ (map and height) is recommended; R² shows the density, too.",
        "pictures",
        disk_dimension,
        Source.COMPARISON,
    ),
    Claim(
        "disk, MDS",
        "Finsler MDS is unstable and cannot be run beyond 3,000 points.",
        "3,000",
        stated(
            "The factored update never rises; 12 iterations of it on 20,000 points take 3.3 GiB "
            "(ESTIMATORS.md).",
            "does not hold for the factored update",
        ),
        Source.NOTES,
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
        Source.COMPARISON,
    ),
    Claim(
        "Figure 1, US cities",
        "Hidden causes such as relief bias sampling; the height recovers what they left.",
        "pictures",
        cities,
    ),
    Claim(
        "running time, UMAP",
        "Finsler UMAP costs about as much as UMAP.",
        "UMAP 10 s (random start), 16 s (spectral); Finsler UMAP 12 s; another processor",
        umap_time,
        Source.NOTES,
    ),
    Claim(
        "running time, t-SNE",
        "Finsler t-SNE costs about four times as much as t-SNE, both over all pairs.",
        "2500 s and 9700 s; another processor",
        tsne_time,
        Source.NOTES,
    ),
    Claim("abstract", "The methods scale to large real data.", "no number", large),
    Claim(
        "convergence of Finsler SMACOF",
        "The printed update lowers the stress at every step.",
        "a guarantee, inherited from arXiv 2503.18010",
        printed_update,
        Source.NOTES,
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
        Source.NOTES,
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
        Source.NOTES,
    ),
)
