"""FinslerTSNE in openTSNE's own manner: ``fit`` returns an embedding that can be optimised on.

`finsler_ext.FinslerTSNE` is the scikit-learn front of the class in this module, as
openTSNE.sklearn.TSNE is of openTSNE.TSNE.
"""

from __future__ import annotations

import numpy as np
import openTSNE
import scipy.sparse
from openTSNE.affinity import Affinities
from openTSNE.tsne import OptimizationInterrupt, TSNEEmbedding
from sklearn.utils import check_array, check_random_state

from finsler_ext._tsne_start import initial_embedding, is_symmetric
from finsler_ext.dissimilarity.tsne_affinities import DirectedPerplexity
from finsler_ext.drift_choice import choose_drift, least_sign, warn_of_chance
from finsler_ext.layout.tsne_descent import FinslerDescent
from finsler_ext.layout.tsne_gradient import FinslerGradient, check_dof, choose_method
from finsler_ext.metrics import density_height, is_directed, skew_fidelity
from finsler_ext.randers import check_omega_norm

__all__ = ["FinslerTSNE"]

AUTO = "auto"
# openTSNE's figure for early_exaggeration="auto"
EARLY_EXAGGERATION = 12
# Neighbourhoods by which "auto" compares embeddings, as many as FinslerUMAP has by default.
AUTO_NEIGHBORS = 15


