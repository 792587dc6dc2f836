"""All methods that are compared, by name.

A name is FAMILY_DIMENSIONd or FAMILY_DRIFT_DIMENSIONd, with +kK for an extension of the
neighbours to K along directed shortest paths:

    umap_2d    finsler_umap_0.5_3d    finsler_umap_0.1_3d+k50    finsler_mds_auto_2d
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

import numpy as np

from benchmarks.paper.problem import Problem
from finsler_ext.metrics import SkewFidelity

__all__ = ["FAMILIES", "Embedded", "Family", "Request", "embed", "family_of", "parse"]

NAME = re.compile(
    r"(?P<family>[a-z_]+?)(_(?P<omega>auto|\d*\.?\d+))?_(?P<dimension>\d+)d(\+k(?P<extension>\d+))?"
)


class Request(NamedTuple):
    """What the name of a method asks for."""

    family: str
    dimension: int
    omega: float | str | None = None
    extension: int | None = None


class Embedded(NamedTuple):
    """A finished embedding.

    has_height : the last column is a height, the others are the map
    skew : how faithfully the height shows the asymmetry, as the estimator says itself
    distances : directed distances of the model between all points, where it is a model of them
    scores : what only the method knows of itself: stress, Kullback–Leibler divergence, …
    """

    embedding: np.ndarray
    has_height: bool = False
    skew: SkewFidelity | None = None
    distances: Callable[[], np.ndarray] | None = None
    scores: dict[str, float] = {}  # noqa: RUF012 - never written to


def upside_down(embedding) -> np.ndarray:
    """The embedding with its height reversed: to a loss, the same as the opposite drift."""
    turned = np.array(embedding)
    turned[:, -1] *= -1
    return turned


class Family(NamedTuple):
    """A family of methods that differ in drift and dimension.

    function : where it is, "module:function", called as function(problem, request, seed)
    title : for tables and figures
    has_drift : the name carries a drift
    random : the result depends on the seed; other methods run once on fixed data
    seconds : time of a run on one core, for 1000 points
    growth : power of the number of points by which that time grows
    """

    function: str
    title: str
    has_drift: bool = False
    random: bool = True
    seconds: float = 1.0
    growth: float = 1.0


FAMILIES = {
    "umap": Family("umap_family:umap", "UMAP", seconds=1.3),
    "densmap": Family("umap_family:densmap", "densMAP", seconds=3.0),
    "harmonic_umap": Family("umap_family:harmonic", "UMAP, harmonic scales", seconds=0.4),
    "finsler_umap": Family("umap_family:finsler", "Finsler UMAP", has_drift=True, seconds=0.4),
    "one_sided_umap": Family(
        "umap_family:one_sided", "Finsler UMAP, one-sided negatives", has_drift=True, seconds=0.4
    ),
    "free_umap": Family(
        "umap_family:free", "Finsler UMAP, height never held", has_drift=True, seconds=0.4
    ),
    "umap_held": Family(
        "umap_family:held", "Finsler UMAP, height held", has_drift=True, seconds=0.4
    ),
    "umap_free": Family(
        "umap_family:free_axis", "Finsler UMAP, height free", has_drift=True, seconds=0.4
    ),
    "tsne_held": Family(
        "tsne_family:held", "Finsler t-SNE, height held", has_drift=True, seconds=2.0
    ),
    "tsne_free": Family(
        "tsne_family:free_axis", "Finsler t-SNE, height free", has_drift=True, seconds=2.0
    ),
    "tsne": Family("tsne_family:opentsne", "t-SNE", seconds=6.0),
    "exact_tsne": Family("tsne_family:exact", "t-SNE, exact", seconds=2.0, growth=2.0),
    "harmonic_tsne": Family("tsne_family:harmonic", "t-SNE, harmonic scales", seconds=2.0),
    "finsler_tsne": Family("tsne_family:finsler", "Finsler t-SNE", has_drift=True, seconds=2.0),
    "isomap": Family("mds_family:isomap", "Isomap", random=False, seconds=0.5, growth=2.0),
    "symmetric_mds": Family(
        "mds_family:symmetric", "symmetric MDS", random=False, seconds=0.5, growth=2.0
    ),
    "slide_vector": Family(
        "mds_family:slide_vector", "slide vector", random=False, seconds=1.0, growth=2.0
    ),
    "radius_distance": Family(
        "mds_family:radius_distance", "radius distance", random=False, seconds=0.5, growth=2.0
    ),
    "finsler_mds": Family(
        "mds_family:smacof", "Finsler MDS", True, random=False, seconds=0.5, growth=2.0
    ),
    "finsler_mds_gd": Family(
        "mds_family:gd", "Finsler MDS, GD", True, random=False, seconds=1.0, growth=2.0
    ),
    "printed_mds": Family(
        "mds_family:printed", "Finsler MDS, as printed", True, False, seconds=1.0, growth=2.0
    ),
    "paper_umap": Family(
        "paper_family:umap", "Finsler UMAP of the paper", has_drift=True, seconds=0.6
    ),
    "paper_umap_one_sided": Family(
        "paper_family:umap_one_sided",
        "Finsler UMAP of the paper, one-sided negatives",
        has_drift=True,
        seconds=0.6,
    ),
    "paper_tsne": Family(
        "paper_family:tsne", "Finsler t-SNE of the paper", True, random=False, seconds=2.5
    ),
    "paper_tsne_wide": Family(
        "paper_family:tsne_wide",
        "Finsler t-SNE of the paper, 90 neighbours",
        has_drift=True,
        random=False,
        seconds=2.5,
    ),
    "paper_tsne_parent": Family(
        "paper_family:tsne_parent", "t-SNE of the paper", random=False, seconds=2.5
    ),
    "paper_mds_gd": Family(
        "paper_family:mds_gd", "Finsler MDS of the paper, GD", True, False, seconds=1.0, growth=2.0
    ),
    "poincare": Family("poincare_family:poincare", "Poincaré map", seconds=10.0, growth=2.0),
    "spacing": Family("mds_family:spacing", "local scale itself", random=False, seconds=0.01),
}


def parse(name: str) -> Request:
    """What a method's name asks for, or a ValueError that lists the families."""
    found = NAME.fullmatch(name)
    family = FAMILIES.get(found["family"]) if found else None
    if found is None or family is None or family.has_drift != (found["omega"] is not None):
        known = ", ".join(
            f"{name}{'_OMEGA' if family.has_drift else ''}_Nd" for name, family in FAMILIES.items()
        )
        raise ValueError(f"unknown method {name!r}; known are {known} (and +kK behind them)")
    omega = found["omega"]
    return Request(
        found["family"],
        int(found["dimension"]),
        omega if omega in ("auto", None) else float(omega),
        int(found["extension"]) if found["extension"] else None,
    )


def family_of(name: str) -> Family:
    return FAMILIES[parse(name).family]


def embed(name: str, problem: Problem, seed: int) -> Embedded:
    """Run a method; warnings of small drifts and the like are the reader's business."""
    request = parse(name)
    module, function = FAMILIES[request.family].function.split(":")
    run = getattr(import_module(f"benchmarks.paper.methods.{module}"), function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(problem, request, seed)
