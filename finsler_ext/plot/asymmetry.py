"""Pictures of the asymmetry: of the data against that of the embedding, and as a drift field."""

from __future__ import annotations

import textwrap

import numpy as np

from finsler_ext.drift_field import DriftField, fit_drift_field
from finsler_ext.geometry import RANDERS, find_space
from finsler_ext.metrics import asymmetry_between
from finsler_ext.plot.dots import draw_dots, new_axes
from finsler_ext.plot.inputs import LINE, asymmetry_in, read_colors, read_shown, write_names

# Up to this many pairs are drawn one by one; beyond, as counts in hexagons.
FEW_PAIRS = 500
# The outermost share of pairs on either side that may lie outside the picture.
TAIL = 0.001
# Arrows along the longer side of the map, and cells of the grid of the streamlines.
ARROWS, CELLS = 18, 60
# Arrows are drawn up to this share of the longer side away from a point.
REACH = 0.07
STYLES = ("arrows", "streamlines")


def plot_asymmetry(
    embedding,
    *,
    graph=None,
    local_scale=None,
    distances=None,
    omega_norm=None,
    held_out: bool = False,
    ax=None,
):
    """The asymmetry of the data against that of the embedding, pair by pair.

    Where the height shows the asymmetry, the pairs lie along a rising line; the share in the
    two shaded quarters is ``skew_fidelity_.sign``. That is the data the height was made from.
    With ``held_out``, pairs of one half of the data are drawn against what the other half says
    of them, and the title is the verdict: chance is a round cloud.

    Parameters
    ----------
    embedding : fitted estimator, or array of shape (n, m) or DataFrame with the data below
    graph, local_scale, distances, omega_norm
        As in `finsler_ext.metrics.skew_fidelity`; taken from a fitted estimator by default.
    held_out : bool, default=False
        For a fitted estimator: draw pairs that were held out, and not the height.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    if held_out:
        return _draw_held_out(embedding, new_axes(ax))
    positions = np.asarray(getattr(embedding, "embedding_", embedding), dtype=np.float64)
    space = find_space(getattr(embedding, "space", RANDERS))
    if graph is None and local_scale is None and distances is None:
        asymmetry = asymmetry_in(embedding)
        omega_norm = embedding.omega_norm_
        if getattr(embedding, "unique", False):  # the graph is that of the distinct rows
            positions = positions[embedding._unique_rows_]
    else:
        asymmetry = asymmetry_between(graph, local_scale, distances, omega_norm)
    data, shown = asymmetry.compared(positions, omega_norm or 0.0, space)
    fidelity = asymmetry.fidelity(positions, omega_norm or 0.0, space)
    ax = new_axes(ax)
    of_data = "D(i, j) − D(j, i)" if asymmetry.is_directed else "log scale of j − of i"
    rises = "height of j − of i" if space is RANDERS else "(F(i, j) − F(j, i))/2ω"
    of_embedding = "F(i, j) − F(j, i)" if asymmetry.absolute else rises
    ax.set(xlabel=f"data: {of_data}", ylabel=f"embedding: {of_embedding}")
    ax.set_title(_title(fidelity), fontsize="medium")
    if data.size == 0:
        return ax
    if asymmetry.is_directed:  # every pair is listed once: show it both ways
        data, shown = np.concatenate([data, -data]), np.concatenate([shown, -shown])
    return _draw_pairs(ax, data, shown)


def _draw_held_out(model, ax):
    pairs = getattr(model, "_held_out_pairs", None)
    if pairs is None:
        raise ValueError("held_out=True needs a fitted estimator whose evidence_ was tested.")
    ax.set(xlabel="one half of the data", ylabel="the other half")
    ax.set_title(textwrap.fill(model.evidence_.title, LINE), fontsize="medium")
    data, shown = (np.concatenate([skew, -skew]) for skew in pairs)
    return _draw_pairs(ax, data, shown)


def _draw_pairs(ax, data, shown):
    """Every pair as a dot, or counts of them in hexagons, with the right quarters shaded."""
    across, up = (max(np.quantile(np.abs(v), 1 - TAIL), 1e-12) for v in (data, shown))
    ax.set(xlim=(-across, across), ylim=(-up, up))
    for side in (-1, 1):
        corner = side * across, side * up
        ax.fill([0, corner[0], corner[0], 0], [0, 0, corner[1], corner[1]], "0.93", zorder=0)
    if data.size <= FEW_PAIRS:
        ax.scatter(data, shown, s=6, color="0.2", linewidths=0)
    else:
        bins = {"gridsize": 50, "extent": (-across, across, -up, up), "bins": "log", "mincnt": 1}
        counts = ax.hexbin(data, shown, **bins, cmap="viridis_r", linewidths=0.1)
        ax.figure.colorbar(counts, ax=ax, label="pairs", shrink=0.85)
    ax.axhline(0, color="0.4", linewidth=0.6)
    ax.axvline(0, color="0.4", linewidth=0.6)
    return ax


def _title(fidelity) -> str:
    if not fidelity.defined:
        return f"no fidelity: {fidelity.reason}"
    return (
        f"{fidelity.sign:.0%} of the pairs it was made from are ordered correctly\n"
        f"rank correlation {fidelity.rank:.2f}, explained {fidelity.explained:.0%}"
    )


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

    Arrows point against the drift: along them a step costs less than back. The title says how much
    of the asymmetry of pairs held out the field explains, and how much one drift for all places.

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
            given = {"asymmetry": asymmetry_in(embedding)}
        field = fit_drift_field(positions, **given)
    shown = read_shown(embedding, "plot_drift", least_columns=2)
    positions = positions[shown.rows]
    x, y = positions[:, :2].T
    if color is None:
        ax = new_axes(ax)
        ax.scatter(x, y, s=6, color="0.75", linewidths=0, zorder=1)
    else:
        colors = read_colors(color, embedding, shown, None)
        ax = new_axes(ax, colors)
        draw_dots(ax, x, y, colors)
    write_names(ax, x, y, shown)
    draw = _draw_arrows if style == "arrows" else _draw_streamlines
    draw(ax, field, positions[:, :2])
    ax.set_aspect("equal", adjustable="datalim")
    ax.set(xticks=[], yticks=[])
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
    on_map = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "pivot": "mid", "width": 0.004}
    shafts = vectors * 0.9 * spacing / longest
    ax.quiver(*points.T, *shafts.T, color="black", zorder=3, **on_map)


def _draw_streamlines(ax, field, places) -> None:
    axes, grid, near = _grid(places, CELLS)
    vectors = -field(grid.reshape(-1, 2))[:, :2].reshape(grid.shape)
    if not np.abs(vectors).max() > 0:
        return
    vectors[~near] = np.nan
    ax.streamplot(*axes, *np.moveaxis(vectors, -1, 0), color="black", linewidth=0.8, density=1.2)
