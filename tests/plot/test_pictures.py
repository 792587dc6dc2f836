"""Pictures: dots lie where the embedding is, texts do not overlap, legends leave the data free."""

import itertools
import sys
from copy import copy

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP
from finsler_ext.metrics import skew_fidelity, skew_pairs
from finsler_ext.plot import dots, plot_3d, plot_asymmetry, plot_map, plot_profile
from finsler_ext.plot.inputs import magnification, read_shown


@pytest.fixture(scope="module")
def model(few_digits):
    return FinslerUMAP(random_state=0, n_epochs=100).fit(few_digits[0])


@pytest.fixture(scope="module")
def cloud():
    return np.random.default_rng(0).normal(size=(300, 3)) * [4, 2, 1]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def scattered(ax):
    parts = [np.asarray(c.get_offsets()) for c in ax.collections if isinstance(c, PathCollection)]
    return np.concatenate(parts)


def boxes(figure):
    figure.draw_without_rendering()
    axes = [axis for ax in figure.axes for axis in ax._axis_map.values()]
    ticks = {tick for axis in axes for tick in axis.get_major_ticks() + axis.get_minor_ticks()}
    unseen = ticks - {tick for axis in axes for tick in axis._update_ticks()}
    unseen_texts = {text for tick in unseen for text in (tick.label1, tick.label2)}
    texts = [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
    texts = [t for t in texts if t not in unseen_texts]
    return [(t.get_text(), t.get_window_extent()) for t in texts]


def overlapping(shown):
    return [
        (a, b)
        for (a, box), (b, other) in itertools.combinations(shown, 2)
        if box.x0 < other.x1 - 1
        and other.x0 < box.x1 - 1
        and box.y0 < other.y1 - 1
        and other.y0 < box.y1 - 1
    ]


def test_dots_lie_on_the_map_and_show_the_height(cloud):
    ax = plot_map(cloud)
    assert scattered(ax) == pytest.approx(cloud[:, :2])
    (shown,) = (c for c in ax.collections if isinstance(c, PathCollection))
    assert np.asarray(shown.get_array()) == pytest.approx(cloud[:, 2])
    assert ax.get_aspect() == 1
    assert ax.figure.axes[-1].get_ylabel() == "height"


def test_estimators_arrays_and_frames_give_one_picture(model):
    embedding = model.embedding_
    frame = pd.DataFrame(embedding, columns=["x", "y", "height"]).assign(row=range(200))[
        ["row", "height", "x", "y"]
    ]
    for given in (embedding, frame, list(map(list, embedding))):
        assert scattered(plot_map(given)) == pytest.approx(scattered(plot_map(model)), abs=1e-6)


def test_rows_without_a_place_are_left_out(cloud):
    cloud = cloud.copy()
    cloud[7] = np.nan
    labels = np.arange(300) % 3
    ax = plot_map(cloud, color=labels)
    assert len(scattered(ax)) == 299
    assert scattered(plot_profile(cloud)) == pytest.approx(np.delete(cloud, 7, axis=0)[:, [0, 2]])


def test_categories_are_drawn_apart_with_names_outside(cloud):
    names = np.array(["one", "two", "three"])[np.arange(300) % 3]
    ax = plot_map(cloud, color=pd.Series(names, name="count"))
    legend = ax.get_legend()
    assert legend.get_title().get_text() == "count"
    assert [t.get_text() for t in legend.get_texts()] == ["one", "three", "two"]
    ax.figure.draw_without_rendering()
    assert legend.get_window_extent().x0 >= ax.get_window_extent().x1
    parts = [c.get_offsets() for c in ax.collections if isinstance(c, PathCollection)]
    assert np.asarray(parts[0]) == pytest.approx(cloud[names == "one", :2])


def test_whole_numbers_are_categories_while_they_are_few(cloud):
    assert plot_map(cloud, color=np.arange(300) % 11).get_legend() is not None
    assert plot_map(cloud, color=np.arange(300)).get_legend() is None
    order = [t.get_text() for t in plot_map(cloud, color=np.arange(300) % 11).get_legend().texts]
    assert order == [str(c) for c in range(11)]


def grey(color):
    return float(np.dot(to_rgb(color), [0.2126, 0.7152, 0.0722]))


def test_categories_can_be_told_apart_in_grey():
    looks = [(dots.MARKS[c % len(dots.MARKS)], grey(dots.COLORS[c])) for c in range(10)]
    for (mark, light), (other_mark, other) in itertools.combinations(looks, 2):
        assert mark != other_mark or abs(light - other) > 0.1


@pytest.mark.parametrize("n", [11, 30, 60])
def test_many_categories_have_as_many_colours(n):
    assert len(set(dots.palette(n))) == n


def drawings(model, digit):
    long = np.array([f"a rather long name of a category {c}" for c in np.arange(len(digit)) % 50])
    yield "map", plot_map(model)
    yield "labels", plot_map(model, color=digit, label="digit")
    yield "long labels", plot_map(model, color=long)
    yield "profile", plot_profile(model)
    yield "against scale", plot_profile(model, "local_scale", color=digit)
    yield "3d", plot_3d(model)
    yield "3d labels", plot_3d(model, color=digit)
    yield "asymmetry", plot_asymmetry(model)


def test_no_text_overlaps_another(model, few_digits):
    for name, ax in drawings(model, few_digits[1]):
        shown = boxes(ax.figure)
        assert not overlapping(shown), name
        assert len(shown) > 1, name


def test_no_text_is_cut_off(model, few_digits):
    for name, ax in drawings(model, few_digits[1]):
        whole = ax.figure.bbox
        shown = boxes(ax.figure)
        if hasattr(ax, "zaxis"):  # its numbers get their places only when they are rendered
            legend = ax.get_legend()
            shown = [] if legend is None else [("legend", legend.get_window_extent())]
        for text, box in shown:
            assert min(box.x0, box.y0) >= -1, (name, text)
            assert box.x1 <= whole.x1 + 1, (name, text)
            assert box.y1 <= whole.y1 + 1, (name, text)


def test_profile_is_magnified_and_says_so():
    flat = np.random.default_rng(0).uniform(-1, 1, size=(500, 3)) * [10, 10, 0.5]
    ax = plot_profile(flat, 1)
    times = magnification(read_shown(flat, "test"))
    assert times * np.ptp(flat[:, 2]) >= 0.3 * np.ptp(flat[:, :2], axis=0).max()
    assert ax.get_aspect() == times > 1
    assert f"{times} times" in ax.get_ylabel()
    assert scattered(ax) == pytest.approx(flat[:, [1, 2]])
    assert plot_profile(flat, magnify=1).get_aspect() == 1


def test_profile_against_values(cloud):
    values = np.arange(300.0)
    ax = plot_profile(cloud, values)
    assert scattered(ax) == pytest.approx(np.column_stack([values, cloud[:, 2]]))
    assert ax.get_aspect() == "auto"


def test_3d_has_one_scale(cloud):
    ax = plot_3d(cloud, magnify=1)
    box = np.asarray(ax._box_aspect)
    assert box / box[0] == pytest.approx(np.ptp(cloud, axis=0) / np.ptp(cloud[:, 0]))


@pytest.fixture(scope="module")
def crowd():
    return np.random.default_rng(0).normal(size=(dots.MANY + 1, 3)) * [2, 1, 1]


def fullest_pixel(image, x, y):
    """The pixel with most points, which points lie in it, and how many points lie in each."""
    left, right, bottom, top = image.get_extent()
    rows, columns = np.asarray(image.get_array()).shape[:2]
    column = np.clip(((x - left) / (right - left) * columns).astype(int), 0, columns - 1)
    row = np.clip(((y - bottom) / (top - bottom) * rows).astype(int), 0, rows - 1)
    count = np.zeros((rows, columns), int)
    np.add.at(count, (row, column), 1)
    fullest = np.unravel_index(count.argmax(), count.shape)
    return fullest, (row == fullest[0]) & (column == fullest[1]), count


def test_many_points_become_an_image_of_mean_heights(crowd):
    pytest.importorskip("datashader")
    ax = plot_map(crowd)
    assert not any(isinstance(c, PathCollection) for c in ax.collections)
    (image,) = ax.images
    pixels = np.asarray(image.get_array()) / 255
    fullest, there, count = fullest_pixel(image, *crowd[:, :2].T)
    norm = ax.figure.axes[-1]._colorbar.norm
    expected = plt.get_cmap("viridis")(norm(crowd[there, 2].mean()))
    assert pixels[fullest][:3] == pytest.approx(expected[:3], abs=0.01)
    assert (pixels[count == 0, 3] == 0).all()
    assert (pixels[count > 0, 3] > 0.3).all()
    assert pixels[fullest][3] == 1
    # square pixels, so that distances on the map are true
    rows, columns = count.shape
    left, right, bottom, top = image.get_extent()
    assert (right - left) / columns == pytest.approx((top - bottom) / rows, rel=0.01)


def test_many_points_mix_the_colours_of_categories(crowd):
    pytest.importorskip("datashader")
    upper = np.random.default_rng(1).uniform(size=len(crowd)) < 0.3
    ax = plot_map(crowd, color=upper)
    (image,) = ax.images
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["False", "True"]
    fullest, there, count = fullest_pixel(image, *crowd[:, :2].T)
    first, second = (np.array(to_rgb(color)) for color in dots.COLORS[:2])
    share = upper[there].mean()
    assert 0 < share < 1
    pixels = np.asarray(image.get_array()) / 255
    mixed = share * second + (1 - share) * first
    assert pixels[fullest][:3] == pytest.approx(mixed, abs=0.01)
    assert ((pixels[..., 3] > 0) == (count > 0)).all()


def test_many_points_without_values_are_grey(crowd):
    pytest.importorskip("datashader")
    values = np.where(crowd[:, 0] > 0, crowd[:, 1], np.nan)
    (image,) = plot_profile(crowd, color=values).images
    pixels = np.asarray(image.get_array())
    left, right, *_ = image.get_extent()
    without = pixels[:, : int(pixels.shape[1] * (-left) / (right - left)) - 1]
    grey = np.round(255 * np.array(to_rgb(dots.NO_VALUE)))
    assert (without[without[..., 3] > 0][:, :3] == grey).all()


def test_many_equal_points_are_drawn():
    pytest.importorskip("datashader")
    (image,) = plot_map(np.zeros((dots.MANY + 1, 3))).images
    assert (np.asarray(image.get_array())[..., 3] > 0).sum() == 1


def test_many_points_without_datashader_name_the_extra(crowd, monkeypatch):
    monkeypatch.setitem(sys.modules, "datashader", None)
    with pytest.raises(ImportError, match=r"finsler_ext\[large\]"):
        plot_map(crowd)


def test_points_without_values_are_grey(cloud):
    values = np.where(np.arange(300) % 2, cloud[:, 0], np.nan)
    for ax in (plot_map(cloud, color=values), plot_3d(cloud, color=values)):
        shown = ax.collections[0]
        ax.figure.draw_without_rendering()
        grey = np.isclose(shown.get_facecolor()[:, :3], to_rgb(dots.NO_VALUE)).all(axis=1)
        assert grey.sum() == 150
        assert len(grey) == 300


def estimators(X):
    height = X[:60, 20]
    step = height - height[:, None]
    D = np.abs(step) + 0.4 * step + np.linalg.norm(X[:60, None, :3] - X[:60, :3], axis=2)
    symmetric = np.linalg.norm(X[:, None] - X, axis=2)
    short = {"random_state": 0, "early_exaggeration_iter": 50, "n_iter": 50}
    yield FinslerUMAP(random_state=0, n_epochs=100).fit(X)
    yield FinslerUMAP(random_state=0, n_epochs=100, metric="precomputed").fit(symmetric)
    yield FinslerUMAP(random_state=0, n_epochs=100, metric="precomputed").fit(D)
    yield FinslerUMAP(random_state=0, n_epochs=100, unique=True).fit(np.vstack([X, X[:50]]))
    yield FinslerTSNE(**short).fit(X)
    yield FinslerTSNE(metric="precomputed", **short).fit(symmetric)
    yield FinslerMDS().fit(X)
    yield FinslerMDS(metric="precomputed").fit(D)


@pytest.mark.filterwarnings("ignore:With omega_norm:UserWarning")
@pytest.mark.filterwarnings("ignore:perplexity:UserWarning")
@pytest.mark.filterwarnings("ignore:Much of the asymmetry:UserWarning")
def test_asymmetry_says_what_the_models_say(few_digits):
    for model in estimators(few_digits[0].astype(np.float64)):
        title = plot_asymmetry(model).get_title()
        fidelity = model.skew_fidelity_
        assert f"{fidelity.sign:.0%} of the pairs" in title, model
        assert f"correlation {fidelity.rank:.2f}" in title, model


def test_asymmetry_of_pairs_held_out(model, cloud):
    """Noise fits the data it was made from; the other half of the data tells."""
    ax = plot_asymmetry(model, held_out=True)
    assert said(ax) == model.evidence_.title
    assert ax.get_xlabel() == "one half of the data"
    with pytest.raises(ValueError, match="held_out=True needs a fitted estimator"):
        plot_asymmetry(cloud, held_out=True)


def test_unsure_heights_are_pale_and_few_heights_have_errors(model):
    unsure = model.height_unsure_
    dots = plot_map(model).collections[0]
    assert 0 < unsure.mean() < 1
    assert (dots.get_alpha() < 1).tolist() == unsure.tolist()
    side = plot_profile(model)
    bars = side.collections[-1].get_segments()
    assert len(bars) == len(unsure)
    low, high = bars[0][:, 1]
    assert high - low == pytest.approx(2 * 1.645 * model.height_error_[0], rel=1e-3)


def words(model):
    return plot_map(model).figure.axes[-1].get_ylabel()


def test_the_height_is_named_after_what_it_shows(few_digits, cloud):
    X = few_digits[0][:100].astype(np.float64)
    step = X[:, 20] - X[:, 20, None]
    D = np.abs(step) + 0.4 * step + np.linalg.norm(X[:, None, :3] - X[:, :3], axis=2)
    costly, scaled = "height: costly to reach is high", "height: large local scale is high"
    quick = {"random_state": 0, "n_epochs": 30, "metric": "precomputed"}
    assert words(cloud) == "height"
    dense = FinslerUMAP(random_state=0, n_epochs=30).fit(X)
    assert words(dense).startswith("height: sparse above dense")
    assert words(FinslerMDS(metric="precomputed").fit(D)).startswith(costly)
    assert words(FinslerUMAP(**quick).fit(D)).startswith(costly)
    given = FinslerUMAP(random_state=0, n_epochs=30, local_scale=1 + X[:, 20]).fit(X)
    assert words(given) == scaled
    late = plot_map(cloud, height_label="height: late below early")
    assert late.figure.axes[-1].get_ylabel() == "height: late below early"


def said(ax):
    return " ".join(ax.get_title().split())


def test_every_picture_says_how_far_to_trust_its_height(model, cloud):
    for draw in (plot_map, plot_profile, plot_3d):
        assert said(draw(model)).startswith(model.evidence_.title), draw
        assert said(draw(cloud)) == ""
    doubtful = copy(model)
    doubtful.evidence_ = model.evidence_._replace(p_value=0.5)
    doubtful.islands_ = model.islands_._replace(n_parts=2, reason="no law")
    title = said(plot_map(doubtful))
    assert "no more than chance: do not read the height (p = 0.5)" in title
    assert "do not compare across gaps" in title
    doubtful.omega_norm_ = 0.0
    assert "no drift" in said(plot_map(doubtful))


def test_pairs_in_the_shaded_quarters_are_the_sign(model):
    data, shown = skew_pairs(model.embedding_, graph=model.graph_, local_scale=model.local_scale_)
    unequal = (data != 0) & (shown != 0)
    assert np.mean((data * shown > 0)[unequal]) == pytest.approx(model.skew_fidelity_.sign)


def test_asymmetry_of_directed_distances():
    height = np.random.default_rng(0).normal(size=60)
    flat = np.zeros((60, 2))
    D = np.abs(height[:, None] - height) + 0.5 * (height - height[:, None])
    ax = plot_asymmetry(np.column_stack([flat, height]), distances=D, omega_norm=0.5)
    assert "100% of the pairs" in ax.get_title()
    assert "explained 100%" in ax.get_title()


def test_asymmetry_of_nothing_says_so():
    ax = plot_asymmetry(np.eye(5), distances=np.ones((5, 5)))
    assert "no asymmetry" in ax.get_title()
    assert skew_fidelity(np.eye(5), distances=np.ones((5, 5))).reason


def test_the_axes_given_are_used(cloud):
    _, axes = plt.subplots(1, 3)
    for ax, draw in zip(axes, (plot_map, plot_profile), strict=False):
        assert draw(cloud, ax=ax) is ax
    distances = np.abs(np.subtract.outer(cloud[:, 0], 1.1 * cloud[:, 0]))
    assert plot_asymmetry(cloud, distances=distances, ax=axes[2]) is axes[2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda Y: plot_map(Y[:, :1]), "at least 2 columns"),
        (lambda Y: plot_map(FinslerUMAP()), "not fitted"),
        (lambda Y: plot_map(Y, color=[1, 2]), "one entry per row"),
        (lambda Y: plot_map(Y, color="species"), "species"),
        (lambda Y: plot_map(Y, color="local_scale"), "fitted estimator"),
        (lambda Y: plot_map(Y * np.nan), "no row without nan"),
        (lambda Y: plot_map([["a", "b", "c"]]), "numbers"),
        (lambda Y: plot_profile(Y, 2), "map columns 0 to 1"),
        (lambda Y: plot_profile(Y, np.array(["a"] * len(Y))), "categories as color"),
        (lambda Y: plot_3d(Y, ax=plt.subplots()[1]), "three-dimensional"),
        (lambda Y: plot_asymmetry(Y), "needs a fitted estimator"),
    ],
)
def test_errors_name_the_way_out(call, message, cloud):
    with pytest.raises(ValueError, match=message):
        call(cloud)


