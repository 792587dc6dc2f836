"""What a picture shows: positions, colours and words, from whatever the user has."""

from __future__ import annotations

import textwrap
from typing import Any, NamedTuple

import numpy as np

from finsler_ext.asymmetry import DENSITY, DISTANCES, SCALE, Asymmetry
from finsler_ext.geometry.space import height, map_columns

# Of an array nothing is known: its height may show anything.
HEIGHT = "height"
WORDS = {
    DENSITY: "height: sparse above dense",
    DISTANCES: "height: costly to reach is high",
    SCALE: "height: large local scale is high",
}
NO_DRIFT = "last column (no drift)"
# Letters in a line of a title.
LINE = 62


def height_words(model) -> str:
    """What the height of a fitted estimator shows; "height" for anything else."""
    if getattr(model, "omega_norm_", None) == 0:
        return NO_DRIFT
    return WORDS.get(getattr(getattr(model, "asymmetry_", None), "kind", ""), HEIGHT)


def potential_words(model) -> str:
    """What the potential of a fitted estimator shows."""
    return WORDS.get(model.asymmetry_.kind, HEIGHT).replace("height", "potential")


def fidelity_words(model) -> str:
    """How far to trust the height of a fitted estimator; empty for anything else."""
    fidelity = getattr(model, "skew_fidelity_", None)
    if fidelity is None:
        return ""
    if getattr(model, "omega_norm_", 0) == 0:
        return "there is no drift: the last column is one more map column"
    evidence = getattr(model, "evidence_", None)
    if evidence is not None:
        words = evidence.title
    elif np.isfinite(fidelity.sign):
        words = f"the height orders {fidelity.sign:.0%} of the pairs that it was made from"
    else:
        words = f"the height shows nothing: {fidelity.reason or 'no pair differs'}"
    islands = getattr(model, "islands_", None)
    if islands is not None and islands.n_parts > 1 and not islands.settled:
        words += "; heights do not compare across gaps of the map"
    return words


def write_title(ax, model) -> None:
    """How far to trust the height, above a picture."""
    ax.set_title(textwrap.fill(fidelity_words(model), LINE), fontsize="small")


# Names of more points than this would cover the picture.
MOST_NAMES = 60


def write_names(ax, x, y, shown: Shown) -> None:
    """Names beside the points, if they have some and are few."""
    if shown.names is None or len(shown.rows) > MOST_NAMES:
        return
    beside = {"xytext": (3, 3), "textcoords": "offset points", "fontsize": "x-small"}
    for name, *place in zip(shown.names[shown.rows], x, y, strict=True):
        ax.annotate(str(name), place, **beside)


def asymmetry_in(model) -> Asymmetry:
    """What a fitted estimator compares its height with."""
    found = getattr(model, "asymmetry_", None)
    if found is None:
        raise ValueError(
            "This plot needs a fitted estimator, or an embedding with either "
            "distances=, or graph= and local_scale=."
        )
    return found


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
    names: np.ndarray | None
    """Of all rows given, where a model knows them."""

    @property
    def plane(self) -> np.ndarray:
        """Two columns to draw: of the map or, where it has one only, that and the height."""
        if self.map.shape[1] > 1:
            return self.map[:, :2]
        return np.column_stack([self.map[:, 0], self.height])


class Colors(NamedTuple):
    """A colour per point: values with a title, or codes of named categories."""

    values: np.ndarray
    title: str
    names: list[str] | None = None
    pale: np.ndarray | None = None
    """Which points are drawn pale, because their height is not sure."""


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
            f"shape {positions.shape}." + (" plot_map draws two columns." if flat else "")
        )
    rows = np.flatnonzero(np.isfinite(positions).all(axis=1))
    if rows.size == 0:
        raise ValueError(f"{caller}: there is no row without nan to draw.")
    names = getattr(embedding, "node_names_", None)
    return Shown(map_columns(positions)[rows], height(positions)[rows], rows, len(positions), names)


def magnification(shown: Shown) -> int:
    """By how much heights have to be magnified beside the map, as in a geographer's profile."""
    width, rise = np.ptp(shown.map[:, :2], axis=0).max(), np.ptp(shown.height)
    if rise == 0:
        return 1
    return next((k for k in MAGNIFICATIONS if k * rise >= FLATTEST * width), MAGNIFICATIONS[-1])


def read_colors(color, embedding, shown: Shown, label=None, height_label=None) -> Colors:
    """Colours by height (None), by an attribute or a column that is named, or as given.

    ``label`` is a title whatever the colour is, ``height_label`` one of the height.
    """
    if color is None or (isinstance(color, str) and color == "height"):
        return _by_height(embedding, shown, label or height_label or height_words(embedding))
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


def _by_height(embedding, shown: Shown, label: str) -> Colors:
    potential = getattr(embedding, "potential_", None)
    if getattr(embedding, "omega_norm_", None) == 0 and np.any(potential):
        # without a drift there is no height
        return Colors(np.asarray(potential)[shown.rows], potential_words(embedding))
    unsure = getattr(embedding, "height_unsure_", None)
    if unsure is None or len(unsure) != shown.n_given or not unsure[shown.rows].any():
        return Colors(shown.height, label)
    return Colors(shown.height, f"{label} (pale: not sure)", pale=unsure[shown.rows])


def coded(values: np.ndarray, title: str) -> Colors:
    """Text, booleans and few distinct integers as categories; other numbers as they are."""
    whole = values.dtype.kind in "iu"
    if (whole and len(np.unique(values)) > MAX_INTEGER_CATEGORIES) or values.dtype.kind == "f":
        return Colors(values.astype(np.float64), title)
    # whole numbers in the order of numbers, not of their digits
    names, codes = np.unique(values if whole else values.astype(str), return_inverse=True)
    return Colors(codes, title, [str(name) for name in names])


def _by_name(name: str, embedding) -> Any:
    if name == "potential" and hasattr(embedding, "potential_"):
        return np.asarray(embedding.potential_)
    if name == "local_scale":
        scale = getattr(embedding, "local_scale_", None)
        if scale is not None:
            return np.asarray(scale)
        raise ValueError("color='local_scale' needs a fitted estimator that has local scales.")
    columns = getattr(embedding, "columns", ())
    if name in columns:
        return embedding[name]
    raise ValueError(
        f"color={name!r} is unknown: give 'height', 'potential', 'local_scale', the name of a "
        "column, or an array with one entry per row."
    )
