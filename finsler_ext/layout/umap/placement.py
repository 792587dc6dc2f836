"""Places for new points among fixed ones: the Finsler UMAP loss of one point at a time.

A new point x with memberships p_xj to and p_jx from its training neighbours goes down

    L(y) = − Σ_j p_xj ln q(F(y, y_j)) − Σ_j p_jx ln q(F(y_j, y)) − repulsion,

where the repulsion is estimated by random training points in both directions, as in
`finsler_ext.layout.umap.sgd`. Attraction is not sampled: there are few edges, and a place
should depend on as little chance as possible. Every row draws from a random stream of its own
that follows from its memberships, so its place does not depend on its companions.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit

from finsler_ext._threads import run_rows
from finsler_ext.layout.umap.forces import LossShape, force_table, look_up
from finsler_ext.layout.umap.sgd import N_STEPS, mix

__all__ = ["place_points"]

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
) -> np.ndarray:
    """Positions of new points, from the mean of their neighbours down their own loss.

    Parameters
    ----------
    fixed : array of shape (n, m)
        Positions of the training points; rows with nan take no part.
    indices, out_weight, in_weight : arrays of shape (n_new, k)
        Training neighbours, and memberships to and from them.

    Returns
    -------
    array of shape (n_new, m), float32; nan for rows without any neighbour
    """
    fixed = np.ascontiguousarray(fixed, dtype=np.float32)
    lost = (indices < 0) | ~np.isfinite(fixed).all(axis=1)[indices]
    out_weight = np.where(lost, np.float32(0.0), out_weight).astype(np.float32)
    in_weight = np.where(lost, np.float32(0.0), in_weight).astype(np.float32)
    placed = np.empty((indices.shape[0], fixed.shape[1]), dtype=np.float32)
    run_rows(
        place_kernel(shape.space.forward),
        indices.shape[0],
        n_threads,
        placed,
        fixed,
        np.where(lost, 0, indices).astype(np.int64),
        out_weight,
        in_weight,
        force_table(shape.a, shape.b, shape.repulsion_strength),
        np.float32(omega_norm),
        n_epochs,
        float(learning_rate),
        float(shape.negative_sample_rate),
        np.uint64(seed),
    )
    return placed


@cache
def place_kernel(forward):
    """The descent of new points in one space; rows of ``placed`` are written."""

    @njit(nogil=True, cache=True)
    def place(
        start,
        stop,
        placed,
        fixed,
        indices,
        out_weight,
        in_weight,
        table,
        omega,
        n_epochs,
        learning_rate,
        negatives,
        seed,
    ):
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
                size = 0.0
                for c in range(m):
                    size += force[c] * force[c]
                size = rate * np.sqrt(size)
                shorten = rate * min(1.0, LONGEST_STEP / size) if size > 0.0 else 0.0
                for c in range(m):
                    y[c] += shorten * force[c]
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
