"""Where a layout starts: umap-learn's initial positions on a directed graph, and pinned points.

The graph is symmetrised here, for the eigenvectors only.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, cg, eigsh, splu
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.neighbors import NearestNeighbors

from finsler_ext._threads import one_blas_thread

# umap-learn's figures: every column spans [0, 10], with a little noise to break ties.
EXTENT = 10.0
NOISE = 1e-4


def initial_positions(
    init, n_columns: int, graph, X, random_state, *, as_given: bool = False
) -> np.ndarray:
    """Positions of shape (n, n_columns), float32, every column spanning [0, 10].

    ``init`` is "spectral", "pca", "random" or an array, which ``as_given`` leaves in its own frame
    and unit; X is None where there are no features.
    """
    n = graph.shape[0]
    with one_blas_thread():
        if not isinstance(init, str):
            positions = _distinct(np.asarray(init, dtype=np.float64), random_state)
        elif init == "random":
            positions = random_state.uniform(-EXTENT, EXTENT, size=(n, n_columns))
        elif init == "pca":
            positions = _noisy(_principal(X, n_columns, random_state), random_state)
        else:
            positions = _noisy(spectral_map(graph, n_columns, random_state, X), random_state)
    if as_given and not isinstance(init, str):
        return positions.astype(np.float32)
    low, span = positions.min(axis=0), np.ptp(positions, axis=0)
    span = np.where(span > 0, span, 1.0)
    return (EXTENT * (positions - low) / span).astype(np.float32)


def _noisy(positions, random_state):
    largest = np.abs(positions).max()
    scaled = positions * (EXTENT / largest if largest > 0 else 1.0)
    return scaled + random_state.normal(scale=NOISE, size=positions.shape)


def _distinct(positions, random_state):
    """Given positions; where some coincide, all get a little noise, as in umap-learn."""
    if len(np.unique(positions, axis=0)) == len(positions):
        return positions
    spacing, _ = NearestNeighbors(n_neighbors=2).fit(positions).kneighbors()
    noise = 1e-3 * max(spacing[:, 0].mean(), NOISE)
    return positions + random_state.normal(scale=noise, size=positions.shape)


def _principal(X, n_columns, random_state):
    if X is None:
        raise ValueError(
            "init='pca' needs features, but metric='precomputed' has none. Use init='spectral', "
            "'random' or an array."
        )
    if n_columns > min(X.shape):
        raise ValueError(
            f"init='pca' cannot give {n_columns} columns from data of shape {X.shape}; use "
            "init='spectral' or 'random'."
        )
    with np.errstate(all="ignore"):  # shares of no variance at all, which nobody reads
        if scipy.sparse.issparse(X) and n_columns < X.shape[1] - 1:
            return TruncatedSVD(n_columns, random_state=random_state).fit_transform(X)
        dense = X.toarray() if scipy.sparse.issparse(X) else X  # a few columns only, if sparse
        return PCA(n_columns, random_state=random_state).fit_transform(dense)


def spectral_map(graph, n_columns: int, random_state, X=None) -> np.ndarray:
    """Eigenvectors of the normalised Laplacian of the symmetrised graph, without the constant.

    Components are laid out one by one around places of their own.
    """
    symmetric = scipy.sparse.csr_array((graph + graph.T) * 0.5, dtype=np.float64)
    n_parts, part = connected_components(symmetric, directed=False)
    if n_parts == 1:
        return _eigenvectors(symmetric, n_columns, random_state)
    places = _component_places(n_parts, part, n_columns, random_state, X)
    order = np.argsort(part, kind="stable")
    grouped = symmetric[order][:, order]
    bounds = np.searchsorted(part[order], np.arange(n_parts + 1))
    # two places at least
    gap, _ = NearestNeighbors(n_neighbors=1).fit(places).kneighbors()
    gap = np.maximum(gap[:, 0], NOISE)
    positions = np.empty((graph.shape[0], n_columns))
    for c in range(n_parts):
        rows = slice(bounds[c], bounds[c + 1])
        size = bounds[c + 1] - bounds[c]
        if size <= 2 * n_columns:
            local = random_state.uniform(-1.0, 1.0, size=(size, n_columns))
        else:
            local = _eigenvectors(grouped[rows, rows], n_columns, random_state)
            local /= np.abs(local).max()
        positions[order[rows]] = places[c] + 0.5 * gap[c] * local
    return positions


def _eigenvectors(symmetric, n_columns, random_state):
    n = symmetric.shape[0]
    if n <= n_columns + 1:
        return random_state.uniform(-1.0, 1.0, size=(n, n_columns))
    root = 1.0 / np.sqrt(np.asarray(symmetric.sum(axis=1)).ravel())
    scale = scipy.sparse.dia_array((root[None, :], [0]), shape=(n, n))
    operator = scipy.sparse.csr_array(scale @ symmetric @ scale)
    return _signed(leading_eigenvectors(operator, n_columns + 1, random_state)[:, 1:])


def _signed(vectors):
    """Fix the arbitrary sign of eigenvectors, so that the start does not depend on it."""
    largest = np.abs(vectors).argmax(axis=0)
    return vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])


def _component_places(n_parts, part, n_columns, random_state, X):
    if n_parts <= 2 * n_columns:
        axes = np.eye(n_columns)
        return np.vstack([axes, -axes])[:n_parts]
    if X is None or min(n_parts, X.shape[1]) < n_columns:
        return random_state.uniform(-1.0, 1.0, size=(n_parts, n_columns))
    member = scipy.sparse.coo_array((np.ones(part.size), (part, np.arange(part.size)))).tocsr()
    centroids = member @ X / np.bincount(part)[:, None]
    if scipy.sparse.issparse(centroids):
        centroids = centroids.toarray()
    if np.allclose(centroids, centroids[0]):
        return random_state.uniform(-1.0, 1.0, size=(n_parts, n_columns))
    places = PCA(n_columns, random_state=random_state).fit_transform(centroids)
    largest = np.abs(places).max()
    places = places / (largest if largest > 0 else 1.0)
    return places + random_state.normal(scale=NOISE, size=places.shape)


# Leading eigenvectors of a normalised graph: those that vary least along its edges.
#
# The operator is D^{-1/2} W D^{-1/2}, its eigenvalues μ ≤ 1; those of the normalised Laplacian are
# 1 − μ, so the slowest eigenvectors have the largest μ.

# Below this size a dense eigensolver is faster and never fails.
DENSE_SIZE = 256
# Subspace of the iterative eigensolver.
KRYLOV_VECTORS = 40
# A start needs no more than a loose tolerance, unless it is coarse beside what it has to resolve:
# with a residual above this share of 1 − μ the vectors are computed again, to a fifth of it.
LOOSE_TOLERANCE = 1e-4
RESOLVED = 0.05
REFINEMENTS = 3
# The finest tolerance, for graphs that hang together by a thread.
FINEST_TOLERANCE = 1e-10
# Restarts of a further attempt, at most: what has not converged by then takes longer than a fit.
RESTARTS = 200
# Another eigenvector counts as missed if its 1 − μ is smaller than the last one's by this share.
MISSED = 0.01
# On chains and trees the Lanczos method stalls. They are factorised instead, as long as few edges
# close a cycle: at most this many, and at most one for so many nodes.
MOST_CYCLES, NODES_PER_CYCLE = 300, 20
SPARE_VECTORS, BLOCK_STEPS = 8, 30
# Residual at which it ends, as a share of 1 − μ; a step costs little.
SETTLED = 1e-4
# Makes 1 − μ = 0 solvable; far below the smallest 1 − μ of a path of a million nodes.
SHIFT = 1e-13
# Start of the search for missed ones: from the first search's own, the same would be missed.
SEARCH_SEED = 271_828


def leading_eigenvectors(operator, n_vectors: int, random_state) -> np.ndarray:
    """Eigenvectors of the ``n_vectors`` largest eigenvalues, largest first, as columns.

    ``operator`` is symmetric, normalised, of a connected graph of more than ``n_vectors`` nodes.
    """
    n = operator.shape[0]
    if n <= DENSE_SIZE:
        dense = operator.toarray()
        _, vectors = scipy.linalg.eigh(dense, subset_by_index=[n - n_vectors, n - 1])
        if vectors.shape[1] < n_vectors:  # LAPACK lost some of a multiple eigenvalue
            vectors = np.linalg.eigh(dense)[1][:, n - n_vectors :]
        return vectors[:, ::-1]
    n_edges = (operator.nnz - np.count_nonzero(operator.diagonal())) // 2
    if n_edges - (n - 1) <= min(MOST_CYCLES, n // NODES_PER_CYCLE):  # nearly a tree
        return _inverse_iteration(operator, n_vectors, random_state)
    values, vectors = _lanczos(operator, n_vectors, random_state, LOOSE_TOLERANCE, 5 * n)
    if len(values) < n_vectors:
        filler = random_state.normal(scale=n**-0.5, size=(n, n_vectors - len(values)))
        return np.hstack([vectors, filler])
    for _ in range(REFINEMENTS):
        if _resolved(operator, values, vectors):
            break
        finer = _lanczos(operator, n_vectors, random_state, _fine(values[1]), RESTARTS)
        if len(finer[0]) < n_vectors:
            break
        values, vectors = finer
    return _with_missed_ones(operator, values, vectors)


def _inverse_iteration(operator, n_vectors: int, random_state) -> np.ndarray:
    """The slowest vectors by solves with 1 − operator, in a block: multiple ones are found too."""
    n = operator.shape[0]
    laplacian = scipy.sparse.csc_array(scipy.sparse.eye_array(n) * (1.0 + SHIFT) - operator)
    factors = splu(
        laplacian,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    vectors = random_state.uniform(-1.0, 1.0, size=(n, n_vectors + SPARE_VECTORS))
    for _ in range(BLOCK_STEPS):
        basis, _ = np.linalg.qr(factors.solve(vectors))
        values, turn = np.linalg.eigh(basis.T @ (laplacian @ basis))
        vectors = basis @ turn
        if _resolved(operator, 1.0 + SHIFT - values[:n_vectors], vectors[:, :n_vectors], SETTLED):
            break
    return vectors[:, :n_vectors]


def _resolved(operator, values, vectors, share: float = RESOLVED) -> bool:
    residuals = np.linalg.norm(operator @ vectors - vectors * values, axis=0)
    return bool((residuals[1:] <= share * (1.0 - values[1:])).all())


def _fine(value: float) -> float:
    """A tolerance that resolves an eigenvalue."""
    return max(RESOLVED / 5 * (1.0 - value), FINEST_TOLERANCE)


def _lanczos(operator, n_vectors: int, random_state, tolerance: float, restarts: int):
    """Eigenvalues and vectors that converged, largest first."""
    n = operator.shape[0]
    try:
        values, vectors = eigsh(
            operator,
            k=n_vectors,
            which="LA",
            ncv=min(n - 1, max(2 * n_vectors + 1, KRYLOV_VECTORS)),
            tol=tolerance,
            v0=random_state.uniform(-1.0, 1.0, size=n),
            maxiter=restarts,
        )
    except ArpackNoConvergence as failure:
        values, vectors = failure.eigenvalues, failure.eigenvectors
    order = np.argsort(-values)
    return values[order], vectors[:, order]


def _with_missed_ones(operator, values, vectors):
    """Exchange the last vectors for slower ones that are orthogonal to all of them.

    From one start vector the Lanczos method finds the second vector of a double eigenvalue, as
    symmetric data have, by rounding errors only, and may stop before it does, with a vector of a
    smaller eigenvalue in its place.
    """
    for _ in range(len(values)):

        def deflated(x, found=vectors, weights=values):
            return operator @ x - found @ (weights * (found.T @ x))

        rest = LinearOperator(operator.shape, matvec=deflated, dtype=np.float64)
        # a generator of its own: where nothing was missed, what is drawn later stays the same
        start = np.random.RandomState(SEARCH_SEED)
        other, vector = _lanczos(rest, 1, start, _fine(values[-1]), RESTARTS)
        if not len(other) or 1.0 - other[0] > (1.0 - MISSED) * (1.0 - values[-1]):
            break
        basis, _ = np.linalg.qr(np.hstack([vectors, vector]))
        all_values, turn = np.linalg.eigh(basis.T @ (operator @ basis))
        values, vectors = all_values[:0:-1], basis @ turn[:, :0:-1]
    return vectors


# Pinned points: entries of a layout that are given and never move.
#
# Pins are an array with one row per point, nan where the layout is free. A layout with pins is
# never rotated, and centred only in columns without a pin. Where it starts, and wherever a height
# is computed rather than descended to, the others follow the pins: the difference δ between what is
# given and what was found is continued along the graph, by
#
#     Σ_j (p_ij + p_ji) (δ_i − δ_j) = 0   at every free point i,
#
# so that neighbours of a pin come along, and parts without any pin stay.

# Of the continuation: it is a start, or smooths the surroundings of a pin.
PIN_TOLERANCE, PIN_ITERATIONS = 1e-4, 1000


def read_pins(pinned, n: int, n_components: int, names=None) -> np.ndarray | None:
    """Pins of shape (n, n_components) as float64, nan where free; None if there are none.

    ``pinned`` is an array or DataFrame of n_components − 1 (the map) or n_components columns, with
    one row per point; or, of a DataFrame whose index has ``names`` of points, rows for some.
    """
    if pinned is None:
        return None
    if names is not None and hasattr(pinned, "reindex"):
        known = pinned.index.isin(names)
        if known.any():
            if not known.all():
                unknown = pinned.index[~known][0]
                raise ValueError(f"pinned: there is no point named {unknown!r}.")
            pinned = pinned.reindex(list(names))
    try:
        places = np.array(pinned, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"pinned must hold numbers, and nan for what is free: {error}") from None
    m = n_components
    if places.ndim != 2 or places.shape[0] != n or places.shape[1] not in (m - 1, m):
        raise ValueError(
            f"pinned must have one row per point ({n}) and {m - 1} columns (the map) or {m} (map "
            f"and height), nan for what is free; got shape {places.shape}."
        )
    if np.isinf(places).any():
        raise ValueError("pinned contains infinity; use nan for what is free.")
    if places.shape[1] < m:
        places = np.column_stack([places, np.full(n, np.nan)])
    return places if np.isfinite(places).any() else None


def keep_pins(position: np.ndarray, pins: np.ndarray | None) -> np.ndarray:
    """The position with what is pinned in its place; of pins for more columns, the first."""
    if pins is None:
        return position
    pins = pins[:, : position.shape[1]]
    return np.where(np.isnan(pins), position, pins.astype(position.dtype))


@one_blas_thread()
def follow_pins(values: np.ndarray, pins: np.ndarray, graph) -> np.ndarray:
    """Values of shape (n,) or (n, columns), equal to the pins and moved with them elsewhere."""
    flat = values.ndim == 1
    values, pins = (
        np.asarray(a, dtype=np.float64).reshape(len(values), -1) for a in (values, pins)
    )
    springs = scipy.sparse.csr_array(graph, dtype=np.float64)
    springs = springs + springs.T
    degree = np.asarray(springs.sum(axis=1)).ravel()
    moved = values.copy()
    for c in range(values.shape[1]):
        fixed = np.isfinite(pins[:, c])
        if not fixed.any():
            continue
        change = np.where(fixed, pins[:, c] - values[:, c], 0.0)
        free = np.flatnonzero(~fixed & (degree > 0))
        laplacian = scipy.sparse.diags_array(degree[free]) - springs[free][:, free]
        found, _ = cg(
            laplacian,
            (springs @ change)[free],
            M=scipy.sparse.diags_array(1.0 / degree[free]),
            rtol=PIN_TOLERANCE,
            maxiter=PIN_ITERATIONS,
        )
        change[free] = found
        moved[:, c] = np.where(fixed, pins[:, c], values[:, c] + change)
    return moved[:, 0] if flat else moved


@one_blas_thread()
def on_pins(start: np.ndarray, pins: np.ndarray | None, graph) -> np.ndarray:
    """A start whose frame means nothing, moved onto the pins.

    It is shifted, rotated or mirrored, and scaled to the spread of the pins, so that pinned rows
    come to lie near their places; then the rest follows the pins.
    """
    if pins is None:
        return start
    pins = pins[:, : start.shape[1]]
    moved = np.array(start, dtype=np.float64)
    columns = np.flatnonzero(np.isfinite(pins).any(axis=0))
    whole = np.isfinite(pins[:, columns]).all(axis=1)
    if columns.size and whole.any():
        here, there = moved[whole][:, columns], pins[whole][:, columns]
        centre, goal = here.mean(axis=0), there.mean(axis=0)
        here, there = here - centre, there - goal
        size, spread = np.linalg.norm(here), np.linalg.norm(there)
        if size > 0 and spread > 0:
            left, _, right = np.linalg.svd(here.T @ there)
            moved *= spread / size
            moved[:, columns] = (moved[:, columns] - centre * spread / size) @ (left @ right) + goal
        else:
            moved[:, columns] += goal - centre
    return follow_pins(moved, pins, graph).astype(start.dtype)
