"""Finsler embeddings of AnnData, in scanpy's manner. Needs scanpy (extra ``scanpy``).

`umap` and `tsne` show density as height, `velocity` the direction in which cells develop. Each
writes its embedding to ``obsm``, its parameters and the skew fidelity to ``uns`` and the height to
``obs``, so that ``sc.pl.embedding(adata, "finsler_umap", color="finsler_umap_height")`` draws it.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse

from finsler_ext._anndata import representation, store, stored_neighbors
from finsler_ext._warn import without_foreign
from finsler_ext.construct.gradient_share import CyclicWarning

__all__ = ["tsne", "umap", "velocity"]

# Neighbours in the graph of transitions, the cell itself among them; see `velocity` on the choice.
LIKELIEST = 8


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
        indices, distances = stored_neighbors(adata, stored)
        parameters |= {"precomputed_knn": (indices, distances), "n_neighbors": indices.shape[1]}
        searched = adata.uns[stored].get("params", {}).get("use_rep")
        features, source = representation(adata, searched)[0], stored
    else:
        features, source = representation(adata, use_rep)
    model = FinslerUMAP(
        omega_norm=omega_norm,
        n_components=n_components,
        min_dist=min_dist,
        random_state=random_state,
        **parameters,
    )
    with without_foreign("given search"):
        model.fit(features)
    return store(adata, model, "finsler_umap", key_added, copy, parameters, source)


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

    features, source = representation(adata, use_rep)
    if n_pcs is not None:
        features = features[:, :n_pcs]
    model = FinslerTSNE(
        omega_norm=omega_norm,
        n_components=n_components,
        perplexity=perplexity,
        random_state=random_state,
        **parameters,
    ).fit(features)
    return store(adata, model, "finsler_tsne", key_added, copy, parameters, source)


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
        As in `umap`, with "finsler_velocity" as the name. ``uns`` also has ``gradient_share``: how
        much of the asymmetry of the transitions any height can show.
    **parameters
        More parameters of the estimator. With "umap", ``n_neighbors`` is 8 by default.

    Notes
    -----
    The default was chosen on simulated cells, not on real ones: lines, forks and trees of 200 and
    1000 cells, velocities with noise of 3 and 10 times their length, cells crowded early or late.
    Among 8, 15 and 30 neighbours, 8 followed time best. On 64 simulations with other seeds the
    median Spearman between height and time was −0.92 (15 neighbours: −0.87); the drift made
    little difference between 0.3 and 0.9. With noise of 10 the height often follows the crowding
    of the cells instead of time (17 % of the 64 lie above −0.5, the worst at 0.55): compare it with
    a time that you trust.
    """
    from finsler_ext.construct.directed_input import read_anndata

    data, source = read_anndata(adata, transitions)
    lengths = scipy.sparse.csr_matrix(data.distances)
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
        settings.setdefault("n_neighbors", max(2, min(LIKELIEST, most + 1)))
        model = FinslerUMAP(**settings)
    elif method == "mds":
        from finsler_ext import FinslerMDS

        model = FinslerMDS(**({"missing": "geodesic"} | settings))
    else:
        raise ValueError(f"method must be 'umap' or 'mds', got {method!r}.")
    with without_foreign("given search"):
        # noisy velocities leave much that has no height; uns holds gradient_share
        warnings.simplefilter("ignore", CyclicWarning)
        model.fit(data)
    return store(adata, model, "finsler_velocity", key_added, copy, parameters, source)
