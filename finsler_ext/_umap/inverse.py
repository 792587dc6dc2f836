"""inverse_transform: data that would have been embedded near given places, approximately."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numba import njit
from scipy.spatial import KDTree
from sklearn.utils import check_array

from finsler_ext.randers import randers_distance

__all__ = ["inverse_rows"]

N_STEPS = 60
# Largest force of one neighbour, in units of its scale; umap-learn limits it likewise.
FORCE_LIMIT = 4.0
STEP = 0.2


def inverse_rows(model, Y) -> np.ndarray:
    """Rows x of data space whose memberships p_jx resemble those of the places y.

    With q_j = 1/(1 + a F(y_j, y)^{2b}) for the training neighbours j of y in the embedding,

        minimise  − Σ q_j ln p_j(x) − Σ (1 − q_j) ln(1 − p_j(x)),
        p_j(x) = exp(−max(0, d(x, x_j) − ρ_j)/σ_j),

    from the mean of the neighbours' data, weighted by q. Many x share a place, and only the
    neighbours are looked at: the result is plausible, not exact.
    """
    if getattr(model, "_raw_data", None) is None or model.transform_mode == "graph":
        raise ValueError(
            "inverse_transform needs a model with an embedding of data of its own: not one made "
            "by +, * or -, and not transform_mode='graph'."
        )
    if model.metric == "precomputed" or scipy.sparse.issparse(model._raw_data):
        raise ValueError(
            "inverse_transform is not available for metric='precomputed' or sparse data: there "
            "is no dense data space to go back to. Fit dense rows."
        )
    if model._inverse_distance_func is None:
        raise ValueError(
            f"inverse_transform is not available for metric={model.metric!r}, whose gradient "
            "umap-learn does not know. Use e.g. 'euclidean', 'manhattan' or 'cosine'."
        )
    Y = check_array(Y, dtype=np.float32, order="C")
    if Y.shape[1] != model.n_components:
        raise ValueError(
            f"inverse_transform: the places have {Y.shape[1]} columns, the embedding has "
            f"{model.n_components} (map and height)."
        )
    rows = model._unique_rows_ if model.unique else np.arange(len(model.embedding_))
    placed = np.isfinite(model.embedding_[rows]).all(axis=1)
    number = np.flatnonzero(placed)
    if number.size == 0:
        raise ValueError("inverse_transform: no training point has a place in the embedding.")
    positions = model.embedding_[rows][number]
    k = min(model._n_neighbors, number.size)
    near = KDTree(positions).query(Y, k=k)[1].reshape(len(Y), k)
    F = randers_distance(positions[near], Y[:, None, :], model.omega_norm_)
    weight = 1.0 / (1.0 + model._a * F ** (2.0 * model._b))
    data = np.ascontiguousarray(model._raw_data[rows], dtype=np.float32)
    out = np.empty((len(Y), data.shape[1]), dtype=np.float32)
    _descend(
        out,
        data,
        number[near],
        weight,
        model._sigmas.astype(np.float64),
        model._rhos.astype(np.float64),
        model._inverse_distance_func,
        tuple(model._metric_kwds.values()),
    )
    return out


@njit
def _descend(out, data, near, weight, sigma, rho, metric, args):
    n_features = data.shape[1]
    x = np.empty(n_features, dtype=np.float32)
    force = np.empty(n_features)
    for row in range(out.shape[0]):
        total = weight[row].sum()
        force[:] = 0.0
        scale = 0.0
        for e in range(near.shape[1]):
            share = weight[row, e] / total
            scale += share * sigma[near[row, e]]
            for c in range(n_features):
                force[c] += share * data[near[row, e], c]
        for c in range(n_features):
            x[c] = force[c]
        for step in range(N_STEPS):
            force[:] = 0.0
            for e in range(near.shape[1]):
                j = near[row, e]
                distance, slope = metric(x, data[j], *args)
                beyond = max(distance - rho[j], 0.0) / sigma[j]
                q, p = weight[row, e], np.exp(-beyond)
                pull = q if beyond > 0.0 else 0.0
                push = (1.0 - q) * min(p / (1.0 - p + 1e-6), FORCE_LIMIT)
                for c in range(n_features):
                    force[c] += (pull - push) * slope[c] / total
            rate = STEP * scale * (1.0 - step / N_STEPS)
            for c in range(n_features):
                x[c] -= rate * force[c]
        out[row] = x
