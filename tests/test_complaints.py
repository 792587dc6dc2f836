"""Every snippet of the page on umap-learn's oldest complaints runs; its table names every theme."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "complaints.md").read_text(encoding="utf-8")
BEGINNING, *SECTIONS = re.split(r"^## ", PAGE, flags=re.M)
CODE = re.compile(r"```python\n(.*?)```", re.S)
SNIPPETS = [
    pytest.param(
        code,
        id=f"{section.splitlines()[0]} {k}".replace(" ", "-"),
        marks=[pytest.mark.slow] if "import umap" in code else [],
    )
    for section in SECTIONS
    for k, code in enumerate(CODE.findall(section))
]


@pytest.mark.filterwarnings("ignore")  # of umap-learn, in its own snippets
@pytest.mark.parametrize("code", SNIPPETS)
def test_the_snippet_runs(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (start,) = CODE.findall(BEGINNING)
    exec(start + "import warnings\n" + code, {})


def test_every_theme_has_threads_and_a_line_in_the_table():
    for section in SECTIONS[:-1]:
        title = section.splitlines()[0]
        assert f"(#{title.lower().replace(' ', '-')})" in BEGINNING, title
        assert re.search(r"https://github.com/\S+/(issues|pull)/\d+", section), title


def test_it_says_where_it_does_not_help():
    assert SECTIONS[-1].startswith("Where we do not help")
