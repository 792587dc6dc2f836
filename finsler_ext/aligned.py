"""AlignedFinslerUMAP: one map for every data set of a series, with heights that compare.

The series is laid out together. With L_t the loss of FinslerUMAP on data set t, minimise

    Σ_t L_t(Y_t) + λ/2 Σ c_ij ‖y_i − y_j‖²   over rows i of t and j of t + 1 that are the same,

where c_ij in [0, 1] is how far their neighbourhoods agree: what stays the same stays in place, and
what changes may move. All maps start from one spectral layout of the graphs together. All heights
have one scale: they rise from one potential, by one slope. Potentials of directed data, which
are known up to a constant, are shifted so that related rows agree on average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from finsler_ext import schema
from finsler_ext.asymmetry import DENSITY, is_symmetric
from finsler_ext.height.acts import EUCLIDEAN, height_mode, lay_out
from finsler_ext.height.start import follow_pins, initial_positions
from finsler_ext.io.models import SaveMixin
from finsler_ext.umap.estimator import FinslerUMAP
from finsler_ext.umap.graph import isolated
from finsler_ext.umap.layout import UmapActs, UmapDescent, epochs_of, make_descent
from finsler_ext.umap.parameters import PARAMETERS

__all__ = ["AlignedFinslerUMAP"]

# A step draws related rows together by at most this share of their distance.
MOST_DRAWN = 0.5
# 1, and rounding.
MOST_AGREEMENT = 1 + 1e-6
ALIGNMENT = schema.number("[0, inf)")
VECTORS = schema.listed(
    schema.Field("an array", lambda a, scope: isinstance(a, np.ndarray) and a.ndim == 1)
)


def check_series(state: dict) -> None:
    """What must hold between the attributes of a series that is read from a file."""
    models, ids, known = state["models_"], state["identities_"], state["_known"]
    if any(m.transform_mode != "embedding" or m.unique for m in models):
        raise ValueError("AlignedFinslerUMAP.models_ are no maps of a series")
    if len({(m.embedding_.shape[1], m.omega_norm_) for m in models}) > 1:
        raise ValueError("AlignedFinslerUMAP.models_ differ in columns or drift")
    sizes = {"identities_": len(models), "_potentials": len(models), "agreement_": len(models) - 1}
    for name, size in sizes.items():
        if len(state[name]) != size:
            raise ValueError(f"AlignedFinslerUMAP.{name} must be {size} arrays")
    for model, rows, level in zip(models, ids, state["_potentials"], strict=True):
        n, most = model.graph_.shape[0], len(known) if known else np.inf
        distinct = rows.dtype in (np.int32, np.int64) and np.unique(rows).size == rows.size == n
        if not distinct or rows.min() < 0 or rows.max() >= most:
            raise ValueError("AlignedFinslerUMAP.identities_ must number the rows of its models")
        if level.dtype != np.float64 or level.size != n or np.isinf(level).any():
            raise ValueError("AlignedFinslerUMAP._potentials must be of the rows of its models")
        if np.isnan(level[~isolated(model.graph_)]).any():
            raise ValueError("AlignedFinslerUMAP._potentials is nan where there are neighbours")
    for t, shares in enumerate(state["agreement_"]):
        size = _matches(ids[t], ids[t + 1])[0].size
        if shares.dtype not in (np.float32, np.float64) or shares.size != size:
            raise ValueError("AlignedFinslerUMAP.agreement_ must be one number per related row")
        if not ((shares >= 0) & (shares <= MOST_AGREEMENT)).all():
            raise ValueError("AlignedFinslerUMAP.agreement_ must be between 0 and 1")
    numbers = list(known.values())
    if any(type(k) is not int for k in numbers) or sorted(numbers) != list(range(len(known))):
        raise ValueError("AlignedFinslerUMAP._known must give every name its own number")


@schema.saved(
    estimator=schema.NONE | schema.settings(**PARAMETERS),
    alignment=ALIGNMENT,
    models_=schema.listed(schema.part("FinslerUMAP"), least=2),
    identities_=VECTORS,
    agreement_=VECTORS,
    _potentials=VECTORS,
    _known=schema.instance(dict),
    relations=check_series,
)
class AlignedFinslerUMAP(SaveMixin, BaseEstimator):
    """FinslerUMAP of a series of data sets or digraphs that share rows.

    All maps are laid out together, with L_t the loss of `FinslerUMAP` on data set t:

        L = Σ_t L_t(Y_t) + λ/2 Σ c_ij ‖y_i − y_j‖²,

    the second sum over rows that are the same in consecutive data sets; c_ij in [0, 1] is how far
    their neighbourhoods agree. What stays the same stays in place, what changes may move, and
    heights compare over the series.

    Parameters
    ----------
    estimator : FinslerUMAP, optional
        Its parameters hold for every data set; ``omega_norm`` is a number, ``init`` "spectral" or
        "random". With ``metric="precomputed"`` the series is one of directed data.
    alignment : float, default=5
        λ, how strongly the same row of consecutive data sets is drawn together. 0: not at all.

    Attributes
    ----------
    embeddings_ : list of arrays of shape (n_t, n_components)
    models_ : list of FinslerUMAP
        One per data set, each fitted, with its own scores. They and the series can be saved.
    identities_ : list of int arrays of shape (n_t,)
        Rows with the same number are the same.
    agreement_ : list of arrays
        c of the relations between consecutive data sets, in the order of the rows of the first.

    Examples
    --------
    >>> import numpy as np
    >>> from finsler_ext import AlignedFinslerUMAP, FinslerUMAP
    >>> X = np.random.default_rng(0).normal(size=(80, 4))
    >>> same = {i: i for i in range(60)}
    >>> series = AlignedFinslerUMAP(FinslerUMAP(random_state=0, n_epochs=50))
    >>> series = series.fit([X, np.vstack([X[:60], X[60:] + 3])], relations=[same])
    >>> [places.shape for places in series.embeddings_]
    [(80, 3), (80, 3)]
    """

    def __init__(self, estimator=None, *, alignment=5.0):
        self.estimator = estimator
        self.alignment = alignment

    def fit(self, X: Sequence, y=None, *, relations=None, names=None):
        """Lay out a series.

        Parameters
        ----------
        X : sequence of data sets, each as `FinslerUMAP.fit` takes it
        y : ignored
        relations : sequence of dicts, optional
            As in umap's AlignedUMAP: for every data set but the last, from rows of it to the same
            rows of the next.
        names : sequence of arrays, optional
            In place of relations: the names of all rows of every data set. By default the nodes
            of directed data, or the index of DataFrames.
        """
        self._check()
        sets = list(X)
        if len(sets) < 2:
            raise ValueError(f"a series has at least two data sets, got {len(sets)}.")
        stages = [_constructed(self._template(), data) for data in sets]
        known: dict = {}
        if relations is None:
            names = [None] * len(sets) if names is None else names
            given = zip(sets, stages, names, strict=True)
            ids = [
                _numbered(_names_of(*each), each[1].model.graph_.shape[0], known) for each in given
            ]
        else:
            ids = _related([stage.model.graph_.shape[0] for stage in stages], list(relations))
        layout = self._laid_out(stages, ids, self._common_start(stages, ids))
        self.models_, self.agreement_, self._potentials = layout
        self.embeddings_ = [model.embedding_ for model in self.models_]
        self.identities_, self._known = ids, known
        return self

    def fit_transform(self, X, y=None, *, relations=None, names=None) -> list[np.ndarray]:
        """Fit and return the embeddings, or their map columns with ``output="map"``."""
        self.fit(X, relations=relations, names=names)
        return [model._returned(model.embedding_) for model in self.models_]

    def transform(self, X, stage: int = -1, **options) -> np.ndarray:
        """Places of new rows in the map of one data set, by default the last."""
        check_is_fitted(self, "models_")
        return self.models_[stage].transform(X, **options)

    def update(self, X, *, relations=None, names=None):
        """Add the next data set to the series; the maps that exist do not move.

        Parameters
        ----------
        X : data set
        relations : dict, optional
            From rows of the last data set to the same rows of this one.
        names : array, optional
            In place of it, the names of all rows of this one; by default as in `fit`. Not
            after relations were given.
        """
        check_is_fitted(self, "models_")
        new, known = _constructed(self._template(), X), dict(self._known)
        n, before = new.model.graph_.shape[0], self.identities_[-1]
        if relations is None:
            if not known:
                raise ValueError("update needs relations: the series was made with them.")
            ids = _numbered(_names_of(X, new, names), n, known)
        else:
            _related([before.size, n], [relations])
            known = {}  # not every row has a name
            ids = 1 + max(int(part.max()) for part in self.identities_) + np.arange(n)
            ids[list(relations.values())] = before[list(relations)]
        old = _staged(self.models_[-1], None, self._potentials[-1])
        places = old.model.embedding_[old.joined]
        pair = [before, ids]
        start = np.full((n, places.shape[1]), np.nan)
        mine, theirs = _matches(before, ids)
        start[theirs] = old.model.embedding_[mine]
        middle = np.tile(places.mean(axis=0), (new.joined.size, 1))
        start = follow_pins(middle, start[new.joined], new.graph).astype(np.float32)
        models, agreement, potentials = self._laid_out([old, new], pair, [places, start], n_fixed=1)
        self.models_ = [*self.models_, models[-1]]
        self.embeddings_ = [*self.embeddings_, models[-1].embedding_]
        self.agreement_ = [*self.agreement_, agreement[-1]]
        self._potentials = [*self._potentials, potentials[-1]]
        self.identities_, self._known = [*self.identities_, ids], known
        return self

    def _check(self) -> None:
        if not isinstance(self.estimator, FinslerUMAP | None):
            raise ValueError(f"estimator must be a FinslerUMAP, got {self.estimator!r}.")
        ALIGNMENT.check("alignment", self.alignment)
        estimator = self._template()
        if isinstance(estimator.omega_norm, str):
            raise ValueError("omega_norm='auto' is not available in a series; give a number.")
        if estimator.init not in ("spectral", "random"):
            raise ValueError(f"init must be 'spectral' or 'random', got {estimator.init!r}.")
        if estimator.unique or estimator.transform_mode != "embedding":
            raise ValueError("unique=True and transform_mode='graph' are not for a series.")

    def _template(self) -> FinslerUMAP:
        return FinslerUMAP() if self.estimator is None else clone(self.estimator)

    def _common_start(self, stages: list[Stage], ids: list[np.ndarray]) -> list[np.ndarray]:
        """Every stage's rows where a layout of all graphs together starts them."""
        template, mode = stages[0].model, self._mode(stages)
        numbers = [part[stage.joined] for stage, part in zip(stages, ids, strict=True)]
        rows, place = np.unique(np.concatenate(numbers), return_inverse=True)
        merged = scipy.sparse.csr_array((rows.size, rows.size))
        ends = np.cumsum([0, *(len(part) for part in numbers)])
        for stage, first, last in zip(stages, ends, ends[1:], strict=False):
            at = place[first:last]
            edges = scipy.sparse.coo_array(stage.graph)
            i, j = edges.coords
            merged += scipy.sparse.csr_array((edges.data, (at[i], at[j])), shape=merged.shape)
        m = template.n_components
        columns = m if mode == EUCLIDEAN or m < 3 else m - 1
        rng = check_random_state(template.random_state)
        start = np.zeros((rows.size, m), dtype=np.float32)
        start[:, :columns] = initial_positions(template.init, columns, merged, None, rng)
        return [start[place[a:b]] for a, b in pairwise(ends)]

    def _mode(self, stages: list[Stage]) -> str:
        model = stages[0].model
        symmetric = all(is_symmetric(stage.graph) for stage in stages)
        directed = model.asymmetry_.is_directed
        return height_mode(
            model.height, model.n_components, model.omega_norm_, symmetric, None, directed
        )

    def _laid_out(self, stages, ids, start, n_fixed: int = 0):
        """Models, agreement and potentials of a series; the first ``n_fixed`` do not move."""
        model = stages[-1].model
        pairs = zip(pairwise(stages), pairwise(ids), strict=True)
        relations = [_agreement(*two, *numbers) for two, numbers in pairs]
        potentials = [stage.potential for stage in stages]
        if model.asymmetry_.is_directed:  # known up to a constant
            potentials = _comparable(potentials, ids)
        joined = [stage.joined for stage in stages]
        rng = check_random_state(model.random_state)
        descents = [
            make_descent(s.model, s.graph, epochs_of(s.model)[-1], int(rng.randint(2**31 - 1)))
            for s in stages
        ]
        series = SeriesDescent(descents, _stacked(relations, stages), self.alignment, n_fixed)
        pins = np.full((series.graph.shape[0], model.n_components), np.nan)
        pins[: series.ends[n_fixed]] = np.concatenate(start)[: series.ends[n_fixed]]
        acts = SeriesActs(series, np.concatenate(start), pins=pins if n_fixed else None)
        level = np.concatenate([p[j] for p, j in zip(potentials, joined, strict=True)])
        layout = lay_out(
            acts,
            model.omega_norm_,
            mode=self._mode(stages),
            potential=level,
            noisy=model.asymmetry_.kind == DENSITY,
            find_axis=n_fixed == 0,
        )
        for stage, part in zip(stages[n_fixed:], series.parts[n_fixed:], strict=True):
            stage.place(layout.position[part])
            stage.model.islands_ = layout.islands
        models = [stage.model for stage in stages]
        return models, [agreement for _, _, agreement in relations], potentials


