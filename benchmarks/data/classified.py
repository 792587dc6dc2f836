"""Data with classes: flowers, digits, images, features of images, cells."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits, load_iris

from benchmarks.data import files
from benchmarks.data.dataset import Dataset, class_numbers, stratified_rows
from benchmarks.data.downloads import OPENML, fetch_images
from benchmarks.data.torchvision_images import TORCHVISION

__all__ = [
    "BUNDLED",
    "FEATURES",
    "IMAGES",
    "load_bundled",
    "load_cells",
    "load_features",
    "load_images",
]

BUNDLED = {"iris": load_iris, "digits": load_digits}
# The local file of each set of images. OpenML gives the same rows, except of EMNIST-Balanced:
# the file holds 9,424 of its 131,600 images.
IMAGES = {
    "mnist": "mnist",
    "fashion_mnist": "fashion_mnist",
    "kmnist": "kmnist_test10k",
    "emnist_balanced": "emnist_balanced_part9424",
}
FEATURES = {name: f"feat_{name}" for name in TORCHVISION}
# Of these only the rows of split 0, the training images, are used: the paper's N = 9469.
TRAINING_ONLY = ("imagenette",)
CELLS = "sc_pbmc68k_reduced"


def _sample(X, labels, size: int | None, source: str) -> Dataset:
    labels = class_numbers(labels)
    if size is not None:
        rows = stratified_rows(labels, size)
        X, labels = X[rows], labels[rows]
    return Dataset("", np.ascontiguousarray(X), labels, source=source)


def load_bundled(name: str, size: int | None) -> Dataset:
    X, y = BUNDLED[name](return_X_y=True)
    return _sample(X, y, size, "scikit-learn")


def load_images(name: str, size: int | None, data_dir: str | None) -> Dataset:
    file = IMAGES[name]
    if files.find(file, data_dir) is None:
        try:
            X, y, source = fetch_images(name)
        except ConnectionError as error:
            raise files.missing(file, f"X and y as arrays; {error}") from error
    else:
        stored = files.read(file, data_dir, ("X", "y"), route=OPENML[name].route)
        X, y, source = stored["X"], stored["y"], f"{file}.npz"
        files.check_features(file, X, y=y)
    sample = _sample(X, y, size, source)
    # Converted last: of large sets only the sample is held as float32.
    return Dataset(name, sample.X.astype(np.float32), sample.labels, source=source)


def load_features(name: str, size: int | None, data_dir: str | None) -> Dataset:
    file = FEATURES[name]
    route = f"made by python -m benchmarks.data.torchvision_features {name} {file}.npz"
    keys = ("X", "y", "split") if name in TRAINING_ONLY else ("X", "y")
    stored = files.read(file, data_dir, keys, optional=("scale",), route=route)
    X, y = stored["X"], stored["y"]
    files.check_features(file, X, y=y)
    if name in TRAINING_ONLY:
        files.check_features(file, X, split=stored["split"])
        training = stored["split"] == 0
        X, y = X[training], y[training]
    sample = _sample(X, y, size, f"{file}.npz")
    scale = np.float32(stored.get("scale", 1.0))
    return Dataset(name, sample.X.astype(np.float32) * scale, sample.labels, source=sample.source)


def load_cells(size: int | None, data_dir: str | None) -> Dataset:
    route = "scanpy.datasets.pbmc68k_reduced() has them: X_pca, and y for bulk_labels"
    stored = files.read(CELLS, data_dir, ("X_pca", "y"), route=route)
    files.check_features(CELLS, stored["X_pca"], y=stored["y"])
    return _sample(stored["X_pca"], stored["y"], size, f"{CELLS}.npz")
