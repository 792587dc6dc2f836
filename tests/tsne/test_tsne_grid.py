"""The grid against the sum over all pairs, and against its own symmetries."""

from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse

from finsler_ext.tsne import gradient as tsne_gradient
from finsler_ext.tsne import opentsne
from finsler_ext.tsne.affinity import DirectedPerplexity
from finsler_ext.tsne.exact import exact_repulsion
from finsler_ext.tsne.gradient import (
    EXACT_BELOW,
    GRID_FROM,
    GRID_NODES_PER_POINT,
    FinslerGradient,
    choose_method,
)
from finsler_ext.tsne.grid import grid_repulsion, kernel_transform, plan_grid

SPACES = [*((1, omega) for omega in (0.0, 0.5, 0.9, 0.95)), *((dof, 0.5) for dof in (0.5, 2, 3))]
SPACES += [(0.5, 0.0), (3, 0.95)]
KINDS = ("blob", "clusters", "thin", "tight", "tiny", "initial", "outlier", "far apart")


def layout(kind, n, m=2, seed=0):
    """Positions of shape (m, n), the height last."""
    rng = np.random.default_rng(seed)
    if kind == "blob":
        Y = rng.normal(size=(2, n)) * np.sqrt(n) * [[0.5], [0.2]]
    elif kind == "far apart":
        Y = rng.uniform(-5, 5, size=(2, n)) * np.sqrt(n)
    else:
        centres = 20 * rng.normal(size=(2, 20))
        Y = centres[:, rng.integers(20, size=n)]
        # exaggeration draws clusters together to a fraction of the kernel's length
        Y += (0.05 if kind == "tight" else 1.5) * rng.normal(size=(2, n))
    if kind == "thin":
        Y[1] *= 0.05
    if kind == "outlier":
        Y[:, 0] = 200, -150
    Y *= {"tight": 0.5, "tiny": 1e-2, "initial": 1e-6}.get(kind, 1.0)
    return np.ascontiguousarray(Y[2 - m :])


def by_grid(Y, omega, dof, n_threads=1, transform=kernel_transform, **settings):
    space = {"omega_norm": omega, "dof": dof}
    plan = plan_grid(Y, **space, **settings)
    return grid_repulsion(Y, plan, **space, n_threads=n_threads, transform=transform)


