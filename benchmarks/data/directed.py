"""Directed distances: flights, Morse signals, political blogs, cells with RNA velocity.

Rows are sources, in the order of the file.
"""

from __future__ import annotations

import numpy as np

from benchmarks.data import files
from benchmarks.data.dataset import Dataset, class_numbers
from finsler_ext import read_directed
from finsler_ext.directed.data import complete_paths

__all__ = ["load_blogs", "load_direct_flights", "load_flights", "load_morse", "load_velocity"]

FLIGHTS = "flights_us_2015jan"
FLIGHTS_ROUTE = "from the on-time performance tables of the US Bureau of Transportation Statistics"
MORSE = "morse_rothkopf"
BLOGS = "polblogs"
VELOCITY = "sc_velocity_cellrank200"


def _distances(name: str, file: str, D, labels=None, truth=None) -> Dataset:
    labels = None if labels is None else class_numbers(labels)
    return Dataset(name, D, labels, truth or {}, "precomputed", f"{file}.npz")


def _airports(stored, n: int) -> dict[str, np.ndarray]:
    latlon = stored["latlon"]
    files.check_rows(FLIGHTS, n, latlon=latlon)
    latitude, longitude = latlon.astype(np.float64).T
    return {"longitude": longitude, "latitude": latitude}


def load_flights(data_dir: str | None) -> Dataset:
    """Median minutes in the air between airports, over changes where there is no direct flight."""
    stored = files.read(FLIGHTS, data_dir, ("D", "latlon"), route=FLIGHTS_ROUTE)
    D = stored["D"].astype(np.float64)
    files.check_distances(FLIGHTS, "D", D)
    return _distances("flights", FLIGHTS, D, truth=_airports(stored, len(D)))


def load_direct_flights(data_dir: str | None) -> Dataset:
    """Median minutes of the direct flights; nan where there is none."""
    stored = files.read(FLIGHTS, data_dir, ("W_direct", "latlon"), route=FLIGHTS_ROUTE)
    D = stored["W_direct"].astype(np.float64)
    np.fill_diagonal(D, 0.0)
    files.check_distances(FLIGHTS, "W_direct", np.nan_to_num(D))
    return _distances("flights_direct", FLIGHTS, D, truth=_airports(stored, len(D)))


def load_morse(data_dir: str | None) -> Dataset:
    """One minus the share of listeners who take a signal for another (Rothkopf 1957)."""
    route = "D, one minus the confusions that the R package smacof calls morse"
    D = files.read(MORSE, data_dir, ("D",), route=route)["D"].astype(np.float64)
    files.check_distances(MORSE, "D", D)
    np.fill_diagonal(D, 0.0)  # how often a signal is not recognised: not a distance
    return _distances("morse", MORSE, D)


def load_blogs(data_dir: str | None) -> Dataset:
    """Clicks between blogs of the strongly connected part (Adamic and Glance 2005)."""
    route = "D_scc and scc; the links are polblogs of networkrepository.com"
    stored = files.read(BLOGS, data_dir, ("D_scc",), optional=("scc", "y"), route=route)
    D = stored["D_scc"].astype(np.float64)
    files.check_distances(BLOGS, "D_scc", D)
    labels = None
    if "y" in stored and "scc" in stored:
        files.check_rows(BLOGS, len(D), scc=stored["scc"])
        labels = stored["y"][stored["scc"]]
    return _distances("polblogs", BLOGS, D, labels)


def load_velocity(data_dir: str | None) -> Dataset:
    """Cells; lengths of paths along the transitions that RNA velocity makes probable."""
    route = "T and latent_time, by scvelo from scvelo.datasets.dentategyrus()"
    keys = ("T", "latent_time")
    stored = files.read(VELOCITY, data_dir, keys, optional=("y",), route=route)
    D = complete_paths(read_directed(stored["T"], values="transitions").distances)
    files.check_distances(VELOCITY, "T", D)
    # Cells whose time is not known are nan.
    files.check_rows(VELOCITY, len(D), finite=False, latent_time=stored["latent_time"])
    if "y" in stored:
        files.check_rows(VELOCITY, len(D), y=stored["y"])
    truth = {"latent_time": stored["latent_time"].astype(np.float64)}
    return _distances("velocity", VELOCITY, D, stored.get("y"), truth)
