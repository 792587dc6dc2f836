"""Checks of data that all estimators share, made before any compiled code sees it.

A sparse matrix whose indices point outside it makes compiled code read and write foreign memory; a
mask is lost by `numpy.asarray`; float32 keeps 24 bits of a number, whatever its offset. What can be
put right is, everything else is refused with the way out.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np
import scipy.sparse

from finsler_ext.schema import NONE, array, saved, whole

# Metrics that depend on differences between rows only, and are multiplied with the data.
LENGTHS = {"euclidean", "l2", "manhattan", "taxicab", "l1", "minkowski"}
LENGTHS |= {"chebyshev", "linfinity", "linfty", "linf"}
# Metrics that do not change when all data are multiplied by the same number.
UNITLESS = {"cosine", "correlation", "canberra", "braycurtis"}
# Data whose largest number lies outside are divided by a power of two: float32 holds squares of
# numbers between 1e-19 and 1e19, and differences may be a million times smaller than the numbers.
SMALLEST_PLAIN, LARGEST_PLAIN = 1e-9, 1e9
# An offset of this many times the spread takes 7 of the 24 bits of a float32: 17 are left for
# differences, a hundred-thousandth of the spread.
LARGE_OFFSET = 2.0**7
# float64 holds the squares of such numbers, and float32 the numbers themselves.
SMALLEST_SQUARE, LARGEST_SQUARE = 1e-100, 1e100
SMALLEST_SINGLE, LARGEST_SINGLE = 1e-30, 1e30
# Layouts are a few tens wide; gradients of much larger ones vanish in single precision.
LARGEST_START = 1e9
# Distances from a point to itself below this share of the largest distance are rounding.
DIAGONAL_ROUNDING = 1e-6
# float64 tells integers up to this from their neighbours.
LARGEST_INTEGER = 2**53


def check_start_shape(name: str, shape, n: int, n_components: int) -> None:
    """Refuse a start that is neither a map of n rows nor map and height."""
    m = n_components
    if len(shape) != 2 or shape[0] != n or shape[1] not in (m - 1, m):
        raise ValueError(
            f"{name}: an array must have {n} rows and n_components − 1 = {m - 1} columns (the map) "
            f"or {m} (map and height), got shape {tuple(shape)}."
        )


def check_start(name: str, start) -> None:
    """Refuse positions to start from that compiled code cannot move."""
    start = np.asarray(start, dtype=np.float64)
    if not np.isfinite(start).all():
        raise ValueError(f"{name}: the array contains NaN or infinity.")
    if np.abs(start).max(initial=0.0) > LARGEST_START:
        raise ValueError(
            f"{name}: positions up to {np.abs(start).max():.3g} are too far apart to be moved; "
            f"divide them, so that they stay below {LARGEST_START:g}."
        )


def check_diagonal(D) -> None:
    """Refuse distances of points to themselves, rounding and missing ones aside."""
    values = D.data if scipy.sparse.issparse(D) else D
    largest = values[np.isfinite(values)].max(initial=0.0) if values.size else 0.0
    own = np.abs(D.diagonal())
    if np.any(own[np.isfinite(own)] > DIAGONAL_ROUNDING * largest):
        raise ValueError(
            "metric='precomputed': the distance from a point to itself must be 0; set the "
            "diagonal of the matrix to 0."
        )


def refuse_one_way() -> NoReturn:
    """Refuse new points of one direction for a model of directed distances."""
    raise ValueError(
        "incoming: the model was fitted to directed distances, and new points need both "
        "directions. Pass transform(D, incoming=E) with D[i, j] the distance from new point i to "
        "training point j and E[i, j] the distance from j to i, nan where it is not known."
    )


def refuse_placeless(outgoing, incoming) -> None:
    """Refuse new points without a finite distance, by their matrices of directed distances."""
    known = np.zeros(outgoing.shape[0], dtype=np.bool_)
    for D in (outgoing, incoming):
        sparse = scipy.sparse.issparse(D)
        known |= np.diff(scipy.sparse.csr_array(D).indptr) > 0 if sparse else np.isfinite(D).any(1)
    if not known.all():
        raise ValueError(
            f"New point {int(np.argmin(known))} has no known distance to place it by. Leave out "
            "the rows of such points."
        )


def refuse_diverged(positions: np.ndarray, *, isolated: bool = False) -> None:
    """Raise a ValueError if points have no place; isolated ones need none.

    Beyond the root of the largest number of their dtype, distances between positions are infinite.
    """
    lost = np.isnan(positions).all() if isolated else np.isnan(positions).any()
    farthest = np.sqrt(np.finfo(positions.dtype).max)
    if lost or (np.abs(positions) > farthest).any():
        raise ValueError(
            f"The layout diverged: its positions are NaN, infinite or beyond {farthest:.1e}. Use a "
            "smaller learning_rate, or start from smaller positions."
        )


def readable(X, name: str = "X", *, missing: float | None = None) -> Any:
    """X with a structure that compiled code can rely on, and without a mask.

    ``missing`` stands for the masked entries of a masked array; without it they are refused.
    """
    _check_kinds(X, name)
    if scipy.sparse.issparse(X):
        return checked_structure(X, name)
    if not isinstance(X, np.ma.MaskedArray):
        return X
    masked = int(np.ma.getmaskarray(X).sum())
    if masked == 0:
        return X.data
    if missing is None:
        raise ValueError(
            f"{name} has {masked} masked values. Fill them in (X.filled(value)), or leave out "
            "their rows or columns."
        )
    dtype = X.dtype if X.dtype.kind == "f" else np.float64
    return np.ma.filled(X.astype(dtype), missing)


def _check_kinds(X, name: str) -> None:
    """Refuse dates, and integers that floats do not tell from their neighbours."""
    columns = [X[c].to_numpy() for c in X] if hasattr(X, "iloc") and hasattr(X, "columns") else [X]
    if isinstance(X, (list, tuple)):
        try:
            columns = [np.asarray(X)]
        except ValueError:
            return  # said when X is validated
    for values in columns:
        if scipy.sparse.issparse(values):  # of lists and dicts only as coordinates
            values = (values.tocoo() if values.format in ("lil", "dok") else values).data
        if not isinstance(values, np.ndarray) or not values.size:
            continue
        if values.dtype.kind in "mM":
            raise ValueError(
                f"{name} has dates or durations ({values.dtype}), which have no unit of distance. "
                "Turn them into numbers first, or leave them out."
            )
        if values.dtype.kind == "O":
            whole = (abs(v) for v in values.ravel().tolist() if isinstance(v, int))
            largest = max(whole, default=0)
        elif values.dtype.kind in "iu" and values.dtype.itemsize == 8:
            largest = max(-int(values.min()), int(values.max()))
        else:
            continue
        if largest > LARGEST_INTEGER:
            raise ValueError(
                f"{name} has integers up to {largest}, beyond 2⁵³, which floats cannot hold "
                f"exactly. Subtract a constant first, such as {name}.min(axis=0)."
            )


def checked_structure(X, name: str = "X") -> Any:
    """A sparse matrix, or a ValueError where its indices do not fit its shape. Not modified."""
    if X.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got shape {X.shape}.")
    if X.format not in ("csr", "csc", "bsr", "coo"):
        X = X.tocoo()  # built from Python objects, so these cannot read foreign memory
    if X.format == "coo":
        for axis, index in enumerate((X.row, X.col)):
            _check_range(index, X.shape[axis], name)
            if index.shape != X.data.shape:
                raise _broken(name, f"{index.size} indices for {X.data.size} values")
        return X
    major, minor = (X.shape[1], X.shape[0]) if X.format == "csc" else X.shape
    if X.format == "bsr":
        major, minor = major // X.blocksize[0], minor // X.blocksize[1]
    indptr, stored = X.indptr, len(X.indices)
    if indptr.ndim != 1 or len(indptr) != major + 1:
        raise _broken(name, f"indptr has {indptr.size} entries instead of {major + 1}")
    if len(X.data) != stored:
        raise _broken(name, f"{stored} indices for {len(X.data)} values")
    if indptr[0] != 0 or indptr[-1] > stored or (np.diff(indptr) < 0).any():
        raise _broken(name, f"indptr does not rise from 0 to at most {stored}")
    used = slice(int(indptr[-1]))  # the rest is room to grow, and may hold anything
    _check_range(X.indices[used], minor, name)
    if indptr[-1] == stored:
        return X
    return type(X)((X.data[used], X.indices[used], indptr), shape=X.shape)


def _check_range(index, size, name):
    if index.size and (index.min() < 0 or index.max() >= size):
        wrong = index.min() if index.min() < 0 else index.max()
        raise _broken(name, f"index {wrong} where only 0 to {size - 1} exist")


def _broken(name, what) -> ValueError:
    return ValueError(f"{name} is a broken sparse matrix: {what}. Build or save it anew.")


def canonical(X, *, keep_zeros: bool = False):
    """CSR with sorted indices, no duplicates and no stored zeros; X itself is not modified.

    Metrics for binary data take every stored entry for a 1. Directed distances keep their stored
    zeros: there they are distances, and what is not stored is missing.
    """
    if not scipy.sparse.issparse(X):
        return X
    X = scipy.sparse.csr_matrix(X)
    zeros = not keep_zeros and X.nnz > 0 and not X.data.all()
    if zeros or not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
        if not keep_zeros:
            X.eliminate_zeros()
    return X


def as_stored(X, like, *, pairs: bool = False):
    """New rows, dense or sparse as the training rows are; ``pairs`` not stored are inf."""
    if scipy.sparse.issparse(like) == scipy.sparse.issparse(X):
        return X
    if scipy.sparse.issparse(like):
        known = np.nonzero(np.isfinite(X) if pairs else X)
        return scipy.sparse.csr_matrix((X[known], known), shape=X.shape)
    return as_dense(X, np.inf if pairs else 0, X.dtype)


def as_dense(X, missing: float, dtype=np.float64) -> np.ndarray:
    """A sparse matrix as an array, with ``missing`` where it stores nothing."""
    entries = scipy.sparse.coo_array(X)
    dense = np.full(X.shape, missing, dtype)
    dense[entries.coords] = entries.data
    return dense


@saved(
    offset=NONE | array("f4 f8", "d"),
    exponent=whole("[0, 0]") | whole("[29, 1100]") | whole("[-1100, -29]"),
)
class AsFitted(NamedTuple):
    """How data were moved and scaled before float32 came to hold them.

    offset : what is subtracted from every row, or None
    exponent : data are divided by 2 to this power, which rounds nothing
    """

    offset: np.ndarray | None = None
    exponent: int = 0

    @property
    def plain(self) -> bool:
        return self.offset is None and self.exponent == 0

    @classmethod
    def of(cls, X, metric) -> AsFitted:
        """What brings X into the range of float32 without changing ``metric`` between rows."""
        if not isinstance(metric, str) or metric not in LENGTHS | UNITLESS | {"precomputed"}:
            return cls()
        offset = large_offset(X) if metric in LENGTHS else None
        values = X.data if scipy.sparse.issparse(X) else X
        if offset is not None:
            values = values - offset
        largest = _largest(values)
        if largest == 0 or SMALLEST_PLAIN < largest < LARGEST_PLAIN:
            return cls(offset)
        return cls(offset, int(np.frexp(largest)[1]))

    def apply(self, X):
        """X, moved and scaled; X itself is not modified."""
        if self.offset is not None:
            X = X - self.offset
        return self.scaled(X)

    def scaled(self, X):
        """Lengths (or a sparse matrix), scaled."""
        if self.exponent == 0:
            return X
        if scipy.sparse.issparse(X):
            X = X.copy()
            X.data = np.ldexp(X.data, -self.exponent)
            return X
        return np.ldexp(X, -self.exponent)

    def undo(self, X):
        """Rows in the range of float32, as float64 in the units and at the place of the user's."""
        if scipy.sparse.issparse(X):
            X = X.astype(np.float64)
            X.data = np.ldexp(X.data, self.exponent)
            return X
        X = np.ldexp(np.asarray(X, dtype=np.float64), self.exponent)
        return X if self.offset is None else X + self.offset


