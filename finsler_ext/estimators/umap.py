"""FinslerUMAP: umap.UMAP without the averaging, in a space that can show the direction."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from umap import UMAP
from umap.utils import ts

from finsler_ext._collections import fit_collection, is_collection, transform_collection
from finsler_ext._threads import one_blas_thread, resolve_n_jobs
from finsler_ext.asymmetry import Asymmetry, SkewFidelity
from finsler_ext.construct import training_rows
from finsler_ext.construct.directed_input import named_output, opened
from finsler_ext.construct.gradient_share import gradient_share
from finsler_ext.construct.input import AsFitted
from finsler_ext.drift import DriftChoice, check_drift_parameter
from finsler_ext.estimators._base import FinslerEstimator
from finsler_ext.estimators._umap.composition import combined_graph, combined_parameters
from finsler_ext.estimators._umap.embedding import Layouts, Rows, at_best_drift
from finsler_ext.estimators._umap.graph import (
    asymmetry_of,
    build_graph,
    find_neighbors,
    skew_distances,
    supervise,
)
from finsler_ext.estimators._umap.inverse import inverse_rows
from finsler_ext.estimators._umap.new_points import add_rows, transform_rows
from finsler_ext.estimators._umap.parameters import (
    check_finsler_parameters,
    checked_data,
    upstream_validation,
)
from finsler_ext.estimators._umap.plot_hint import HintedEmbedding
from finsler_ext.io import SaveMixin
from finsler_ext.layout.height_mode import FREE, complete_old_state
from finsler_ext.layout.islands import NO_DRIFT
from finsler_ext.layout.umap.descent import UmapDescent
from finsler_ext.spaces.base import map_columns

__all__ = ["FinslerUMAP"]

# umap-learn's seed for combined models.
COMBINED_SEED = 42


class FinslerUMAP(FinslerEstimator, SaveMixin, TransformerMixin, UMAP):
    """UMAP on directed memberships, embedded in a canonical Randers space.

    Minimises, over positions Y in R^m with the drift ω = omega_norm · e_m,

        L(Y) = − Σ p_ij ln q_ij − Σ (1 − p_ij) ln(1 − q_ij),   q = 1/(1 + a F^{2b}),
        F_ij = ‖y_j − y_i‖ + ω · (y_j − y_i),

    where p_ij is the membership of j in the neighbourhood of i, by i's own scale, and is not
    averaged with p_ji. The first columns of the embedding are the usual map; the last, the
    height, shows the asymmetry: points in sparse regions, or costly to reach, lie higher.

    All parameters of `umap.UMAP` keep their names and meanings. New or different:

    Parameters
    ----------
    n_components : int, default=3
        All columns: two for the map and one for the height. With 2, one of the two columns is
        the height.
    omega_norm : float in [0, 1) or "auto", default=0.5
        Length of the drift. 0 is Euclidean UMAP on directed memberships. The smaller the drift,
        the less the height shows: over ten labelled data sets it orders 84 % of neighbour pairs
        at 0.5 and 57 % at 0.01 (50 % is chance; medians, benchmarks/RESULTS.md), and
        ``skew_fidelity_`` tells for the data at hand. "auto" takes the largest of 0.3, 0.5, 0.7,
        0.9 at which all columns together keep at least 90 % of the neighbours that the layout
        kept before the drift acted. Its trials share graph, start and the first 60 % of epochs.
    height : {"auto", "held", "free"}, default="auto"
        "held": the map settles in the first columns as in UMAP, then the height rises over it.
        "free": all columns settle together, then the drift finds its direction among them and
        the layout is rotated so that this becomes the last column. Map columns are then
        ordered by their spread, each with its largest entry positive. Held maps are as good
        as UMAP's with one column fewer, and the height means more; all columns of free layouts
        together are as good as UMAP's with as many. "auto" is held with three or more columns
        and free with fewer. ``height_`` says which.
    space : {"randers", "matsumoto"} or Space, default="randers"
        How the embedding measures distances; see `finsler_ext.spaces`. In the Matsumoto space,
        F = ‖u‖²/(‖u‖ − ω u_m), ``omega_norm`` is below ½.
    affinity : {"directed", "harmonic", "fuzzy_union"}, default="directed"
        Memberships as above, or one of two symmetric controls: one scale per edge, the
        harmonic mean of both ends; or umap-learn's own fuzzy union.
    geodesic_neighbors : int, optional
        Extend the neighbours of each point to this many (itself included) along directed
        shortest paths, before scales are fitted.
    local_scale : array of shape (n_samples,), optional
        Positive scale of each point as a source, in place of the one fitted to density; only
        ratios matter. Asymmetry then comes from this feature. Where it hardly differs between
        neighbours, single heights are noisy; look at ``skew_fidelity_``.
    metric : str or callable
        As in umap-learn; with "precomputed", X[i, j] is the distance from i to j: a matrix, a
        frame, a graph, an edge list (see `finsler_ext.read_directed`). Directed data keeps its
        direction; pairs that are nan, inf or absent are no neighbours. A digraph (less than half
        of the pairs known, of varying number; or all lengths equal) keeps all its edges, whatever
        n_neighbors, and an edge without its reverse is asymmetry: edges lead downhill. Use
        omega_norm="auto" or 0.9 for those.
    init : str or array of m − 1 or m columns
        The start. An array of m − 1 columns is the map, and the height is held. An array of m
        columns is map and height; the height is free, and the frame stays as it is.
    random_state : int, RandomState or None
        With an int, the result is the same for any ``n_jobs``.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        Map columns first, height last; centred. Points without any neighbour are nan.
    graph_ : csr_matrix of shape (n_samples, n_samples)
        Directed memberships, rows being sources.
    height_ : "held" or "free"
        How the height was laid out.
    loss_ : UmapLoss
        The loss of the embedding: its value, both parts, and the error of sampling.
    islands_ : Islands
        Whether heights compare across the gaps of the map, and the law they follow.
    omega_norm_ : float
        The drift, given or chosen.
    drift_choice_ : DriftChoice
        With ``omega_norm="auto"``: the choice, its reason and every trial.
    local_scale_ : array of shape (n_samples,)
        Mean distance to the neighbours, or the scale given.
    asymmetry_ : Asymmetry
        What the height is to show: where it comes from, and on which pairs.
    skew_fidelity_ : SkewFidelity
        How faithfully the height shows the asymmetry of the data.
    density_height_ : float
        Spearman correlation between height and log local scale.
    gradient_share_ : float
        Of directed distances: how much of their asymmetry (sum of squares over pairs known both
        ways) any height can express; the rest is cyclic or noise. nan for other data.
    node_names_ : array of shape (n_samples,) or None
        Names of the points, where directed data has any.

    Examples
    --------
    >>> from finsler_ext import FinslerUMAP
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> model = FinslerUMAP(omega_norm=0.5, random_state=0).fit(X)
    >>> model.embedding_.shape
    (150, 3)
    """

    embedding_: Any = HintedEmbedding()
    _descent = UmapDescent
    # How the data were moved and scaled; fit replaces it for data that float32 cannot hold.
    _as_fitted = AsFitted()

    def __init__(
        self,
        n_neighbors=15,
        n_components=3,
        metric="euclidean",
        metric_kwds=None,
        output_metric="euclidean",
        output_metric_kwds=None,
        n_epochs=None,
        learning_rate=1.0,
        init="spectral",
        min_dist=0.1,
        spread=1.0,
        low_memory=True,
        n_jobs=-1,
        set_op_mix_ratio=1.0,
        local_connectivity=1.0,
        repulsion_strength=1.0,
        negative_sample_rate=5,
        transform_queue_size=4.0,
        a=None,
        b=None,
        random_state=None,
        angular_rp_forest=False,
        target_n_neighbors=-1,
        target_metric="categorical",
        target_metric_kwds=None,
        target_weight=0.5,
        transform_seed=42,
        transform_mode="embedding",
        force_approximation_algorithm=False,
        verbose=False,
        tqdm_kwds=None,
        unique=False,
        densmap=False,
        dens_lambda=2.0,
        dens_frac=0.3,
        dens_var_shift=0.1,
        output_dens=False,
        disconnection_distance=None,
        precomputed_knn=(None, None, None),
        omega_norm=0.5,
        affinity="directed",
        geodesic_neighbors=None,
        local_scale=None,
        height="auto",
        space="randers",
    ):
        given = dict(locals())
        for name, value in given.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def fit(self, X, y=None, ensure_all_finite=True, *, callback=None):
        """Fit X into an embedded space, optionally using y for supervision.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples)
            directed distances if ``metric="precomputed"``
        y : array of shape (n_samples,), optional
        ensure_all_finite : bool or "allow-nan"
            As in umap-learn.
        callback : callable, optional
            Called as ``callback(epoch, positions)`` after every epoch, positions being a copy
            with one row per row of X, not yet centred, and in the frame of that moment: a free
            layout may be rotated later. With ``omega_norm="auto"`` it sees a further run at the
            drift that was chosen.
        """
        if is_collection(X):
            return fit_collection(self, X, y=y, callback=callback)
        self._fit(X, y=y, ensure_all_finite=ensure_all_finite, callback=callback)
        return self

    def _validate(self, X, *, y, ensure_all_finite, callback) -> Rows:
        self.omega_norm_ = check_drift_parameter(self.omega_norm, self._space())
        data = opened(X, precomputed=self.metric == "precomputed")
        X = checked_data(self, data.X, ensure_all_finite)
        data.name_points(self)
        with upstream_validation(self, X):
            self._validate_parameters()
        check_finsler_parameters(self, X)
        self._n_threads = resolve_n_jobs(self.n_jobs)
        given = self.local_scale
        self._given_scale = None if given is None else np.array(given, dtype=np.float64)
        random_state = check_random_state(self.random_state)
        return Rows(X, self.init, random_state, y, ensure_all_finite, callback)

    def fit_transform(self, X, y=None, ensure_all_finite=True, *, callback=None):
        """Fit and return the embedding, or the graph if ``transform_mode="graph"``."""
        self.fit(X, y, ensure_all_finite, callback=callback)
        if is_collection(X):
            return self.transform(X)
        if self.transform_mode != "embedding":
            return self.graph_
        return named_output(self, self.embedding_)

    def transform(self, X, ensure_all_finite=True, *, local_scale=None, incoming=None):
        """Places for new rows among the training points, which stay where they are.

        A new point is pulled along edges to its nearest training points, by its own scale, and
        along edges from them, by the scales they were fitted with. Its place depends on no
        other row of X, bit for bit; a row equal to a training row returns the embedding of the
        (first) such row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features), or (n_new, n_samples) distances
            from new to training points if ``metric="precomputed"``
        ensure_all_finite : bool or "allow-nan"
            As in umap-learn.
        local_scale : array of shape (n_new,)
            Scales of the new points, for a model that was fitted with ``local_scale``.
        incoming : array or sparse matrix of shape (n_new, n_samples)
            Distances from training to new points, for a model that was fitted to directed
            distances.

        Returns
        -------
        array of shape (n_new, n_components); nan for points without any neighbour. With
        ``transform_mode="graph"``, memberships of shape (n_new, n_samples).
        """
        check_is_fitted(self, "graph_")
        if is_collection(X):
            return transform_collection(self, X, local_scale=local_scale, incoming=incoming)
        return transform_rows(
            self, X, ensure_all_finite, local_scale=local_scale, incoming=incoming
        )

    def update(self, X, ensure_all_finite=True, *, local_scale=None):
        """Add rows to the training data and embed all of them, from the present map.

        New rows start from where `transform` places them. The graph and a held height are made
        anew, so this takes the time of a fit without its initialisation. The frame stays: a free
        layout is not rotated.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
        ensure_all_finite : bool or "allow-nan"
            As in umap-learn.
        local_scale : array of shape (n_new,)
            Scales of the new points, for a model that was fitted with ``local_scale``.
        """
        check_is_fitted(self, "graph_")
        updated = copy(self)  # an interrupt half way leaves this model as it was
        add_rows(updated, X, ensure_all_finite, local_scale)
        self.__dict__.update(updated.__dict__)
        return self

    def inverse_transform(self, X):
        """Rows of data that would have been embedded near given places, approximately.

        The mean of the data of the nearest training points, weighted by their memberships.
        Many rows share a place, so this is plausible data, not the inverse of a function.

        Parameters
        ----------
        X : array of shape (n_new, n_components)
            Places in the embedding, map and height.
        """
        check_is_fitted(self, "graph_")
        return inverse_rows(self, X)

    def map_plane(self):
        """This model with the map columns as its embedding, e.g. for ``umap.plot``.

        It shares its data with this model and cannot transform.
        """
        check_is_fitted(self, "embedding_")
        plane = copy(self)
        plane.embedding_ = map_columns(self.embedding_)
        plane._n_features_out = plane.embedding_.shape[1]
        return plane

    def __add__(self, other):
        return self._combined(self, other, "+")

    def __mul__(self, other):
        return self._combined(self, other, "*")

    def __sub__(self, other):
        return self._combined(self, other, "-")

    # A subclass that defines these is asked first, so umap.UMAP() + FinslerUMAP() comes here.
    def __radd__(self, other):
        return self._combined(other, self, "+")

    def __rmul__(self, other):
        return self._combined(other, self, "*")

    def __rsub__(self, other):
        return self._combined(other, self, "-")

    @staticmethod
    def _combined(left, right, operation):
        graph = combined_graph(left, right, operation)
        result = type(left)(**combined_parameters(left, right))
        result.graph_, result._raw_data, result._given_scale = graph, None, None
        result._asymmetric_metric = result._directed_distances = result._supervised = False
        result._digraph = result._skew_distances = None
        result.local_scale_ = np.sqrt(left.local_scale_ * right.local_scale_)
        result.omega_norm_, result._a, result._b = result.omega_norm, result.a, result.b
        result._n_threads, result._bar_kwds = left._n_threads, left._bar_kwds
        result._n_epochs_list, result._n_features_out = None, result.n_components
        seed = COMBINED_SEED if left.random_state is None else left.random_state
        result.gradient_share_ = float("nan")
        result._embed(Rows(None, result.init, check_random_state(seed)))
        return result

    def _construct(self, rows: Rows) -> Rows | None:
        """Neighbours and graph of checked data."""
        rows = self._distinct(rows)
        X = rows.X
        if X.shape[0] == 1:
            self._fit_one_point()
            return None
        self._say("Finding directed neighbours")
        with one_blas_thread():
            neighbors = find_neighbors(self, X, rows.random_state)
        build_graph(self, X, neighbors)
        supervise(self, rows.y, rows.distinct, rows.random_state, rows.ensure_all_finite)
        given = skew_distances(self, X)
        self.gradient_share_ = gradient_share(given) if self._directed_distances else float("nan")
        if self.transform_mode == "embedding":
            return rows
        self._n_features_out = self.graph_.shape[1]
        return None

    def _asymmetry(self, rows: Rows) -> Asymmetry:
        return asymmetry_of(self, rows.X)

    def _start(self, rows: Rows):
        self._say(f"Embedding in a {self._space().name.capitalize()} space")
        return Layouts(self, rows)

    def _lay_out(self, rows: Rows, lay_out) -> list[np.ndarray]:
        if self.omega_norm_ is None:
            layout, embeddings = at_best_drift(self, lay_out, rows.callback)
        else:
            layout, embeddings = lay_out(self.omega_norm_, rows.callback)
        if layout is not None:
            self.height_, self.loss_, self.islands_ = layout.height, layout.loss, layout.islands
        return embeddings

    def _distinct(self, given: Rows) -> Rows:
        """With unique=True, one of each group of equal rows."""
        X, init = given.X, given.init
        if not self.unique:
            return given
        first = training_rows(X, X)
        first = np.where(first < 0, np.arange(len(first)), first)  # nan equals nothing
        rows, inverse = np.unique(first, return_inverse=True)
        self._unique_rows_ = rows
        self._unique_inverse_ = inverse
        self._say(f"unique: {X.shape[0]} rows reduced to {len(rows)}")
        init = init[rows] if isinstance(init, np.ndarray) else init
        return given._replace(X=X[rows], init=init, distinct=rows, inverse=inverse)

    def _fit_one_point(self) -> None:
        n = self._raw_data.shape[0]
        self.embedding_ = np.zeros((n, self.n_components), dtype=np.float32)
        self.graph_ = scipy.sparse.csr_matrix((1, 1), dtype=np.float32)
        self.local_scale_ = np.full(1, np.nan)
        self.asymmetry_ = Asymmetry.none()
        self.skew_fidelity_ = SkewFidelity.undefined("there is only one point")
        self.density_height_ = self.gradient_share_ = float("nan")
        self.height_, self.islands_ = FREE, NO_DRIFT
        self._supervised = False
        if self.omega_norm_ is None:
            self.omega_norm_ = 0.0
            self.drift_choice_ = DriftChoice(0.0, "there is only one point")
        self._n_features_out = self.n_components

    def _score(self, rows: Rows, embeddings: list[np.ndarray]) -> None:
        """Say how much of the asymmetry the height carries."""
        embedding = embeddings[-1]
        if rows.inverse is not None:
            embeddings = [e[rows.inverse] for e in embeddings]
        if self._n_epochs_list is not None:
            self.embedding_list_ = embeddings
        self.embedding_ = embeddings[-1]
        self._n_features_out = self.embedding_.shape[1]
        symmetric = self.affinity != "directed"
        self._judge(embedding, self._columns_in_words(), symmetric=symmetric)

    def _columns_in_words(self) -> str:
        if self.omega_norm_ == 0:
            return "All columns are map columns"
        if self.n_components == 2:
            return "One of the two columns is the height"
        return f"The last column is the height, {self.height_}"

    def _say(self, message: str) -> None:
        if self.verbose:
            print(ts(), message)

    def __setstate__(self, state):
        super().__setstate__(complete_old_state(dict(state)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
