"""Does the height mean anything? The asymmetry of the data against that of the embedding."""

from __future__ import annotations

import numpy as np

from finsler_ext.metrics import asymmetry_between
from finsler_ext.plot.dots import new_axes
from finsler_ext.plot.skew import asymmetry_of
from finsler_ext.spaces import RANDERS, find_space

__all__ = ["plot_asymmetry"]

# Up to this many pairs are drawn one by one; beyond, as counts in hexagons.
FEW_PAIRS = 500
# The outermost share of pairs on either side that may lie outside the picture.
TAIL = 0.001


def plot_asymmetry(
    embedding, *, graph=None, local_scale=None, distances=None, omega_norm=None, ax=None
):
    """Data skew against embedding skew on the edges, with the fidelity in the title.

    Where the height shows the asymmetry, the pairs lie along a rising line; the share in the
    two shaded quarters is ``skew_fidelity_.sign``.

    Parameters
    ----------
    embedding : fitted estimator, or array of shape (n, m) or DataFrame with the data below
    graph, local_scale, distances, omega_norm
        As in `finsler_ext.metrics.skew_fidelity`; taken from a fitted estimator by default.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    positions = np.asarray(getattr(embedding, "embedding_", embedding), dtype=np.float64)
    space = find_space(getattr(embedding, "space", RANDERS))
    if graph is None and local_scale is None and distances is None:
        asymmetry = asymmetry_of(embedding)
        omega_norm = embedding.omega_norm_
        if getattr(embedding, "unique", False):  # the graph is that of the distinct rows
            positions = positions[embedding._unique_rows_]
    else:
        asymmetry = asymmetry_between(graph, local_scale, distances, omega_norm)
    data, shown = asymmetry.compared(positions, omega_norm or 0.0, space)
    fidelity = asymmetry.fidelity(positions, omega_norm or 0.0, space)
    ax = new_axes(ax)
    ax.set_xlabel(
        "data: " + ("D(i, j) − D(j, i)" if asymmetry.is_directed else "log scale of j − of i")
    )
    rises = "height of j − of i" if space is RANDERS else "(F(i, j) − F(j, i))/2ω"
    ax.set_ylabel("embedding: " + ("F(i, j) − F(j, i)" if asymmetry.absolute else rises))
    ax.set_title(_title(fidelity), fontsize="medium")
    if data.size == 0:
        return ax
    if asymmetry.is_directed:  # every pair is listed once: show it both ways
        data, shown = np.concatenate([data, -data]), np.concatenate([shown, -shown])
    across, up = (max(np.quantile(np.abs(v), 1 - TAIL), 1e-12) for v in (data, shown))
    ax.set_xlim(-across, across)
    ax.set_ylim(-up, up)
    for side in (-1, 1):
        ax.fill(
            [0, side * across, side * across, 0], [0, 0, side * up, side * up], "0.93", zorder=0
        )
    if data.size <= FEW_PAIRS:
        ax.scatter(data, shown, s=6, color="0.2", linewidths=0)
    else:
        counts = ax.hexbin(
            data,
            shown,
            gridsize=50,
            extent=(-across, across, -up, up),
            bins="log",
            mincnt=1,
            cmap="viridis_r",
            linewidths=0.1,
        )
        ax.figure.colorbar(counts, ax=ax, label="pairs", shrink=0.85)
    ax.axhline(0, color="0.4", linewidth=0.6)
    ax.axvline(0, color="0.4", linewidth=0.6)
    return ax


def _title(fidelity) -> str:
    if not fidelity.defined:
        return f"no fidelity: {fidelity.reason}"
    return (
        f"{fidelity.sign:.0%} of pairs ordered correctly (50% is chance)\n"
        f"rank correlation {fidelity.rank:.2f}, explained {fidelity.explained:.0%}"
    )
