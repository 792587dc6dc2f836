"""What scores are where clusters have nothing to do with labels, or where there are no clusters."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import (
    calinski_harabasz_score,
    davies_bouldin_score,
    fowlkes_mallows_score,
    normalized_mutual_info_score,
    silhouette_score,
)

__all__ = ["EQUAL_CLASSES", "Blob", "blob", "unrelated"]

# Data sets of the paper whose classes have equal or nearly equal sizes.
EQUAL_CLASSES = ("Iris", "CIFAR10", "CIFAR100", "DTD", "OxfordFlowers102", "OxfordIIITPet",
                 "Imagenette")  # fmt: skip
BLOB_POINTS = 3000


@cache
def unrelated(points: int, classes: int, draws: int = 3) -> tuple[float, float]:
    """(NMI, FMI) of equal classes and as many equal clusters, in random order."""
    rng = np.random.default_rng(0)
    labels = np.arange(points) % classes
    found = [rng.permutation(labels) for _ in range(draws)]
    nmi = np.mean([normalized_mutual_info_score(labels, f) for f in found])
    fmi = np.mean([fowlkes_mallows_score(labels, f) for f in found])
    return float(nmi), float(fmi)


class Blob(NamedTuple):
    """Scores of k-means clusters of a layout without clusters; the last one per point."""

    silhouette: float
    davies_bouldin: float
    calinski_harabasz: float


@cache
def blob(columns: int, clusters: int, shape: str = "ball") -> Blob:
    """k-means on points of a ball ("ball") or of a normal distribution ("normal")."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(BLOB_POINTS, columns))
    if shape == "ball":
        radius = rng.random(BLOB_POINTS) ** (1 / columns)
        Y *= (radius / np.linalg.norm(Y, axis=1))[:, None]
    found = KMeans(clusters, n_init=2, random_state=0).fit_predict(Y)
    return Blob(
        float(silhouette_score(Y, found)),
        float(davies_bouldin_score(Y, found)),
        float(calinski_harabasz_score(Y, found) / len(Y)),
    )
