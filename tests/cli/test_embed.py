"""``finsler-ext embed``: what it writes, and every error as one line of the real command."""

import csv
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_iris

from finsler_ext.cli import main

WITHOUT = (
    "import sys\n"
    "for name in {missing!r}: sys.modules[name] = None\n"
    "from finsler_ext.cli import main\n"
    "sys.exit(main(sys.argv[1:]))"
)


def command(arguments, folder, without=()):
    """Run the command as a user does; with packages hidden that the user may not have."""
    start = ["-m", "finsler_ext"] if not without else ["-c", WITHOUT.format(missing=without)]
    return subprocess.run(
        [sys.executable, *start, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files as users have them, good and bad."""
    folder = tmp_path_factory.mktemp("files")
    iris = load_iris()
    X, names = iris.data, iris.target_names[iris.target]

    def write(name, rows, header=("a", "b", "c", "d", "species"), delimiter=","):
        with open(folder / name, "w", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter)
            if header:
                writer.writerow(header)
            writer.writerows(rows)

    named = [[*row, name] for row, name in zip(X.tolist(), names, strict=True)]
    write("iris.csv", named)
    write("iris.tsv", named, delimiter="\t")
    write("semicolon.csv", named, delimiter=";")
    write("plain.csv", X.tolist(), header=None)
    write("index.csv", [[f"r{i}", *row] for i, row in enumerate(X.tolist())], ("", *"abcd"))
    holes = [list(row) for row in named]
    holes[3][1], holes[9][2] = "", "NA"
    write("holes.csv", holes)
    write("two_texts.csv", [[*row, "x"] for row in named], ("a", "b", "c", "d", "species", "note"))
    write("infinite.csv", [*X.tolist(), [1, 2, 3, "inf"]], header=None)
    write("units.csv", [[a, b, 1000 * c] for a, b, c, _ in X.tolist()], ("age", "size", "income"))
    write("same.csv", [[1.0, 2.0]] * 20, ("a", "b"))
    write("few.csv", [[1, 2], [2, 3]], ("a", "b"))
    write("only_header.csv", [])
    write("twice.csv", [["x", *row, "y"] for row in X.tolist()], ("k", *"abcd", "k"))
    write("large.csv", (X * 1e20).tolist(), header=None)
    write("blank.csv", [["", ""]] * 3, header=None)
    write("one_row.csv", [[1, 2]], ("a", "b"))
    write("greek.csv", [["α", 1, 2]] * 9, ("μέγεθος", "a", "b"))
    write("quoted.csv", [['a "b", c', 1]] * 9, ('say "x"', "a"))
    (folder / "half.csv").write_text('a,b\n"1,2\n3,4\n')
    (folder / "nul.csv").write_bytes(b"a,b\n1,\x002\n3,4\n")
    (folder / "utf16.csv").write_text("a,b\n1,2\n", encoding="utf-16")
    (folder / "nothing.npy").write_bytes(b"")
    (folder / "nothing.npz").write_bytes(b"")
    np.savez(folder / "none.npz")
    np.save(folder / "no_columns.npy", np.zeros((9, 0)))
    np.save(folder / "complex.npy", np.zeros((9, 2), dtype=complex))
    np.save(folder / "many.npy", np.arange(100_001.0)[:, None])
    np.save(folder / "too_many.npy", np.arange(500_001.0, dtype=np.float32)[:, None])
    np.save(folder / "unknown_ends.npy", np.array([[i, np.nan, 1.0] for i in range(9)]))
    write("only_label.csv", [["x"]] * 9, ("name",))
    (folder / "taken.csv").mkdir()
    (folder / "ragged.csv").write_text("a,b\n1,2\n1,2,3\n")
    (folder / "empty.csv").write_text("")
    (folder / "binary.csv").write_bytes(b"\xff\xfe\x00a,b\n\x80")
    (folder / "sheet.xlsx").write_bytes(b"PK")
    (folder / "broken.npz").write_bytes(b"PK nothing")
    (folder / "broken.npy").write_bytes(b"nothing")
    (folder / "broken.parquet").write_bytes(b"nothing")
    (folder / "broken.h5ad").write_bytes(b"nothing")
    np.save(folder / "long.npy", np.zeros((20_001, 1)) + np.arange(20_001)[:, None])
    np.save(folder / "cube.npy", np.zeros((2, 2, 2)))
    np.save(folder / "objects.npy", np.array([["a", 1]], dtype=object))
    np.save(folder / "iris.npy", np.column_stack([X, iris.target]))
    np.savez(folder / "iris.npz", X=X, y=iris.target, other=X)
    np.savez(folder / "unclear.npz", first=X, second=X)
    # travel times on a slope: going up takes longer
    place = np.random.default_rng(0).uniform(size=(30, 3)) * [10, 10, 3]
    step = place[None] - place[:, None]
    D = np.linalg.norm(step, axis=2) + 0.5 * step[..., 2]
    stations = [f"s{i}" for i in range(30)]
    write("times.csv", D.tolist(), header=None)
    write(
        "named_times.csv", [[s, *row] for s, row in zip(stations, D.tolist(), strict=True)],
        ("", *stations),
    )  # fmt: skip
    near = np.argsort(D, axis=1)[:, 1:9]
    links = [[f"s{i}", f"s{j}", D[i, j]] for i in range(30) for j in near[i]]
    write("edges.csv", links, ("from", "to", "minutes"))
    write("bad_edges.csv", [*links, ["s1", "s2", "far"]], ("from", "to", "minutes"))
    write("negative.csv", (D - 5).tolist(), header=None)
    write("negative_edges.csv", [*links, ["s1", "s2", -1]], ("from", "to", "minutes"))
    write("ragged_edges.csv", [["s1", "s2", 1], ["s1", "s2"]], header=None)
    write("unknown.csv", [["nan"] * 6] * 6, header=None)
    write("apart.csv", [[f"a{i}", f"b{i}", 1] for i in range(9)], ("from", "to", "minutes"))
    write("oblong.csv", D[:, :20].tolist(), header=None)
    np.savez(folder / "directed.npz", D=D, height=place[:, 2], names=stations, short=np.arange(3))
    scipy.sparse.save_npz(
        folder / "sparse.npz",
        scipy.sparse.csr_matrix(np.where(np.isin(np.arange(30), near[:, :1]), D, 0.0)),
    )
    return folder


# arguments after "embed", and what the one line must say
ERRORS = {
    "no such file": (["nothing.csv"], "there is no file nothing.csv"),
    "folder": (["."], "is a folder"),
    "unknown format": (["sheet.xlsx"], "csv, tsv, npy, npz, parquet, h5ad"),
    "empty": (["empty.csv"], "is empty"),
    "header alone": (["only_header.csv"], "no rows"),
    "not text": (["binary.csv"], "UTF-8"),
    "ragged": (["ragged.csv"], "line 3 has 3 cells, the first line has 2"),
    "text column": (["iris.csv"], "column 'species' is not numeric ('setosa' in line 2)"),
    "text columns": (["two_texts.csv", "--label", "species"], "--drop 'note'"),
    "wrong label": (["iris.csv", "--label", "kind"], "it has a, b, c, d, species"),
    "wrong drop": (["iris.csv", "--drop", "kind"], "no column 'kind'"),
    "wrong number": (["plain.csv", "--label", "9"], "numbered from 1"),
    "nothing left": (["only_label.csv", "--label", "name"], "no column is left"),
    "missing values": (["holes.csv", "--label", "species"], "column 'b' has a missing value"),
    "infinite": (["infinite.csv"], "infinite"),
    "all equal": (["same.csv"], "all rows are equal"),
    "few rows": (["few.csv"], "at least 4"),
    "npy shape": (["cube.npy"], "must hold a matrix"),
    "npy objects": (["objects.npy"], "not an array of numbers"),
    "npy broken": (["broken.npy"], "broken.npy"),
    "npy label": (["iris.npy", "--label", "species"], "numbered 1 to 5"),
    "npz broken": (["broken.npz"], "cannot be read"),
    "npz unclear": (["unclear.npz"], "--array; the file has first, second"),
    "npz array": (["iris.npz", "--array", "Z"], "no matrix 'Z'"),
    "npz label": (["iris.npz", "--label", "z"], "there is y"),
    "npz drop": (["iris.npz", "--drop", "z"], "has none"),
    "array of csv": (["iris.csv", "--array", "X"], "npz"),
    "drift": (["iris.csv", "--label", "species", "--omega-norm", "1.5"], "[0, 1)"),
    "drift word": (["iris.csv", "--label", "species", "--omega-norm", "much"], "'auto'"),
    "metric": (["plain.csv", "--metric", "crow"], "--metric crow"),
    "method": (["plain.csv", "--method", "pca"], "invalid choice: 'pca'"),
    "mds rows": (["long.npy", "--method", "mds"], "use --method umap"),
    "seed": (["plain.csv", "--seed", "x"], "invalid int value"),
    "threads": (["plain.csv", "--threads", "0"], "n_jobs"),
    "no file": ([], "FILE"),
    "output ending": (["plain.csv", "-o", "out.doc"], "csv, parquet, npy"),
    "output folder": (["plain.csv", "-o", "no/out.csv"], "no folder no"),
    "output is a folder": (["plain.csv", "-o", "taken.csv"], "cannot be written"),
    "output is input": (["plain.csv", "-o", "plain.csv"], "choose another name"),
    "plot ending": (["plain.csv", "--plot", "out.gif"], "png"),
    "plot folder": (["plain.csv", "--plot", "no/out.png"], "no folder no"),
    "directed table": (["iris.csv", "--directed"], "leave --directed out"),
    "directed metric": (["times.csv", "--directed", "--metric", "cosine"], "--metric"),
    "directed standardize": (["times.csv", "--directed", "--standardize"], "--standardize"),
    "directed label": (["times.csv", "--directed", "--label", "a"], "npz"),
    "directed npz label": (["directed.npz", "--directed", "--label", "short"], "height"),
    "directed h5ad": (["broken.h5ad", "--directed"], "broken.h5ad"),
    "directed array": (["times.csv", "--directed", "--array", "D"], "npz"),
    "directed empty": (["empty.csv", "--directed"], "is empty"),
    "directed npy": (["iris.npy", "--directed"], "neither a square matrix nor an edge list"),
    "directed few": (["few.csv", "--directed"], "at least 4"),
    "one row": (["one_row.csv"], "at least 4"),
    "label twice": (["twice.csv", "--label", "k"], "has 2 columns 'k'"),
    "too large": (["large.csv"], "beyond 1e+18"),
    "blank": (["blank.csv"], "column '1' has a missing value in row 0 (3 rows"),
    "unicode": (["greek.csv"], "column 'μέγεθος' is not numeric ('α' in line 2)"),
    "quotes": (["quoted.csv"], """column 'say "x"' is not numeric ('a "b", c' in line 2)"""),
    "half a quote": (["half.csv"], "half.csv: line 3 has 1 cells"),
    "zero byte": (["nul.csv"], "column 'b' is not numeric"),
    "utf-16": (["utf16.csv"], "UTF-8"),
    "npy of nothing": (["nothing.npy"], "not an array of numbers"),
    "npz of nothing": (["nothing.npz"], "cannot be read"),
    "npz without arrays": (["none.npz"], "the file has none"),
    "no columns": (["no_columns.npy"], "no column is left"),
    "complex": (["complex.npy"], "must hold a matrix of numbers"),
    "seed range": (["plain.csv", "--seed", "-1"], "Seed must be between 0"),
    "drift nan": (["plain.csv", "--omega-norm", "nan"], "[0, 1)"),
    "no output name": (["plain.csv", "-o", ""], "unknown ending"),
    "no plot name": (["plain.csv", "--plot", ""], "unknown ending"),
    "page of too many": (["too_many.npy", "--plot", "a.html"], "draw a picture"),
    "directed oblong": (["oblong.csv", "--directed"], "neither a square matrix"),
    "directed unknown": (["unknown.csv", "--directed"], "no distance between any two"),
    "directed apart": (["apart.csv", "--directed"], "fall apart into 9 groups"),
    "edge ends": (["unknown_ends.npy", "--directed"], "whole numbers"),
    "negative edge": (["negative_edges.csv", "--directed"], "≥ 0, got -1.0 on 's1' → 's2'"),
    "ragged edges": (["ragged_edges.csv", "--directed"], "line 2 has 2 cells"),
    "edge length": (["bad_edges.csv", "--directed"], "length 'far'"),
    "negative": (["negative.csv", "--directed"], "negative"),
}
# packages that are not there, arguments, and what must be said
WITHOUT_PACKAGES = {
    "read parquet": (["pyarrow", "pyarrow.parquet"], ["broken.parquet"], "finsler_ext[parquet]"),
    "write parquet": (["pyarrow"], ["plain.csv", "-o", "a.parquet"], "finsler_ext[parquet]"),
    "read h5ad": (["anndata"], ["broken.h5ad"], "finsler_ext[h5ad]"),
    "picture": (["matplotlib"], ["plain.csv", "--plot", "a.png"], "finsler_ext[plot]"),
    "page": (["plotly"], ["plain.csv", "--plot", "a.html"], "finsler_ext[plot]"),
    "large picture": (["datashader"], ["many.npy", "--plot", "a.png"], "finsler_ext[large]"),
}


@pytest.fixture(scope="module")
def failed(folder):
    """Every error by the real command, two at a time."""
    jobs = {name: ((), arguments) for name, (arguments, _) in ERRORS.items()}
    jobs |= {name: job[:2] for name, job in WITHOUT_PACKAGES.items()}

    def run(job):
        missing, arguments = job
        return command(["embed", *arguments], folder, missing)

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(jobs, pool.map(run, jobs.values()), strict=True))


@pytest.mark.parametrize("name", [*ERRORS, *WITHOUT_PACKAGES])
def test_errors_are_one_line_with_exit_code_2(name, failed):
    message = (ERRORS.get(name) or WITHOUT_PACKAGES[name])[-1]
    done = failed[name]
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("finsler-ext")
    assert message in line
    assert done.stdout == ""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all files")
def test_a_file_that_may_not_be_read(folder):
    locked = folder / "locked.csv"
    locked.write_text("a,b\n1,2\n")
    locked.chmod(0)
    done = command(["embed", locked.name], folder)
    assert done.returncode == 2
    assert "Permission denied" in done.stderr


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


def test_nothing_is_written_after_an_error(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert main(["embed", "iris.csv"]) == 2
    assert not list(folder.glob("*_finsler.csv"))


@pytest.mark.parametrize(
    ("name", "package"), [("broken.parquet", "pyarrow"), ("broken.h5ad", "anndata")]
)
def test_broken_files_of_optional_formats(name, package, folder, monkeypatch, capsys):
    pytest.importorskip(package)
    monkeypatch.chdir(folder)
    assert main(["embed", name]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{name} cannot be read" in line


def test_what_is_not_expected_is_one_line_too(folder, monkeypatch, capsys):
    def broken(options, interrupts):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("finsler_ext.cli.embed.embed", broken)
    assert main(["embed", "x"]) == 1
    assert "unexpected RuntimeError: two lines (FINSLER_DEBUG=1" in capsys.readouterr().err
    monkeypatch.setenv("FINSLER_DEBUG", "1")
    with pytest.raises(RuntimeError):
        main(["embed", "x"])


def test_ctrl_c_is_no_traceback(monkeypatch, capsys):
    def interrupted(options, interrupts):
        raise KeyboardInterrupt

    monkeypatch.setattr("finsler_ext.cli.embed.embed", interrupted)
    assert main(["embed", "x"]) == 130
    assert "interrupted" in capsys.readouterr().err


@pytest.fixture
def embed(folder, monkeypatch, capsys):
    """Run the command in this process and return what it printed."""
    monkeypatch.chdir(folder)

    def run(*arguments):
        assert main(["embed", *arguments]) == 0, capsys.readouterr().err
        return capsys.readouterr()

    return run


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_the_real_command_writes_table_and_picture(folder):
    done = command(
        ["embed", "iris.csv", "--label", "species", "--plot", "iris.png", "-o", "real.csv"], folder
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    assert "Embedded 150 rows of 4 columns in" in done.stdout
    assert "written to real.csv and iris.png. The height orders 8" in done.stdout
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
        assert "of all pairs from cheap to costly to reach" in printed
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
