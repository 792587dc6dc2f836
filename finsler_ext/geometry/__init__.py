"""Spaces to embed into, by name."""

from __future__ import annotations

from finsler_ext.geometry.matsumoto import MATSUMOTO
from finsler_ext.geometry.randers import RANDERS
from finsler_ext.geometry.space import Space

__all__ = ["MATSUMOTO", "RANDERS", "SPACES", "Space", "find_space"]

SPACES = {space.name: space for space in (RANDERS, MATSUMOTO)}


def find_space(space) -> Space:
    """The space of this name, or the space itself; a ValueError for anything else.

    >>> find_space("matsumoto").limit
    0.5
    """
    if isinstance(space, Space):
        return space
    if isinstance(space, str) and space in SPACES:
        return SPACES[space]
    raise ValueError(
        f"space must be one of {tuple(SPACES)} or a finsler_ext.geometry.Space, got {space!r}."
    )


def check_drift_parameter(omega_norm, space: Space = RANDERS) -> float | None:
    """The parameter ``omega_norm`` of an estimator: a float, or None for "auto"."""
    if isinstance(omega_norm, str):
        if omega_norm == "auto":
            return None
        raise ValueError(
            f"omega_norm must be a number in [0, {space.limit:g}) or 'auto', got {omega_norm!r}. "
            f"Try {0.5 * space.limit:g}."
        )
    return space.check_drift(omega_norm)
