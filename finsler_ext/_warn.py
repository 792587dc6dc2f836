"""Warnings that point at the user's own line, however deep they arise."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

__all__ = ["warn"]

# Lines of this package, and of scikit-learn, which wraps fit_transform, are not the user's.
_OURS = str(Path(__file__).parent)
_WRAPPERS = ("sklearn",)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """As `warnings.warn`, at the innermost line outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _is_inside(frame) -> bool:
    module = frame.f_globals.get("__name__", "").split(".")[0]
    return frame.f_code.co_filename.startswith(_OURS) or module in _WRAPPERS
