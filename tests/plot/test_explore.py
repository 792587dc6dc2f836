"""The page of `explore`: what is in the file, and what a mouse does to it in a real Chromium."""

import base64
import json
import re
import sys

import numpy as np
import pandas as pd
import pytest

from finsler_ext.plot import explore
from tests.plot import chromium
from tests.plot.chromium import needs_browser

pytest.importorskip("plotly")
SIZE, SMALL = (1100, 700), (420, 720)
# where a row is drawn, in pixels of the window
AT = """(i => {
  const plot = document.getElementById("plot"), box = plot.getBoundingClientRect();
  const curve = drawn.findIndex(g => g.members.includes(i)), {xaxis, yaxis} = plot._fullLayout;
  const k = drawn[curve].members.indexOf(i), {x, y} = plot._fullData[curve];
  return [box.x + xaxis._offset + xaxis.d2p(x[k]), box.y + yaxis._offset + yaxis.d2p(y[k])];
})"""


@pytest.fixture(scope="module")
def points():
    # a known picture: four marks on the axes, then a cloud inside, and a row without a place
    corners = np.array([[-4.0, 0, 1], [4, 0, -1], [0, 2, 0], [0, -2, 0.5]])
    cloud = np.random.default_rng(0).uniform(-1, 1, size=(60, 3)) * [1, 1, 0.2] + [2, 0, 0]
    return np.vstack([corners, cloud, [[np.nan, 0, 0]]])


@pytest.fixture(scope="module")
def path(points, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    kind = np.where(points[:, 0] < 1, "left </script>", "right <b>&amp;")
    weight = np.where(np.arange(len(points)) % 2, 0.1, np.nan)
    names = np.array([f'point "{i}", <b> %{{x}}' for i in range(len(points))])
    labels = {"kind": kind, "weight": weight}
    return explore(points, path, labels=labels, hover={"name": names}, title="Try <it> {{data}}")


def stored(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'type="application/json">(.*?)</script>', text, re.S)[1])


def unpacked(text, dtype="<f8"):
    return np.frombuffer(base64.b64decode(text), dtype)


def test_the_page_is_one_file(path):
    from plotly.offline import get_plotlyjs

    text = path.read_text(encoding="utf-8").replace(get_plotlyjs(), "")
    assert not re.search(r"""(src|href)\s*=\s*["']|https?://|@import|url\(""", text)
    assert text.count("</script>") == 3
    assert "Try &lt;it&gt; {{data}}" in text
    assert len(text) < 30_000


def test_positions_and_names_are_in_the_page(path, points):
    data = stored(path)
    placed = points[:-1]  # the row without a place is left out
    assert unpacked(data["height"]) == pytest.approx(placed[:, 2])
    assert unpacked(data["rows"], "<i4").tolist() == list(range(64))
    assert [c["name"] for c in data["colors"]] == ["height", "kind", "weight"]
    xyz = unpacked(data["positions"], "<f4").reshape(-1, 3)
    assert np.ptp(xyz, axis=0) / np.ptp(xyz[:, 0]) == pytest.approx(
        np.ptp(placed, axis=0) / np.ptp(placed[:, 0]), rel=1e-6
    )


def test_the_page_says_what_the_height_means_and_opens_by_label(tmp_path, points):
    from finsler_ext import FinslerUMAP

    X = np.random.default_rng(0).normal(size=(60, 4))
    model = FinslerUMAP(n_epochs=20, random_state=0).fit(X)
    with_label = explore(model, tmp_path / "a.html", labels=np.arange(60) % 3)
    without = explore(points, tmp_path / "b.html")
    assert (stored(with_label)["start"], stored(without)["start"]) == (1, 0)
    said = with_label.read_text(encoding="utf-8")
    assert "Height: sparse above dense." in said
    title = model.evidence_.title
    assert f"{title[:1].upper()}{title[1:]}." in said
    assert title not in without.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(path, tmp_path_factory):
    page = chromium.Page(path, tmp_path_factory.mktemp("browser"), SIZE)
    page.wait_for("drawn.length > 0 && document.querySelector('.main-svg') !== null")
    yield page
    page.close()


@pytest.fixture
def fresh(page):
    """The page as it was opened."""
    page.run(
        "choose([]).then(() => set({tilt: 0, turn: 0, color: 0, solid: false, drag: 'pan'}))"
        ".then(() => null)"
    )
    yield page
    assert page.errors == []


