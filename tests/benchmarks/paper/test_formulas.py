"""The paper's formulas against finite differences, quadrature and other code."""

import numpy as np
import pytest

from benchmarks.paper.published import formulas
from finsler_ext.geometry.randers import randers_distances


@pytest.mark.parametrize("drift", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dof", [1.0, 2.0])
def test_the_theorem_of_finsler_tsne_is_wrong_and_its_proof_right(drift, dof):
    body, proof = formulas.tsne_gradient(drift, dof)
    assert body > 0.02
    assert proof < 1e-6


def test_without_drift_both_are_right():
    assert max(formulas.tsne_gradient(0.0)) < 1e-6


@pytest.mark.parametrize("drift", [0.0, 0.5, 0.9])
def test_the_theorem_of_finsler_umap_is_right_and_the_table_lacks_a_factor(drift):
    theorem, table = formulas.umap_gradient(drift)
    assert theorem < 1e-6
    assert table > 0.5


def test_the_length_of_an_interpolated_metric():
    tensor, factor = formulas.interpolated_length(1.0, 4.0)
    assert tensor == pytest.approx(2.5 / (14 / 9) - 1)
    assert factor == pytest.approx(0.0)
    assert formulas.interpolated_length(1.0, 1.0) == pytest.approx((0.0, 0.0))


def test_symmetric_data_collapse_only_if_they_fit_into_the_plane():
    plane, tetrahedron = formulas.collapse(0.1)
    assert plane < 1e-3
    assert tetrahedron > 0.5


@pytest.mark.parametrize(("dof", "right"), [(1, True), (2, False), (3, False)])
def test_the_gradient_of_scikit_learn_is_not_off_by_a_factor_alone(dof, right):
    error, with_factor = formulas.sklearn_gradient(dof)
    assert (error < 1e-6) == right
    assert (with_factor < 0.1) == right


def test_every_distance_of_a_difference_has_an_antisymmetric_gradient():
    """Not only the Randers distance: any function of y − x, here an odd one."""

    def distance(x, y):
        return np.sum(np.cosh(y - x)) + np.sin(y - x)[0]

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3))
    to_x = formulas.differences(lambda x: distance(x, y), x)
    to_y = formulas.differences(lambda y: distance(x, y), y)
    assert to_x == pytest.approx(-to_y, rel=1e-6)


def test_layouts_are_measured_as_the_package_does():
    Y = np.random.default_rng(0).normal(size=(5, 3))
    found = formulas._distances(Y, 0.4)[1]
    expected = randers_distances(Y, 0.4)
    assert found[~np.eye(5, dtype=bool)] == pytest.approx(expected[~np.eye(5, dtype=bool)])


def test_turning_layout_and_drift_together_changes_no_distance():
    rng = np.random.default_rng(0)
    Y, drift = rng.normal(size=(6, 3)), np.array([0.0, 0.0, 0.4])
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]

    def distances(Y, drift):
        rays = Y[None] - Y[:, None]
        return np.linalg.norm(rays, axis=2) + rays @ drift

    assert distances(Y @ turn.T, turn @ drift) == pytest.approx(distances(Y, drift))


def test_the_printed_recipe_makes_one_cluster():
    printed, corrected = formulas.clusters_as_printed()
    assert printed == [500, 0, 0, 0, 0]
    assert sum(corrected) == 500
    assert min(corrected) > 0
