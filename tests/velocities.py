"""Cells that develop along branches, with noisy velocities: data whose times are known."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from sklearn.neighbors import NearestNeighbors

GENES = 30
# Of each branch: the branch at whose end it starts (None: a beginning), and how long it takes.
SHAPES = {
    "line": [(None, 1.0)],
    "fork": [(None, 0.5), (0, 0.5), (0, 0.5)],
    "uneven fork": [(None, 0.3), (0, 0.7), (0, 0.25)],
    "tree": [(None, 0.3), (0, 0.3), (0, 0.4), (1, 0.4), (1, 0.4)],
}


def developing_cells(shape: str, n: int, seed: int, noise: float = 1.0, crowding: float = 1.0):
    """Expression (n, GENES), velocity graph of cosines (n, n), and the time of each cell.

    Branches are curves in gene space. Velocities point along them, with noise ``noise`` times as
    long in all; ``crowding`` > 1 has more cells early in each branch, < 1 late.
    """
    rng = np.random.default_rng(seed)
    branches = SHAPES[shape]
    length = np.array([length for _, length in branches])
    ends, positions, headings, times = [], [], [], []
    counts = rng.multinomial(n, length / length.sum())
    for (parent, duration), count in zip(branches, counts, strict=True):
        start, begin = (np.zeros(GENES), 0.0) if parent is None else ends[parent]
        along, aside = np.linalg.qr(rng.normal(size=(GENES, 2)))[0].T
        share = rng.uniform(size=count) ** crowding

        def curve(s, along=along, aside=aside, start=start, duration=duration):
            bend = 0.3 * np.sin(np.pi * s)[:, None] * aside
            return start + 10 * duration * (s[:, None] * along + bend)

        heading = curve(share + 1e-3) - curve(share)
        positions.append(curve(share))
        headings.append(heading / np.linalg.norm(heading, axis=1, keepdims=True))
        times.append(begin + duration * share)
        ends.append((curve(np.ones(1))[0], begin + duration))
    X = np.concatenate(positions) + 0.12 * rng.normal(size=(n, GENES))
    V = np.concatenate(headings)
    V += noise * rng.normal(size=V.shape) / np.sqrt(GENES)
    return X, velocity_graph(X, V), np.concatenate(times)


def velocity_graph(X, V, n_neighbors: int = 30):
    """As scvelo: cosines between each cell's velocity and the ways to its neighbours."""
    n_neighbors = min(n_neighbors, len(X) - 1)
    near = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors(return_distance=False)
    way = X[near] - X[:, None]
    cosine = np.einsum("ijk,ik->ij", way, V)
    cosine /= np.linalg.norm(way, axis=2) * np.linalg.norm(V, axis=1)[:, None]
    row = np.repeat(np.arange(len(X)), n_neighbors)
    return scipy.sparse.csr_matrix((cosine.ravel(), (row, near.ravel())), shape=(len(X), len(X)))
