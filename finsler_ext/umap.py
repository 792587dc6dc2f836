"""FinslerUMAP: umap.UMAP without the averaging, in a space that can show the direction."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import scipy.sparse
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from tqdm.auto import tqdm
from umap import UMAP
from umap.utils import csr_unique, ts

from finsler_ext._threads import one_blas_thread, resolve_n_jobs
from finsler_ext._umap_graph import build_graph, find_neighbors, is_symmetric, isolated, supervise
from finsler_ext._umap_parameters import (
    check_finsler_parameters,
    checked_data,
    upstream_validation,
)
from finsler_ext.layout.initial import initial_positions
from finsler_ext.layout.umap_descent import optimize_layout
from finsler_ext.metrics import SkewFidelity, density_height, skew_fidelity
from finsler_ext.randers import check_omega_norm

__all__ = ["FinslerUMAP"]

DEFAULT_EPOCHS, DEFAULT_EPOCHS_LARGE, LARGE = 500, 200, 10_000
# Below this share of rightly ordered edges the height is not worth reading.
MEANINGFUL_SIGN = 0.6


class FinslerUMAP(TransformerMixin, UMAP):
    """UMAP on directed memberships, embedded in a canonical Randers space.

    Minimises, over positions Y in R^m with the drift ω = omega_norm · e_m,

        L(Y) = − Σ p_ij ln q_ij − Σ (1 − p_ij) ln(1 − q_ij),   q = 1/(1 + a F^{2b}),
        F_ij = ‖y_j − y_i‖ + ω · (y_j − y_i),

    where p_ij is the membership of j in the neighbourhood of i, by i's own scale, and is not
    averaged with p_ji. The first columns of the embedding are the usual map; the last, the
    height, shows the asymmetry: sparse above dense, downwind below upwind.

    All parameters of `umap.UMAP` keep their names and meanings. New or different:

    Parameters
    ----------
    n_components : int, default=3
        All columns: two for the map and one for the height.
    omega_norm : float in [0, 1), default=0.5
        Length of the drift. 0 is Euclidean UMAP on directed memberships. A small drift leaves
        the height to chance: look at ``skew_fidelity_``.
    affinity : {"directed", "harmonic", "fuzzy_union"}, default="directed"
        Memberships as above, or one of two symmetric controls: one scale per edge, the
        harmonic mean of both ends; or umap-learn's own fuzzy union.
    geodesic_neighbors : int, optional
        Extend the neighbours of each point to this many (itself included) along directed
        shortest paths, before scales are fitted.
    local_scale : array of shape (n_samples,), optional
        Positive scale of each point as a source, in place of the one fitted to density; only
        ratios matter. Asymmetry then comes from this feature, as far as it differs between
        neighbours; a feature that varies slowly drowns in the noise of the nearest distances,
        and the height may even run against it. Look at ``skew_fidelity_``.
    metric : str or callable
        As in umap-learn; with "precomputed", X[i, j] is the distance from i to j. A directed
        matrix keeps its direction; inf (dense) or absent (sparse) pairs are no neighbours.
    init : str or array of m − 1 or m columns
        The start of the map; the height then starts from zero. An array of m columns gives
        the height, too.
    random_state : int, RandomState or None
        With an int, the result is the same for any ``n_jobs``.

    Attributes
    ----------
    embedding_ : array of shape (n_samples, n_components)
        Map columns first, height last; centred. Points without any neighbour are nan.
    graph_ : csr_matrix of shape (n_samples, n_samples)
        Directed memberships, rows being sources.
    omega_norm_ : float
    local_scale_ : array of shape (n_samples,)
        Mean distance to the neighbours, or the scale given.
    skew_fidelity_ : SkewFidelity
        How faithfully the height shows the asymmetry of the data.
    density_height_ : float
        Spearman correlation between height and log local scale.

    Examples
    --------
    >>> from finsler_ext import FinslerUMAP
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> model = FinslerUMAP(omega_norm=0.5, random_state=0).fit(X)
    >>> model.embedding_.shape
    (150, 3)
    """

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
    ):
        given = dict(locals())
        for name in self._get_param_names():
            setattr(self, name, given[name])

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
            Called as ``callback(epoch, positions)`` after every epoch.
        """
        self.omega_norm_ = check_omega_norm(self.omega_norm)
        X = checked_data(self, X, ensure_all_finite)
        with upstream_validation(self, X):
            self._validate_parameters()
        check_finsler_parameters(self, X)
        self._n_threads = resolve_n_jobs(self.n_jobs)
        rows, inverse = self._unique_rows(X)
        if rows is not None:
            X = X[rows]
        n = X.shape[0]
        if n == 1:
            return self._fit_one_point()
        random_state = check_random_state(self.random_state)
        self._say("Finding directed neighbours")
        with one_blas_thread():
            neighbors = find_neighbors(self, X, random_state)
        build_graph(self, X, neighbors)
        supervise(self, y, rows, random_state, ensure_all_finite)
        if self.transform_mode == "embedding":
            self._say("Embedding in Randers space")
            self._embed(X, random_state, rows, inverse, callback)
        self._n_features_out = (
            self.embedding_.shape[1] if self.transform_mode == "embedding" else self.graph_.shape[1]
        )
        return self

    def fit_transform(self, X, y=None, ensure_all_finite=True, *, callback=None):
        """Fit and return the embedding, or the graph if ``transform_mode="graph"``."""
        self.fit(X, y, ensure_all_finite, callback=callback)
        return self.embedding_ if self.transform_mode == "embedding" else self.graph_

    def transform(self, X, ensure_all_finite=True):
        """Not available yet: new points need in-edges as well as out-edges."""
        raise _unavailable("transform", "Fit all rows together; fit_transform gives their places.")

    def update(self, X, ensure_all_finite=True):
        """Not available yet."""
        raise _unavailable("update", "Fit old and new rows together.")

    def inverse_transform(self, X):
        """Not available yet."""
        raise _unavailable("inverse_transform", "umap.UMAP has it for Euclidean embeddings.")

    def __mul__(self, other):
        raise _unavailable("model * model", "Combine the graph_ attributes of fitted models.")

    __add__ = __sub__ = __rmul__ = __radd__ = __rsub__ = __mul__

    def _unique_rows(self, X):
        if not self.unique:
            return None, None
        if scipy.sparse.issparse(X):
            rows, inverse, _ = csr_unique(X)
        else:
            _, rows, inverse = np.unique(X, axis=0, return_index=True, return_inverse=True)
        self._unique_inverse_ = inverse = np.ravel(inverse)
        self._say(f"unique: {X.shape[0]} rows reduced to {len(rows)}")
        return rows, inverse

    def _fit_one_point(self):
        n = self._raw_data.shape[0]
        self.embedding_ = np.zeros((n, self.n_components), dtype=np.float32)
        self.graph_ = scipy.sparse.csr_matrix((1, 1), dtype=np.float32)
        self.local_scale_ = np.full(1, np.nan)
        nan = float("nan")
        self.skew_fidelity_ = SkewFidelity(nan, nan, nan, "there is only one point")
        self.density_height_ = nan
        self._n_features_out = self.n_components
        return self

    def _embed(self, X, random_state, rows, inverse, callback=None):
        epochs = sorted(self.n_epochs_list or [])
        if not epochs:
            epochs = [self._default_epochs() if self.n_epochs is None else int(self.n_epochs)]
        init = self.init
        if rows is not None and isinstance(init, np.ndarray):
            init = init[rows]
        embeddings = self._lay_out(X, init, random_state, epochs, callback)
        if inverse is not None:
            embeddings = [e[inverse] for e in embeddings]
        if self.n_epochs_list is not None:
            self.embedding_list_ = embeddings
        self.embedding_ = embeddings[-1]
        self._score(embeddings[-1] if inverse is None else None, inverse)

    def _default_epochs(self) -> int:
        return DEFAULT_EPOCHS if self.graph_.shape[0] <= LARGE else DEFAULT_EPOCHS_LARGE

    def _lay_out(self, X, init, random_state, epochs, callback):
        """Embed the points that have a neighbour; the others become nan."""
        joined = np.flatnonzero(~isolated(self.graph_))
        everything = joined.size == self.graph_.shape[0]
        graph = self.graph_ if everything else self.graph_[joined][:, joined]
        n = self.graph_.shape[0]
        if joined.size == 0:
            return [np.full((n, self.n_components), np.nan, dtype=np.float32) for _ in epochs]
        features = None if self.metric == "precomputed" else X
        if not everything:
            features = features if features is None else features[joined]
            init = init[joined] if isinstance(init, np.ndarray) else init
        start, flat = self._start(init, graph, features, random_state)
        progress = partial(tqdm, disable=not self.verbose, **self._bar_kwds)
        _, kept = optimize_layout(
            start,
            graph,
            a=self._a,
            b=self._b,
            omega_norm=self.omega_norm_,
            n_epochs=max(epochs),
            seed=int(random_state.randint(np.iinfo(np.int32).max)),
            hold_height=flat,
            learning_rate=self.learning_rate,
            repulsion_strength=self.repulsion_strength,
            negative_sample_rate=self.negative_sample_rate,
            n_threads=self._n_threads,
            keep_epochs=epochs,
            callback=callback,
            progress=progress,
        )
        if everything:
            return kept
        padded = [np.full((n, self.n_components), np.nan, dtype=np.float32) for _ in kept]
        for whole, part in zip(padded, kept, strict=True):
            whole[joined] = part
        return padded

    def _start(self, init, graph, features, random_state):
        """Initial positions, and whether their height is the zero that the descent may lift."""
        m = self.n_components
        given = init.shape[1] if isinstance(init, np.ndarray) else None
        # Without asymmetry nothing would ever move a zero height: then all columns are map.
        euclidean = self.omega_norm_ == 0 or m == 1 or is_symmetric(graph)
        columns = given or (m if euclidean else m - 1)
        if isinstance(init, str) and init == "tswspectral":
            from umap.spectral import tswspectral_layout

            symmetric = scipy.sparse.coo_matrix((graph + graph.T) * 0.5)
            init = tswspectral_layout(
                features, symmetric, columns, random_state, self._input_distance_func
            )
        start = initial_positions(init, columns, graph, features, random_state)
        if columns == m:
            return start, False
        start = np.column_stack([start, np.zeros(len(start), dtype=np.float32)])
        return start, not euclidean

    def _score(self, embedding, inverse):
        """Say how much of the asymmetry the height carries."""
        if embedding is None:  # unique: back to one row per distinct point
            embedding = np.empty((self.graph_.shape[0], self.n_components), dtype=np.float32)
            embedding[inverse] = self.embedding_
        directed = self.metric == "precomputed" and not is_symmetric(self._raw_data)
        if directed:
            self.skew_fidelity_ = skew_fidelity(embedding, distances=self._raw_data)
        else:
            self.skew_fidelity_ = skew_fidelity(
                embedding, graph=self.graph_, local_scale=self.local_scale_
            )
        self.density_height_ = density_height(embedding, self.local_scale_)
        self._say(str(self.skew_fidelity_))
        sign = self.skew_fidelity_.sign
        if self.omega_norm_ > 0 and self.affinity == "directed" and sign < MEANINGFUL_SIGN:
            advice = ", or use a larger omega_norm such as 0.5" if self.omega_norm_ < 0.5 else ""
            warnings.warn(
                f"With omega_norm={self.omega_norm_:g} the height says next to nothing about the "
                f"asymmetry of the data: it orders {sign:.0%} of the neighbour pairs rightly, "
                f"50% is chance. Read it as one more map column{advice}.",
                stacklevel=4,
            )

    def _say(self, message: str) -> None:
        if self.verbose:
            print(ts(), message)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.metric == "precomputed"
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _unavailable(what: str, instead: str) -> NotImplementedError:
    return NotImplementedError(
        f"FinslerUMAP: {what} is not available in this version, because umap-learn's would "
        f"average the direction away. {instead}"
    )