@pytest.fixture(scope="module")
def roads():
    """README's model of two columns."""
    nx = pytest.importorskip("networkx")
    graph = nx.DiGraph()
    edges = [("station", "market", 6), ("market", "station", 5), ("market", "castle", 15)]
    edges += [("castle", "market", 6), ("station", "castle", 19), ("castle", "station", 8)]
    graph.add_weighted_edges_from(edges)
    return FinslerMDS(2, metric="precomputed", omega_norm="auto", random_state=0).fit(graph)


def test_two_columns_are_drawn_with_the_names_of_few_points(roads):
    """plot_map refused README's own model, and no plot printed names."""
    ax = plot_map(roads)
    assert np.array_equal(scattered(ax), roads.embedding_)
    assert ax.get_ylabel().startswith("height")
    for picture in (ax, plot_profile(roads)):
        names = {text.get_text(): text.xy for text in picture.texts}
        assert set(names) == {"station", "market", "castle"}
        for name, place in names.items():
            (row,) = np.flatnonzero(roads.node_names_ == name)
            assert place == pytest.approx(tuple(roads.embedding_[row]))


def test_names_of_many_points_are_left_out(cloud):
    many = copy(FinslerUMAP())
    many.embedding_, many.node_names_ = cloud, np.arange(300).astype(str)
    assert not plot_map(many).texts
    many.embedding_, many.node_names_ = cloud[:50], many.node_names_[:50]
    assert len(plot_map(many).texts) == 50


def test_without_a_drift_the_colour_is_the_potential(few_digits):
    flat = FinslerUMAP(omega_norm=0.0, random_state=0, n_epochs=10).fit(few_digits[0])
    ax = plot_map(flat)
    (dots_drawn,) = [c for c in ax.collections if isinstance(c, PathCollection)]
    assert np.asarray(dots_drawn.get_array()) == pytest.approx(flat.potential_)
    chosen = plot_map(flat, color="potential")
    assert np.asarray(chosen.collections[0].get_array()) == pytest.approx(flat.potential_)
