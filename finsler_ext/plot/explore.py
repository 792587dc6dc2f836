"""`explore`: one HTML page with the embedding and plotly in it."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import numpy as np

from finsler_ext._files import encodable, replaced
from finsler_ext.plot.dots import limits, palette
from finsler_ext.plot.inputs import (
    Colors,
    Shown,
    coded,
    fidelity_words,
    height_words,
    magnification,
    potential_words,
    read_shown,
)

# Text of every point is in the page: beyond this many points a browser gets slow.
MOST_POINTS = 500_000


def explore(
    embedding,
    path="finsler_explore.html",
    *,
    labels=None,
    hover=None,
    title: str = "Finsler embedding",
    height_label: str | None = None,
    lines=None,
    lines_label: str = "",
) -> Path:
    """Write a stand-alone page that shows map and side view; it needs no network.

    In the page you can rotate the map into its side view or look at it in three dimensions,
    colour it by height, labels or local scale, read what is known of a point under the mouse,
    list and download the rows that you draw around, and save a PNG or SVG picture. plotly draws
    the page and is in the file (5 MB).

    Parameters
    ----------
    embedding : fitted estimator, array of shape (n, m ≥ 2) or DataFrame
        At most 500,000 points.
    path : str or Path
        The HTML file to write.
    labels : array of shape (n,), or dict of such arrays, optional
        More to colour by: text, booleans and few distinct integers are categories. The page opens
        coloured by the first of them, or by the height if there are none.
    hover : array of shape (n,), dict of such arrays or DataFrame, optional
        Text for the point under the mouse, and columns of the list of selected rows. By default
        the names of the points, where a model knows them.
    title : str
    height_label : str, optional
        What the height means, in the words of the data; as in `plot_map`.
    lines : array of shape (k, 2), optional
        Pairs of rows to join by a red line; the page then opens with the side view.
    lines_label : str
        What the lines mean: a sentence of the page.

    Returns
    -------
    Path of the page

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from finsler_ext.plot import explore
    >>> Y = np.random.default_rng(0).normal(size=(50, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = explore(Y, folder + "/page.html", labels=np.arange(50) % 2)
    ...     "Plotly.react" in page.read_text()
    True
    """
    shown = read_shown(embedding, "explore", least_columns=2)
    if hover is None:
        hover = getattr(embedding, "node_names_", None)
    if len(shown.rows) > MOST_POINTS:
        raise ValueError(
            f"explore: {len(shown.rows)} points are too many for a page (at most {MOST_POINTS}). "
            "Take a sample of the rows, or use plot_map."
        )
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ImportError("explore needs plotly: pip install 'finsler_ext[plot]'") from None
    colors, start = _colorings(embedding, labels, shown, height_label)
    sentences = (lines_label, colors[0].title, fidelity_words(embedding))
    about = encodable(" ".join(f"{text[:1].upper()}{text[1:]}." for text in sentences if text))
    data = {
        "about": about,
        "magnify": magnification(shown),
        # the height is the first; a label that was given comes before it
        "start": start,
        "positions": _packed(_unit_cube(shown), np.float32),
        "height": _packed(shown.height),
        "rows": _packed(shown.rows, np.int32),
        "lines": _packed(_line_ends(lines, shown), np.int32),
        "colors": [_coloring(color) for color in colors],
        "hover": [
            {"name": name, "values": [str(v) for v in values]}
            for name, values in _columns(hover, "name", shown)
        ],
    }
    parts = {
        "title": html.escape(encodable(title)),
        "about": html.escape(about),
        # "<" would let a text of the user's end the script
        "data": encodable(json.dumps(data, ensure_ascii=False)).replace("<", "\\u003c"),
        "plotly": get_plotlyjs(),
        "script": _file("explore.js"),
    }
    # in one pass, so that no part is searched for the places of the others
    page = re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _file("explore.html"))
    path = Path(path)
    with replaced(path) as file:
        file.write_text(page, encoding="utf-8")
    return path


def _colorings(embedding, labels, shown: Shown, height_label) -> tuple[list[Colors], int]:
    """Everything to colour by, the height first, and what the page opens with."""
    colors = [Colors(shown.height, height_label or height_words(embedding))]
    colors += [coded(values, name) for name, values in _columns(labels, "label", shown)]
    start = 0 if labels is None else 1
    if getattr(getattr(embedding, "asymmetry_", None), "is_directed", False):
        if labels is None and embedding.omega_norm_ == 0:
            start = len(colors)  # there is no height
        colors.append(Colors(embedding.potential_[shown.rows], potential_words(embedding)))
    scale = getattr(embedding, "local_scale_", None)
    if scale is not None and np.shape(scale) == (shown.n_given,):
        colors.append(Colors(np.log(np.asarray(scale)[shown.rows]), "local scale (log)"))
    unsure = getattr(embedding, "height_unsure_", None)
    if unsure is not None and len(unsure) == shown.n_given and unsure[shown.rows].any():
        sure = np.where(unsure[shown.rows], "not sure", "sure")
        colors.append(coded(sure, "is the height sure?"))
    return colors, start


def _file(name: str) -> str:
    return (files("finsler_ext.plot") / name).read_text(encoding="utf-8")


def _unit_cube(shown: Shown) -> np.ndarray:
    """Map and height about 0, the longest of the three half axes being 1."""
    places = np.column_stack([shown.plane, shown.height])
    places = places - (places.max(axis=0) + places.min(axis=0)) / 2
    return places / max(np.abs(places).max(), np.finfo(np.float32).tiny)


def _line_ends(lines, shown: Shown) -> np.ndarray:
    """Places among the rows shown of both ends of each line, without lines to hidden rows."""
    pairs = np.asarray([] if lines is None else lines, dtype=np.int64).reshape(-1, 2)
    if pairs.size and (pairs.min() < 0 or pairs.max() >= shown.n_given):
        raise ValueError(f"explore: lines must be pairs of rows from 0 to {shown.n_given - 1}.")
    place = np.full(shown.n_given, -1)
    place[shown.rows] = np.arange(len(shown.rows))
    ends = place[pairs]
    return ends[(ends >= 0).all(axis=1)].ravel()


def _columns(given, name: str, shown: Shown) -> list[tuple[str, np.ndarray]]:
    """Named arrays of a dict, DataFrame or single array; checked, and without hidden rows."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        columns = [(str(key), np.asarray(values)) for key, values in given.items()]
    elif hasattr(given, "columns"):
        columns = [(str(key), np.asarray(given[key])) for key in given.columns]
    else:
        columns = [(str(getattr(given, "name", None) or name), np.asarray(given))]
    for key, values in columns:
        if values.shape != (shown.n_given,):
            raise ValueError(
                f"explore: {key!r} must have one entry per row, shape ({shown.n_given},); got "
                f"shape {values.shape}."
            )
    return [(key, values[shown.rows]) for key, values in columns]


def _coloring(color: Colors) -> dict:
    if color.names is None:
        low, high = map(float, limits(color.values))
        return {"name": color.title, "values": _packed(color.values), "low": low, "high": high}
    return {
        "name": color.title,
        "names": color.names,
        "values": _packed(color.values, np.int32),
        "colors": palette(len(color.names)),
    }


def _packed(values, dtype=np.float64) -> str:
    little_endian = np.dtype(dtype).newbyteorder("<")
    return base64.b64encode(np.asarray(values, dtype=little_endian).tobytes()).decode("ascii")
