"""Every piece of code in the README runs, and so do the marked ones of the guide."""

import importlib
import re
import shutil
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_iris
from umap import UMAP

from finsler_ext.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
GUIDE = {page.stem: page.read_text() for page in sorted((ROOT / "docs" / "guide").glob("*.md"))}
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
# what stands before a block, its language and its text
BLOCK = re.compile(r"(?:<!-- ([^\n]*) -->\n)?```(\w*)\n(.*?)```", re.S)
BLOCKS = BLOCK.findall(README)
EXAMPLES = [
    pytest.param(mark, code, id=f"{page}{k}")
    for page, text in {"README": README, **GUIDE}.items()
    for k, (mark, language, code) in enumerate(BLOCK.findall(text))
    if language == "python" and mark.startswith("example")
]
# scanpy announces its own future in its plots
ANNOUNCEMENTS = ("FutureWarning", "DeprecationWarning", "PendingDeprecationWarning")


@pytest.mark.filterwarnings(*(f"ignore::{name}" for name in ANNOUNCEMENTS))
@pytest.mark.parametrize(("mark", "code"), EXAMPLES)
def test_the_examples_run(mark, code, capsys, tmp_path, monkeypatch):
    needed = {"example: scanpy": "scanpy", "example: plot": "matplotlib"}.get(mark)
    if needed:
        pytest.importorskip(needed)
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(code, names)
    pyplot.close("all")
    if mark == "example":
        model = names["model"]
        columns = model.embedding_.shape[1]
        assert model.n_components in (columns, "auto")
        assert names["embedding"].shape == (len(model.embedding_), columns)
        assert "one half of the data orders" in capsys.readouterr().out
    elif mark == "example: plot":
        assert (tmp_path / "iris.html").stat().st_size > 10_000
    elif mark == "example: potential":
        assert names["found"].values.argmin() == 3  # the sea
    elif mark == "example: graph":
        upwards = {name: place[1] for name, place in names["side"].items()}
        assert upwards["algae"] == max(upwards.values())
        assert upwards["orca"] == min(upwards.values())
    elif mark == "example: pipeline":
        assert names["plane"].shape == (150, 2)
        assert names["search"].best_score_ > 0.8
    elif mark == "example: plane":
        assert names["plane"].embedding_.shape == (150, 2)
    else:
        assert names["adata"].obsm["X_finsler_umap"].shape == (700, 3)


def test_every_block_is_known_here():
    marks = sorted(mark for mark, _, _ in BLOCKS)
    assert marks == ["demo", "embed", "example", "example", "tests"]
    assert len(EXAMPLES) >= 7


def test_it_is_short():
    assert len(README.split()) <= 900
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    assert len(results.split()) <= 1500


def block(name, page=README):
    (text,) = (code for mark, _, code in BLOCK.findall(page) if mark == name)
    return text.splitlines()


def test_both_commands_are_one_line_each():
    for name in ("demo", "tests"):
        (line,) = block(name)
        assert line.startswith("python3 -m venv")


def test_a_table_of_ones_own(tmp_path, monkeypatch, capsys):
    iris = load_iris()
    rows = [
        [*map(str, x), iris.target_names[k]] for x, k in zip(iris.data, iris.target, strict=True)
    ]
    table = ["a,b,c,d,species", *(",".join(row) for row in rows)]
    (tmp_path / "my.csv").write_text("\n".join(table))
    monkeypatch.chdir(tmp_path)
    for line in block("embed"):
        program, *arguments = line.split()
        assert program == ".venv/bin/finsler-ext"
        assert main(arguments) == 0
        assert "The height orders" in capsys.readouterr().out
    for made in ("my.png", "my.html", "my_finsler.csv"):
        assert (tmp_path / made).stat().st_size > 1000


def test_benchmarks_can_be_run(monkeypatch, capsys):
    for line in block("benchmarks", CONTRIBUTING):
        python, option, module, *arguments = line.split()
        assert (python, option) == ("python", "-m")
        script = importlib.import_module(module)
        if hasattr(script, "__path__"):  # a package is run by its __main__
            script = importlib.import_module(f"{module}.__main__")
        with pytest.raises(SystemExit) as stop:
            script.main(["--help"])
        assert stop.value.code == 0, line
        printed = capsys.readouterr().out
        assert all(word in printed or "name" in printed for word in arguments), line


def test_pictures_are_small():
    pictures = [ROOT / target for target in re.findall(r"\]\(([^)#]+\.png)\)", README)]
    assert pictures
    assert all(picture.stat().st_size < 200_000 for picture in pictures)


def test_the_test_command_is_the_one_ci_runs():
    if not shutil.which("bash") or sys.platform == "win32":
        pytest.skip("no bash")
    script = (ROOT / ".ci" / "run").read_text()
    assert "<!-- tests -->" in script


def test_the_table_has_every_parameter_and_method_of_umap():
    table = GUIDE["umap"].partition("<!-- umap -->")[2]
    left = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    named = re.findall(r"`([a-z_]+)`", " ".join(left))
    methods = [
        name
        for name in vars(UMAP)
        if not name.startswith(("_", "set_")) and callable(getattr(UMAP, name))
    ]
    assert set(UMAP().get_params()) | set(methods) <= set(named)
    assert len(named) == len(set(named))
