"""Directed data whose order is known from elsewhere.

    pancreas      transitions between cells by RNA velocity; stage of their lineage
    worm          chemical synapses of a worm (Cook et al. 2019); sensory, inter and motor neurons
    imports:NAME  imports between the modules of a Python package; layers that it declares
    citations     papers on arXiv, HEP-PH, to June 1999 (SNAP cit-HepPh); month

Files are looked for in ``--data-dir`` or FINSLER_DATA; ``route`` says where they are from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from benchmarks.data import files
from finsler_ext import read_directed
from finsler_ext.directed.data import DirectedData

__all__ = ["PACKAGES", "TRUTHS", "OrderedData", "import_graph", "ordered"]

PACKAGES = (
    "import-linter", "sqlfluff", "openedx-core", "omop-alchemy", "ophyd-async", "napari",
    "pbs-client", "wemake-python-styleguide",
)  # fmt: skip
TRUTHS = ("pancreas", "worm", *(f"imports:{name}" for name in PACKAGES), "citations")
IMPORTS, POPULAR = "import_graphs", "import_graphs_popular"
IMPORTS_ROUTE = "grimp.build_graph of packages from PyPI, and the layers of their import-linter"


class OrderedData(NamedTuple):
    """Directed data, and a number per node that falls along the edges; nan where not known.

    strengths : what SpringRank and the degrees are computed from
    """

    data: DirectedData
    rank: np.ndarray
    strengths: scipy.sparse.csr_array


def ordered(name: str, data_dir: str | None = None) -> OrderedData:
    """One of `TRUTHS`."""
    if name == "pancreas":
        keys = ("T_row", "T_col", "T_val", "lineage_rank")
        route = "scvelo.datasets.pancreas(), transition matrix by scvelo"
        stored = files.read("pancreas_velocity", data_dir, keys, route=route)
        n = len(stored["lineage_rank"])
        edges = (stored["T_row"].astype(np.int64), stored["T_col"].astype(np.int64))
        T = scipy.sparse.csr_array((stored["T_val"].astype(np.float64), edges), shape=(n, n))
        T = scipy.sparse.diags_array(1.0 / np.asarray(T.sum(axis=1)).ravel()) @ T
        return _ordered(read_directed(T, values="transitions"), _falling(stored["lineage_rank"]))
    if name == "worm":
        keys = ("cook2019_chem", "cls")
        stored = files.read("worm_connectomes", data_dir, keys, route="PyPI cect")
        synapses = stored["cook2019_chem"].astype(np.float64)
        return _ordered(read_directed(synapses, values="strength"), _falling(stored["cls"]))
    if name == "citations":
        keys = ("src", "dst", "month")
        stored = files.read(name, data_dir, keys, route="cit-HepPh of snap.stanford.edu")
        graph = _graph(stored["src"], stored["dst"], len(stored["month"]))
        return _ordered(read_directed(graph), stored["month"].astype(np.float64))
    package = name.partition(":")[2]
    graph, layer = import_graph(package, data_dir)
    return _ordered(read_directed(graph), _falling(layer))


def _ordered(data: DirectedData, rank) -> OrderedData:
    strengths = data.strengths
    if strengths is None:
        strengths = scipy.sparse.csr_array(data.distances)
    return OrderedData(data, rank, strengths)


def _falling(stage) -> np.ndarray:
    """Stages that are numbered along the edges; those below 0 are not known."""
    return np.where(stage < 0, np.nan, -np.asarray(stage, dtype=np.float64))


def import_graph(package: str, data_dir: str | None):
    """1 where module i imports module j, and the declared layer of each (−1: none)."""
    file = IMPORTS if package in PACKAGES else POPULAR
    keys = ("pkg", "node_offsets", "edge_offsets", "edges")
    stored = files.read(file, data_dir, keys, optional=("layer",), route=IMPORTS_ROUTE)
    places = np.flatnonzero(stored["pkg"] == package)
    if places.size == 0:
        raise ValueError(f"unknown package {package!r}; {file} has {', '.join(stored['pkg'])}.")
    place = int(places[0])
    first, last = stored["node_offsets"][place : place + 2].astype(np.int64)
    edges = stored["edges"][slice(*stored["edge_offsets"][place : place + 2])].astype(np.int64)
    source, target = edges.T
    layer = stored["layer"][first:last] if "layer" in stored else np.full(last - first, -1)
    return _graph(source, target, int(last - first)), layer


def _graph(source, target, n: int) -> scipy.sparse.csr_array:
    source, target = (np.asarray(end, dtype=np.int64) for end in (source, target))
    proper = source != target
    graph = scipy.sparse.csr_array(
        (np.ones(np.count_nonzero(proper)), (source[proper], target[proper])), shape=(n, n)
    )
    graph.data[:] = 1.0
    return graph
