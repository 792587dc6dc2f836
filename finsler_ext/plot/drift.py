"""The drift field over a map, as arrows or streamlines."""

from __future__ import annotations

import numpy as np

from finsler_ext.drift_field import DriftField, fit_drift_field
from finsler_ext.plot.dots import draw_dots, new_axes
from finsler_ext.plot.shown import Colors, read_colors, read_shown
from finsler_ext.plot.skew import asymmetry_of

__all__ = ["plot_drift"]

# Arrows along the longer side of the map, and cells of the grid of the streamlines.
ARROWS, CELLS = 18, 60
# Arrows are drawn up to this share of the longer side away from a point.
REACH = 0.07
STYLES = ("arrows", "streamlines")


def plot_drift(
    embedding,
    field: DriftField | None = None,
    *,
    distances=None,
    graph=None,
    local_scale=None,
    style: str = "arrows",
    color=None,
    ax=None,
):
    """Draw where the way is cheaper over the first two map columns.

    Arrows point against the drift: along them a step costs less than back. The title says what
    the field explains of the asymmetry of pairs held out, beside one drift for all places.

    Parameters
    ----------
    embedding : fitted estimator, array of shape (n, m ≥ 2) or DataFrame
    field : DriftField, optional
        By default fitted to the data below, or to that of the fitted estimator.
    distances, graph, local_scale
        As in `finsler_ext.drift_field.fit_drift_field`.
    style : {"arrows", "streamlines"}, default="arrows"
    color : array of shape (n,), optional
        Colour of the points, as in `plot_map`; grey by default.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    if style not in STYLES:
        raise ValueError(f"style must be one of {STYLES}, got {style!r}.")
    positions = np.asarray(getattr(embedding, "embedding_", embedding), dtype=np.float64)
    if field is None:
        given = {"distances": distances, "graph": graph, "local_scale": local_scale}
        if all(value is None for value in given.values()):
            given = {"asymmetry": asymmetry_of(embedding)}
        field = fit_drift_field(positions, **given)
    shown = read_shown(embedding, "plot_drift", least_columns=2)
    positions = positions[shown.rows]
    x, y = positions[:, :2].T
    if color is None:
        colors = Colors(np.zeros(len(x), dtype=int), "", None)
        ax = new_axes(ax)
        ax.scatter(x, y, s=6, color="0.75", linewidths=0, zorder=1)
    else:
        colors = read_colors(color, embedding, shown, None)
        ax = new_axes(ax, colors)
        draw_dots(ax, x, y, colors)
    draw = _draw_arrows if style == "arrows" else _draw_streamlines
    draw(ax, field, positions[:, :2])
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_xticks([])
    ax.set_yticks([])
    kind, _, shares = field.verdict.partition(": ")
    ax.set_title(f"arrows: the cheaper way\n{kind}\n{shares}", fontsize="small")
    return ax


def _grid(places, cells: int):
    """Centres of square cells over the map, and whether a point is near."""
    from scipy.spatial import cKDTree

    low, high = places.min(axis=0), places.max(axis=0)
    size = max(float((high - low).max()), 1e-12)
    cell = size / cells
    axes = [
        np.linspace(a - cell / 2, b + cell / 2, max(2, int(np.ceil((b - a) / cell)) + 1))
        for a, b in zip(low, high, strict=True)
    ]
    grid = np.stack(np.meshgrid(*axes), axis=-1)
    reach = max(REACH * size, 0.75 * cell)
    near = cKDTree(places).query(grid.reshape(-1, 2))[0].reshape(grid.shape[:2]) <= reach
    return axes, grid, near


def _draw_arrows(ax, field, places) -> None:
    _, grid, near = _grid(places, ARROWS)
    points = grid[near]
    vectors = -field(points)[:, :2]
    longest = np.quantile(np.linalg.norm(vectors, axis=1), 0.95) if len(vectors) else 0.0
    if not longest > 0:
        return
    spacing = float(max(np.ptp(places, axis=0))) / ARROWS
    ax.quiver(
        *points.T,
        *(vectors * 0.9 * spacing / longest).T,
        angles="xy",
        scale_units="xy",
        scale=1.0,
        pivot="mid",
        width=0.004,
        color="black",
        zorder=3,
    )


def _draw_streamlines(ax, field, places) -> None:
    axes, grid, near = _grid(places, CELLS)
    vectors = -field(grid.reshape(-1, 2))[:, :2].reshape(grid.shape)
    if not np.abs(vectors).max() > 0:
        return
    vectors[~near] = np.nan
    ax.streamplot(*axes, *np.moveaxis(vectors, -1, 0), color="black", linewidth=0.8, density=1.2)
