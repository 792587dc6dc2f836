"""Pinned points: entries of a layout that are given and never move.

Pins are an array with one row per point, nan where the layout is free. A layout with pins is
never rotated, and centred only in columns without a pin. Where it starts, and wherever a height
is computed rather than descended to, the others follow the pins: the difference δ between
what is given and what was found is continued along the graph, by

    Σ_j (p_ij + p_ji) (δ_i − δ_j) = 0   at every free point i,

so that neighbours of a pin come along, and parts without any pin stay.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import cg

from finsler_ext._threads import one_blas_thread

# Of the continuation: it is a start, or smooths the surroundings of a pin.
PIN_TOLERANCE, PIN_ITERATIONS = 1e-4, 1000


def read_pins(pinned, n: int, n_components: int, names=None) -> np.ndarray | None:
    """Pins of shape (n, n_components) as float64, nan where free; None if there are none.

    ``pinned`` is an array or DataFrame of n_components − 1 (the map) or n_components columns, with
    one row per point; or, of a DataFrame whose index has ``names`` of points, rows for some.
    """
    if pinned is None:
        return None
    if names is not None and hasattr(pinned, "reindex"):
        known = pinned.index.isin(names)
        if known.any():
            if not known.all():
                unknown = pinned.index[~known][0]
                raise ValueError(f"pinned: there is no point named {unknown!r}.")
            pinned = pinned.reindex(list(names))
    try:
        places = np.array(pinned, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"pinned must hold numbers, and nan for what is free: {error}") from None
    m = n_components
    if places.ndim != 2 or places.shape[0] != n or places.shape[1] not in (m - 1, m):
        raise ValueError(
            f"pinned must have one row per point ({n}) and {m - 1} columns (the map) or {m} (map "
            f"and height), nan for what is free; got shape {places.shape}."
        )
    if np.isinf(places).any():
        raise ValueError("pinned contains infinity; use nan for what is free.")
    if places.shape[1] < m:
        places = np.column_stack([places, np.full(n, np.nan)])
    return places if np.isfinite(places).any() else None


def keep_pins(position: np.ndarray, pins: np.ndarray | None) -> np.ndarray:
    """The position with what is pinned in its place; of pins for more columns, the first."""
    if pins is None:
        return position
    pins = pins[:, : position.shape[1]]
    return np.where(np.isnan(pins), position, pins.astype(position.dtype))


@one_blas_thread()
def follow_pins(values: np.ndarray, pins: np.ndarray, graph) -> np.ndarray:
    """Values of shape (n,) or (n, columns), equal to the pins and moved with them elsewhere."""
    flat = values.ndim == 1
    values, pins = (
        np.asarray(a, dtype=np.float64).reshape(len(values), -1) for a in (values, pins)
    )
    springs = scipy.sparse.csr_array(graph, dtype=np.float64)
    springs = springs + springs.T
    degree = np.asarray(springs.sum(axis=1)).ravel()
    moved = values.copy()
    for c in range(values.shape[1]):
        fixed = np.isfinite(pins[:, c])
        if not fixed.any():
            continue
        change = np.where(fixed, pins[:, c] - values[:, c], 0.0)
        free = np.flatnonzero(~fixed & (degree > 0))
        laplacian = scipy.sparse.diags_array(degree[free]) - springs[free][:, free]
        found, _ = cg(
            laplacian,
            (springs @ change)[free],
            M=scipy.sparse.diags_array(1.0 / degree[free]),
            rtol=PIN_TOLERANCE,
            maxiter=PIN_ITERATIONS,
        )
        change[free] = found
        moved[:, c] = np.where(fixed, pins[:, c], values[:, c] + change)
    return moved[:, 0] if flat else moved


@one_blas_thread()
def on_pins(start: np.ndarray, pins: np.ndarray | None, graph) -> np.ndarray:
    """A start whose frame means nothing, moved onto the pins.

    It is shifted, rotated or mirrored, and scaled to the spread of the pins, so that pinned rows
    come to lie near their places; then the rest follows the pins.
    """
    if pins is None:
        return start
    pins = pins[:, : start.shape[1]]
    moved = np.array(start, dtype=np.float64)
    columns = np.flatnonzero(np.isfinite(pins).any(axis=0))
    whole = np.isfinite(pins[:, columns]).all(axis=1)
    if columns.size and whole.any():
        here, there = moved[whole][:, columns], pins[whole][:, columns]
        centre, goal = here.mean(axis=0), there.mean(axis=0)
        here, there = here - centre, there - goal
        size, spread = np.linalg.norm(here), np.linalg.norm(there)
        if size > 0 and spread > 0:
            left, _, right = np.linalg.svd(here.T @ there)
            moved *= spread / size
            moved[:, columns] = (moved[:, columns] - centre * spread / size) @ (left @ right) + goal
        else:
            moved[:, columns] += goal - centre
    return follow_pins(moved, pins, graph).astype(start.dtype)
