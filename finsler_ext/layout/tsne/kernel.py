"""Constants of the t-SNE kernel w(F) = (1 + F²/ν)^{−(ν+1)/2}, and which closed form it has."""

from __future__ import annotations

import numpy as np

__all__ = ["TINY", "kernel_constants", "kernel_kind"]

# A general power costs some thirty times as much as the closed forms of these.
CLOSED_FORMS = (1, 2, 3)
TINY = np.float32(1e-30)


def kernel_kind(dof: float) -> int:
    """The closed form for this ν, or 0 where there is none."""
    return int(dof) if dof in CLOSED_FORMS else 0


def kernel_constants(dof: float, omega_norm: float, dtype) -> np.ndarray:
    """ω, 1/ν, (ν + 1)/2 and 1, in the precision of the loop that uses them."""
    return np.array([omega_norm, 1.0 / dof, (dof + 1.0) / 2.0, 1.0], dtype=dtype)
