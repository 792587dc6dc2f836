"""Orders of the applications, on graphs whose order is plain."""

from types import SimpleNamespace

import numpy as np
from sklearn.neighbors import NearestNeighbors

from benchmarks.applications import (
    better_sign,
    fiedler,
    out_of_line,
    planted_classes,
    processing_depth,
    velocity_potential,
)
from benchmarks.orders import right_pairs


def test_processing_depth_of_a_chain_falls_by_one_per_step():
    chain = np.diag(np.ones(4), k=1)
    np.testing.assert_allclose(np.diff(processing_depth(chain)), -1.0, atol=1e-9)


def test_the_fiedler_vector_orders_a_chain_up_to_its_sign():
    chain, rank = np.diag(np.ones(4), k=1), -np.arange(5.0)
    assert (np.diff(better_sign(fiedler(chain), rank)) < 0).all()


def test_a_node_at_the_median_of_another_class_is_out_of_line_unless_its_error_is_large():
    kind = np.repeat([0, 1, 2], 5)
    height = 1.0 - kind
    height[0] = -1.0
    for error, named in ((0.1, [0]), (2.0, [])):
        found = out_of_line(height, np.full(15, error), kind, 1.96)
        assert np.flatnonzero(found).tolist() == named


def test_planted_edges_lead_down():
    A, kind, height = planted_classes(0, 0.3, 4.0)
    assert right_pairs(height, -kind.astype(float)) > 0.9
    source, target = np.nonzero(A)
    assert np.mean(height[source] > height[target]) > 0.9


def test_the_potential_of_velocities_falls_along_them():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 3)) * [5, 1, 1]
    adata = SimpleNamespace(obsm={"X_pca": X, "velocity_pca": np.tile([1.0, 0, 0], (200, 1))})
    potential = velocity_potential(adata, NearestNeighbors)
    assert np.corrcoef(potential, X[:, 0])[0, 1] < -0.95
