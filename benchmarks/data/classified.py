"""Data with classes: flowers, digits, images, features of images, cells."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits, load_iris

from benchmarks.data import files, official
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
# the file holds 9,424 of its 131,600 images, and of OpenML's as many are taken. The publishers'
# own files are read as well, see `official`. The paper has the training images: kmnist_train,
# emnist, emnist_balanced_train.
IMAGES = {
    "mnist": "mnist",
    "fashion_mnist": "fashion_mnist",
    "kmnist": "kmnist_test10k",
    "kmnist_train": "kmnist_train",
    "emnist": "emnist_mnist_train",
    "emnist_balanced": "emnist_balanced_part9424",
    "emnist_balanced_train": "emnist_balanced_train",
    "cifar10_pixels": "cifar10_pixels",
    "cifar100_pixels": "cifar100_pixels",
}
PART_ROWS = {"emnist_balanced": 9424}
FEATURES = {name: f"feat_{name}" for name in TORCHVISION}
# Caltech101 without the pictures that show none of the 101 objects, as the paper has it.
FEATURES["caltech101_objects"] = FEATURES["caltech101"]
FEATURES["flowers102_train"] = FEATURES["flowers102"]
NO_OBJECT = "BACKGROUND_Google"
# Of these only the rows of split 0, the training images, are used, as in the paper. Imagenette's
# file must say which they are; a file of another set without splits holds them alone.
TRAINING_ONLY = (
    "imagenette",
    "cifar10",
    "cifar100",
    "dtd",
    "oxford_pets",
    "gtsrb",
    "flowers102_train",
    "imagenet",
)
SPLIT_NEEDED = ("imagenette", "flowers102_train")
FLOWERS_TRAIN = 1020
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


def load_images(
    name: str, size: int | None, data_dir: str | None, download: bool = True
) -> Dataset:
    X, y, source = _images(name, data_dir, download)
    if size is None and len(X) > PART_ROWS.get(name, len(X)):
        size = PART_ROWS[name]
    sample = _sample(X, y, size, source)
    # Converted last: of large sets only the sample is held as float32.
    return Dataset(name, sample.X.astype(np.float32), sample.labels, source=source)


def _images(name: str, data_dir: str | None, download: bool) -> tuple[np.ndarray, np.ndarray, str]:
    """Pixels and classes from an npz file, the publisher's files or OpenML, in this order."""
    file = IMAGES[name]
    if files.find(file, data_dir) is not None:
        stored = files.read(file, data_dir, ("X", "y"), route="")
        files.check_features(file, stored["X"], y=stored["y"])
        return stored["X"], stored["y"], f"{file}.npz"
    published = official.read_images(name, data_dir)
    if published is not None:
        return published
    route = f"X and y as arrays{official.description(name)}"
    if name not in OPENML or not download:
        raise files.missing(file, route)
    try:
        return fetch_images(name)
    except ConnectionError as error:
        raise files.missing(file, f"{route}; {error}") from error


def load_features(name: str, size: int | None, data_dir: str | None) -> Dataset:
    file = FEATURES[name]
    made_of = file.removeprefix("feat_")
    route = f"made by python -m benchmarks.data.torchvision_features {made_of} {file}.npz"
    keys = ("X", "y", "split") if name in SPLIT_NEEDED else ("X", "y")
    optional = ("scale", "split", "names")
    stored = files.read(file, data_dir, keys, optional=optional, route=route)
    X, y = stored["X"], stored["y"]
    files.check_features(file, X, y=y)
    kept = _rows_of_the_paper(name, file, stored)
    if kept is not None:
        X, y = X[kept], y[kept]
    sample = _sample(X, y, size, f"{file}.npz")
    scale = np.float32(stored.get("scale", 1.0))
    return Dataset(name, sample.X.astype(np.float32) * scale, sample.labels, source=sample.source)


def _rows_of_the_paper(name: str, file: str, stored: dict[str, np.ndarray]) -> np.ndarray | None:
    """Which rows are used; None for all of them."""
    if name == "caltech101_objects" and "names" in stored:
        return stored["names"][stored["y"]] != NO_OBJECT
    if name not in TRAINING_ONLY or "split" not in stored:
        return None
    files.check_rows(file, len(stored["X"]), split=stored["split"])
    kept = stored["split"] == 0
    if name == "flowers102_train" and kept.sum() != FLOWERS_TRAIN:
        raise ValueError(
            f"{file}.npz: {kept.sum()} rows have split 0, expected the {FLOWERS_TRAIN} training "
            "images of Flowers102; its splits are other ones. The name flowers102 takes all rows."
        )
    return kept


def load_cells(size: int | None, data_dir: str | None) -> Dataset:
    route = "scanpy.datasets.pbmc68k_reduced() has them: X_pca, and y for bulk_labels"
    stored = files.read(CELLS, data_dir, ("X_pca", "y"), route=route)
    files.check_features(CELLS, stored["X_pca"], y=stored["y"])
    return _sample(stored["X_pca"], stored["y"], size, f"{CELLS}.npz")
