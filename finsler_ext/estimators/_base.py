"""The steps of a fit, the same for all estimators, and the promise that it is atomic.

    validate → construct → start → lay out, at the drift given or chosen → score

An estimator fills in the steps. A fit works on a copy of the model and hands over what it found
when all steps are done, so that an error or Ctrl-C half way leaves the model as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from finsler_ext._warn import warn
from finsler_ext.asymmetry import Asymmetry, SkewFidelity
from finsler_ext.construct.gradient_share import warn_of_cycles
from finsler_ext.construct.symmetry import is_symmetric
from finsler_ext.drift import DriftChoice, choose_drift, warn_of_chance
from finsler_ext.metrics import density_height
from finsler_ext.spaces import Space, find_space

__all__ = ["ANY_DRIFT", "FinslerEstimator"]

# Stands for a drift that is not known yet; no layout is made with it.
ANY_DRIFT = 0.25


class FinslerEstimator:
    """Mixin of FinslerUMAP, FinslerTSNE and FinslerMDS.

    ``_validate`` returns what ``_construct`` makes a problem of; ``_asymmetry`` says what the
    height is to show; ``_start`` returns whatever ``_lay_out`` needs to lay out at any drift;
    ``_score`` sets the attributes that judge the layout.
    """

    omega_norm: Any
    space: Any
    verbose: Any
    asymmetry_: Asymmetry
    omega_norm_: Any
    local_scale_: Any
    skew_fidelity_: SkewFidelity
    density_height_: float
    drift_choice_: Any
    _fitted_names: frozenset[str]
    # Whether a first fit keeps what was reached when Ctrl-C stops it, as openTSNE does.
    _keeps_interrupted = False

    def _fit(self, X, **given) -> None:
        """Fit a copy and take over its attributes; those of an earlier fit go."""
        draft = copy(self)
        stale = vars(self).get("_fitted_names", frozenset())
        for name in stale:
            vars(draft).pop(name, None)
        before = set(vars(draft))
        try:
            draft._run(draft._validate(X, **given))
        except Exception:
            raise
        except BaseException:
            if self._keeps_interrupted and not hasattr(self, "embedding_"):
                vars(self).update(vars(draft))
            raise
        draft._fitted_names = frozenset(vars(draft)) - before
        for name in stale:
            vars(self).pop(name, None)
        vars(self).update(vars(draft))

    def _run(self, checked) -> None:
        """From checked data to a scored embedding; without a problem there is none."""
        problem = self._construct(checked)
        if problem is not None:
            self._embed(problem)

    def _embed(self, problem) -> None:
        self.asymmetry_ = self._asymmetry(problem)
        self._score(problem, self._lay_out(problem, self._start(problem)))
        self.asymmetry_.forget()

    def _validate(self, *given: Any, **named: Any) -> Any:
        raise NotImplementedError

    def _construct(self, checked) -> Any:
        raise NotImplementedError

    def _asymmetry(self, problem) -> Asymmetry:
        raise NotImplementedError

    def _start(self, problem) -> Any:
        raise NotImplementedError

    def _lay_out(self, problem, start) -> Any:
        raise NotImplementedError

    def _score(self, problem, layout) -> None:
        raise NotImplementedError

    def _judge(
        self, embedding, words: str = "", *, symmetric: bool = False, directed: bool | None = None
    ) -> None:
        """Set ``skew_fidelity_`` and ``density_height_``, and say how far to trust the height.

        Parameters
        ----------
        words : str
            What to say first, if verbose.
        symmetric : bool
            Whether affinities are symmetric, so that no height is expected.
        directed : bool, optional
            Whether the data asks for a height, however small the drift; by default if it is of
            directed distances.
        """
        space, asymmetry, scale = self._space(), self.asymmetry_, self.local_scale_
        self.skew_fidelity_ = fidelity = asymmetry.fidelity(embedding, self.omega_norm_, space)
        self.density_height_ = float("nan") if scale is None else density_height(embedding, scale)
        if self.verbose:
            self._say(f"{words}; {fidelity}" if words else str(fidelity))
            if hasattr(self, "islands_"):
                self._say(str(self.islands_))
        if not symmetric:
            directed = asymmetry.is_directed if directed is None else directed
            warn_of_chance(fidelity, self.omega_norm_, directed=directed, space=space)
        # openTSNE's own class has no share
        warn_of_cycles(getattr(self, "gradient_share_", float("nan")))

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

        Parameters
        ----------
        affinities : sparse matrix
        before : callable
            Returns the layout before the drift acts.
        embed, neighbors
            As in `finsler_ext.drift.choose_drift`.
        """

        def tried(omega_norm):
            self._say(f"omega_norm='auto': trying {omega_norm:g}")
            return embed(omega_norm)

        if is_symmetric(affinities):
            reason = "the data has no asymmetry to show: affinities are symmetric"
            choice = DriftChoice(0.0, reason)
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
