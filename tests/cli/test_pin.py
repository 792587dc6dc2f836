"""``finsler-ext embed --pin``: rows of a table keep their places."""

import numpy as np
import pytest

import finsler_ext
from tests.cli.commands import table


def write(folder, text):
    (folder / "places.csv").write_text(text)


@pytest.mark.parametrize("method", ["umap", "tsne"])
def test_rows_keep_their_places(embed, folder, method):
    write(folder, "row,note,x,y,height\n3,a,1.5,2.25,0.5\n90,b,-4.0,7.0,\n149,c,,,\n")
    embed(
        "iris.csv", "--label", "species", "--method", method, "--pin", "places.csv",
        "--save", "pinned.finsler", "-o", "pinned.csv",
    )  # fmt: skip
    rows = table(folder / "pinned.csv")
    assert [float(rows[3][name]) for name in ("x", "y", "height")] == [1.5, 2.25, 0.5]
    assert [float(rows[90][name]) for name in ("x", "y")] == [-4.0, 7.0]
    pins = finsler_ext.load(folder / "pinned.finsler").pinned_
    assert np.isfinite(pins).sum() == 5


def test_what_was_written_can_be_pinned(embed, folder):
    embed("iris.csv", "--label", "species", "-o", "first.csv")
    lines = (folder / "first.csv").read_text().splitlines()
    write(folder, "\n".join(lines[:101]))
    embed("iris.csv", "--label", "species", "--pin", "places.csv", "--seed", "5", "-o", "next.csv")
    first, after = table(folder / "first.csv"), table(folder / "next.csv")
    assert first[:100] == after[:100]
    assert first[100:] != after[100:]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("row,x,y\n999,1,2\n", [], "line 2: the data has no row '999'"),
        ("name,x,y\n1,1,2\n", [], "needs a column 'row'"),
        ("", [], "it has none"),
        ("row,x,y\n1,a,2\n", [], "x is 'a', not a number"),
        ("row,x,y\n1,1,2\n", ["--method", "mds"], "--pin is for umap and tsne"),
        ("row,x,y\n1,1,2\n", ["-o", "places.csv"], "choose another name"),
    ],
)
def test_wrong_tables_are_one_line(folder, capsys, monkeypatch, text, options, words):
    from finsler_ext.cli import main

    monkeypatch.chdir(folder)
    write(folder, text)
    assert main(["embed", "iris.csv", "--label", "species", "--pin", "places.csv", *options]) != 0
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
