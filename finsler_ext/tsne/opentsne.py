"""FinslerTSNE with openTSNE's interface: ``fit`` returns an embedding that can be optimised on.

`finsler_ext.FinslerTSNE` is a thin scikit-learn estimator over the class in this module, as
openTSNE.sklearn.TSNE is over openTSNE.TSNE.
"""

from __future__ import annotations

from functools import wraps
from typing import Any, NamedTuple

import numpy as np
import openTSNE
import scipy.sparse
from openTSNE.affinity import Affinities
from openTSNE.tsne import TSNEEmbedding
from sklearn.utils.validation import validate_data

from finsler_ext import schema
from finsler_ext._messages import warn
from finsler_ext._threads import resolve_n_jobs
from finsler_ext.asymmetry import (
    DISTANCES,
    Asymmetry,
    affinity_lengths,
    is_directed,
    is_symmetric,
)
from finsler_ext.base import FinslerEstimator, check_drift_of, scores
from finsler_ext.directed.data import DirectedData
from finsler_ext.directed.digraph import (
    compares_lengths,
    digraph_edges,
    edge_strengths,
    is_digraph,
    strength_skews,
    with_ways_back,
)
from finsler_ext.directed.read import as_matrix, check_node_names, check_range, fill_missing, unmask
from finsler_ext.geometry import check_drift_parameter
from finsler_ext.height.acts import EUCLIDEAN, FREE, HEIGHTS, Layout, check_law
from finsler_ext.height.start import read_pins
from finsler_ext.io import SaveMixin
from finsler_ext.tsne.affinity import TSNE_AFFINITIES, DirectedPerplexity
from finsler_ext.tsne.gradient import FinslerGradient, check_dof, choose_method
from finsler_ext.tsne.layout import STARTS, TsneLayouts
from finsler_ext.tsne.optimizer import FinslerDescent, FinslerEmbedding, Phase
from finsler_ext.validation import canonical, readable, without_extremes

AUTO = "auto"
# Parameters that go to openTSNE's embedding as they are.
PASSED_ON = (
    "learning_rate", "theta", "n_interpolation_points", "min_num_intervals", "ints_in_interval",
    "max_grad_norm", "max_step_norm", "verbose", "callbacks", "callbacks_every_iters",
)  # fmt: skip
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


# openTSNE's names of neighbour searches, "auto" being ours.
OPENTSNE_SEARCHES = (AUTO, "exact", "approx", "annoy", "pynndescent", "hnsw")
INDEX = schema.Field("a KNNIndex", lambda value, scope: hasattr(value, "query"))
AMOUNT, COUNT = schema.number("(0, inf)"), schema.whole("[0, 1000000]")
# What each parameter may be; `fit` and `finsler_ext.load` refuse anything else.
PARAMETERS = {
    "n_components": schema.WIDTH,
    "perplexity": AMOUNT | schema.listed(AMOUNT, least=1) | schema.array_like("k"),
    "learning_rate": AMOUNT | schema.one_of(AUTO),
    "early_exaggeration_iter": COUNT,
    "early_exaggeration": schema.NONE | AMOUNT | schema.one_of(AUTO),
    "n_iter": COUNT,
    "exaggeration": schema.NONE | AMOUNT,
    "dof": AMOUNT,
    "theta": schema.number("[0, inf)"),
    "n_interpolation_points": schema.whole("[1, inf)"),
    "min_num_intervals": schema.whole("[1, inf)"),
    "ints_in_interval": AMOUNT,
    "initialization": schema.one_of(*STARTS) | schema.array_like(),
    "metric": schema.TEXT | schema.CALLABLE,
    "metric_params": schema.METRIC_OPTIONS,
    "initial_momentum": schema.number("[0, 1)"),
    "final_momentum": schema.number("[0, 1)"),
    "max_grad_norm": schema.NONE | AMOUNT,
    "max_step_norm": schema.NONE | AMOUNT,
    "n_jobs": schema.JOBS,
    "neighbors": schema.one_of(*OPENTSNE_SEARCHES) | INDEX,
    "knn_kwargs": schema.NONE | schema.instance(dict),
    "negative_gradient_method": schema.one_of(AUTO, "exact", "bh", "fft") | schema.CALLABLE,
    "callbacks": schema.NONE | schema.CALLABLE | schema.instance(list, tuple),
    "callbacks_every_iters": schema.whole("[1, inf)"),
    "random_state": schema.SEED,
    "verbose": schema.VERBOSE,
    "omega_norm": schema.DRIFT,
    "affinity": schema.one_of(*TSNE_AFFINITIES),
    "geodesic_neighbors": schema.NONE | schema.whole("[1, inf)"),
    "local_scale": schema.SCALE,
    "height": schema.one_of(*HEIGHTS),
    "space": schema.SPACE,
    "output": schema.one_of("all", "map"),
    "ridge": schema.RIDGE,
}
# Attributes of a fitted model, as files hold them.
FITTED = scores("n") | {
    "affinities_": schema.part(
        "DirectedPerplexity", "DirectedFixedSigma", "DirectedUniform", "PrecomputedDirected", n="n"
    ),
    "embedding_": schema.part("opentsne.FinslerEmbedding", n="n", m="m"),
    "_n_features_out": schema.maybe(schema.whole("[1, inf)", size="m")),
    "pinned_": schema.maybe(schema.NONE | schema.array("f8", "n m", nan=True)),
    "kl_divergence_": schema.maybe(schema.number(nan=True)),
    "height_": schema.one_of(*HEIGHTS[1:]),
    "islands_": schema.maybe(schema.part("Islands")),
    "drift_choice_": schema.maybe(schema.part("DriftChoice")),
    "_directed_distances": schema.maybe(schema.FLAG),
    "_strengths_given": schema.maybe(schema.FLAG),
    "_fitted_params": schema.maybe(schema.known_settings(PARAMETERS)),
}