def at(page, *rows):
    return [np.array(page.run(f"{AT}({row})")) for row in rows]


def steps(page, condition):
    page.wait_for(condition)
    page.run("draw().then(() => null)")


def around(page, row):
    x, y = at(page, row)[0]
    return [(x - 20, y - 20), (x + 20, y - 20), (x + 20, y + 20), (x - 20, y + 20)]


@needs_browser
def test_the_map_is_seen_from_above(fresh):
    left, right, top, bottom = at(fresh, 0, 1, 2, 3)
    unit = (right - left)[0] / 8  # pixels per unit of the map
    assert (right - left)[1] == pytest.approx(0, abs=0.5)
    assert (top - left) == pytest.approx([4 * unit, -2 * unit], abs=0.5)  # up is up
    assert (bottom - left) == pytest.approx([4 * unit, 2 * unit], abs=0.5)


@needs_browser
def test_the_side_view_shows_the_height(fresh):
    fresh.click("#side")
    steps(fresh, "view.tilt === 90")
    left, right, middle = at(fresh, 0, 1, 2)
    lift = fresh.run("view.lift")
    unit = (right - left)[0] / 8
    # heights 1, −1 and 0
    assert (right - left)[1] == pytest.approx(2 * lift * unit, abs=0.5)
    assert (middle - left)[1] == pytest.approx(lift * unit, abs=0.5)
    assert fresh.run("document.getElementById('side').ariaPressed") == "true"
    assert "height" in fresh.run("document.querySelector('.infolayer').textContent")


@needs_browser
def test_sliders_turn_and_tilt_by_keyboard(fresh):
    fresh.run("document.getElementById('turn').focus()")
    fresh.run("set({turn: 89}).then(() => null)")
    fresh.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight", windowsVirtualKeyCode=39)
    steps(fresh, "view.turn === 90")
    left, right = at(fresh, 0, 1)
    # a quarter turn: what was left and right is below and above
    assert (right - left)[0] == pytest.approx(0, abs=0.5)
    assert right[1] < left[1]


@needs_browser
def test_hovering_says_what_is_there_word_for_word(fresh):
    place = at(fresh, 3)[0]
    fresh.mouse("mouseMoved", *(place - 30))
    fresh.mouse("mouseMoved", *place)
    fresh.wait_for("document.querySelector('.hoverlayer .hovertext') !== null")
    shown = fresh.run(
        "[...document.querySelectorAll('.hovertext .line')].map(line => line.textContent)"
    )
    assert shown == [
        "row: 3",
        'name: point "3", <b> %{x}',
        "kind: left </script>",
        "weight: 0.1",
        "height: 0.5",
    ]


@needs_browser
def test_the_lasso_lists_and_downloads_rows(fresh, tmp_path):
    fresh.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    fresh.click("#lasso")
    steps(fresh, "view.drag === 'lasso'")
    fresh.drag(around(fresh, 0))
    fresh.wait_for("selected.size > 0")
    assert fresh.run("document.getElementById('count').innerText") == "1 row selected"
    assert fresh.run("document.querySelectorAll('#list tr').length") == 2
    fresh.click("#download")
    written = tmp_path / "selected.csv"
    fresh.wait_for("document.readyState === 'complete'")
    for _ in range(100):
        if written.exists() and written.stat().st_size:
            break
        fresh.run("new Promise(done => setTimeout(done, 50))")
    frame = pd.read_csv(written)
    assert list(frame.columns) == ["row", "name", "kind", "weight", "height"]
    assert frame.loc[0, ["row", "name", "kind", "height"]].tolist() == [
        0, 'point "0", <b> %{x}', "left </script>", 1.0,
    ]  # fmt: skip
    fresh.key("Escape")
    fresh.wait_for("selected.size === 0")
    assert fresh.run("document.getElementById('count').innerText") == "No rows selected"


@needs_browser
def test_the_box_selects_and_shift_adds(fresh):
    fresh.click("[data-val='select']")
    steps(fresh, "view.drag === 'select'")
    fresh.drag(around(fresh, 2)[::2])
    fresh.wait_for("selected.size > 0")
    assert fresh.run("[...selected]") == [2]
    steps(fresh, "view.drag === 'select'")
    fresh.drag(around(fresh, 3)[::2], shift=True)
    fresh.wait_for("selected.size > 1")
    assert fresh.run("[...selected]") == [2, 3]
    fresh.drag(around(fresh, 1)[::2])
    fresh.wait_for("selected.size === 1")
    assert fresh.run("[...selected]") == [1]


