"""Large layouts store rows along a curve: where a row is stored changes no bit."""

import numpy as np
import pytest
import scipy.sparse

from finsler_ext.tsne import gradient
from finsler_ext.tsne.gradient import FinslerGradient


@pytest.fixture
def affinities():
    P = scipy.sparse.random(3000, 3000, density=0.01, random_state=0, format="csr")
    P.setdiag(0)
    P.eliminate_zeros()
    P.sort_indices()
    P.data /= P.data.sum()
    return P


@pytest.mark.parametrize(("omega_norm", "n_columns"), [(0.0, 2), (0.5, 3)])
def test_the_order_of_storage_and_threads_change_no_bit(
    omega_norm, n_columns, affinities, monkeypatch
):
    position = np.random.default_rng(1).normal(size=(3000, n_columns)) * 5
    unsorted = FinslerGradient(omega_norm=omega_norm, method="bh")
    expected = unsorted(position, affinities, should_eval_error=True, n_jobs=1)
    monkeypatch.setattr(gradient, "SORT_FROM", 0)
    monkeypatch.setattr(gradient, "SORT_AFTER", (1, 2))
    for n_jobs in (1, 2):
        along_curve = FinslerGradient(omega_norm=omega_norm, method="bh")
        for _ in range(4):  # sorted, sorted again, kept
            error, found = along_curve(position, affinities, should_eval_error=True, n_jobs=n_jobs)
            assert np.array_equal(found, expected[1])
            # the costs of the rows are added up in another order
            assert error == pytest.approx(expected[0], rel=1e-6)
    assert along_curve._kept[-1].order is not None
