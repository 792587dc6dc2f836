"""Where a descent of the directed stress starts:

    "finsler"  classical MDS of S = (D + Dᵀ)/2 in all m columns, rotated so that the last axis
               is the direction that best explains the level u of the skew part, then scaled as
               a majorisation step would scale it
    "isomap"   classical MDS of S in m − 1 columns and a height of zero (D being geodesic, this
               is Isomap); in all m columns where nothing would ever move a zero height
    "random"   a Gaussian cloud as wide as the data

Classical MDS needs the first eigenvectors of −½ J S∘S J. They are found by Lanczos iterations
whose products run over the rows of S, so that no further N × N matrix is formed.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numba import njit
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from finsler_ext._threads import RowPool
from finsler_ext.directed.data import MOSTLY_KNOWN, complete_paths
from finsler_ext.mds.stress import DenseStress

STARTS = ("finsler", "isomap", "random")
# Below this size a dense eigensolver is faster and never fails.
DENSE_SIZE = 512
# The start of a descent need not be exact.
EIGEN_TOLERANCE = 1e-4
# A column without any extent (data of lower dimension) would stay without; this share of the
# widest one is given to it.
SPREAD = 1e-3


class InitialLayout:
    """Starts for one problem at any drift; eigenvectors are computed once."""

    def __init__(
        self,
        init: str,
        n_components: int,
        problem: DenseStress,
        random_state: np.random.RandomState,
        n_threads: int = 1,
    ):
        self.init, self.n_components, self.problem = init, n_components, problem
        self.random_state, self.n_threads = random_state, n_threads
        self._scores: dict[int, np.ndarray] = {}

    def __call__(self, omega_norm: float) -> np.ndarray:
        """Positions of shape (n, n_components), in the units of the data."""
        m, problem = self.n_components, self.problem
        if self.init == "random":
            # Pairs of a Gaussian cloud of width s are s √(2m) apart, root mean square.
            width = np.sqrt(problem.total / problem.total_weight / (2 * m))
            noise = self.random_state.normal(size=(problem.n_points, m))
            return problem.unit * width * noise
        if self.init == "isomap" and m > 1 and omega_norm > 0 and problem.is_skew:
            scores = self._classical(m - 1)
            return problem.unit * np.column_stack([scores, np.zeros(len(scores))])
        # Without drift or skew nothing would ever move a height of zero: all columns are map.
        scores = self._classical(m)
        if self.init == "finsler" or m == 1:
            scores = _turned_to(scores, problem.level, omega_norm)
        return problem.unit * scores

    def suited_drift(self) -> float:
        """The drift that classical MDS calls for: the slope of the level along its best axis."""
        scores = self._classical(self.n_components)
        direction, *_ = np.linalg.lstsq(scores, self.problem.level, rcond=None)
        return float(np.linalg.norm(direction))

    def _classical(self, n_columns):
        if n_columns not in self._scores:
            scores = classical_scaling(self.problem, n_columns, self.random_state, self.n_threads)
            self._scores[n_columns] = _spread(scores, self.random_state)
        return self._scores[n_columns].copy()


def classical_scaling(
    problem: DenseStress, n_columns: int, random_state, n_threads: int = 1
) -> np.ndarray:
    """Classical MDS of S in the problem's units; missing pairs are filled in.

    Where most pairs are missing, by shortest paths over the others; otherwise by the mean of
    their row and their column.
    """
    n = problem.n_points
    S = problem.mean
    filling = np.zeros(n)
    weights = np.empty((0, 0), dtype=S.dtype)
    if problem.weights is not None:
        known = problem.weights > 0
        if np.count_nonzero(known) < MOSTLY_KNOWN * n * (n - 1):
            S = _along_paths(S, known)
        else:
            weights = problem.weights
            filling = _row_mean_squares(S, weights)
    with RowPool(n, n_threads) as pool:

        def product(vector):
            vector = np.ravel(vector).astype(np.float64)
            centred = np.ascontiguousarray(vector - vector.mean())
            out = np.empty(n)
            pool.run(_squares_product, S, weights, filling, centred, out)
            return -0.5 * (out - out.mean())

        wanted = min(n_columns, n - 1)
        if n <= DENSE_SIZE:
            gram = np.column_stack([product(row) for row in np.eye(n)])
            gram = (gram + gram.T) / 2
            values, vectors = scipy.linalg.eigh(gram, subset_by_index=[n - wanted, n - 1])
        else:
            operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
            try:
                values, vectors = eigsh(
                    operator,
                    k=wanted,
                    which="LA",
                    tol=EIGEN_TOLERANCE,
                    v0=random_state.uniform(-1.0, 1.0, size=n),
                )
            except ArpackNoConvergence as failure:
                values, vectors = failure.eigenvalues, failure.eigenvectors
    order = np.argsort(-values)
    scores = np.zeros((n, n_columns))
    scores[:, : len(order)] = signed(vectors[:, order]) * np.sqrt(np.maximum(values[order], 0.0))
    return scores


def signed(vectors: np.ndarray) -> np.ndarray:
    """Eigenvectors with their largest entries positive."""
    largest = np.abs(vectors).argmax(axis=0)
    return vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])


def turned(scores, direction) -> np.ndarray:
    """Rotate so that the last axis is ``direction``; the others are sorted, widest first."""
    size = np.linalg.norm(direction)
    if size == 0:
        return scores
    axis = direction / size
    frame, _ = np.linalg.qr(np.column_stack([axis, np.eye(len(axis))]))
    across = scores @ frame[:, 1:]
    turn = np.linalg.eigh(across.T @ across)[1][:, ::-1]
    return np.column_stack([across @ turn, scores @ axis])


def _turned_to(scores, level, omega_norm) -> np.ndarray:
    """Rotate so that the last axis best explains ``level``, and scale the height to both."""
    direction, *_ = np.linalg.lstsq(scores, level, rcond=None)
    scores = turned(scores, direction)
    height = scores[:, -1]
    power = float(height @ height)
    slope = float(height @ level) / power if power > 0 else 0.0
    scores[:, -1] *= (1.0 + omega_norm * slope) / (1.0 + omega_norm**2)
    return scores


def _spread(scores, random_state) -> np.ndarray:
    width = scores.std(axis=0)
    thin = width <= SPREAD * width.max(initial=0.0)
    if thin.any():
        noise = random_state.normal(size=(len(scores), int(thin.sum())))
        scores[:, thin] += SPREAD * max(width.max(), np.finfo(np.float32).tiny) * noise
    return scores


def _along_paths(S, known):
    filled = complete_paths(np.where(known, S, S.dtype.type(np.nan)))
    apart = np.isinf(filled)
    if apart.any():
        filled[apart] = filled[~apart].max()
    return filled


def _row_mean_squares(S, weights):
    means = np.empty(len(S))
    for i in range(len(S)):
        known = weights[i] > 0
        means[i] = np.mean(S[i, known].astype(np.float64) ** 2) if known.any() else 0.0
    return means


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _squares_product(start, stop, S, weights, filling, vector, out):
    weighted = weights.shape[0] > 0
    for i in range(start, stop):
        row, total = S[i], 0.0
        for j in range(row.shape[0]):
            value = np.float64(row[j])
            total += value * value * vector[j]
        if weighted:
            for j in range(row.shape[0]):
                if i != j and weights[i, j] == 0.0:
                    square = np.float64(row[j]) * np.float64(row[j])
                    total += (0.5 * (filling[i] + filling[j]) - square) * vector[j]
        out[i] = total
