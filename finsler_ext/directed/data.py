"""Directed data once it is read: distances, names, and strengths where the data has them.

D[i, j] is the dissimilarity from i to j. One rule says which pairs are not known: nan and inf in a
dense matrix, absent entries in a sparse one. The stress leaves them out (weight 0);
`complete_paths` fills them in along shortest directed paths instead. `finsler_ext.read_directed`
takes all kinds of data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from finsler_ext.neighbors.geodesics import ZERO_LENGTH, shortest_paths
from finsler_ext.validation import checked_structure

# What the numbers of directed data are: a cost of going from source to target; a strength (the
# more, the closer: synapses, clicks, counts); or transition probabilities, whose rows sum to 1.
VALUES = ("cost", "strength", "transitions")
# Rows of a transition matrix may miss a sum of 1 by this much (float32 sums of many entries).
STOCHASTIC_TOLERANCE = 1e-3
# Squares of sums of them are finite.
LARGEST_STRENGTH = 1e150
# With more zeros than this share, a dense matrix holds edges, and not distances.
MOSTLY_ZERO = 0.5
# With fewer pairs known than this share, a descent starts along shortest paths: on direct flights
# (5 % of the pairs) it then ends at less than half the stress.
MOSTLY_KNOWN = 0.5


@dataclass(frozen=True)
class DirectedData:
    """Directed distances between points; ``distances, names = data`` takes it apart.

    Attributes
    ----------
    distances : array with nan for unknown pairs, or sparse array that stores the known ones
    names : list or None
        Of the rows.
    strengths : sparse array or None
        The strengths or transition probabilities as they are in the data.
    how : str
        Which columns were taken for what, if that was to be decided.
    """

    distances: Any
    names: list | None = None
    strengths: Any = None
    how: str = ""

    def __iter__(self) -> Iterator:
        return iter((self.distances, self.names))

    def __str__(self) -> str:
        """What was read: columns, nodes, edges, and how many of these are one-way."""
        n, n_known = self.distances.shape[0], self.n_known
        if scipy.sparse.issparse(self.distances):
            size = f"{n:,} nodes, {n_known:,} edges, {100 * self.one_way_share:.0f} % one-way"
        else:
            size = f"{n:,} points, {n_known:,} of {n * (n - 1):,} pairs known"
        return f"{self.how}; {size}" if self.how else size

    @property
    def n_known(self) -> int:
        """Ordered pairs of different points whose distance is known."""
        if scipy.sparse.issparse(self.distances):
            return len(self._edges())
        known = np.isfinite(self.distances)
        return int(np.count_nonzero(known) - np.count_nonzero(known.diagonal()))

    @property
    def one_way_share(self) -> float:
        """Share of the edges of a sparse matrix that have no way back."""
        edge, n = self._edges(), self.distances.shape[0]
        back = edge % n * n + edge // n
        return float(np.mean(~np.isin(back, edge))) if edge.size else 0.0

    def _edges(self) -> np.ndarray:
        """source · n + target of each."""
        entries = scipy.sparse.coo_array(self.distances)
        source, target = (index.astype(np.int64) for index in entries.coords)
        return np.unique((source * entries.shape[0] + target)[source != target])


def check_values(values: str | None) -> None:
    if values is not None and values not in VALUES:
        raise ValueError(f"values must be one of {VALUES}, got {values!r}.")


def directed_data(numbers, names=None, values: str | None = None, how: str = "") -> DirectedData:
    """Distances from a matrix of costs (default), strengths or transition probabilities.

    The length of an edge with a strength is −log of its share of all that leaves the source:
    likely paths are short. What stays (the diagonal) counts in that total, but is no edge.

    Examples
    --------
    >>> directed_data(np.array([[1.0, 3.0], [0.0, 2.0]]), values="strength").distances.toarray()
    array([[0.        , 0.28768207],
           [0.        , 0.        ]])
    """
    check_values(values)
    check_square(np.shape(numbers))
    if values is None:
        refuse_adjacency(numbers)
    if values in (None, "cost"):
        return DirectedData(numbers, names, None, how)
    if not scipy.sparse.issparse(numbers):
        numbers = np.where(np.isfinite(numbers), numbers, 0.0)
    stochastic = values == "transitions"
    S = scipy.sparse.csr_array(numbers, dtype=np.float64, copy=True)
    S.sum_duplicates()
    kind = "Transition probabilities" if stochastic else "Strengths"
    if S.nnz and (not np.isfinite(S.data).all() or S.data.min() < 0):
        raise ValueError(f"{kind} must be numbers ≥ 0, got {S.data.min():g} to {S.data.max():g}.")
    if S.nnz and float(S.data.max()) > LARGEST_STRENGTH / S.shape[0]:
        raise ValueError(
            f"{kind} up to {S.data.max():.3g} have sums that float64 cannot hold: use another unit."
        )
    total = np.asarray(S.sum(axis=1)).ravel()
    if stochastic:
        wrong = total - 1.0 > STOCHASTIC_TOLERANCE
        if S.diagonal().any():  # without one, transitions from a state to itself are left out
            wrong |= (1.0 - total > STOCHASTIC_TOLERANCE) & (total > 0)
        off = np.flatnonzero(wrong)
        if off.size:
            raise ValueError(
                f"Rows of a transition matrix must sum to 1; row {off[0]} sums to "
                f"{total[off[0]]:.4g} ({off.size} such rows). Divide each row by its sum, and "
                "check that rows are sources."
            )
        total = np.ones_like(total)
    source = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    edge = (S.data > 0) & (source != S.indices)
    source, target, strength = source[edge], S.indices[edge], S.data[edge]
    lengths = -np.log(np.minimum(strength / total[source], 1.0)) + 0.0  # not −0.0
    distances, strengths = (
        scipy.sparse.csr_array((data, (source, target)), shape=S.shape)
        for data in (lengths, strength)
    )
    return DirectedData(distances, names, strengths, how)


def refuse_adjacency(D) -> None:
    """Refuse a dense matrix in which 0 must mean "no edge": as a distance it is the shortest."""
    if scipy.sparse.issparse(D):
        return
    D = np.asarray(D)
    if D.ndim != 2 or D.shape[0] != D.shape[1] or D.dtype.kind not in "biuf":
        return
    zero = D == 0
    np.fill_diagonal(zero, False)
    n_zero = np.count_nonzero(zero)
    if n_zero == 0:
        return
    known = np.isfinite(D)
    n_known = np.count_nonzero(known) - np.count_nonzero(known.diagonal())
    if n_zero <= MOSTLY_ZERO * n_known or not (zero & (D.T > 0)).any():
        return
    raise ValueError(
        f"{n_zero / n_known:.0%} of the distances between different points are 0, some of them one "
        "way only. If 0 means that there is no edge, pass scipy.sparse.csr_array(X), or for counts "
        "finsler_ext.read_directed(X, values='strength'). If they are distances, say so: "
        "finsler_ext.read_directed(X, values='cost')."
    )


def read_matrix(D) -> np.ndarray:
    """A dense or sparse matrix; entries that a sparse one does not store are unknown.

    Duplicate entries of a sparse matrix are summed, as scipy does. Dense floating-point matrices
    without inf are returned as they are, not copied.

    Examples
    --------
    >>> import scipy.sparse
    >>> read_matrix(scipy.sparse.csr_array([[0.0, 2.0], [0.0, 0.0]]))
    array([[ 0.,  2.],
           [nan,  0.]])
    """
    if scipy.sparse.issparse(D):
        check_square(D.shape)
        entries = without_duplicates(D).tocoo()
        dtype = entries.dtype if entries.dtype == np.float32 else np.float64
        dense = np.full(entries.shape, np.nan, dtype=dtype)
        dense[entries.coords] = entries.data
        np.fill_diagonal(dense, 0.0)
    else:
        masked = isinstance(D, np.ma.MaskedArray) and D.dtype.kind == "f"
        dense = D.filled(np.nan) if masked else np.asarray(D)
        dense = np.asarray(dense, dtype=dense.dtype if dense.dtype == np.float32 else np.float64)
        check_square(dense.shape)
    infinite = np.isinf(dense)
    if infinite.any():
        dense = np.where(infinite, dense.dtype.type(np.nan), dense)
    return dense


def without_duplicates(matrix) -> scipy.sparse.csr_array:
    """The matrix in CSR format with its duplicates summed; the caller's is not changed."""
    matrix = scipy.sparse.csr_array(checked_structure(matrix))
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def check_square(shape) -> None:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"Directed dissimilarities must be a square matrix (rows are sources), got shape "
            f"{tuple(shape)}. For features use metric='euclidean' or another name; for an edge "
            "list use finsler_ext.read_directed."
        )


def complete_paths(D) -> np.ndarray:
    """Shortest directed paths over the known pairs, of D's dtype; inf where there is none."""
    D = read_matrix(D)
    known = np.isfinite(D)
    np.fill_diagonal(known, False)
    source, target = np.nonzero(known)
    length = D[source, target].astype(np.float64)
    if length.size and length.min() < 0:
        raise ValueError(f"Dissimilarities must not be negative, got {length.min():g}.")
    positive = length[length > 0]
    length = np.maximum(length, ZERO_LENGTH * (np.median(positive) if positive.size else 1.0))
    graph = scipy.sparse.coo_array((length, (source, target)), shape=D.shape).tocsr()
    return shortest_paths(graph, D.dtype)
