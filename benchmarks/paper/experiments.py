"""Which methods run on which data, with how many seeds: one experiment per table or figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.paper.methods import family_of

__all__ = ["EXPERIMENTS", "Cell", "Experiment", "cells"]

PAPER_DRIFTS = (0.001, 0.01, 0.1, 0.5)
DRIFTS = (0.0, *PAPER_DRIFTS, 0.3, 0.7, 0.9)


def finsler(family: str, drifts=DRIFTS, dimension: int = 3, extension: str = "") -> tuple[str, ...]:
    return tuple(f"{family}_{drift:g}_{dimension}d{extension}" for drift in drifts)


def extended(methods: tuple[str, ...], k: int) -> tuple[str, ...]:
    return tuple(f"{method}+k{k}" for method in methods)


class Cell(NamedTuple):
    """One run."""

    experiment: str
    data: str
    data_seed: int
    method: str
    seed: int


class Experiment(NamedTuple):
    """A table or a figure.

    redrawn : the data themselves are drawn (or their rows shuffled) anew for every seed
    seeds : of a full run; quick_seeds of a quick one, which also leaves out slow_data
    drop_in : only the scores by which a drop-in is compared with its parent
    """

    question: str
    data: tuple[str, ...]
    methods: tuple[str, ...]
    redrawn: bool = False
    seeds: int = 10
    quick_seeds: int = 2
    slow_data: tuple[str, ...] = ()
    drop_in: bool = False


DISKS = ("disk:300", "disk:1000", "disk:3000")
SMALL = ("iris", "digits", "dtd10")
LARGE = (
    "mnist:10000",
    "fashion_mnist:10000",
    "kmnist:10000",
    "emnist_balanced",
    "imagenette",
    "caltech101",
    "flowers102",
)
# The paper's t-SNE has numbers for these; digits are ours.
TSNE_LARGE = ("imagenette", "caltech101", "flowers102")
HEIGHT_DRIFTS = (0.1, 0.5, 0.9)
PAPER_UMAP_HEIGHTS = ("paper_umap_0.5_3d", "paper_umap_one_sided_0.5_3d")
PAPER_HEIGHTS = (*PAPER_UMAP_HEIGHTS, "paper_tsne_0.5_3d", "paper_tsne_wide_0.5_3d")
DROP_IN_DRIFTS = (0.001, 0.01, 0.1, 0.3, 0.5, 0.9)
DROP_IN_DATA = (
    "digits", "dtd10", "mnist:10000", "fashion_mnist:10000", "kmnist:10000", "emnist_balanced",
    "imagenette", "caltech101",
)  # fmt: skip
# t-SNE takes several times as long.
SMALLER_DROP_IN_DATA = (
    "digits", "dtd10", "mnist:4000", "fashion_mnist:4000", "kmnist:4000", "emnist_balanced:4000",
    "imagenette:4000", "caltech101:4000",
)  # fmt: skip

EXPERIMENTS = {
    "disk": Experiment(
        "Does the height show density, when density is known?",
        DISKS,
        (
            "spacing_1d",
            "isomap_2d", "isomap_3d", "umap_2d", "umap_3d", "tsne_2d", "tsne_3d",
            *finsler("finsler_mds", HEIGHT_DRIFTS), "finsler_mds_0.5_2d",
            "paper_mds_gd_0.5_3d", "printed_mds_0.5_3d",
            *finsler("finsler_umap", (0.01, *HEIGHT_DRIFTS)), "finsler_umap_0.5_2d",
            "one_sided_umap_0.5_3d", "free_umap_0.5_3d",
            *finsler("finsler_tsne", (0.01, *HEIGHT_DRIFTS)), "finsler_tsne_0.5_2d",
            *PAPER_HEIGHTS,
        ),
        redrawn=True, seeds=3, slow_data=("disk:3000",),
    ),
    "swiss_roll": Experiment(
        "A roll, sampled less and less densely outwards: is it unrolled, and is density shown?",
        ("swiss_roll",),
        (
            "spacing_1d",
            "isomap_2d", "isomap_3d", "umap_2d", "umap_3d", "tsne_2d", "tsne_3d",
            *finsler("finsler_mds", HEIGHT_DRIFTS), "paper_mds_gd_0.5_3d", "printed_mds_0.5_3d",
            *finsler("finsler_umap", (0.01, *HEIGHT_DRIFTS)),
            *finsler("finsler_umap", (0.01, *HEIGHT_DRIFTS), extension="+k50"),
            *finsler("finsler_tsne", (0.01, *HEIGHT_DRIFTS)),
            *PAPER_HEIGHTS, *extended(PAPER_UMAP_HEIGHTS, 50),
        ),
        redrawn=True, seeds=3,
    ),
    "clusters": Experiment(
        "Clusters of exponentially falling size: does the height order them?",
        ("clusters",),
        (
            "spacing_1d",
            "isomap_2d", "isomap_3d", "umap_2d", "umap_3d", "tsne_2d", "tsne_3d",
            *finsler("finsler_mds", HEIGHT_DRIFTS), "paper_mds_gd_0.5_3d", "printed_mds_0.5_3d",
            *finsler("finsler_umap", (0.01, *HEIGHT_DRIFTS)),
            *finsler("finsler_umap", (0.01, *HEIGHT_DRIFTS), extension="+k300"),
            *finsler("finsler_tsne", (0.01, *HEIGHT_DRIFTS)),
            *PAPER_HEIGHTS, *extended(PAPER_UMAP_HEIGHTS, 300),
        ),
        redrawn=True,
    ),
    "us_cities": Experiment(
        "US cities by latitude and longitude: is density shown, and does it tell the relief?",
        ("us_cities",),
        (
            "spacing_1d",
            "isomap_2d", "isomap_3d", "umap_2d", "umap_3d", "tsne_2d", "tsne_3d", "poincare_2d",
            "radius_distance_2d", "slide_vector_2d", "symmetric_mds_2d",
            *finsler("finsler_mds", HEIGHT_DRIFTS),
            *finsler("finsler_umap", (0.01, *HEIGHT_DRIFTS)),
            *finsler("finsler_tsne", (0.01, *HEIGHT_DRIFTS)),
            "paper_mds_gd_0.5_3d", *PAPER_HEIGHTS,
        ),
        seeds=3,
    ),
    "flights": Experiment(
        "Air minutes between airports: does the height find the jet stream?",
        ("flights",),
        (
            "isomap_2d", "symmetric_mds_2d", "symmetric_mds_3d",
            "slide_vector_2d", "slide_vector_3d", "radius_distance_2d", "radius_distance_3d",
            "finsler_mds_auto_2d", *finsler("finsler_mds", (0.05, 0.1, 0.15, 0.3), 2),
            "finsler_mds_auto_3d", "printed_mds_0.1_2d",
            "umap_2d", "tsne_2d", "poincare_2d",
            "finsler_umap_0.5_2d", "finsler_umap_0.5_3d",
            "finsler_tsne_0.5_2d", "finsler_tsne_0.5_3d",
        ),
        seeds=5,
    ),
    "directed": Experiment(
        "Other directed data: confusions, links, velocity",
        ("morse", "polblogs", "velocity"),
        (
            "symmetric_mds_2d", "symmetric_mds_3d", "slide_vector_2d", "slide_vector_3d",
            "radius_distance_2d", "radius_distance_3d",
            "finsler_mds_auto_2d", "finsler_mds_auto_3d", "finsler_mds_0.5_3d",
            "umap_2d", "tsne_2d",
            "finsler_umap_0.5_3d", "finsler_tsne_0.5_3d",
        ),
        seeds=5,
    ),
    "umap": Experiment(
        "Label agreement of the UMAP family, with the controls in three dimensions",
        (*SMALL, *LARGE),
        (
            "umap_2d", "umap_3d", "harmonic_umap_2d", "harmonic_umap_3d",
            *finsler("finsler_umap", (0.0, *PAPER_DRIFTS)),
        ),
        seeds=5, slow_data=LARGE,
    ),
    "paper_umap": Experiment(
        "The paper's own Finsler UMAP, with negatives of both kinds",
        (*SMALL, *LARGE),
        (*finsler("paper_umap", PAPER_DRIFTS), "paper_umap_one_sided_0.5_3d"),
        seeds=5, slow_data=LARGE,
    ),
    "paper_tsne": Experiment(
        "The paper's own Finsler t-SNE, on 15 neighbours and on 90",
        (*SMALL, *TSNE_LARGE),
        (
            "paper_tsne_parent_2d", "paper_tsne_parent_3d",
            *finsler("paper_tsne", PAPER_DRIFTS), *finsler("paper_tsne_wide", PAPER_DRIFTS),
        ),
        slow_data=TSNE_LARGE,
    ),
    "tsne": Experiment(
        "Label agreement of the t-SNE family, with the controls in three dimensions",
        (*SMALL, *TSNE_LARGE),
        ("tsne_2d", "tsne_3d", *finsler("finsler_tsne", (0.0, *PAPER_DRIFTS))),
        seeds=5, slow_data=TSNE_LARGE,
    ),
    "full_size": Experiment(
        "The main methods of the UMAP family on all 60,000 rows",
        ("mnist", "fashion_mnist"),
        ("umap_2d", "umap_3d", *finsler("finsler_umap", (0.0, 0.01, 0.5))),
        seeds=3, slow_data=("mnist", "fashion_mnist"),
    ),
    "full_size_tsne": Experiment(
        "The main methods of the t-SNE family on all 60,000 rows",
        ("mnist", "fashion_mnist"),
        ("tsne_2d", *finsler("finsler_tsne", (0.0, 0.5))),
        seeds=3, slow_data=("mnist", "fashion_mnist"),
    ),
    "dimension": Experiment(
        "Ablation: dimension of the embedding, with as many columns for either method",
        ("digits", "imagenette"),
        (
            *(f"umap_{d}d" for d in (5, 10, 50)),
            *(m for d in (2, 5, 10, 50) for m in finsler("finsler_umap", (0.0, 0.01, 0.5), d)),
            *finsler("free_umap", (0.01, 0.5), 2),
        ),
        seeds=5, slow_data=("imagenette",),
    ),
    "negatives": Experiment(
        "Ablation: one-sided negatives, as in umap-learn, against two-sided ones",
        ("digits", "mnist:10000", "fashion_mnist:10000", "imagenette"),
        finsler("one_sided_umap", (0.01, 0.1, 0.5, 0.9)),
        seeds=5, slow_data=("mnist:10000", "fashion_mnist:10000", "imagenette"),
    ),
    "held_height": Experiment(
        "Ablation: the map alone, without drift, and a height that moves from the start",
        ("digits", "dtd10", "mnist:10000", "fashion_mnist:10000", "emnist_balanced", "imagenette"),
        ("finsler_umap_0_2d", *finsler("free_umap", PAPER_DRIFTS)),
        seeds=5,
        slow_data=("mnist:10000", "fashion_mnist:10000", "emnist_balanced", "imagenette"),
    ),
    "drop_in": Experiment(
        "FinslerUMAP in place of UMAP: any drift, two and three columns, height held and free",
        (*DISKS, "swiss_roll", "us_cities", *DROP_IN_DATA),
        (
            "umap_2d", "umap_3d",
            *finsler("umap_free", DROP_IN_DRIFTS, 2), *finsler("umap_held", DROP_IN_DRIFTS, 3),
            *finsler("umap_free", DROP_IN_DRIFTS, 3), *finsler("umap_held", DROP_IN_DRIFTS, 2),
        ),
        seeds=5, slow_data=DROP_IN_DATA[2:], drop_in=True,
    ),
    "drop_in_tsne": Experiment(
        "FinslerTSNE in place of openTSNE: the map and the height, held and free",
        (*DISKS, "swiss_roll", "us_cities", *SMALLER_DROP_IN_DATA),
        (
            "tsne_2d", *finsler("tsne_held", (0.01, 0.1, 0.5), 3),
            *finsler("tsne_free", (0.01, 0.1, 0.5), 2), *finsler("tsne_free", (0.01, 0.5), 3),
            "tsne_3d",
        ),
        seeds=3, slow_data=SMALLER_DROP_IN_DATA[2:], drop_in=True,
    ),
    "density": Experiment(
        "densMAP, which keeps density as spacing, beside a height",
        ("digits", "mnist:10000", "fashion_mnist:10000", "imagenette"),
        ("densmap_2d", "densmap_3d"),
        seeds=3, slow_data=("mnist:10000", "fashion_mnist:10000", "imagenette"),
    ),
    "tsne_plane": Experiment(
        "Ablation: Finsler t-SNE in two columns, and exact t-SNE on small data",
        SMALL,
        (*finsler("finsler_tsne", (0.01, 0.5), 2), "exact_tsne_2d", "harmonic_tsne_2d",
         "harmonic_tsne_3d"),
        seeds=5,
    ),
    "poincare": Experiment(
        "Poincaré maps against Finsler t-SNE",
        ("imagenette",),
        ("poincare_2d",),
        seeds=3, quick_seeds=1, slow_data=("imagenette",),
    ),
}  # fmt: skip


def cells(name: str, *, quick: bool = False, seeds: int | None = None) -> Iterator[Cell]:
    """All runs of an experiment, seed by seed, so that what is finished is balanced."""
    experiment = EXPERIMENTS[name]
    if seeds is None:
        seeds = experiment.quick_seeds if quick else experiment.seeds
    skipped = experiment.slow_data if quick else ()
    for seed in range(seeds):
        for data in experiment.data:
            if data in skipped:
                continue
            for method in experiment.methods:
                if seed == 0 or experiment.redrawn or family_of(method).random:
                    data_seed = seed if experiment.redrawn else 0
                    yield Cell(name, data, data_seed, method, seed)