class Stage(NamedTuple):
    """One data set: its model, the rows of a fit, those with neighbours, their graph; potential."""

    model: FinslerUMAP
    rows: Any
    joined: np.ndarray
    graph: scipy.sparse.csr_array
    potential: np.ndarray

    def place(self, position: np.ndarray) -> None:
        """Finish the fit at a given layout: every row is pinned, and no step is taken."""
        model, n = self.model, self.model.graph_.shape[0]
        pins = np.full((n, model.n_components), np.nan)
        pins[self.joined] = position
        n_epochs, model.n_epochs = model.n_epochs, 0
        model._n_epochs_list = None
        model._embed(self.rows._replace(pins=pins))
        model.n_epochs, model.pinned_ = n_epochs, None
        model._keep_params()


def _constructed(model: FinslerUMAP, X) -> Stage:
    checked = model._validate(X, y=None, ensure_all_finite=True, callback=None)
    rows = model._construct(checked)
    if rows is None:
        raise ValueError("every data set of a series needs at least two rows.")
    model.asymmetry_ = model._asymmetry(rows)
    level = model.asymmetry_.level(model.ridge)
    n = model.graph_.shape[0]
    return _staged(model, rows, np.zeros(n) if level is None else level)


def _staged(model, rows, potential) -> Stage:
    graph = scipy.sparse.csr_array(model.graph_)
    joined = np.flatnonzero(~isolated(model.graph_))
    return Stage(model, rows, joined, graph[joined][:, joined], np.asarray(potential, float))


