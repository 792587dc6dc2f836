"""Poincaré maps: an undirected peer that shows hierarchies by hyperbolic geometry.

Written from the formulas as they are commonly stated for the method (Klimovskaia, Lopez-Paz,
Bottou and Nickel, "Poincaré maps for analyzing complex hierarchies in single-cell data", Nature
Communications 11, 2020), without looking at the reference code; the Methods section of the
article was not at hand. What they leave open, and what was chosen here, is listed in
`poincare_map`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
from numba import njit
from sklearn.utils import check_random_state

from benchmarks.paper.methods.poincare_ball import (
    expmap,
    projected,
    riemannian_factor,
    tangent_norm,
    transported,
)
from benchmarks.paper.methods.poincare_kernel import symmetric_divergence
from finsler_ext._threads import RowPool, one_blas_thread, resolve_n_jobs

__all__ = ["PoincareResult", "forest_accessibilities", "poincare_map"]

# An N × N matrix of float64 and one of float32, at most, are 1.2 GB at this size.
MAX_POINTS = 10_000
# Rounding leaves the inverse uncertain by about 1e-16, so smaller accessibilities mean nothing;
# the divergence of q from p needs them positive.
FLOOR = 1e-12
# Half width of the cube the points start in, as in Poincaré embeddings (Nickel and Kiela, 2017).
START_WIDTH = 1e-3
# Decay of Adam's two running means, and what keeps the first step from dividing by zero.
MEAN_DECAY, SQUARE_DECAY, ADAM_EPSILON = 0.9, 0.99, 1e-12
# Share of the epochs in which points find their angles at a tenth of the learning rate. Loss
# after 300 epochs, medians of 3 seeds, without and with it: a tree of 316 points 0.52 and 0.15,
# 900 digits 1.10 and 0.54. A learning rate of 0.1 instead of 0.2 gives 0.40 and 0.59 with it.
BURN_IN_SHARE, BURN_IN_FACTOR = 0.2, 0.1


class PoincareResult(NamedTuple):
    """A Poincaré map.

    embedding : array of shape (n, n_components), inside the unit ball
    loss_history : mean symmetric divergence per point, before every epoch and at the end
    """

    embedding: np.ndarray
    loss_history: np.ndarray


def poincare_map(
    neighbor_indices,
    neighbor_distances,
    *,
    n_components=2,
    gamma=2.0,
    sigma=1.0,
    forest=1.0,
    n_epochs=300,
    learning_rate=0.2,
    random_state=None,
    n_jobs=None,
) -> PoincareResult:
    """Embed a neighbour graph in the Poincaré ball.

    Minimises, over positions y_i in the unit ball,

        (1/N) Σ_i [ KL(p_i ‖ q_i) + KL(q_i ‖ p_i) ],
        p = (I + forest · L)⁻¹,       q_ij = exp(−d_ij/gamma) / Σ_k exp(−d_ik/gamma),
        d_ij = arcosh(1 + 2‖y_i − y_j‖² / ((1 − ‖y_i‖²)(1 − ‖y_j‖²))),

    with L the Laplacian of the undirected neighbour graph, whose edges weigh
    exp(−r²/(2 sigma²)) at the distance r. Needs about 12 N² bytes: 1.2 GB for 10,000 points.

    Parameters
    ----------
    neighbor_indices, neighbor_distances : arrays of shape (n, k)
        Neighbours of every point. A point may be listed among its own neighbours, first or
        anywhere, or not at all: such entries are dropped, as are negative indices.
    n_components : int, default=2
    gamma : float, default=2
        Temperature of the softmax in the ball.
    sigma : float, default=1
        Width of the Gaussian kernel, in units of the median distance to a neighbour.
    forest : float, default=1
        Weight of the Laplacian in the relative forest accessibilities; 1 is the textbook form.
    n_epochs : int, default=300
        Steps, all of them over all pairs.
    learning_rate : float, default=0.2
        Longest hyperbolic step of a point in one epoch, roughly; falls to 0 by a cosine, and is
        a tenth of it in the first fifth of the epochs.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads; the result does not depend on them.

    Returns
    -------
    PoincareResult

    Notes
    -----
    Choices where the formulas leave room:

    - The graph joins i and j if either is among the neighbours of the other; where both list
      the pair, the smaller distance counts. Neighbours are the caller's; so is the metric.
    - ``sigma`` is relative to the median neighbour distance: in the units of the data a width
      of 1 means nothing for data that was not scaled to it.
    - p includes the point itself, as the rows of (I + L)⁻¹ sum to 1 only with their diagonal,
      and so does q, with d_ii = 0. The best possible distances are then gamma times the
      logarithmic forest distances ½ ln(p_ii p_jj / p_ij²).
    - Accessibilities below 1e-12 are raised to it and rows divided by their sums, so that parts
      of the graph without any path between them stay at a finite distance.
    - The divergence is the sum of both directions, not half of it; reported per point.
    - Whole-batch Riemannian Adam (Bécigneul and Ganea, 2019: one second moment per point,
      momentum carried along by parallel transport), steps by the exponential map, in place of
      stochastic gradients over mini-batches. A slow first fifth stands for the burn-in.
    - The start is uniform in a cube of half width 1e-3; points are kept at radius ≤ 1 − 1e-5.
    - The loss does not see isometries, so the map stays where the descent leaves it; moving a
      known root to the centre is `benchmarks.paper.methods.poincare_ball.translated`.
    - Sums over pairs run in float32 (blocks of 512, added in float64), all else in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from finsler_ext.neighbors.exact import exact_neighbors
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> found = exact_neighbors(X, 10)
    >>> result = poincare_map(found.indices, found.distances, n_epochs=50, random_state=0)
    >>> result.embedding.shape, bool(result.loss_history[-1] < result.loss_history[0])
    ((60, 2), True)
    """
    _check(n_components=n_components, n_epochs=n_epochs)
    for name, value in (("gamma", gamma), ("learning_rate", learning_rate)):
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value!r}.")
    p = forest_accessibilities(neighbor_indices, neighbor_distances, sigma=sigma, forest=forest)
    p = p.astype(np.float32)
    rng = check_random_state(random_state)
    start = rng.uniform(-START_WIDTH, START_WIDTH, size=(len(p), n_components))
    with RowPool(len(p), resolve_n_jobs(n_jobs), heavy=True) as pool:
        return _descend(start, p, np.log(p), gamma, n_epochs, learning_rate, pool)


def forest_accessibilities(
    neighbor_indices, neighbor_distances, *, sigma=1.0, forest=1.0
) -> np.ndarray:
    """p = (I + forest · L)⁻¹, floored, rows summing to 1: the chance that i and j share a tree.

    Parameters as in `poincare_map`. Symmetric up to the division by the row sums, which are 1
    beforehand but for the floor.
    """
    for name, value in (("sigma", sigma), ("forest", forest)):
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value!r}.")
    distances = np.asarray(neighbor_distances, dtype=np.float64)
    weights = _edge_weights(np.asarray(neighbor_indices), distances, sigma)
    system = (-forest * weights).toarray(order="F")
    np.fill_diagonal(system, 1.0 + forest * np.asarray(weights.sum(axis=1)).ravel())
    with one_blas_thread():
        factor, failed = scipy.linalg.lapack.dpotrf(system, lower=1, overwrite_a=1)
        if not failed:
            inverse, failed = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed:  # diagonally dominant, so only by numbers that are not finite
        raise ValueError("neighbor_distances: the graph's Laplacian could not be inverted.")
    _mirror(inverse)
    np.maximum(inverse, FLOOR, out=inverse)
    inverse /= inverse.sum(axis=0)  # of columns, which become rows
    return inverse.T


def _descend(position, p, log_p, gamma, n_epochs, learning_rate, pool) -> PoincareResult:
    momentum = np.zeros_like(position)
    square = np.zeros(len(position))
    history = []
    for epoch in range(1, n_epochs + 1):
        loss, gradient = symmetric_divergence(position, p, log_p, gamma, pool)
        history.append(loss)
        slope = gradient * riemannian_factor(position)[:, None]
        momentum = MEAN_DECAY * momentum + (1 - MEAN_DECAY) * slope
        square = SQUARE_DECAY * square + (1 - SQUARE_DECAY) * tangent_norm(position, slope) ** 2
        rate = learning_rate * _pace((epoch - 1) / n_epochs)
        size = np.sqrt(square / (1 - SQUARE_DECAY**epoch)) + ADAM_EPSILON
        move = -rate / (1 - MEAN_DECAY**epoch) * momentum / size[:, None]
        before, position = position, projected(expmap(position, move))
        momentum = transported(before, position, momentum)
    history.append(symmetric_divergence(position, p, log_p, gamma, pool)[0])
    return PoincareResult(position, np.array(history))


def _pace(progress: float) -> float:
    """Share of the learning rate after this share of the epochs."""
    if progress < BURN_IN_SHARE:
        return BURN_IN_FACTOR
    return 0.5 * (1 + float(np.cos(np.pi * progress)))


def _check(**counts) -> None:
    for name, value in counts.items():
        if isinstance(value, bool) or int(value) != value or value < 1:
            raise ValueError(f"{name} must be an integer ≥ 1, got {value!r}.")


def _edge_weights(indices, distances, sigma) -> scipy.sparse.csr_array:
    """exp(−r²/(2 sigma²)) on the pairs that either end lists, r in units of the median."""
    if indices.ndim != 2 or indices.shape != distances.shape:
        raise ValueError(
            "neighbor_indices and neighbor_distances must have the same shape (n, k), got "
            f"{indices.shape} and {distances.shape}."
        )
    n = len(indices)
    if n > MAX_POINTS:
        raise ValueError(
            f"neighbor_indices: Poincaré maps compare all pairs of points and take about 12 N² "
            f"bytes, so at most {MAX_POINTS} points are accepted; got {n}. Embed a sample."
        )
    source = np.repeat(np.arange(n), indices.shape[1])
    target = indices.ravel()
    kept = (target >= 0) & (target != source)
    source, target, length = source[kept], target[kept], distances.ravel()[kept]
    if not len(target) or target.max() >= n:
        raise ValueError(f"neighbor_indices must name other points, 0 to {n - 1}.")
    if not (np.isfinite(length).all() and (length >= 0).all()):
        raise ValueError("neighbor_distances must be finite and not negative.")
    unit = np.median(length)
    unit = unit if unit > 0 else max(length.mean(), np.finfo(np.float64).tiny)
    weight = np.exp(-0.5 * np.square(length / (unit * sigma)))
    shape = (n, n)
    directed = scipy.sparse.coo_array((weight, (source, target)), shape=shape).tocsr()
    return directed.maximum(directed.T)


@njit(cache=True)
def _mirror(A):
    """Copy the lower triangle to the upper one."""
    for i in range(A.shape[0]):
        for j in range(i):
            A[j, i] = A[i, j]