def off(near, exact):
    return np.linalg.norm(near - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dof", "omega"), SPACES)
def test_grid_is_within_half_a_percent_of_the_sum_over_all_pairs(kind, dof, omega):
    for m in (1, 2):
        Y = layout(kind, 300 if kind == "far apart" else 1000, m)
        value, force = exact_repulsion(Y, omega_norm=omega, dof=dof)
        near_value, near = by_grid(Y, omega, dof)
        assert off(near, force) < 5e-3
        assert near_value.sum() == pytest.approx(value.sum(), rel=1e-3)
        # no force from within
        assert np.abs(near.sum(axis=1)).max() < 1e-3 * np.abs(near).sum()


def test_single_precision_is_enough_for_many_points():
    Y = layout("clusters", 20_000)
    assert plan_grid(Y, omega_norm=0.5, dof=1).single
    value, force = exact_repulsion(Y, omega_norm=0.5, dof=1, n_threads=2)
    near_value, near = by_grid(Y, 0.5, 1)
    assert off(near, force) < 1e-3
    assert near_value == pytest.approx(value, rel=1e-3)


def test_finer_nodes_are_more_accurate():
    Y = layout("blob", 800)
    _, force = exact_repulsion(Y, omega_norm=0.5, dof=1)
    errors = [off(by_grid(Y, 0.5, 1, n_interpolation_points=k)[1], force) for k in (1, 2, 3)]
    assert all(a > 3 * b for a, b in pairwise(errors))
    wide = by_grid(Y, 0.5, 1, n_interpolation_points=6, ints_in_interval=2.0)
    assert np.array_equal(wide[1], by_grid(Y, 0.5, 1)[1])


def test_small_layouts_have_as_many_nodes_as_asked_for():
    Y = layout("tiny", 200)
    for least in (10, 50, 200):
        plan = plan_grid(Y, omega_norm=0.5, dof=1, min_num_intervals=least)
        sides = np.ptp(Y, axis=1) / plan.spacing
        assert least <= sides.max() <= 2 * least
        assert not plan.single


def test_one_point_alone_feels_nothing():
    """The splines' own share of a point is off by up to 6e-3, but it is taken out as it is."""
    Y = np.array([[0.0, 61.23], [0.0, 37.31]])
    value, force = exact_repulsion(Y, omega_norm=0.5, dof=1)
    near_value, near = by_grid(Y, 0.5, 1)
    assert near_value == pytest.approx(value, abs=2e-6)
    assert near == pytest.approx(force, abs=2e-6)


def test_thread_count_and_earlier_steps_do_not_change_a_bit():
    transform = lru_cache(maxsize=4)(kernel_transform)
    for kind in ("clusters", "tiny", "blob"):
        for m in (1, 2):
            Y = layout(kind, 9000, m)
            first = by_grid(Y, 0.5, 1)
            for n_threads in (1, 2, 3):
                again = by_grid(Y, 0.5, 1, n_threads, transform)
                assert np.array_equal(first[0], again[0])
                assert np.array_equal(first[1], again[1])


def gradient_of(method, Y, P, **more):
    return FinslerGradient(0.5, method)(Y, P, should_eval_error=True, **more)


def affinities(n):
    P = scipy.sparse.random(n, n, 5 / n, format="csr", random_state=0)
    return scipy.sparse.csr_matrix(P / P.sum())


def test_gradient_of_the_divergence():
    P, Y = affinities(3000), layout("clusters", 3000).T
    settings = {"n_interpolation_points": 3, "min_num_intervals": 50, "ints_in_interval": 1}
    error, gradient = gradient_of("fft", Y, P, fft_params=settings)
    exact_error, exact = gradient_of("exact", Y, P)
    assert off(gradient, exact) < 5e-3
    assert error == pytest.approx(exact_error, rel=1e-5)
    two = gradient_of("fft", Y, P, n_jobs=2)
    assert two[0] == error
    assert np.array_equal(two[1], gradient)


def test_a_layout_too_large_for_a_grid_is_left_to_the_tree():
    P, Y = affinities(2000), layout("clusters", 2000).T
    Y[0] = 1e5, 1e5
    gradient = FinslerGradient(0.5, "fft")
    _, step = gradient(Y, P)
    assert gradient.used == {"bh": 1}
    assert np.array_equal(step, FinslerGradient(0.5, "bh")(Y, P)[1])
    Y[0] = 1e15, 1e15
    gradient(Y, P)
    Y[0] = 0
    gradient(Y, P)
    assert gradient.used == {"bh": 2, "fft": 1}


def test_auto_leaves_a_wide_layout_to_the_tree(monkeypatch):
    monkeypatch.setitem(tsne_gradient.GRID_FROM, 2, 2000)
    P, Y = affinities(2000), layout("clusters", 2000).T
    gradient = FinslerGradient(0.5, "auto")
    gradient(Y, P)
    gradient(0.1 * Y, P)
    assert gradient.used == {"bh": 1, "fft": 1}
    assert plan_grid(Y.T, omega_norm=0.5, dof=1).size > 2000 * GRID_NODES_PER_POINT


def test_points_in_one_place_do_not_move():
    P = affinities(40)
    for scale in (0.0, 1e-200):
        Y = scale * layout("blob", 40).T
        _, gradient = FinslerGradient(0.5, "fft")(Y, P)
        assert not gradient.any()


def test_new_points_are_placed_by_the_tree():
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(300, 2)), rng.normal(size=(5, 2))
    P = scipy.sparse.csr_matrix(rng.random((5, 600)))
    gradient = FinslerGradient(0.5, "fft")
    assert np.array_equal(
        gradient(new, P, reference_embedding=old)[1],
        FinslerGradient(0.5, "bh")(new, P, reference_embedding=old)[1],
    )
    assert gradient.used == {"bh": 1}


