"""Finsler embeddings of AnnData, with scanpy's conventions. Needs scanpy (extra ``scanpy``).

`umap` and `tsne` show density as height, `velocity` the direction in which cells develop. Each
writes its embedding to ``obsm``, parameters and evidence to ``uns`` and the height to ``obs``, so
that ``sc.pl.embedding(adata, "finsler_umap", color="finsler_umap_height")`` draws it.
"""

from __future__ import annotations

import warnings
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse

from finsler_ext._messages import without_foreign
from finsler_ext.asymmetry import CyclicWarning
from finsler_ext.directed.read import read_anndata
from finsler_ext.evidence import velocity_evidence
from finsler_ext.evidence.verdict import ChanceWarning, warn_of_height
from finsler_ext.neighbors.search import precomputed_neighbors
from finsler_ext.validation import checked_structure

__all__ = ["tsne", "umap", "velocity"]

# Neighbours between which velocities are compared, for their evidence.
VELOCITY_NEIGHBORS = 15


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
        By default the embedding is ``obsm["X_finsler_umap"]``; parameters and evidence are in
        ``uns["finsler_umap"]``, height and potential in ``obs["finsler_umap_height"]`` and
        ``obs["finsler_umap_potential"]``. Otherwise ``obsm[key_added]``, ``uns[key_added]``,
        ``obs[key_added + "_height"]`` and ``obs[key_added + "_potential"]``.
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
        searched = adata.uns[stored].get("params", {}).get("use_rep")
        features, source = _representation(adata, searched)[0], stored
    elif use_rep is None and "X_pca" not in adata.obsm:
        raise ValueError(
            "adata has neither neighbours nor X_pca. Run sc.pp.neighbors or sc.pp.pca first, or "
            "give use_rep='X'."
        )
    else:
        features, source = _representation(adata, use_rep)
    model = FinslerUMAP(
        omega_norm=omega_norm,
        n_components=n_components,
        min_dist=min_dist,
        random_state=random_state,
        **parameters,
    )
    with without_foreign("given search"):
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
    """Embed cells by where they are heading: early cells lie high, late cells low.

    The distance from cell i to cell j is −log p_ij, p_ij being the probability of the transition.
    Likely transitions are short and lead down.

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
        As in `umap`, with "finsler_velocity" as the name. ``uns`` also has ``gradient_share``: how
        much of the asymmetry of the transitions any height can show. Its ``evidence`` is that of
        the velocities, if there are any (``obsm["velocity_pca"]`` or ``layers["velocity"]``): they
        are shuffled among the cells. Transitions alone cannot be tested.
    **parameters
        More parameters of the estimator.

    Notes
    -----
    ``obs`` also has the potential of the transitions (``finsler_velocity_potential``), the order
    that follows from them alone, whatever the map and the drift. On 739 cells of the mouse
    pancreas it orders 95 % of the pairs of cells from different stages as their lineage does.
    """
    data, source = read_anndata(adata, transitions)
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

        model = FinslerUMAP(**settings)
    elif method == "mds":
        from finsler_ext import FinslerMDS

        model = FinslerMDS(**({"missing": "geodesic"} | settings))
    else:
        raise ValueError(f"method must be 'umap' or 'mds', got {method!r}.")
    known = _stored_velocities(adata)
    with without_foreign("given search"):
        # noisy velocities leave much that has no height; uns holds gradient_share
        warnings.simplefilter("ignore", CyclicWarning)
        if known is not None:  # the evidence of velocities says more
            warnings.simplefilter("ignore", ChanceWarning)
        model.fit(data)
    if known is not None:  # transition probabilities leave nothing to randomise, velocities do
        from sklearn.neighbors import NearestNeighbors

        search = NearestNeighbors(n_neighbors=min(VELOCITY_NEIGHBORS, len(known[0]) - 1))
        near = search.fit(known[0]).kneighbors(return_distance=False)
        model.evidence_ = velocity_evidence(near, *known)._replace(shown=model.evidence_.shown)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CyclicWarning)
            warn_of_height(model.evidence_, model.skew_fidelity_, model.omega_norm_, directed=True)
    return _store(adata, model, "finsler_velocity", key_added, copy, parameters, source)


def _stored_velocities(adata):
    """Positions and velocities of the cells; None if there are none."""
    if "velocity_pca" in adata.obsm and "X_pca" in adata.obsm:
        positions, velocities = adata.obsm["X_pca"], adata.obsm["velocity_pca"]
        columns = min(np.shape(positions)[1], np.shape(velocities)[1])
        return np.asarray(positions)[:, :columns], np.asarray(velocities)[:, :columns]
    layers = getattr(adata, "layers", None) or {}
    if "velocity" not in layers:
        return None
    positions = layers.get("Ms", adata.X)
    velocities = layers["velocity"]
    found = [
        m.toarray() if scipy.sparse.issparse(m) else np.asarray(m) for m in (positions, velocities)
    ]
    genes = np.isfinite(found[1]).all(axis=0)  # scvelo has velocities of some genes
    return found[0][:, genes], found[1][:, genes]


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
        return scipy.sparse.csr_matrix(checked_structure(features, use_rep)), use_rep
    return np.asarray(features), use_rep


def _stored_neighbors(adata, stored: str):
    """Indices and distances of the neighbours of each cell, the cell itself first.

    Cells may have different numbers of neighbours; −1 and inf fill up the rows.
    """
    key = adata.uns[stored].get("distances_key", "distances")
    if key not in adata.obsp:
        raise ValueError(f"uns[{stored!r}] names obsp[{key!r}], which is not there.")
    graph = scipy.sparse.csr_array(checked_structure(adata.obsp[key], f"obsp[{key!r}]"), copy=True)
    graph.sum_duplicates()
    found = precomputed_neighbors(graph, 1 + int(np.diff(graph.indptr).max(initial=0)))
    count = (found.indices >= 0).sum(axis=1)
    if count.min(initial=2) < 2:
        raise ValueError(
            f"obsp[{key!r}] has cells without any neighbour. Run sc.pp.neighbors again."
        )
    return found.indices[:, : count.max()], found.distances[:, : count.max()]


def _store(adata, model, name: str, key_added, copy: bool, parameters: dict, source: str):
    adata = adata.copy() if copy else adata
    key = key_added or name
    embedding = np.array(model.embedding_)
    adata.obsm[key_added or f"X_{name}"] = embedding
    adata.obs[f"{key}_height"] = embedding[:, -1]
    adata.obs[f"{key}_potential"] = model.potential_
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
        "evidence": model.evidence_.to_dict(),
        "skew_fidelity": {n: float(getattr(fidelity, n)) for n in ("sign", "rank", "explained")},
    }
    share = getattr(model, "gradient_share_", float("nan"))
    if share == share:
        adata.uns[key]["gradient_share"] = float(share)
    return adata if copy else None
