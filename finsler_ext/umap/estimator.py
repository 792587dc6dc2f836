"""FinslerUMAP: umap.UMAP without the averaging, in a space that can show the direction."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import scipy.sparse
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from umap import UMAP
from umap.utils import ts

from finsler_ext._threads import one_blas_thread, plain_interrupt, resolve_n_jobs
from finsler_ext.asymmetry import (
    NONE,
    Asymmetry,
    SkewFidelity,
    affinity_lengths,
    gradient_share,
)
from finsler_ext.base import (
    ALL,
    FinslerEstimator,
    fit_collection,
    is_collection,
    transform_collection,
)
from finsler_ext.directed.data import DirectedData
from finsler_ext.directed.digraph import compares_lengths, edge_strengths
from finsler_ext.directed.read import as_matrix, named_output
from finsler_ext.evidence import Evidence
from finsler_ext.geometry import check_drift_parameter
from finsler_ext.geometry.space import map_columns
from finsler_ext.height.acts import FREE
from finsler_ext.height.drift import DriftChoice
from finsler_ext.height.islands import NO_DRIFT
from finsler_ext.height.start import keep_pins, read_pins
from finsler_ext.io import SaveMixin
from finsler_ext.neighbors.search import DirectedNeighbors, training_rows
from finsler_ext.schema import saved
from finsler_ext.umap.combine import combined_graph, combined_parameters, supervised
from finsler_ext.umap.graph import build_graph, find_neighbors
from finsler_ext.umap.layout import Layouts, UmapDescent, UmapLayout
from finsler_ext.umap.parameters import (
    FITTED,
    PARAMETERS,
    Rows,
    check_finsler_parameters,
    check_fitted,
    checked_data,
    upstream_validation,
)
from finsler_ext.umap.transform import add_rows, inverse_rows, transform_rows
from finsler_ext.validation import AsFitted

# umap-learn's seed for combined models.
COMBINED_SEED = 42


@saved({**PARAMETERS, **FITTED}, relations=check_fitted)
class FinslerUMAP(FinslerEstimator, SaveMixin, TransformerMixin, UMAP):
    """UMAP with a height: a last column that shows density or, for directed data, direction.

    Minimises, over positions Y in R^m with the drift ω = omega_norm · e_m,

        L(Y) = − Σ p_ij ln q_ij − Σ (1 − p_ij) ln(1 − q_ij),   q = 1/(1 + a F^{2b}),
        F_ij = ‖y_j − y_i‖ + ω · (y_j − y_i),

    where p_ij is the membership of j in the neighbourhood of i, by i's own scale, and is not
    averaged with p_ji. F is the distance of a canonical Randers space: going up costs more than
    coming down. The first columns of the embedding are the usual map; the last, the height, shows
    the asymmetry of p: points in sparse regions, or costly to reach, lie higher.

    All parameters of `umap.UMAP` keep their names and, except for ``n_components``, their
    meanings. ``densmap``, ``output_dens`` and an ``output_metric`` that is not Euclidean are
    refused. New or different:

    Parameters
    ----------
    n_components : int, default=3
        All columns: two for the map and one for the height. With 2, one of the two columns is
        the height; for two columns of map leave it at 3, and see ``output``.
    omega_norm : float in [0, 1) or "auto", default=0.5
        Length of the drift: how much more it costs to go up than to come down. 0 is Euclidean
        UMAP on directed memberships, without a height. The smaller the drift, the less the height
        shows of the density of features; ``skew_fidelity_`` says how much it shows of the data at
        hand. ``potential_`` does not depend on the drift. "auto" takes the largest of 0.3, 0.5,
        0.7, 0.9 at which all columns together keep at least 90 % of the neighbours that the layout
        kept before the drift acted, and 0 where the asymmetry of the data is no more than chance
        (``evidence_``). Its trials share graph, start and, unless the height is free, the first
        80 % of epochs.
    height : {"auto", "potential", "held", "nested", "free"}, default="auto"
        What the last column is. In all modes but "free" the map settles first, in the other
        columns and as in UMAP; then the height rises from ``potential_``, times a positive factor
        that gives the lowest loss.

        - "potential": it stays there, and the map settles around it. Its order does not depend on
          the drift. "auto" takes it for directed data.
        - "held": the larger the drift, the less it moves. Below ω = 0.1 it is one more map column,
          from 0.3 on it is close to the potential, with no jump in between. "auto" takes it for
          features in three or more columns.
        - "nested": it moves freely at every drift. The other columns are a UMAP map with one
          column fewer; all columns together keep as many neighbours as UMAP in as many.
        - "free": all columns descend together, with the drift from the first epoch, as in the
          paper. At the end the layout is rotated so that the best direction of the drift is the
          last column; map columns are ordered by their spread, each with its largest entry
          positive. "auto" takes it for features in two columns.

        Without a drift, "potential" and "held" are "nested". ``height_`` says which it was.
    space : {"randers", "matsumoto"} or Space, default="randers"
        How the embedding measures distances; see `finsler_ext.geometry`. In the Matsumoto space,
        F = ‖u‖²/(‖u‖ − ω u_m), ``omega_norm`` is below ½.
    ridge : float or "auto", default=0.0
        For digraphs: shrinks ``potential_``, and a height that follows it, towards zero where
        nodes have few edges; a multiple of the mean degree. 0 is best for the order of distant
        nodes, "auto" for the direction of edges held out (`finsler_ext.metrics.potential`).
    output : {"all", "map"}, default="all"
        What `transform` and `fit_transform` return: all columns, or those of the map alone, one
        fewer than ``n_components``. ``embedding_`` has all columns.
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
        n_neighbors, and an edge without its reverse is asymmetry: edges lead downhill. Strengths
        and transitions (``read_directed(data, values="strength")``) are memberships as they are,
        relative to the largest of their source; n_neighbors is refused.
    init : str or array of m − 1 or m columns
        The start. An array of m − 1 columns is the map. An array of m columns is map and height;
        the height is free then, and the frame stays as it is.
    random_state : int, RandomState or None
        With an int, the result is the same for any ``n_jobs``.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        Map columns first, height last; centred. Points without any neighbour are nan.
    graph_ : csr_matrix of shape (n_samples, n_samples)
        Directed memberships, rows being sources.
    height_ : "potential", "held", "nested" or "free"
        How the height was laid out.
    loss_ : UmapLoss
        The loss of the embedding: its value, both parts, and the error of sampling.
    islands_ : Islands
        Whether heights compare across the gaps of the map, and how they follow the scale.
    omega_norm_ : float
        The drift, given or chosen.
    drift_choice_ : DriftChoice
        With ``omega_norm="auto"``: the choice, its reason and every trial.
    local_scale_ : array of shape (n_samples,)
        Mean distance to the neighbours, or the scale given.
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
        Spearman correlation between height and log local scale.
    gradient_share_ : float
        For directed distances: the share of their asymmetry (sum of squares over pairs known both
        ways) that any height can express; the rest is cyclic or noise. nan for other data.
    node_names_ : array of shape (n_samples,) or None
        Names of the points, where directed data has any.
    pinned_ : array of shape (n_samples, n_components) or None
        The places that were given, nan where free.

    Examples
    --------
    >>> from finsler_ext import FinslerUMAP
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> model = FinslerUMAP(omega_norm=0.5, random_state=0).fit(X)
    >>> model.embedding_.shape
    (150, 3)
    """

    _parameters = PARAMETERS
    _free_after_fit = frozenset(
        {"n_jobs", "output", "verbose", "tqdm_kwds", "transform_seed", "transform_mode"}
    )
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
        output="all",
        ridge=0.0,
    ):
        given = dict(locals())
        for name, value in given.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def fit(self, X, y=None, ensure_all_finite=True, *, callback=None, pinned=None):
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
        pinned : array or DataFrame of m − 1 (map) or m columns, optional
            Places that are given, nan for what is free: one row per row of X, or, of a DataFrame
            by names, rows for some of the nodes. They are kept bit for bit (in float32), and the
            others are laid out around them. The frame is that of the pins: it is neither
            rotated nor centred.
        """
        if is_collection(X):
            return fit_collection(self, X, y=y, callback=callback, pinned=pinned)
        self._fit(X, y=y, ensure_all_finite=ensure_all_finite, callback=callback, pinned=pinned)
        return self

    @property
    def _n_threads(self) -> int:
        return resolve_n_jobs(self.n_jobs)

    # The steps of a fit, in the order in which `FinslerEstimator` takes them.

    def _validate(self, X, *, y, ensure_all_finite, callback, pinned=None) -> Rows:
        self.omega_norm_ = check_drift_parameter(self.omega_norm, self._space())
        data = as_matrix(X, precomputed=self.metric == "precomputed")
        X = checked_data(self, data.X, ensure_all_finite)
        data.name_points(self)
        with upstream_validation(self, X):
            self._validate_parameters()
        check_finsler_parameters(self, X, strengths=data.strengths is not None)
        resolve_n_jobs(self.n_jobs)  # refuses 0
        given = self.local_scale
        self._given_scale = None if given is None else np.array(given, dtype=np.float64)
        pins = read_pins(pinned, X.shape[0], self.n_components, self.node_names_)
        if pins is not None and self.unique:
            raise ValueError("pinned cannot be combined with unique=True.")
        self.pinned_ = pins
        random_state, strengths = check_random_state(self.random_state), data.strengths
        return Rows(X, self.init, random_state, y, ensure_all_finite, callback, pins, strengths)

    def _construct(self, rows: Rows) -> Rows | None:
        """Neighbours and graph of checked data."""
        rows = self._distinct(rows)
        if rows.X.shape[0] == 1:
            self._fit_one_point()
            return None
        self._say("Finding directed neighbours")
        with one_blas_thread():
            search = find_neighbors(self, rows.X, rows.random_state, rows.strengths)
        graph = build_graph(self, rows.X, search)
        self._supervised = rows.y is not None
        if self._supervised:
            matrix = supervised(self, graph.matrix, search.n_neighbors, rows)
            graph = replace(graph, matrix=matrix)
        self.__dict__.update(graph.attributes())
        directed = self._directed_distances
        self.gradient_share_ = gradient_share(search.distances) if directed else float("nan")
        if self.transform_mode == "embedding":
            return rows
        self._n_features_out = self.graph_.shape[1]
        return None

    def _asymmetry(self, rows: Rows) -> Asymmetry:
        if self._directed_distances:
            edges = self._digraph
            by_length = edges is None or compares_lengths(edges)
            strengths = None if by_length else edge_strengths(edges)
            distances = rows.X if self._skew_distances is None else self._skew_distances
            return Asymmetry.of_distances(distances, strengths=strengths)
        if self._asymmetric_metric:
            strengths = self.graph_ if self.affinity == "directed" else None
            if rows.X is None:
                distances = affinity_lengths(self.graph_)
            else:
                distances = DirectedNeighbors(self._knn_indices, self._knn_dists).matrix()
            return Asymmetry.of_distances(distances, strengths=strengths)
        given = self._given_scale is not None
        return Asymmetry.of_scale(self.graph_, self.local_scale_, given=given)

    def _measured(self, rows: Rows):
        if rows.X is None:
            return "the graph was made of others"
        if self._directed_distances:
            return DirectedData(rows.X, strengths=rows.strengths)
        if self._asymmetric_metric:
            return "a directed metric of rows leaves nothing to randomise"
        if (self._knn_indices[:, 0] != np.arange(len(self._knn_indices))).any():
            return "a point is not the first among its neighbours"
        return self._knn_indices[:, 1:], self._knn_dists[:, 1:]

    def _start(self, rows: Rows):
        self._say(f"Embedding in a {self._space().name.capitalize()} space")
        return Layouts(self, rows)

    def _lay_out(self, rows: Rows, lay_out: Layouts) -> UmapLayout:
        if self.omega_norm_ is not None:
            return lay_out(self.omega_norm_, rows.callback)
        found: dict[float, UmapLayout] = {}

        def embed(omega_norm):
            found[omega_norm] = lay_out(omega_norm)
            return found[omega_norm].embeddings[-1]

        near = self._knn_indices[:, 1:]
        chosen = self._chosen_drift(self.graph_, lay_out.before_drift, embed, near)
        if rows.callback is None and chosen in found:
            return found[chosen]
        return lay_out(chosen, rows.callback)

    def _score(self, rows: Rows, layout: UmapLayout) -> None:
        """Take over the layout, and say how much of the asymmetry the height carries."""
        embeddings, self.height_, self.loss_, self.islands_ = layout
        embedding = embeddings[-1]
        if rows.inverse is not None:
            embeddings = [e[rows.inverse] for e in embeddings]
            self.potential_ = self.potential_[rows.inverse]
            self.potential_component_ = self.potential_component_[rows.inverse]
        if self._n_epochs_list is not None:
            self.embedding_list_ = embeddings
        self.embedding_ = embeddings[-1]
        self._n_features_out = self.embedding_.shape[1]
        words = f"The last column is the height, {self.height_}"
        if self.omega_norm_ == 0:
            words = "All columns are map columns"
        elif self.n_components == 2:
            words = "One of the two columns is the height"
        self._judge(embedding, words, symmetric=self.affinity != "directed")

    def _distinct(self, rows: Rows) -> Rows:
        """With unique=True, one of each group of equal rows."""
        if not self.unique:
            return rows
        X, init = rows.X, rows.init
        first = training_rows(X, X)
        first = np.where(first < 0, np.arange(len(first)), first)  # nan equals nothing
        kept, inverse = np.unique(first, return_inverse=True)
        self._unique_rows_, self._unique_inverse_ = kept, inverse
        self._say(f"unique: {X.shape[0]} rows reduced to {len(kept)}")
        init = init[kept] if isinstance(init, np.ndarray) else init
        return rows._replace(X=X[kept], init=init, distinct=kept, inverse=inverse)

    def _fit_one_point(self) -> None:
        n = self._raw_data.shape[0]
        zero = np.zeros((n, self.n_components), dtype=np.float32)
        self.embedding_ = keep_pins(zero, self.pinned_)
        self.graph_ = scipy.sparse.csr_matrix((1, 1), dtype=np.float32)
        self.local_scale_ = np.full(1, np.nan)
        self.asymmetry_ = Asymmetry.none()
        self.skew_fidelity_ = SkewFidelity.undefined("there is only one point")
        self.evidence_, self._height_error, self._held_out_pairs = Evidence(NONE), None, None
        self.density_height_ = self.gradient_share_ = float("nan")
        self.potential_, self.potential_component_ = np.full(n, np.nan), np.full(n, -1)
        self.height_, self.islands_ = FREE, NO_DRIFT
        self._supervised = False
        if self.omega_norm_ is None:
            self.omega_norm_ = 0.0
            self.drift_choice_ = DriftChoice(0.0, "there is only one point")
        self._n_features_out = self.n_components

    def fit_transform(self, X, y=None, ensure_all_finite=True, *, callback=None, pinned=None):
        """Fit and return the embedding, or the graph if ``transform_mode="graph"``."""
        self.fit(X, y, ensure_all_finite, callback=callback, pinned=pinned)
        if is_collection(X):
            return self.transform(X)
        if self.transform_mode != "embedding":
            return self.graph_
        return named_output(self, self._returned(self.embedding_))

    @plain_interrupt()
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
        array of shape (n_new, n_components), one column fewer with ``output="map"``; nan for points
        without any neighbour. With ``transform_mode="graph"``, memberships of shape
        (n_new, n_samples).
        """
        check_is_fitted(self, "graph_")
        if is_collection(X):
            return transform_collection(self, X, local_scale=local_scale, incoming=incoming)
        model = self._with_fitted_params()
        placed = transform_rows(
            model, X, ensure_all_finite, local_scale=local_scale, incoming=incoming
        )
        return self._returned(placed) if self.transform_mode == "embedding" else placed

    def update(self, X, ensure_all_finite=True, *, local_scale=None, pinned=None):
        """Add rows to the training data and embed all of them, from the present map.

        New rows start from where `transform` places them. The graph and a height that is not free
        are made anew, so this takes the time of a fit without its initialisation. The frame stays:
        a free layout is not rotated.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
        ensure_all_finite : bool or "allow-nan"
            As in umap-learn.
        local_scale : array of shape (n_new,)
            Scales of the new points, for a model that was fitted with ``local_scale``.
        pinned : "old", or array of m − 1 or m columns with a row for every old and new row
            "old": all old points stay where they are, map and height. By default those that `fit`
            had pinned.
        """
        check_is_fitted(self, "graph_")
        updated = copy(self)  # an interrupt half way leaves this model as it was
        add_rows(updated, X, ensure_all_finite, local_scale, pinned)
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
        return inverse_rows(self._with_fitted_params(), X)

    def map_plane(self):
        """This model with the map columns as its embedding, e.g. for ``umap.plot``.

        It shares its data with this model and cannot transform; ``output="map"`` can.
        """
        check_is_fitted(self, "embedding_")
        plane = copy(self)
        plane.embedding_ = map_columns(self.embedding_)
        plane._n_features_out, plane.output = plane.embedding_.shape[1], ALL
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
        result._directed_distances = result._supervised = False
        # the direction of directed data is in the graph
        result._asymmetric_metric = left.asymmetry_.is_directed or right.asymmetry_.is_directed
        result._digraph = result._skew_distances = None
        result.n_features_in_, result.node_names_ = left.n_features_in_, left.node_names_
        if result.node_names_ is None:
            result.node_names_ = right.node_names_
        result.local_scale_ = np.sqrt(left.local_scale_ * right.local_scale_)
        result.omega_norm_, result._a, result._b = result.omega_norm, result.a, result.b
        result._bar_kwds, result._n_epochs_list = left._bar_kwds, None
        result._n_features_out = result.n_components
        seed = COMBINED_SEED if left.random_state is None else left.random_state
        result.gradient_share_ = float("nan")
        result._embed(Rows(None, result.init, check_random_state(seed)))
        return result

    def _say(self, message: str) -> None:
        if self.verbose:
            print(ts(), message)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        pairs = isinstance(self.metric, str) and self.metric == "precomputed"
        tags.input_tags.pairwise = tags.input_tags.positive_only = pairs
        tags.input_tags.allow_nan = pairs  # those that are not known
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
