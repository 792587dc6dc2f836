"""Which features go along with the height, the potential or a map axis.

For all points: a boosted tree model predicts the column from the features on half of the rows.
On the other half, the importance of a feature is the share of the column's variance that the
prediction loses when the feature's values are shuffled among rows. Both halves are drawn anew
several times: the median is reported, with its range and the share of draws in which the
feature was among the first.

Locally: around a point, a ridge regression of the column on the standardised features over the
nearest points of the map. Its slopes say which features rise with the column just there; they
are drawn anew too, over resampled neighbours.

Features that carry the same information share their importance, and shuffling one of two
copies loses nothing. ``alone`` is therefore given beside it: the share of the variance that a
feature explains by itself. Neither number says anything about causes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state

from finsler_ext._threads import one_blas_thread
from finsler_ext.geometry.space import map_columns

__all__ = ["Explanation", "explain"]

# Rows per draw, half of them to fit; more change the order of features no longer.
MOST_ROWS = 4000
# Features that the model sees in a draw, the best by themselves; others have no importance.
MOST_FEATURES = 64
# Classes of values by which a feature alone explains the column.
N_CLASSES = 10
# Names of one column of text that become features of their own.
MOST_NAMES = 40
# A feature is stable as far as it is among this many in every draw.
FIRST = 5
# Of the boosted trees: enough for a few bends per feature, small enough for a thousand rows.
TREES = {"max_iter": 80, "learning_rate": 0.15, "max_leaf_nodes": 12, "l2_regularization": 1.0}
# Strengths of the local ridge, in units of the number of neighbours; chosen by leaving one out.
RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
# Places at which the ridge is chosen, and draws of the neighbours of a place.
PLACES, LOCAL_DRAWS = 200, 10


@dataclass(frozen=True)
class Explanation:
    """What goes along with one column of an embedding; features ordered as given.

    Attributes
    ----------
    column : str
        What is explained, in words.
    features : array of str
    importance : array of shape (n_features,)
        Share of the column's variance that is lost on rows held out when the feature is shuffled,
        the median over draws.
    low, high : arrays of shape (n_features,)
        5 % and 95 % of the importance over draws.
    stability : array of shape (n_features,)
        Share of draws in which the feature was among the first five.
    direction : array of shape (n_features,)
        Spearman correlation with the column; near 0 where the relation bends.
    alone : array of shape (n_features,)
        Share of the variance of the column's ranks that the feature explains by itself.
    explained : float
        Share that all features together explain on rows held out. Below about 0.1 the order of the
        features means little.
    rows : array of int or None
        The points that were explained locally.
    local : array of shape (n_rows, n_features) or None
        How much the column rises around each of them, in its standard deviations, per standard
        deviation of the feature.
    local_agreement : array of shape (n_rows, n_features) or None
        Share of draws in which the slope has the sign it has in ``local``.
    values : array of shape (n_samples,)
        The column.
    """

    column: str
    features: np.ndarray
    importance: np.ndarray
    low: np.ndarray
    high: np.ndarray
    stability: np.ndarray
    direction: np.ndarray
    alone: np.ndarray
    explained: float
    rows: np.ndarray | None = None
    local: np.ndarray | None = None
    local_agreement: np.ndarray | None = None
    values: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False)
    data: Any = field(default=None, repr=False)

    @property
    def order(self) -> np.ndarray:
        """Features by importance, the most important first; ties by what they explain alone."""
        return np.lexsort((-self.alone, -self.importance))

    def top(self, k: int = FIRST) -> list[str]:
        """Names of the k most important features."""
        return [str(name) for name in self.features[self.order[:k]]]

    def local_top(self, row: int, k: int = FIRST) -> list[str]:
        """Names of the k features with the steepest slopes around a point."""
        if self.local is None or self.rows is None or row not in self.rows:
            raise ValueError(f"row {row} was not explained locally; call explain(…, at=[{row}]).")
        slopes = self.local[int(np.flatnonzero(self.rows == row)[0])]
        return [str(name) for name in self.features[np.argsort(-np.abs(slopes))[:k]]]

    def __str__(self) -> str:
        width = max(8, *(len(name) for name in self.top(10)))
        lines = [
            f"{self.column}: the features explain {max(self.explained, 0.0):.0%} of it on rows "
            "held out",
            f"{'feature':{width}}  importance  (5 % to 95 %)  stable  direction  alone",
        ]
        for i in self.order[:10]:
            lines.append(
                f"{self.features[i]:{width}}  {self.importance[i]:10.3f}  "
                f"({self.low[i]:5.2f} to {self.high[i]:4.2f})  {self.stability[i]:6.0%}  "
                f"{self.direction[i]:+9.2f}  {self.alone[i]:5.2f}"
            )
        return "\n".join(lines)


def explain(
    model,
    X,
    column="height",
    *,
    names=None,
    at=None,
    n_neighbors: int = 50,
    n_draws: int = 20,
    random_state=0,
) -> Explanation:
    """Which features go along with a column of a fitted embedding, for all points and locally.

    Parameters
    ----------
    model : fitted FinslerUMAP, FinslerTSNE or FinslerMDS
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        The features that were fitted, or any others of the same points: attributes of the nodes
        of directed data, for example. Rows of a DataFrame whose index has the names of the nodes
        may be in any order. A column of text becomes one feature per name. Values that are nan
        are allowed.
    column : {"height", "potential"} or int
        The height, ``potential_``, or the number of a map column.
    names : sequence of str, optional
        Names of the features; by default those of the DataFrame.
    at : "all" or array of int, optional
        Points to explain locally.
    n_neighbors : int, default=50
        Nearest points of the map that a local explanation is drawn from.
    n_draws : int, default=20
        How often rows are drawn anew.
    random_state : int, RandomState or None, default=0

    Returns
    -------
    Explanation

    Examples
    --------
    >>> import numpy as np
    >>> from finsler_ext import FinslerUMAP
    >>> from finsler_ext.explain import explain
    >>> X = np.random.default_rng(0).uniform(size=(300, 4))
    >>> model = FinslerUMAP(local_scale=np.exp(X[:, 2]), random_state=0, n_epochs=50).fit(X)
    >>> explain(model, X, column="potential", names=list("abcd")).top(1)
    ['c']
    """
    values, words, position = _column(model, column)
    data, features = _features(X, names, len(values), getattr(model, "node_names_", None))
    if n_draws < 2:
        raise ValueError(f"n_draws must be at least 2, got {n_draws}.")
    known = np.flatnonzero(np.isfinite(values) & np.isfinite(position).all(axis=1))
    if known.size < 4 * N_CLASSES:
        raise ValueError(
            f"explain needs at least {4 * N_CLASSES} points with a place and a {words}, got "
            f"{known.size}."
        )
    if np.ptp(values[known]) == 0:
        raise ValueError(f"column={column!r} is constant: there is nothing to explain.")
    rng = check_random_state(random_state)
    with one_blas_thread():
        draws, explained = _draws(data, values, known, n_draws, rng)
        alone, direction = _alone(data, values, known, rng)
    first = np.argsort(np.argsort(-draws, axis=1, kind="stable"), axis=1) < FIRST
    rows = local = agreement = None
    if at is not None:
        rows = _rows(at, known, len(values))
        local, agreement = _local(data, values, position, known, rows, n_neighbors, rng)
    return Explanation(
        column=words,
        features=features,
        importance=np.median(draws, axis=0),
        low=np.quantile(draws, 0.05, axis=0),
        high=np.quantile(draws, 0.95, axis=0),
        stability=(first & (draws > 0)).mean(axis=0),
        direction=direction,
        alone=alone,
        explained=explained,
        rows=rows,
        local=local,
        local_agreement=agreement,
        values=values,
        data=data,
    )


def _column(model, column) -> tuple[np.ndarray, str, np.ndarray]:
    """Values of the column, its name, and the map."""
    embedding = getattr(model, "embedding_", None)
    if embedding is None:
        raise ValueError("explain needs a fitted estimator. Call fit first.")
    embedding = np.asarray(embedding, dtype=np.float64)
    flat = map_columns(embedding) if embedding.shape[1] > 1 else embedding
    if isinstance(column, str) and column in ("height", "potential"):
        values = embedding[:, -1] if column == "height" else np.asarray(model.potential_, float)
        return values, column, flat
    whole = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
    if whole and 0 <= column < flat.shape[1]:
        return flat[:, column], f"map column {column}", flat
    raise ValueError(
        f"column must be 'height', 'potential' or one of the map columns 0 to "
        f"{flat.shape[1] - 1}, got {column!r}."
    )


def _features(X, names, n: int, node_names) -> tuple[Any, np.ndarray]:
    """A matrix of numbers, and the name of every column."""
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        X, found = _from_frame(_by_name(X, node_names), n)
    else:
        X = X.tocsc() if scipy.sparse.issparse(X) else np.asarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"X must have rows and columns, got shape {X.shape}.")
        found = [f"feature {c}" for c in range(X.shape[1])]
    if X.shape[0] != n:
        raise ValueError(f"X must have one row per fitted point ({n}), got {X.shape[0]}.")
    names = found if names is None else [str(name) for name in names]
    if len(names) != X.shape[1]:
        raise ValueError(f"names: {len(names)} names for {X.shape[1]} features.")
    return X, np.array(names, dtype=object)


def _by_name(frame, node_names):
    """Rows in the order of the nodes, where the index has their names."""
    if node_names is None or not frame.index.is_unique:
        return frame
    lost = [name for name in node_names if name not in frame.index]
    if len(lost) == len(node_names):
        return frame  # the index has nothing to do with the names
    if lost:
        raise ValueError(f"X has no row for {len(lost)} nodes, e.g. {str(lost[0])!r}.")
    return frame.loc[list(node_names)]


def _from_frame(frame, n) -> tuple[np.ndarray, list[str]]:
    columns, found = [], []
    for name in frame.columns:
        series = frame[name]
        if series.dtype.kind in "iufb":
            columns.append(series.to_numpy(dtype=np.float64))
            found.append(str(name))
            continue
        text = series.astype(str).to_numpy()
        words, counts = np.unique(text, return_counts=True)
        for word in words[np.argsort(-counts, kind="stable")][:MOST_NAMES]:
            columns.append((text == word).astype(np.float64))
            found.append(f"{name}={word}")
    return np.column_stack(columns) if columns else np.empty((n, 0)), found


def _dense(data, rows, columns=None) -> np.ndarray:
    if scipy.sparse.issparse(data):
        part = data[rows] if columns is None else data[:, columns][rows]
        return part.toarray().astype(np.float64)
    return data[rows] if columns is None else data[np.ix_(rows, columns)]


def _each_column(data, rows) -> Iterator[tuple[int, np.ndarray]]:
    """Numbers and values of all features, some at a time: sparse data may have very many."""
    for start in range(0, data.shape[1], MOST_FEATURES):
        columns = np.arange(start, min(start + MOST_FEATURES, data.shape[1]))
        yield from zip(columns, _dense(data, rows, columns).T, strict=True)


def _draws(data, values, known, n_draws, rng) -> tuple[np.ndarray, float]:
    """Importance of every feature in every draw, and the median share explained."""
    importance = np.zeros((n_draws, data.shape[1]))
    explained = np.empty(n_draws)
    for draw in range(n_draws):
        rows = rng.permutation(known)[: min(MOST_ROWS, known.size)]
        fitted, held = rows[: rows.size // 2], rows[rows.size // 2 :]
        target = _scores(values[fitted])
        seen = np.argsort(-_correlation_ratios(data, fitted, target), kind="stable")[:MOST_FEATURES]
        trees = HistGradientBoostingRegressor(
            **TREES, early_stopping=False, random_state=rng.randint(2**31 - 1)
        )
        trees.fit(_dense(data, fitted, seen), target)
        # ranks among those fitted, so that both halves have one scale
        truth = np.interp(values[held], np.sort(values[fitted]), np.sort(target))
        X = _dense(data, held, seen).copy()
        spread = np.var(truth) or 1.0
        error = np.mean((truth - trees.predict(X)) ** 2)
        explained[draw] = 1.0 - error / spread
        order = rng.permutation(held.size)
        for c, feature in enumerate(seen):
            kept = X[:, c].copy()
            X[:, c] = kept[order]
            shuffled = np.mean((truth - trees.predict(X)) ** 2)
            importance[draw, feature] = (shuffled - error) / spread
            X[:, c] = kept
    return importance, float(np.median(explained))


def _scores(values) -> np.ndarray:
    """Ranks from −1 to 1: single outliers do not decide."""
    return 2.0 * (rankdata(values) - 0.5) / len(values) - 1.0


def _correlation_ratios(data, rows, target) -> np.ndarray:
    """Share of the target's variance between classes of each feature, corrected for chance."""
    n, found = rows.size, np.zeros(data.shape[1])
    total = float(((target - target.mean()) ** 2).sum())
    for feature, values in _each_column(data, rows):
        ranks = rankdata(values, nan_policy="omit")
        classes = np.where(np.isnan(ranks), N_CLASSES, (ranks - 0.5) * N_CLASSES // n)
        _, classes = np.unique(classes, return_inverse=True)
        count = np.bincount(classes)
        means = np.bincount(classes, target - target.mean()) / count
        between, k = float(count @ means**2) / total, count.size
        found[feature] = 1.0 - (1.0 - between) * (n - 1) / max(n - k, 1)
    return np.clip(found, 0.0, None)


def _alone(data, values, known, rng) -> tuple[np.ndarray, np.ndarray]:
    """What every feature explains by itself, and its Spearman correlation with the column."""
    rows = np.sort(rng.permutation(known)[:MOST_ROWS])
    target = _scores(values[rows])
    direction = np.zeros(data.shape[1])
    for feature, values in _each_column(data, rows):
        given = np.isfinite(values)
        ranks = rankdata(values[given]) if given.sum() > 2 else np.zeros(0)
        if ranks.size and np.ptp(ranks) > 0 and np.ptp(target[given]) > 0:
            direction[feature] = np.corrcoef(ranks, rankdata(target[given]))[0, 1]
    return _correlation_ratios(data, rows, target), direction


def _rows(at, known, n) -> np.ndarray:
    if isinstance(at, str):
        if at != "all":
            raise ValueError(f"at must be 'all' or numbers of rows, got {at!r}.")
        return known
    rows = np.atleast_1d(np.asarray(at))
    if rows.dtype == bool:
        rows = np.flatnonzero(rows)
    if rows.dtype.kind not in "iu" or rows.size == 0 or rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"at must be numbers of rows from 0 to {n - 1}, got {at!r}.")
    return np.intersect1d(rows, known)


