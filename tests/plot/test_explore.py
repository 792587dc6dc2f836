"""The page of `explore`, opened in a real Chromium: what it shows, selects and downloads."""

import base64
import html
import json
import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from finsler_ext.plot import explore

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
browser = next((found for found in map(shutil.which, BROWSERS) if found), None)
needs_browser = pytest.mark.skipif(
    browser is None,
    reason="there is no Chromium to open the page in (Debian: apt install chromium)",
)
SIZE = (1100, 700)

# Runs in the page as its last script; every step is what a mouse would do.
SCRIPT = """
<script>
const report = {};
const mouse = (kind, x, y, more = {}) => {
  const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new PointerEvent(kind, {clientX: box.left + x, clientY: box.top + y,
    bubbles: true, pointerId: 1, ...more}));
};
const at = i => [screen[2 * i], screen[2 * i + 1]];
const pixel = (x, y) => {
  const scale = window.devicePixelRatio || 1;
  return Array.from(pen.getImageData(Math.round(x * scale), Math.round(y * scale), 1, 1).data);
};
window.onerror = message => { report.error = message; };
paint();
report.map = [at(0), at(1), at(2)];
report.pixel = pixel(...at(1));
mouse("pointermove", ...at(3));
report.tip = $("tip").innerText;
setTilt(90); paint();
report.side = [at(0), at(1), at(2)];
report.sidePressed = $("side").className;
setTilt(0); paint();
chooseColor(1); paint();
report.legend = $("legend").innerText;
report.colors = Array.from($("color").options, o => o.text);
$("lasso").click();
const box = canvas.getBoundingClientRect(), mid = at(0)[0] + 6;
mouse("pointerdown", 1, 1);
for (const [x, y] of [[mid, 1], [mid, box.height - 1], [1, box.height - 1]])
  mouse("pointermove", x, y);
mouse("pointerup", 1, box.height - 1);
paint();
report.count = $("count").innerText;
report.csv = csv();
report.listed = $("list").querySelectorAll("tr").length;
let downloaded = null;
HTMLAnchorElement.prototype.click = function () { downloaded = [this.download, this.href]; };
$("download").click();
report.download = downloaded && downloaded[0];
window.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}));
report.cleared = $("count").innerText;
document.querySelectorAll(".key")[1].click();
report.chosen = $("count").innerText;
mouse("pointermove", ...at(2));
const texts = [...document.querySelectorAll("header > *, aside h2, #help")]
  .filter(e => e.offsetParent);
report.overlaps = [];
texts.forEach((a, i) => texts.slice(i + 1).forEach(b => {
  const p = a.getBoundingClientRect(), q = b.getBoundingClientRect();
  if (p.left < q.right && q.left < p.right && p.top < q.bottom && q.top < p.bottom)
    report.overlaps.push([a.id || a.innerText, b.id || b.innerText]);
}));
report.wide = document.documentElement.scrollWidth - innerWidth;
report.requests = performance.getEntriesByType("resource").length;
const out = document.createElement("pre"); out.id = "report"; out.hidden = true;
out.textContent = JSON.stringify(report); document.body.append(out);
</script>
</body>
"""


