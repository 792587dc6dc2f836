"""Modules of 0.1.0 under their old names: old imports warn, and old pickles load."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_METHODS = {
    "stress": ("asymmetric", "descent", "drift", "majorization", "placement"),
    "tsne": (
        "attraction",
        "descent",
        "exact",
        "gradient",
        "grid",
        "kernel",
        "schedule",
        "tree",
    ),
    "umap": ("descent", "forces", "loss", "placement", "schedule", "sgd"),
}
_PACKAGES = {"_umap": "estimators._umap", "dissimilarity": "construct"}
_MODULES = {
    "_input": "construct.input",
    "_mds_columns": "estimators._mds.columns",
    "_mds_drift": "estimators._mds.drift",
    "_mds_functions": "estimators._mds.functions",
    "_mds_input": "estimators._mds.input",
    "_mds_problem": "estimators._mds.problem",
    "_mds_solve": "estimators._mds.solve",
    "_mds_transform": "estimators._mds.new_points",
    "_tsne_start": "estimators._tsne.start",
    "drift_choice": "drift",
    "layout.initial": "layout.start",
    "layout.octree": "layout.tsne.octree",
    "layout.spline_grid": "layout.tsne.spline_grid",
    "layout.stress_initial": "layout.stress.start",
    "mds": "estimators.mds",
    "opentsne": "estimators.opentsne",
    "randers": "spaces.randers",
    "spectral": "estimators.spectral",
    "tsne": "estimators.tsne",
    "umap": "estimators.umap",
    **{
        f"layout.{method}_{part}": f"layout.{method}.{part}"
        for method, parts in _METHODS.items()
        for part in parts
    },
}
# Modules of 0.1.0 that no longer belong to the package, and where their contents are.
_LEFT = {"mds_peers": "benchmarks/methods/mds_peers.py in the source repository"}


def new_name(name: str) -> str | None:
    """Where the module ``finsler_ext.<name>`` of 0.1.0 is now, None if it has not moved.

    >>> new_name("finsler_ext.umap")
    'finsler_ext.estimators.umap'
    >>> new_name("finsler_ext.dissimilarity.scales")
    'finsler_ext.construct.scales'
    """
    package, _, inner = name.partition(".")
    if package != "finsler_ext":
        return None
    if inner in _MODULES:
        return f"finsler_ext.{_MODULES[inner]}"
    first, _, rest = inner.partition(".")
    if first in _PACKAGES:
        return ".".join(filter(None, ["finsler_ext", _PACKAGES[first], rest]))
    return None


class _Forward(Loader):
    """Loads an empty module that takes every attribute from the module's new home."""

    def __init__(self, home: str):
        self.home = home

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        warnings.warn(
            f"{module.__name__} has moved to {self.home}", DeprecationWarning, stacklevel=2
        )
        home = import_module(self.home)
        module.__doc__ = home.__doc__
        module.__dict__["__getattr__"] = lambda name: getattr(home, name)
        module.__dict__["__dir__"] = lambda: dir(home)


class OldNames(MetaPathFinder):
    """Finds moved modules; asked only after Python has found no module of that name."""

    def find_spec(self, name, path=None, target=None):
        left = _LEFT.get(name.removeprefix("finsler_ext."))
        if left is not None and name.startswith("finsler_ext."):
            raise ModuleNotFoundError(f"{name} is no part of the package: see {left}.", name=name)
        home = new_name(name)
        if home is None:
            return None
        package = name.removeprefix("finsler_ext.") in _PACKAGES
        return ModuleSpec(name, _Forward(home), is_package=package)


def install() -> None:
    """Make the old names importable, once per process."""
    if not any(isinstance(finder, OldNames) for finder in sys.meta_path):
        sys.meta_path.append(OldNames())
