"""Places of the contiguous United States in the plane, their elevation being hidden."""

from __future__ import annotations

import numpy as np

from benchmarks.data import files
from benchmarks.data.dataset import Dataset

__all__ = ["load_cities", "load_zip_codes"]

# Of the contiguous United States: degrees of longitude are this share of those of latitude.
MEAN_LATITUDE = 38.0
CITIES = "us_cities_geonames"
ZIP_CODES = "us_zip_cities"


def _places(name: str, file: str, stored, elevation: str, rows) -> Dataset:
    latitude, longitude = stored["X"][rows].astype(np.float64).T
    plane = np.column_stack([longitude * np.cos(np.radians(MEAN_LATITUDE)), latitude])
    height = stored[elevation][rows].astype(np.float64)
    truth = {"plane": plane, "elevation": height}
    return Dataset(name, plane, truth=truth, source=f"{file}.npz")


def _check(file: str, stored, elevation: str, size: int) -> None:
    files.check_features(file, stored["X"], **{elevation: stored[elevation]})
    if not 1 <= size <= len(stored["X"]):
        raise ValueError(f"{file}.npz has {len(stored['X'])} places; got SIZE = {size}.")


def load_cities(size: int, data_dir: str | None) -> Dataset:
    """The largest cities, in the order of the file: by population."""
    route = "X: latitude and longitude, and elevation_m; GeoNames, cities15000.txt"
    stored = files.read(CITIES, data_dir, ("X", "elevation_m"), route=route)
    _check(CITIES, stored, "elevation_m", size)
    return _places("us_cities", CITIES, stored, "elevation_m", slice(size))


def load_zip_codes(size: int, data_dir: str | None) -> Dataset:
    """Places with a zip code: the sample of 2,000 in the file, or another fixed one."""
    route = "X: latitude and longitude, elevation_m_proxy and sample2000; PyPI package zipcodes"
    keys = ("X", "elevation_m_proxy", "sample2000")
    stored = files.read(ZIP_CODES, data_dir, keys, route=route)
    _check(ZIP_CODES, stored, "elevation_m_proxy", size)
    rows = stored["sample2000"]
    if size != len(rows):
        rows = np.random.RandomState(0).permutation(len(stored["X"]))[:size]
    return _places("us_zip", ZIP_CODES, stored, "elevation_m_proxy", rows)
