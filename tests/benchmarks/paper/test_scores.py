"""Scores of embeddings whose worth is known."""

import numpy as np
import pytest

from benchmarks.data import Dataset
from benchmarks.paper.methods import Embedded
from benchmarks.paper.problem import Problem, problem_of
from benchmarks.paper.scores import (
    SCORES,
    agreement_scores,
    degenerate,
    height_scores,
    height_spread,
    score,
    truth_scores,
)
from finsler_ext.geometry.randers import randers_distances

rng = np.random.default_rng(0)


def separate_classes(n_classes=3, size=20):
    labels = np.repeat(np.arange(n_classes), size)
    return 100.0 * np.eye(n_classes)[labels] + rng.normal(size=(len(labels), n_classes)), labels


def test_perfect_clusters():
    X, labels = separate_classes()
    found = score(Embedded(X), Problem(Dataset("classes", X, labels)))
    perfect = ("ami", "ari", "nmi", "homogeneity", "completeness", "v_measure", "fmi", "knn5",
               "linear", "knn15")  # fmt: skip
    assert {name: found[name] for name in perfect} == pytest.approx(dict.fromkeys(perfect, 1.0))
    assert found["silhouette"] > 0.9
    assert found["trust"] == pytest.approx(1.0)
    assert not {"ami_map", "sign", "density_height"} & set(found)


def test_a_height_is_left_out_of_the_map():
    X, labels = separate_classes()
    Y = np.column_stack([X, rng.normal(scale=1000.0, size=len(X))])
    found = score(Embedded(Y, has_height=True), Problem(Dataset("classes", X, labels)))
    assert found["ami_map"] == pytest.approx(1.0)
    assert found["ami"] < 0.5
    assert "density_axis" not in found


def test_a_flat_height_has_no_spread():
    Y = rng.normal(size=(400, 3)) * [3.0, 4.0, 0.5]
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0) * [3.0, 4.0, 0.5]
    assert height_spread(Y) == pytest.approx(0.5 / np.sqrt((9 + 16) / 2))
    assert height_spread(7 * Y) == pytest.approx(height_spread(Y))


def test_agreement_by_chance_is_nought():
    labels, found = np.repeat([0, 1], 500), np.tile([0, 1], 500)
    scores = agreement_scores(found, labels)
    assert scores["ami"] == pytest.approx(0.0, abs=1e-2)
    assert scores["ari"] == pytest.approx(0.0, abs=1e-2)


def test_classes_too_small_for_folds_have_no_accuracy():
    X = rng.normal(size=(40, 2))
    labels = np.r_[np.zeros(36, dtype=int), np.ones(4, dtype=int)]
    found = score(Embedded(X), Problem(Dataset("classes", X, labels)))
    assert "ami" in found
    assert not {"knn5", "linear"} & set(found)


def test_scores_are_known_to_the_tables():
    X, labels = separate_classes()
    assert set(score(Embedded(X), Problem(Dataset("classes", X, labels)))) <= set(SCORES)


# ------------------------------------------------------------------ degenerate layouts


def test_degenerate_layouts_are_named():
    good = rng.normal(size=(100, 2))
    assert degenerate(good) == ""
    holes = good.copy()
    holes[3, 0], holes[7] = np.nan, np.inf
    assert "2 rows are not finite" in degenerate(holes)
    assert "coincide" in degenerate(np.ones((100, 2)))
    outlier = 1e-6 * good
    outlier[0] = 1.0
    assert "thousandth" in degenerate(outlier)


def test_a_flat_height_is_not_degenerate():
    assert degenerate(np.column_stack([rng.normal(size=(50, 2)), np.zeros(50)])) == ""


# ------------------------------------------------------------------ what is known


@pytest.fixture
def disk():
    return problem_of("disk:100", None, 0)


def test_procrustes_of_a_turned_plane(disk):
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    places = 5.0 * disk.X @ turn + 3.0
    assert truth_scores(Embedded(places), places, disk)["procrustes"] == pytest.approx(0, abs=1e-9)
    tall = np.column_stack([places, rng.normal(size=len(places))])
    with_height = truth_scores(Embedded(tall, has_height=True), tall, disk)
    assert with_height["procrustes"] == pytest.approx(0, abs=1e-9)
    noise = rng.normal(size=places.shape)
    assert truth_scores(Embedded(noise), noise, disk)["procrustes"] > 0.8


def test_height_and_radius(disk):
    radius = disk.dataset.truth["radius"]
    Y = np.column_stack([disk.X, radius**3])
    found = truth_scores(Embedded(Y, has_height=True), Y, disk)
    assert found["height_radius"] == pytest.approx(1.0)
    assert "axis_radius" not in found
    down = np.column_stack([disk.X, -radius])
    assert truth_scores(Embedded(down, has_height=True), down, disk)["height_radius"] < -0.99
    plain = truth_scores(Embedded(disk.X), disk.X, disk)
    assert 0 <= plain["axis_radius"] < 0.5


def test_density_is_compared_with_the_local_scale(disk):
    Y = np.column_stack([disk.X, np.log(disk.spacing)])
    found = height_scores(Embedded(Y, has_height=True), Y, disk)
    assert found == {"density_height": pytest.approx(1.0)}


def test_unknown_truth_is_left_out():
    X = rng.normal(size=(40, 2))
    age = X[:, 0].copy()
    age[5] = np.nan
    Y = np.column_stack([X, X[:, 0]])
    problem = Problem(Dataset("cells", X, truth={"age": age}))
    found = truth_scores(Embedded(Y, has_height=True), Y, problem)
    assert found["height_age"] == pytest.approx(1.0)


@pytest.mark.parametrize(("level", "tau"), [([0, 1, 2, 3, 4], 1.0), ([4, 3, 2, 1, 0], -1.0),
                                            ([1, 0, 2, 3, 4], 0.8)])  # fmt: skip
def test_order_of_heights(level, tau):
    problem = problem_of("clusters:120", None, 0)
    labels = problem.dataset.labels
    Y = np.column_stack([problem.X[:, :2], np.array(level, dtype=float)[labels]])
    found = truth_scores(Embedded(Y, has_height=True), Y, problem)
    assert found["height_order"] == pytest.approx(tau)
    assert "height_order" not in truth_scores(Embedded(Y), Y, problem)


# ------------------------------------------------------------------ directed distances


def test_a_model_that_returns_the_distances_explains_all_of_them():
    places = rng.normal(size=(30, 3))
    D = randers_distances(places, 0.3)
    problem = Problem(Dataset("directed", D, metric="precomputed"))
    found = height_scores(Embedded(places, True, distances=lambda: D), places, problem)
    assert found == pytest.approx({"explained": 1.0, "sign": 1.0})
    backwards = height_scores(Embedded(places, True, distances=lambda: D.T), places, problem)
    assert backwards == pytest.approx({"explained": -3.0, "sign": 0.0})
    middle = height_scores(Embedded(places, distances=lambda: (D + D.T) / 2), places, problem)
    assert middle == pytest.approx({"explained": 0.0})
