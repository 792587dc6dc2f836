"""Generated data whose density or manifold is known.

The disk, the Swiss roll and the clusters are those of the Finsler manifold learning paper. Two
corrections: the disk leaves out radius 0, where all rays would coincide, and the clusters are
numbered by ⌊5c̃/q⌋ where the paper prints ⌊c̃/(5q)⌋, which would put every point in cluster 0.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from benchmarks.data.dataset import Dataset

__all__ = [
    "blobs",
    "clusters",
    "disk",
    "load_blobs",
    "load_clusters",
    "load_disk",
    "load_swiss_roll",
    "spiral_length",
    "swiss_roll",
]

N_RAYS = 20
N_BLOBS = 30
N_CLUSTERS = 5
CLUSTER_FEATURES = 10
# The quantile of Exp(1) that the five clusters divide into equal parts.
CLUSTER_QUANTILE = 0.99
# Largest variance of a cluster along an axis, and what keeps its covariance regular.
CLUSTER_VARIANCE = 0.1
CLUSTER_RIDGE = 1e-5


def disk(n: int) -> tuple[np.ndarray, np.ndarray]:
    """n points on 20 rays with radii 20/n, …, 1; returns points and radii."""
    angle = 2 * np.pi * np.arange(N_RAYS) / N_RAYS
    radius = np.arange(1, n // N_RAYS + 1) / (n / N_RAYS)
    r, a = (grid.ravel() for grid in np.meshgrid(radius, angle, indexing="ij"))
    return np.column_stack([r * np.cos(a), r * np.sin(a)]), r


def swiss_roll(n: int) -> tuple[np.ndarray, np.ndarray]:
    """A regular grid of ⌊2.5√n⌋ × ⌊0.4√n⌋ points, rolled up; returns points and (ũ, ṽ).

    x = (ũ cos ũ, ṽ, ũ sin ũ) with ũ = 3π(u + ½), ṽ = 20v and u, v in [0, 1].
    """
    u = np.linspace(0, 1, int(2.5 * np.sqrt(n)))
    v = np.linspace(0, 1, int(0.4 * np.sqrt(n)))
    u, v = (grid.ravel() for grid in np.meshgrid(3 * np.pi * (u + 0.5), 20 * v, indexing="ij"))
    return np.column_stack([u * np.cos(u), v, u * np.sin(u)]), np.column_stack([u, v])


def spiral_length(angle: np.ndarray) -> np.ndarray:
    """∫₀^ũ √(1 + t²) dt, the length of the spiral (t cos t, t sin t) from its centre."""
    return (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle)) / 2


def clusters(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Five Gaussian clusters of falling size; returns points and cluster numbers.

    c = min(⌊5c̃/q⌋, 4) with c̃ ~ Exp(1) and q = −ln(1 − 0.99); x ~ N(μ_c, Σ) with μ_c ~ U[0, 1]¹⁰
    and, for A ~ U[0, 1]^{10×10} and AAᵀ = BΛBᵀ, Σ = B·0.1·sigmoid(Λ)·Bᵀ + 10⁻⁵ I.
    """
    rng = np.random.default_rng(seed)
    quantile = -np.log(1 - CLUSTER_QUANTILE)
    drawn = np.floor(N_CLUSTERS * rng.exponential(size=n) / quantile)
    label = np.clip(drawn, 0, N_CLUSTERS - 1).astype(np.int64)
    centre = rng.uniform(size=(N_CLUSTERS, CLUSTER_FEATURES))
    A = rng.uniform(size=(CLUSTER_FEATURES, CLUSTER_FEATURES))
    spectrum, basis = np.linalg.eigh(A @ A.T)
    covariance = (basis * (CLUSTER_VARIANCE * expit(spectrum))) @ basis.T
    covariance += CLUSTER_RIDGE * np.eye(CLUSTER_FEATURES)
    # The Cholesky factor does not depend on the signs of the eigenvectors, which are LAPACK's.
    factor = np.linalg.cholesky(covariance)
    return centre[label] + rng.normal(size=(n, CLUSTER_FEATURES)) @ factor.T, label


def _blobs(n: int, n_features: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centre = 4 * rng.normal(size=(N_BLOBS, n_features))
    width = rng.uniform(0.3, 1.5, size=(n, 1))
    label = rng.integers(N_BLOBS, size=n)
    points = centre[label] + width * rng.normal(size=(n, n_features))
    return points.astype(np.float32), label, width[:, 0]


def blobs(n: int, n_features: int = 50, seed: int = 0) -> np.ndarray:
    """30 Gaussian blobs whose points have widths between 0.3 and 1.5."""
    return _blobs(n, n_features, seed)[0]


# ------------------------------------------------------------------ as data sets


def load_disk(size: int, seed: int) -> Dataset:
    if size < N_RAYS or size % N_RAYS:
        raise ValueError(f"The disk has {N_RAYS} rays: SIZE must be a multiple, got {size}.")
    points, radius = disk(size)
    rows = np.random.RandomState(seed).permutation(size)
    return Dataset("disk", points[rows], truth={"radius": radius[rows], "plane": points[rows]})


def load_swiss_roll(size: int, seed: int) -> Dataset:
    if int(0.4 * np.sqrt(size)) < 2:
        raise ValueError(f"The Swiss roll needs two rows across: SIZE must be ≥ 25, got {size}.")
    points, grid = swiss_roll(size)
    plane = np.column_stack([spiral_length(grid[:, 0]), grid[:, 1]])
    rows = np.random.RandomState(seed).permutation(len(points))
    return Dataset("swiss_roll", points[rows], truth={"plane": plane[rows]})


def load_clusters(size: int, seed: int) -> Dataset:
    return Dataset("clusters", *clusters(size, seed))


def load_blobs(size: int, seed: int) -> Dataset:
    points, label, width = _blobs(size, 50, seed)
    return Dataset("blobs", points, label, truth={"width": width})
