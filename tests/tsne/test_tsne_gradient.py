"""The t-SNE gradient against finite differences, exact sums, openTSNE and its own symmetries."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from openTSNE.tsne import kl_divergence_bh

from finsler_ext.geometry import MATSUMOTO, RANDERS
from finsler_ext.tsne.attraction import attraction, edges_of, edges_to_new
from finsler_ext.tsne.exact import exact_repulsion, padded
from finsler_ext.tsne.gradient import (
    EXACT_BELOW,
    EXACT_UP_TO,
    FinslerGradient,
    check_dof,
    choose_method,
)
from finsler_ext.tsne.tree import build_octree, tree_repulsion


def directed_affinities(n, seed=0, share=0.4):
    rng = np.random.default_rng(seed)
    P = rng.random((n, n)) * (rng.random((n, n)) < share)
    np.fill_diagonal(P, 0.0)
    return P / P.sum()


def divergence(Y, P, omega, dof, space=RANDERS):
    """KL by its definition, from the directed distances of all ordered pairs."""
    F = space.distances(Y, omega)
    w = (1 + F**2 / dof) ** (-(dof + 1) / 2)
    np.fill_diagonal(w, 0.0)
    used = P > 0
    return (P[used] * np.log(P[used] * w.sum() / w[used])).sum()


def numerical_gradient(Y, function, h=1e-5):
    gradient = np.empty_like(Y)
    for at in np.ndindex(*Y.shape):
        moved = [Y.copy(), Y.copy()]
        moved[0][at] += h
        moved[1][at] -= h
        gradient[at] = (function(moved[0]) - function(moved[1])) / (2 * h)
    return gradient


@pytest.mark.parametrize(
    ("space", "omega"),
    [(RANDERS, w) for w in (0.0, 0.3, 0.5, 0.95)] + [(MATSUMOTO, w) for w in (0.0, 0.3, 0.49)],
)
@pytest.mark.parametrize("dof", [0.5, 1, 2, 3])
def test_exact_gradient_is_that_of_the_divergence(dof, space, omega):
    for m in (1, 2, 3, 4):
        Y = 2 * np.random.default_rng(m).normal(size=(12, m))
        P = directed_affinities(12, seed=m)
        error, gradient = FinslerGradient(omega, "exact", space)(
            Y, scipy.sparse.csr_matrix(P), dof=dof, should_eval_error=True
        )
        expected = numerical_gradient(Y, lambda Y, P=P: divergence(Y, P, omega, dof, space))
        assert error == pytest.approx(divergence(Y, P, omega, dof, space), abs=1e-12)
        assert np.abs(4 * gradient - expected).max() < 1e-6 * np.abs(expected).max()


@pytest.mark.parametrize("method", ["exact", "bh"])
def test_forces_sum_to_zero(method):
    Y = np.random.default_rng(0).normal(size=(200, 3))
    P = scipy.sparse.csr_matrix(directed_affinities(200))
    _, gradient = FinslerGradient(0.6, method)(Y, P, bh_params={"theta": 0.0})
    assert np.abs(gradient.sum(axis=0)).max() < 1e-6 * np.abs(gradient).sum()


@pytest.mark.parametrize("omega", [0.2, 0.9])
def test_a_flat_symmetric_layout_feels_no_drift(omega):
    flat = np.random.default_rng(0).normal(size=(40, 2))
    P = directed_affinities(40)
    P = scipy.sparse.csr_matrix((P + P.T) / 2)
    _, euclidean = FinslerGradient(0.0, "exact")(flat, P)
    _, gradient = FinslerGradient(omega, "exact")(np.column_stack([flat, np.zeros(40)]), P)
    assert gradient[:, :2] == pytest.approx(euclidean, abs=1e-12)
    assert gradient[:, 2] == pytest.approx(0.0, abs=1e-12)


def test_reversing_the_affinities_mirrors_the_height():
    Y = np.random.default_rng(0).normal(size=(40, 3))
    P = scipy.sparse.csr_matrix(directed_affinities(40))
    mirror = np.array([1, 1, -1])
    _, there = FinslerGradient(0.5, "exact")(Y, P, dof=2)
    _, back = FinslerGradient(0.5, "exact")(Y * mirror, scipy.sparse.csr_matrix(P.T), dof=2)
    assert back == pytest.approx(there * mirror, abs=1e-13)


def test_reversing_the_drift_mirrors_the_height():
    Y = np.random.default_rng(0).normal(size=(40, 3))
    mirror = np.array([1, 1, -1])
    edges = edges_of(scipy.sparse.csr_matrix(directed_affinities(40)), np.float64)
    pull, _ = attraction(Y, Y, edges, omega_norm=0.5, dof=1)
    flipped = Y * mirror
    against, _ = attraction(flipped, flipped, edges, omega_norm=-0.5, dof=1)
    assert against == pytest.approx(pull * mirror, abs=1e-13)
    Y, flipped = np.ascontiguousarray(Y.T), np.ascontiguousarray(flipped.T)
    _, push = exact_repulsion(Y, omega_norm=0.5, dof=1)
    _, against = exact_repulsion(flipped, omega_norm=-0.5, dof=1)
    assert against == pytest.approx(push * mirror[:, None], abs=1e-13)


@pytest.mark.parametrize("dof", [1.0, 2.0, 3.0])
def test_without_drift_it_is_the_gradient_of_opentsne(dof):
    """openTSNE's kernel is (1 + d²/a)^−a: a = (ν + 1)/2, on a layout scaled by √(a/ν)."""
    Y = np.random.default_rng(0).normal(size=(60, 2))
    P = directed_affinities(60)
    P = scipy.sparse.csr_matrix((P + P.T) / 2)
    upstream_dof = (dof + 1) / 2
    zoom = np.sqrt(upstream_dof / dof)
    error, gradient = kl_divergence_bh(
        Y * zoom, P, dof=upstream_dof, bh_params={"theta": 0.0}, should_eval_error=True
    )
    ours, our_gradient = FinslerGradient(0.0, "exact")(Y, P, dof=dof, should_eval_error=True)
    # openTSNE adds a small constant inside its logarithms
    assert ours == pytest.approx(error, abs=1e-6)
    assert our_gradient == pytest.approx(zoom * gradient, abs=1e-9)


