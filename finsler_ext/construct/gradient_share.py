"""How much of the asymmetry of directed distances any height can show.

Of the skew part K_ij = (D_ij − D_ji)/2 a height shows what is a difference u_j − u_i. The best u
solves V u = −K 1 with V the Laplacian of the pairs that are known both ways; the share of Σ K² that
it takes is 2 uᵀVu / Σ K². The rest is cyclic (A → B → C → A costs more than the way back) or noise.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, cg

from finsler_ext._blocks import row_blocks
from finsler_ext._warn import warn
from finsler_ext.construct.readers import canonical
from finsler_ext.construct.symmetry import NEGLIGIBLE_SKEW

__all__ = ["MOSTLY_CYCLIC", "CyclicWarning", "gradient_share", "warn_of_cycles"]

# With less of the asymmetry than this, most of it has no height.
MOSTLY_CYCLIC = 0.5
# Rows summed at a time: another number would change the last digits of the share.
SUMMED_ROWS = 1024
# Of conjugate gradients; the share is exact to its square.
TOLERANCE = 1e-8


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
    degree = np.bincount(source, minlength=n) + np.bincount(target, minlength=n)
    pairs = scipy.sparse.csr_array((np.ones(source.size), (source, target)), shape=D.shape)

    def product(u):
        u = np.ravel(u)
        return degree * u - pairs @ u - pairs.T @ u

    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    scaled = LinearOperator((n, n), matvec=lambda u: np.ravel(u) / np.maximum(degree, 1))
    level, _ = cg(operator, pull, rtol=TOLERANCE, M=scaled)
    # on the way to the solution, less than 2 uᵀVu counts: the share never exceeds 1
    return min(1.0, 2.0 * float(2 * level @ pull - level @ product(level)) / skew)


def warn_of_cycles(share: float) -> None:
    """Say with a fit that most of the asymmetry has no height, if so."""
    if share < MOSTLY_CYCLIC:
        warn(
            f"Most of the asymmetry is cyclic or noise: heights can express only {share:.0%} of it "
            "(gradient_share_), whatever the drift. The rest (A → B → C → A costs more than the "
            "way back) has no height.",
            CyclicWarning,
        )
