"""FinslerTSNE in openTSNE's own manner: ``fit`` returns an embedding that can be optimised on.

`finsler_ext.FinslerTSNE` is the scikit-learn front of the class in this module, as
openTSNE.sklearn.TSNE is of openTSNE.TSNE.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
import openTSNE
import scipy.sparse
from openTSNE.affinity import Affinities
from openTSNE.tsne import TSNEEmbedding
from sklearn.utils import check_array, check_random_state

from finsler_ext._progress import LAYOUT, stage
from finsler_ext._threads import resolve_n_jobs
from finsler_ext.asymmetry import Asymmetry, affinity_lengths
from finsler_ext.construct.directed_input import check_range, marked, opened
from finsler_ext.construct.input import canonical, check_whole, readable, without_extremes
from finsler_ext.construct.symmetry import is_directed, is_symmetric
from finsler_ext.construct.tsne_affinities import DirectedPerplexity
from finsler_ext.drift import check_drift_parameter
from finsler_ext.estimators._base import ANY_DRIFT, FinslerEstimator
from finsler_ext.estimators._tsne.embedding import FinslerEmbedding
from finsler_ext.estimators._tsne.start import initial_embedding
from finsler_ext.io import SaveMixin
from finsler_ext.layout.height_mode import (
    EUCLIDEAN,
    FREE,
    HELD,
    check_height,
    complete_old_state,
    height_mode,
)
from finsler_ext.layout.tsne.descent import FinslerDescent
from finsler_ext.layout.tsne.gradient import FinslerGradient, check_dof, choose_method
from finsler_ext.layout.tsne.schedule import Phase, TsneLayout, TsneSchedule

__all__ = ["FinslerTSNE"]

AUTO = "auto"
# openTSNE's figure for early_exaggeration="auto"
EARLY_EXAGGERATION = 12
# Neighbourhoods by which "auto" compares embeddings, as many as FinslerUMAP has by default.
AUTO_NEIGHBORS = 15


# Names of scikit-learn's t-SNE, and what to write here in their place.
SKLEARN_NAMES = {
    "init": "initialization",
    "max_iter": "n_iter (which comes after early_exaggeration_iter)",
    "method": 'negative_gradient_method ("bh" for "barnes_hut", "exact", "fft" or "auto")',
    "angle": "theta",
    "n_iter_without_progress": "n_iter: the number of iterations is fixed",
    "min_grad_norm": "n_iter: the number of iterations is fixed",
}


def _known_names(init):
    """Answer names of scikit-learn's parameters with those of openTSNE's."""

    @wraps(init)
    def checked(self, *arguments, **keywords):
        for name in keywords:
            if name in SKLEARN_NAMES:
                raise TypeError(
                    f"{name} is a parameter of scikit-learn's t-SNE. FinslerTSNE has openTSNE's; "
                    f"use {SKLEARN_NAMES[name]}."
                )
        init(self, *arguments, **keywords)

    return checked


class Problem(NamedTuple):
    """Checked data or None, affinities, and the start if one was given to `fit`."""

    X: Any
    affinities: Any
    initialization: Any


class FinslerTSNE(FinslerEstimator, SaveMixin, openTSNE.TSNE):
    """`finsler_ext.FinslerTSNE` in the manner of `openTSNE.TSNE`.

    Minimises Σ p_ij ln(p_ij/q_ij) over positions in a canonical Randers space; parameters and
    attributes are those of `finsler_ext.FinslerTSNE`. `fit` and `prepare_initial` return an
    `openTSNE.TSNEEmbedding`: it can be optimised in phases of one's own (``optimize``), takes new
    points (``transform``, ``prepare_partial``) and is pickled as usual. Its ``skew_fidelity_``
    says how faithfully the height shows the asymmetry of the data, at its present positions.

    Examples
    --------
    >>> from finsler_ext.estimators.opentsne import FinslerTSNE
    >>> from sklearn.datasets import load_iris
    >>> start = FinslerTSNE(random_state=0).prepare_initial(load_iris().data)
    >>> exaggerated = start.optimize(n_iter=50, exaggeration=12)
    >>> embedding = exaggerated.optimize(n_iter=50)
    >>> embedding.shape
    (150, 3)
    """

    _keeps_interrupted = True

    @_known_names
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
        height="auto",
        space="randers",
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
        self._fit(X, affinities=affinities, initialization=initialization)
        return self.embedding_

    def prepare_initial(self, X=None, affinities=None, initialization=None):
        """The start of the optimisation; parameters as in `fit`.

        The embedding returned can be optimised in phases of one's own, by its ``optimize``.
        """
        if self.omega_norm == AUTO:
            raise ValueError(
                "omega_norm='auto' compares finished embeddings, so prepare_initial cannot use "
                "it. Give a number such as 0.5, or call fit."
            )
        problem = self._construct(self._validate(X, affinities, initialization))
        omega_norm = self._space().check_drift(self.omega_norm)
        start, mode, _ = self._positions(problem, omega_norm)
        self.height_ = HELD if mode == HELD else FREE
        self.omega_norm_, self.asymmetry_ = omega_norm, self._asymmetry(problem)
        self.embedding_ = self._build(problem.affinities, start, omega_norm)
        return self.embedding_

    def _validate(self, X, affinities=None, initialization=None) -> Problem:
        check_dof(self.dof)
        check_drift_parameter(self.omega_norm, self._space())
        check_whole("n_components", self.n_components)
        return Problem(None if X is None else self._checked(X), affinities, initialization)

    def _construct(self, checked: Problem) -> Problem:
        X, affinities, _ = checked
        if affinities is None and X is not None:
            affinities = self._affinities(X)
        self._check_affinities(X, affinities)
        self.affinities_ = affinities
        return checked._replace(affinities=affinities)

    def _checked(self, X):
        precomputed = isinstance(self.metric, str) and self.metric == "precomputed"
        data = opened(X, precomputed=precomputed)
        if precomputed:
            check_range(data.X)
        X = check_array(
            readable(data.X, missing=np.inf if precomputed else None),
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",  # sums depend on it
            ensure_min_samples=2,
            # Missing pairs of a directed matrix are nan or inf; others are checked with it.
            ensure_all_finite=not precomputed,
        )
        data.name_points(self)
        X = marked(X, np.inf) if precomputed else X
        return without_extremes(canonical(X, keep_zeros=precomputed))

    def _check_affinities(self, X, affinities):
        if affinities is None:
            raise ValueError("At least one of X and affinities must be given.")
        if not isinstance(affinities, Affinities):
            raise ValueError(
                "affinities must be an instance of openTSNE.affinity.Affinities, got "
                f"{type(affinities).__name__}. Wrap a matrix in PrecomputedDirected."
            )
        P = affinities.P
        if X is not None and X.shape[0] != P.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows, affinities have {P.shape[0]}.")

    def _positions(self, problem: Problem, omega_norm, random_state=None):
        """Initial positions, what becomes of their height, and whether their frame stays."""
        X, affinities, initialization = problem
        given = self.initialization if initialization is None else initialization
        m, P = self.n_components, affinities.P
        columns = None if isinstance(given, str) else np.shape(np.atleast_2d(given))[1]
        check_height(self.height, m, columns, "an initialization")
        mode = height_mode(self.height, m, omega_norm, is_symmetric(P), columns)
        start = initial_embedding(
            given,
            m,
            P,
            None if self.metric == "precomputed" else X,
            self.random_state if random_state is None else random_state,
            flat=mode == HELD,
        )
        return start, mode, columns == m

    def _build(self, affinities, start, omega_norm):
        """openTSNE's embedding object, with the gradient of the drift."""
        gradient = self.negative_gradient_method
        if not callable(gradient):
            chosen = choose_method(gradient, *start.shape, self._space())
            self._say(
                f"Gradient: {chosen}, {start.shape[0]} points, {start.shape[1]} columns, "
                f"omega_norm={omega_norm:g}"
            )
            # "auto" stays "auto": it decides anew when a layout outgrows its grid
            gradient = FinslerGradient(omega_norm, gradient, self._space())
        embedding = TSNEEmbedding(
            start,
            affinities,
            random_state=self.random_state,
            optimizer=FinslerDescent(),
            negative_gradient_method=gradient,
            dof=check_dof(self.dof),
            momentum=self.final_momentum,
            n_jobs=resolve_n_jobs(None) if self.n_jobs is None else self.n_jobs,
            **{name: getattr(self, name) for name in _PASSED_ON},
        )
        return FinslerEmbedding.of(embedding, self.asymmetry_, omega_norm, self._space())

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

    def _phases(self) -> list[Phase]:
        early = self.early_exaggeration
        if early == AUTO:
            early = max(EARLY_EXAGGERATION, self.exaggeration or 1)
        return [
            Phase(self.early_exaggeration_iter, early, self.initial_momentum),
            Phase(self.n_iter, self.exaggeration, self.final_momentum),
        ]

    def _start(self, problem: Problem):
        """A function from a drift to a layout; its layouts share starts and first acts.

        Without a drift (None) it returns the layout before the drift acts.
        """
        seed = self.random_state
        if self.omega_norm == AUTO:  # every trial has the same start
            seed = check_random_state(seed).randint(np.iinfo(np.int32).max)
        schedules: dict[str, TsneSchedule] = {}
        gradients = []

        def build(start, omega_norm):
            embedding = self._build(problem.affinities, start, omega_norm)
            gradients.append(embedding.gradient_descent_params["negative_gradient_method"])
            return embedding

        def schedule(omega_norm):
            start, mode, frame_stays = self._positions(problem, omega_norm, seed)
            if callable(self.negative_gradient_method):
                mode = EUCLIDEAN  # a gradient of the user's: nothing is known of it
            if mode not in schedules:
                schedules[mode] = TsneSchedule(
                    build,
                    start,
                    self._phases(),
                    mode=mode,
                    find_axis=not frame_stays,
                    level=self.asymmetry_.level(),
                    tolerance=self.asymmetry_.tolerance,
                )
            return schedules[mode]

        def show(embedding):
            self.embedding_ = embedding  # after Ctrl-C it is what was reached

        def layout(omega_norm):
            if omega_norm is None:
                return schedule(ANY_DRIFT).before_drift(show)
            self.omega_norm_ = omega_norm
            stage(LAYOUT)
            found = schedule(omega_norm).at(omega_norm, show)
            used = sum((g.used for g in gradients if isinstance(g, FinslerGradient)), Counter())
            if len(used) > 1:
                steps = ", ".join(f"{count} by {method}" for method, count in used.items())
                self._say(f"Gradient: {steps}, as the grid was small enough or not")
            return found

        return layout

    def _lay_out(self, problem: Problem, layout) -> TsneLayout:
        if self.omega_norm != AUTO:
            return layout(float(self.omega_norm))
        P = scipy.sparse.csr_array(problem.affinities.P)
        neighbors = getattr(problem.affinities, "neighbors", None)
        neighbors = _strongest(P) if neighbors is None else neighbors[:, :AUTO_NEIGHBORS]
        found: dict[float, TsneLayout] = {}

        def embed(omega_norm):
            found[omega_norm] = layout(omega_norm)
            return np.array(found[omega_norm].embedding)

        chosen = self._chosen_drift(P, lambda: layout(None), embed, neighbors)
        return found.get(chosen) or layout(chosen)

    def _asymmetry(self, problem: Problem) -> Asymmetry:
        """What the height is to show; directed distances come first."""
        X, affinities, _ = problem
        precomputed = isinstance(self.metric, str) and self.metric == "precomputed"
        self._directed_distances = precomputed and X is not None and is_directed(X)
        if self._directed_distances:
            return Asymmetry.of_distances(X)
        if callable(self.metric) and getattr(affinities, "directed_input", False):
            return Asymmetry.of_distances(affinities.neighbor_distances())
        scale = getattr(affinities, "local_scale", None)
        if scale is not None:
            given = self.local_scale is not None
            return Asymmetry.of_scale(affinities.P, scale, given=given)
        return Asymmetry.of_distances(affinity_lengths(affinities.P))

    def _score(self, problem: Problem, layout: TsneLayout) -> None:
        """Say how much of the asymmetry the height carries."""
        embedding = layout.embedding
        self.height_, self.islands_, self.embedding_ = layout.height, layout.islands, embedding
        self.kl_divergence_ = float(embedding.kl_divergence)
        self.local_scale_ = getattr(self.affinities_, "local_scale", None)
        symmetric = is_symmetric(self.affinities_.P)
        self._judge(np.asarray(embedding), f"Height {self.height_}", symmetric=symmetric)

    def __setstate__(self, state):
        super().__setstate__(complete_old_state(dict(state)))

    def __deepcopy__(self, memo):
        """deepcopy by the route of pickle: numpy's own loses what an embedding carries."""
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        for name, value in vars(self).items():
            embedding = isinstance(value, TSNEEmbedding)
            copied_value = deepcopied(value, memo) if embedding else deepcopy(value, memo)
            setattr(copied, name, copied_value)
        return copied


_PASSED_ON = (
    "learning_rate",
    "theta",
    "n_interpolation_points",
    "min_num_intervals",
    "ints_in_interval",
    "max_grad_norm",
    "max_step_norm",
    "verbose",
    "callbacks",
    "callbacks_every_iters",
)


def deepcopied(embedding: TSNEEmbedding, memo: dict) -> TSNEEmbedding:
    rebuild, arguments, state = embedding.__reduce__()
    copied = rebuild(*arguments)
    copied.__setstate__(deepcopy(state, memo))
    memo[id(embedding)] = copied
    return copied


def _strongest(P, k: int = AUTO_NEIGHBORS) -> np.ndarray:
    """Targets of the k strongest edges of every row, −1 where there are fewer."""
    neighbors = np.full((P.shape[0], k), -1)
    for i in range(P.shape[0]):
        row = slice(P.indptr[i], P.indptr[i + 1])
        best = P.indices[row][np.argsort(-P.data[row], kind="stable")[:k]]
        neighbors[i, : best.size] = best
    return neighbors
