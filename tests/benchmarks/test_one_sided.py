"""FinslerUMAP with one-sided negatives is FinslerUMAP but for these."""

import numpy as np
import pytest

from benchmarks.peers.one_sided import OneSidedFinslerUMAP
from finsler_ext import FinslerUMAP
from finsler_ext.umap.layout import UmapDescent
from tests.models import SMALL_DRIFT_WARNING

pytestmark = pytest.mark.filterwarnings(SMALL_DRIFT_WARNING)
SETTINGS = {"n_epochs": 30, "random_state": 0, "omega_norm": 0.5}


def test_two_sided_it_is_finsler_umap_bit_for_bit(few_digits):
    X, _ = few_digits
    two_sided = FinslerUMAP(**SETTINGS).fit(X)
    one_sided = OneSidedFinslerUMAP(**SETTINGS).fit(X)
    restored = OneSidedFinslerUMAP(**SETTINGS)
    restored._descent = UmapDescent
    assert np.array_equal(restored.fit(X).embedding_, two_sided.embedding_)
    assert not np.allclose(one_sided.embedding_, two_sided.embedding_, atol=1e-2)
    assert abs(one_sided.graph_ - two_sided.graph_).nnz == 0


def test_the_default_is_two_sided_and_parameters_are_the_same():
    assert FinslerUMAP._descent is UmapDescent
    assert OneSidedFinslerUMAP().get_params() == FinslerUMAP().get_params()