def large_offset(X) -> np.ndarray | None:
    """The mean of the rows if it is so large that it takes the bits of the differences, or None."""
    if scipy.sparse.issparse(X) or X.dtype.kind != "f" or X.size == 0:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = X.min(axis=0), X.max(axis=0)
        spread = (high - low).max()
        far = np.maximum(np.abs(low), np.abs(high)).max()
    if not np.isfinite(spread) or spread == 0 or far / LARGE_OFFSET <= spread:
        return None
    # of the range, not of the rows: sums of many large numbers round
    return low + (high - low) / 2


def _largest(values) -> float:
    """The largest finite absolute value; in the usual case without a copy of the data."""
    values = np.asarray(values)
    if values.size == 0:
        return 0.0
    low, high = np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)
    if np.isinf(low) or np.isinf(high):
        return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    return 0.0 if np.isnan(high) else max(abs(float(low)), abs(float(high)))


def without_extremes(X, name: str = "X", *, single: bool = False, new: bool = False):
    """X in float64 where float32 could not hold its squares; extreme units are refused.

    ``single`` says that distances between the rows will be held in float32. Rows that are ``new``
    may be small: their distances are those from other rows.
    """
    values = X.data if scipy.sparse.issparse(X) else X
    largest = _largest(values)
    low, high = (SMALLEST_SINGLE, LARGEST_SINGLE) if single else (SMALLEST_SQUARE, LARGEST_SQUARE)
    if largest > high or (0 < largest < low and not new):
        raise ValueError(
            f"{name}: its largest number is {largest:.3g}, too "
            f"{'large' if largest > 1 else 'small'} for distances to be computed (between {low:g} "
            f"and {high:g}). Choose another unit: multiply {name} by a constant."
        )
    plain = largest == 0 or SMALLEST_PLAIN < largest < LARGEST_PLAIN
    return X if plain or X.dtype != np.float32 else X.astype(np.float64)
