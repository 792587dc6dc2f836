"""New points of FinslerTSNE, as those of FinslerUMAP."""

import numpy as np
import pytest
import scipy.sparse

from finsler_ext import FinslerTSNE
from finsler_ext.spaces.randers import randers_distances


@pytest.mark.filterwarnings("ignore:With omega_norm:UserWarning")
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix])
def test_directed_distances_of_new_points_need_both_directions(form):
    Y = np.random.default_rng(0).normal(size=(130, 3)) * [9, 9, 3]
    D = randers_distances(Y, 0.6)
    model = FinslerTSNE(metric="precomputed", perplexity=10, n_iter=200, random_state=0)
    model.fit(form(D[:110, :110]))
    outgoing, incoming = form(D[110:, :110]), form(D[:110, 110:].T)
    with pytest.raises(ValueError, match="incoming"):
        model.transform(outgoing)
    assert np.isfinite(model.transform(outgoing, incoming=incoming)).all()
    # a fitted row comes back to its place, with no shift along the height
    E, square = np.asarray(model.embedding_), D[:110, :110]
    shift = model.transform(form(square), incoming=form(square.T.copy())) - E
    assert np.median(np.linalg.norm(shift, axis=1)) < 0.25 * E.std()
    assert abs(shift[:, -1].mean()) < 0.1 * E[:, -1].std()
    with pytest.raises(ValueError, match="shape"):
        model.transform(outgoing, incoming=incoming[:3])


@pytest.mark.filterwarnings("ignore:With omega_norm:UserWarning")
def test_new_points_need_a_scale_where_the_old_ones_had_one():
    X = np.random.default_rng(0).normal(size=(160, 4))
    scale = np.exp(X[:, 0])
    model = FinslerTSNE(perplexity=10, n_iter=100, local_scale=scale[:130], random_state=0)
    model.fit(X[:130])
    with pytest.raises(ValueError, match="local_scale"):
        model.transform(X[130:])
    placed = model.transform(X[130:], local_scale=scale[130:])
    alone = model.transform(X[140:141], local_scale=scale[140:141])
    assert np.array_equal(placed[10], alone[0])
    other = model.transform(X[130:], local_scale=scale[130:][::-1])
    assert not np.allclose(other, placed)
