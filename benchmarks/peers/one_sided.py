"""FinslerUMAP with negatives taken in one direction: what two-sided sampling is worth.

The repulsive part of the loss has a term for either direction of every pair,

    Σ_k (1 − p_ik) c^r_ik + (1 − p_ki) c^r_ki,     c^r = −ln(1 − q).

A negative k of the head i, drawn as in umap-learn, stands for the first alone. In a symmetric
space that is a matter of a factor; in a Randers space the missing half leaves a push along −ω
that grows with the crowding around i, and so a height that is not the data's.
"""

from __future__ import annotations

from finsler_ext.umap.estimator import FinslerUMAP
from finsler_ext.umap.layout import UmapDescent

__all__ = ["OneSidedDescent", "OneSidedFinslerUMAP"]


class OneSidedDescent(UmapDescent):
    """UmapDescent with negatives i → k only."""

    def _both_ways(self, omega_norm: float) -> bool:
        return False


class OneSidedFinslerUMAP(FinslerUMAP):
    """FinslerUMAP in all but the negatives, which are i → k only; parameters are the same.

    This concerns `fit` and `update`; `transform` places new rows as FinslerUMAP does.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> model = OneSidedFinslerUMAP(omega_norm=0.5, random_state=0).fit(load_iris().data)
    >>> model.embedding_.shape
    (150, 3)
    """

    _descent = OneSidedDescent
