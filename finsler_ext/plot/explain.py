"""What goes along with the height: ranked bars, and each leading feature beside it."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from finsler_ext.explain import Explanation
from finsler_ext.plot.dots import COLORS, short

# Dots per panel, and classes of the running median.
DOTS, MEDIANS = 3000, 12
UP, DOWN, BENT = COLORS[4], COLORS[0], "0.55"
# A Spearman correlation below this is no direction.
NO_DIRECTION = 0.1


def plot_explanation(explanation: Explanation, *, top: int = 8, panels: int = 3, row=None):
    """Draw the features that go along with a column, the most important first.

    Bars have the length of the importance, with its 5 % to 95 % over draws, or, for one ``row``,
    of the slopes around that point. Beside them each of the first few features is drawn against
    the column, with its running median.

    Parameters
    ----------
    explanation : Explanation
        As `finsler_ext.explain.explain` returns it.
    top : int, default=8
        Number of bars.
    panels : int, default=3
        Number of features drawn beside the column.
    row : int, optional
        A point that was explained locally.

    Returns
    -------
    list of matplotlib Axes, the bars first
    """
    import matplotlib.pyplot as plt

    if top < 1 or panels < 0:
        raise ValueError(f"top must be at least 1 and panels 0 or more, got {top} and {panels}.")
    order = explanation.order[:top]
    if row is not None:
        known = {name: i for i, name in enumerate(explanation.features)}
        order = np.array([known[name] for name in explanation.local_top(row, top)])
    panels = min(panels, order.size)
    _, axes = plt.subplots(
        1, 1 + panels, figsize=(4.6 + 2.5 * panels, 3.6), layout="constrained", squeeze=False,
        width_ratios=[1.7, *[1.0] * panels],
    )  # fmt: skip
    first, *beside = axes[0]
    _draw_bars(first, explanation, order, row)
    for ax, feature in zip(beside, order, strict=False):
        _draw_beside(ax, explanation, int(feature), row)
        if ax is not beside[0]:
            ax.tick_params(labelleft=False)
    if beside:
        beside[0].set_ylabel(explanation.column)
    return [first, *beside]


def _draw_bars(ax, explanation, order, row) -> None:
    places = np.arange(order.size)
    if row is None:
        length, direction = explanation.importance[order], explanation.direction[order]
        low, high = explanation.low[order], explanation.high[order]
        around = np.clip([length - low, high - length], 0.0, None)
        ax.set_xlabel("importance: share of variance lost when shuffled")
        explained = max(explanation.explained, 0.0)
        title = f"{explanation.column}: {explained:.0%} explained on rows held out"
    else:
        at = int(np.flatnonzero(explanation.rows == row)[0])
        length = direction = explanation.local[at, order]
        around = None
        ax.set_xlabel(f"rise of the {explanation.column} per sd of the feature")
        title = f"around point {row}"
    bent = np.abs(direction) < (NO_DIRECTION if row is None else 0.0)
    colors = np.where(bent, BENT, np.where(direction > 0, UP, DOWN))
    ax.barh(places, length, xerr=around, color=colors, ecolor="0.3", capsize=2)
    ax.axvline(0.0, color="0.3", linewidth=0.8)
    signs = np.where(bent, "~", np.where(direction > 0, "+", "−"))
    names = [f"{short(explanation.features[f])} ({s})" for f, s in zip(order, signs, strict=True)]
    ax.set_yticks(places, names)
    ax.invert_yaxis()
    ax.set_title(title, fontsize="small")
    ax.spines[["top", "right"]].set_visible(False)


def _draw_beside(ax, explanation, feature: int, row) -> None:
    data = explanation.data
    values = data[:, [feature]].toarray()[:, 0] if scipy.sparse.issparse(data) else data[:, feature]
    known = np.flatnonzero(np.isfinite(values) & np.isfinite(explanation.values))
    some = known[:: max(1, known.size // DOTS)]
    ax.scatter(values[some], explanation.values[some], s=5, color="0.7", linewidths=0)
    places = np.quantile(values[known], np.linspace(0, 1, MEDIANS + 1))
    parts = np.searchsorted(places[1:-1], values[known], side="right")
    pairs = [
        (np.median(values[known[parts == p]]), np.median(explanation.values[known[parts == p]]))
        for p in np.unique(parts)
    ]
    ax.plot(*zip(*pairs, strict=True), color=COLORS[4], marker=".")
    if row is not None:
        ax.plot(values[row], explanation.values[row], "*", color="black", markersize=10)
    ax.set_xlabel(short(explanation.features[feature]))
    ax.spines[["top", "right"]].set_visible(False)