@one_blas_thread()
def _local(data, values, position, known, rows, n_neighbors, rng):
    """Slopes of ridge regressions around each row, and how often their signs agree."""
    X = _dense(data, known).copy()
    X -= np.nanmean(X, axis=0)
    spread = np.nanstd(X, axis=0)
    X /= np.where(spread > 0, spread, 1.0)
    X[np.isnan(X)] = 0.0  # as good as the mean
    y = (values[known] - values[known].mean()) / values[known].std()
    k = min(n_neighbors, known.size)
    search = NearestNeighbors(n_neighbors=k).fit(position[known])
    near = search.kneighbors(position[rows], return_distance=False)
    places = near[rng.permutation(len(near))[:PLACES]]
    ridge = RIDGES[int(np.argmin(sum(_left_out_errors(X[p], y[p]) for p in places)))]
    slopes = np.empty((rows.size, X.shape[1]))
    agreement = np.empty_like(slopes)
    draws = rng.randint(k, size=(LOCAL_DRAWS, k))
    for i, p in enumerate(near):
        slopes[i] = _ridge_slopes(X[p], y[p], ridge)
        signs = [np.sign(_ridge_slopes(X[p[d]], y[p[d]], ridge)) for d in draws]
        agreement[i] = np.mean(np.array(signs) == np.sign(slopes[i]), axis=0)
    return slopes, agreement


def _ridge_slopes(X, y, ridge) -> np.ndarray:
    """Xᵀ(XXᵀ + λ)⁻¹ y of centred values: as large as the number of neighbours, not of features."""
    X, y = X - X.mean(axis=0), y - y.mean()
    return X.T @ np.linalg.solve(X @ X.T + ridge * len(y) * np.eye(len(y)), y)


def _left_out_errors(X, y) -> np.ndarray:
    """Sum of squared errors of every ridge, each row predicted by the others."""
    X, y = X - X.mean(axis=0), y - y.mean()
    value, vector = np.linalg.eigh(X @ X.T)
    errors = []
    for ridge in RIDGES:
        shrunk = 1.0 / (np.clip(value, 0.0, None) + ridge * len(y))
        dual = vector @ (shrunk * (vector.T @ y))
        errors.append(float(np.sum((dual / np.einsum("ij,j,ij->i", vector, shrunk, vector)) ** 2)))
    return np.array(errors)
