"""The map from above, the height from the side, and both in three dimensions."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from finsler_ext.plot.dots import (
    PALE,
    color_scale,
    draw_bar,
    draw_dots,
    draw_legend,
    marker_size,
    new_axes,
    palette,
)
from finsler_ext.plot.inputs import (
    height_words,
    magnification,
    read_colors,
    read_shown,
    write_names,
    write_title,
)


def plot_map(
    embedding,
    *,
    color=None,
    ax=None,
    label: str | None = None,
    height_label: str | None = None,
):
    """Scatter the first two map columns, coloured by the height; or both columns, if there are two.

    The title is the verdict on the height of a fitted estimator. Dots are pale where the data
    leaves open if a point is above or below its neighbours. Up to 60 points of a graph have their
    names beside them. Without a drift, the colour is ``potential_``.

    Parameters
    ----------
    embedding : fitted estimator, array of shape (n, m ≥ 2) or DataFrame
    color : array of shape (n,), optional
        Colour by this instead of the height: text, booleans and few distinct integers are
        categories. Also "height", "potential", "local_scale", or the name of a column of a
        DataFrame.
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
    shown = read_shown(embedding, "plot_map", least_columns=2)
    colors = read_colors(color, embedding, shown, label, height_label)
    ax = new_axes(ax, colors)
    x, y = shown.plane.T
    draw_dots(ax, x, y, colors)
    write_names(ax, x, y, shown)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set(xticks=[], yticks=[])
    if shown.map.shape[1] == 1:
        ax.set_ylabel(height_label or height_words(embedding))
    write_title(ax, embedding)
    return ax


# Up to this many points, a side view has an error bar for each.
FEW_POINTS = 300


def plot_profile(
    embedding, against=0, *, color=None, magnify=None, ax=None, label: str | None = None
):
    """Side view: the height against a map axis, or against a value of every point.

    Up to 300 heights of a fitted estimator have a bar each, a 90 % interval.

    Parameters
    ----------
    embedding : fitted estimator, array of shape (n, m ≥ 2) or DataFrame
    against : int, "local_scale", or array of shape (n,)
        Number of a map column, or values.
    magnify : float, optional
        Against a map column, the height is drawn this many times as large as the map, and the
        axis says so. By default 1 (both axes have one scale), or what a flat embedding needs.
    color, ax, label
        As in `plot_map`.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from finsler_ext.plot import plot_profile
    >>> Y = np.random.default_rng(0).normal(size=(50, 3))
    >>> plot_profile(Y, against=1).get_ylabel()
    'height'
    """
    shown = read_shown(embedding, "plot_profile", least_columns=2)
    colors = read_colors(color, embedding, shown, label)
    across, title, on_map = _across(against, embedding, shown)
    ax = new_axes(ax, colors)
    draw_dots(ax, across, shown.height, colors)
    write_names(ax, across, shown.height, shown)
    _draw_errors(ax, across, shown, getattr(embedding, "height_error_", None))
    ax.set(xlabel=title, ylabel=height_words(embedding))
    write_title(ax, embedding)
    if on_map:
        times = magnification(shown) if magnify is None else magnify
        ax.set_aspect(times, adjustable="datalim")
        ax.apply_aspect()  # now, so that the layout knows the tick labels that will be drawn
        if times != 1:
            ax.set_ylabel(f"{height_words(embedding)}, drawn {times:g} times as large")
    else:
        ax.set_aspect("auto")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _draw_errors(ax, across, shown, error) -> None:
    """90 % intervals of the heights, if they are few."""
    if error is None or len(shown.rows) > FEW_POINTS or len(error) != shown.n_given:
        return
    half = 1.645 * np.nan_to_num(error[shown.rows])
    ax.errorbar(across, shown.height, half, fmt="none", ecolor="0.7", elinewidth=0.7, zorder=1)


def _across(against, embedding, shown):
    """Values of the horizontal axis, their title, and whether they are distances on the map."""
    if isinstance(against, Integral) and not isinstance(against, bool):
        if not 0 <= against < shown.map.shape[1]:
            raise ValueError(
                f"against={against} is not one of the map columns 0 to {shown.map.shape[1] - 1}."
            )
        return shown.map[:, against], f"map, column {against}", True
    values = read_colors(against, embedding, shown)
    numbers = values.values
    if values.names is not None:  # few distinct integers
        try:
            numbers = np.array(values.names, dtype=float)[numbers]
        except ValueError:
            raise ValueError("against must be numbers; give categories as color.") from None
    return numbers, values.title or "value", False


def plot_3d(embedding, *, color=None, magnify=None, ax=None, label: str | None = None):
    """Map and height in three dimensions.

    Parameters
    ----------
    embedding : fitted estimator, array of shape (n, m ≥ 3) or DataFrame
    color, label
        As in `plot_map`.
    magnify : float, optional
        As in `plot_profile`.
    ax : Axes with ``projection="3d"``, optional

    Returns
    -------
    matplotlib Axes3D
    """
    import matplotlib.pyplot as plt

    shown = read_shown(embedding, "plot_3d")
    colors = read_colors(color, embedding, shown, label)
    ax = new_axes(ax, colors, projection="3d")
    if not hasattr(ax, "zaxis"):
        raise ValueError(
            "ax must be three-dimensional: plt.subplots(subplot_kw={'projection': '3d'})."
        )
    places = np.column_stack([shown.map[:, :2], shown.height])
    keywords: dict = {"s": marker_size(len(places)), "linewidths": 0, "rasterized": True}
    if colors.names is None:
        scale = color_scale(colors.values)
        # as colours and not as values, because three dimensions drop dots that have none
        shades = scale.to_rgba(np.ma.masked_invalid(colors.values))
        if colors.pale is not None:
            shades[colors.pale, 3] *= PALE
        ax.scatter(*places.T, c=shades, **keywords)
        draw_bar(ax, scale, colors, shrink=0.6, pad=0.14)
    else:
        colours = np.array(palette(len(colors.names)), dtype=object)
        ax.scatter(*places.T, c=list(colours[colors.values]), **keywords)
        # on the left, because the axis of the height is on the right
        draw_legend(ax, colors, on_the_left=True, marks=False)
    times = magnification(shown) if magnify is None else magnify
    ax.set_box_aspect(np.maximum(np.ptp(places, axis=0) * (1, 1, times), 1e-12))
    # by set_ticklabels([]) a constrained layout of matplotlib before 3.11 would collapse
    ax.xaxis.set_major_formatter(plt.NullFormatter())
    ax.yaxis.set_major_formatter(plt.NullFormatter())
    ax.zaxis.set_major_locator(plt.MaxNLocator(4))
    ax.set_zlabel("height" if times == 1 else f"height, drawn {times:g} times as large")
    write_title(ax, embedding)
    return ax
