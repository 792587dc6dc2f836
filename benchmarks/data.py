"""Data of the benchmarks: generated, bundled with scikit-learn, or local npz files.

Local files are looked for in ``--data-dir`` or the environment variable FINSLER_DATA; an npz
file holds X and y. Nothing is replaced silently: what is missing is named.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

__all__ = ["blobs", "disk", "labelled", "load_local"]


def disk(n: int) -> tuple[np.ndarray, np.ndarray]:
    """n points on 20 rays with radii 20/n, …, 1; returns points and radii."""
    angle = 2 * np.pi * np.arange(20) / 20
    radius = np.arange(1, n // 20 + 1) / (n / 20)
    r, a = (grid.ravel() for grid in np.meshgrid(radius, angle, indexing="ij"))
    return np.column_stack([r * np.cos(a), r * np.sin(a)]), r


def blobs(n: int, n_features: int = 50, seed: int = 0) -> np.ndarray:
    """30 Gaussian blobs whose points have widths between 0.3 and 1.5."""
    rng = np.random.default_rng(seed)
    centre = 4 * rng.normal(size=(30, n_features))
    width = rng.uniform(0.3, 1.5, size=(n, 1))
    points = centre[rng.integers(30, size=n)] + width * rng.normal(size=(n, n_features))
    return points.astype(np.float32)


def load_local(name: str, data_dir: str | None) -> tuple[np.ndarray, np.ndarray]:
    """X and y of ``name``.npz in the data folder."""
    folder = data_dir or os.environ.get("FINSLER_DATA")
    path = Path(folder or ".") / f"{name}.npz"
    if folder is None or not path.is_file():
        raise FileNotFoundError(
            f"{name}.npz not found: give the folder that holds it with --data-dir or FINSLER_DATA "
            "(X and y as arrays; MNIST and Fashion-MNIST can be had from scikit-learn's "
            "fetch_openml)."
        )
    with np.load(path) as stored:
        return stored["X"].astype(np.float32), stored["y"]


def labelled(name: str, size: int | None, data_dir: str | None):
    """A labelled data set by name, the first ``size`` rows of a fixed shuffle."""
    X, y = load_digits(return_X_y=True) if name == "digits" else load_local(name, data_dir)
    if size is not None and size < len(X):
        rows = np.random.RandomState(0).permutation(len(X))[:size]
        X, y = X[rows], y[rows]
    return np.ascontiguousarray(X, dtype=np.float32), y
