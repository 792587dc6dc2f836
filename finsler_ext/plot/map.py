"""The map seen from above."""

from __future__ import annotations

import numpy as np

from finsler_ext.plot.dots import draw_dots, new_axes
from finsler_ext.plot.shown import read_colors, read_shown
from finsler_ext.plot.skew import fidelity_words, height_words

__all__ = ["plot_map"]

# Cells along the longer side of the grid on which the relief is drawn.
GRID = 200
# Width of the smoothing, as a share of that side; narrower relief is noise between neighbours.
SMOOTHING = 0.015
# Relief is drawn up to this many such widths from a point.
REACH = 1.5
LEVELS = 8


def plot_map(
    embedding,
    *,
    color=None,
    relief: bool = False,
    ax=None,
    label: str | None = None,
    height_label: str | None = None,
):
    """Scatter the first two map columns, coloured by the height.

    Parameters
    ----------
    embedding : fitted estimator, array of shape (n, m ≥ 3) or DataFrame
    color : array of shape (n,), optional
        Colour by this instead of the height: text, booleans and few distinct integers are
        categories. Also "height", "local_scale", or the name of a column of a DataFrame.
    relief : bool, default=False
        Draw the height as relief below the dots: contours of the smoothed height, dark is low.
    ax : matplotlib Axes, optional
    label : str, optional
        Text of the colour bar, or title of the legend.
    height_label : str, optional
        What the height means, in the words of the data; by default "height: sparse above
        dense", or what an estimator of directed data or of a given scale says.

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
    if relief:
        _draw_relief(ax, x, y, shown.height, height_label)
    draw_dots(ax, x, y, colors)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(fidelity_words(embedding), fontsize="small")
    return ax


def _draw_relief(ax, x, y, level, label: str):
    """Contours of the smoothed height, in greys with a colour bar below."""
    from scipy.ndimage import distance_transform_edt, gaussian_filter

    if np.ptp(x) == 0 or np.ptp(y) == 0 or np.ptp(level) == 0:
        return
    # a margin of three widths, so that contours close outside the points
    margin = 3 * SMOOTHING * max(np.ptp(x), np.ptp(y))
    box = [(v.min() - margin, v.max() + margin) for v in (x, y)]
    cell = max(high - low for low, high in box) / GRID
    bins = [max(2, int(np.ceil((high - low) / cell))) for low, high in box]
    count, *edges = np.histogram2d(x, y, bins=bins, range=box)
    total, *_ = np.histogram2d(x, y, bins=bins, range=box, weights=level)
    crowd, mass = (gaussian_filter(grid, SMOOTHING * GRID) for grid in (count, total))
    surface = np.full(crowd.shape, np.nan)
    there = distance_transform_edt(count == 0) <= REACH * SMOOTHING * GRID
    surface[there] = mass[there] / crowd[there]
    centres = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
    low, high = np.nanquantile(surface, [0.02, 0.98])
    if not high > low:
        return
    levels = np.linspace(low, high, LEVELS)
    filled = ax.contourf(
        *centres, surface.T, levels=levels, cmap="gray", alpha=0.35, extend="both", zorder=0
    )
    ax.contour(
        *centres, surface.T, levels=levels, colors="0.35", linewidths=0.6, linestyles="-", zorder=3
    )
    bar = ax.figure.colorbar(
        filled, ax=ax, location="bottom", label=label, shrink=0.6, aspect=40, pad=0.02
    )
    bar.set_ticks(levels[[0, LEVELS // 2, -1]])
    bar.ax.xaxis.set_major_formatter("{x:.1f}")
