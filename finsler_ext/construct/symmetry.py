"""Does anything depend on the direction?"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from finsler_ext._blocks import row_blocks

__all__ = ["DIRECTED_SHARE", "NEGLIGIBLE_SKEW", "SYMMETRY_ROUNDING", "is_directed", "is_symmetric"]

# Entries that differ by less than this share of the largest one are equal but for rounding.
SYMMETRY_ROUNDING = 1e-6
# Distances there and back that differ by less than this share of their sum are equal: they may
# have been computed in single precision.
DIRECTED_SHARE = 1e-5
# Below this share of Σ D² the squares of the skew part are rounding, in single precision too.
NEGLIGIBLE_SKEW = 1e-12


def is_symmetric(matrix, rtol: float = SYMMETRY_ROUNDING) -> bool:
    """Whether a matrix equals its transpose, up to ``rtol`` of its largest entry; nan equals nan.

    Absent entries of a sparse matrix are zeros.
    """
    if scipy.sparse.issparse(matrix):
        return _is_symmetric_sparse(matrix, rtol)
    allowed = rtol * float(np.fmax.reduce(matrix, axis=None)) if rtol else 0.0
    for rows in row_blocks(matrix.shape[0]):  # no second matrix is needed
        there, back = matrix[rows], matrix[:, rows].T
        if rtol == 0.0:
            same = np.array_equal(there, back, equal_nan=True)
        else:
            same = np.allclose(there, back, rtol=0.0, atol=allowed, equal_nan=True)
        if not same:
            return False
    return True


def _is_symmetric_sparse(matrix, rtol: float) -> bool:
    if matrix.nnz == 0:
        return True
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
