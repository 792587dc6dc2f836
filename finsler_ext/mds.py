"""FinslerMDS: multidimensional scaling that keeps the direction.

Standalone: neither umap-learn nor openTSNE is imported.
"""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from finsler_ext._mds_input import (
    ROUNDING,
    DirectedInput,
    checked_dissimilarities,
    is_symmetric,
)
from finsler_ext._mds_solve import Settings, StressResult, solve
from finsler_ext._threads import resolve_n_jobs
from finsler_ext.dissimilarity.directed_distances import directed_distances, distances_of_new
from finsler_ext.dissimilarity.readers import is_digraph, read_digraph
from finsler_ext.layout.stress_placement import place_points
from finsler_ext.metrics import density_height, skew_fidelity

__all__ = ["FinslerMDS", "StressResult", "finsler_mds_gd", "finsler_smacof"]

# Below this share of rightly ordered pairs the height is not worth reading.
MEANINGFUL_SIGN = 0.6
# With less of the skew part expressible by heights than this, most of it turns in circles.
MOSTLY_CYCLIC = 0.5
GD_EPOCHS, SMACOF_ITERATIONS = 100, 300


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
    D : array, sparse matrix or networkx graph
        D[i, j] is the dissimilarity from i to j; nan or absent pairs get weight 0. float32
        stays float32 and takes half the memory and time.
    n_components : int, default=3
        All columns: the last one is the height.
    omega_norm : float in [0, 1) or "auto", default=0.5
        Length of the drift; 0 is SMACOF on (D + Dᵀ)/2. "auto" searches for the drift with the
        lowest stress.
    weights : array of shape (n, n), optional
        Symmetric. Asymmetric weights need `finsler_mds_gd`.
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
    missing : {"ignore", "geodesic"}, default="ignore"
        "geodesic" replaces D by the shortest directed paths over the known pairs.
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
    >>> from finsler_ext.randers import randers_distances
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
    missing="ignore",
    random_state=None,
    n_jobs=None,
    verbose=False,
) -> StressResult:
    """Embed directed dissimilarities by gradient descent of the directed stress.

    Minimises the same stress as `finsler_smacof`, with any weights, by Adam with cosine
    annealing. Nothing keeps its stress from rising on the way; prefer `finsler_smacof` where
    weights are symmetric.

    Parameters
    ----------
    D, n_components, omega_norm, init, n_init, missing, random_state, n_jobs, verbose
        As in `finsler_smacof`.
    weights : array of shape (n, n), optional
        w_ij need not equal w_ji.
    max_iter : int, default=100
        Epochs, over which the learning rate falls to zero.
    learning_rate : float, optional
        Longest step of a coordinate in one epoch, in the units of D; by default a tenth of the
        root mean square of D.
    weight_decay : float, default=1e-5

    Returns
    -------
    StressResult

    Examples
    --------
    >>> import numpy as np
    >>> from finsler_ext.randers import randers_distances
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
        n_threads=resolve_n_jobs(n_jobs),
        verbose=verbose,
    )
    return solve(directed, settings, check_random_state(random_state))


class FinslerMDS(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Multidimensional scaling of directed distances in a canonical Randers space.

    Minimises, over positions Y in R^m with the drift ω = omega_norm · e_m,

        L(Y) = Σ_{i≠j} w_ij (F_ij − D_ij)²,   F_ij = ‖y_j − y_i‖ + ω · (y_j − y_i),

    where D_ij is the directed distance from i to j: given (travel times, a digraph), or for
    ordinary data the shortest path along neighbours with every step measured in the scale of
    its source. The first columns of the embedding are the map; the last, the height, shows
    the asymmetry: what is costly to reach lies high.

    Parameters
    ----------
    n_components : int, default=3
        All columns: two for the map and one for the height.
    omega_norm : float in [0, 1) or "auto", default=0.5
        Length of the drift. 0 is Euclidean MDS of (D + Dᵀ)/2. "auto" searches for the drift
        with the lowest stress: right for directed data; for ordinary data it tends to a small
        one, at which the height is one more map column.
    metric : str or callable, default="euclidean"
        A metric of scikit-learn's, or "precomputed": X is then a directed matrix (dense, or
        sparse, or a networkx graph), X[i, j] being the dissimilarity from i to j, nan or
        absent where unknown.
    metric_params : dict, optional
    n_neighbors : int, default=15
        Neighbours of each point, itself not counted. Not used if "precomputed".
    local_scale : {"mean", "none", "kth", "umap", "perplexity"} or array, default="mean"
        Scale of the sources: mean distance to the neighbours, none at all, distance to the
        last of them, UMAP's or t-SNE's σ, or a positive value per point. Scaling stretches
        dense regions on the map; "none" keeps distances and most of the map's proportions.
    method : {"smacof", "gd"}, default="smacof"
        Majorisation, or gradient descent, which takes asymmetric weights too.
    init : {"finsler", "isomap", "random"} or array of m or m − 1 columns, default="finsler"
    n_init : int, default=4
        Number of starts with ``init="random"``.
    max_iter : int, optional
        300 iterations of majorisation or 100 epochs of gradient descent by default.
    eps : float, default=1e-6
        Majorisation stops when the stress falls by less than this share of itself.
    learning_rate : float, optional
        Of the gradient descent, in the units of D.
    missing : {"ignore", "geodesic"}, default="ignore"
        With "precomputed": unknown pairs are left out, or D is completed along shortest paths.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads; the result does not depend on them.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        Map columns first, height last; centred.
    stress_ : float
    normalized_stress_ : float
        Divided by Σ w D².
    stress_history_ : array of shape (n_iter_,)
    n_iter_ : int
    omega_norm_ : float
    drift_search_ : DriftSearch or None
        What "auto" tried.
    dissimilarity_matrix_ : array of shape (n_samples, n_samples)
        The directed D.
    local_scale_ : array of shape (n_samples,) or None
        Scale of each source, with geometric mean 1; None if "precomputed".
    skew_fidelity_ : SkewFidelity
        How faithfully the height shows the asymmetry of the data.
    density_height_ : float
        Spearman correlation between height and log local scale; nan if "precomputed".
    gradient_share_ : float
        How much of the skew part of D (sum of squares) any height can express; the rest turns
        in circles. nan if D is symmetric.

    Examples
    --------
    >>> from finsler_ext import FinslerMDS
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> model = FinslerMDS(omega_norm=0.5).fit(X)
    >>> model.embedding_.shape
    (150, 3)
    """

    def __init__(
        self,
        n_components=3,
        *,
        omega_norm=0.5,
        metric="euclidean",
        metric_params=None,
        n_neighbors=15,
        local_scale="mean",
        method="smacof",
        init="finsler",
        n_init=4,
        max_iter=None,
        eps=1e-6,
        learning_rate=None,
        missing="ignore",
        random_state=None,
        n_jobs=None,
        verbose=False,
    ):
        self.n_components = n_components
        self.omega_norm = omega_norm
        self.metric = metric
        self.metric_params = metric_params
        self.n_neighbors = n_neighbors
        self.local_scale = local_scale
        self.method = method
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.eps = eps
        self.learning_rate = learning_rate
        self.missing = missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X, y=None, *, weights=None):
        """Embed X.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features); or, if
            ``metric="precomputed"``, directed dissimilarities or a networkx graph
        y : ignored
        weights : array of shape (n_samples, n_samples), optional
            Weight of every pair in the stress.
        """
        n_threads = resolve_n_jobs(self.n_jobs)
        directed = self._directed_input(X, weights, n_threads)
        max_iter = self.max_iter
        if max_iter is None:
            max_iter = GD_EPOCHS if self.method == "gd" else SMACOF_ITERATIONS
        settings = Settings(
            n_components=self.n_components,
            omega_norm=self.omega_norm,
            method=self.method,
            init=self.init,
            n_init=self.n_init,
            max_iter=max_iter,
            eps=self.eps,
            learning_rate=self.learning_rate,
            n_threads=n_threads,
            verbose=self.verbose,
        )
        result = solve(directed, settings, check_random_state(self.random_state))
        self.embedding_ = result.embedding.astype(directed.distances.dtype, copy=False)
        self.stress_ = result.stress
        self.normalized_stress_ = result.normalized_stress
        self.stress_history_ = result.stress_history
        self.n_iter_ = result.n_iter
        self.omega_norm_ = result.omega_norm
        self.drift_search_ = result.drift_search
        self.gradient_share_ = result.gradient_share
        self._n_features_out = self.embedding_.shape[1]
        self._score()
        return self

    def fit_transform(self, X, y=None, *, weights=None):
        """Fit and return the embedding."""
        return self.fit(X, y, weights=weights).embedding_

    def transform(self, X, *, incoming=None, local_scale=None):
        """Places for new points, by the same stress against the fixed training points.

        Parameters
        ----------
        X : array of shape (n_new, n_features); or, if ``metric="precomputed"``, of shape
            (n_new, n_samples) dissimilarities from the new points to the training points
        incoming : array of shape (n_samples, n_new), optional
            If "precomputed": dissimilarities from the training points to the new ones. Left
            out of the stress where nan or not given, unless those of the training points are
            symmetric: then X stands for both directions.
        local_scale : array of shape (n_new,), optional
            Scale of the new points, needed if the model's ``local_scale`` is an array.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        if self._is_precomputed():
            there, back = self._given_distances(X, incoming)
        else:
            there, back = self._own_distances(X, local_scale)
        placed = place_points(
            self.embedding_, there, back, self.omega_norm_, resolve_n_jobs(self.n_jobs)
        )
        return placed.astype(self.embedding_.dtype, copy=False)

    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _validated(self, X, *, reset: bool):
        return validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            accept_sparse="csr",
            # Unknown pairs of a directed matrix are nan; other values are checked with it.
            ensure_all_finite=not self._is_precomputed(),
        )

    def _directed_input(self, X, weights, n_threads) -> DirectedInput:
        """Directed dissimilarities of the training points; remembers what transform needs."""
        if self._is_precomputed() and is_digraph(X):
            X = read_digraph(X).distances
        X = self._validated(X, reset=True)
        if self._is_precomputed():
            directed = checked_dissimilarities(X, weights, missing=self.missing)
            self.local_scale_ = None
        else:
            known = self._construct(X, n_threads)
            self._known, self._X = known, X
            self.local_scale_ = known.scale.values
            directed = checked_dissimilarities(known.distances, weights)
        # Unknown pairs must not read as zeros.
        self.dissimilarity_matrix_ = directed.with_nan()
        return directed

    def _construct(self, X, n_threads):
        n = X.shape[0]
        if n < 3:
            raise ValueError(f"FinslerMDS needs at least 3 points, got n_samples = {n}.")
        k = self.n_neighbors
        if isinstance(k, bool) or int(k) != k or k < 1:
            raise ValueError(f"n_neighbors must be an integer ≥ 1, got {k!r}.")
        if k >= n:
            warnings.warn(
                f"n_neighbors={k} is not smaller than the number of points, {n}; using {n - 1}.",
                stacklevel=4,
            )
        if _all_rows_equal(X):
            raise ValueError("All rows of X are equal: there are no distances to embed.")
        return directed_distances(
            X,
            min(int(k), n - 1),
            metric=self.metric,
            metric_kwds=self.metric_params,
            local_scale=self.local_scale,
            dtype=X.dtype,
            n_threads=n_threads,
        )

    def _given_distances(self, X, incoming):
        if scipy.sparse.issparse(X):
            there = np.full(X.shape, np.nan)
            entries = X.tocoo()
            there[entries.coords] = entries.data
        else:
            there = np.array(X, dtype=np.float64)
        if incoming is None:
            symmetric = is_symmetric(self.dissimilarity_matrix_, ROUNDING)
            back = there.copy() if symmetric else np.full_like(there, np.nan)
        else:
            back = np.array(incoming, dtype=np.float64).T
            if back.shape != there.shape:
                raise ValueError(
                    f"incoming must have shape {there.shape[::-1]} (training points, new points), "
                    f"got {back.shape[::-1]}."
                )
        known = np.isfinite(there) | np.isfinite(back)
        if not known.any(axis=1).all():
            row = int(np.flatnonzero(~known.any(axis=1))[0])
            raise ValueError(f"New point {row} has no finite dissimilarity to place it by.")
        if (there < 0).any() or (back < 0).any():
            raise ValueError("Dissimilarities must not be negative.")
        there[np.isinf(there)], back[np.isinf(back)] = np.nan, np.nan
        return there, back

    def _own_distances(self, X, local_scale):
        new_scale = None
        if not isinstance(self.local_scale, str):
            if local_scale is None:
                raise ValueError(
                    "local_scale is an array, so new points need theirs: pass "
                    "transform(X, local_scale=...), in the same units."
                )
            given = np.asarray(self.local_scale, dtype=np.float64)
            level = np.exp(np.log(given).mean())
            new_scale = np.asarray(local_scale, dtype=np.float64) / level
            if new_scale.shape != (X.shape[0],) or not np.all(new_scale > 0):
                raise ValueError("local_scale must have a positive entry for every new point.")
        return distances_of_new(
            X,
            self._X,
            self._known,
            metric=self.metric,
            metric_kwds=self.metric_params,
            local_scale=self.local_scale,
            new_scale=new_scale,
        )

    def _score(self) -> None:
        """Say how much of the asymmetry the height carries."""
        Y, D = self.embedding_, self.dissimilarity_matrix_
        varied = self.local_scale_ is not None and np.ptp(self.local_scale_) > 0
        if varied:
            self.skew_fidelity_ = skew_fidelity(
                Y, graph=self._known.graph, local_scale=self.local_scale_
            )
        else:
            self.skew_fidelity_ = skew_fidelity(Y, distances=D, omega_norm=self.omega_norm_)
        self.density_height_ = density_height(Y, self.local_scale_) if varied else float("nan")
        if self.verbose:
            print(self.skew_fidelity_)
        if self.gradient_share_ < MOSTLY_CYCLIC:
            warnings.warn(
                f"Most of the asymmetry is cyclic: heights can express only "
                f"{self.gradient_share_:.0%} of it (gradient_share_), whatever the drift. The "
                "rest goes round in circles, which no drift can show.",
                stacklevel=3,
            )
        sign = self.skew_fidelity_.sign
        if self.omega_norm_ > 0 and sign < MEANINGFUL_SIGN:
            advice = ", or use a larger omega_norm such as 0.5" if self.omega_norm_ < 0.5 else ""
            warnings.warn(
                f"With omega_norm={self.omega_norm_:g} the height says next to nothing about the "
                f"asymmetry of the data: it orders {sign:.0%} of the pairs rightly, 50% is "
                f"chance. Read it as one more map column{advice}.",
                stacklevel=3,
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.allow_nan = self._is_precomputed()
        tags.input_tags.positive_only = self._is_precomputed()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _all_rows_equal(X) -> bool:
    if scipy.sparse.issparse(X):
        return abs(X[1:] - X[np.zeros(X.shape[0] - 1, dtype=np.intp)]).max() == 0
    return bool((X == X[:1]).all())
