"""Images from OpenML, checked on arrival.

scikit-learn's fetch_openml compares the md5 of the file with OpenML's record. Here the arrays are
checked: their shape, the range of their values, the number of rows of every class and, where the
rows are a split of the original release of which we have computed it, the sha256.
"""

from __future__ import annotations

import hashlib
from http.client import HTTPException
from typing import NamedTuple

import numpy as np
from sklearn.datasets import fetch_openml

__all__ = ["OPENML", "OpenMLImages", "fetch_images"]

N_PIXELS = 28 * 28


class OpenMLImages(NamedTuple):
    """Which rows of which OpenML data set are used, and what must arrive.

    ``sha256`` is that of the bytes of the rows used, the pixels of all rows and then their classes,
    as unsigned bytes; None where the rows were not at hand to compute it.
    """

    query: dict[str, str | int]
    n_rows: int
    n_classes: int
    rows: slice
    sha256: str | None

    @property
    def route(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in self.query.items())
        return f"sklearn.datasets.fetch_openml({arguments})"


# OpenML stores the training rows before the test rows, in the order of the original release.
OPENML = {
    "mnist": OpenMLImages(
        {"data_id": 554},
        70_000,
        10,
        slice(0, 60_000),
        "edc0d1098aa497be14ace79ddd5171e5a3dcf9c4d196c015389203eb3ba1f59b",
    ),
    "fashion_mnist": OpenMLImages(
        {"data_id": 40996},
        70_000,
        10,
        slice(0, 60_000),
        "16d82e2b505296aa2b78bd5ea0992634f30419a4c97def7c907d154a35ac6157",
    ),
    "kmnist": OpenMLImages(
        {"name": "Kuzushiji-MNIST", "version": 1},
        70_000,
        10,
        slice(60_000, 70_000),
        "b261a157ded5e2973938c34468741461b8ce1e598bcbab78df91503860f977f1",
    ),
    "kmnist_train": OpenMLImages(
        {"name": "Kuzushiji-MNIST", "version": 1}, 70_000, 10, slice(0, 60_000), None
    ),
    "emnist_balanced": OpenMLImages({"data_id": 41039}, 131_600, 47, slice(0, 131_600), None),
}


def fetch_images(name: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Pixels, classes and what was checked. ConnectionError if OpenML cannot be reached."""
    images = OPENML[name]
    try:
        fetched = fetch_openml(**images.query, as_frame=False)
    except (OSError, HTTPException) as error:
        raise ConnectionError(f"{images.route} failed: {error}") from error
    X, y = np.asarray(fetched.data), np.asarray(fetched.target)
    expected = (images.n_rows, N_PIXELS)
    if X.shape != expected or y.shape != expected[:1]:
        raise ValueError(
            f"{images.route} gave {X.shape} pixels and {y.shape} classes, expected {expected}."
        )
    if not ((X >= 0) & (X <= 255) & (np.floor(X) == X)).all():
        raise ValueError(f"{images.route} gave pixels that are not integers from 0 to 255.")
    X, y = X[images.rows].astype(np.uint8), y[images.rows].astype(np.int64)
    found = np.unique(y)
    if not np.array_equal(found, np.arange(images.n_classes)):
        raise ValueError(
            f"{images.route} gave the classes {found.tolist()}, expected 0 to "
            f"{images.n_classes - 1}."
        )
    checked = "md5 of the file, shape, pixels and classes"
    if images.sha256 is not None:
        digest = hashlib.sha256(X.tobytes() + y.astype(np.uint8).tobytes()).hexdigest()
        if digest != images.sha256:
            raise ValueError(
                f"Rows {images.rows.start} to {images.rows.stop} of {images.route} have the sha256 "
                f"{digest}, expected {images.sha256}: not the rows of the original release."
            )
        checked += ", sha256 of the rows"
    return X, y, f"{images.route}; checked: {checked}"
