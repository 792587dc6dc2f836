"""openTSNE's gradient descent, made safe: affinities survive whatever stops it."""

from __future__ import annotations

import numpy as np
from openTSNE.tsne import (
    OptimizationInterrupt,
    gradient_descent,
    kl_divergence_bh,
    kl_divergence_fft,
)
from tqdm.auto import tqdm

__all__ = ["FinslerDescent"]

# The KL divergence takes about as long as the gradient; the bar shows a recent one.
KL_EVERY = 25


class FinslerDescent(gradient_descent):
    """Momentum and gains as in openTSNE. Different are the following points.

    * Exaggeration multiplies P in place; P is put back also after an exception or Ctrl-C.
    * An embedding stopped by a callback carries the KL divergence of that moment.
    * ``verbose`` shows a progress bar with the KL divergence.
    * The Euclidean gradients of openTSNE are refused: they would undo the drift.
    """

    def __call__(
        self, embedding, P, n_iter, objective_function, exaggeration=None, verbose=False, **params
    ):
        if objective_function in (kl_divergence_bh, kl_divergence_fft):
            raise ValueError(
                "negative_gradient_method: the names known to openTSNE are Euclidean gradients. "
                "Pass a finsler_ext.layout.tsne.gradient.FinslerGradient, or set the method in "
                "FinslerTSNE(negative_gradient_method=…)."
            )
        kept = None if exaggeration in (None, 1) else P.data.copy()
        bar = tqdm(total=n_iter, disable=not verbose, desc=_title(exaggeration))
        try:
            return super().__call__(
                embedding,
                P,
                n_iter,
                _Watched(objective_function, bar, exaggeration or 1) if verbose
                else objective_function,
                exaggeration=exaggeration,
                verbose=False,
                **params,
            )  # fmt: skip
        except OptimizationInterrupt as stop:
            stop.final_embedding.kl_divergence = stop.error
            raise
        finally:
            bar.close()
            if kept is not None:
                P.data[:] = kept


def _title(exaggeration) -> str:
    return "t-SNE" if exaggeration in (None, 1) else f"t-SNE, exaggeration {exaggeration:g}"


class _Watched:
    """An objective that tells a progress bar how far it has come."""

    def __init__(self, objective, bar, exaggeration):
        self.objective, self.bar, self.exaggeration = objective, bar, exaggeration

    def __call__(self, embedding, P, should_eval_error=False, **params):
        due = self.bar.n % KL_EVERY == KL_EVERY - 1 and self.bar.n < self.bar.total
        error, gradient = self.objective(
            embedding, P, should_eval_error=should_eval_error or due, **params
        )
        if due:
            divergence = error / self.exaggeration - np.log(self.exaggeration)
            self.bar.set_postfix(KL=f"{divergence:.4f}", refresh=False)
        if self.bar.n < self.bar.total:
            self.bar.update()
        return error, gradient
