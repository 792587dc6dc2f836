"""transform and update: new rows for a fitted FinslerUMAP model."""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.sparse
from numba import njit
from scipy.spatial import KDTree
from sklearn.utils import check_array, check_random_state

from finsler_ext._messages import warn
from finsler_ext._threads import run_rows
from finsler_ext.directed.digraph import WAY_BACK, compares_lengths, new_edges, new_scales
from finsler_ext.directed.read import check_row_names
from finsler_ext.geometry import find_space
from finsler_ext.height.acts import FREE, NESTED, height_share
from finsler_ext.height.start import read_pins
from finsler_ext.neighbors.geodesics import extended_new_neighbors
from finsler_ext.neighbors.nndescent import as_index
from finsler_ext.neighbors.search import precomputed_new_neighbors, training_rows
from finsler_ext.scales import checked_new_scale, relative_scale, umap_scales
from finsler_ext.umap.graph import exact_index, new_memberships
from finsler_ext.umap.kernels import N_STEPS, LossShape, force_table, look_up, mix
from finsler_ext.umap.layout import loss_shape
from finsler_ext.umap.parameters import Rows, checked_data
from finsler_ext.validation import UNITLESS, refuse_one_way

# umap-learn's figures. It counts the new points; here the training points are counted, so
# that a row alone gets as many epochs as the row among others.
FEW_ROWS, EPOCHS_FEW, EPOCHS_MANY = 10_000, 100, 30
# New points move more carefully than points that are all in motion; umap-learn's figure.
RATE_SHARE = 0.25


def transform_rows(model, X, ensure_all_finite=True, *, local_scale=None, incoming=None):
    """Embedding (or memberships, for ``transform_mode="graph"``) of the rows of X.

    Rows equal to a training row return what that row was given in fit.
    """
    check_own_data(model, "transform")
    check_row_names(X, incoming)
    X = checked_data(model, X, ensure_all_finite, reset=False)
    if incoming is not None:
        incoming = _checked_incoming(model, X, incoming)
    if local_scale is not None:
        local_scale = _new_scale(model, local_scale, X.shape[0])
    distinct = model._unique_rows_ if model.unique else slice(None)
    training = model._raw_data[distinct]
    known = training_rows(X, training)
    if incoming is not None:  # the same point in both directions
        back = scipy.sparse.csr_matrix(training.T) if scipy.sparse.issparse(X) else training.T
        known[training_rows(incoming, back) != known] = -1
    new = np.flatnonzero(known < 0)
    if new.size:
        given = model._given_scale is not None
        scale = _new_scale(model, local_scale, X.shape[0])[new] if given else None
        into_new = None if incoming is None else incoming[new]
        found, out, into = _edges(model, X[new], training, scale, into_new)
    if model.transform_mode == "graph":
        return _new_graph(model, known, found.indices, out) if new.size else model.graph_[known]
    fixed = model.embedding_[distinct]
    embedding = np.empty((X.shape[0], model.n_components), dtype=np.float32)
    embedding[known >= 0] = fixed[known[known >= 0]]
    if new.size:
        embedding[new] = place_points(
            fixed,
            found.indices,
            out,
            into,
            loss_shape(model),
            omega_norm=model.omega_norm_,
            n_epochs=_epochs(model),
            seed=int(check_random_state(model.transform_seed).randint(np.iinfo(np.int32).max)),
            learning_rate=model.learning_rate * RATE_SHARE,
            n_threads=model._n_threads,
            height=_new_heights(model, fixed, found, out, into, scale),
            height_share=height_share(model.height_, model.omega_norm_),
        )
        lost = np.isnan(embedding[new]).any(axis=1)
        if lost.any():
            warn(
                f"{lost.sum()} new rows have no neighbours with a place, the first is row "
                f"{new[lost.argmax()]}; their places are nan."
            )
    return embedding


