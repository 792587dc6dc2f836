"""Finsler embeddings of AnnData, in scanpy's manner. Needs scanpy (extra ``scanpy``).

`umap` and `tsne` show density as height, `velocity` the direction in which cells develop. Each
writes its embedding to ``obsm``, its parameters and the skew fidelity to ``uns`` and the height to
``obs``, so that ``sc.pl.embedding(adata, "finsler_umap", color="finsler_umap_height")`` draws it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse

__all__ = ["tsne", "umap", "velocity"]

# Weight of the cosines in a velocity graph: scvelo's own, p_ij ∝ exp(10 cos_ij).
VELOCITY_SCALE = 10.0
# Rows of a transition matrix may miss a sum of 1 by this much (float32 sums of many entries).
STOCHASTIC_TOLERANCE = 1e-3
# A certain transition has length 0, which a sparse matrix cannot hold.
SHORTEST = 1e-6


def umap(
    adata,
    *,
    omega_norm=0.5,
    n_components: int = 3,
    min_dist: float = 0.5,
    random_state=0,
    neighbors_key: str | None = None,
    use_rep: str | None = None,
    key_added: str | None = None,
    copy: bool = False,
    **parameters,
):
    """FinslerUMAP of cells: ``sc.tl.umap`` with a height, sparse above dense.

    Takes the neighbours that ``sc.pp.neighbors`` stored, before they were symmetrised; without
    them, or if ``use_rep`` is given, neighbours are searched for in ``X_pca`` or that
    representation.

    Parameters
    ----------
    adata : AnnData
    omega_norm, n_components, random_state
        Of `finsler_ext.FinslerUMAP`.
    min_dist : float, default=0.5
        As in ``sc.tl.umap``.
    neighbors_key : str, optional
        Neighbours in ``uns`` to use, by default "neighbors".
    use_rep : str, optional
        Key of ``obsm``, or "X", in which to search for neighbours anew.
    key_added : str, optional
        By default the embedding is ``obsm["X_finsler_umap"]``, its parameters are in
        ``uns["finsler_umap"]`` and the height in ``obs["finsler_umap_height"]``. Otherwise
        ``obsm[key_added]``, ``uns[key_added]`` and ``obs[key_added + "_height"]``.
    copy : bool
        Return a changed copy instead of changing ``adata``.
    **parameters
        More parameters of `finsler_ext.FinslerUMAP`.
    """
    from finsler_ext import FinslerUMAP

    stored = neighbors_key or "neighbors"
    if neighbors_key is not None and neighbors_key not in adata.uns:
        raise ValueError(
            f"neighbors_key={neighbors_key!r} is not in uns. Run sc.pp.neighbors(adata, "
            f"key_added={neighbors_key!r}) first."
        )
    if neighbors_key is not None and use_rep is not None:
        raise ValueError("Give either neighbors_key, or use_rep to search for neighbours anew.")
    if use_rep is None and stored in adata.uns:
        if "n_neighbors" in parameters:
            raise ValueError(
                "n_neighbors: the neighbours stored by sc.pp.neighbors are used as they are. Give "
                "use_rep='X_pca' to search for others."
            )
        indices, distances = _stored_neighbors(adata, stored)
        parameters |= {"precomputed_knn": (indices, distances), "n_neighbors": indices.shape[1]}
        features, source = _representation(adata, _rep_of(adata, stored))[0], stored
    else:
        features, source = _representation(adata, use_rep)
    model = FinslerUMAP(
        omega_norm=omega_norm,
        n_components=n_components,
        min_dist=min_dist,
        random_state=random_state,
        **parameters,
    )
    with _quiet():
        model.fit(features)
    return _store(adata, model, "finsler_umap", key_added, copy, parameters, source)


def tsne(
    adata,
    *,
    omega_norm=0.5,
    n_components: int = 3,
    perplexity: float = 30,
    random_state=0,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    key_added: str | None = None,
    copy: bool = False,
    **parameters,
):
    """FinslerTSNE of cells: ``sc.tl.tsne`` with a height, sparse above dense.

    Parameters
    ----------
    adata : AnnData
    omega_norm, n_components, perplexity, random_state
        Of `finsler_ext.FinslerTSNE`.
    use_rep : str, optional
        Key of ``obsm``, or "X"; ``X_pca`` by default, or X without it.
    n_pcs : int, optional
        Use only the first columns of the representation.
    key_added, copy
        As in `umap`, with "finsler_tsne" as the name.
    **parameters
        More parameters of `finsler_ext.FinslerTSNE`.
    """
    from finsler_ext import FinslerTSNE

    features, source = _representation(adata, use_rep)
    if n_pcs is not None:
        features = features[:, :n_pcs]
    model = FinslerTSNE(
        omega_norm=omega_norm,
        n_components=n_components,
        perplexity=perplexity,
        random_state=random_state,
        **parameters,
    ).fit(features)
    return _store(adata, model, "finsler_tsne", key_added, copy, parameters, source)


def velocity(
    adata,
    transitions=None,
    *,
    omega_norm=0.5,
    n_components: int = 3,
    random_state=0,
    method: str = "umap",
    key_added: str | None = None,
    copy: bool = False,
    **parameters,
):
    """Embed cells by where they are heading: what follows lies below, as water runs.

    The length of the way from cell i to cell j is −log p_ij, p_ij being the probability of the
    transition. Likely transitions are short and lead down; the height falls from early cells to
    late ones.

    Parameters
    ----------
    adata : AnnData
    transitions : matrix of shape (n, n) or str, optional
        Transition probabilities, rows being sources: a dense or sparse matrix, or a key of
        ``obsp``; by default CellRank's ``obsp["T_fwd"]``, or scvelo's ``velocity_graph`` of
        cosines c_ij, as p_ij ∝ exp(10 c_ij).
    omega_norm, n_components, random_state
        Of the estimator.
    method : {"umap", "mds"}, default="umap"
        FinslerUMAP on the transitions themselves, for any number of cells; or FinslerMDS on
        shortest paths between all pairs, for some thousands of cells.
    key_added, copy
        As in `umap`, with "finsler_velocity" as the name.
    **parameters
        More parameters of the estimator.
    """
    probabilities, source = _transitions(adata, transitions)
    lengths = probabilities.copy()
    lengths.data = np.maximum(-np.log(lengths.data), SHORTEST)
    settings = {
        "metric": "precomputed",
        "omega_norm": omega_norm,
        "n_components": n_components,
        "random_state": random_state,
        **parameters,
    }
    model: Any
    if method == "umap":
        from finsler_ext import FinslerUMAP

        most = int(np.diff(lengths.indptr).max())
        settings.setdefault("n_neighbors", max(2, min(15, most + 1)))
        with _quiet():
            model = FinslerUMAP(**settings).fit(lengths)
    elif method == "mds":
        from finsler_ext import FinslerMDS

        model = FinslerMDS(**({"missing": "geodesic"} | settings)).fit(lengths)
    else:
        raise ValueError(f"method must be 'umap' or 'mds', got {method!r}.")
    return _store(adata, model, "finsler_velocity", key_added, copy, parameters, source)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without umap-learn's announcements about methods that nobody calls on cells."""
    with warnings.catch_warnings():
        for announcement in ("precomputed_knn", ".*inverse_transform will be unavailable"):
            warnings.filterwarnings("ignore", announcement, UserWarning)
        yield


