"""What the parameter ``height`` means: whether the map settles before the height rises.

held       the map settles in the first columns, then the height rises over it
free       all columns settle together, then the drift finds its axis among them
euclidean  free, and nothing to show: no drift, or affinities that are symmetric
"""

from __future__ import annotations

__all__ = [
    "EUCLIDEAN",
    "FREE",
    "HEIGHTS",
    "HELD",
    "check_height",
    "complete_old_state",
    "height_mode",
]

HELD, FREE, EUCLIDEAN = "held", "free", "euclidean"
HEIGHTS = ("auto", HELD, FREE)
# "auto" holds the height where a map of this many columns remains. A map of one column is a
# comb: digits in two columns, ω = 0.01, k-means AMI 0.86 held, 0.92 free, 0.90 by UMAP.
MAP_COLUMNS = 2


def check_height(height, n_components: int, start_columns: int | None, start_name: str) -> None:
    """Refuse values of ``height`` that do not fit the number of columns or the start.

    ``start_columns`` is the number of columns of a start that was given as an array, under the
    name ``start_name``.
    """
    if height not in HEIGHTS:
        raise ValueError(f"height must be one of {HEIGHTS}, got {height!r}.")
    if height == HELD and n_components < 2:
        raise ValueError(
            f"height='held' needs a map beside the height, got n_components={n_components}. "
            "Use height='auto', or more columns."
        )
    if start_columns is None or height == "auto":
        return
    if (height == FREE) != (start_columns == n_components):
        raise ValueError(
            f"height={height!r} cannot start from {start_name} with {start_columns} columns: a "
            f"held height needs the {n_components - 1} columns of the map, a free one all "
            f"{n_components}. Use height='auto'."
        )


def height_mode(
    height: str, n_components: int, omega_norm: float, symmetric: bool, start_columns: int | None
) -> str:
    """HELD, FREE or EUCLIDEAN, for one drift and one graph."""
    if omega_norm == 0 or symmetric:
        return EUCLIDEAN  # nothing would ever move a height that starts from zero
    if height != "auto":
        return height
    if start_columns is not None:
        return FREE if start_columns == n_components else HELD
    return HELD if n_components > MAP_COLUMNS else FREE


def complete_old_state(state: dict) -> dict:
    """The state of a model that was pickled by version 0.1.0, which always held the height."""
    state.setdefault("height", "auto")
    state.setdefault("space", "randers")
    if "omega_norm_" in state and "height_" not in state:
        flat = state["omega_norm_"] == 0 or state["n_components"] == 1
        state["height_"] = FREE if flat else HELD
    return state