def _new_heights(model, fixed, found, out, into, given_scale) -> np.ndarray | None:
    """Heights by the law of the fit, h = β φ + constant, with φ of the extended data.

    None where there is no law: they start from the mean of the neighbours then.
    """
    slope = model.islands_.slope
    if model.height_ in (FREE, NESTED) or not np.isfinite(slope):
        return None
    other, weight = np.where(found.indices < 0, 0, found.indices), out + into
    rows = model._unique_rows_ if model.unique else slice(None)
    height, potential = fixed[other, -1], model.potential_[rows][other]
    weight = np.where(np.isfinite(height) & np.isfinite(potential), weight, 0.0)
    total = _row_sums(weight)
    with np.errstate(all="ignore"):
        if not model.asymmetry_.is_directed:  # the log local scale
            known = found.indices >= 0
            scale = _row_sums(np.where(known, found.outgoing, 0.0)) / known.sum(axis=1)
            if model.metric not in UNITLESS:
                scale = np.ldexp(scale, model._as_fitted.exponent)
            scale = scale if given_scale is None else given_scale
            rise = np.log(scale)[:, None] - potential
        elif model._digraph is not None and compares_lengths(model._digraph):
            there, back = found.outgoing, found.incoming
            there, back = (
                np.where(np.isfinite(way), way, WAY_BACK * other)
                for way, other in ((there, back), (back, there))
            )
            rise = np.asarray(back - there, dtype=np.float64)
        elif model._digraph is not None or model._asymmetric_metric:
            rise = ((_row_sums(out) - _row_sums(into)) / total)[:, None]
        else:
            rise = np.asarray(found.incoming - found.outgoing, dtype=np.float64)
        rise = np.where(weight > 0, np.nan_to_num(slope * rise, posinf=0.0, neginf=0.0), 0.0)
        return _row_sums(weight * (np.where(weight > 0, height, 0.0) + rise)) / total


def _row_sums(values) -> np.ndarray:
    """Sums from left to right: missing neighbours behind the others do not change a bit."""
    return np.cumsum(values, axis=1, dtype=np.float64)[:, -1]


def check_own_data(model, method: str) -> None:
    """Combined models have no data, and the map plane of a model has lost the height."""
    if model._raw_data is None:
        raise ValueError(
            f"{method}: a model made by +, * or - has no data of its own. Use the models it was "
            "made from."
        )
    if model.transform_mode == "embedding" and model.embedding_.shape[1] != model.n_components:
        raise ValueError(f"{method}: the map plane has no height. Use the model it was taken from.")


def _epochs(model) -> int:
    if model._n_epochs_list:
        return max(model._n_epochs_list) // 3
    if model.n_epochs is not None:
        return int(model.n_epochs) // 3
    return EPOCHS_FEW if model.graph_.shape[0] <= FEW_ROWS else EPOCHS_MANY


def add_rows(model, X, ensure_all_finite=True, local_scale=None, pinned=None) -> None:
    """Append rows to the data of a model and embed everything from the present map."""
    check_own_data(model, "update")
    if model.metric == "precomputed":
        raise ValueError(
            "update is not available for metric='precomputed': the distances between old and "
            "new points are missing. Fit the whole matrix."
        )
    if model._supervised:
        raise ValueError("update is not available for supervised models. Fit all rows with y.")
    init = "spectral"
    if model.transform_mode == "embedding":
        placed = transform_rows(model, X, ensure_all_finite, local_scale=local_scale)
        random_state = check_random_state(model.transform_seed)
        init = _present_map(model, np.vstack([model.embedding_, placed]), random_state)
    X = checked_data(model, X, ensure_all_finite, reset=False)
    if model._given_scale is not None:
        added = _new_scale(model, local_scale, X.shape[0])
        model._given_scale = np.concatenate([model._given_scale, added])
    rows = [model._raw_data, X]
    sparse = scipy.sparse.issparse(X)
    model._raw_data = scipy.sparse.vstack(rows, format="csr") if sparse else np.vstack(rows)
    model._given_knn = (None, None, None)  # it was for the old rows
    model.pinned_ = pins = _pins(model, X.shape[0], pinned)
    model._run(Rows(model._raw_data, init, check_random_state(model.transform_seed), pins=pins))


def _pins(model, n_new: int, pinned) -> np.ndarray | None:
    """Pins of old and new rows: as given, all old points, or those that are pinned already."""
    if model.transform_mode != "embedding":  # a graph has no places
        return None
    new = np.full((n_new, model.n_components), np.nan)
    if isinstance(pinned, str):
        if pinned != "old":
            raise ValueError(f"pinned must be 'old' or an array, got {pinned!r}.")
        pinned = np.vstack([model.embedding_, new])
    elif pinned is None:
        pinned = getattr(model, "pinned_", None)
        pinned = None if pinned is None else np.vstack([pinned, new])
    if pinned is not None and model.unique:
        raise ValueError("pinned cannot be combined with unique=True.")
    return read_pins(pinned, len(model.embedding_) + n_new, model.n_components)


