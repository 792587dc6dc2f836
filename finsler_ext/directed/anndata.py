"""Transitions between the cells of an AnnData: CellRank's, scvelo's, or those that are given."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from finsler_ext.directed.data import DirectedData, directed_data
from finsler_ext.validation import checked_structure

# Weight of the cosines in a velocity graph: scvelo's own, p_ij ∝ exp(10 cos_ij).
VELOCITY_SCALE = 10.0


def read_anndata(adata, transitions=None) -> tuple[DirectedData, str]:
    """The transitions between cells, and where their probabilities are from.

    ``transitions`` is a matrix, a key of ``obsp``, or None for CellRank's or scvelo's.
    """
    probabilities, source = read_transitions(adata, transitions)
    names = getattr(adata, "obs_names", None)
    names = None if names is None else [str(name) for name in names]
    return directed_data(probabilities, names, "transitions", f"transitions = {source}"), source


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
    return T, name


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
