"""What a benchmark gets: features or directed distances, and what is known about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from sklearn.model_selection import train_test_split

__all__ = ["Dataset", "class_numbers", "stratified_rows"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Data by name.

    ``X`` holds features, or directed distances if ``metric`` is "precomputed" (rows are sources).
    ``labels`` are integer classes. ``truth`` is what is known about each row and not used in a
    fit. ``source`` says where the data came from and what was checked.
    """

    name: str
    X: np.ndarray
    labels: np.ndarray | None = None
    truth: Mapping[str, np.ndarray] = field(default_factory=dict)
    metric: str = "euclidean"
    source: str = "generated"


def class_numbers(y) -> np.ndarray:
    """Any labels as integers 0…c−1, in their sorted order."""
    return np.unique(y, return_inverse=True)[1].reshape(-1).astype(np.int64)


def stratified_rows(labels: np.ndarray, size: int) -> np.ndarray:
    """``size`` rows with the classes in proportion, always the same ones, in a fixed shuffle."""
    n, n_classes = len(labels), len(np.unique(labels))
    if size == n:
        return np.arange(n)
    if not n_classes <= size <= n - n_classes:
        raise ValueError(
            f"A stratified sample of {n} rows in {n_classes} classes must have between {n_classes} "
            f"and {n - n_classes} rows, or all of them; got SIZE = {size}."
        )
    rows, _ = train_test_split(np.arange(n), train_size=size, stratify=labels, random_state=0)
    return rows