def _names_of(X, stage: Stage, given=None):
    """Names of the rows: given, of nodes, or the index of a DataFrame."""
    if given is not None:
        return np.asarray(given)
    if stage.model.node_names_ is not None:
        return np.asarray(stage.model.node_names_)
    index = getattr(X, "index", None)
    if index is None or callable(index):
        raise ValueError("the rows have no names: give relations, or names.")
    return np.asarray(index)


def _numbered(names, n: int, known: dict) -> np.ndarray:
    """A number per name; ``known`` grows."""
    if len(names) != n or len(set(names.tolist())) != n:
        raise ValueError(f"names: a data set of {n} rows needs {n} different names.")
    return np.array([known.setdefault(name, len(known)) for name in names.tolist()])


def _related(sizes: list[int], relations: list) -> list[np.ndarray]:
    """Numbers of rows by relations between consecutive data sets."""
    if len(relations) != len(sizes) - 1:
        raise ValueError(
            f"relations: {len(sizes)} data sets need {len(sizes) - 1} dicts, got {len(relations)}."
        )
    for t, relation in enumerate(relations):
        if not isinstance(relation, Mapping):
            raise ValueError(f"relations[{t}] must be a dict, got {type(relation).__name__}.")
    ends = np.cumsum([0, *sizes])
    pairs = [
        (ends[t] + i, ends[t + 1] + j)
        for t, relation in enumerate(relations)
        for i, j in relation.items()
    ]
    for t, relation in enumerate(relations):
        for rows, n in ((relation.keys(), sizes[t]), (relation.values(), sizes[t + 1])):
            if len(set(rows)) != len(relation) or not all(0 <= row < n for row in rows):
                raise ValueError(
                    f"relations[{t}] must go from rows to different rows: 0 to {n - 1}."
                )
    i, j = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    n = ends[-1]
    graph = scipy.sparse.coo_array((np.ones(i.size), (i, j)), shape=(n, n))
    number = connected_components(graph, directed=False)[1]
    return [number[a:b] for a, b in pairwise(ends)]


