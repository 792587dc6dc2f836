"""Local npz files, looked for in ``--data-dir`` or the environment variable FINSLER_DATA.

Instead of ``NAME.npz`` there may be a folder ``NAME`` with ``X.npy``, ``y.npy`` and so on, which
is read only as far as it is used: the way for features that do not fit into memory twice. Nothing
is replaced silently: what is missing is named.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

__all__ = [
    "check_distances",
    "check_features",
    "check_rows",
    "find",
    "labelled",
    "load_local",
    "missing",
    "read",
]


def find(file: str, data_dir: str | None) -> Path | None:
    """``file``.npz in the data folder, or a folder of npy files; None if there is neither."""
    folder = data_dir or os.environ.get("FINSLER_DATA")
    if not folder:
        return None
    archive, arrays = Path(folder) / f"{file}.npz", Path(folder) / file
    if archive.is_file():
        return archive
    return arrays if (arrays / "X.npy").is_file() else None


def missing(file: str, route: str) -> FileNotFoundError:
    """The error for a file that is not there; ``route`` says where its data can be had."""
    return FileNotFoundError(
        f"{file}.npz not found: give the folder that holds it with --data-dir or FINSLER_DATA "
        f"({route})."
    )


def read(
    file: str, data_dir: str | None, keys: tuple[str, ...], *, optional=(), route: str
) -> dict[str, np.ndarray]:
    """The arrays ``keys`` of ``file``.npz, and those of ``optional`` that it has."""
    path = find(file, data_dir)
    if path is None:
        raise missing(file, route)
    if path.is_dir():
        mapped = {array.stem: array for array in sorted(path.glob("*.npy"))}
        _require(path, keys, list(mapped))
        wanted = [key for key in (*keys, *optional) if key in mapped]
        return {key: np.load(mapped[key], mmap_mode="r") for key in wanted}
    with np.load(path) as stored:
        _require(path, keys, stored.files)
        wanted = [key for key in (*keys, *optional) if key in stored.files]
        return {key: stored[key] for key in wanted}


def _require(path: Path, keys: tuple[str, ...], held: list[str]) -> None:
    absent = [key for key in keys if key not in held]
    if absent:
        raise ValueError(
            f"{path} has no array {', '.join(map(repr, absent))}; it holds "
            f"{', '.join(map(repr, held)) or 'nothing'}."
        )


def check_rows(file: str, n: int, *, finite: bool = True, **columns: np.ndarray) -> None:
    """Every column has n rows of numbers, and unless told otherwise no nan or infinity."""
    for key, values in columns.items():
        if values.ndim == 0 or len(values) != n:
            raise ValueError(f"{file}.npz: {key} has shape {values.shape}, expected {n} rows.")
        if values.dtype.kind not in "fiu":
            raise ValueError(f"{file}.npz: {key} is of type {values.dtype}, expected numbers.")
        if finite and not np.isfinite(values).all():
            raise ValueError(f"{file}.npz: {key} has entries that are nan or infinite.")


def check_features(file: str, X: np.ndarray, **columns: np.ndarray) -> None:
    if X.ndim != 2 or X.size == 0:
        raise ValueError(f"{file}.npz: X has shape {X.shape}, expected rows of features.")
    check_rows(file, len(X), X=X, **columns)


def check_distances(file: str, key: str, D: np.ndarray) -> None:
    if D.ndim != 2 or D.shape[0] != D.shape[1] or D.size == 0:
        raise ValueError(f"{file}.npz: {key} has shape {D.shape}, expected a square matrix.")
    check_rows(file, len(D), **{key: D})
    if D.min() < 0:
        raise ValueError(f"{file}.npz: {key} has negative entries, expected distances.")


def load_local(name: str, data_dir: str | None) -> tuple[np.ndarray, np.ndarray]:
    """X and y of ``name``.npz in the data folder."""
    route = "X and y as arrays; MNIST and Fashion-MNIST can be had from scikit-learn's fetch_openml"
    stored = read(name, data_dir, ("X", "y"), route=route)
    return stored["X"].astype(np.float32), stored["y"]


def labelled(name: str, size: int | None, data_dir: str | None):
    """A labelled data set by name, the first ``size`` rows of a fixed shuffle."""
    X, y = load_digits(return_X_y=True) if name == "digits" else load_local(name, data_dir)
    if size is not None and size < len(X):
        rows = np.random.RandomState(0).permutation(len(X))[:size]
        X, y = X[rows], y[rows]
    return np.ascontiguousarray(X, dtype=np.float32), y
