"""Asymmetric manifold learning: UMAP, t-SNE and MDS that keep the direction."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from finsler_ext import _moved

if TYPE_CHECKING:
    from finsler_ext.construct.directed_input import read_directed
    from finsler_ext.estimators.mds import FinslerMDS
    from finsler_ext.estimators.tsne import FinslerTSNE
    from finsler_ext.estimators.umap import FinslerUMAP
    from finsler_ext.io import load

try:
    __version__ = version("finsler_ext")
except PackageNotFoundError:  # used from a source tree
    __version__ = "0+unknown"

_moved.install()

# Imported on first use: umap-learn and openTSNE take seconds to load.
_HOME = {
    "FinslerMDS": "finsler_ext.estimators.mds",
    "FinslerTSNE": "finsler_ext.estimators.tsne",
    "FinslerUMAP": "finsler_ext.estimators.umap",
    "load": "finsler_ext.io",
    "read_directed": "finsler_ext.construct.directed_input",
}

__all__ = ["FinslerMDS", "FinslerTSNE", "FinslerUMAP", "load", "read_directed"]


def __getattr__(name: str):
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_HOME])
