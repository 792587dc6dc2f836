"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

__all__ = ["NOT_RUN", "command", "figure", "interval", "number", "table"]

NOT_RUN = "Not run yet.\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def number(value: float, digits: int = 3) -> str:
    """Rounded, with a real minus sign; empty where there is none."""
    if value is None or not np.isfinite(value):
        return ""
    return f"{value:.{digits}f}".replace("-", "−")


def interval(gap, digits: int = 3) -> str:
    """[low, high] of a paired difference; the median alone where there is one pair only."""
    if not gap.pairs:
        return ""
    if gap.pairs == 1:
        return f"{gap.median:+.{digits}f} (one pair)".replace("-", "−")
    return f"[{gap.low:+.{digits}f}, {gap.high:+.{digits}f}]".replace("-", "−")


def command(name: str) -> str:
    """The line that runs an experiment, as a block of code."""
    return f"    python -m benchmarks run {name}\n"


def figure(name: str, words: str) -> str:
    return f"![{words}](figures/{name}.png)\n"
