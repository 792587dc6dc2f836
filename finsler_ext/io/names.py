"""The classes a file may name. A file holds names from this table and nothing that is imported.

A name stays what it is for as long as files with it are to be read; the module may change.
"""

from __future__ import annotations

from importlib import import_module

__all__ = ["ESTIMATORS", "OBJECTS", "TUPLES", "class_named", "name_of"]

# What save takes and load returns.
ESTIMATORS = {
    "FinslerMDS": "finsler_ext.estimators.mds:FinslerMDS",
    "FinslerTSNE": "finsler_ext.estimators.tsne:FinslerTSNE",
    "FinslerUMAP": "finsler_ext.estimators.umap:FinslerUMAP",
    "opentsne.FinslerTSNE": "finsler_ext.estimators.opentsne:FinslerTSNE",
    "openTSNE.TSNEEmbedding": "openTSNE.tsne:TSNEEmbedding",
}

# Objects with attributes; parts.py says which of them are written.
OBJECTS = {
    "DirectedFixedSigma": "finsler_ext.construct.tsne_affinities:DirectedFixedSigma",
    "DirectedIndex": "finsler_ext.construct.tsne_neighbors:DirectedIndex",
    "DirectedPerplexity": "finsler_ext.construct.tsne_affinities:DirectedPerplexity",
    "DirectedUniform": "finsler_ext.construct.tsne_affinities:DirectedUniform",
    "FinslerDescent": "finsler_ext.layout.tsne.descent:FinslerDescent",
    "FinslerGradient": "finsler_ext.layout.tsne.gradient:FinslerGradient",
    "PrecomputedDirected": "finsler_ext.construct.tsne_affinities:PrecomputedDirected",
    "openTSNE.Annoy": "openTSNE.nearest_neighbors:Annoy",
    "openTSNE.NNDescent": "openTSNE.nearest_neighbors:NNDescent",
    "openTSNE.Sklearn": "openTSNE.nearest_neighbors:Sklearn",
    "pynndescent.NNDescent": "pynndescent:NNDescent",
}

# Named tuples, written field by field.
TUPLES = {
    "AsFitted": "finsler_ext.construct.input:AsFitted",
    "ColumnChoice": "finsler_ext.estimators._mds.columns:ColumnChoice",
    "ColumnTrial": "finsler_ext.estimators._mds.columns:ColumnTrial",
    "DirectedDistances": "finsler_ext.construct.directed_distances:DirectedDistances",
    "DirectedNeighbors": "finsler_ext.construct.neighbors:DirectedNeighbors",
    "DriftChoice": "finsler_ext.drift:DriftChoice",
    "DriftSearch": "finsler_ext.layout.stress.drift:DriftSearch",
    "DriftTrial": "finsler_ext.layout.stress.drift:DriftTrial",
    "Fit": "finsler_ext.estimators._mds.columns:Fit",
    "Islands": "finsler_ext.layout.islands:Islands",
    "SkewFidelity": "finsler_ext.metrics:SkewFidelity",
    "SourceScale": "finsler_ext.construct.source_scales:SourceScale",
    "Trial": "finsler_ext.drift:Trial",
    "UmapLoss": "finsler_ext.layout.umap.loss:UmapLoss",
}


def class_named(name: str, table: dict[str, str]) -> type:
    """The class of a name; ValueError if the table does not have it."""
    if not isinstance(name, str) or name not in table:
        raise ValueError(f"it names a class {name!r} that this version does not know")
    module, attribute = table[name].split(":")
    return getattr(import_module(module), attribute)


def name_of(cls: type, table: dict[str, str]) -> str | None:
    """The name of a class, None if the table does not have it."""
    for name, home in table.items():
        # Nothing is imported that is not there already.
        if home.endswith(f":{cls.__name__}") and class_named(name, {name: home}) is cls:
            return name
    return None
