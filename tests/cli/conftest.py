import csv
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_iris

from finsler_ext.cli import main


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


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in an empty folder; returns what it printed."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments, code=0):
        assert main(list(arguments)) == code, capsys.readouterr().err
        return capsys.readouterr()

    return command


@pytest.fixture
def embed(folder, run, monkeypatch):
    """Run the command among the files of ``folder``."""
    monkeypatch.chdir(folder)
    return partial(run, "embed")
