"""The numbers that the paper prints (arXiv 2603.11396, version 1), and what they imply.

    python -m benchmarks.paper.published           which rows hold failed runs, and what is left
    python -m benchmarks.paper.published rows      the same for every row and score
    python -m benchmarks.paper.published chance    what failed runs look like, simulated
    python -m benchmarks.paper.published provoke         can UMAP be made to fail like that?

``tables.csv`` was read by a script from the LaTeX source of the paper: one line per number, with
the table it stands in.

=============  =================================================================================
table          in the paper
=============  =================================================================================
umap, tsne     the two classification tables of the appendix: parent, and best of four drifts
supervised     accuracies of two classifiers
dimension      the UMAP family in d = 2, 5, 10, 50 (Finsler UMAP has d + 1 columns)
drift_umap     the UMAP family at every drift
drift_tsne     the t-SNE family at every drift
time           seconds, from the section on resources
=============  =================================================================================
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

__all__ = ["LABEL_SCORES", "OURS", "SHAPE_SCORES", "SIZES", "Printed", "printed", "read"]

TABLES = Path(__file__).with_name("tables.csv")
LABEL_SCORES = ("ami", "ari", "nmi", "homogeneity", "completeness", "v_measure", "fmi")
SHAPE_SCORES = ("silhouette", "davies_bouldin", "calinski_harabasz")
# The name of a data set of the paper in the ledgers, where we have it or a sample of it.
OURS = {
    "Iris": "iris",
    "MNIST": "mnist:10000",
    "Fashion-MNIST": "fashion_mnist:10000",
    "Kuzushiji-MNIST": "kmnist:10000",
    "EMNIST-Balanced": "emnist_balanced",
    "DTD": "dtd10",
    "Caltech101": "caltech101",
    "OxfordFlowers102": "flowers102",
    "Imagenette": "imagenette",
}
# Points and classes, from the paper's section on data.
SIZES = {
    "Iris": (150, 3),
    "MNIST": (60000, 10),
    "Fashion-MNIST": (60000, 10),
    "Kuzushiji-MNIST": (60000, 10),
    "EMNIST": (60000, 10),
    "EMNIST-Balanced": (112800, 47),
    "CIFAR10": (50000, 10),
    "CIFAR100": (50000, 100),
    "DTD": (1880, 47),
    "Caltech101": (8677, 101),
    "Caltech256": (30607, 257),
    "OxfordFlowers102": (1020, 102),
    "OxfordIIITPet": (3680, 37),
    "GTSRB": (26640, 43),
    "Imagenette": (9469, 10),
    "Imagenet": (1281167, 1000),
}


class Printed(NamedTuple):
    """A mean and its deviation; nan where the paper prints none."""

    mean: float
    sd: float


@cache
def read() -> pd.DataFrame:
    """All numbers: table, data, method, drift, dimension, score, mean, sd."""
    return pd.read_csv(TABLES)


def printed(
    table: str, data: str, method: str, score: str, drift: float | None = None, dimension: int = 2
) -> Printed:
    """One number of the paper; nan where it has none."""
    found = read()
    chosen = (
        (found.table == table)
        & (found.data == data)
        & (found.method == method)
        & (found.score == score)
        & (found.dimension == dimension)
        & (found.drift.isna() if drift is None else found.drift == drift)
    )
    rows = found[chosen]
    if rows.empty:
        return Printed(float("nan"), float("nan"))
    return Printed(float(rows["mean"].iloc[0]), float(rows["sd"].iloc[0]))
