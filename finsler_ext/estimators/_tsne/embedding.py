"""openTSNE's embedding, which also says how far to trust its height."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from openTSNE.tsne import TSNEEmbedding

from finsler_ext.asymmetry import Asymmetry, SkewFidelity
from finsler_ext.spaces import Space, find_space

__all__ = ["FinslerEmbedding"]

# What openTSNE's pickles do not know of.
OWN = ("asymmetry_", "omega_norm_", "space")


class FinslerEmbedding(TSNEEmbedding):
    """An `openTSNE.TSNEEmbedding` whose `skew_fidelity_` follows its positions.

    Attributes
    ----------
    skew_fidelity_ : SkewFidelity
        How faithfully the height shows the asymmetry of the data, at the present positions.
    asymmetry_ : Asymmetry
        What the height is to show.
    omega_norm_ : float
    space : Space
    """

    # of parts of an embedding (``embedding[:, :2]``) nothing is known
    asymmetry_: Asymmetry | None = None
    omega_norm_: float = 0.0
    space: Any = "randers"

    @classmethod
    def of(
        cls, embedding: TSNEEmbedding, asymmetry: Asymmetry, omega_norm: float, space: Space
    ) -> FinslerEmbedding:
        """The same embedding, with what its height is to show."""
        made = embedding.view(cls)
        vars(made).update(vars(embedding))
        made.asymmetry_, made.omega_norm_, made.space = asymmetry, omega_norm, space
        return made

    @property
    def skew_fidelity_(self) -> SkewFidelity:
        if self.asymmetry_ is None:
            raise AttributeError("skew_fidelity_ belongs to the whole embedding, not to a part")
        return self.asymmetry_.fidelity(np.asarray(self), self.omega_norm_, find_space(self.space))

    def optimize(self, n_iter, inplace=False, propagate_exception=False, **params):
        """As in openTSNE; what it returns knows its fidelity, too."""
        moved = self if inplace else self._copied()
        return TSNEEmbedding.optimize(
            moved, n_iter, inplace=True, propagate_exception=propagate_exception, **params
        )

    def _copied(self) -> FinslerEmbedding:
        """Positions, settings and optimiser of its own, as openTSNE's ``optimize`` makes them."""
        made: Any = np.array(self).view(type(self))
        vars(made).update(vars(self))
        made.optimizer = self.optimizer.copy()
        made.gradient_descent_params = copy(self.gradient_descent_params)
        made.kl_divergence = None
        return made

    def __reduce__(self):
        make, arguments, state = super().__reduce__()
        return make, arguments, (state, {name: getattr(self, name) for name in OWN})

    def __setstate__(self, state):
        theirs, own = state
        super().__setstate__(theirs)
        vars(self).update(own)
