"""finsler_smacof and finsler_mds_gd: directed dissimilarities in, a layout of low stress out.

Public names of `finsler_ext.mds.estimator`.
"""

from __future__ import annotations

from sklearn.utils import check_random_state

from finsler_ext._threads import resolve_n_jobs
from finsler_ext.geometry import find_space
from finsler_ext.mds.distances import checked_dissimilarities
from finsler_ext.mds.layout import StressResult, solve
from finsler_ext.mds.problem import GD_EPOCHS, SMACOF_ITERATIONS, Settings

__all__ = ["finsler_mds_gd", "finsler_smacof"]


def finsler_smacof(
    D,
    *,
    n_components=3,
    omega_norm=0.5,
    weights=None,
    init="finsler",
    n_init=4,
    max_iter=SMACOF_ITERATIONS,
    eps=1e-6,
    accelerate=True,
    missing="ignore",
    scaling="ratio",
    skew_weight=1.0,
    random_state=None,
    n_jobs=None,
    verbose=False,
) -> StressResult:
    """Embed directed dissimilarities by majorisation of the directed stress.

    Minimises, over positions Y in R^m with the drift ω = omega_norm · e_m,

        L(Y) = Σ_{i≠j} w_ij (F_ij − D_ij)²,   F_ij = ‖y_j − y_i‖ + ω · (y_j − y_i).

    Every iteration is one pass over the pairs, and the stress never rises.

    Parameters
    ----------
    D : whatever `finsler_ext.read_directed` reads
        D[i, j] is the dissimilarity from i to j; nan, inf or absent pairs get weight 0. float32
        stays float32 and takes half the memory and time.
    n_components : int, default=3
        All columns: the last one is the height.
    omega_norm : float in [0, 1) or "auto", default=0.5
        Length of the drift; 0 is SMACOF on (D + Dᵀ)/2. "auto" searches for the drift with the
        lowest stress.
    weights : array of shape (n, n) or "adjacent", optional
        w_ij may differ from w_ji; then steps are shorter. "adjacent" as in `FinslerMDS.fit`.
    init : {"finsler", "isomap", "random"} or array of m or m − 1 columns, default="finsler"
        "finsler" is classical MDS of (D + Dᵀ)/2 with its last axis turned to where the row
        means of D − Dᵀ point; "isomap" is classical MDS in m − 1 columns and a zero height.
    n_init : int, default=4
        Number of starts with ``init="random"``; the best counts.
    max_iter : int, default=300
    eps : float, default=1e-6
        Stop when the stress falls by less than this share of itself.
    accelerate : bool, default=True
        Momentum, as long as the stress falls with it.
    missing : {"auto", "ignore", "geodesic"}, default="ignore"
        "geodesic" replaces D by the shortest directed paths over the known pairs, "auto" does
        so where all known distances are equal.
    scaling : {"ratio", "interval", "ordinal", "auto"}, default="ratio"
        F ≈ D, F ≈ D − a with the best a ≥ 0, or F ≈ f(D) with the best rising f (equal D stay
        equal, Σ w f(D)² = Σ w D²). "auto" holds out pairs of at most 300 points and takes the
        simplest that predicts them well.
    skew_weight : float, "auto" or None, default=1
        Weight of the skew part of the stress: 1 for the sum above, "auto" for two noise levels;
        see `FinslerMDS`.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads; the result does not depend on them.
    verbose : bool
        Show a progress bar.

    Returns
    -------
    StressResult

    Examples
    --------
    >>> import numpy as np
    >>> from finsler_ext.geometry.randers import randers_distances
    >>> Y = np.random.default_rng(0).normal(size=(50, 3))
    >>> result = finsler_smacof(randers_distances(Y, 0.3), omega_norm=0.3, eps=1e-9)
    >>> bool(result.normalized_stress < 1e-6)
    True
    """
    directed = checked_dissimilarities(D, weights, missing=missing)
    settings = Settings(
        n_components=n_components,
        omega_norm=omega_norm,
        method="smacof",
        init=init,
        n_init=n_init,
        max_iter=max_iter,
        eps=eps,
        accelerate=accelerate,
        n_threads=resolve_n_jobs(n_jobs),
        verbose=verbose,
        scaling=scaling,
        skew_weight=skew_weight,
    )
    return solve(directed, settings, check_random_state(random_state))


def finsler_mds_gd(
    D,
    *,
    n_components=3,
    omega_norm=0.5,
    weights=None,
    init="isomap",
    n_init=4,
    max_iter=GD_EPOCHS,
    learning_rate=None,
    weight_decay=1e-5,
    space="randers",
    missing="ignore",
    scaling="ratio",
    skew_weight=1.0,
    random_state=None,
    n_jobs=None,
    verbose=False,
) -> StressResult:
    """Embed directed dissimilarities by gradient descent of the directed stress.

    Minimises the same stress as `finsler_smacof`, with any weights, by Adam with cosine
    annealing. Nothing keeps its stress from rising on the way; prefer `finsler_smacof`.

    Parameters
    ----------
    D, n_components, omega_norm, init, n_init, missing, scaling, skew_weight, random_state, n_jobs,
    verbose
        As in `finsler_smacof`.
    weights : array of shape (n, n), optional
        w_ij need not equal w_ji.
    max_iter : int, default=100
        Epochs, over which the learning rate falls to zero.
    learning_rate : float, optional
        Longest step of a coordinate in one epoch, in the units of D; by default a tenth of the
        root mean square of D.
    weight_decay : float, default=1e-5
    space : {"randers", "matsumoto"} or Space, default="randers"

    Returns
    -------
    StressResult

    Examples
    --------
    >>> import numpy as np
    >>> from finsler_ext.geometry.randers import randers_distances
    >>> Y = np.random.default_rng(0).normal(size=(50, 3))
    >>> result = finsler_mds_gd(randers_distances(Y, 0.3), omega_norm=0.3)
    >>> result.embedding.shape, len(result.stress_history)
    ((50, 3), 100)
    """
    directed = checked_dissimilarities(D, weights, missing=missing)
    settings = Settings(
        n_components=n_components,
        omega_norm=omega_norm,
        method="gd",
        init=init,
        n_init=n_init,
        max_iter=max_iter,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        space=find_space(space),
        n_threads=resolve_n_jobs(n_jobs),
        verbose=verbose,
        scaling=scaling,
        skew_weight=skew_weight,
    )
    return solve(directed, settings, check_random_state(random_state))
