"""How much the command says: --version, --quiet, --verbose; and several pictures in one run."""

import csv
from importlib.metadata import version

import numpy as np
import pytest

from finsler_ext.cli import main


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(60, 3))
    np.savetxt("rows.csv", X, delimiter=",")
    return tmp_path


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.strip() == f"finsler-ext {version('finsler_ext')}"


def test_quiet_says_nothing_and_writes_the_same(rows, capsys):
    assert main(["embed", "rows.csv", "-o", "loud.csv"]) == 0
    assert "The height orders" in capsys.readouterr().out
    assert main(["embed", "rows.csv", "-o", "quiet.csv", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert (rows / "loud.csv").read_bytes() == (rows / "quiet.csv").read_bytes()


def test_quiet_does_not_hide_errors(rows, capsys):
    assert main(["embed", "nothing.csv", "--quiet"]) == 2
    assert "nothing.csv" in capsys.readouterr().err


def test_verbose_says_every_step_in_order(rows, capsys):
    assert main(["embed", "rows.csv", "--save", "m.finsler", "--verbose"]) == 0
    said = capsys.readouterr()
    assert "The height orders" in said.out
    steps = [version("finsler_ext"), "reading rows.csv", "loading FinslerUMAP", "writing rows_"]
    places = [said.err.find(step) for step in steps]
    assert -1 not in places
    assert places == sorted(places)
    assert main(["transform", "m.finsler", "rows.csv", "-o", "new.csv", "--verbose"]) == 0
    assert "placing rows" in capsys.readouterr().err


def test_quiet_and_verbose_are_one_or_the_other(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["embed", "rows.csv", "--quiet", "--verbose"])
    assert stop.value.code == 2
    assert "not allowed with" in capsys.readouterr().err


def test_one_run_draws_several_pictures(rows, capsys):
    pytest.importorskip("plotly")
    pictures = ["--plot", "a.png", "--plot", "a.html", "--plot", "a.svg"]
    assert main(["embed", "rows.csv", *pictures]) == 0
    said = capsys.readouterr().out
    for name in ("a.png", "a.html", "a.svg"):
        assert name in said
        assert (rows / name).stat().st_size > 1000
    with open(rows / "rows_finsler.csv") as file:
        assert next(csv.reader(file)) == ["row", "x", "y", "height"]


def test_two_pictures_are_two_files(rows, capsys):
    assert main(["embed", "rows.csv", "--plot", "a.png", "--plot", "./a.png"]) == 2
    assert "choose another name" in capsys.readouterr().err
