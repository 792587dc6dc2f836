"""The files of bad_files/, each with the one line that the command must print for it."""

from pathlib import Path

import pytest

from finsler_ext.cli import main

FOLDER = Path(__file__).parent / "bad_files"
NEEDS = {".parquet": "pyarrow", ".h5ad": "anndata"}
# file, options, and the line without "finsler-ext: "; after … other packages have the word
LINES = [line.split(" | ") for line in (FOLDER / "lines.txt").read_text("utf-8").splitlines()]


def test_every_file_has_its_line():
    files = {path.name for path in FOLDER.iterdir()} - {"lines.txt", "make.py", "__pycache__"}
    assert {line[0].split()[0] for line in LINES} == files
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.is_file()) < 64_000


@pytest.mark.parametrize(("arguments", "want"), LINES, ids=[line[0] for line in LINES])
def test_one_line_and_nothing_written(arguments, want, tmp_path, monkeypatch, capsys):
    name, *options = arguments.split()
    if Path(name).suffix in NEEDS:
        pytest.importorskip(NEEDS[Path(name).suffix])
    monkeypatch.chdir(FOLDER)
    output = tmp_path / "out.npy"
    assert main(["embed", name, *options, "-o", str(output)]) == 2
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    line = line.removeprefix("finsler-ext: ")
    if want.endswith("…"):
        assert line.startswith(want[:-1])
    else:
        assert line == want
    assert printed.out == ""
    assert not list(tmp_path.iterdir())