def chromium(page, *options, size=SIZE):
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    # nothing may be fetched: every name is unknown
    command += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--window-size={size[0]},{size[1]}"]
    command += [f"--user-data-dir={page.parent / 'profile'}", "--virtual-time-budget=3000"]
    done = subprocess.run(
        [*command, *options, page.as_uri()], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def points():
    # a known picture: four marks on the axes, then a cloud inside
    corners = np.array([[-4.0, 0, 1], [4, 0, -1], [0, 2, 0], [0, -2, 0.5]])
    cloud = np.random.default_rng(0).uniform(-1, 1, size=(60, 3)) * [1, 1, 0.2] + [2, 0, 0]
    return np.vstack([corners, cloud])


@pytest.fixture(scope="module")
def page(points, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    kind = np.where(points[:, 0] < 1, "left </script>", "right")
    names = np.array([f'point "{i}", <b>' for i in range(len(points))])
    return explore(points, path, labels={"kind": kind}, hover={"name": names}, title="Try <it>")


@pytest.fixture(scope="module")
def report(page):
    tried = page.with_name("tried.html")
    tried.write_text(page.read_text().replace("</body>", SCRIPT))
    found = re.search(r'<pre id="report"[^>]*>(.*?)</pre>', chromium(tried, "--dump-dom"), re.S)
    assert found, "the page did not get to its end"
    return json.loads(html.unescape(found[1]))


def test_the_page_is_one_file_without_addresses(page):
    text = page.read_text()
    assert not re.search(r"""(src|href)\s*=\s*["']|https?://|@import|url\(""", text)
    assert text.count("</script>") == 1
    assert page.stat().st_size < 40_000


def test_positions_are_in_the_page(page, points):
    packed = re.search(r'"height": "([^"]+)"', page.read_text())[1]
    assert np.frombuffer(base64.b64decode(packed), "<f4") == pytest.approx(points[:, 2], rel=1e-6)


@needs_browser
def test_the_map_is_seen_from_above_and_the_height_from_the_side(report, points):
    assert "error" not in report
    (x0, y0), (x1, y1), (x2, y2) = report["map"]
    unit = (x1 - x0) / 8  # pixels per unit of the map
    assert y0 == pytest.approx(y1, abs=0.5)
    assert x2 == pytest.approx((x0 + x1) / 2, abs=0.5)
    assert y0 - y2 == pytest.approx(2 * unit, abs=0.5)  # up is up
    (x0, y0), (x1, y1), (_, y2) = report["side"]
    assert x1 - x0 == pytest.approx(8 * unit, abs=0.5)
    assert (y1 - y0) / (y2 - y0) == pytest.approx(2, abs=0.05)  # heights 1, −1 and 0
    assert y0 < y2 < y1
    assert report["sidePressed"] == "on"


@needs_browser
def test_colours_and_names(report):
    assert report["pixel"][3] == 255  # a dot is where its place says
    assert sum(report["pixel"][:3]) < 300  # and dark, as the lowest height
    assert report["colors"] == ["height", "kind"]
    assert report["legend"].split("\n") == ["left </script>", "right"]
    assert 'name: point "3", <b>' in report["tip"]
    assert "height: 0.5" in report["tip"]


@needs_browser
def test_the_lasso_lists_and_downloads_rows(report, points):
    # the loop holds the leftmost point alone
    assert report["count"] == "1 row selected"
    assert report["csv"] == 'row,name,kind,height\n0,"point ""0"", <b>",left </script>,1\n'
    assert report["listed"] == 2
    assert report["download"] == "selected.csv"
    assert report["cleared"] == "No rows selected"
    assert report["chosen"] == f"{(points[:, 0] >= 1).sum()} rows selected"


@needs_browser
def test_nothing_overlaps_and_nothing_is_fetched(report):
    assert report["overlaps"] == []
    assert report["wide"] <= 0
    assert report["requests"] == 0


@needs_browser
@pytest.mark.parametrize("size", [SIZE, (500, 700)])
def test_a_screenshot_has_dots_of_many_colours(page, size, tmp_path):
    image = pytest.importorskip("matplotlib.image")
    picture = tmp_path / "page.png"
    chromium(page, f"--screenshot={picture}", size=size)
    pixels = (image.imread(picture)[..., :3] * 255).astype(int)
    coloured = pixels[np.ptp(pixels, axis=2) > 60]
    assert len(np.unique(coloured // 16, axis=0)) > 20


def test_frames_and_estimators(tmp_path, few_digits):
    from finsler_ext import FinslerUMAP

    X, y = few_digits
    model = FinslerUMAP(random_state=0, n_epochs=20, omega_norm=0).fit(X)
    hover = pd.DataFrame({"digit": y, "sum": X.sum(axis=1)})
    text = explore(model, tmp_path / "a.html", labels=y, hover=hover).read_text()
    data = json.loads(re.search(r"const data = (.*);", text)[1])
    assert [c["name"] for c in data["colors"]] == [
        "height: sparse above dense",
        "label",
        "local scale (log)",
    ]
    assert [c["name"] for c in data["hover"]] == ["digit", "sum"]
    assert data["colors"][1]["names"] == [str(d) for d in range(10)]


def test_errors_name_the_way_out(tmp_path):
    Y = np.zeros((5, 3))
    with pytest.raises(ValueError, match="'name' must have one entry per row"):
        explore(Y, tmp_path / "a.html", hover=["a", "b"])
    with pytest.raises(ValueError, match="sample"):
        explore(np.zeros((500_001, 3)), tmp_path / "a.html")
