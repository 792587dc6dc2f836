"""inverse_transform: data that would have been embedded near given places, approximately."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.spatial import KDTree
from sklearn.utils import check_array

from finsler_ext.estimators._umap.new_points import check_own_data
from finsler_ext.spaces import find_space

__all__ = ["inverse_rows"]


def inverse_rows(model, Y):
    """The mean of the data of the nearest training points of each place y, weighted by

        q_j = 1/(1 + a F(y_j, y)^{2b}),

    the membership of y in the neighbourhood of y_j. umap-learn goes on from there down a
    cross entropy in data space; here that made neither the data nor its way back to the
    embedding more accurate (benchmarks/ESTIMATORS.md), so it is left out.
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
