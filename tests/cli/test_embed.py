"""``finsler-ext embed``: what it reads and writes."""

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

from finsler_ext.cli import main
from tests.cli.commands import command, table


def test_the_real_command_writes_table_and_picture(folder):
    done = command(
        ["embed", "iris.csv", "--label", "species", "--plot", "iris.png", "-o", "real.csv"], folder
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    assert "Embedded 150 rows of 4 columns in" in done.stdout
    assert "real.csv and iris.png. Density varies, and the height shows it (p < " in done.stdout
    rows = table(folder / "real.csv")
    assert list(rows[0]) == ["row", "species", "x", "y", "height"]
    assert [row["row"] for row in rows] == [str(i) for i in range(150)]
    assert rows[149]["species"] == "virginica"
    assert (folder / "iris.png").read_bytes().startswith(b"\x89PNG")


def test_the_result_is_that_of_the_estimator(embed, folder):
    from finsler_ext import FinslerUMAP

    embed("iris.csv", "--label", "species", "-o", "a.npy", "--seed", "3")
    X = load_iris().data
    assert np.array_equal(np.load(folder / "a.npy"), FinslerUMAP(random_state=3).fit_transform(X))


def test_delimiters_headers_and_row_names(embed, folder):
    embed("iris.csv", "--label", "species", "-o", "want.npy")
    want = np.load(folder / "want.npy")
    for arguments in (
        ["iris.tsv", "--label", "species"],
        ["semicolon.csv", "--label", "species"],
        ["plain.csv"],
        ["iris.npy", "--label", "5"],
        ["iris.npz", "--label", "y"],
        ["two_texts.csv", "--label", "species", "--drop", "note"],
    ):
        embed(*arguments, "-o", "got.npy", "--threads", "1")
        assert np.array_equal(np.load(folder / "got.npy"), want), arguments
    embed("index.csv", "-o", "names.csv")
    assert [row["row"] for row in table(folder / "names.csv")][:2] == ["r0", "r1"]


def test_rows_with_missing_values_are_left_out_when_asked(embed, folder):
    embed("holes.csv", "--label", "species", "--drop-missing", "-o", "b.csv")
    rows = [int(row["row"]) for row in table(folder / "b.csv")]
    assert rows == [i for i in range(150) if i not in (3, 9)]


def test_columns_in_different_units_are_noted(embed, folder):
    printed = embed("units.csv", "-o", "a.npy")
    assert "column 'income'" in printed.err
    assert "--standardize" in printed.err
    assert embed("units.csv", "--standardize", "-o", "b.npy").err == ""
    from finsler_ext import FinslerUMAP

    X = load_iris().data[:, :3] * [1, 1, 1000]
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    assert np.array_equal(
        np.load(folder / "b.npy"), FinslerUMAP(random_state=0).fit_transform(scaled)
    )


@pytest.mark.parametrize("method", ["tsne", "mds"])
def test_other_methods(embed, folder, method):
    printed = embed("plain.csv", "--method", method, "-o", "a.npy", "--metric", "manhattan").out
    assert {"tsne": "FinslerTSNE", "mds": "FinslerMDS"}[method] in printed
    assert np.load(folder / "a.npy").shape == (150, 3)


def test_drift_by_itself(embed):
    assert "at omega_norm=0." in embed("plain.csv", "--omega-norm", "auto", "-o", "a.npy").out


def test_directed_matrices_and_edge_lists(embed, folder):
    from scipy.stats import spearmanr

    height = np.load(folder / "directed.npz")["height"]
    for name in ("times.csv", "named_times.csv", "directed.npz"):
        printed = embed(name, "--directed", "-o", "a.csv", "--omega-norm", "0.5").out
        assert "30 points with 870 directed distances" in printed
        assert "There is a direction, and the height shows it" in printed
        found = table(folder / "a.csv")
        assert spearmanr([float(row["height"]) for row in found], height).statistic > 0.95
    assert found[3]["row"] == "s3"
    printed = embed("edges.csv", "--directed", "-o", "a.csv", "--plot", "a.html").out
    assert "30 points with 240 directed distances" in printed
    found = {row["row"]: float(row["height"]) for row in table(folder / "a.csv")}
    assert spearmanr([found[f"s{i}"] for i in range(30)], height).statistic > 0.8
    assert "costly to reach is high" in (folder / "a.html").read_text()


@pytest.mark.parametrize("method", ["umap", "tsne"])
def test_directed_data_with_other_methods(embed, method):
    printed = embed("edges.csv", "--directed", "--method", method, "-o", "a.npy").out
    assert "directed distances" in printed


def test_parquet(embed, folder):
    parquet = pytest.importorskip("pyarrow.parquet")
    embed("iris.csv", "--label", "species", "-o", "a.parquet")
    written = parquet.read_table(folder / "a.parquet")
    assert written.column_names == ["row", "species", "x", "y", "height"]
    embed("a.parquet", "--label", "species", "--drop", "row", "-o", "b.npy")
    assert main(["embed", "a.parquet", "--drop", "row"]) == 2
    assert main(["embed", "a.parquet", "--label", "kind"]) == 2


def test_h5ad(embed, folder, capsys):
    anndata = pytest.importorskip("anndata")
    iris = load_iris()
    adata = anndata.AnnData(iris.data.astype(np.float32))
    adata.obs["kind"] = iris.target_names[iris.target]
    adata.write_h5ad(folder / "iris.h5ad")
    assert "4 columns of X in" in embed("iris.h5ad", "--label", "kind", "-o", "a.csv").out
    adata.obsm["X_pca"] = iris.data[:, :3]
    adata.write_h5ad(folder / "iris.h5ad")
    assert "3 columns of X_pca in" in embed("iris.h5ad", "-o", "a.csv").out
    assert main(["embed", "iris.h5ad", "--label", "species"]) == 2
    assert "it has kind" in capsys.readouterr().err


def test_the_bar_says_how_much_time_is_left(folder, monkeypatch, capsys):
    """On a terminal, and after a while; never in a pipe."""
    from finsler_ext.cli import embed as module

    monkeypatch.chdir(folder)
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    assert main(["embed", "plain.csv", "-o", "a.npy"]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(module, "MDS_PATIENCE", 10)
    for method, shown in (("umap", " left"), ("tsne", " left"), ("mds", "smacof, drift 0.5")):
        assert main(["embed", "plain.csv", "-o", "a.npy", "--method", method]) == 0
        printed = capsys.readouterr()
        assert "%" in printed.err, method
        assert shown in printed.err, method
        assert printed.out.count("\n") == 1, method


def test_importing_the_command_is_cheap():
    code = (
        "import sys, finsler_ext.cli, finsler_ext.cli.embed;"
        "print([m for m in ('numba', 'sklearn', 'umap', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_letters_that_a_font_lacks_are_a_note(embed, folder):
    rows = [f"{i},{i * i % 7},{'🙂☃'[i % 2]}" for i in range(30)]
    (folder / "faces.csv").write_text("\n".join(["a,b,k", *rows]), encoding="utf-8")
    printed = embed("faces.csv", "--label", "k", "--plot", "faces.png", "-o", "a.npy")
    assert all(line.startswith("finsler-ext: note: ") for line in printed.err.splitlines())
    assert printed.out.count("\n") == 1


def test_limits_are_those_of_the_plots():
    from finsler_ext.cli import output
    from finsler_ext.plot import dots
    from finsler_ext.plot.explore import MOST_POINTS

    assert (output.MOST_DOTS, output.MOST_IN_A_PAGE) == (dots.MANY, MOST_POINTS)