def layout(kind, n, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "blob":
        return rng.normal(size=(n, 3)) * n ** (1 / 3) * [0.5, 0.5, 0.2]
    centres = 20 * rng.normal(size=(20, 3))
    clusters = centres[rng.integers(20, size=n)] + 1.5 * rng.normal(size=(n, 3))
    if kind == "thin":
        return clusters * [1, 1, 0.05]
    return clusters * {"clusters": 1.0, "exaggerated": 1e-2, "initial": 1e-6}[kind]


@pytest.mark.parametrize("kind", ["blob", "clusters", "thin", "exaggerated", "initial"])
@pytest.mark.parametrize(("dof", "omega"), [(1, 0.0), (1, 0.5), (1, 0.9), (2, 0.5), (3, 0.5)])
def test_tree_is_within_half_a_percent_of_the_sum_over_all_pairs(kind, dof, omega):
    Y = layout(kind, 3000)
    for m in (1, 2, 3):
        part = np.ascontiguousarray(Y[:, -m:])
        value, force = exact_repulsion(np.ascontiguousarray(part.T), omega_norm=omega, dof=dof)
        tree = build_octree(padded(part, np.float32))
        near_value, near = tree_repulsion(tree, omega_norm=omega, dof=dof, theta=0.5)
        rows = [*range(m - 1), 2]
        assert np.linalg.norm(near[rows] - force) < 5e-3 * np.linalg.norm(force)
        assert near_value.sum() == pytest.approx(value.sum(), rel=5e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_closed_tree_is_exact(dtype):
    Y = layout("clusters", 400)
    value, force = exact_repulsion(np.ascontiguousarray(Y.T), omega_norm=0.7, dof=0.5)
    tree = build_octree(padded(Y, dtype))
    near_value, near = tree_repulsion(tree, omega_norm=0.7, dof=0.5, theta=0.0)
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    assert np.abs(near - force).max() < tolerance * np.abs(force).max()
    assert near_value == pytest.approx(value, rel=tolerance)
    assert near.dtype == dtype


def test_tree_keeps_coincident_points_apart():
    Y = np.zeros((500, 3))
    Y[400:] = np.random.default_rng(0).normal(size=(100, 3))
    value, force = exact_repulsion(np.ascontiguousarray(Y.T), omega_norm=0.5, dof=1)
    near_value, near = tree_repulsion(
        build_octree(padded(Y, np.float64)), omega_norm=0.5, dof=1, theta=0.2
    )
    assert near_value == pytest.approx(value, rel=1e-3)
    assert np.linalg.norm(near - force) < 1e-3 * np.linalg.norm(force)


def test_all_points_in_one_place_do_not_move():
    P = scipy.sparse.csr_matrix(directed_affinities(30))
    for method in ("exact", "bh"):
        for dof in (1, 2, 3, 0.7):
            _, gradient = FinslerGradient(0.5, method)(np.ones((30, 3)), P, dof=dof)
            assert not gradient.any()


def test_thread_count_does_not_change_a_bit():
    Y = layout("clusters", 6000)
    P = scipy.sparse.random(6000, 6000, 1e-3, format="csr", random_state=0)
    P = scipy.sparse.csr_matrix(P / P.sum())
    for method in ("bh", "exact"):
        one = FinslerGradient(0.5, method)(Y, P, n_jobs=1, should_eval_error=True)
        two = FinslerGradient(0.5, method)(Y, P, n_jobs=2, should_eval_error=True)
        assert one[0] == two[0]
        assert np.array_equal(one[1], two[1])


def test_edges_put_both_directions_side_by_side():
    P = scipy.sparse.csr_matrix(directed_affinities(30, share=0.2))
    dense = P.toarray()
    edges = edges_of(P, np.float64)
    row = np.repeat(np.arange(30), np.diff(edges.indptr))
    assert np.array_equal(edges.out, dense[row, edges.other])
    assert np.array_equal(edges.into, dense[edges.other, row])
    assert len(edges.out) == np.count_nonzero(dense + dense.T)
    merged = edges_of(P, np.float64, merged=True)
    assert np.array_equal(merged.out, edges.out + edges.into)
    unsorted = P[:, ::-1][:, ::-1]
    unsorted.has_sorted_indices = False
    assert np.array_equal(edges_of(unsorted, np.float64).out, edges.out)
    some = edges.some(np.array([4, 9]))
    assert np.array_equal(some.out, np.concatenate([edges.out[row == 4], edges.out[row == 9]]))


def test_exaggeration_in_place_is_noticed():
    Y = np.random.default_rng(0).normal(size=(30, 3))
    P = scipy.sparse.csr_matrix(directed_affinities(30))
    gradient = FinslerGradient(0.5)
    gradient(Y, P)
    P *= 12
    fresh = FinslerGradient(0.5)(Y, P)[1]
    assert np.array_equal(gradient(Y, P)[1], fresh)
    again = pickle.loads(pickle.dumps(gradient))
    assert np.array_equal(again(Y, P)[1], fresh)


@pytest.mark.parametrize("method", ["exact", "bh"])
def test_new_points_have_an_objective_of_their_own(method):
    """L_i = −Σ_j (p_ij ln w_ij + p_ji ln w_ji) + ln Σ_j W_ij, with half its gradient."""
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(300, 3)), rng.normal(size=(5, 3))
    P = rng.random((5, 600)) * (rng.random((5, 600)) < 0.2)
    P /= P.sum(axis=1, keepdims=True)

    def objective(new):
        step = old[None] - new[:, None]
        d, rise = np.sqrt((step**2).sum(-1)), 0.5 * step[..., -1]
        out, into = 1 / (1 + (d + rise) ** 2), 1 / (1 + (d - rise) ** 2)
        w, used = np.hstack([out, into]), P > 0
        entropy = (P[used] * np.log(P[used] / w[used])).sum()
        return entropy + np.log(w.sum(axis=1)).sum()

    error, gradient = FinslerGradient(0.5, method)(
        new,
        scipy.sparse.csr_matrix(P),
        bh_params={"theta": 0.1},
        reference_embedding=old,
        should_eval_error=True,
    )
    expected = numerical_gradient(new, objective)
    tolerance = 1e-6 if method == "exact" else 1e-3
    assert error == pytest.approx(objective(new), rel=tolerance)
    assert np.abs(2 * gradient - expected).max() < tolerance * np.abs(expected).max()


def test_one_block_of_columns_counts_half_in_each_direction():
    P = scipy.sparse.csr_matrix(np.array([[0.0, 1.0, 3.0]]))
    edges = edges_to_new(P, 3, np.float64)
    assert list(edges.other) == [1, 2]
    assert list(edges.out) == list(edges.into) == [0.5, 1.5]


def test_method_is_chosen_by_size_and_dimension():
    assert choose_method("auto", EXACT_BELOW - 1, 3) == "exact"
    assert choose_method("auto", EXACT_BELOW, 3) == "bh"
    assert choose_method("BH", 10, 2) == "bh"
    assert choose_method("auto", EXACT_UP_TO, 5) == "exact"
    with pytest.raises(ValueError, match="more than 3 dimensions"):
        choose_method("auto", EXACT_UP_TO + 1, 5)
    with pytest.raises(ValueError, match="more than 3 dimensions"):
        choose_method("bh", 100, 5)
    with pytest.raises(ValueError, match="negative_gradient_method"):
        choose_method("nothing", 100, 3)


@pytest.mark.parametrize("dof", [0, -1, np.nan, np.inf, "many", None])
def test_dof_must_be_positive(dof):
    with pytest.raises(ValueError, match="dof must be a positive number"):
        check_dof(dof)