@needs_browser
def test_a_selection_stays_when_the_view_turns(fresh):
    fresh.run("set({drag: 'lasso'}).then(() => null)")
    fresh.drag(around(fresh, 0))
    fresh.wait_for("selected.size === 1")
    for change in ("tilt: 50", "color: 1", "solid: true", "solid: false"):
        fresh.run(f"set({{{change}}}).then(() => null)")
        assert fresh.run("[...selected]") == [0]
    faded = fresh.run("document.getElementById('plot')._fullData.map(t => [...t.selectedpoints])")
    assert faded == [[0], []]


@needs_browser
def test_clicking_a_name_selects_its_rows(fresh, points):
    fresh.run("set({color: 1}).then(() => null)")
    names = fresh.run("[...document.querySelectorAll('.legendtext')].map(t => t.textContent)")
    assert names == ["left </script>", "right <b>&amp;"]
    fresh.click(".traces:nth-of-type(2) .legendtoggle")
    fresh.wait_for("selected.size > 0")
    right = np.flatnonzero(points[:64, 0] >= 1)
    assert fresh.run("[...selected]") == right.tolist()


@needs_browser
def test_values_that_are_missing_are_a_group_of_their_own(fresh):
    options = fresh.run("Array.from(document.getElementById('color').options, o => o.text)")
    assert options == ["height", "kind", "weight"]
    fresh.run("set({color: 2}).then(() => null)")
    assert fresh.run("drawn.map(g => [g.name, g.members.length])") == [["", 32], ["no value", 32]]


@needs_browser
def test_three_dimensions(fresh, points):
    fresh.click("#solid")
    steps(fresh, "view.solid")
    x, y, z = fresh.run(
        "(t => [t.type, [...t.x], [...t.y], [...t.z]])(document.getElementById('plot').data[0])"
    )[1:]
    xyz = np.column_stack([x, y, np.array(z) / fresh.run("view.lift")])
    centred = points[:64] - (points[:64].max(axis=0) + points[:64].min(axis=0)) / 2
    assert xyz == pytest.approx(centred / 4, abs=1e-6)


@needs_browser
def test_nothing_is_fetched(fresh, path):
    assert {url for url in fresh.requests if not url.startswith(("blob:", "data:"))} <= {
        path.as_uri()
    }
    assert fresh.run("performance.getEntriesByType('resource').length") == 0


@needs_browser
def test_a_saved_picture_says_what_the_page_says(fresh):
    fresh.run(
        "Plotly.downloadImage = (plot, how) => { globalThis.saved = Plotly.toImage(plot, how); }, 0"
    )
    fresh.run("set({tilt: 90, lift: 3}).then(() => 0)")
    fresh.click("#svg")
    drawn = fresh.run("saved.then(image => decodeURIComponent(image))")
    texts = " ".join(re.findall(r">([^<>]+)</t", drawn))
    assert "Height. Heights are drawn 3 times as large as the map." in texts
    fresh.run("set({tilt: 0}).then(() => 0)")
    fresh.click("#svg")
    assert "times as large" not in fresh.run("saved.then(image => decodeURIComponent(image))")


@needs_browser
@pytest.mark.parametrize(("kind", "start"), [("png", "data:image/png"), ("svg", "data:image/svg")])
def test_pictures_are_saved(fresh, kind, start):
    fresh.run(
        "Plotly.downloadImage = (plot, how) => { globalThis.saved = Plotly.toImage(plot, how); }, 0"
    )
    fresh.click(f"#{kind}")
    assert fresh.run(f"saved.then(image => image.slice(0, {len(start)}))") == start


OVERLAPS = """(() => {
  const texts = [...document.querySelectorAll("header > *, aside h2, aside p, #plot text")]
    .filter(e => e.textContent.trim() && e.getBoundingClientRect().width > 0);
  const found = [];
  texts.forEach((a, i) => texts.slice(i + 1).forEach(b => {
    const p = a.getBoundingClientRect(), q = b.getBoundingClientRect();
    if (p.left + 1 < q.right && q.left + 1 < p.right
        && p.top + 1 < q.bottom && q.top + 1 < p.bottom)
      found.push([a.textContent, b.textContent]);
  }));
  const out = texts.filter(e => e.getBoundingClientRect().right > innerWidth + 1);
  return [found, out.map(e => e.textContent)];
})()"""


