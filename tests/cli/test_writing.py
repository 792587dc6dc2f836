"""Files are whole or untouched, and what is written says nothing a spreadsheet would run."""

import csv
import os
import resource
import stat
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from finsler_ext._files import encodable, replaced
from finsler_ext.cli import main
from finsler_ext.cli.output import save_figure, write_output
from tests.cli.commands import run

ROWS = np.random.default_rng(0).normal(size=(60, 4)).round(3)
Y = np.random.default_rng(1).normal(size=(2000, 3))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("plain.csv", ROWS, delimiter=",")
    return tmp_path


@contextmanager
def full_disk():
    """No file may grow beyond a few kB, what the tests themselves are written to included."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", ["a.csv", "a.npy", "a.parquet"])
def test_a_full_disk_leaves_the_good_table(name, folder):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    write_output(Path(name), Y, list(range(2000)), None, None)
    before = Path(name).read_bytes()
    files = sorted(os.listdir())
    with (
        pytest.raises(OSError, match=r"File too large|File size|requested and"),
        full_disk(),
    ):
        write_output(Path(name), 2 * Y, list(range(2000)), None, None)
    assert Path(name).read_bytes() == before
    assert sorted(os.listdir()) == files


def test_a_full_disk_leaves_the_good_picture(folder):
    with save_figure("a.png", 1) as (axes,):
        axes.plot(Y[:, 0])
    before = Path("a.png").read_bytes()
    drawing = save_figure("a.png", 1)
    drawing.__enter__()[0].plot(Y[:, 1])
    with pytest.raises(OSError, match="too large"), full_disk():
        drawing.__exit__(None, None, None)
    assert Path("a.png").read_bytes() == before


def test_the_file_keeps_its_mode_and_links_stay_links(folder):
    Path("real.txt").write_text("old")
    Path("real.txt").chmod(0o640)
    Path("link.txt").symlink_to("real.txt")
    with replaced("link.txt") as file:
        file.write_text("new")
    assert Path("link.txt").is_symlink()
    assert Path("real.txt").read_text() == "new"
    assert stat.S_IMODE(Path("real.txt").stat().st_mode) == 0o640
    mask = os.umask(0o022)
    os.umask(mask)
    with replaced("fresh.txt") as file:
        file.write_text("new")
    assert stat.S_IMODE(Path("fresh.txt").stat().st_mode) == 0o666 & ~mask


def test_an_interrupt_leaves_the_old_file(folder):
    Path("a.txt").write_text("old")
    writing = replaced("a.txt")
    writing.__enter__().write_text("half")
    assert not writing.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert Path("a.txt").read_text() == "old"
    assert sorted(os.listdir()) == ["a.txt", "plain.csv"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["plain.csv", "-o", "link.csv"],
        ["plain.csv", "--plot", "link.png"],
        ["plain.csv", "--plot", "hard.html"],
        ["plain.csv", "-o", "a.csv", "--plot", "same.png"],
    ],
)
def test_no_file_is_read_and_written(arguments, folder, capsys):
    Path("link.csv").symlink_to("plain.csv")
    Path("link.png").symlink_to("plain.csv")
    os.link("plain.csv", "hard.html")
    Path("same.png").symlink_to("a.csv")
    before = Path("plain.csv").read_bytes()
    assert main(["embed", *arguments]) == 2
    assert "choose another name" in capsys.readouterr().err
    assert Path("plain.csv").read_bytes() == before


FORMULAS = ["=cmd|' /C calc'!A0", "@SUM(1+1)", "+1+1", "-2+3", "\t=1", "plain", "-7", "+5", "-1e3"]


def test_no_formula_is_written(folder):
    names = np.array(FORMULAS, dtype=object)
    write_output(Path("a.csv"), Y[: len(names)], FORMULAS, names, "=HYPERLINK(1)")
    with open("a.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header[1] == "'=HYPERLINK(1)"
    want = ["'" + text for text in FORMULAS[:5]] + FORMULAS[5:]
    assert [row[0] for row in rows] == want
    assert [row[1] for row in rows] == want


def test_halves_of_characters_do_not_stop_a_table(folder):
    names = ["a\ud800", "b\udcff"]
    write_output(Path("a.csv"), Y[:2], names, np.array(names, dtype=object), "k")
    assert "a�,a�" in Path("a.csv").read_text(encoding="utf-8")
    assert encodable("😀 é") == "😀 é"


def test_a_reader_that_leaves_is_no_error(folder):
    command = (
        f"set -o pipefail; {sys.executable} -m finsler_ext embed plain.csv --method mds | true"
    )
    done = run(["bash", "-c", command], folder)
    assert (done.returncode, done.stderr) == (0, b"")
    assert Path("plain_finsler.csv").exists()


def test_names_of_files_need_not_be_text(folder):
    name = b"caf\xe9.csv"
    os.rename("plain.csv", name)
    embed = [sys.executable, "-m", "finsler_ext", "embed"]
    done = run([*embed, name, "--method", "mds", "--plot", "a.html"], folder)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"written to caf\\udce9_finsler.csv and a.html" in done.stdout
    assert os.path.exists(b"caf\xe9_finsler.csv")
    done = run([*embed, b"no\xe9.csv"], folder)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"there is no file no\\udce9.csv" in done.stderr


def test_an_error_after_the_table_says_that_it_is_there(folder, monkeypatch, capsys):
    def broken(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("finsler_ext.cli.embed.write_plot", broken)
    assert main(["embed", "plain.csv", "-o", "a.csv", "--plot", "a.png"]) == 2
    assert "No space left on device (a.csv had been written)" in capsys.readouterr().err
    monkeypatch.setattr(
        "finsler_ext.cli.embed.write_plot", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    assert main(["embed", "plain.csv", "-o", "a.csv", "--plot", "a.png"]) == 130
    assert "interrupted; a.csv had been written" in capsys.readouterr().err
