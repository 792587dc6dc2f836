"""New points and their neighbours among the training points, in both directions.

A new point has edges to its nearest training points, by its own scale, and edges from them,
by the scales they were fitted with: with edges of one direction only, new points would slide
along the drift. What is found for a row depends on nothing but that row and the training
points, bit for bit, however many other rows are asked for at the same time.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import scipy.sparse
from numba import njit

from finsler_ext._threads import row_blocks
from finsler_ext.neighbors.search import NewNeighbors

# 2⁶⁴ divided by the golden ratio: multiples of it are spread evenly (Knuth).
ODD = np.uint64(0x9E3779B97F4A7C15)


def checked_new_scale(local_scale, n_rows: int, *, fitted: bool) -> np.ndarray:
    """The scale of new points, which they need if the model was ``fitted`` with one."""
    if not fitted:
        raise ValueError("local_scale: the model was fitted without one.")
    if local_scale is None:
        raise ValueError(
            "local_scale: the model was fitted with a scale per point, and new points need one, "
            "too. Pass transform(X, local_scale=s) with one positive entry per row of X."
        )
    local_scale = np.asarray(local_scale, dtype=np.float64)
    if local_scale.shape != (n_rows,):
        raise ValueError(
            f"local_scale must have one entry per row of X, shape ({n_rows},); got shape "
            f"{local_scale.shape}."
        )
    if not np.all(np.isfinite(local_scale)) or np.any(local_scale <= 0):
        raise ValueError("local_scale must be positive and finite for every point.")
    return local_scale


def refuse_one_way() -> NoReturn:
    """Of a model of directed distances."""
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


def extended_new_neighbors(
    found: NewNeighbors, indices: np.ndarray, lengths: np.ndarray, k: int
) -> NewNeighbors:
    """The ``k`` nearest along directed paths: one edge, then a geodesic of a training point.

    ``indices`` and ``lengths`` are the geodesic neighbours of the training points, themselves
    first. The way back leads along a geodesic and then an edge, and is missing where no
    geodesic that was kept leads to one of the new point's neighbours.
    """
    n_new = found.indices.shape[0]
    out = NewNeighbors(
        np.full((n_new, k), -1, dtype=np.int64),
        np.full((n_new, k), np.inf),
        np.full((n_new, k), np.inf),
    )
    lengths = np.asarray(lengths, dtype=np.float64)
    _extend(*found, indices, lengths, np.full(len(indices), np.inf), *out)
    return out


@njit(cache=True)
def _extend(near, outgoing, incoming, indices, lengths, shortest, to, there, back):
    k = to.shape[1]
    touched = np.empty(near.shape[1] * indices.shape[1], dtype=np.int64)
    for row in range(near.shape[0]):
        n_touched = 0
        for e in range(near.shape[1]):
            j = near[row, e]
            if j >= 0:
                for s in range(indices.shape[1]):
                    target = indices[j, s]
                    if target >= 0:
                        if shortest[target] == np.inf:
                            touched[n_touched] = target
                            n_touched += 1
                        length = outgoing[row, e] + lengths[j, s]
                        shortest[target] = min(shortest[target], length)
        reached = np.sort(touched[:n_touched])
        order = np.argsort(shortest[reached], kind="mergesort")
        for place in range(min(k, n_touched)):
            target = reached[order[place]]
            to[row, place] = target
            there[row, place] = shortest[target]
            for s in range(indices.shape[1]):
                for e in range(near.shape[1]):
                    if near[row, e] >= 0 and indices[target, s] == near[row, e]:
                        length = lengths[target, s] + incoming[row, e]
                        back[row, place] = min(back[row, place], length)
        shortest[reached] = np.inf


def training_rows(new, X) -> np.ndarray:
    """For every new row the number of the first training row equal to it, or −1."""
    known = _row_hashes(X)
    order = np.argsort(known, kind="stable")
    asked = _row_hashes(new)
    place = np.minimum(np.searchsorted(known[order], asked), len(known) - 1)
    candidate = order[place]
    alike = np.flatnonzero(known[candidate] == asked)
    result = np.full(len(asked), -1, dtype=np.int64)
    same = X[candidate[alike]] != new[alike]
    if scipy.sparse.issparse(same):
        different = np.diff(scipy.sparse.csr_matrix(same).indptr) > 0
    else:
        different = np.asarray(same).any(axis=1)
    result[alike[~different]] = candidate[alike[~different]]
    return result


def _row_hashes(X) -> np.ndarray:
    """64 bits per row, the same for dense and sparse storage."""
    if not scipy.sparse.issparse(X):
        factor, bits = _factors(np.arange(X.shape[1])), _bits(X)
        hashes = np.empty(len(X), dtype=np.uint64)
        for rows in row_blocks(len(X)):
            hashes[rows] = _mixed(bits[rows].astype(np.uint64) * factor).sum(
                axis=1, dtype=np.uint64
            )
        return hashes
    terms = _mixed(_bits(X.data).astype(np.uint64) * _factors(X.indices))
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return total[X.indptr[1:]] - total[X.indptr[:-1]]


def _factors(columns: np.ndarray) -> np.ndarray:
    """An odd number per column; made from its index, as there may be more columns than memory."""
    return _mixed((columns.astype(np.uint64) + np.uint64(1)) * ODD) | np.uint64(1)


def _mixed(terms: np.ndarray) -> np.ndarray:
    """Spread the bits (round numbers end in many zeros); 0 stays 0."""
    terms ^= terms >> np.uint64(31)
    terms *= ODD
    terms ^= terms >> np.uint64(29)
    return terms


def _bits(values: np.ndarray) -> np.ndarray:
    if values.dtype != np.float32:
        return values
    return (values + np.float32(0.0)).view(np.uint32)  # −0.0 and 0.0 are equal
