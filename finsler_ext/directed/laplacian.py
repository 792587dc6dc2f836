"""L x = b for the Laplacian L of a sparse graph of springs, whatever its shape.

Conjugate gradients take some dozen iterations on well-connected graphs and stall on long ones. The
second attempt has a better preconditioner: the Laplacian of a spanning tree of the strongest
springs plus the degrees that the tree leaves out, factorised without fill-in. It is exact on trees
and close to the degrees where a graph is dense. What stalls even so (ladders, streets) is long and
narrow, and is factorised as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import (
    connected_components,
    minimum_spanning_tree,
    reverse_cuthill_mckee,
)
from scipy.sparse.linalg import LinearOperator, SuperLU, cg, splu

from finsler_ext._threads import one_blas_thread

# Of the residual, relative to b.
TOLERANCE = 1e-10
# Iterations with the degrees, with the tree, and where nothing better is left. 19,427 papers with
# 170,237 citations take 74.
BY_DEGREE, BY_TREE, AT_MOST = 100, 300, 10_000
# Numbers that a factorisation may have (800 MB).
LARGEST_FACTOR = 5e7


@one_blas_thread()
def solve_laplacian(springs, b, ridge: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """x with (L + ridge) x = b, and the connected component of each node.

    Parameters
    ----------
    springs : sparse matrix of shape (n, n)
        Symmetric and ≥ 0; its diagonal does not count.
    b : array of shape (n,)
    ridge : float
        Without one, b must sum to zero in every component, and so does x.

    Examples
    --------
    >>> springs = scipy.sparse.csr_array(np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> solve_laplacian(springs, np.array([1.0, -1.0]))[0]
    array([ 0.25, -0.25])
    """
    springs = _without_loops(springs)
    _, component = connected_components(springs, directed=False)
    degree = np.asarray(springs.sum(axis=1)).ravel()
    laplacian = _diagonal(degree + ridge) - springs
    inverse = np.divide(1.0, degree + ridge, out=np.zeros(len(degree)), where=degree + ridge > 0)
    x, failed = cg(laplacian, b, M=_diagonal(inverse), rtol=TOLERANCE, maxiter=BY_DEGREE)
    if failed:
        held = degree + ridge + (_held(degree, component) if ridge == 0 else 0.0)
        tree = _factors(_diagonal(held) - _spanning_tree(springs))
        nearly = LinearOperator(laplacian.shape, matvec=tree.solve, dtype=np.float64)
        x, failed = cg(laplacian, b, M=nearly, rtol=TOLERANCE, maxiter=BY_TREE)
    if failed and _envelope(springs) <= LARGEST_FACTOR:
        x = _factors(_diagonal(held) - springs).solve(np.asarray(b, dtype=np.float64))
    elif failed:
        x, _ = cg(laplacian, b, x, M=nearly, rtol=TOLERANCE, maxiter=AT_MOST)
    return x if ridge else _centred(x, component), component


def narrow_solver(springs, most: float) -> Callable[[np.ndarray], np.ndarray] | None:
    """A function b ↦ L⁺ b for many b, columns of a matrix; None if its factors are too large.

    ``most`` is the number of entries that a factorisation may have.

    Examples
    --------
    >>> springs = scipy.sparse.csr_array(np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> narrow_solver(springs, 100)(np.array([[1.0, 2.0], [-1.0, -2.0]]))
    array([[ 0.25,  0.5 ],
           [-0.25, -0.5 ]])
    """
    springs = _without_loops(springs)
    if _envelope(springs) > most:
        return None
    _, component = connected_components(springs, directed=False)
    degree = np.asarray(springs.sum(axis=1)).ravel()
    factors = _factors(_diagonal(degree + _held(degree, component)) - springs)
    return lambda b: _centred(factors.solve(np.asarray(b, dtype=np.float64)), component)


def _held(degree, component) -> np.ndarray:
    """A spring that holds one node of each component: it gets 0, as b sums to zero there."""
    held = np.zeros(len(degree))
    first = np.unique(component, return_index=True)[1]
    held[first] = np.where(degree[first] > 0, degree[first], 1.0)
    return held


def _centred(x, component) -> np.ndarray:
    """Zero mean in every component, column by column."""
    n = len(component)
    member = scipy.sparse.csr_array((np.ones(n), (component, np.arange(n))))
    return x - (member @ x / _columns(np.bincount(component), x))[component]


def _columns(values, x) -> np.ndarray:
    return values.reshape((-1,) + (1,) * (x.ndim - 1))


def _without_loops(springs) -> scipy.sparse.csr_array:
    springs = scipy.sparse.csr_array(springs, dtype=np.float64)
    springs = scipy.sparse.csr_array(springs - _diagonal(springs.diagonal()))
    springs.eliminate_zeros()
    return springs


def _spanning_tree(springs) -> scipy.sparse.csr_array:
    """Of the strongest springs of each component, both ways."""
    lengths = springs.copy()
    lengths.data = 1.0 / lengths.data
    tree = scipy.sparse.csr_array(minimum_spanning_tree(lengths))
    tree.data = 1.0 / tree.data
    return tree + tree.T


def _envelope(springs) -> float:
    """Numbers that a factorisation in the order of Cuthill and McKee would have."""
    order = reverse_cuthill_mckee(springs, symmetric_mode=True)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    row, column = springs.tocoo().coords
    first = np.arange(len(order))
    np.minimum.at(first, place[row], place[column])
    return float((np.arange(len(order)) - first).sum())


def _factors(matrix) -> SuperLU:
    return splu(
        scipy.sparse.csc_array(matrix),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )


def _diagonal(values: np.ndarray) -> scipy.sparse.csr_array:
    n = len(values)
    return scipy.sparse.dia_array((values[None, :], [0]), shape=(n, n)).tocsr()