def _present_map(model, positions, random_state):
    """Map columns to start from if the height was held; otherwise all, in the frame they have."""
    start = positions if model.height_ == FREE else positions[:, :-1]
    lost = ~np.isfinite(start).all(axis=1)
    spread = np.nanstd(start, axis=0) if not lost.all() else np.ones(start.shape[1])
    start[lost] = random_state.normal(size=(lost.sum(), start.shape[1])) * spread
    return start


def _new_graph(model, known, indices, weight) -> scipy.sparse.csr_matrix:
    """Memberships of ``known`` rows as they are, and of the others by indices and weights."""
    n_known, n = model.graph_.shape
    row, place = np.nonzero(weight > 0)
    edges = weight[row, place], (row, indices[row, place])
    new = scipy.sparse.csr_matrix(edges, shape=(len(weight), n))
    row = np.where(known < 0, n_known - 1 + np.cumsum(known < 0), known)
    return scipy.sparse.vstack([model.graph_, new], format="csr")[row]


def _edges(model, rows, training, given_scale, incoming):
    """Neighbours of the new rows, and memberships to and from them."""
    if training.shape[0] < 2:
        raise ValueError("transform needs a model that was fitted to more than one point.")
    found = _find(model, rows, training, incoming)
    cut = found.outgoing >= model._disconnection_distance
    digraph = model._digraph is not None
    if digraph:  # where there is an edge from a training point only, none is to be cut
        cut &= np.isfinite(found.outgoing)
    found.indices[cut], found.outgoing[cut], found.incoming[cut] = -1, np.inf, np.inf
    target_k = model._n_neighbors
    if model._geodesic is not None:
        target_k = model._geodesic.indices.shape[1]
        found = extended_new_neighbors(
            found, model._geodesic.indices, model._geodesic.distances, target_k - 1
        )
    if digraph:
        scales = new_scales(
            found,
            strengths=model._digraph.strength is not None,
            local_connectivity=model.local_connectivity,
            n_threads=model._n_threads,
        )
    else:
        own = np.zeros((len(found.outgoing), 1))  # as in fit, a point is its own first neighbour
        scales = umap_scales(
            np.hstack([own, found.outgoing]),
            local_connectivity=model.local_connectivity,
            n_neighbors=target_k,
            overall=model._mean_distance,
            n_threads=model._n_threads,
        )
    if given_scale is not None:
        sigma = relative_scale(given_scale, model._density_sigmas, among=model._given_scale)
        scales = (sigma, scales[1])
    out, into = new_memberships(found, scales, (model._sigmas, model._rhos), model.affinity)
    return found, out, into


def _find(model, rows, training, incoming):
    k = min(model._n_neighbors - 1, training.shape[0])
    if model.metric == "precomputed":
        if incoming is None and model._directed_distances:
            refuse_one_way()
        incoming = rows if incoming is None else incoming
        if model._digraph is not None:
            return new_edges(rows, incoming)
        return precomputed_new_neighbors(rows, incoming, k)
    if model._knn_search_index is not None:
        return as_index(model._knn_search_index).query(rows, k)
    symmetric = not model._asymmetric_metric
    return exact_index(model, training, symmetric=symmetric).over(training).query(rows, k)


def _checked_incoming(model, X, incoming):
    if model.metric != "precomputed":
        raise ValueError("incoming is for metric='precomputed'; other metrics give it themselves.")
    incoming = checked_data(model, incoming, True, reset=False)
    if incoming.shape != X.shape:
        raise ValueError(
            f"incoming must have the shape of X, {X.shape}, got shape {incoming.shape}."
        )
    return incoming


def _new_scale(model, local_scale, n_rows):
    return checked_new_scale(local_scale, n_rows, fitted=model._given_scale is not None)


