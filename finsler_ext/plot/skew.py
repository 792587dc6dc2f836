"""Where the asymmetry of a fitted estimator comes from, in numbers and in words."""

from __future__ import annotations

from types import NoneType

import numpy as np
import scipy.sparse

from finsler_ext.metrics import skew_pairs

__all__ = ["HEIGHT", "asymmetry_of", "fidelity_words", "height_words"]

HEIGHT = "height: sparse above dense"
COSTLY = "height: costly to reach is high"
SCALED = "height: large local scale is high"


def height_words(model) -> str:
    """What the height of an estimator shows; of an array nothing else is known than `HEIGHT`."""
    if not hasattr(model, "embedding_"):
        return HEIGHT
    if not isinstance(getattr(model, "local_scale", None), (str, NoneType)):
        return SCALED
    try:
        given = asymmetry_of(model)
    except ValueError:
        return HEIGHT
    return COSTLY if "distances" in given else HEIGHT


def fidelity_words(model) -> str:
    """How far to trust the height of a fitted estimator, for a title; empty for anything else."""
    sign = getattr(getattr(model, "skew_fidelity_", None), "sign", float("nan"))
    if not np.isfinite(sign) or getattr(model, "omega_norm_", 0) == 0:
        return ""
    words = f"the height orders {sign:.0%} of the pairs rightly (50% is chance)"
    islands = getattr(model, "islands_", None)
    if islands is not None and islands.n_parts > 1 and not islands.settled:
        words += "; it does not compare across gaps"
    return words


def asymmetry_of(model) -> dict:
    """What a fitted estimator compares its height with: the arguments of `skew_fidelity`."""
    if hasattr(model, "dissimilarity_matrix_"):  # FinslerMDS
        if model.local_scale_ is None or np.ptp(model.local_scale_) == 0:
            return {"distances": model.dissimilarity_matrix_, "omega_norm": model.omega_norm_}
        return {"graph": model._known.graph, "local_scale": model.local_scale_}
    if hasattr(model, "affinities_"):  # FinslerTSNE
        affinities = model.affinities_
        if getattr(affinities, "directed_input", False):
            given = {"distances": affinities.neighbor_distances()}
            if _is_directed(model.embedding_, given):
                return given
        if getattr(affinities, "local_scale", None) is not None:
            return {"graph": affinities.P, "local_scale": affinities.local_scale}
        return {"distances": _lengths(affinities.P)}
    if hasattr(model, "graph_"):  # FinslerUMAP
        from finsler_ext.estimators._umap.graph import neighbor_distances, skew_distances

        if model.metric == "precomputed" and model._raw_data is not None:
            given = {"distances": skew_distances(model, model._raw_data)}
            if _is_directed(model.embedding_, given):
                return given
        if getattr(model, "_asymmetric_metric", False):
            return {"distances": neighbor_distances(model)}
        return {"graph": model.graph_, "local_scale": model.local_scale_}
    raise ValueError(
        "plot_asymmetry needs a fitted estimator, or an embedding with either distances=, or "
        "graph= and local_scale=."
    )


def _is_directed(positions, given: dict) -> bool:
    return bool(np.any(skew_pairs(np.asarray(positions), **given)[0]))


def _lengths(P):
    """Affinities as lengths: the larger p_ij, the shorter the way from i to j."""
    lengths = scipy.sparse.csr_array(P, copy=True)
    lengths.data = -np.log(lengths.data / lengths.data.max())
    return lengths