def check_fitted(state: dict) -> None:
    """What must hold between the attributes of a model that is read from a file."""
    fitted = {**state, **state.get("_fitted_params", {})}
    check_drift_of(fitted)
    check_law(state)
    if state["embedding_"].omega_norm_ != state["omega_norm_"]:
        raise ValueError("omega_norm_ is not that of embedding_")


# Of openTSNE's embedding.
EMBEDDING = {
    "positions": schema.array("f8", "n m"),
    "affinities": FITTED["affinities_"],
    "gradient_descent_params": schema.known_settings(
        PARAMETERS
        | {
            "momentum": schema.number("[0, 1)"),
            "n_jobs": schema.whole("[-1024, -1]") | schema.whole("[1, 1024]"),
            "negative_gradient_method": schema.part("FinslerGradient"),
        }
    ),
    "optimizer": schema.part("FinslerDescent", n="n", m="m"),
    "random_state": schema.SEED,
    "kl_divergence": schema.NONE | schema.number(nan=True),
}
schema.saved(EMBEDDING, name="openTSNE.TSNEEmbedding")(TSNEEmbedding)
schema.saved(
    EMBEDDING,
    name="opentsne.FinslerEmbedding",
    asymmetry_=schema.NONE | schema.part("Asymmetry", n="n"),
    omega_norm_=schema.number("[0, 1)"),
    space=schema.TEXT | schema.part("Space"),
)(FinslerEmbedding)


class Problem(NamedTuple):
    """Checked data or None, affinities, and the start if one was given to `fit`.

    strengths : of the edges of a digraph, if the data has any
    pinned : places that are given, nan where free
    """

    X: Any
    affinities: Any
    initialization: Any
    strengths: Any = None
    pinned: Any = None


