"""Points and directed distances for the tests of FinslerMDS."""

import numpy as np
import pytest

from finsler_ext.geometry.randers import randers_distances

# Tiny data need not have a height worth reading.
IGNORED = [
    pytest.mark.filterwarnings("ignore:With omega_norm:UserWarning"),
    pytest.mark.filterwarnings("ignore:Much of the asymmetry:UserWarning"),
    pytest.mark.filterwarnings("ignore:n_neighbors=:UserWarning"),
]


def disk(n, seed=0):
    angle = 2 * np.pi * np.arange(20) / 20
    radius = np.arange(1, n // 20 + 1) / (n / 20)
    r, a = (grid.ravel() for grid in np.meshgrid(radius, angle, indexing="ij"))
    rows = np.random.default_rng(seed).permutation(len(r))
    return np.column_stack([r * np.cos(a), r * np.sin(a)])[rows], r[rows]


def drifted(n=80, omega=0.3, noise=0.0, seed=0, m=3):
    """Points and their directed distances in a Randers space."""
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(n, m)) * np.append(np.full(m - 1, 2.0), 1.0)
    return Y - Y.mean(axis=0), randers_distances(Y, omega) * (1 + noise * rng.random((n, n)))


def one_way_missing(D):
    """A third of the pairs unknown, one direction at a time."""
    D = D.copy()
    D[np.random.default_rng(1).random(D.shape) < 0.3] = np.nan
    np.fill_diagonal(D, 0)
    return D


def pairs_missing(D):
    """A third of the pairs unknown in both directions."""
    gone = np.triu(np.random.default_rng(2).random(D.shape) < 0.3, 1)
    D = D.copy()
    D[gone | gone.T] = np.nan
    return D
