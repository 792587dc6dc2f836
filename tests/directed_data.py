"""The same directed distances in every container, for the tests of estimators and command."""

import importlib

import numpy as np
import scipy.sparse

from finsler_ext.directed.read import read_directed
from finsler_ext.geometry.randers import randers_distances

N = 40
NAMES = [f"town{i:02d}" for i in range(N)]


def planted(kind, omega, *, n=80, missing=0.3, noise=0.0, seed=0):
    """Points whose last column is the height, and their distances with ordered pairs missing."""
    rng = np.random.default_rng(seed)
    extent = [20, 40] if kind == "planar" else [40, 20, 10]
    Y = rng.uniform(size=(n, len(extent))) * extent
    D = randers_distances(Y, omega) * (1 + noise * rng.normal(size=(n, n)))
    D[rng.random(D.shape) < missing] = np.nan
    np.fill_diagonal(D, 0)
    return Y, D


def towns():
    """Three quarters of the ordered pairs between towns on a slope."""
    return planted("height", 0.4, n=N, missing=0.25)[1]


def edges(D):
    source, target = np.nonzero(np.isfinite(D) & ~np.eye(len(D), dtype=bool))
    return source, target, D[source, target]


def twice(D):
    """A sparse matrix that stores every entry as two halves."""
    source, target, length = edges(D)
    halves = scipy.sparse.csr_array((length / 2, (source, target)), shape=D.shape)
    doubled = scipy.sparse.csr_array(
        (np.repeat(halves.data, 2), np.repeat(halves.indices, 2), 2 * halves.indptr), D.shape
    )
    assert not doubled.has_canonical_format
    return doubled


def _sparse(D):
    source, target, length = edges(D)
    return scipy.sparse.coo_array((length, (source, target)), shape=D.shape)


def _frame(D, package="pandas"):
    pandas = importlib.import_module(package)
    shuffled = np.random.default_rng(1).permutation(N)
    return pandas.DataFrame(D, index=NAMES, columns=NAMES)[[NAMES[i] for i in shuffled]]


def _columns(D):
    source, target, length = edges(D)
    order = np.random.default_rng(2).permutation(len(length))
    names = np.array(NAMES)
    return {"to": names[target][order], "km": length[order], "from": names[source][order]}


def _networkx(D):
    graph = importlib.import_module("networkx").DiGraph()
    graph.add_nodes_from(NAMES)
    for i, j, length in zip(*edges(D), strict=True):
        graph.add_edge(NAMES[i], NAMES[j], weight=length)
    return graph


def _igraph(D):
    source, target, length = edges(D)
    graph = importlib.import_module("igraph").Graph(
        N, list(zip(source.tolist(), target.tolist(), strict=True)), directed=True
    )
    graph.vs["name"], graph.es["weight"] = NAMES, length
    return graph


def _polars(D):
    polars = importlib.import_module("polars")
    frame = _frame(D)
    columns = {name: frame[name].to_numpy() for name in frame.columns}
    return polars.DataFrame({"town": NAMES} | columns)


CONTAINERS = {
    "array, nan": lambda D: D,
    "array, inf": lambda D: np.where(np.isnan(D), np.inf, D),
    "masked array": lambda D: np.ma.masked_array(np.nan_to_num(D, nan=7.0), np.isnan(D)),
    "list": lambda D: D.tolist(),
    "csr": lambda D: scipy.sparse.csr_matrix(_sparse(D)),
    "coo": _sparse,
    "csr with duplicates": twice,
    "pandas, square": _frame,
    "polars, square": _polars,
    "pandas, edges": lambda D: importlib.import_module("pandas").DataFrame(_columns(D)),
    "polars, edges": lambda D: importlib.import_module("polars").DataFrame(_columns(D)),
    "dict, edges": _columns,
    "networkx": _networkx,
    "igraph": _igraph,
    "read_directed": lambda D: read_directed(_columns(D)),
    "tuples": lambda D: [
        (NAMES[i], NAMES[j], length) for i, j, length in zip(*edges(D), strict=True)
    ],
}
PACKAGES = {"polars": "polars", "igraph": "igraph", "networkx": "networkx", "pandas": "pandas"}
NAMED = ("pandas", "polars", "networkx", "igraph", "dict", "read_directed", "tuples")


def package_of(container):
    return PACKAGES.get(container.split(",")[0])
