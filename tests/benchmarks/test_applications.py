"""Orders of the applications, on graphs whose order is plain."""

import numpy as np

from benchmarks.applications import better_sign, fiedler, processing_depth


def test_processing_depth_of_a_chain_falls_by_one_per_step():
    chain = np.diag(np.ones(4), k=1)
    np.testing.assert_allclose(np.diff(processing_depth(chain)), -1.0, atol=1e-9)


def test_the_fiedler_vector_orders_a_chain_up_to_its_sign():
    chain, rank = np.diag(np.ones(4), k=1), -np.arange(5.0)
    assert (np.diff(better_sign(fiedler(chain), rank)) < 0).all()
