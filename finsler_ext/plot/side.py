"""The height seen from the side, and the whole in three dimensions."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from finsler_ext.plot.dots import (
    color_scale,
    draw_bar,
    draw_dots,
    draw_legend,
    marker_size,
    new_axes,
    palette,
)
from finsler_ext.plot.shown import magnification, read_colors, read_shown
from finsler_ext.plot.skew import height_words, write_title

__all__ = ["plot_3d", "plot_profile"]


def plot_profile(
    embedding, against=0, *, color=None, magnify=None, ax=None, label: str | None = None
):
    """Side view: the height against a map axis, or against a value of every point.

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
    ax.set_xlabel(title)
    ax.set_ylabel(height_words(embedding))
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


def _across(against, embedding, shown):
    """Values of the horizontal axis, their title, and whether they are distances on the map."""
    if isinstance(against, Integral) and not isinstance(against, bool):
        if not 0 <= against < shown.map.shape[1]:
            raise ValueError(
                f"against={against} is not one of the map columns 0 to {shown.map.shape[1] - 1}."
            )
        return shown.map[:, against], f"map, column {against}", True
    values = read_colors(against, embedding, shown)
    if values.names is not None and not _numbers(values.names):
        raise ValueError("against must be numbers; give categories as color.")
    numbers = values.values
    if values.names is not None:
        numbers = np.array(values.names, dtype=float)[values.values]
    return numbers, values.title or "value", False


def _numbers(names) -> bool:
    try:
        np.array(names, dtype=float)
    except ValueError:
        return False
    return True


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
        ax.scatter(*places.T, c=scale.to_rgba(np.ma.masked_invalid(colors.values)), **keywords)
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
