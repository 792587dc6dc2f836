"""The documentation names everything public, its examples are complete, and its code runs."""

import importlib
import json
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
EXAMPLES = sorted((DOCS / "examples").glob("*/plot_*.py"))
PUBLIC = ["finsler_ext"] + [
    f"finsler_ext.{name}"
    for name in ("plot", "scanpy", "metrics", "drift_field", "explain", "geometry", "spectral")
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
    for name in documented() - {"finsler_ext.geometry"}:
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


def written() -> list[Path]:
    """Every page in Markdown that people read: here, at the top and of the benchmarks."""
    names = (".", ".github", "benchmarks", "benchmarks/paper", "patches", "docs", "docs/guide")
    folders = [ROOT / name for name in names]
    return [page for folder in folders for page in sorted(folder.glob("*.md"))]


def prose(page: Path) -> str:
    """A page without its code."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    return re.sub(r"`[^`\n]*`", lambda code: code[0].strip("`").replace("](", "] ("), text)


def anchors(page: Path) -> set[str]:
    """What links to the headings of a page end in, on GitHub as in Sphinx."""
    headings = re.findall(r"^#+ +(.+?) *$", prose(page), re.M)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in plain}


@pytest.mark.parametrize("page", written(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_exist(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target or target.startswith("mailto:"):
            continue
        file, _, anchor = target.partition("#")
        goal = page.parent / file if file else page
        if "gallery" in goal.parts:  # made by the build from the examples
            inner = Path(*goal.parts[goal.parts.index("gallery") + 1 :])
            name = "README.rst" if inner.stem == "index" else f"{inner.stem}.py"
            goal = DOCS / "examples" / inner.with_name(name)
        assert goal.exists(), target
        assert not anchor or anchor in anchors(goal), target


def test_examples_link_to_pages_that_exist():
    for example in EXAMPLES:
        text = example.read_text(encoding="utf-8")
        for page in re.findall(r":doc:`(?:[^`<]+<)?/([^`>]+)>?`", text):
            made = DOCS / f"{page.replace('gallery', 'examples', 1)}.py"
            assert (DOCS / f"{page}.md").exists() or made.exists(), (example.name, page)
        for file in re.findall(r":download:`[^`<]+</([^`>]+)>`", text):
            assert (DOCS / file).exists(), (example.name, file)


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
def test_the_examples_run(example, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(example.parent)  # where the build runs them
    pyplot.switch_backend("Agg")
    runpy.run_path(str(example))
    assert pyplot.get_fignums()
    pyplot.close("all")


def notebooks():
    """What `docs/make_notebooks.py` makes, by the file it writes to."""
    made = runpy.run_path(str(DOCS / "make_notebooks.py"))
    shown = made["SHOWN"].items()
    return {made["FOLDER"] / f"{name}.ipynb": (e, made["made_of"](e)) for name, e in shown}


def test_notebooks_are_those_of_the_gallery():
    made = notebooks()
    assert len(made) == 3
    assert set((DOCS / "notebooks").glob("*.ipynb")) == set(made)
    for path, (source, text) in made.items():
        assert path.read_text(encoding="utf-8") == text, "run python docs/make_notebooks.py"
        code = [c["source"] for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
        example = DOCS / "examples" / f"{source}.py"
        kept = [line.strip() for source in code for line in "".join(source).splitlines()]
        statements = re.sub(r'^""".*?"""|^#.*$', "", example.read_text(), flags=re.S | re.M)
        for line in statements.splitlines():
            assert line.strip() in kept, line


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((DOCS / "notebooks").glob("*.ipynb")), ids=lambda p: p.stem)
@pytest.mark.filterwarnings("ignore")  # jupyter's own
def test_notebooks_run(path, tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="pip install '.[docs]'")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert all(output["output_type"] != "error" for output in outputs)