# Places for new points among fixed ones: the Finsler UMAP loss of one point at a time.
#
# A new point x with memberships p_xj to and p_jx from its training neighbours goes down
#
#     L(y) = − Σ_j p_xj ln q(F(y, y_j)) − Σ_j p_jx ln q(F(y_j, y)) − repulsion,
#
# where the repulsion is estimated by random training points in both directions. Attraction is not
# sampled: a place should depend on as little chance as possible. Every row draws from a random
# stream that follows from its memberships, so its place does not depend on its companions.

# Longest step, in units of the embedding, that a new point may take at once.
LONGEST_STEP = 1.0


def place_points(
    fixed: np.ndarray,
    indices: np.ndarray,
    out_weight: np.ndarray,
    in_weight: np.ndarray,
    shape: LossShape,
    *,
    omega_norm: float,
    n_epochs: int,
    seed: int,
    learning_rate: float = 0.25,
    n_threads: int = 1,
    height: np.ndarray | None = None,
    height_share: float = 1.0,
) -> np.ndarray:
    """Positions of new points, from the mean of their neighbours down their own loss.

    ``indices`` of shape (n_new, k) are training neighbours, with memberships to and from them;
    points whose ``fixed`` positions are nan take no part, and new ones without any neighbour are
    nan. Heights start from ``height`` where it is not nan, take ``height_share`` of the steps of
    the map, and stay within the range of the training points.
    """
    fixed = np.ascontiguousarray(fixed, dtype=np.float32)
    lost = (indices < 0) | ~np.isfinite(fixed).all(axis=1)[indices]
    out_weight = np.where(lost, np.float32(0.0), out_weight).astype(np.float32)
    in_weight = np.where(lost, np.float32(0.0), in_weight).astype(np.float32)
    placed = np.empty((indices.shape[0], fixed.shape[1]), dtype=np.float32)
    known = fixed[np.isfinite(fixed).all(axis=1), -1]
    lowest, highest = (known.min(), known.max()) if known.size else (0.0, 0.0)
    height = np.full(len(placed), np.nan) if height is None else np.asarray(height, dtype=float)
    run_rows(
        place_kernel(shape.space.forward), indices.shape[0], n_threads, placed, fixed,
        np.where(lost, 0, indices).astype(np.int64), out_weight, in_weight,
        force_table(shape.a, shape.b, shape.repulsion_strength), np.float32(omega_norm), n_epochs,
        float(learning_rate), float(shape.negative_sample_rate), np.uint64(seed),
        np.clip(height, lowest, highest), float(height_share), float(lowest), float(highest),
    )  # fmt: skip
    return placed


