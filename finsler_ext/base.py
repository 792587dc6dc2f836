"""The steps of a fit, the same for all estimators, and the promise that it is atomic.

    validate → construct → start → lay out, at the drift given or chosen → score

An estimator fills in the steps. A fit works on a copy of the model and hands over what it found
when all steps are done, so that an error or Ctrl-C half way leaves the model as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from finsler_ext import schema
from finsler_ext._messages import warn
from finsler_ext._threads import plain_interrupt
from finsler_ext.asymmetry import (
    DIRECTED_SHARE,
    NONE,
    SCALE,
    Asymmetry,
    SkewFidelity,
    density_height,
    is_symmetric,
)
from finsler_ext.evidence.density import density_findings, scale_error
from finsler_ext.evidence.direction import (
    MeasuredPairs,
    direction_findings,
    measured_pairs,
    potential_error,
    untestable,
)
from finsler_ext.evidence.verdict import Evidence, HeightError, warn_of_height
from finsler_ext.geometry import Space, find_space
from finsler_ext.geometry.space import map_columns
from finsler_ext.height.drift import DriftChoice, choose_drift
from finsler_ext.schema import Field, check_parameters
from finsler_ext.validation import refuse_diverged

# What `transform` returns: all columns of the embedding, or those of the map.
ALL, MAP = "all", "map"
# Stands for a drift that is not known yet; no layout is made with it.
ANY_DRIFT = 0.25


def check_drift_of(fitted: dict[str, Any]) -> None:
    """Refuse the drift of a model from a file that its parameters do not give."""
    drift = find_space(fitted["space"]).check_drift(fitted["omega_norm_"])
    if fitted["omega_norm"] != "auto" and drift != float(fitted["omega_norm"]):
        raise ValueError("omega_norm_ is not the omega_norm that was given")


def scores(N: str) -> dict[str, Field]:
    """What all fitted models have, as files hold it, for N rows of data.

    n of them are laid out: fewer than N with unique=True.
    """
    return {
        "omega_norm_": schema.number("[0, 1)"),
        "local_scale_": schema.NONE | schema.array("f8", "n", "[0, inf)", nan=True),
        "asymmetry_": schema.maybe(schema.part("Asymmetry", n="n")),
        "skew_fidelity_": schema.maybe(schema.part("SkewFidelity")),
        "density_height_": schema.maybe(schema.number("[-1.000001, 1.000001]", nan=True)),
        "gradient_share_": schema.maybe(schema.number("[0, 1.000001]", nan=True)),
        "potential_": schema.maybe(schema.array("f8", N, nan=True)),
        "potential_component_": schema.maybe(schema.array("i4 i8", N, f"[-1, {N})")),
        "evidence_": schema.maybe(schema.part("Evidence")),
        "_height_error": schema.maybe(
            schema.NONE | schema.part("HeightError", "MeasuredPairs", n="n")
        ),
        "_held_out_pairs": schema.maybe(schema.NONE | schema.part("HeldOutPairs")),
        "node_names_": schema.maybe(schema.NONE | schema.names(N)),
        "feature_names_in_": schema.maybe(schema.names("d")),
        # of a Dask collection
        "sample_indices_": schema.maybe(schema.NONE | schema.array("i8", N, "[0, inf)")),
        "n_features_in_": schema.maybe(schema.whole("[1, inf)", size="d")),
        "_n_features_out": schema.maybe(schema.whole("[1, inf)")),
        "_fitted_names": schema.maybe(schema.listed(schema.TEXT)),
        "_sklearn_output_config": schema.maybe(schema.instance(dict)),
    }


class FinslerEstimator:
    """Mixin of FinslerUMAP, FinslerTSNE and FinslerMDS, which bring the steps."""

    _validate: Callable[..., Any]
    """Returns what ``_construct`` makes a problem of."""
    _construct: Callable[[Any], Any]
    _asymmetry: Callable[[Any], Asymmetry]
    """What the height is to show."""
    _measured: Callable[[Any], Any]
    """What the asymmetry was measured on: see `find_evidence`."""
    _start: Callable[[Any], Any]
    """Whatever ``_lay_out`` needs to lay out at any drift."""
    _lay_out: Callable[[Any, Any], Any]
    _score: Callable[[Any, Any], None]
    """Sets the attributes that judge the layout."""
    n_components: Any
    output: Any = ALL
    ridge: Any
    space: Any
    verbose: Any
    embedding_: Any
    local_scale_: Any
    omega_norm_: Any
    skew_fidelity_: SkewFidelity
    evidence_: Evidence
    drift_choice_: Any
    _height_error: Any
    _unique_inverse_: np.ndarray
    _fitted_names: frozenset[str]
    # What each parameter may be.
    _parameters: dict[str, Field]
    # Those that `transform` reads as they are; of all others it uses what the fit used.
    _free_after_fit: frozenset[str] = frozenset({"n_jobs", "output", "verbose"})
    # Whether a first fit keeps what was reached when Ctrl-C stops it, as openTSNE does.
    _keeps_interrupted = False

    def _fit(self, X, **given) -> None:
        """Fit a copy and take over its attributes; those of an earlier fit go."""
        check_parameters(self)
        if self.output == MAP and self.n_components == 1:
            raise ValueError(
                "output='map' leaves out the last column, and n_components=1 has no other. Use "
                "n_components=2 or more."
            )
        draft = copy(self)
        stale = vars(self).get("_fitted_names", frozenset())
        for name in stale:
            vars(draft).pop(name, None)
        before = set(vars(draft))
        try:
            with plain_interrupt():
                draft._run(draft._validate(X, **given))
        except KeyboardInterrupt:
            if self._keeps_interrupted and not hasattr(self, "embedding_"):
                vars(self).update(vars(draft))
            raise
        draft._keep_params()
        draft._fitted_names = frozenset(vars(draft)) - before
        for name in stale:
            vars(self).pop(name, None)
        vars(self).update(vars(draft))

    def _keep_params(self) -> None:
        """Remember the parameters of this fit, for `transform`."""
        names = [name for name in self._parameters if name not in self._free_after_fit]
        self._fitted_params = {name: getattr(self, name) for name in names}

    def _with_fitted_params(self):
        """This model as `transform` uses it: with the parameters it was fitted with."""
        fitted = copy(self)
        vars(fitted).update(getattr(self, "_fitted_params", {}))
        return fitted

    def _run(self, checked) -> None:
        """From checked data to a scored embedding; without a problem there is none."""
        problem = self._construct(checked)
        if problem is not None:
            self._embed(problem)

    def _embed(self, problem) -> None:
        self.asymmetry_ = self._asymmetry(problem)
        potential = self.asymmetry_.potential(self.ridge)
        if potential is not None:
            self.potential_, self.potential_component_ = potential
        self.evidence_, self._height_error, self._held_out_pairs = find_evidence(
            self.asymmetry_.kind, self._measured(problem)
        )
        self._score(problem, self._lay_out(problem, self._start(problem)))
        if potential is None:
            n = len(self.embedding_)
            self.potential_, self.potential_component_ = np.zeros(n), np.zeros(n, dtype=np.int64)
        self._warn_of_two_columns()
        self.asymmetry_.forget()

    def _warn_of_two_columns(self) -> None:
        """Where UMAP has two map columns and this model has one; height= says it is meant."""
        asked = getattr(self, "height", None) == "auto" and self.n_components == 2
        shown = self.omega_norm_ > 0 and getattr(self, "affinity", None) == "directed"
        if asked and shown and not self.asymmetry_.is_directed:
            warn(
                "n_components=2: one of the two columns is the height, so the map has only one. "
                "For two map columns leave n_components at 3; output='map' then returns the map "
                "without the height. height='free' keeps two columns without this warning."
            )

    def _returned(self, embedding):
        """What `fit_transform` and `transform` return of it."""
        return map_columns(embedding) if self.output == MAP else embedding

    def get_feature_names_out(self, input_features=None) -> np.ndarray:
        """Names of the columns that `transform` returns.

        Map columns are numbered as in scikit-learn (finslerumap0, finslerumap1); the last column is
        finslerumap_height, unless there is no drift.
        """
        names = ClassNamePrefixFeaturesOutMixin.get_feature_names_out(self, input_features)
        if getattr(self, "transform_mode", "embedding") != "embedding":
            return names
        if self.output == MAP:
            return names[:-1]
        if self.omega_norm_ > 0 and self.n_components in ("auto", len(names)):
            names[-1] = f"{type(self).__name__.lower()}_height"
        return names

    def _judge(
        self,
        embedding,
        words: str = "",
        *,
        symmetric: bool = False,
        directed: bool | None = None,
        measured: Asymmetry | None = None,
    ) -> None:
        """Set ``skew_fidelity_`` and ``density_height_``, and say how far to trust the height.

        Of ``symmetric`` affinities none is expected; ``directed`` data asks for one, however small
        the drift, by default directed distances. ``words`` come first, if verbose.
        Evidence is of ``measured``, where the height was made from something else.
        """
        graph = getattr(self, "graph_", None)
        if graph is None or graph.nnz > 0:
            refuse_diverged(embedding, isolated=True)
        space, asymmetry, scale = self._space(), self.asymmetry_, self.local_scale_
        self.skew_fidelity_ = fidelity = asymmetry.fidelity(embedding, self.omega_norm_, space)
        self.density_height_ = float("nan") if scale is None else density_height(embedding, scale)
        shows = fidelity if measured is None else measured.fidelity(embedding)
        shown = shows.sign if self.omega_norm_ > 0 else float("nan")
        self.evidence_ = self.evidence_._replace(shown=shown)
        if self.verbose:
            self._say(f"{words}; {fidelity}" if words else str(fidelity))
            self._say(f"Evidence: {self.evidence_.verdict}")
            if hasattr(self, "islands_"):
                self._say(str(self.islands_))
        if not symmetric:
            directed = asymmetry.is_directed if directed is None else directed
            shares = measured is not None
            warn_of_height(self.evidence_, shows, self.omega_norm_, directed, space, shares)

    @property
    def height_error_(self) -> np.ndarray:
        """Error of every height: height ± 1.645 error is a 90 % interval; nan where not known.

        It is the error of the potential that the height follows, in units of the height.
        """
        found = self._found_error()
        height = np.asarray(self.embedding_, dtype=np.float64)[:, -1]
        if found is None or self.omega_norm_ == 0:
            return np.full(len(height), np.nan)
        return found.of_height(height)

    @property
    def height_unsure_(self) -> np.ndarray:
        """Whether a point may be above or below its neighbours, as far as the data tells."""
        found = self._found_error()
        if found is None or self.omega_norm_ == 0:
            return np.zeros(len(self.embedding_), dtype=bool)
        return found.unsure

    def _found_error(self) -> HeightError | None:
        """Of every row; that of directed graphs is solved for when it is first asked for."""
        found = vars(self).get("_height_error", self)
        if found is self:
            raise AttributeError(f"This {type(self).__name__} is not fitted, or only in part.")
        if isinstance(found, MeasuredPairs):
            found = self._height_error = potential_error(found)
        if found is None or len(found.error) == len(self.embedding_):
            return found
        return HeightError(*(part[self._unique_inverse_] for part in found))

    def _space(self) -> Space:
        return find_space(self.space)

    def _chosen_drift(
        self,
        affinities,
        before: Callable[[], np.ndarray],
        embed: Callable[[float], np.ndarray],
        neighbors: np.ndarray,
    ) -> float:
        """omega_norm="auto" of a neighbour graph; sets ``drift_choice_`` and ``omega_norm_``.

        ``before()`` is the layout before the drift acts; see `choose_drift` for the others.
        """

        def tried(omega_norm):
            self._say(f"omega_norm='auto': trying {omega_norm:g}")
            return embed(omega_norm)

        if is_symmetric(affinities):
            reason = "the data has no asymmetry to show: affinities are symmetric"
            choice = DriftChoice(0.0, reason)
        elif self.evidence_.more_than_chance is False:
            chance = f"no more than chance (p = {self.evidence_.p_value:.2g})"
            choice = DriftChoice(0.0, f"the asymmetry of the data is {chance}")
        else:
            space = self._space()
            choice = choose_drift(before(), tried, self.asymmetry_, neighbors, space=space)
        self._say(f"omega_norm='auto': {choice.omega_norm:g}, {choice.reason}")
        self.drift_choice_, self.omega_norm_ = choice, choice.omega_norm
        if choice.omega_norm == 0:
            warn(
                f"omega_norm='auto' chose 0: {choice.reason}. The embedding is Euclidean, and its "
                "last column is one more map column."
            )
        return choice.omega_norm

    def _say(self, message: str) -> None:
        if self.verbose:
            print(message)


def find_evidence(kind: str, measured):
    """Evidence, the error of the potential or the pairs to make it of, and pairs held out.

    ``kind`` is that of the `Asymmetry`. ``measured`` are indices and distances of the neighbours of
    each point, itself left out; directed data as it was measured; or why neither is known.
    """
    if kind in (NONE, SCALE):
        return Evidence(kind), None, None
    if isinstance(measured, str):
        return Evidence(kind, reason=measured), None, None
    if isinstance(measured, tuple):
        indices, distances = measured
        error = scale_error(indices, distances)
        level = error.potential[np.isfinite(error.potential)]
        if level.size == 0 or np.ptp(level) < DIRECTED_SHARE:
            return Evidence(kind, reason="all points have the same scale"), None, None
        evidence, held_out = density_findings(indices, distances)
        return evidence, error, held_out
    pairs = measured_pairs(measured.distances, measured.strengths)
    reason = untestable(measured.distances, pairs, measured.strengths)
    if reason:
        return Evidence(kind, reason=reason), None, None
    evidence, held_out = direction_findings(pairs)
    if held_out is None:
        return evidence, None, None
    return evidence, potential_error(pairs) if pairs.complete else pairs, held_out


# Dask collections go to this module, which is imported with the first of them: it stands on the
# estimators, so they know its name only.
ON_DASK = "finsler_ext.dask"


def is_collection(X) -> bool:
    """Whether X is a Dask array or data frame."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(X, "dask")


def fit_collection(model, X, **others) -> Any:
    _refuse("fit", others)
    return import_module(ON_DASK).fit(model, X)


def transform_collection(model, X, options: dict | None = None, **others) -> Any:
    """``options`` are passed on to the model's ``transform`` of every block."""
    _refuse("transform", others)
    return import_module(ON_DASK).transform(model, X, **(options or {}))


def _refuse(method: str, others: dict) -> None:
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise ValueError(
            f"{given[0]}: {method} of a Dask collection takes the rows alone. Fit a sample of rows "
            "that is in memory, or leave it out."
        )
