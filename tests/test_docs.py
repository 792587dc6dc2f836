"""The documentation names everything public, its examples are complete, and its code runs."""

import importlib
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("plot_*.py"))
PUBLIC = ["finsler_ext"] + [
    f"finsler_ext.{name}"
    for name in ("plot", "scanpy", "metrics", "drift_field", "spaces", "estimators.spectral")
]
PAGES = ["index.md", "tutorial.md"]


def documented() -> set[str]:
    """Full names in the API reference, as its directives give them."""
    names = set()
    for page in (DOCS / "api").glob("*.rst"):
        module = ""
        for line in page.read_text().splitlines():
            found = re.match(r"\.\. (\w+):: (\S+)", line)
            if found and found[1] == "currentmodule":
                module = found[2]
            elif found and found[1].startswith(("auto", "data")):
                name = found[2]
                names.add(name if name.startswith("finsler_ext.") else f"{module}.{name}")
    return names


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference(module):
    public = importlib.import_module(module).__all__
    missing = {f"{module}.{name}" for name in public} - documented()
    assert not missing


def test_the_reference_names_only_what_exists():
    optional = "finsler_ext.dask."
    for name in documented() - {"finsler_ext.spaces"}:
        if name.startswith(optional):
            pytest.importorskip("dask")
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_there_are_ten_examples_with_a_title_each():
    assert len(EXAMPLES) >= 10
    for example in EXAMPLES:
        title, rule = example.read_text().split("\n")[1:3]
        assert title
        assert rule == "=" * len(title)


def test_pages_link_to_pages_that_exist():
    for page in DOCS.rglob("*.md"):
        if "_build" in page.parts or "gallery" in page.parts:
            continue
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            if "://" not in target and "gallery" not in target:
                assert (page.parent / target).exists(), (page.name, target)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_the_pages_runs(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib.pyplot").switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S):
        exec(code, names)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_run(example):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    runpy.run_path(str(example))
    assert pyplot.get_fignums()
    pyplot.close("all")
