"""Finsler t-SNE as the paper describes it: principal components, a zero height, plain descent.

The settings are scikit-learn's, whose defaults the paper takes: momentum with gains, 250 of 1000
iterations with affinities times 12, a learning rate that follows from the number of points. The
gradient is that of the paper's proof (the line in its body is not a gradient), with the repulsion
by a tree instead of over all pairs.
"""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA

from finsler_ext.tsne.gradient import FinslerGradient

__all__ = ["lay_out", "start"]

EXAGGERATION, EARLY_STEPS, STEPS = 12.0, 250, 1000
EARLY_MOMENTUM, MOMENTUM = 0.5, 0.8
GAIN_UP, GAIN_DOWN, LEAST_GAIN = 0.2, 0.8, 0.01
# scikit-learn's least rate is 50 for the whole gradient; the gradient here is a quarter of it.
LEAST_RATE = 200.0
START_DEVIATION = 1e-4
THETA = 0.5


def start(X, dimension: int, height: bool) -> np.ndarray:
    """Principal components, the first with a deviation of 1e-4; the height, if any, is zero."""
    columns = dimension - 1 if height else dimension
    places = PCA(columns, svd_solver="randomized", random_state=0).fit_transform(X)
    places = places / places[:, 0].std() * START_DEVIATION
    if height:
        places = np.column_stack([places, np.zeros(len(places))])
    return np.ascontiguousarray(places, dtype=np.float64)


def lay_out(X, P, dimension: int, *, omega_norm: float, n_threads: int = 1) -> tuple:
    """The embedding of affinities P that sum to 1, and its divergence."""
    position = start(X, dimension, height=omega_norm > 0)
    rate = max(len(position) / EXAGGERATION, LEAST_RATE)
    gradient = FinslerGradient(omega_norm)
    options = {"dof": 1, "bh_params": {"theta": THETA}, "fft_params": {}}
    options["n_jobs"] = n_threads
    update, gains = np.zeros_like(position), np.ones_like(position)
    early = P * EXAGGERATION
    for step in range(STEPS):
        affinities, momentum = (early, EARLY_MOMENTUM) if step < EARLY_STEPS else (P, MOMENTUM)
        _, slope = gradient(position, affinities, **options)
        if step == EARLY_STEPS:
            update[:], gains[:] = 0.0, 1.0
        same_way = update * slope < 0.0
        gains = np.maximum(np.where(same_way, gains + GAIN_UP, gains * GAIN_DOWN), LEAST_GAIN)
        update = momentum * update - rate * gains * slope
        position = position + update
    divergence, _ = gradient(position, P, should_eval_error=True, **options)
    return position - position.mean(axis=0), float(divergence)