@needs_browser
@pytest.mark.parametrize("size", [SIZE, SMALL])
def test_texts_do_not_overlap_and_dots_are_seen(path, size, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    page = chromium.Page(path, tmp_path, size)
    try:
        page.wait_for("drawn.length > 0")
        assert page.run("view.color") == 1  # the label that was given
        page.run("set({color: 0}).then(() => null)")
        page.screenshot(tmp_path / "page.png")
        pixels = (image.imread(tmp_path / "page.png")[..., :3] * 255).astype(int)
        x, y = np.round(at(page, 1)[0]).astype(int)
        assert pixels[y, x] == pytest.approx([68, 1, 84], abs=12)  # the lowest height of viridis
        for color in range(3):
            for tilt in (0, 60):
                page.run(f"set({{color: {color}, tilt: {tilt}}}).then(() => null)")
                assert page.run(OVERLAPS) == [[], []], (color, tilt)
        assert page.run("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.errors == []
    finally:
        page.close()


@needs_browser
def test_without_webgl_the_dots_are_drawn_too(path, tmp_path):
    page = chromium.Page(path, tmp_path, options=["--disable-3d-apis"])
    try:
        page.wait_for("drawn.length > 0")
        assert page.run("document.getElementById('plot').data[0].type") == "scatter"
        page.wait_for("document.querySelectorAll('.scatterlayer .point').length === 64")
    finally:
        page.close()


@needs_browser
def test_many_points_turn_as_a_sample_and_rest_in_full(tmp_path):
    Y = np.random.default_rng(0).normal(size=(100_000, 3))
    page = chromium.Page(explore(Y, tmp_path / "many.html"), tmp_path)
    count = "drawn.reduce((sum, g) => sum + g.members.length, 0)"
    try:
        page.wait_for("drawn.length > 0")
        assert page.run(f"set({{tilt: 40}}, true).then(() => {count})") == 20_000
        assert page.run(f"set({{}}).then(() => {count})") == 100_000
        assert page.errors == []
    finally:
        page.close()


def test_frames_and_estimators(tmp_path, few_digits):
    from finsler_ext import FinslerUMAP

    X, y = few_digits
    model = FinslerUMAP(random_state=0, n_epochs=20, omega_norm=0).fit(X)
    hover = pd.DataFrame({"digit": y, "sum": X.sum(axis=1)})
    data = stored(explore(model, tmp_path / "a.html", labels=y, hover=hover))
    assert [c["name"] for c in data["colors"]] == [
        "last column (no drift)",
        "label",
        "local scale (log)",
    ]
    assert [c["name"] for c in data["hover"]] == ["digit", "sum"]
    assert data["colors"][1]["names"] == [str(d) for d in range(10)]
    assert unpacked(data["colors"][2]["values"]) == pytest.approx(np.log(model.local_scale_))


def test_values_without_any_number_make_a_page_too(tmp_path):
    labels = {"none": np.full(5, np.nan), "wide": np.array([1e300, -np.inf, np.nan, 0, 1])}
    data = stored(explore(np.eye(5)[:, :3], tmp_path / "a.html", labels=labels))
    assert (data["colors"][1]["low"], data["colors"][1]["high"]) == (0, 1)
    assert np.isfinite([data["colors"][2]["low"], data["colors"][2]["high"]]).all()


def test_errors_name_the_way_out(tmp_path, monkeypatch):
    Y = np.zeros((5, 3))
    with pytest.raises(ValueError, match="'name' must have one entry per row"):
        explore(Y, tmp_path / "a.html", hover=["a", "b"])
    with pytest.raises(ValueError, match="sample"):
        explore(np.zeros((500_001, 3)), tmp_path / "a.html")
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(ImportError, match=r"finsler_ext\[plot\]"):
        explore(Y, tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


def test_a_page_of_two_columns_opens_with_both(tmp_path):
    """The map view had all airports on one line."""
    Y = np.random.default_rng(0).normal(size=(30, 2))
    data = stored(explore(Y, tmp_path / "a.html"))
    places = np.frombuffer(base64.b64decode(data["positions"]), "<f4").reshape(30, 3)
    for column in (0, 1):
        assert np.corrcoef(places[:, column], Y[:, column])[0, 1] == pytest.approx(1.0)
