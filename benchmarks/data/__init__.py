"""Data of the benchmarks, by name.

    load("mnist:10000", data_dir="…")

Some are generated, some come with scikit-learn; the others are npz files in ``--data-dir`` or the
environment variable FINSLER_DATA. MNIST and its relatives are also read from their publishers'
files, and fetched from OpenML if there are none. Nothing is replaced silently: what is missing is
named, with the way to get it. README.md in this folder says which of the paper's sets were at hand;
``python -m benchmarks.paper.data_sets`` looks which are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from benchmarks.data import classified, directed, places, synthetic
from benchmarks.data.dataset import Dataset
from benchmarks.data.files import labelled, load_local
from benchmarks.data.synthetic import blobs, disk

__all__ = ["Dataset", "blobs", "disk", "known_names", "labelled", "load", "load_local"]


class _Entry(NamedTuple):
    loader: Callable[..., Dataset]
    # Which of size, seed, data_dir and download the loader takes, and the size where none is given.
    takes: tuple[str, ...]
    size: int | None = None


def _entries() -> dict[str, _Entry]:
    sampled, generated = ("size", "data_dir"), ("size", "seed")
    entries = {
        n: _Entry(partial(classified.load_bundled, n), ("size",)) for n in classified.BUNDLED
    }
    entries |= {
        "disk": _Entry(synthetic.load_disk, generated, 1000),
        "swiss_roll": _Entry(synthetic.load_swiss_roll, generated, 2000),
        "clusters": _Entry(synthetic.load_clusters, generated, 500),
        "blobs": _Entry(synthetic.load_blobs, generated, 10_000),
    }
    entries |= {
        n: _Entry(partial(classified.load_images, n), (*sampled, "download"))
        for n in classified.IMAGES
    }
    entries |= {
        n: _Entry(partial(classified.load_features, n), sampled) for n in classified.FEATURES
    }
    return entries | {
        "pbmc68k": _Entry(classified.load_cells, sampled),
        "flights": _Entry(directed.load_flights, ("data_dir",)),
        "flights_direct": _Entry(directed.load_direct_flights, ("data_dir",)),
        "morse": _Entry(directed.load_morse, ("data_dir",)),
        "polblogs": _Entry(directed.load_blogs, ("data_dir",)),
        "velocity": _Entry(directed.load_velocity, ("data_dir",)),
        "us_cities": _Entry(places.load_cities, sampled, 2000),
        "us_zip": _Entry(places.load_zip_codes, sampled, 2000),
    }


_ENTRIES = _entries()


def known_names() -> tuple[str, ...]:
    """The names that `load` knows, without sizes."""
    return tuple(_ENTRIES)


def load(
    spec: str, *, data_dir: str | None = None, seed: int = 0, download: bool = True
) -> Dataset:
    """The data set NAME or NAME:SIZE.

    SIZE is the number of points of generated data (of the Swiss roll, the number its grid is made
    from), of cities (the largest ones) and of places with zip codes, and of a stratified sample of
    data with classes, whose rows are the same for every seed. ``seed`` draws clusters and blobs
    and shuffles the rows of the disk and the Swiss roll; other rows are in the order of their file.
    Without ``download`` images that are not in ``data_dir`` are missing.
    """
    name, colon, digits = spec.partition(":")
    if name not in _ENTRIES:
        raise ValueError(f"Unknown data {spec!r}; known are {', '.join(known_names())}.")
    entry = _ENTRIES[name]
    if colon and "size" not in entry.takes:
        raise ValueError(f"{name} has one size only: ask for {name!r}, not {spec!r}.")
    if colon and not (digits.isdecimal() and int(digits) > 0):
        raise ValueError(f"The size in {spec!r} must be a positive number, as in '{name}:1000'.")
    size = int(digits) if colon else entry.size
    given = {"size": size, "data_dir": data_dir, "seed": seed, "download": download}
    return replace(entry.loader(**{key: given[key] for key in entry.takes}), name=spec)
