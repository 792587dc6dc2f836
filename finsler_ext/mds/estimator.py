"""FinslerMDS: multidimensional scaling that keeps the direction.

Standalone: neither umap-learn nor openTSNE is imported.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from finsler_ext import schema
from finsler_ext._messages import warn
from finsler_ext._threads import plain_interrupt, resolve_n_jobs
from finsler_ext.asymmetry import Asymmetry, is_symmetric
from finsler_ext.base import (
    FinslerEstimator,
    check_drift_of,
    fit_collection,
    is_collection,
    scores,
    transform_collection,
)
from finsler_ext.directed.data import DirectedData
from finsler_ext.directed.digraph import strength_skews
from finsler_ext.directed.read import (
    as_matrix,
    check_node_names,
    check_range,
    check_row_names,
    named_output,
    unmask,
)
from finsler_ext.io import SaveMixin
from finsler_ext.mds.descent import (
    GD_EPOCHS,
    SETTINGS,
    SMACOF_ITERATIONS,
    Settings,
    check_settings,
)
from finsler_ext.mds.distances import (
    MISSING,
    DirectedInput,
    checked_dissimilarities,
    digraph_strengths,
    warn_of_edges,
)
from finsler_ext.mds.drift import COLUMNS
from finsler_ext.mds.layout import (
    StressResult,
    finsler_mds_gd,
    finsler_smacof,
    solve,
    warn_of_parts,
)
from finsler_ext.mds.pivots import ALL_PAIRS, PivotInput
from finsler_ext.mds.transform import constructed_distances, given_distances, place_points
from finsler_ext.neighbors.geodesics import directed_distances
from finsler_ext.scales import SCALES, source_scale
from finsler_ext.validation import (
    LENGTHS,
    as_stored,
    canonical,
    large_offset,
    readable,
    without_extremes,
)

__all__ = ["FinslerMDS", "StressResult", "finsler_mds_gd", "finsler_smacof"]


# What each parameter may be; `fit` and `finsler_ext.load` refuse anything else.
PARAMETERS = SETTINGS | {
    "n_components": schema.WIDTH | schema.one_of("auto"),
    "max_iter": schema.NONE | SETTINGS["max_iter"],
    "metric": schema.TEXT | schema.CALLABLE,
    "metric_params": schema.METRIC_OPTIONS,
    "n_neighbors": schema.whole("[1, inf)"),
    "source_scale": schema.one_of(*SCALES),
    "local_scale": schema.SCALE | schema.TEXT,
    "missing": schema.one_of(*MISSING),
    "random_state": schema.SEED,
    "n_jobs": schema.JOBS,
    "verbose": schema.VERBOSE,
    "space": schema.SPACE,
    "ridge": schema.RIDGE,
    "output": schema.one_of("all", "map"),
}
DENSE = schema.array("f4 f8", "n n", "[0, inf]", nan=True)
# Attributes that a result has without the underscore.
COPIED = (
    "stress", "normalized_stress", "stress_history", "n_iter", "omega_norm", "gradient_share",
    "transformation", "scaling_choice", "skew_weight",
)  # fmt: skip
# Attributes of a fitted model, as files hold them.
FITTED = scores("n") | {
    "_n_features_out": schema.whole("[1, inf)", size="m"),
    "embedding_": schema.array("f4 f8", "n m", nan=True),
    "dissimilarity_matrix_": DENSE | schema.sparse("f4 f8", "n n", "[0, inf)"),
    "stress_": schema.number("[0, inf)"),
    "normalized_stress_": schema.number("[0, inf)"),
    "stress_history_": schema.array("f8", "i", "[0, inf)"),
    "n_iter_": schema.whole("[0, inf)"),
    "drift_choice_": schema.NONE | schema.part("DriftSearch"),
    "column_choice_": schema.maybe(schema.part("ColumnChoice")),
    "scaling_choice_": schema.NONE | schema.part("ScalingChoice"),
    "transformation_": schema.part("Transformation"),
    "skew_weight_": schema.number("(0, inf)"),
    "_X": schema.NONE | schema.array("f4 f8", "n d") | schema.sparse("f4 f8", "n d"),
    "_offset": schema.maybe(schema.NONE | schema.array("f4 f8", "d")),
    "_known": schema.NONE | schema.part("DirectedDistances", n="n"),
    "_pivots": schema.NONE | schema.part("Pivots", n="n"),
    "_fitted_params": schema.maybe(schema.known_settings(PARAMETERS)),
}


def check_fitted(state: dict) -> None:
    """What must hold between the attributes of a model that is read from a file."""
    fitted = {**state, **state.get("_fitted_params", {})}
    check_drift_of(fitted)
    if (fitted["metric"] == "precomputed") != (state["_X"] is None):
        raise ValueError("FinslerMDS._X does not fit its metric")
    unplaced = np.isnan(state["embedding_"])
    if (unplaced.any(axis=1) != unplaced.all(axis=1)).any():
        raise ValueError("FinslerMDS.embedding_ has points of which some columns are nan")
    given = fitted["local_scale"]
    if isinstance(given, str):
        raise ValueError("FinslerMDS.local_scale is a word")
    if state["_known"] is not None and given is not None:
        scale = state["_known"].scale.values
        made = source_scale(given, np.empty((len(scale), 0))).values
        if not np.allclose(made, scale, rtol=1e-6, atol=0):
            raise ValueError("FinslerMDS.local_scale is not that of its distances")


class Problem(NamedTuple):
    """Directed dissimilarities to embed.

    paths : shortest paths along neighbours that they are made of; None if "precomputed"
    measured : what was given, before shortest paths
    strengths : of the edges of a digraph, which make its potential; None of distances
    """

    directed: DirectedInput | PivotInput
    paths: Any
    measured: Any
    strengths: Any
    settings: Settings
    random_state: np.random.RandomState


@schema.saved({**PARAMETERS, **FITTED}, relations=check_fitted)
class FinslerMDS(FinslerEstimator, SaveMixin, TransformerMixin, BaseEstimator):
    """Multidimensional scaling of directed distances, with a height that shows the direction.

    Minimises, over positions Y in R^m with the drift ω = omega_norm · e_m,

        L(Y) = Σ_{i≠j} w_ij (F_ij − D_ij)²,   F_ij = ‖y_j − y_i‖ + ω · (y_j − y_i),

    where D_ij is the directed distance from i to j: given (travel times, a digraph), or for
    ordinary data the shortest path along neighbours with every step measured in the scale of
    its source. F is the distance of a canonical Randers space: going up costs more than coming
    down. The first columns of the embedding are the map; the last, the height, shows the
    asymmetry of D: what is costly to reach lies high.

    Parameters
    ----------
    n_components : int or "auto", default=3
        All columns: two for the map and one for the height. Distances over a plane with a drift
        in it need two: the height is then one of the axes of the map. "auto" fits two and three
        and takes three if they leave less than a third of the stress or show a quarter more of
        the asymmetry; see ``column_choice_``.
    omega_norm : float in [0, 1) or "auto", default=0.5
        Length of the drift: how much more it costs to go up than to come down. 0 is Euclidean MDS
        of (D + Dᵀ)/2. "auto" searches for the drift with the lowest stress (at most five fits, on
        at most 1000 of the points). That is the right one for directed data; for rows of features
        a larger drift may leave less of the height to distances, at a higher stress. It warns if
        one column fewer fits as well: then larger drifts fit as well, and the smallest is taken.
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
        How the embedding measures distances; see `finsler_ext.geometry`. In the Matsumoto space,
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
        where all known distances are equal, as in a graph without lengths. If some of its edges
        have no reverse, or most of those of a graph of strengths, direction is what counts: the
        weights are then "adjacent" (see `fit`). A sparse graph of more than 5000 nodes is embedded
        along paths to and from 100 pivots and along its edges, unless "ignore" is given.
    scaling : {"ratio", "interval", "ordinal", "auto"}, default="ratio"
        What the distances of the layout stand for: D itself, D − a with the best a ≥ 0, or f(D)
        with the best rising f. In hop counts all near pairs have the same distance: such data
        has a constant in common and needs "interval". "auto" holds out pairs of at most 300
        points and takes the simplest scaling that predicts them well; see ``scaling_choice_``.
    skew_weight : float, "auto" or None, default=None
        Weight λ of the skew part of the stress,

            L = Σ w (d_ij − (D_ij + D_ji)/2)² + λ Σ w (ω·(y_j − y_i) − (D_ij − D_ji)/2)².

        1 is the sum above, which is mostly symmetric and spends the height on it. "auto" gives each
        part a noise level of its own and finds the layout of the highest likelihood: the skew part
        then weighs as much more as it is more precise, and never less. None is "auto" from three
        columns on and 1 in two, where the height is an axis of the map and plain stress finds the
        drift of travel times. With ``scaling="ordinal"``, weights that differ between the
        directions, and spaces other than "randers", "auto" and None are 1.
    ridge : float or "auto", default=0.0
        For digraphs: shrinks ``potential_`` towards zero where nodes have few edges; a multiple of
        the mean degree, or "auto" as in `finsler_ext.metrics.potential`. It does not change the
        height.
    output : {"all", "map"}, default="all"
        What `transform` and `fit_transform` return: all columns, or those of the map alone, one
        fewer than ``n_components``. ``embedding_`` has all columns.
    random_state : int, RandomState or None
    n_jobs : int, default=-1
        Threads, -1 for all; the result does not depend on them.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        Map columns first, height last; centred. nan for points without a known pair. Groups of
        points without a known pair between them lie side by side.
    stress_ : float
        L at λ = 1.
    normalized_stress_ : float
        Divided by Σ w D².
    stress_history_ : array of shape (n_iterations,)
        What was minimised: L, or with two noise levels their likelihood in the units of L, which is
        L where both are equal and lower otherwise.
    skew_weight_ : float
        λ, given or estimated.
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
        The asymmetry of the data: its kind, and the pairs it is known for.
    potential_ : array of shape (n_samples,)
        One number per point that follows from the data alone, whatever the drift and the map: for
        a digraph its SpringRank (edges lead down), for directed distances how costly a point is
        to reach, for other data the log local scale. nan for isolated points.
    potential_component_ : array of shape (n_samples,)
        Potentials compare among points with the same number here; nothing connects the others.
        -1 if isolated.
    evidence_ : Evidence
        Whether the asymmetry of the data is more than chance, and how reliable it is;
        ``evidence_.verdict`` says so in words.
    height_error_, height_unsure_ : arrays of shape (n_samples,)
        Error of every height (± 1.645 errors are a 90 % interval), and whether the data leaves
        open if a point is above or below its neighbours.
    skew_fidelity_ : SkewFidelity
        How well the height fits the asymmetry it was made from. This is no evidence, because
        noise is fitted as well.
    density_height_ : float
        Spearman correlation between height and log local scale; nan if "precomputed".
    gradient_share_ : float
        Share of the skew part of D (sum of squares over pairs known both ways) that any height
        can express; the rest is cyclic or noise. nan if D is symmetric.

    Examples
    --------
    >>> from finsler_ext import FinslerMDS
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> model = FinslerMDS(omega_norm=0.5).fit(X)
    >>> model.embedding_.shape
    (150, 3)
    """

    _parameters = PARAMETERS

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
        skew_weight=None,
        ridge=0.0,
        output="all",
    ):
        given = dict(locals())
        for name in self._get_param_names():
            setattr(self, name, given[name])

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

    def _validate(self, X, *, weights) -> tuple:
        space = self._space()
        given = {name: getattr(self, name) for name in SETTINGS}
        if self.method == "auto":
            given["method"] = "gd" if space.majoriser is None else "smacof"
        if self.max_iter is None:
            given["max_iter"] = GD_EPOCHS if given["method"] == "gd" else SMACOF_ITERATIONS
        if isinstance(self.n_components, str):
            given |= {"n_components": max(COLUMNS), "choose_columns": True}
        threads = resolve_n_jobs(self.n_jobs)
        settings = Settings(**given, n_threads=threads, verbose=self.verbose, space=space)
        check_settings(settings)
        if isinstance(self.local_scale, str):
            raise ValueError(
                f"local_scale must be an array, got {self.local_scale!r}; rules have names in "
                "source_scale."
            )
        data = as_matrix(X, precomputed=self._is_precomputed)
        X = self._validated(data.X, reset=True)
        data.name_points(self)
        return X, data.strengths, weights, settings, check_random_state(self.random_state)

    def _construct(self, checked: tuple) -> Problem:
        """Directed dissimilarities of the training points; remembers what transform needs."""
        X, strengths, weights, settings, random_state = checked
        measured = DirectedData(X, strengths=strengths)
        self._known = self._X = self.local_scale_ = self._pivots = None
        if not self._is_precomputed:
            if isinstance(weights, str):
                raise ValueError(
                    f"weights={weights!r} is for graphs, which need metric='precomputed'."
                )
            graph, known = None, self._shortest_paths(X, settings.n_threads)
            self._known, self._X, self.local_scale_ = known, X, known.scale.values
            directed = checked_dissimilarities(known.distances, weights)
        else:
            known, graph = None, digraph_strengths(X, strengths, weights)
            if self._needs_pivots(X, weights):
                pivots = PivotInput(X, random_state)
                self._pivots, self.dissimilarity_matrix_ = pivots.remembered(), pivots.known()
                return Problem(pivots, None, measured, graph, settings, random_state)
            given = strengths is not None
            directed = checked_dissimilarities(
                measured, weights, missing=self.missing, strengths=given
            )
        # Unknown pairs must not read as zeros.
        self.dissimilarity_matrix_ = directed.with_nan()
        return Problem(directed, known, measured, graph, settings, random_state)

    def _start(self, problem: Problem) -> None:
        """Starts are made together with the stress they are for."""

    def _lay_out(self, problem: Problem, start: None) -> StressResult:
        return solve(problem.directed, problem.settings, problem.random_state)

    def fit_transform(self, X, y=None, *, weights=None):
        """Fit and return the embedding."""
        self.fit(X, y, weights=weights)
        if is_collection(X):
            return self.transform(X)
        return named_output(self, self._returned(self.embedding_))

    @plain_interrupt()
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
        model = self._with_fitted_params()
        check_row_names(X, incoming)
        X = model._validated(X, reset=False)
        distances = given_distances if model._is_precomputed else constructed_distances
        fixed, there, back = distances(model, X, incoming, local_scale)
        scaled, threads = model.transformation_.disparities, resolve_n_jobs(model.n_jobs)
        given = model.omega_norm_, threads, model._space(), model.skew_weight_
        placed = place_points(fixed, scaled(there), scaled(back), *given)
        return self._returned(placed.astype(model.embedding_.dtype, copy=False))

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _validated(self, X, *, reset: bool):
        pairs = self._is_precomputed
        X = readable(X, missing=np.nan if pairs else None)
        if scipy.sparse.issparse(X) or pairs:
            X = unmask(X)
        if pairs:
            if not reset:
                check_node_names(self, X)
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

    def _asymmetry(self, problem: Problem) -> Asymmetry:
        """What the height is to show: the scale of the sources, if it varies, or distances."""
        known, D = problem.paths, self.dissimilarity_matrix_
        if known is not None and np.ptp(known.scale.values) > 0:
            given = not isinstance(self._source_scale(), str)
            return Asymmetry.of_scale(known.graph, known.scale.values, given=given)
        if not scipy.sparse.issparse(D) and is_symmetric(D):
            return Asymmetry.none()
        return Asymmetry.of_distances(D, strengths=problem.strengths, absolute=True)

    def _measured(self, problem: Problem):
        """Neighbours of rows of features, or the directed data before shortest paths."""
        if problem.paths is None:
            return problem.measured
        near = problem.paths.neighbors
        return near.indices[:, 1:], near.distances[:, 1:]

    def _source_scale(self):
        """The scale of the sources: an array, or the name of a rule."""
        return self.source_scale if self.local_scale is None else self.local_scale

    def _score(self, problem: Problem, result: StressResult) -> None:
        """Say how much of the asymmetry the height carries."""
        self.embedding_ = Y = result.embedding.astype(problem.directed.dtype, copy=False)
        for name in COPIED:
            setattr(self, f"{name}_", getattr(result, name))
        self.drift_choice_ = result.drift_search
        self._n_features_out = Y.shape[1]
        if self.asymmetry_.is_directed:  # F stands for the scaled distances
            self.asymmetry_ = self._scaled_asymmetry(problem.strengths)
        if result.column_choice is not None:
            self.column_choice_ = result.column_choice
            self._say(f"n_components='auto': {result.column_choice.reason}")
        if self.scaling_choice_ is not None:
            self._say(f"scaling='auto': {self.scaling_choice_.reason}")
        warn_of_parts(result, by_pivots=self._pivots is not None)
        if self._is_precomputed:
            warn_of_edges(problem.measured.distances, problem.strengths)
        found = self.drift_choice_
        if found is not None and found.ambiguous:
            fewer = Y.shape[1] - 1
            warn(
                f"omega_norm='auto' found {self.omega_norm_:.3g}, but {fewer} columns fit as well "
                f"as {Y.shape[1]} (stress {found.narrower_stress:.2g} and "
                f"{self.normalized_stress_:.2g}), and with a column to spare larger drifts fit as "
                f"well, too. Use n_components={fewer}, or 'auto'."
            )
        strengths, measured = problem.measured.strengths, None
        if strengths is not None:  # shares of what leaves a source say how much leaves it, too
            measured = Asymmetry.of_distances(strength_skews(strengths))
        self._judge(Y, directed=True, measured=measured)

    def _scaled_asymmetry(self, strengths) -> Asymmetry:
        """That of D̂; of a graph embedded by pivots, D holds known pairs only."""
        D, scaled = self.dissimilarity_matrix_, self.transformation_.disparities
        if not scipy.sparse.issparse(D):
            D = scaled(D)
        elif np.isfinite(self.gradient_share_):
            D = D.copy()
            D.data = scaled(D.data)
        else:
            return Asymmetry.none()
        return Asymmetry.of_distances(D, strengths=strengths, absolute=True)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        tags.input_tags.allow_nan = self._is_precomputed
        tags.input_tags.positive_only = self._is_precomputed
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _all_rows_equal(X) -> bool:
    if scipy.sparse.issparse(X):
        return abs(X[1:] - X[np.zeros(X.shape[0] - 1, dtype=np.intp)]).max() == 0
    return bool((X[:1] == X).all())
