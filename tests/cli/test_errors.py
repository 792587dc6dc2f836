"""Every error of ``finsler-ext embed`` is one line that names the thing, with exit code 2."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from finsler_ext.cli import main
from tests.cli.commands import command

# csv of Python 3.10 refuses a zero byte itself
NUL = "column 'b' is not numeric" if sys.version_info >= (3, 11) else "line contains NUL"
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
    "directed few": (["few.csv", "--directed"], "none is known as the source"),
    "one row": (["one_row.csv"], "at least 4"),
    "label twice": (["twice.csv", "--label", "k"], "has 2 columns 'k'"),
    "too large": (["large.csv"], "beyond 1e+18"),
    "blank": (
        ["blank.csv"],
        "column '1' has a missing value in line 1 (rows with missing values: 3",
    ),
    "unicode": (["greek.csv"], "column 'μέγεθος' is not numeric ('α' in line 2)"),
    "quotes": (["quoted.csv"], """column 'say "x"' is not numeric ('a "b", c' in line 2)"""),
    "half a quote": (["half.csv"], "half.csv: line 3 has 1 cells"),
    "zero byte": (["nul.csv"], NUL),
    "utf-16": (["utf16.csv"], "UTF-8"),
    "npy of nothing": (["nothing.npy"], "not an array of numbers"),
    "npz of nothing": (["nothing.npz"], "cannot be read"),
    "npz without arrays": (["none.npz"], "the file has none"),
    "no columns": (["no_columns.npy"], "no column is left"),
    "complex": (["complex.npy"], "must hold a matrix of numbers"),
    "seed range": (["plain.csv", "--seed", "-1"], "random_state must be"),
    "drift nan": (["plain.csv", "--omega-norm", "nan"], "[0, 1)"),
    "no output name": (["plain.csv", "-o", ""], "unknown ending"),
    "no plot name": (["plain.csv", "--plot", ""], "unknown ending"),
    "page of too many": (["too_many.npy", "--plot", "a.html"], "draw a picture"),
    "directed oblong": (["oblong.csv", "--directed"], "neither a square matrix"),
    "directed unknown": (["unknown.csv", "--directed"], "no distance between any two"),
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


def assert_one_line(name, code, printed, errors):
    message = (ERRORS.get(name) or WITHOUT_PACKAGES[name])[-1]
    assert code == 2, errors
    (line,) = errors.splitlines()
    assert line.startswith("finsler-ext")
    assert message in line
    assert printed == ""


@pytest.mark.parametrize("name", [*ERRORS, *WITHOUT_PACKAGES])
def test_errors_are_one_line_with_exit_code_2(name, folder, monkeypatch, capsys):
    missing, arguments = (
        WITHOUT_PACKAGES[name][:2] if name in WITHOUT_PACKAGES else ((), ERRORS[name][0])
    )
    monkeypatch.chdir(folder)
    for package in missing:
        monkeypatch.setitem(sys.modules, package, None)
    try:
        code = main(["embed", *arguments])
    except SystemExit as left:  # argparse
        code = left.code
    assert_one_line(name, code, *capsys.readouterr())


def test_errors_of_the_real_command(folder):
    """Of a file, of a fit, and of a package that is not there."""
    chosen = {name: ((), ERRORS[name][0]) for name in ("no file", "metric")}
    chosen["picture"] = WITHOUT_PACKAGES["picture"][:2]

    def run(job):
        missing, arguments = job
        return command(["embed", *arguments], folder, missing)

    with ThreadPoolExecutor(2) as pool:
        for name, done in zip(chosen, pool.map(run, chosen.values()), strict=True):
            assert_one_line(name, done.returncode, done.stdout, done.stderr)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all files")
def test_a_file_that_may_not_be_read(folder):
    locked = folder / "locked.csv"
    locked.write_text("a,b\n1,2\n")
    locked.chmod(0)
    done = command(["embed", locked.name], folder)
    assert done.returncode == 2
    assert "Permission denied" in done.stderr


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
