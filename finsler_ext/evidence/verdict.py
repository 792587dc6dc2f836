"""What was found about the asymmetry of the data, and the rule that puts it into words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from finsler_ext._messages import warn
from finsler_ext.asymmetry import DENSITY, NONE, SCALE, CyclicWarning, SkewFidelity
from finsler_ext.geometry import RANDERS, Space
from finsler_ext.schema import TEXT, array, number, part, saved

# p-values from here on are chance.
LEVEL = 0.05
# Share of pairs in the right order from which on a height of single points is worth reading.
NEAR_SIGN = 0.6
# Less than this share of the asymmetry, what chance explains taken off, is "mostly cyclic".
MOSTLY_CYCLIC = 0.5
# From this share of the largest drift on a height was asked for; a smaller one is a choice, not a
# mistake.
ASKED_FOR = 0.3
# Pairs that a model keeps to draw them.
MOST_KEPT_PAIRS = 5000
NAN = float("nan")


class ChanceWarning(UserWarning):
    """A height that was asked for orders the data no better than chance."""


@saved(near=number("[0, 1]", nan=True), far=number("[0, 1]", nan=True))
class Reliability(NamedTuple):
    """Correlation of two measurements like this one, from 0 to 1 (Spearman–Brown)."""

    near: float = NAN
    """Of differences between neighbours, or between the points of a measured pair."""
    far: float = NAN
    """Of the levels of all points."""


def longer(r: float, factor: float) -> float:
    """Spearman–Brown: the correlation of measurements that are ``factor`` times as long."""
    r = max(r, 0.0)
    return factor * r / (1.0 + (factor - 1.0) * r)


UNKNOWN_RELIABILITY, NOT_TESTED = Reliability(), SkewFidelity.undefined("not tested")


@saved(
    potential=array("f8", "n", nan=True),
    error=array("f8", "n", "[0, inf]", nan=True),
    unsure=array("?", "n"),
)
class HeightError(NamedTuple):
    """How sure the potential of each point is; in units of the potential."""

    potential: np.ndarray
    error: np.ndarray
    """Potential ± 1.645 error is a 90 % interval."""
    unsure: np.ndarray
    """Whether it may be either above or below the mean of its neighbours."""

    def of_height(self, height: np.ndarray) -> np.ndarray:
        """The error in units of a height that follows the potential."""
        known = np.isfinite(height) & np.isfinite(self.potential)
        level = self.potential[known] - self.potential[known].mean()
        square = float((level * level).sum())
        slope = float((level * height[known]).sum()) / square if square > 0 else 0.0
        return abs(slope) * self.error


@saved(held=array("f8", "e", nan=True), made=array("f8", "e", nan=True))
class HeldOutPairs(NamedTuple):
    """Skews of some pairs in one half of the data, and as the other half has them."""

    held: np.ndarray
    made: np.ndarray

    @classmethod
    def some_of(cls, held: np.ndarray, made: np.ndarray) -> HeldOutPairs:
        few = slice(None, None, -(-held.size // MOST_KEPT_PAIRS) or 1)
        return cls(held[few], made[few])


@saved(
    kind=TEXT,
    p_value=number("[0, 1]", nan=True),
    reliability=part("Reliability"),
    held_out=part("SkewFidelity"),
    gradient_share=number("[0, 1.000001]", nan=True),
    gradient_share_null=number("[0, 1.000001]", nan=True),
    cyclic=number("[0, 1.000001]", nan=True),
    shown=number("[0, 1]", nan=True),
    reason=TEXT,
)
class Evidence(NamedTuple):
    """Whether the asymmetry of the data is more than chance, and how reliable it is.

    Only ``shown`` looks at the layout.

    Attributes
    ----------
    kind : {"density", "distances", "velocities", "scale", "none"}
        Where the asymmetry comes from.
    p_value : float
        Of the hypothesis "density does not vary", or "there is no direction"; nan where it cannot
        be tested, with a ``reason``.
    reliability : Reliability
        Agreement of two random halves of the data, as it would be of two data sets of full size.
    held_out : SkewFidelity
        The potential of one half against the other: share of pairs in the right order, rank
        correlation and share explained.
    gradient_share, gradient_share_null : float
        Share of the asymmetry of directed data that any height can express, and the share that it
        would be if directions were random.
    cyclic : float
        Share of the asymmetry of directed data between points that can reach each other, along
        the cheaper direction of each pair. The rest is not part of any cycle.
    shown : float
        Share of pairs that the layout orders as the data it was made from:
        ``skew_fidelity_.sign``.
    reason : str
        Why there is no p-value.
    """

    kind: str
    p_value: float = NAN
    reliability: Reliability = UNKNOWN_RELIABILITY
    held_out: SkewFidelity = NOT_TESTED
    gradient_share: float = NAN
    gradient_share_null: float = NAN
    cyclic: float = NAN
    shown: float = NAN
    reason: str = ""

    @property
    def more_than_chance(self) -> bool | None:
        """p < 0.05; None where there is no p-value."""
        return None if np.isnan(self.p_value) else self.p_value < LEVEL

    @property
    def mostly_cyclic(self) -> bool:
        """Whether less than half of the asymmetry has a height, and most of it can be cyclic."""
        if np.isnan(self.gradient_share) or self.cyclic < MOSTLY_CYCLIC:
            return False
        null = float(np.nan_to_num(self.gradient_share_null))
        above = (self.gradient_share - null) / max(1.0 - null, 1e-12)
        return above < MOSTLY_CYCLIC

    @property
    def all_cyclic(self) -> bool:
        """Whether a height explains less of it than of 95 % of random directions."""
        return self.mostly_cyclic and self.p_value > 1.0 - LEVEL

    @property
    def is_shown(self) -> bool:
        """Whether the layout orders enough pairs as the data it was made from."""
        return self.shown >= NEAR_SIGN

    @property
    def summary(self) -> str:
        """The verdict without its numbers. The rule, from the top:

        no p-value: not tested; p > 0.95 and mostly cyclic: cyclic; p ≥ 0.05: no more than chance;
        the layout orders less than 60 % of the pairs of its own data: not shown; one half of the
        data orders less than 60 % of the other's neighbour pairs: between regions only; mostly
        cyclic; otherwise shown.
        """
        what = "density varies" if self.kind == DENSITY else "there is a direction"
        if self.kind == NONE:
            return "nothing to test: the data has no asymmetry"
        if self.kind == SCALE:
            shows = "does not show" if self.shown < NEAR_SIGN else "shows"
            return f"not tested: the height {shows} the scale that was given"
        if self.more_than_chance is None:
            return f"not tested: {self.reason}"
        if self.all_cyclic:
            return "the asymmetry is cyclic: do not read the height"
        if not self.more_than_chance:
            return "no more than chance: do not read the height"
        if np.isnan(self.shown):
            return f"{what}, and this layout has no height"
        if not self.is_shown:
            return f"{what}, but the height does not show it"
        if self.kind == DENSITY and not self.held_out.sign >= NEAR_SIGN:
            return f"{what} between regions, not between neighbours"
        if self.mostly_cyclic:
            return f"{what}, and the height shows it, but much of the asymmetry is cyclic or noise"
        return f"{what}, and the height shows it"

    @property
    def p_words(self) -> str:
        return "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"

    @property
    def title(self) -> str:
        """The verdict with its p-value only, for a picture."""
        return self.summary if self.more_than_chance is None else f"{self.summary} ({self.p_words})"

    @property
    def verdict(self) -> str:
        """What to make of the height, in words, with the numbers in brackets."""
        if self.more_than_chance is None:
            return self.summary
        numbers = [self.p_words]
        if self.held_out.defined:
            whose = "neighbour pairs" if self.kind == DENSITY else "pairs"
            numbers.append(
                f"one half of the data orders {self.held_out.sign:.0%} of the {whose} of the "
                "other, 50% is chance"
            )
        if self.kind != DENSITY and np.isfinite(self.gradient_share):
            numbers.append(
                f"a height can express {self.gradient_share:.0%} of the asymmetry, of a random "
                f"one {self.gradient_share_null:.0%}"
            )
        return f"{self.summary} ({'; '.join(numbers)})"

    def __str__(self) -> str:
        return self.verdict

    def to_dict(self) -> dict[str, float | str]:
        """Plain numbers and words, for a file or AnnData's ``uns``."""
        return {
            "kind": self.kind,
            "p_value": float(self.p_value),
            "reliability_near": float(self.reliability.near),
            "reliability_far": float(self.reliability.far),
            "held_out_sign": float(self.held_out.sign),
            "held_out_rank": float(self.held_out.rank),
            "held_out_explained": float(self.held_out.explained),
            "gradient_share": float(self.gradient_share),
            "gradient_share_null": float(self.gradient_share_null),
            "shown": float(self.shown),
            "verdict": self.verdict,
        }


