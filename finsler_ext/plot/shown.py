"""What is shown: positions and colours, read from whatever the user has."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from finsler_ext.plot.skew import height_words
from finsler_ext.spaces.randers import height, map_columns

__all__ = ["Colors", "Shown", "coded", "magnification", "read_colors", "read_shown"]

# Integers with more values than this are amounts, not names of categories.
MAX_INTEGER_CATEGORIES = 30
# The columns that `finsler-ext embed` writes.
COLUMNS = ("x", "y", "height")


# A side view flatter than this cannot be read; its heights are then magnified.
FLATTEST = 0.3
MAGNIFICATIONS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100)


class Shown(NamedTuple):
    """Positions that can be drawn; ``rows`` are their places among the rows given."""

    map: np.ndarray
    height: np.ndarray
    rows: np.ndarray
    n_given: int


class Colors(NamedTuple):
    """A colour per point: values with a title, or codes of named categories."""

    values: np.ndarray
    title: str
    names: list[str] | None = None


def read_shown(embedding, caller: str, least_columns: int = 3) -> Shown:
    """Map and height of an estimator, array or DataFrame; rows with nan are left out."""
    fitted = getattr(embedding, "embedding_", None)
    if fitted is None and hasattr(embedding, "fit"):
        raise ValueError(
            f"{caller}: this {type(embedding).__name__} is not fitted. Call fit first."
        )
    positions = embedding if fitted is None else fitted
    columns = getattr(positions, "columns", ())
    if set(COLUMNS) <= set(columns):
        positions = positions[list(COLUMNS)]
    try:
        positions = np.asarray(positions, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{caller} needs numbers, map columns first and the height last: {error}"
        ) from None
    if positions.ndim != 2 or positions.shape[1] < least_columns:
        flat = positions.ndim == 2 and positions.shape[1] == 2
        raise ValueError(
            f"{caller} needs at least {least_columns} columns (the map, and last the height), got "
            f"shape {positions.shape}." + (" plot_profile draws two columns." if flat else "")
        )
    rows = np.flatnonzero(np.isfinite(positions).all(axis=1))
    if rows.size == 0:
        raise ValueError(f"{caller}: there is no row without nan to draw.")
    return Shown(map_columns(positions)[rows], height(positions)[rows], rows, len(positions))


def magnification(shown: Shown) -> int:
    """By how much heights have to be magnified beside the map, as in a geographer's profile."""
    width, rise = np.ptp(shown.map[:, :2], axis=0).max(), np.ptp(shown.height)
    if rise == 0:
        return 1
    return next((k for k in MAGNIFICATIONS if k * rise >= FLATTEST * width), MAGNIFICATIONS[-1])


def read_colors(color, embedding, shown: Shown, label: str | None = None) -> Colors:
    """Colours by height (None), by "local_scale", by a column of a DataFrame, or as given."""
    if color is None or (isinstance(color, str) and color == "height"):
        return Colors(shown.height, label or height_words(embedding))
    title = label or ""
    if isinstance(color, str):
        title = label or color.replace("_", " ")
        color = _by_name(color, embedding)
    values = np.asarray(color)
    if values.shape != (shown.n_given,):
        raise ValueError(
            f"color must have one entry per row, shape ({shown.n_given},); got shape "
            f"{values.shape}."
        )
    return coded(values[shown.rows], title or str(getattr(color, "name", "") or ""))


def coded(values: np.ndarray, title: str) -> Colors:
    """Text, booleans and few distinct integers as categories; other numbers as they are."""
    whole = values.dtype.kind in "iu"
    if (whole and len(np.unique(values)) > MAX_INTEGER_CATEGORIES) or values.dtype.kind == "f":
        return Colors(values.astype(np.float64), title)
    # whole numbers in the order of numbers, not of their digits
    names, codes = np.unique(values if whole else values.astype(str), return_inverse=True)
    return Colors(codes, title, [str(name) for name in names])


def _by_name(name: str, embedding) -> Any:
    if name == "local_scale":
        scale = getattr(embedding, "local_scale_", None)
        if scale is not None:
            return np.asarray(scale)
        raise ValueError("color='local_scale' needs a fitted estimator that has local scales.")
    columns = getattr(embedding, "columns", ())
    if name in columns:
        return embedding[name]
    raise ValueError(
        f"color={name!r} is neither 'height' nor 'local_scale' nor a column; give an array with "
        "one entry per row."
    )
