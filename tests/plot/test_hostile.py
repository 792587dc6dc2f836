"""Labels, names and titles that try to run as code, in the page, its csv and the file itself."""

import json
from pathlib import Path

import numpy as np
import pytest

from finsler_ext.plot import explore
from tests.plot import chromium
from tests.plot.chromium import needs_browser

pytest.importorskip("plotly")
RUN = "window.ran=1"
HOSTILE = [
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f'"><img src=x onerror="{RUN}">',
    f"'><svg onload={RUN}>",
    f'<a href="javascript:{RUN}">click</a>',
    f"<!--<script>{RUN}</script>",
    f"${{{RUN}}}`{RUN}`",
    f"{{{{data}}}} {{{{script}}}} %{{x}} \\u003cscript>{RUN}</script>",
    f'"; {RUN}; "',
    f"\u2028{RUN}\u2029",
    "half \ud800 a character, and the other \udfff",
    "\x00\x07\x1b[31m",
    "=cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "\t=1+1",
    "a,b\nc",
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    n = len(HOSTILE)
    Y = np.random.default_rng(0).uniform(-1, 1, size=(3 * n, 3))
    texts = np.array(HOSTILE * 3, dtype=object)
    labels = {HOSTILE[0]: texts, HOSTILE[2]: np.arange(3.0 * n)}
    path = explore(
        Y,
        folder / "page.html",
        labels=labels,
        hover={HOSTILE[1]: texts, HOSTILE[12]: texts},
        title=HOSTILE[1] + HOSTILE[10],
        height_label=HOSTILE[2],
    )
    path.read_text(encoding="utf-8")  # is text, whatever the labels were
    if chromium.PATH is None:
        yield None
        return
    page = chromium.Page(path, folder, (1100, 700))
    page.wait_for("drawn.length > 0 && document.querySelector('.main-svg') !== null")
    yield page
    page.close()


@needs_browser
def test_nothing_is_run_and_nothing_fetched(page):
    for color in range(3):
        page.run(f"set({{color: {color}, solid: false}}).then(() => null)")
        for kind in ("click", "dblclick"):
            page.run(
                "document.querySelectorAll('.legendtoggle').forEach(e => e.dispatchEvent("
                f"new MouseEvent({kind!r}, {{bubbles: true}})))"
            )
        page.run("choose([...rows.keys()]).then(() => null)")
        for i in range(0, 3 * len(HOSTILE), 5):
            page.run(f"Plotly.Fx.hover('plot', [{{curveNumber: 0, pointNumber: {i} }}])")
    page.run("set({solid: true, color: 1}).then(() => null)")
    page.run("new Promise(done => setTimeout(done, 300))")
    assert page.run("window.ran === undefined")
    assert page.run("document.querySelectorAll('aside script, aside img, header img').length") == 0
    assert page.errors == []
    assert {url.split(":")[0] for url in page.requests} <= {"file", "data"}  # data: is in the page


@needs_browser
def test_texts_are_shown_as_they_are(page):
    page.run("set({color: 1, solid: false}).then(() => choose([...rows.keys()])).then(() => null)")
    cells = page.run("[...document.querySelectorAll('#list td')].map(td => td.textContent)")
    for text in HOSTILE[:9]:
        assert text in cells
    assert "half � a character, and the other �" in cells


@needs_browser
def test_the_csv_of_the_page_holds_no_formula(page):
    import csv
    import io

    page.run("choose([...rows.keys()]).then(() => null)")
    written = page.run("csv()").replace("\0", "")  # which csv of Python 3.10 refuses
    header, *rows = csv.reader(io.StringIO(written))
    assert "'" + HOSTILE[12] in header
    for row in rows:
        for cell in row:
            if cell.startswith(("=", "+", "-", "@", "\t", "\r")):
                float(cell)  # a number below zero is no formula


@needs_browser
def test_very_many_labels(tmp_path):
    n = 100_000
    Y = np.random.default_rng(0).uniform(-1, 1, size=(n, 3))
    labels = np.array([f"<b>{i}</b>" for i in range(n)], dtype=object)
    labels[:300] = np.repeat(["one", "two", "three"], 100)
    path = explore(Y, tmp_path / "page.html", labels=labels)
    page = chromium.Page(path, tmp_path, (1100, 700))
    try:
        page.wait_for("drawn.length > 0 && document.querySelector('.main-svg') !== null")
        page.run("set({color: 1}).then(() => null)")
        names = json.loads(page.run("JSON.stringify(drawn.map(g => [g.name, g.members.length]))"))
        assert len(names) == 201
        assert sum(count for _, count in names) == n
        assert {"one", "two", "three"} <= {name for name, _ in names}
        assert names[-1][0] == f"{n - 300 + 3 - 200} other names"
        page.run("choose([99999]).then(() => null)")
        cells = page.run("[...document.querySelectorAll('#list td')].map(td => td.textContent)")
        assert "<b>99999</b>" in cells
        assert page.errors == []
    finally:
        page.close()


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    Y = np.zeros((4, 3)) + np.arange(4)[:, None]
    path = explore(Y, tmp_path / "page.html", title="old")
    before = path.read_bytes()
    monkeypatch.setattr(Path, "write_text", lambda *a, **k: (_ for _ in ()).throw(OSError(28, "")))
    with pytest.raises(OSError, match="28"):
        explore(Y, path, title="new")
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
