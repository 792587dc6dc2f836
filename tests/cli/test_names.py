"""Names decide: of columns, of points, and of files that must not be overwritten."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from finsler_ext import FinslerMDS

X = np.random.default_rng(0).normal(size=(30, 3))


def directed(n=6):
    rng = np.random.default_rng(1)
    P = rng.normal(size=(n, 2))
    D = np.linalg.norm(P[:, None] - P, axis=2) * (1 + 0.3 * rng.random((n, n)))
    np.fill_diagonal(D, 0)
    return D


def rows_of(path):
    return pd.read_csv(path, dtype={"row": str})["row"].tolist()


def places(path):
    return pd.read_csv(path)[["x", "y", "height"]].to_numpy()


# ------------------------------------------------------------------ points of directed files


@pytest.mark.parametrize("names", [range(6), range(2001, 2007), [11, 7, 5, 3, 2, 13]])
def test_a_frame_with_numbers_for_names(run, names):
    D = pd.DataFrame(directed(), index=names, columns=names)
    D.to_csv("D.csv")
    said = run("embed", "D.csv", "--directed", "-o", "o.csv", "--components", "3").err
    assert "named by the first line and column" in said
    assert rows_of("o.csv") == [str(name) for name in names]
    np.save("D.npy", D)
    run("embed", "D.npy", "--directed", "-o", "p.csv", "--components", "3")
    np.testing.assert_array_equal(places("o.csv"), places("p.csv"))


@pytest.mark.parametrize("shape", [(7, 6), (6, 7), (8, 6)])
def test_numbers_that_are_not_square_are_refused(run, shape):
    D = np.random.default_rng(0).random(shape)
    if shape == (7, 6):  # a line of names above a matrix
        np.fill_diagonal(D[1:], 0)
    np.savetxt("D.csv", D, delimiter=",")
    error = run("embed", "D.csv", "--directed", code=2).err
    assert f"it has {shape[0]} lines of {shape[1]} cells" in error
    if shape == (7, 6):
        run("embed", "D.csv", "--directed", "--header", "-o", "o.csv")
        assert len(rows_of("o.csv")) == 6


def test_an_empty_diagonal_may_be_either(run):
    D = np.abs(np.arange(5.0)[:, None] - np.arange(5.0))
    lines = [["" if i == j else f"{d}" for j, d in enumerate(row)] for i, row in enumerate(D)]
    Path("D.csv").write_text("\n".join(",".join(line) for line in lines))
    assert "and so is the diagonal; say --header" in run("embed", "D.csv", "--directed", code=2).err
    run("embed", "D.csv", "--directed", "--no-header", "-o", "o.csv")
    assert len(rows_of("o.csv")) == 5


def test_a_short_list_of_numbered_edges(run):
    Path("e.csv").write_text("1,2,5\n2,3,4\n3,1,2\n1,4,9\n")
    said = run("embed", "e.csv", "--directed", "-o", "o.csv", "--method", "umap").err
    assert "an edge list without a header, in the order source, target, length" in said
    assert rows_of("o.csv") == ["1", "2", "3", "4"]


def test_minus_infinity_is_no_distance(run):
    D = directed()
    D[0, 2] = -np.inf
    np.savetxt("D.csv", D, delimiter=",")
    assert "negative" in run("embed", "D.csv", "--directed", code=2).err


# ------------------------------------------------------------------ columns of new rows


def save_model(run, frame, name="old", *options):
    frame.to_csv(f"{name}.csv", index=False)
    files = ["-o", f"{name}_o.csv", "--save", f"{name}.finsler"]
    run("embed", f"{name}.csv", "--method", "mds", *files, *options)
    return places(f"{name}_o.csv")


def test_columns_of_the_same_name(run):
    frame = pd.DataFrame(X)
    frame.columns = ["v", "v", "w"]
    fitted = save_model(run, frame)
    run("transform", "old.finsler", "old.csv", "-o", "n.csv")
    np.testing.assert_allclose(places("n.csv"), fitted, atol=0.02)
    frame.iloc[:, [2, 0, 1]].to_csv("new.csv", index=False)
    error = run("transform", "old.finsler", "new.csv", "-o", "n.csv", code=2).err
    assert "several columns 'v'" in error


def test_columns_called_by_numbers(run):
    frame = pd.DataFrame(X, columns=["1", "2", "3"])
    fitted = save_model(run, frame, "old", "--header")
    frame[["3", "1", "2"]].to_csv("new.csv", index=False)
    run("transform", "old.finsler", "new.csv", "--header", "-o", "n.csv")
    np.testing.assert_allclose(places("n.csv"), fitted, atol=0.02)


def test_nodes_in_another_order_and_foreign_ones(run):
    D, names = directed(12), [f"p{i}" for i in range(12)]
    frame = pd.DataFrame(D, index=names, columns=names)
    frame.to_csv("D.csv")
    run("embed", "D.csv", "--directed", "--components", "3", "--save", "D.finsler")
    new, back = frame.iloc[:3] + 0.1, frame.T.iloc[:3] + 0.1
    new.to_csv("new.csv")
    back.to_csv("back.csv")
    new[names[::-1]].to_csv("reversed.csv")
    back[names[::-1]].to_csv("reversed_back.csv")
    ways = ("--incoming", "back.csv", "-o", "a.csv")
    run("transform", "D.finsler", "new.csv", *ways)
    ways = ("--incoming", "reversed_back.csv", "-o", "b.csv")
    run("transform", "D.finsler", "reversed.csv", *ways)
    np.testing.assert_array_equal(places("a.csv"), places("b.csv"))
    new.rename(columns=lambda name: f"x{name}").to_csv("foreign.csv")
    error = run("transform", "D.finsler", "foreign.csv", *ways, code=2).err
    assert "has no column 'p0', which the model was fitted to" in error


def test_what_the_model_does_not_know_is_left_out(run):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["kind"] = [f"k{i % 3}" for i in range(30)]
    fitted = save_model(run, frame, "old", "--label", "kind")
    printed = run("transform", "old.finsler", "old.csv", "-o", "n.csv", "--plot", "n.png")
    assert "left out what the model does not know, kind" in printed.err
    np.testing.assert_allclose(places("n.csv"), fitted, atol=0.02)
    assert Path("n.png").read_bytes().startswith(b"\x89PNG")
    assert "written to n.csv and n.png" in printed.out


def test_one_side_without_names_is_said(run):
    fitted = save_model(run, pd.DataFrame(X, columns=["a", "b", "c"]))
    np.save("new.npy", X)
    printed = run("transform", "old.finsler", "new.npy", "-o", "n.csv")
    assert "matched by their order, because the file has no names" in printed.err
    np.testing.assert_allclose(places("n.csv"), fitted, atol=0.02)


@pytest.mark.parametrize("name", ["id", "Unnamed: 0", "patient_id", "count"])
def test_a_column_that_names_the_rows(run, name):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.insert(0, name, range(30))
    frame.to_csv("a.csv", index=False)
    assert f"use --index {name!r}" in run("embed", "a.csv", "--method", "mds").err
    frame[name] = [f"r{i}" for i in range(30)]
    frame.to_csv("a.csv", index=False)
    assert f"--index {name!r}" in run("embed", "a.csv", code=2).err


# ------------------------------------------------------------------ files


def test_inputs_are_not_overwritten(run):
    D = directed(12)
    FinslerMDS(metric="precomputed", max_iter=5, random_state=0).fit(D).save("m.finsler")
    for name in ("new", "inc"):
        np.savetxt(f"{name}.csv", D[:3] + 0.1, delimiter=",")
    os.symlink("m.finsler", "link.csv")
    before = {name: Path(name).read_bytes() for name in ("new.csv", "inc.csv", "m.finsler")}
    for output in ("new.csv", "inc.csv", "link.csv"):
        arguments = ("m.finsler", "new.csv", "--incoming", "inc.csv", "-o", output)
        assert "choose another name" in run("transform", *arguments, code=2).err
    assert {name: Path(name).read_bytes() for name in before} == before


def test_a_file_of_no_rows_and_many_columns(run):
    np.save("a.npy", np.empty((0, 10**8), dtype=np.float32))
    assert "has 0 rows" in run("embed", "a.npy", code=2).err


def test_a_label_with_the_name_of_a_map_column(run):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["map3"] = "k"
    frame.to_csv("a.csv", index=False)
    arguments = ("--label", "map3", "--components", "4", "--method", "mds", "-o", "o.csv")
    assert "is column 'label_map3'" in run("embed", "a.csv", *arguments).err
    columns = pd.read_csv("o.csv").columns.tolist()
    assert columns == ["row", "label_map3", "x", "y", "map3", "height"]


def test_nothing_in_a_file_reaches_the_terminal_raw(run):
    Path("a.csv").write_text("a\x1b[31m,b\nx\x1b]0;hi\x07,2\n3,4\n5,6\n7,8\n")
    assert "\x1b" not in run("embed", "a.csv", code=2).err
    Path("b.csv").write_text("a\x1b[31m,b,c\n1,2,x\n3,1,y\n2,6,z\n7,8,x\n5,5,y\n")
    printed = run("embed", "b.csv", "--label", "c", "--index", "a\x1b[31m", "--method", "mds")
    assert "\x1b" not in printed.out + printed.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device_is_an_error(run):
    np.save("a.npy", X)
    os.symlink("/dev/full", "full.png")
    error = run(
        "embed", "a.npy", "--method", "mds", "-o", "o.csv", "--plot", "full.png", code=2
    ).err
    assert "No space left" in error


def test_closed_streams(tmp_path):
    np.save(tmp_path / "a.npy", X)
    command = f"{sys.executable} -m finsler_ext embed a.npy --method mds -o o.csv >&- 2>&-"
    done = subprocess.run(command, shell=True, cwd=tmp_path, check=False, capture_output=True)
    assert done.returncode == 0
    assert b"Error" not in done.stderr
    assert len(rows_of(tmp_path / "o.csv")) == 30
