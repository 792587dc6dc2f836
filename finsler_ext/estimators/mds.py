"""FinslerMDS: multidimensional scaling that keeps the direction.

Standalone: neither umap-learn nor openTSNE is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from finsler_ext._collections import fit_collection, is_collection, transform_collection
from finsler_ext._threads import resolve_n_jobs
from finsler_ext._warn import warn
from finsler_ext.asymmetry import Asymmetry
from finsler_ext.construct.directed_distances import directed_distances
from finsler_ext.construct.directed_input import check_range, named_output, opened, plain
from finsler_ext.construct.input import (
    LENGTHS,
    as_stored,
    canonical,
    check_whole,
    large_offset,
    readable,
    without_extremes,
)
from finsler_ext.construct.symmetry import is_symmetric
from finsler_ext.estimators._base import FinslerEstimator
from finsler_ext.estimators._mds.columns import COLUMNS
from finsler_ext.estimators._mds.functions import finsler_mds_gd, finsler_smacof
from finsler_ext.estimators._mds.input import (
    checked_dissimilarities,
)
from finsler_ext.estimators._mds.new_points import constructed_distances, given_distances
from finsler_ext.estimators._mds.pivots import ALL_PAIRS, PivotInput
from finsler_ext.estimators._mds.problem import (
    GD_EPOCHS,
    SMACOF_ITERATIONS,
    Settings,
    check_settings,
    solver_of,
)
from finsler_ext.estimators._mds.solve import StressResult, solve, solve_columns
from finsler_ext.io import SaveMixin
from finsler_ext.layout.stress.placement import place_points
from finsler_ext.layout.stress.scaling import Transformation

__all__ = ["FinslerMDS", "StressResult", "finsler_mds_gd", "finsler_smacof"]


class Checked(NamedTuple):
    """Checked rows, and after construction directed dissimilarities; weights; settings."""

    data: Any
    weights: Any
    settings: Settings
    random_state: np.random.RandomState


class FinslerMDS(
    FinslerEstimator, SaveMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Multidimensional scaling of directed distances in a canonical Randers space.

    Minimises, over positions Y in R^m with the drift ω = omega_norm · e_m,

        L(Y) = Σ_{i≠j} w_ij (F_ij − D_ij)²,   F_ij = ‖y_j − y_i‖ + ω · (y_j − y_i),

    where D_ij is the directed distance from i to j: given (travel times, a digraph), or for
    ordinary data the shortest path along neighbours with every step measured in the scale of
    its source. The first columns of the embedding are the map; the last, the height, shows
    the asymmetry: what is costly to reach lies high.

    Parameters
    ----------
    n_components : int or "auto", default=3
        All columns: two for the map and one for the height. Distances over a plane with a drift
        in it need two: the height is then one of the axes of the map. "auto" fits two and three
        and takes three if they leave less than a third of the stress or show a quarter more of
        the asymmetry; see ``column_choice_``.
    omega_norm : float in [0, 1) or "auto", default=0.5
        Length of the drift. 0 is Euclidean MDS of (D + Dᵀ)/2. "auto" searches for the drift
        with the lowest stress (at most five fits, on at most 2000 of the points). That is the
        right one for data directed by nature; for ordinary data a larger drift may leave less
        of the height to distances, at a higher stress. It warns if one column fewer fits as
        well: larger drifts then do, too, and the smallest is taken.
    metric : str or callable, default="euclidean"
        A metric of scikit-learn's, or "precomputed": X then holds directed dissimilarities,
        X[i, j] from i to j: a matrix (nan, inf or absent where unknown), a frame, a graph, an
        edge list; see `finsler_ext.read_directed`.
    metric_params : dict, optional
    n_neighbors : int, default=15
        Neighbours of each point, itself not counted. Not used if "precomputed".
    source_scale : {"mean", "none", "kth", "umap", "perplexity"}, default="mean"
        Scale of the sources: mean distance to the neighbours, none at all, distance to the
        last of them, UMAP's or t-SNE's σ. Scaling stretches dense regions on the map; "none"
        keeps distances and most of the map's proportions.
    local_scale : array of shape (n_samples,), optional
        Positive scale of each point as a source, in place of one fitted to the neighbours; only
        ratios matter.
    space : {"randers", "matsumoto"} or Space, default="randers"
        How the embedding measures distances; see `finsler_ext.spaces`. In the Matsumoto space,
        F = ‖u‖²/(‖u‖ − ω u_m), ``omega_norm`` is below ½.
    method : {"auto", "smacof", "gd"}, default="auto"
        Majorisation, whose stress never rises, or gradient descent. "auto" majorises where the
        space allows it, as "randers" does and "matsumoto" does not.
    init : {"finsler", "isomap", "random"} or array of m or m − 1 columns, default="finsler"
    n_init : int, default=4
        Number of starts with ``init="random"``.
    max_iter : int, optional
        300 iterations of majorisation or 100 epochs of gradient descent by default.
    eps : float, default=1e-6
        Majorisation stops when the stress falls by less than this share of itself.
    learning_rate : float, optional
        Of the gradient descent, in the units of D.
    missing : {"auto", "ignore", "geodesic"}, default="auto"
        With "precomputed": unknown pairs are left out, or D is replaced by shortest directed
        paths over the known pairs (what they do not reach is left out). "auto" takes paths
        where all known distances are equal, as in a graph without lengths. A sparse graph of more
        than 5000 nodes is embedded along paths to and from 100 pivots and along its edges,
        unless "ignore" is given.
    scaling : {"ratio", "interval", "ordinal", "auto"}, default="ratio"
        What the distances of the layout stand for: D itself, D − a with the best a ≥ 0, or f(D)
        with the best rising f. Hop counts and other distances of which all near pairs have the
        same share a constant and need "interval". "auto" holds out pairs of at most 300
        points and takes the simplest scaling that predicts them well; see ``scaling_choice_``.
    random_state : int, RandomState or None
    n_jobs : int, default=-1
        Threads, -1 for all; the result does not depend on them.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        Map columns first, height last; centred.
    stress_ : float
    normalized_stress_ : float
        Divided by Σ w D².
    stress_history_ : array of shape (n_iterations,)
    n_iter_ : int
    omega_norm_ : float
    drift_choice_ : DriftSearch or None
        What "auto" tried, and the stress of one column fewer.
    column_choice_ : ColumnChoice
        Only with n_components="auto": the choice, its reason, and both fits.
    transformation_ : Transformation
        What the distances stand for: ``kind``, ``constant`` (a), and ``disparities(D)``.
    scaling_choice_ : ScalingChoice or None
        What scaling="auto" tried.
    dissimilarity_matrix_ : array of shape (n_samples, n_samples)
        The directed D, nan where unknown; of a graph of more than 5000 nodes a sparse matrix of
        the distances to and from the pivots.
    node_names_ : array of shape (n_samples,) or None
        Names of the points, where directed data has any.
    local_scale_ : array of shape (n_samples,) or None
        Scale of each source, with geometric mean 1; None if "precomputed".
    asymmetry_ : Asymmetry
        What the height is to show: where it comes from, and on which pairs.
    skew_fidelity_ : SkewFidelity
        How faithfully the height shows the asymmetry of the data.
    density_height_ : float
        Spearman correlation between height and log local scale; nan if "precomputed".
    gradient_share_ : float
        How much of the skew part of D (sum of squares over pairs known both ways) any height can
        express; the rest is cyclic or noise. nan if D is symmetric.

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
        source_scale="mean",
        local_scale=None,
        method="auto",
        init="finsler",
        n_init=4,
        max_iter=None,
        eps=1e-6,
        learning_rate=None,
        missing="auto",
        scaling="ratio",
        random_state=None,
        n_jobs=-1,
        verbose=False,
        space="randers",
    ):
        self.n_components = n_components
        self.omega_norm = omega_norm
        self.metric = metric
        self.metric_params = metric_params
        self.n_neighbors = n_neighbors
        self.source_scale = source_scale
        self.local_scale = local_scale
        self.method = method
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.eps = eps
        self.learning_rate = learning_rate
        self.missing = missing
        self.scaling = scaling
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.space = space

    def fit(self, X, y=None, *, weights=None):
        """Embed X.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features); or, if
            ``metric="precomputed"``, whatever `finsler_ext.read_directed` reads
        y : ignored
        weights : array of shape (n_samples, n_samples) or "adjacent", optional
            Weight of every ordered pair in the stress; w_ij may differ from w_ji. "adjacent" is
            for digraphs whose direction matters: the pairs with an edge have a third of all
            weight, and the way against an edge without a way back is twice as long as the edge.
            With omega_norm=0.9 heights then order the ends of edges well.
        """
        if is_collection(X):
            return fit_collection(self, X, weights=weights)
        self._fit(X, weights=weights)
        return self

    def _validate(self, X, *, weights) -> Checked:
        if self.n_components != "auto":
            check_whole("n_components", self.n_components)
        space = self._space()
        method = solver_of(self.method, space)
        max_iter = self.max_iter
        if max_iter is None:
            max_iter = GD_EPOCHS if method == "gd" else SMACOF_ITERATIONS
        settings = Settings(
            n_components=max(COLUMNS) if self._chooses_columns() else self.n_components,
            omega_norm=self.omega_norm,
            method=method,
            init=self.init,
            n_init=self.n_init,
            max_iter=max_iter,
            eps=self.eps,
            learning_rate=self.learning_rate,
            n_threads=resolve_n_jobs(self.n_jobs),
            verbose=self.verbose,
            space=space,
            scaling=self.scaling,
        )
        check_settings(settings)
        if isinstance(self.local_scale, str):
            warn(
                f"local_scale={self.local_scale!r} is source_scale={self.local_scale!r} now; "
                "local_scale is an array, as in FinslerUMAP and FinslerTSNE.",
                FutureWarning,
            )
        data = opened(X, precomputed=self._is_precomputed())
        X = self._validated(data.X, reset=True)
        data.name_points(self)
        return Checked(X, weights, settings, check_random_state(self.random_state))

    def _construct(self, checked: Checked) -> Checked:
        """Directed dissimilarities of the training points; remembers what transform needs."""
        X, weights, settings, random_state = checked
        self._pivots = None
        if self._is_precomputed():
            self._known = self._X = self.local_scale_ = None
            if self._needs_pivots(X, weights):
                graph = PivotInput(X, random_state)
                self._pivots = graph.remembered()
                self.dissimilarity_matrix_ = graph.known()
                return checked._replace(data=graph)
            directed = checked_dissimilarities(X, weights, missing=self.missing)
        else:
            if isinstance(weights, str):
                raise ValueError(
                    f"weights={weights!r} is for graphs, which need metric='precomputed'."
                )
            known = self._shortest_paths(X, settings.n_threads)
            self._known, self._X = known, X
            self.local_scale_ = known.scale.values
            directed = checked_dissimilarities(known.distances, weights)
        # Unknown pairs must not read as zeros.
        self.dissimilarity_matrix_ = directed.with_nan()
        return checked._replace(data=directed)

    def _start(self, problem: Checked) -> Callable:
        """The solver: it makes starts together with the stress they are for."""
        return solve_columns if self._chooses_columns() else solve

    def _lay_out(self, problem: Checked, solver) -> StressResult:
        result = solver(problem.data, problem.settings, problem.random_state)
        if self._chooses_columns():
            result, self.column_choice_ = result
        return result

    def fit_transform(self, X, y=None, *, weights=None):
        """Fit and return the embedding."""
        self.fit(X, y, weights=weights)
        return self.transform(X) if is_collection(X) else named_output(self, self.embedding_)

    def transform(self, X, *, incoming=None, local_scale=None):
        """Places for new points, by the same stress against the fixed training points.

        Parameters
        ----------
        X : array of shape (n_new, n_features); or, if ``metric="precomputed"``, of shape
            (n_new, n_samples) dissimilarities from the new points to the training points
        incoming : array of shape (n_new, n_samples), optional
            If "precomputed": dissimilarities from the training points to the new ones,
            ``incoming[i, j]`` from j to i; nan where unknown. Needed unless those of the training
            points are symmetric: then X stands for both directions.
        local_scale : array of shape (n_new,), optional
            Scale of the new points, needed if the model was fitted with ``local_scale``.
        """
        check_is_fitted(self)
        if is_collection(X):
            return transform_collection(self, X, incoming=incoming, local_scale=local_scale)
        X = self._validated(X, reset=False)
        fixed = self.embedding_
        if self._is_precomputed():
            if local_scale is not None:
                raise ValueError("local_scale is for features; metric='precomputed' has no scales.")
            there, back = given_distances(self, X, incoming)
            pivots = getattr(self, "_pivots", None)
            fixed = fixed if pivots is None else fixed[pivots.nodes]
        else:
            if incoming is not None:
                raise ValueError(
                    "incoming is for metric='precomputed'; other metrics give it themselves."
                )
            there, back = constructed_distances(self, X, local_scale)
        # models of version 0.1 have none
        scaled = getattr(self, "transformation_", Transformation()).disparities
        placed = place_points(
            fixed,
            scaled(there),
            scaled(back),
            self.omega_norm_,
            resolve_n_jobs(self.n_jobs),
            self._space(),
        )
        return placed.astype(self.embedding_.dtype, copy=False)

    def _chooses_columns(self) -> bool:
        return isinstance(self.n_components, str) and self.n_components == "auto"

    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _validated(self, X, *, reset: bool):
        pairs = self._is_precomputed()
        X = readable(X, missing=np.nan if pairs else None)
        if scipy.sparse.issparse(X) or pairs:
            X = plain(X)
        if pairs:
            check_range(X)
        X = validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            order="C",  # sums depend on it
            accept_sparse="csr",
            # Unknown pairs of a directed matrix are nan or inf; others are checked with it.
            ensure_all_finite=not pairs,
        )
        if pairs:
            return X
        X = canonical(without_extremes(X, single=True, new=not reset))
        if not reset:
            X = as_stored(X, self._X)
        elif isinstance(self.metric, str) and self.metric in LENGTHS:
            self._offset = large_offset(X)
        else:
            self._offset = None
        return X if self._offset is None else X - self._offset

    def _needs_pivots(self, X, weights) -> bool:
        """Whether X is a graph of more nodes than all pairs can be embedded of."""
        if not scipy.sparse.issparse(X) or X.shape[0] <= ALL_PAIRS or self.missing == "ignore":
            return False
        for name, given in (("weights", weights), ("init", self.init)):
            if given is not None and not (name == "init" and isinstance(given, str)):
                raise ValueError(
                    f"{name} is not available for graphs of more than {ALL_PAIRS} nodes, which are "
                    "embedded by pivots; leave it out, or pass missing='ignore'."
                )
        return True

    def _shortest_paths(self, X, n_threads):
        n = X.shape[0]
        if n < 3:
            raise ValueError(f"FinslerMDS needs at least 3 points, got n_samples = {n}.")
        k = self.n_neighbors
        if isinstance(k, bool) or int(k) != k or k < 1:
            raise ValueError(f"n_neighbors must be an integer ≥ 1, got {k!r}.")
        if k >= n:
            warn(f"n_neighbors={k} is not smaller than the number of points, {n}; using {n - 1}.")
        if _all_rows_equal(X):
            raise ValueError("All rows of X are equal: there are no distances to embed.")
        return directed_distances(
            X,
            min(int(k), n - 1),
            metric=self.metric,
            metric_kwds=self.metric_params,
            local_scale=self._source_scale(),
            dtype=X.dtype,
            n_threads=n_threads,
        )

    def _asymmetry(self, problem: Checked) -> Asymmetry:
        """What the height is to show: the scale of the sources, if it varies, or distances."""
        known, scale, D = self._known, self.local_scale_, self.dissimilarity_matrix_
        if known is not None and scale is not None and np.ptp(scale) > 0:
            given = not isinstance(self._source_scale(), str)
            return Asymmetry.of_scale(known.graph, scale, given=given)
        if self._pivots is None and is_symmetric(D):
            return Asymmetry.none()
        return Asymmetry.of_distances(D, absolute=True)

    def _source_scale(self):
        """The scale of the sources: an array, or the name of a rule."""
        return self.source_scale if self.local_scale is None else self.local_scale

    def _score(self, problem: Checked, result: StressResult) -> None:
        """Say how much of the asymmetry the height carries."""
        self.embedding_ = Y = result.embedding.astype(problem.data.dtype, copy=False)
        self.stress_ = result.stress
        self.normalized_stress_ = result.normalized_stress
        self.stress_history_ = result.stress_history
        self.n_iter_ = result.n_iter
        self.omega_norm_ = result.omega_norm
        self.drift_choice_ = result.drift_search
        self.gradient_share_ = result.gradient_share
        self.transformation_ = result.transformation
        self.scaling_choice_ = result.scaling_choice
        self._n_features_out = Y.shape[1]
        if self.asymmetry_.is_directed:  # F stands for the scaled distances
            self.asymmetry_ = self._scaled_asymmetry()
        if self._chooses_columns():
            self._say(f"n_components='auto': {self.column_choice_.reason}")
        if self.scaling_choice_ is not None:
            self._say(f"scaling='auto': {self.scaling_choice_.reason}")
        found = self.drift_choice_
        if found is not None and found.ambiguous:
            fewer = Y.shape[1] - 1
            warn(
                f"omega_norm='auto' found {self.omega_norm_:.3g}, but {fewer} columns fit as well "
                f"as {Y.shape[1]} (stress {found.narrower_stress:.2g} and "
                f"{self.normalized_stress_:.2g}), and with a column to spare larger drifts fit as "
                f"well, too. Use n_components={fewer}, or 'auto'."
            )
        self._judge(Y, directed=True)

    @property
    def drift_search_(self):
        """The name of ``drift_choice_`` before version 0.2."""
        warn("drift_search_ is drift_choice_ now, as in the other estimators.", FutureWarning)
        return self.drift_choice_

    def _scaled_asymmetry(self) -> Asymmetry:
        """That of D̂; of a graph embedded by pivots, D holds known pairs only."""
        D, scaled = self.dissimilarity_matrix_, self.transformation_.disparities
        if not scipy.sparse.issparse(D):
            return Asymmetry.of_distances(scaled(D), absolute=True)
        if not np.isfinite(self.gradient_share_):
            return Asymmetry.none()
        D = D.copy()
        D.data = scaled(D.data)
        return Asymmetry.of_distances(D, absolute=True)

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
    return bool((X[:1] == X).all())
