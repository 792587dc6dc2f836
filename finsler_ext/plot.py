"""Pictures of a Finsler embedding. Needs matplotlib (extra ``plot``)."""

from __future__ import annotations

import numpy as np

from finsler_ext.randers import height, map_columns

__all__ = ["plot_map"]

# Points this dense still show as single dots on a default figure.
DOTS = 20_000.0


def plot_map(embedding, *, color=None, ax=None, label: str = "height: sparse above dense"):
    """Scatter the first two map columns, coloured by the height.

    Parameters
    ----------
    embedding : array of shape (n, m ≥ 3), or a fitted estimator
    color : array of shape (n,), optional
        Colour by this instead of the height; integers are taken as categories.
    ax : matplotlib Axes, optional
    label : str
        Text of the colour bar.

    Returns
    -------
    matplotlib Axes
    """
    import matplotlib.pyplot as plt

    embedding = np.asarray(getattr(embedding, "embedding_", embedding))
    if embedding.ndim != 2 or embedding.shape[1] < 3:
        raise ValueError(
            f"plot_map needs two map columns and a height, got shape {embedding.shape}."
        )
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 5.6), layout="constrained")
    x, y = map_columns(embedding)[:, :2].T
    size = min(20.0, max(1.0, DOTS / len(embedding)))
    values = height(embedding) if color is None else np.asarray(color)
    categorical = color is not None and values.dtype.kind in "iubUO"
    if categorical:
        cmap = plt.get_cmap("tab10" if len(np.unique(values)) <= 10 else "tab20")
        for c, name in enumerate(np.unique(values)):
            chosen = values == name
            ax.scatter(x[chosen], y[chosen], s=size, color=cmap(c % cmap.N), label=str(name))
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, markerscale=2)
    else:
        dots = ax.scatter(x, y, c=values, s=size, cmap="viridis")
        ax.figure.colorbar(dots, ax=ax, label=label)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    return ax
