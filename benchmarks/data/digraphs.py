"""Directed graphs, read from the files that their publishers offer.

    polblogs    links between political blogs (Adamic and Glance 2005)
    celegans    chemical synapses of the hermaphrodite worm (Cook et al. 2019)
    cora        citations between papers on machine learning (McCallum et al. 2000)
    email       who sent mail to whom in a research institution (Leskovec, SNAP)
    airlines    routes between airports (OpenFlights)
    road:NAME   free-flow minutes on the roads of a city (Transportation Networks): road:Anaheim

A file is looked for in ``--data-dir`` or the environment variable FINSLER_DATA and, if it is not
there, fetched from its publisher; what fails is named. Rows are sources.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from benchmarks.data import files

__all__ = ["DIGRAPHS", "digraph", "planted_digraph", "strong_part"]

RAW = "https://raw.githubusercontent.com"
ROADS = f"{RAW}/bstabler/TransportationNetworks/master"
SECONDS_TO_WAIT = 60


class Source(NamedTuple):
    """A file, where to get it, and how to read it as (sources, targets, lengths or None)."""

    file: str
    url: str
    read: Callable[[str], tuple[list, list, list | None]]


def _columns(text: str, source: int, target: int, pattern: str, length: int | None = None):
    rows = [re.split(pattern, line.strip()) for line in text.splitlines()]
    least = max(source, target, length or 0)
    rows = [row for row in rows if len(row) > least and row[source] and row[target]]
    lengths = None if length is None else [float(row[length]) for row in rows]
    return [row[source] for row in rows], [row[target] for row in rows], lengths


def _connectome(text: str):
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()[1:]]
    rows = [row for row in rows if len(row) == 4 and row[3] == "chemical"]
    # Muscles and organs have no synapses of their own: what has is a neuron.
    neurons = {row[0] for row in rows}
    rows = [row for row in rows if row[1] in neurons]
    return [row[0] for row in rows], [row[1] for row in rows], None


def _citations(text: str):
    cited, citing, _ = _columns(text, 0, 1, r"\s+")
    return citing, cited, None


def _mail(text: str):
    return _columns(text, 0, 1, r"[\s,]+")


def _routes(text: str):
    return _columns(text, 2, 4, ",")


def _roads(text: str):
    """Links between junctions; the zones, where trips begin and end, are left out."""
    first = re.search(r"<FIRST THRU NODE>\s*(\d+)", text)
    body = text.partition("<END OF METADATA>")[2]
    lines = [line for line in body.splitlines() if line.strip() and "~" not in line]
    sources, targets, minutes = _columns("\n".join(lines), 0, 1, r"[\s;]+", 4)
    least = int(first.group(1)) if first else 1
    kept = [
        k
        for k, (i, j) in enumerate(zip(sources, targets, strict=True))
        if int(i) >= least and int(j) >= least
    ]
    minutes = minutes or []
    return [sources[k] for k in kept], [targets[k] for k in kept], [minutes[k] for k in kept]


DIGRAPHS = {
    "celegans": Source(
        "herm_full_edgelist.csv",
        f"{RAW}/openworm/c302/master/c302/data/herm_full_edgelist.csv",
        _connectome,
    ),
    "cora": Source("cora.cites", f"{RAW}/tkipf/pygcn/master/data/cora/cora.cites", _citations),
    "email": Source(
        "email-eu-core.txt",
        f"{RAW}/chatox/networks-science-course/master/practicum/data/email-eu-core.txt",
        _mail,
    ),
    "airlines": Source("routes.dat", f"{RAW}/jpatokal/openflights/master/data/routes.dat", _routes),
}


def road(name: str) -> Source:
    folder = {"ChicagoSketch": "Chicago-Sketch", "ChicagoRegional": "chicago-regional"}
    file = f"{name}_net.tntp"
    return Source(file, f"{ROADS}/{folder.get(name, name)}/{file}", _roads)


def digraph(name: str, data_dir: str | None = None) -> scipy.sparse.csr_array:
    """Lengths of the edges (1 where they have none), of shape (n, n), without loops."""
    if name == "polblogs":
        route = "edges and n; the links are polblogs of networkrepository.com"
        stored = files.read("polblogs", data_dir, ("edges", "n"), route=route)
        source, target = stored["edges"].astype(np.int64).T
        return _matrix(source, target, None, int(stored["n"]))
    if name.startswith("road:"):
        source_of = road(name.partition(":")[2])
    elif name in DIGRAPHS:
        source_of = DIGRAPHS[name]
    else:
        known = ", ".join(["polblogs", *DIGRAPHS, "road:NAME"])
        raise ValueError(f"unknown digraph {name!r}; known are {known}.")
    sources, targets, lengths = source_of.read(_text(source_of, data_dir))
    names, ends = np.unique(np.array(sources + targets, dtype=str), return_inverse=True)
    source, target = ends[: len(sources)], ends[len(sources) :]
    return _matrix(source, target, lengths, len(names))


def _text(source_of: Source, data_dir: str | None) -> str:
    folder = data_dir or os.environ.get("FINSLER_DATA")
    path = Path(folder or ".") / source_of.file
    if folder and path.is_file():
        return path.read_text(encoding="utf-8", errors="replace")
    try:
        with urlopen(source_of.url, timeout=SECONDS_TO_WAIT) as answer:
            return answer.read().decode("utf-8", errors="replace")
    except (OSError, URLError) as error:
        raise FileNotFoundError(
            f"{source_of.file} is neither in --data-dir (or FINSLER_DATA) nor at {source_of.url} "
            f"({error})."
        ) from error


def _matrix(source, target, lengths, n: int) -> scipy.sparse.csr_array:
    """The shortest of several edges between the same two nodes counts; loops are left out."""
    lengths = np.ones(len(source)) if lengths is None else np.asarray(lengths, dtype=np.float64)
    proper = source != target
    source, target, lengths = source[proper], target[proper], lengths[proper]
    order = np.lexsort((lengths, target, source))
    source, target, lengths = source[order], target[order], lengths[order]
    first = np.ones(source.size, dtype=bool)
    first[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    edges = lengths[first], (source[first], target[first])
    return scipy.sparse.csr_array(scipy.sparse.coo_array(edges, shape=(n, n)))


def strong_part(graph, *, weak: bool = False) -> scipy.sparse.csr_array:
    """The largest strongly (or weakly) connected part."""
    kind = "weak" if weak else "strong"
    _, part = connected_components(graph, connection=kind)
    rows = np.flatnonzero(part == np.bincount(part).argmax())
    return scipy.sparse.csr_array(graph)[rows][:, rows]


def planted_digraph(
    n: int, degree: float = 8.0, *, reach: float = 1.0, noise: float = 0.1, seed: int = 0
) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """A digraph over random places with a planted level, and the level.

    Each node links to random nodes within ``reach``; a link runs from the higher to the lower
    level unless noise (in units of the level's spread) says otherwise.
    """
    rng = np.random.default_rng(seed)
    place, level = rng.uniform(size=(n, 2)), rng.normal(size=n)
    source, target = rng.integers(n, size=(2, 40 * int(degree * n)))
    near = np.linalg.norm(place[source] - place[target], axis=1) < reach
    chosen = np.flatnonzero(near & (source != target))[: int(degree * n)]
    source, target = source[chosen], target[chosen]
    up = level[target] - level[source] + noise * rng.normal(size=source.size) > 0
    source, target = np.where(up, target, source), np.where(up, source, target)
    return _matrix(source, target, None, n), level