class FinslerTSNE(openTSNE.TSNE):
    """`finsler_ext.FinslerTSNE` in the manner of `openTSNE.TSNE`.

    Minimises Σ p_ij ln(p_ij/q_ij) over positions in a canonical Randers space; parameters and
    attributes are those of `finsler_ext.FinslerTSNE`. `fit` and `prepare_initial` return an
    `openTSNE.TSNEEmbedding`: it can be optimised in phases of one's own (``optimize``), takes new
    points (``transform``, ``prepare_partial``) and is pickled as usual.

    Examples
    --------
    >>> from finsler_ext.opentsne import FinslerTSNE
    >>> from sklearn.datasets import load_iris
    >>> start = FinslerTSNE(random_state=0).prepare_initial(load_iris().data)
    >>> exaggerated = start.optimize(n_iter=50, exaggeration=12)
    >>> embedding = exaggerated.optimize(n_iter=50)
    >>> embedding.shape
    (150, 3)
    """

    def __init__(
        self,
        n_components=3,
        perplexity=30,
        learning_rate="auto",
        early_exaggeration_iter=250,
        early_exaggeration="auto",
        n_iter=500,
        exaggeration=None,
        dof=1,
        theta=0.5,
        n_interpolation_points=3,
        min_num_intervals=50,
        ints_in_interval=1,
        initialization="pca",
        metric="euclidean",
        metric_params=None,
        initial_momentum=0.8,
        final_momentum=0.8,
        max_grad_norm=None,
        max_step_norm=5,
        n_jobs=-1,
        neighbors="auto",
        knn_kwargs=None,
        negative_gradient_method="auto",
        callbacks=None,
        callbacks_every_iters=50,
        random_state=None,
        verbose=False,
        omega_norm=0.5,
        affinity="directed",
        geodesic_neighbors=None,
        local_scale=None,
    ):
        given = dict(locals())
        for name in self._get_param_names():
            setattr(self, name, given[name])

    def fit(self, X=None, affinities=None, initialization=None):
        """Find the embedding.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples)
            directed distances if ``metric="precomputed"``
        affinities : openTSNE.affinity.Affinities, optional
            In place of those that the parameters describe; `P` may be directed.
        initialization : array, optional
            In place of the parameter of the same name.

        Returns
        -------
        openTSNE.TSNEEmbedding
        """
        X = self._checked(X)
        if self.omega_norm == AUTO:
            return self._fit_auto(X, affinities, initialization)
        embedding = self._prepare(X, affinities, initialization, self.omega_norm)
        embedding = self._descend(embedding)
        self._score(embedding, X)
        return embedding

    def prepare_initial(self, X=None, affinities=None, initialization=None):
        """The start of the optimisation; parameters as in `fit`.

        The embedding returned can be optimised in phases of one's own, by its ``optimize``.
        """
        if self.omega_norm == AUTO:
            raise ValueError(
                "omega_norm='auto' compares finished embeddings, so prepare_initial cannot use "
                "it. Give a number such as 0.5, or call fit."
            )
        return self._prepare(self._checked(X), affinities, initialization, self.omega_norm)

    def _checked(self, X):
        check_dof(self.dof)
        if self.omega_norm != AUTO or not isinstance(self.omega_norm, str):
            check_omega_norm(self.omega_norm)
        if not isinstance(self.n_components, (int, np.integer)) or self.n_components < 1:
            raise ValueError(f"n_components must be a positive integer, got {self.n_components!r}.")
        if X is None:
            return None
        return check_array(
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=2,
            # Missing pairs of a directed matrix are inf; other values are checked with it.
            ensure_all_finite=self.metric != "precomputed",
        )

    def _prepare(self, X, affinities, initialization, omega_norm):
        omega_norm = check_omega_norm(omega_norm)
        if X is None and affinities is None:
            raise ValueError("At least one of X and affinities must be given.")
        if affinities is None:
            affinities = self._affinities(X)
        elif not isinstance(affinities, Affinities):
            raise ValueError(
                "affinities must be an instance of openTSNE.affinity.Affinities, got "
                f"{type(affinities).__name__}. Wrap a matrix in PrecomputedDirected."
            )
        P = affinities.P
        if X is not None and X.shape[0] != P.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, affinities have {P.shape[0]}.")
        start = initial_embedding(
            self.initialization if initialization is None else initialization,
            self.n_components,
            P,
            None if self.metric == "precomputed" else X,
            omega_norm,
            self.random_state,
        )
        gradient = self.negative_gradient_method
        if not callable(gradient):
            chosen = choose_method(gradient, P.shape[0], self.n_components)
            self._say(f"Gradient: {chosen}, {P.shape[0]} points, omega_norm={omega_norm:g}")
            # "auto" stays "auto": it decides anew when a layout outgrows its grid
            gradient = FinslerGradient(omega_norm, gradient)
        self.omega_norm_ = omega_norm
        self.affinities_ = affinities
        self.embedding_ = TSNEEmbedding(
            start,
            affinities,
            random_state=self.random_state,
            optimizer=FinslerDescent(),
            negative_gradient_method=gradient,
            dof=check_dof(self.dof),
            momentum=self.final_momentum,
            **{name: getattr(self, name) for name in _PASSED_ON},
        )
        return self.embedding_

    def _affinities(self, X):
        self._say("Finding directed neighbours")
        return DirectedPerplexity(
            X,
            self.perplexity,
            method=self.neighbors,
            metric=self.metric,
            metric_params=self.metric_params,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            verbose=self.verbose,
            knn_kwargs=self.knn_kwargs,
            affinity=self.affinity,
            geodesic_neighbors=self.geodesic_neighbors,
            local_scale=self.local_scale,
        )

    def _descend(self, embedding):
        """Both phases of openTSNE, in place: after Ctrl-C, embedding_ is what was reached."""
        early = self.early_exaggeration
        if early == AUTO:
            early = max(EARLY_EXAGGERATION, self.exaggeration or 1)
        phases = (
            (self.early_exaggeration_iter, early, self.initial_momentum),
            (self.n_iter, self.exaggeration, self.final_momentum),
        )
        try:
            for n_iter, exaggeration, momentum in phases:
                embedding.optimize(
                    n_iter=n_iter,
                    exaggeration=exaggeration,
                    momentum=momentum,
                    inplace=True,
                    propagate_exception=True,
                )
        except OptimizationInterrupt as stop:  # a callback has seen enough
            embedding = stop.final_embedding
        gradient = embedding.gradient_descent_params["negative_gradient_method"]
        if isinstance(gradient, FinslerGradient) and len(gradient.used) > 1:
            steps = ", ".join(f"{count} by {method}" for method, count in gradient.used.items())
            self._say(f"Gradient: {steps}, as the grid was small enough or not")
        return embedding

    def _fit_auto(self, X, affinities, initialization):
        random_state = check_random_state(self.random_state)
        seed = random_state.randint(np.iinfo(np.int32).max)
        if affinities is None:
            affinities = self._affinities(X)
        P = scipy.sparse.csr_array(affinities.P)

        def embed(omega_norm):
            self._say(f"omega_norm='auto': trying {omega_norm:g}")
            start = initialization
            if start is None:
                features = None if self.metric == "precomputed" else X
                start = initial_embedding(
                    self.initialization, self.n_components, P, features, omega_norm, seed
                )
            embedding = self._descend(self._prepare(X, affinities, start, omega_norm))
            reached[omega_norm] = embedding
            return np.array(embedding)

        reached: dict[float, TSNEEmbedding] = {}
        neighbors = getattr(affinities, "neighbors", None)
        choice, _ = choose_drift(
            embed,
            lambda embedding: self._fidelity(embedding, X, affinities),
            _strongest(P) if neighbors is None else neighbors[:, :AUTO_NEIGHBORS],
        )
        self._say(f"omega_norm='auto': {choice.omega_norm:g}, {choice.reason}")
        self.drift_choice_ = choice
        self.omega_norm_ = choice.omega_norm
        self.affinities_ = affinities
        self.embedding_ = reached[choice.omega_norm]
        self._score(self.embedding_, X)
        return self.embedding_

    def _fidelity(self, embedding, X, affinities):
        P = affinities.P
        if self.metric == "precomputed" and X is not None and is_directed(X):
            return skew_fidelity(embedding, distances=X)
        if callable(self.metric) and getattr(affinities, "directed_input", False):
            return skew_fidelity(embedding, distances=affinities.neighbor_distances())
        scale = getattr(affinities, "local_scale", None)
        if scale is not None:
            return skew_fidelity(embedding, graph=P, local_scale=scale)
        # affinities given as they are: the larger p_ij, the shorter the way from i to j
        length = scipy.sparse.csr_array(P, copy=True)
        length.data = -np.log(length.data / length.data.max())
        return skew_fidelity(embedding, distances=length)

    def _score(self, embedding, X):
        """Say how much of the asymmetry the height carries."""
        self.embedding_ = embedding
        self.kl_divergence_ = float(embedding.kl_divergence)
        plain = np.asarray(embedding)
        self.local_scale_ = getattr(self.affinities_, "local_scale", None)
        self.skew_fidelity_ = self._fidelity(plain, X, self.affinities_)
        self.density_height_ = (
            float("nan") if self.local_scale_ is None else density_height(plain, self.local_scale_)
        )
        self._say(str(self.skew_fidelity_))
        if not is_symmetric(self.affinities_.P):
            drift = self.omega_norm_
            warn_of_chance(self.skew_fidelity_, drift, least=least_sign(drift), stacklevel=4)

    def _say(self, message: str) -> None:
        if self.verbose:
            print(message)


_PASSED_ON = (
    "learning_rate",
    "theta",
    "n_interpolation_points",
    "min_num_intervals",
    "ints_in_interval",
    "max_grad_norm",
    "max_step_norm",
    "n_jobs",
    "verbose",
    "callbacks",
    "callbacks_every_iters",
)


def _strongest(P, k: int = AUTO_NEIGHBORS) -> np.ndarray:
    """Targets of the k strongest edges of every row, −1 where there are fewer."""
    neighbors = np.full((P.shape[0], k), -1)
    for i in range(P.shape[0]):
        row = slice(P.indptr[i], P.indptr[i + 1])
        best = P.indices[row][np.argsort(-P.data[row], kind="stable")[:k]]
        neighbors[i, : best.size] = best
    return neighbors