def _matches(first, second) -> tuple[np.ndarray, np.ndarray]:
    """Rows of two data sets that are the same."""
    _, mine, theirs = np.intersect1d(first, second, return_indices=True)
    return mine, theirs


def _agreement(one: Stage, two: Stage, ids_one, ids_two):
    """Related rows of two stages, and Σ min / Σ max of their memberships, symmetrised."""
    mine, theirs = _matches(ids_one, ids_two)
    _, place = np.unique(np.concatenate([ids_one, ids_two]), return_inverse=True)
    n = int(place.max()) + 1
    sides = []
    for model, rows, at in (
        (one.model, mine, place[: len(ids_one)]),
        (two.model, theirs, place[len(ids_one) :]),
    ):
        edges = scipy.sparse.csr_array(model.graph_)
        edges = scipy.sparse.coo_array((edges + edges.T)[rows])
        i, j = edges.coords
        sides.append(scipy.sparse.csr_array((edges.data, (i, at[j])), shape=(rows.size, n)))
    least, most = (np.asarray(side.sum(axis=1)).ravel() for side in (
        sides[0].minimum(sides[1]), sides[0].maximum(sides[1])))  # fmt: skip
    return mine, theirs, np.divide(least, most, out=np.zeros_like(least), where=most > 0)


def _comparable(potentials: list[np.ndarray], ids: list[np.ndarray]) -> list[np.ndarray]:
    """Potentials shifted so that those of consecutive data sets agree on average."""
    shifted = [potentials[0]]
    for t in range(1, len(potentials)):
        mine, theirs = _matches(ids[t - 1], ids[t])
        gap = shifted[-1][mine] - potentials[t][theirs]
        gap = gap[np.isfinite(gap)]
        shifted.append(potentials[t] + (gap.mean() if gap.size else 0.0))
    return shifted


