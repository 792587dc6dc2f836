"""The map seen from above."""

from __future__ import annotations

from finsler_ext.plot.dots import draw_dots, new_axes
from finsler_ext.plot.shown import read_colors, read_shown
from finsler_ext.plot.skew import height_words, write_title

__all__ = ["plot_map"]


def plot_map(
    embedding,
    *,
    color=None,
    ax=None,
    label: str | None = None,
    height_label: str | None = None,
):
    """Scatter the first two map columns, coloured by the height.

    The title says how far the height of a fitted estimator can be trusted.

    Parameters
    ----------
    embedding : fitted estimator, array of shape (n, m ≥ 3) or DataFrame
    color : array of shape (n,), optional
        Colour by this instead of the height: text, booleans and few distinct integers are
        categories. Also "height", "local_scale", or the name of a column of a DataFrame.
    ax : matplotlib Axes, optional
    label : str, optional
        Text of the colour bar, or title of the legend.
    height_label : str, optional
        What the height means, in the words of the data; by default what a fitted estimator
        knows of it ("height: sparse above dense"), or "height" for an array.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from finsler_ext.plot import plot_map
    >>> ax = plot_map(np.random.default_rng(0).normal(size=(50, 3)))
    """
    shown = read_shown(embedding, "plot_map")
    height_label = height_label or height_words(embedding)
    by_height = color is None or (isinstance(color, str) and color == "height")
    colors = read_colors(color, embedding, shown, label or (height_label if by_height else None))
    ax = new_axes(ax, colors)
    x, y = shown.map[:, :2].T
    draw_dots(ax, x, y, colors)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    write_title(ax, embedding)
    return ax
