"""Finsler UMAP as the paper describes it, without what this project adds.

Directed memberships; a spectral start in one column less and a zero height; umap-learn's sampling
of edges, in the order of the rows, and its 500 epochs (200 beyond 10,000 points); the update rules
of the paper's theorem on Finsler UMAP. The height moves from the first epoch on, and nothing is
rotated afterwards.

A sampled edge i → j moves both ends along c^a_ij. What a negative k of the head i does, the text
leaves open. Its gradient has a term for either direction of a pair, (1 − p_ik) c^r_ik and
(1 − p_ki) c^r_ki; the trick of umap-learn, to which it refers, moves i by the first alone. Both
are here: ``two_sided`` moves i by the mean of the two, which keeps umap-learn's balance of
attraction and repulsion.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numba import njit
from umap.spectral import spectral_layout
from umap.umap_ import make_epochs_per_sample, noisy_scale_coords
from umap.utils import tau_rand_int

__all__ = ["default_epochs", "lay_out", "pair_gradient", "start"]

# As in umap-learn: a limit on every component of a step, what keeps repulsion finite, how often
# negatives are drawn, and the width of the start.
STEP_LIMIT = 4.0
SOFTENING = 1e-3
NEGATIVES = 5
EXTENT = 10.0


def default_epochs(n: int) -> int:
    """umap-learn's number of epochs."""
    return 500 if n <= 10_000 else 200


def start(X, P, dimension: int, random_state: np.random.RandomState) -> np.ndarray:
    """umap-learn's spectral start of the symmetrised graph in m − 1 columns, and a zero height."""
    product = P.multiply(P.T)
    symmetric = scipy.sparse.coo_matrix(P + P.T - product)
    places = spectral_layout(X, symmetric, dimension - 1, random_state)
    places = noisy_scale_coords(places, random_state, max_coord=EXTENT, noise=0.0001)
    low, high = places.min(axis=0), places.max(axis=0)
    places = EXTENT * (places - low) / np.where(high > low, high - low, 1.0)
    return np.column_stack([places, np.zeros(len(places))]).astype(np.float32)


def lay_out(
    X,
    P,
    dimension: int,
    *,
    omega_norm: float,
    a: float,
    b: float,
    two_sided: bool,
    seed: int,
    n_epochs: int | None = None,
) -> np.ndarray:
    """The embedding of directed memberships P, rows being sources."""
    random_state = np.random.RandomState(seed)
    n_epochs = default_epochs(P.shape[0]) if n_epochs is None else n_epochs
    position = start(X, P, dimension, random_state)
    edges = scipy.sparse.coo_matrix(P)
    kept = edges.data >= edges.data.max() / n_epochs
    head, tail = edges.row[kept].astype(np.int64), edges.col[kept].astype(np.int64)
    every = make_epochs_per_sample(edges.data[kept], n_epochs)
    state = random_state.randint(-(2**31) + 1, 2**31 - 1, 3).astype(np.int64)
    _descend(position, head, tail, every, n_epochs, omega_norm, a, b, two_sided, state)
    return position


@njit(cache=True)
def pair_gradient(here, there, omega_norm, a, b, attract, out):
    """Gradient of c^a or c^r of the pair here → there with respect to ``here``, into ``out``."""
    m = here.shape[0]
    square = 0.0
    for c in range(m):
        square += (here[c] - there[c]) ** 2
    d = np.sqrt(square)
    if d == 0.0:
        out[:] = 0.0
        return
    F = d + omega_norm * (there[m - 1] - here[m - 1])
    power = a * F ** (2.0 * b)
    if attract:
        slope = 2.0 * b * power / (F * (1.0 + power))
    else:
        slope = -2.0 * b * F / ((SOFTENING + F * F) * (1.0 + power))
    for c in range(m):
        out[c] = slope * (here[c] - there[c]) / d
    out[m - 1] -= slope * omega_norm


@njit(cache=True)
def _limited(step):
    return min(max(step, -STEP_LIMIT), STEP_LIMIT)


@njit(cache=True)
def _descend(position, head, tail, every, n_epochs, omega_norm, a, b, two_sided, state):
    """umap-learn's schedule: an edge is due every ``every`` epochs, five negatives with it."""
    n, m = position.shape
    due, negative_every = every.copy(), every / NEGATIVES
    negative_due = negative_every.copy()
    gradient, reverse = np.empty(m), np.empty(m)
    for epoch in range(n_epochs):
        rate = 1.0 - epoch / n_epochs
        for e in range(head.shape[0]):
            if due[e] > epoch:
                continue
            due[e] += every[e]
            i, j = head[e], tail[e]
            pair_gradient(position[i], position[j], omega_norm, a, b, True, gradient)
            for c in range(m):
                step = rate * _limited(gradient[c])
                position[i, c] -= step
                position[j, c] += step
            count = int((epoch - negative_due[e]) / negative_every[e])
            negative_due[e] += max(count, 0) * negative_every[e]
            for _ in range(count):
                k = tau_rand_int(state) % n
                if k == i:
                    continue
                pair_gradient(position[i], position[k], omega_norm, a, b, False, gradient)
                if two_sided:
                    # c^r_ki with respect to y_i: the same pair under the opposite drift
                    pair_gradient(position[i], position[k], -omega_norm, a, b, False, reverse)
                    for c in range(m):
                        gradient[c] = 0.5 * (gradient[c] + reverse[c])
                for c in range(m):
                    position[i, c] -= rate * _limited(gradient[c])