def _stacked(relations, stages: list[Stage]) -> scipy.sparse.csr_array:
    """c_ij between the rows of all stages that have neighbours."""
    first = np.cumsum([0, *(stage.model.graph_.shape[0] for stage in stages)])
    joined = np.concatenate([n + stage.joined for n, stage in zip(first, stages, strict=False)])
    n, number = joined.size, np.full(first[-1], -1)
    number[joined] = np.arange(n)
    ends = [
        (number[first[t] + mine], number[first[t + 1] + theirs], agreement.astype(np.float64))
        for t, (mine, theirs, agreement) in enumerate(relations)
    ]
    i, j, weight = (np.concatenate(part) for part in zip(*ends, strict=True))
    both = (i >= 0) & (j >= 0)
    half = scipy.sparse.coo_array((weight[both], (i[both], j[both])), shape=(n, n)).tocsr()
    return half + half.T


class SeriesDescent(UmapDescent):
    """Descents of several graphs in step, with related rows drawn together after every epoch.

    It stands for a `finsler_ext.umap.layout.UmapDescent` of all rows; the first few stages may
    be fixed.
    """

    def __init__(self, stages: list[UmapDescent], relations, strength: float, n_fixed: int = 0):
        self.stages, self.relations, self.n_fixed = stages, relations, n_fixed
        self.strength, self.degree = strength, np.asarray(relations.sum(axis=1))
        self.graph = scipy.sparse.csr_array(scipy.sparse.block_diag([s.graph for s in stages]))
        self.ends = np.cumsum([0, *(s.graph.shape[0] for s in stages)])
        self.parts = [slice(a, b) for a, b in pairwise(self.ends)]
        last = stages[-1]
        self.shape, self.n_epochs, self.n_threads = last.shape, last.n_epochs, last.n_threads

    def run(
        self,
        position: np.ndarray,
        epochs: Iterable[int],
        *,
        omega_norm: float,
        rates: tuple[float, float] = (1.0, 1.0),
        rate_until: int | None = None,
        fixed: np.ndarray | None = None,
        after_epoch: Callable[[int, np.ndarray], object] | None = None,
    ) -> np.ndarray:
        """As `UmapDescent.run`; what is ``fixed`` are whole stages."""
        position = np.array(position, dtype=np.float32)
        until = self.n_epochs if rate_until is None else rate_until
        moving = list(zip(self.parts, self.stages, strict=True))[self.n_fixed :]
        for epoch in epochs:
            for part, stage in moving:
                position[part] = stage.run(
                    position[part], (epoch,), omega_norm=omega_norm, rates=rates, rate_until=until
                )
            rate = self.strength * self.stages[-1].learning_rate * (1.0 - epoch / until)
            share = np.minimum(rate * np.array(rates), MOST_DRAWN)
            self._draw_together(position, share)
            if after_epoch is not None:
                after_epoch(epoch + 1, position)
        return position

    def _draw_together(self, position: np.ndarray, share) -> None:
        """A step down Σ c ‖y_i − y_j‖²/2, in place; at most half way."""
        towards = self.relations @ position - self.degree[:, None] * position
        towards[: self.ends[self.n_fixed]] = 0.0
        step = np.full(position.shape[1], share[0])
        step[-1] = share[1]
        position += (0.5 * step * towards).astype(np.float32)


class SeriesActs(UmapActs):
    """The acts of a series; points repel each other within their stage only."""

    descent: SeriesDescent

    def _stages(self, position):
        for part, stage in zip(self.descent.parts, self.descent.stages, strict=True):
            yield UmapActs(stage, position[part]), position[part]

    def loss(self, position, omega_norm) -> Any:
        return sum(float(acts.loss(at, omega_norm)) for acts, at in self._stages(position))

    def axis_loss(self, position, omega_norm):
        parts = [acts.axis_loss(at, omega_norm) for acts, at in self._stages(position)]

        def objective(axis):
            values, slopes = zip(*(part(axis) for part in parts), strict=True)
            return sum(values), sum(slopes)

        return objective