def _rep_of(adata, stored: str) -> str | None:
    return adata.uns[stored].get("params", {}).get("use_rep")


def _representation(adata, use_rep: str | None):
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
        return scipy.sparse.csr_matrix(features), use_rep
    return np.asarray(features), use_rep


def _stored_neighbors(adata, stored: str):
    """Indices and distances of the neighbours of each cell, the cell itself first."""
    key = adata.uns[stored].get("distances_key", "distances")
    if key not in adata.obsp:
        raise ValueError(f"uns[{stored!r}] names obsp[{key!r}], which is not there.")
    graph = scipy.sparse.csr_array(adata.obsp[key])
    graph.sum_duplicates()
    count = np.diff(graph.indptr)
    k = int(count.min())
    if k < 1:
        raise ValueError(
            f"obsp[{key!r}] has cells without any neighbour. Run sc.pp.neighbors again."
        )
    source = np.repeat(np.arange(graph.shape[0]), count)
    order = np.lexsort((graph.data, source))
    near = (np.concatenate([[0], np.cumsum(count)[:-1]])[:, None] + np.arange(k)).ravel()
    chosen = order[near]
    n = graph.shape[0]
    indices = np.column_stack([np.arange(n), graph.indices[chosen].reshape(n, k)])
    distances = np.column_stack([np.zeros(n), graph.data[chosen].reshape(n, k)])
    return indices.astype(np.int32), distances.astype(np.float32)


def _transitions(adata, transitions):
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


def _store(adata, model, name: str, key_added, copy: bool, parameters: dict, source: str):
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
    return adata if copy else None