@schema.saved({**PARAMETERS, **FITTED}, name="opentsne.FinslerTSNE", relations=check_fitted)
class OpenFinslerTSNE(FinslerEstimator, SaveMixin, openTSNE.TSNE):
    """`finsler_ext.FinslerTSNE` with the interface of `openTSNE.TSNE`.

    Minimises Σ p_ij ln(p_ij/q_ij) over positions in a canonical Randers space; parameters and
    attributes are those of `finsler_ext.FinslerTSNE`. `fit` and `prepare_initial` return an
    `openTSNE.TSNEEmbedding`: it can be optimised in your own phases (``optimize``), takes new
    points (``transform``, ``prepare_partial``) and is pickled as usual. Its ``skew_fidelity_``
    says how faithfully the height shows the asymmetry of the data, at its present positions.

    Examples
    --------
    >>> from finsler_ext.tsne.opentsne import OpenFinslerTSNE
    >>> from sklearn.datasets import load_iris
    >>> start = OpenFinslerTSNE(random_state=0).prepare_initial(load_iris().data)
    >>> exaggerated = start.optimize(n_iter=50, exaggeration=12)
    >>> embedding = exaggerated.optimize(n_iter=50)
    >>> embedding.shape
    (150, 3)
    """

    _parameters = PARAMETERS
    _free_after_fit = frozenset(
        {"n_jobs", "output", "verbose", "callbacks", "callbacks_every_iters"}
    )
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
        output="all",
        ridge=0.0,
    ):
        given = dict(locals())
        for name in self._get_param_names():
            setattr(self, name, given[name])

    def fit(self, X=None, affinities=None, initialization=None, pinned=None):
        """Find the embedding.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples)
            directed distances if ``metric="precomputed"``
        affinities : openTSNE.affinity.Affinities, optional
            In place of those that the parameters describe; `P` may be directed.
        initialization : array, optional
            In place of the parameter of the same name.
        pinned : array or DataFrame of m − 1 or m columns, optional
            As in `finsler_ext.FinslerTSNE.fit`.

        Returns
        -------
        openTSNE.TSNEEmbedding
        """
        self._fit(X, affinities=affinities, initialization=initialization, pinned=pinned)
        return self.embedding_

    def prepare_initial(self, X=None, affinities=None, initialization=None):
        """The start of the optimisation; parameters as in `fit`.

        Optimise the embedding that is returned in your own phases, with its ``optimize``.
        """
        if self.omega_norm == AUTO:
            raise ValueError(
                "omega_norm='auto' compares finished embeddings, so prepare_initial cannot use "
                "it. Give a number such as 0.5, or call fit."
            )
        schema.check_parameters(self)
        problem = self._construct(self._validate(X, affinities, initialization))
        omega_norm = self._space().check_drift(self.omega_norm)
        self.omega_norm_, self.asymmetry_ = omega_norm, self._asymmetry(problem)
        layouts = TsneLayouts(self, problem)
        mode = layouts.mode(omega_norm)
        self.height_ = FREE if mode == EUCLIDEAN else mode
        self.embedding_ = self._build(problem.affinities, layouts.start(mode), omega_norm)
        return self.embedding_

    def _validate(self, X, affinities=None, initialization=None, pinned=None) -> Problem:
        check_drift_parameter(self.omega_norm, self._space())
        strengths = None
        if X is not None:
            data = as_matrix(X, precomputed=self._is_precomputed)
            X = self._checked(data.X, reset=True)
            X = without_extremes(canonical(X, keep_zeros=self._is_precomputed))
            data.name_points(self)
            strengths = data.strengths
        return Problem(X, affinities, initialization, strengths, pinned)

    def _construct(self, checked: Problem) -> Problem:
        X, affinities = checked.X, checked.affinities
        if affinities is None and X is not None:
            affinities = self._affinities(X)
        self._check_affinities(X, affinities)
        self.affinities_ = affinities
        _warn_of_isolated(affinities.P)
        names = getattr(self, "node_names_", None)
        n, m = affinities.P.shape[0], self.n_components
        self.pinned_ = read_pins(checked.pinned, n, m, names)
        return checked._replace(affinities=affinities, pinned=self.pinned_)

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _checked(self, X, *, reset: bool):
        """Rows of `fit` (``reset``) or `transform`; pairs of points without a distance are inf."""
        pairwise = self._is_precomputed
        if pairwise:
            if not reset:
                check_node_names(self, X)
            X = unmask(X)
            check_range(X)
        X = validate_data(
            self,
            readable(X, missing=np.inf if pairwise else None),
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",  # sums depend on it
            ensure_min_samples=2 if reset else 1,
            # Missing pairs of a directed matrix are nan or inf; others are checked with it.
            ensure_all_finite=not pairwise,
        )
        return fill_missing(X, np.inf, square=reset) if pairwise else X

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
            **{name: getattr(self, name) for name in PASSED_ON},
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

    def _start(self, problem: Problem) -> TsneLayouts:
        return TsneLayouts(self, problem)

    def _lay_out(self, problem: Problem, layouts: TsneLayouts) -> Layout:
        if self.omega_norm != AUTO:
            return layouts.at(float(self.omega_norm))
        P = scipy.sparse.csr_array(problem.affinities.P)
        neighbors = getattr(problem.affinities, "neighbors", None)
        neighbors = _strongest(P) if neighbors is None else neighbors[:, :AUTO_NEIGHBORS]
        found: dict[float, tuple[TSNEEmbedding, Layout]] = {}

        def embed(omega_norm):
            layout = layouts.at(omega_norm)
            found[omega_norm] = self.embedding_, layout
            return layout.position

        chosen = self._chosen_drift(P, layouts.before_drift, embed, neighbors)
        if chosen not in found:
            return layouts.at(chosen)
        self.embedding_, layout = found[chosen]
        return layout

    def _asymmetry(self, problem: Problem) -> Asymmetry:
        """What the height is to show; directed distances come first."""
        X, affinities, strengths = problem.X, problem.affinities, problem.strengths
        precomputed, given = self._is_precomputed, None
        if precomputed and X is not None and (strengths is not None or is_digraph(X)):
            edges, given, X = digraph_edges(X, strengths), strengths, with_ways_back(X)
            strengths = None if compares_lengths(edges) else edge_strengths(edges)
        self._directed_distances = precomputed and X is not None and is_directed(X)
        self._strengths_given = strengths is not None
        if self._directed_distances:
            skewed = X if given is None else strength_skews(given)
            return Asymmetry.of_distances(skewed, strengths=strengths)
        if callable(self.metric) and getattr(affinities, "directed_input", False):
            return Asymmetry.of_distances(affinities.neighbor_distances(), strengths=affinities.P)
        scale = getattr(affinities, "local_scale", None)
        if scale is not None:
            given = self.local_scale is not None
            return Asymmetry.of_scale(affinities.P, scale, given=given)
        return Asymmetry.of_distances(affinity_lengths(affinities.P), strengths=affinities.P)

    def _measured(self, problem: Problem):
        affinities = problem.affinities
        if self._directed_distances:
            return DirectedData(problem.X, strengths=problem.strengths)
        if self.asymmetry_.kind == DISTANCES:
            return "a directed metric or given affinities leave nothing to randomise"
        return affinities.neighbors, affinities.distances

    def _score(self, problem: Problem, layout: Layout) -> None:
        """Say how much of the asymmetry the height carries."""
        self.height_, self.islands_ = layout.height, layout.islands
        self.kl_divergence_ = float(layout.loss)
        self.local_scale_ = getattr(self.affinities_, "local_scale", None)
        share = self.asymmetry_.gradient_share() if self._directed_distances else float("nan")
        self.gradient_share_, self._n_features_out = share, self.n_components
        symmetric = is_symmetric(self.affinities_.P)
        self._judge(layout.position, f"Height {self.height_}", symmetric=symmetric)


def _warn_of_isolated(P) -> None:
    P = scipy.sparse.csr_array(P)
    lonely = np.diff(P.indptr) == 0
    lonely[P.indices] = False
    if lonely.any():
        warn(
            f"{lonely.sum()} points have no neighbours, the first is row {lonely.argmax()}: where "
            "they are in the embedding means nothing."
        )


def _strongest(P, k: int = AUTO_NEIGHBORS) -> np.ndarray:
    """Targets of the k strongest edges of every row, −1 where there are fewer."""
    neighbors = np.full((P.shape[0], k), -1)
    for i in range(P.shape[0]):
        row = slice(P.indptr[i], P.indptr[i + 1])
        best = P.indices[row][np.argsort(-P.data[row], kind="stable")[:k]]
        neighbors[i, : best.size] = best
    return neighbors
