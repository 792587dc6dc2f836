"""How much asymmetry the height carries, in a sentence."""

from __future__ import annotations

from finsler_ext.asymmetry import SkewFidelity
from finsler_ext.drift import MEANINGFUL_SIGN

__all__ = ["columns_why", "shown_share", "verdict"]


def verdict(fidelity: SkewFidelity, directed: bool = False) -> str:
    if not fidelity.defined:
        return f"The height carries no asymmetry: {fidelity.reason}."
    order = "from cheap to costly to reach" if directed else "from dense to sparse"
    pairs = "pairs" if directed else "neighbour pairs"
    sentence = (
        f"The height orders {fidelity.sign:.0%} of all {pairs} {order} (50% is chance; rank "
        f"correlation {fidelity.rank:.2f})"
    )
    if fidelity.sign < MEANINGFUL_SIGN:
        return f"{sentence}: read it as one more map column."
    return f"{sentence}."


def shown_share(model) -> str:
    """How much of the asymmetry of directed data any height could show."""
    share = getattr(model, "gradient_share_", float("nan"))
    if share != share:
        return ""
    return f" A height can show {share:.0%} of the asymmetry; the rest is cyclic or noise."


def columns_why(model) -> str:
    """Why there are so many columns, where that was chosen."""
    choice = getattr(model, "column_choice_", None)
    return "" if choice is None else f" Columns: {choice.reason}."