def test_grid_is_within_half_a_percent_after_early_exaggeration():
    """Tight clusters, whose forces on themselves must cancel, between weak forces of others."""
    rng = np.random.default_rng(0)
    X = 4 * rng.normal(size=(20, 20))[rng.integers(20, size=2000)] + rng.normal(size=(2000, 20))
    for m in (1, 2):
        model = opentsne.OpenFinslerTSNE(m, random_state=0, negative_gradient_method="fft")
        embedding = model.prepare_initial(X)
        for _ in range(3):
            embedding.optimize(50, exaggeration=12, inplace=True)
            Y = np.ascontiguousarray(np.asarray(embedding).T, dtype=np.float64)
            value, force = exact_repulsion(Y, omega_norm=0.5, dof=1)
            near_value, near = by_grid(Y, 0.5, 1)
            assert off(near, force) < 5e-3
            assert near_value.sum() == pytest.approx(value.sum(), rel=1e-3)
    # wide layouts have the closer nodes only while exaggeration lasts
    Y *= 4
    _, force = exact_repulsion(Y, omega_norm=0.5, dof=1)
    assert plan_grid(Y, omega_norm=0.5, dof=1).size < 2e6
    assert off(by_grid(Y, 0.5, 1, tight=True)[1], force) < 5e-3


def test_final_divergence_is_that_of_exact_descent():
    rng = np.random.default_rng(0)
    X = 4 * rng.normal(size=(10, 20))[rng.integers(10, size=1000)] + rng.normal(size=(1000, 20))
    given = DirectedPerplexity(X, 30, random_state=0)
    judge = FinslerGradient(0.5, "exact")
    ends = {}
    for method in ("exact", "fft"):
        model = opentsne.OpenFinslerTSNE(2, random_state=0, negative_gradient_method=method)
        Y = np.asarray(model.fit(X, affinities=given))
        ends[method], _ = judge(Y, given.P, should_eval_error=True)
    assert ends["fft"] == pytest.approx(ends["exact"], rel=5e-3)


def test_method_is_chosen_by_measured_cost():
    for m, least in GRID_FROM.items():
        assert choose_method("auto", least, m) == "fft"
        assert choose_method("auto", least - 1, m) == "bh"
        assert choose_method("auto", EXACT_BELOW - 1, m) == "exact"
    assert choose_method("auto", 10**6, 3) == "bh"
    for name in ("fft", "FFT", "interpolation"):
        assert choose_method(name, 10, 2) == "fft"
    for m in (3, 5):
        with pytest.raises(ValueError, match=r"negative_gradient_method='fft'.*Use 'auto'"):
            choose_method("fft", 100, m)


@pytest.mark.filterwarnings("ignore:With omega_norm:UserWarning")  # after two iterations
def test_verbose_says_which_method(capsys, monkeypatch):
    monkeypatch.setitem(tsne_gradient.GRID_FROM, 2, EXACT_BELOW)
    X = np.random.default_rng(0).normal(size=(EXACT_BELOW, 4))
    model = opentsne.OpenFinslerTSNE(
        2, perplexity=5, early_exaggeration_iter=2, n_iter=2, random_state=0, verbose=True
    )
    model.fit(X)
    assert "Gradient: fft" in capsys.readouterr().out
    # the start fits into fewer nodes than the end
    monkeypatch.setattr(tsne_gradient, "GRID_NODES_PER_POINT", 30)
    model.set_params(n_iter=100).fit(X)
    assert " by fft, " in (out := capsys.readouterr().out)
    assert " by bh, " in out


@pytest.mark.parametrize(
    "settings", [{"n_interpolation_points": 0}, {"ints_in_interval": 0}, {"min_num_intervals": 0}]
)
def test_settings_of_the_grid_must_be_positive(settings):
    with pytest.raises(ValueError, match="n_interpolation_points"):
        plan_grid(layout("blob", 20), omega_norm=0.5, dof=1, **settings)
