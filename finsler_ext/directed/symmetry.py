"""Does anything depend on the direction?"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from finsler_ext._threads import row_blocks
from finsler_ext.directed.data import canonical
from finsler_ext.directed.laplacian import solve_laplacian

# Entries that differ by less than this share of the largest one are equal but for rounding.
SYMMETRY_ROUNDING = 1e-6
# Distances there and back that differ by less than this share of their sum are equal: they may
# have been computed in single precision.
DIRECTED_SHARE = 1e-5
# Below this share of Σ D² the squares of the skew part are rounding, in single precision too.
NEGLIGIBLE_SKEW = 1e-12


def is_symmetric(matrix, rtol: float = SYMMETRY_ROUNDING) -> bool:
    """Whether a matrix equals its transpose, up to ``rtol`` of its largest finite entry.

    nan equals nan, and inf equals inf. Absent entries of a sparse matrix are zeros.
    """
    if scipy.sparse.issparse(matrix):
        return _is_symmetric_sparse(matrix, rtol)
    blocks = list(row_blocks(matrix.shape[0]))  # no second matrix is needed
    allowed = rtol * max(map(_largest_finite, (matrix[rows] for rows in blocks)), default=0.0)
    for rows in blocks:
        there, back = matrix[rows], matrix[:, rows].T
        if rtol == 0.0:
            same = np.array_equal(there, back, equal_nan=True)
        else:
            same = np.allclose(there, back, rtol=0.0, atol=allowed, equal_nan=True)
        if not same:
            return False
    return True


def _largest_finite(values) -> float:
    return float(values.max(initial=0.0, where=np.isfinite(values)))


def _is_symmetric_sparse(matrix, rtol: float) -> bool:
    if matrix.nnz == 0:
        return True
    matrix = scipy.sparse.csr_array(matrix)
    finite = np.isfinite(matrix.data)
    if not finite.all():
        marks = np.select([finite, matrix.data > 0, matrix.data < 0], [0.0, 1.0, 2.0], 3.0)
        parts = (np.where(finite, matrix.data, 0.0), marks)
        return all(
            _is_symmetric_sparse(
                scipy.sparse.csr_array((part, matrix.indices, matrix.indptr), matrix.shape), rtol
            )
            for part in parts
        )
    allowed = rtol * float(abs(matrix).max())
    out, into = (np.asarray(matrix.sum(axis=axis)).ravel() for axis in (1, 0))
    if abs(out - into).max() > allowed * matrix.shape[0]:  # saves the transpose
        return False
    return bool(abs(matrix - matrix.T).max() <= allowed)


def is_directed(D) -> bool:
    """Whether some pair of distances that is known both ways depends on the direction."""
    if scipy.sparse.issparse(D):
        D = scipy.sparse.csr_array(D, dtype=np.float64)
        stored = scipy.sparse.csr_array((np.ones_like(D.data), D.indices, D.indptr), shape=D.shape)
        there = (D.multiply(stored.T)).tocsr()
        back = (D.T.tocsr().multiply(stored)).tocsr()
        differ = abs(there - back) - DIRECTED_SHARE * (there + back)
        return bool(differ.nnz and differ.max() > 0)
    with np.errstate(invalid="ignore"):  # inf - inf: both directions are missing
        return bool(np.any(np.abs(D - D.T) > DIRECTED_SHARE * (D + D.T)))


# How much of the asymmetry of directed distances any height can show.
#
# Of the skew part K_ij = (D_ij − D_ji)/2 a height shows what is a difference u_j − u_i. The best u
# solves V u = −K 1 with V the Laplacian of the pairs that are known both ways; the share of Σ K²
# that
# it takes is 2 uᵀVu / Σ K². The rest is cyclic (A → B → C → A costs more than the way back) or
# noise.

# Rows summed at a time: another number would change the last digits of the share.
SUMMED_ROWS = 1024


class CyclicWarning(UserWarning):
    """Most of the asymmetry of the data has no height."""


def gradient_share(D) -> float:
    """Share of the asymmetry of D that is a difference of heights, from 0 to 1.

    Parameters
    ----------
    D : array or sparse matrix of shape (n, n)
        Directed distances. Pairs that are nan, inf or absent in either direction are not looked
        at. nan if there is no asymmetry, or no pair that is known both ways.

    Examples
    --------
    >>> import numpy as np
    >>> round(gradient_share(np.array([[0.0, 2.0, 3.0], [1.0, 0.0, 2.0], [1.0, 1.0, 0.0]])), 9)
    1.0
    >>> gradient_share(np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 2.0], [2.0, 1.0, 0.0]]))
    0.0
    """
    if not scipy.sparse.issparse(D):
        D = np.asarray(D)
        if np.isfinite(D).all():
            return _share_of_all_pairs(D)
        D = scipy.sparse.csr_array(_known_pairs(D))
    return _share_of_some_pairs(canonical(D))


def _share_of_all_pairs(D: np.ndarray) -> float:
    n = len(D)
    total = skew = gradient = 0.0
    for rows in row_blocks(n, SUMMED_ROWS):
        there = D[rows].astype(np.float64)
        half = (there - D[:, rows].T) / 2
        total += float(np.einsum("ij,ij", there, there))
        skew += float(np.einsum("ij,ij", half, half))
        gradient += 2.0 * float((half.sum(axis=1) ** 2).sum()) / n
    return gradient / skew if skew > NEGLIGIBLE_SKEW * total else float("nan")


def _known_pairs(D: np.ndarray):
    source, target = np.nonzero(np.isfinite(D))
    return scipy.sparse.coo_array((D[source, target], (source, target)), shape=D.shape)


def _share_of_some_pairs(D: scipy.sparse.csr_array) -> float:
    known = scipy.sparse.csr_array((np.ones(D.nnz), D.indices, D.indptr), shape=D.shape)
    both = scipy.sparse.triu(known.multiply(known.T), k=1).tocoo()
    source, target = both.coords
    if source.size == 0:
        return float("nan")
    there = np.asarray(D[source, target], dtype=np.float64).ravel()
    back = np.asarray(D[target, source], dtype=np.float64).ravel()
    half = (there - back) / 2
    skew = 2.0 * float(half @ half)
    if not skew > NEGLIGIBLE_SKEW * float(there @ there + back @ back):
        return float("nan")
    n = D.shape[0]
    pull = np.bincount(target, half, n) - np.bincount(source, half, n)  # −K 1
    pairs = scipy.sparse.csr_array((np.ones(source.size), (source, target)), shape=D.shape)
    level, _ = solve_laplacian(pairs + pairs.T, pull)
    return float(np.clip(2.0 * (level @ pull) / skew, 0.0, 1.0))
