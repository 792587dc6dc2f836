"""What `finsler_ext.scanpy` reads from an AnnData, and how it stores embeddings there."""

from __future__ import annotations

from numbers import Number

import numpy as np
import scipy.sparse

from finsler_ext.construct.edge_lists import STOCHASTIC_TOLERANCE
from finsler_ext.construct.input import checked_structure

__all__ = ["read_transitions", "representation", "store", "stored_neighbors"]

# Weight of the cosines in a velocity graph: scvelo's own, p_ij ∝ exp(10 cos_ij).
VELOCITY_SCALE = 10.0


def representation(adata, use_rep: str | None):
    """Features of the cells and their name; X_pca by default, X without it."""
    if use_rep is None:
        use_rep = "X_pca" if "X_pca" in adata.obsm else "X"
    if use_rep == "X":
        features = adata.X
    elif use_rep in adata.obsm:
        features = adata.obsm[use_rep]
    else:
        raise ValueError(
            f"use_rep={use_rep!r} is not in obsm ({', '.join(adata.obsm) or 'empty'}). Run "
            "sc.pp.pca first, or use 'X'."
        )
    if scipy.sparse.issparse(features):
        return scipy.sparse.csr_matrix(checked_structure(features, use_rep)), use_rep
    return np.asarray(features), use_rep


def stored_neighbors(adata, stored: str):
    """Indices and distances of the neighbours of each cell, the cell itself first.

    Cells may have different numbers of neighbours; −1 and inf fill up the rows.
    """
    key = adata.uns[stored].get("distances_key", "distances")
    if key not in adata.obsp:
        raise ValueError(f"uns[{stored!r}] names obsp[{key!r}], which is not there.")
    graph = scipy.sparse.csr_array(checked_structure(adata.obsp[key], f"obsp[{key!r}]"), copy=True)
    graph.sum_duplicates()
    n, entries = graph.shape[0], graph.tocoo()
    away = entries.row != entries.col
    source, target, length = entries.row[away], entries.col[away], entries.data[away]
    count = np.bincount(source, minlength=n)
    if count.min(initial=1) < 1:
        raise ValueError(
            f"obsp[{key!r}] has cells without any neighbour. Run sc.pp.neighbors again."
        )
    order = np.lexsort((target, length, source))
    source, target, length = source[order], target[order], length[order]
    place = np.arange(source.size) - (np.cumsum(count) - count)[source] + 1
    indices = np.full((n, count.max() + 1), -1, dtype=np.int32)
    distances = np.full(indices.shape, np.inf, dtype=np.float32)
    indices[:, 0], distances[:, 0] = np.arange(n), 0.0
    indices[source, place], distances[source, place] = target, length
    return indices, distances


def read_transitions(adata, transitions):
    """A sparse matrix of transition probabilities, and where it is from."""
    if transitions is None:
        if "T_fwd" in adata.obsp:
            transitions = "T_fwd"
        else:
            cosines = _velocity_graph(adata)
            return _softmax(cosines), "velocity_graph"
    name = "given"
    if isinstance(transitions, str):
        name = transitions
        if name not in adata.obsp:
            raise ValueError(
                f"transitions={name!r} is not in obsp ({', '.join(adata.obsp) or 'empty'})."
            )
        transitions = adata.obsp[name]
    if scipy.sparse.issparse(transitions):
        checked_structure(transitions, "transitions")
    T = scipy.sparse.csr_matrix(transitions, dtype=np.float64)
    if T.shape != (adata.n_obs, adata.n_obs):
        raise ValueError(
            f"transitions must have shape ({adata.n_obs}, {adata.n_obs}), got {T.shape}."
        )
    if T.nnz == 0 or not np.isfinite(T.data).all() or T.data.min() < 0:
        raise ValueError("transitions must be numbers ≥ 0, not all of them 0.")
    sums = np.asarray(T.sum(axis=1)).ravel()
    off = np.flatnonzero((np.abs(sums - 1) > STOCHASTIC_TOLERANCE) & (sums > 0))
    if off.size:
        raise ValueError(
            f"transitions: rows must sum to 1, row {off[0]} sums to {sums[off[0]]:.4g} "
            f"({off.size} such rows). Divide each row by its sum, and check that rows are sources."
        )
    return _without_diagonal(T), name


def _velocity_graph(adata):
    """Cosines of scvelo's velocity graph, positive and negative ones together."""
    for place in (adata.uns, adata.obsp):
        if "velocity_graph" in place:
            negative = place.get("velocity_graph_neg")
            cosines = scipy.sparse.csr_matrix(place["velocity_graph"], dtype=np.float64)
            return cosines if negative is None else cosines + scipy.sparse.csr_matrix(negative)
    raise ValueError(
        "adata has neither obsp['T_fwd'] (CellRank) nor a velocity_graph (scvelo). Run "
        "scv.tl.velocity_graph(adata), or give transitions."
    )


def _softmax(cosines):
    T = _without_diagonal(cosines)
    T.data = np.exp(VELOCITY_SCALE * T.data)
    sums = np.asarray(T.sum(axis=1)).ravel()
    T.data /= np.repeat(sums, np.diff(T.indptr))
    return T


def _without_diagonal(matrix):
    """Staying is no transition."""
    entries = scipy.sparse.coo_matrix(matrix)
    away = (entries.row != entries.col) & (entries.data != 0)
    kept = (entries.data[away], (entries.row[away], entries.col[away]))
    return scipy.sparse.csr_matrix(kept, shape=entries.shape)


def store(adata, model, name: str, key_added, copy: bool, parameters: dict, source: str):
    adata = adata.copy() if copy else adata
    key = key_added or name
    embedding = np.array(model.embedding_)
    adata.obsm[key_added or f"X_{name}"] = embedding
    adata.obs[f"{key}_height"] = embedding[:, -1]
    settings = {
        "omega_norm": float(model.omega_norm_),
        "n_components": int(embedding.shape[1]),
        "random_state": model.random_state,
        "source": source,
        **parameters,
    }
    fidelity = model.skew_fidelity_
    adata.uns[key] = {
        # what an h5ad file can hold
        "params": {n: v for n, v in settings.items() if isinstance(v, (str, Number))},
        "skew_fidelity": {n: float(getattr(fidelity, n)) for n in ("sign", "rank", "explained")},
    }
    share = getattr(model, "gradient_share_", float("nan"))
    if share == share:
        adata.uns[key]["gradient_share"] = float(share)
    return adata if copy else None
