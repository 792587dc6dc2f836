"""Asymmetric manifold learning: UMAP, t-SNE and MDS that keep the direction."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from finsler_ext.aligned import AlignedFinslerUMAP
    from finsler_ext.directed.read import read_directed
    from finsler_ext.io import load
    from finsler_ext.mds.estimator import FinslerMDS
    from finsler_ext.tsne.estimator import FinslerTSNE
    from finsler_ext.umap.estimator import FinslerUMAP

try:
    __version__ = version("finsler_ext")
except PackageNotFoundError:  # used from a source tree
    __version__ = "0+unknown"

# Imported on first use: umap-learn and openTSNE take seconds to load.
_HOME = {
    "AlignedFinslerUMAP": "finsler_ext.aligned",
    "FinslerMDS": "finsler_ext.mds.estimator",
    "FinslerTSNE": "finsler_ext.tsne.estimator",
    "FinslerUMAP": "finsler_ext.umap.estimator",
    "load": "finsler_ext.io",
    "read_directed": "finsler_ext.directed.read",
}

__all__ = [
    "AlignedFinslerUMAP",
    "FinslerMDS",
    "FinslerTSNE",
    "FinslerUMAP",
    "load",
    "read_directed",
]


def __getattr__(name: str):
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_HOME])
