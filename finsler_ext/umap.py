"""FinslerUMAP: umap.UMAP without the averaging, in a space that can show the direction."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import scipy.sparse
from sklearn.base import TransformerMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data
from tqdm.auto import tqdm
from umap import UMAP
from umap.umap_ import find_ab_params, raise_disconnected_warning
from umap.utils import csr_unique, ts

from finsler_ext import dissimilarity
from finsler_ext._threads import one_blas_thread, resolve_n_jobs
from finsler_ext.dissimilarity.supervision import intersect_with_target
from finsler_ext.layout.initial import initial_positions
from finsler_ext.layout.umap_descent import optimize_layout
from finsler_ext.metrics import SkewFidelity, density_height, skew_fidelity
from finsler_ext.randers import check_omega_norm

__all__ = ["FinslerUMAP"]

# umap-learn compares all pairs below this size and searches approximately from it on.
EXACT_BELOW = 4096
# An asymmetric callable metric is compared on all pairs up to this size.
ASYMMETRIC_BELOW = 20_000
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
        ratios matter. Asymmetry then comes from this feature.
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
        X = self._checked_data(X, ensure_all_finite)
        with self._upstream_validation(X):
            self._validate_parameters()
        self._check_finsler_parameters(X)
        rows, inverse = self._unique_rows(X)
        if rows is not None:
            X = X[rows]
        n = X.shape[0]
        if n == 1:
            return self._fit_one_point()
        random_state = check_random_state(self.random_state)
        self._say("Finding directed neighbours")
        with one_blas_thread():
            neighbors = self._directed_neighbors(X, random_state)
        self._build_graph(X, neighbors, rows)
        self._supervise(y, X, rows, random_state, ensure_all_finite)
        if self.transform_mode == "embedding":
            self._say("Embedding in Randers space")
            self._embed(X, random_state, inverse, callback)
        self._n_features_out = (
            self.embedding_.shape[1] if self.transform_mode == "embedding" else self.graph_.shape[1]
        )
        return self

    def fit_transform(self, X, y=None, ensure_all_finite=True, *, callback=None):
        """Fit and return the embedding, or the graph if ``transform_mode="graph"``."""
        self.fit(X, y, ensure_all_finite, callback=callback)
        return self.embedding_ if self.transform_mode == "embedding" else self.graph_

    # ------------------------------------------------------------------ checks

    def _checked_data(self, X, ensure_all_finite):
        bits = self.metric in ("bit_hamming", "bit_jaccard")
        X = validate_data(
            self,
            X,
            dtype=np.uint8 if bits else np.float32,
            order="C",
            accept_sparse=False if bits else "csr",
            # Missing pairs of a directed matrix are inf; other values are checked with it.
            ensure_all_finite=False if self.metric == "precomputed" else ensure_all_finite,
        )
        if scipy.sparse.issparse(X):
            X = scipy.sparse.csr_matrix(X)
            if not X.has_sorted_indices:
                X = X.sorted_indices()
        return X

    @contextmanager
    def _upstream_validation(self, X) -> Iterator[None]:
        """What umap's own checks need in place, and what they change put back afterwards."""
        given = {name: getattr(self, name) for name in self._get_param_names()}
        global_state = np.random.get_state()
        self._raw_data = X
        self._initial_alpha = self.learning_rate
        knn = (*self.precomputed_knn, None)[:3]
        self.knn_indices, self.knn_dists, self.knn_search_index = (
            item.copy() if isinstance(item, np.ndarray) else item for item in knn
        )
        self.n_jobs = 1
        self.tqdm_kwds = None if self.tqdm_kwds is None else dict(self.tqdm_kwds)
        if isinstance(self.init, np.ndarray):
            self.init = "random"  # one column fewer is fine here; checked below
        if isinstance(self.n_epochs, np.integer):
            self.n_epochs = int(self.n_epochs)
        try:
            yield
            self._angular = self.angular_rp_forest
            self._bar_kwds = self.tqdm_kwds
        finally:
            for name, value in given.items():
                setattr(self, name, value)
            np.random.set_state(global_state)

    def _check_finsler_parameters(self, X):
        if self.densmap or self.output_dens:
            raise ValueError(
                "densmap and output_dens are not available in a Randers space: its volume is not "
                "that of the Euclidean balls densMAP counts in. The height shows density "
                "instead; or use umap.UMAP(densmap=True)."
            )
        if self.output_metric not in ("euclidean", "l2"):
            raise ValueError(
                f"output_metric={self.output_metric!r} is not available: the embedding space is "
                "a Randers space over the Euclidean plane. Use umap.UMAP for other output metrics."
            )
        if self.affinity not in dissimilarity.AFFINITIES:
            raise ValueError(
                f"affinity must be one of {dissimilarity.AFFINITIES}, got {self.affinity!r}."
            )
        if self.transform_mode not in ("embedding", "graph"):
            raise ValueError(
                f"transform_mode must be 'embedding' or 'graph', got {self.transform_mode!r}."
            )
        self._n_threads = resolve_n_jobs(self.n_jobs)
        if self.a is None or self.b is None:
            self._a, self._b = find_ab_params(self.spread, self.min_dist)
        else:
            self._a, self._b = self.a, self.b
        if isinstance(self.init, np.ndarray):
            m = self.n_components
            if self.init.ndim != 2 or self.init.shape[1] not in (m - 1, m):
                raise ValueError(
                    f"init: an array must have n_components − 1 = {m - 1} columns (the map) or "
                    f"{m} (map and height), got shape {self.init.shape}."
                )
            if self.init.shape[0] != X.shape[0]:
                raise ValueError(
                    f"init: an array must have one row per sample ({X.shape[0]}), got "
                    f"{self.init.shape[0]}."
                )
            check_array(self.init)
        if self.local_scale is not None and self.unique:
            raise ValueError("local_scale cannot be combined with unique=True.")

    # ------------------------------------------------------------------ stages

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

    def _directed_neighbors(self, X, random_state) -> dissimilarity.DirectedNeighbors:
        n = X.shape[0]
        if self.n_neighbors >= n:
            warnings.warn(
                "n_neighbors is larger than the dataset size; truncating to X.shape[0] - 1",
                stacklevel=4,
            )
        k = self._n_neighbors = min(self.n_neighbors, max(2, n - 1))
        self._small_data = False
        if self.knn_dists is not None:
            found = dissimilarity.with_self_first(
                self.knn_indices[:, :k], self.knn_dists[:, :k], self.knn_search_index
            )
        elif self.metric == "precomputed":
            found = dissimilarity.precomputed_neighbors(X, k)
        else:
            found = self._search(X, k, random_state)
        cut = found.distances >= self._disconnection_distance
        self._n_edges_removed = int(cut.sum())
        found.indices[cut], found.distances[cut] = -1, np.inf
        return found

    def _search(self, X, k, random_state):
        n = X.shape[0]
        directed = callable(self.metric) and dissimilarity.is_asymmetric(
            self._input_distance_func, X, self._metric_kwds
        )
        if directed and n > ASYMMETRIC_BELOW:
            raise ValueError(
                f"metric: {self.metric!r} is asymmetric, and approximate neighbour search mixes "
                f"up directions; all pairs are compared up to {ASYMMETRIC_BELOW} points, X has "
                f"{n}. Compute the directed distances (a sparse matrix of the nearest ones will "
                "do) and pass metric='precomputed'."
            )
        self._small_data = directed or (
            n < EXACT_BELOW and not self.force_approximation_algorithm
        )
        sparse = scipy.sparse.issparse(X)
        if self._small_data:
            euclidean = self.metric in ("euclidean", "l2")
            return dissimilarity.exact_neighbors(
                X,
                k,
                metric=self.metric if euclidean else self._input_distance_func,
                metric_kwds=self._metric_kwds,
                n_threads=self._n_threads,
            )
        from pynndescent.distances import named_distances
        from pynndescent.sparse import sparse_named_distances

        named = sparse_named_distances if sparse else named_distances
        known = isinstance(self.metric, str) and self.metric in named
        return dissimilarity.approximate_neighbors(
            X,
            k,
            metric=self.metric if known else self._input_distance_func,
            metric_kwds=self._metric_kwds,
            random_state=random_state,
            # NN-descent depends on its thread count, a seeded result must not.
            n_threads=self._n_threads if self.random_state is None else 1,
            angular=self._angular,
            low_memory=self.low_memory,
            verbose=self.verbose,
        )

    def _build_graph(self, X, neighbors, rows):
        self._knn_indices, self._knn_dists, self._knn_search_index = neighbors
        target_k = self._n_neighbors
        if self.geodesic_neighbors is not None:
            between = None
            if self.metric == "precomputed":
                between = partial(_precomputed_between, X)
            elif self.metric not in ("euclidean", "l2"):
                between = partial(_metric_between, X, self._input_distance_func, self._metric_kwds)
            neighbors = dissimilarity.geodesic_neighbors(
                neighbors, self.geodesic_neighbors, X, distances=between
            )
            target_k = self.geodesic_neighbors
        self._sigmas, self._rhos = dissimilarity.umap_scales(
            neighbors.distances,
            local_connectivity=self.local_connectivity,
            n_neighbors=target_k,
            n_threads=self._n_threads,
        )
        self.local_scale_ = dissimilarity.mean_neighbor_distance(neighbors.distances)
        if self.local_scale is not None:
            self._sigmas = dissimilarity.relative_scale(self.local_scale, self._sigmas)
            self.local_scale_ = np.asarray(self.local_scale, dtype=np.float64)
        if self.affinity == "harmonic":
            graph = dissimilarity.harmonic_memberships(neighbors, self._sigmas, self._rhos)
        else:
            graph = dissimilarity.directed_memberships(neighbors, self._sigmas, self._rhos)
        if self.affinity == "fuzzy_union":
            graph = dissimilarity.fuzzy_union(graph, self.set_op_mix_ratio)
        self.graph_ = scipy.sparse.csr_matrix(graph)
        self.graph_dists_ = None
        raise_disconnected_warning(
            self._n_edges_removed,
            int(np.sum(_isolated(graph))),
            self._disconnection_distance,
            X.shape[0],
            verbose=self.verbose,
        )

    def _supervise(self, y, X, rows, random_state, ensure_all_finite):
        self._supervised = y is not None
        if y is None:
            return
        n = self._raw_data.shape[0]
        if len(y) != n:
            raise ValueError(f"Length of x = {n}, length of y = {len(y)}, while it must be equal.")
        if self.target_metric == "string":
            y = np.asarray(y)
        else:
            y = check_array(y, ensure_2d=False, ensure_all_finite=ensure_all_finite, dtype=None)
        k = self._n_neighbors if self.target_n_neighbors == -1 else self.target_n_neighbors
        graph = intersect_with_target(
            self.graph_,
            y if rows is None else y[rows],
            target_metric=self.target_metric,
            target_metric_kwds=self._target_metric_kwds,
            target_weight=self.target_weight,
            target_n_neighbors=k,
            exact_below=EXACT_BELOW,
            symmetric=self.affinity != "directed",
            random_state=random_state,
            n_threads=self._n_threads if self.random_state is None else 1,
        )
        self.graph_ = scipy.sparse.csr_matrix(graph)

    def _embed(self, X, random_state, inverse, callback=None):
        epochs = self.n_epochs_list or [self._default_epochs() if self.n_epochs is None
                                        else int(self.n_epochs)]
        embeddings = self._lay_out(X, random_state, epochs, callback)
        if inverse is not None:
            embeddings = [e[inverse] for e in embeddings]
        if self.n_epochs_list is not None:
            self.embedding_list_ = embeddings
        self.embedding_ = embeddings[-1]
        self._score(embeddings[-1] if inverse is None else None, inverse)

    def _default_epochs(self) -> int:
        return DEFAULT_EPOCHS if self.graph_.shape[0] <= LARGE else DEFAULT_EPOCHS_LARGE

    def _lay_out(self, X, random_state, epochs, callback):
        """Embed the points that have a neighbour; the others become nan."""
        joined = np.flatnonzero(~_isolated(self.graph_))
        everything = joined.size == self.graph_.shape[0]
        graph = self.graph_ if everything else self.graph_[joined][:, joined]
        n = self.graph_.shape[0]
        if joined.size == 0:
            return [np.full((n, self.n_components), np.nan, dtype=np.float32) for _ in epochs]
        features = None if self.metric == "precomputed" else X
        init = self.init
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
        euclidean = self.omega_norm_ == 0 or self.affinity != "directed" or m == 1
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
        directed = self.metric == "precomputed" and not _is_symmetric(self._raw_data)
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
            warnings.warn(
                f"With omega_norm={self.omega_norm_:g} the height says next to nothing about the "
                f"asymmetry of the data: it orders {sign:.0%} of the neighbour pairs rightly, "
                "50% is chance. Read it as one more map column, or use a larger omega_norm "
                "such as 0.5.",
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


def _isolated(graph) -> np.ndarray:
    """Points with neither an out-edge nor an in-edge."""
    out = np.asarray(graph.sum(axis=1)).ravel()
    into = np.asarray(graph.sum(axis=0)).ravel()
    return (out == 0) & (into == 0)


def _is_symmetric(D) -> bool:
    if scipy.sparse.issparse(D):
        return (D != D.T).nnz == 0
    return bool(np.array_equal(D, D.T))


def _precomputed_between(D, rows, columns):
    if not scipy.sparse.issparse(D):
        return np.asarray(D[np.ix_(rows, columns)], dtype=np.float64)
    block = scipy.sparse.coo_array(D[rows][:, columns])
    dense = np.full(block.shape, np.inf)
    dense[block.coords] = block.data
    return dense


def _metric_between(X, metric, kwds, rows, columns):
    from scipy.spatial.distance import cdist

    dense = (lambda block: block.toarray()) if scipy.sparse.issparse(X) else np.asarray
    return cdist(dense(X[rows]), dense(X[columns]), lambda u, v: metric(u, v, *kwds.values()))
