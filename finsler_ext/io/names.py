"""The classes a file may name.

Own classes that hold data go by module and name, seen from `finsler_ext`; classes of other
packages are listed. A file can make nothing else, and nothing it names is called.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module

__all__ = ["ESTIMATORS", "class_named", "is_estimator", "name_of"]

# What save takes and load returns.
ESTIMATORS = {
    "FinslerMDS": "finsler_ext.estimators.mds:FinslerMDS",
    "FinslerTSNE": "finsler_ext.estimators.tsne:FinslerTSNE",
    "FinslerUMAP": "finsler_ext.estimators.umap:FinslerUMAP",
    "opentsne.FinslerTSNE": "finsler_ext.estimators.opentsne:FinslerTSNE",
    "openTSNE.TSNEEmbedding": "openTSNE.tsne:TSNEEmbedding",
    "opentsne.FinslerEmbedding": "finsler_ext.estimators._tsne.embedding:FinslerEmbedding",
}
FOREIGN = {
    "openTSNE.Annoy": "openTSNE.nearest_neighbors:Annoy",
    "openTSNE.NNDescent": "openTSNE.nearest_neighbors:NNDescent",
    "openTSNE.Sklearn": "openTSNE.nearest_neighbors:Sklearn",
    "pynndescent.NNDescent": "pynndescent:NNDescent",
}
LISTED = ESTIMATORS | FOREIGN
# Names in files of earlier versions: {"drift:Choice": "drift:DriftChoice"}.
MOVED: dict[str, str] = {"metrics:SkewFidelity": "asymmetry:SkewFidelity"}

# Where own classes with data are. Commands and plots are not among them.
STAGES = ("asymmetry", "construct", "drift", "estimators", "layout", "metrics", "spaces")
OWN_NAME = re.compile(rf"({'|'.join(STAGES)})(\.\w+)*:\w+")


def class_named(name) -> type:
    """The class of a name, or a ValueError."""
    if isinstance(name, str):
        if name in LISTED:
            module, attribute = LISTED[name].split(":")
            return getattr(import_module(module), attribute)
        name = MOVED.get(name, name)
        if OWN_NAME.fullmatch(name):
            module, attribute = f"finsler_ext.{name}".split(":")
            try:
                cls = getattr(import_module(module), attribute, None)
            except ModuleNotFoundError:
                cls = None
            if inspect.isclass(cls) and cls.__module__ == module:
                return cls
    raise ValueError(f"it names a class {name!r} that this version does not know")


def name_of(cls: type) -> str | None:
    """The name of a class, None if a file may not hold it."""
    for name, home in LISTED.items():
        if home.endswith(f":{cls.__name__}") and class_named(name) is cls:
            return name
    own = f"{cls.__module__.removeprefix('finsler_ext.')}:{cls.__qualname__}"
    return own if cls.__module__.startswith("finsler_ext.") and OWN_NAME.fullmatch(own) else None


def is_estimator(cls: type) -> bool:
    return name_of(cls) in ESTIMATORS
