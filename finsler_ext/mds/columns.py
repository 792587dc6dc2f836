"""How many columns? The drift may lie in the map, so that the height is one of its axes.

Distances of dimension p with a drift need p columns, not p + 1: travel times over a plane with a
drift fit into two. With a column to spare they can be tilted, and every larger drift fits as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from finsler_ext.schema import TEXT, listed, number, part, saved, whole

__all__ = [
    "COLUMNS",
    "NO_STRESS",
    "SPARE_STRESS",
    "ColumnChoice",
    "ColumnTrial",
    "choose_columns",
    "does_as_well",
    "expressible",
]

# What n_components="auto" compares: the drift in the map, or beside a map of two columns.
COLUMNS = (2, 3)
# A column is worth having if it leaves less than this share of the stress. Real data always has
# some use for one more: a third column leaves a half of the stress of flight times, and 0.99 of
# planted planar ones with 5 % noise; of planted heights it leaves less than 0.45.
WORTH_STRESS = 1 / 3
# A column is to spare if it leaves more than this share: planted planar distances with up to 20 %
# noise keep 0.98 and more of their stress.
SPARE_STRESS = 0.85
# A column is also worth having if it shows this much more of the asymmetry that any height could
# show (see gradient_share).
WORTH_SKEW = 0.25
# A height fits 2/n of the asymmetry of pure noise; less than this many times n⁻¹ is not looked at.
NOISY_SHARE = 20
# Below this share of Σ w D² there is no stress worth a column.
NO_STRESS = 1e-4


def expressible(gradient_share: float, n: int) -> float:
    """The gradient share, or what noise might make of it; 1 where it is not known."""
    return max(gradient_share, NOISY_SHARE / n) if gradient_share == gradient_share else 1.0


@saved(
    n_components=whole("[1, inf)"),
    omega_norm=number("[0, 1)"),
    normalized_stress=number("[0, inf)"),
    explained=number(nan=True),
    expressible=number(nan=True),
)
class ColumnTrial(NamedTuple):
    """A number of columns that was tried, its drift, and how well it fits.

    explained : share of the asymmetry that the layout shows; nan if not known
    expressible : share that any height could show
    """

    n_components: int
    omega_norm: float
    normalized_stress: float
    explained: float
    expressible: float = 1.0


@saved(n_components=whole("[1, inf)"), reason=TEXT, trials=listed(part("ColumnTrial")))
class ColumnChoice(NamedTuple):
    """The number of columns chosen, why, and all that were tried."""

    n_components: int
    reason: str
    trials: tuple[ColumnTrial, ...]


def does_as_well(narrow: ColumnTrial, wide: ColumnTrial, share: float = WORTH_STRESS) -> bool:
    """Whether the last column shows no more and leaves more than this share of the stress."""
    if shows_more(narrow, wide):
        return False
    return narrow.normalized_stress <= max(wide.normalized_stress / share, NO_STRESS)


def shows_more(narrow: ColumnTrial, wide: ColumnTrial) -> bool:
    """Whether one more column shows a good deal more of the asymmetry."""
    return wide.explained - narrow.explained > WORTH_SKEW * wide.expressible


def choose_columns(
    fit: Callable[[int], tuple[Any, ColumnTrial]], columns: tuple[int, int] = COLUMNS
) -> tuple[Any, ColumnChoice]:
    """The result of ``fit`` with as many columns as the data needs, and the choice."""
    (few, narrow), (many, wide) = (fit(m) for m in columns)
    both = (
        f"stress {narrow.normalized_stress:.2g} with {columns[0]} columns and "
        f"{wide.normalized_stress:.2g} with {columns[1]}"
    )
    if does_as_well(narrow, wide):
        reason = f"{both}: {columns[0]} are enough, and the height is one of the axes of the map"
        return few, ColumnChoice(columns[0], reason, (narrow, wide))
    if shows_more(narrow, wide):
        both = f"{both}, asymmetry shown {narrow.explained:.0%} and {wide.explained:.0%}"
    reason = f"{both}: the height needs a column of its own"
    return many, ColumnChoice(columns[1], reason, (narrow, wide))
