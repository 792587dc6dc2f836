"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

__all__ = [
    "NOT_RUN",
    "command",
    "figure",
    "folded",
    "interval",
    "number",
    "signed",
    "table",
    "with_interval",
]

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


def signed(value: float, digits: int = 3) -> str:
    """Rounded, with a sign in any case."""
    return f"{value:+.{digits}f}".replace("-", "−")


def interval(gap, digits: int = 3) -> str:
    """[low, high] of a paired difference; the median alone where there is one pair only."""
    if not gap.pairs:
        return ""
    if gap.pairs == 1:
        return f"{signed(gap.median, digits)} (one pair)"
    return f"[{signed(gap.low, digits)}, {signed(gap.high, digits)}]"


def with_interval(gap, digits: int = 3) -> str:
    """A difference and its interval, where it has one."""
    middle = signed(gap.median, digits)
    return middle if gap.pairs < 2 else f"{middle} {interval(gap, digits)}"


def command(name: str) -> str:
    """The line that runs an experiment, as a block of code."""
    return f"    python -m benchmarks.paper run {name}\n"


def folded(title: str, body: str) -> str:
    """Something long that is shown on demand."""
    return f"<details>\n<summary>{title}</summary>\n\n{body.strip()}\n\n</details>"


def figure(name: str, words: str) -> str:
    return f"![{words}](figures/{name}.png)\n"