@cache
def place_kernel(forward):
    """The descent of new points in one space; rows of ``placed`` are written."""

    @njit(nogil=True, cache=True)
    def place(
        start, stop, placed, fixed, indices, out_weight, in_weight, table, omega, n_epochs,
        learning_rate, negatives, seed, height, height_share, lowest, highest,
    ):  # fmt: skip
        n, m = fixed.shape
        last = m - 1
        offset = np.zeros(m, dtype=np.float32)
        force = np.zeros(m)
        y = np.zeros(m)
        n_steps = n_epochs * N_STEPS
        for row in range(start, stop):
            total, total_out = 0.0, 0.0
            y[:] = 0.0
            state = mix(seed)
            for e in range(indices.shape[1]):
                weight = np.float64(out_weight[row, e]) + np.float64(in_weight[row, e])
                if weight > 0.0:
                    total += weight
                    total_out += out_weight[row, e]
                    key = np.uint64(indices[row, e]) << np.uint64(32)
                    state = mix(state ^ key ^ np.uint64(np.float32(weight).view(np.uint32)))
                    for c in range(m):
                        y[c] += weight * fixed[indices[row, e], c]
            if total == 0.0:
                placed[row] = np.nan
                continue
            for c in range(m):
                y[c] /= total
            if not np.isnan(height[row]):
                y[last] = height[row]

            for step in range(n_steps):
                rate = learning_rate * (1.0 - step / n_steps) / N_STEPS
                force[:] = 0.0
                for e in range(indices.shape[1]):
                    if out_weight[row, e] > 0.0 or in_weight[row, e] > 0.0:
                        length = _look_from(y, fixed, indices[row, e], offset)
                        if length > 0.0:
                            rise = offset[last]
                            out, along_out, up_out = forward(length, -rise, omega)
                            into, along_in, up_in = forward(length, rise, omega)
                            pull_out = look_up(table, 0, out) * out_weight[row, e]
                            pull_in = look_up(table, 0, into) * in_weight[row, e]
                            along = (pull_out * along_out + pull_in * along_in) / length
                            for c in range(m):
                                force[c] -= along * offset[c]
                            force[last] += (pull_out * up_out - pull_in * up_in) * omega
                chance = np.float64(state >> np.uint64(40)) / 16777216.0
                for _ in range(int(total_out * negatives / N_STEPS + chance)):
                    state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                    k = np.int64(((state >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
                    length = _look_from(y, fixed, k, offset)
                    if length > 0.0:
                        rise = offset[last]
                        out, along_out, up_out = forward(length, -rise, omega)
                        into, along_in, up_in = forward(length, rise, omega)
                        push_out = look_up(table, 2, out) * 0.5
                        push_in = look_up(table, 2, into) * 0.5
                        along = (push_out * along_out + push_in * along_in) / length
                        for c in range(m):
                            force[c] += along * offset[c] * N_STEPS
                        force[last] += (push_in * up_in - push_out * up_out) * omega * N_STEPS
                state = mix(state)
                force[last] *= height_share
                size = 0.0
                for c in range(m):
                    size += force[c] * force[c]
                size = rate * np.sqrt(size)
                shorten = rate * min(1.0, LONGEST_STEP / size) if size > 0.0 else 0.0
                for c in range(m):
                    y[c] += shorten * force[c]
                y[last] = min(max(y[last], lowest), highest)
            for c in range(m):
                placed[row, c] = y[c]

    return place


@njit(inline="always", cache=True)
def _look_from(y, fixed, j, offset):
    """Offset and distance from a training point; 0 for points that coincide or have no place."""
    square = np.float32(0.0)
    for c in range(offset.shape[0]):
        offset[c] = np.float32(y[c]) - fixed[j, c]
        square += offset[c] * offset[c]
    return np.sqrt(square) if square > 0.0 else np.float32(0.0)


# inverse_transform: data that would have been embedded near given places, approximately.


def inverse_rows(model, Y):
    """The mean of the data of the nearest training points of each place y, weighted by

        q_j = 1/(1 + a F(y_j, y)^{2b}),

    the membership of y in the neighbourhood of y_j. umap-learn goes on from there down a
    cross entropy in data space; here that made neither the data nor its way back to the
    embedding more accurate (benchmarks/results/umap.md), so it is left out.
    """
    check_own_data(model, "inverse_transform")
    if model.transform_mode == "graph":
        raise ValueError("inverse_transform needs an embedding: use transform_mode='embedding'.")
    if model.metric in ("precomputed", "bit_hamming", "bit_jaccard"):
        raise ValueError(
            f"inverse_transform is not available for metric={model.metric!r}: rows of its data "
            "have no mean. Fit rows of numbers with a metric such as 'euclidean'."
        )
    Y = check_array(Y, dtype=np.float32, order="C")
    if Y.shape[1] != model.n_components:
        raise ValueError(
            f"inverse_transform: the places have {Y.shape[1]} columns, the embedding has "
            f"{model.n_components} (map and height)."
        )
    number = np.flatnonzero(np.isfinite(model.embedding_).all(axis=1))
    if number.size == 0:
        raise ValueError("inverse_transform: no training point has a place in the embedding.")
    positions = model.embedding_[number]
    k = min(getattr(model, "_n_neighbors", 1), number.size)
    near = KDTree(positions).query(Y, k=k)[1].reshape(len(Y), k)
    F = find_space(model.space).distance(positions[near], Y[:, None, :], model.omega_norm_)
    weight = 1.0 / (1.0 + model._a * F ** (2.0 * model._b))
    weight /= weight.sum(axis=1, keepdims=True)
    row = np.repeat(np.arange(len(Y)), k)
    mean = scipy.sparse.csr_matrix(
        (weight.ravel(), (row, number[near].ravel())), shape=(len(Y), len(model.embedding_))
    )
    rows = mean @ model._raw_data
    if not model._as_fitted.plain:
        return model._as_fitted.undo(rows)  # float32 may not hold it
    return rows.astype(np.float32)