def warn_of_height(
    evidence: Evidence,
    fidelity: SkewFidelity,
    omega_norm: float,
    directed: bool = False,
    space: Space = RANDERS,
    of_shares: bool = False,
) -> None:
    """Tell the user of a fitted model not to read a height, with at most one reason.

    A height was asked for by a drift of 0.3 of the largest or more, or by data that is
    ``directed``. Chance in the data comes first: then no drift helps. So it does if most of the
    asymmetry is cyclic. Only otherwise a height that does not show it may need a larger drift.
    Heights ``of_shares`` are fitted to the shares of what leaves a source, and judged by strengths.
    """
    asked_for = omega_norm > 0 and (omega_norm >= ASKED_FOR * space.limit or directed)
    if asked_for and evidence.more_than_chance is False and not evidence.all_cyclic:
        warn(f"The asymmetry of the data is {evidence.verdict}.", ChanceWarning)
    elif evidence.mostly_cyclic:
        null = evidence.gradient_share_null
        beside = f", and {null:.0%} of a random one" if np.isfinite(null) else ""
        warn(
            "Much of the asymmetry is cyclic or noise: whatever the drift, a height can express "
            f"{evidence.gradient_share:.0%} of it{beside} (evidence_.gradient_share). "
            "No height can show the rest (A → B → C → A costs more than the way back).",
            CyclicWarning,
        )
    elif asked_for and of_shares and fidelity.sign < NEAR_SIGN:
        warn(
            "The height does not show the direction of the strengths: it orders "
            f"{fidelity.sign:.0%} of their pairs, 50% is chance. Distances are shares of what "
            "leaves a source, so it shows sizes: from a large one all others are far. potential_ "
            "and FinslerUMAP follow the strengths.",
            ChanceWarning,
        )
    elif asked_for and fidelity.sign < NEAR_SIGN:
        usual = 0.5 * space.limit
        advice = f", or use a larger omega_norm such as {usual:g}" if omega_norm < usual else ""
        warn(
            f"With omega_norm={omega_norm:g} the height does not show the asymmetry of the data: "
            f"it orders {fidelity.sign:.0%} of the pairs that it was made from, 50% is chance. "
            f"Read it as one more map column{advice}.",
            ChanceWarning,
        )
