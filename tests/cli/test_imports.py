"""``finsler-ext imports``: what is read, what leads up, and what is refused."""

import csv
import sys

import numpy as np
import pytest
import scipy.sparse

from finsler_ext.cli import main
from finsler_ext.cli.imports import Imports, fit_imports, read_imports
from finsler_ext.cli.messages import UsageError

pytest.importorskip("grimp")
pytest.importorskip("matplotlib")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Three layers of three modules; one module of the lowest imports one of the highest."""

    def write(name, modules):
        folder = tmp_path / name
        folder.mkdir()
        for module, lines in {"__init__": [], **modules}.items():
            (folder / f"{module}.py").write_text("\n".join(lines))
        return name

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    known = set(sys.modules)
    yield write
    assert not any(name.startswith("layered") for name in set(sys.modules) - known)


def layers(name):
    modules = {f"low{i}": [] for i in range(3)}
    modules |= {f"mid{i}": [f"from {name} import low{j}" for j in range(3)] for i in range(3)}
    modules |= {f"top{i}": [f"from {name} import mid{j}" for j in range(3)] for i in range(3)}
    return modules | {"low0": [f"def f():\n    from {name} import top2"], "alone": []}


def test_layers_come_out_and_the_upward_import_is_named(package, capsys):
    name = package("layered", layers("layered"))
    assert main(["imports", name, "--plot", "a.png", "--plot", "a.html", "-o", "a.csv"]) == 0
    said = capsys.readouterr()
    assert "lead up: 1 of 19, 1 of them in cycles\n  layered.low0 -> layered.top2 (in" in said.out
    assert "Cycles: 1\n  5 modules" in said.out
    assert "2 modules are not on the map" in said.err
    with open("a.csv") as file:
        rows = {line["row"]: float(line["height"]) for line in csv.DictReader(file)}
    heights = [[rows[f"layered.{level}{i}"] for i in range(3)] for level in ("low", "mid", "top")]
    assert max(heights[0]) < min(heights[1])
    assert max(heights[1]) < min(heights[2])
    with open("a.html", encoding="utf-8") as file:
        assert "layered.low0" in file.read()


def test_a_module_that_imports_itself_is_read(package):
    name = package("layered", layers("layered") | {"low1": ["from layered import low1"]})
    imports = read_imports(name)
    assert not imports.graph.diagonal().any()
    assert imports.graph.nnz == 19


def test_words_leave_modules_out(package):
    name = package("layered", layers("layered"))
    found = read_imports(name, ["low0"])
    assert "layered.low0" not in found.names
    assert found.cycles() == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_package", "there is no package"),
        ("csv", "single module"),
        ("sklearn.base", "give the whole package, sklearn"),
    ],
)
def test_what_is_no_package_is_refused(name, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["imports", name]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_package_without_imports_is_refused(package, capsys):
    assert main(["imports", package("layered", {f"m{i}": [] for i in range(6)})]) == 2
    assert "nothing to draw" in capsys.readouterr().err


def test_missing_grimp_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "grimp", None)
    with pytest.raises(UsageError, match=r"finsler_ext\[imports\]"):
        read_imports("sklearn")


def test_own_package():
    landscape = fit_imports(read_imports("finsler_ext"))
    names = landscape.imports.names
    rank = dict(zip(names, np.argsort(np.argsort(landscape.height)), strict=True))
    assert rank["finsler_ext.cli.embed"] > rank["finsler_ext.umap.estimator"]
    assert rank["finsler_ext.umap.estimator"] > rank["finsler_ext.geometry.randers"]
    rise = landscape.height[landscape.upward()] @ [-1, 1]
    assert (rise > 0).all()
    assert (np.diff(rise) <= 0).all()
    assert not landscape.in_cycles(landscape.upward()).any()


def test_empty_graph_has_no_landscape():
    with pytest.raises(UsageError, match="nothing to draw"):
        fit_imports(Imports([], scipy.sparse.csr_array((0, 0))))
