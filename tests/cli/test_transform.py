"""``finsler-ext embed --save`` and ``finsler-ext transform``: the same places as in Python."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from finsler_ext import FinslerMDS, load
from finsler_ext.cli import main
from finsler_ext.cli import transform as transform_module
from tests.cli.commands import table

pytestmark = pytest.mark.filterwarnings("ignore:perplexity=30 is too large:UserWarning")

IRIS = load_iris()
NAMES = ["sepal", "width", "petal", "depth"]
FRAME = pd.DataFrame(IRIS.data, columns=NAMES)
FRAME["species"] = IRIS.target_names[IRIS.target]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    FRAME[::2].to_csv(folder / "old.csv", index=False)
    FRAME[1::2].to_csv(folder / "new.csv", index=False)
    FRAME[1::2][[*NAMES[::-1], "species"]].to_csv(folder / "reversed.csv", index=False)
    FRAME[1::2].drop(columns="petal").to_csv(folder / "short.csv", index=False)
    np.save(folder / "new.npy", IRIS.data[1::2])
    np.save(folder / "narrow.npy", IRIS.data[1::2, :3])
    return folder


@pytest.fixture(scope="module")
def saved(folder):
    for method in ("umap", "tsne", "mds"):
        options = ["--label", "species", "--standardize", "--method", method]
        files = ["--save", f"{folder}/{method}.finsler", "-o", f"{folder}/{method}.csv"]
        assert main(["embed", f"{folder}/old.csv", *options, *files]) == 0
    return folder


def places(path):
    return np.array([[float(row[c]) for c in ("x", "y", "height")] for row in table(path)])


@pytest.mark.parametrize("method", ["umap", "tsne", "mds"])
@pytest.mark.parametrize("file", ["new.csv", "reversed.csv"])
def test_places_are_those_of_transform(method, file, saved, capsys, monkeypatch):
    monkeypatch.setattr(transform_module, "BATCH", 20)
    model, out = f"{saved}/{method}.finsler", f"{saved}/placed.csv"
    code = main(["transform", model, f"{saved}/{file}", "--label", "species", "-o", out])
    assert code == 0
    assert "Placed 75 rows among the 75 points" in capsys.readouterr().out
    assert [row["species"] for row in table(out)] == list(FRAME["species"][1::2])
    old = IRIS.data[::2]
    new = (IRIS.data[1::2] - old.mean(axis=0)) / old.std(axis=0)
    expected = load(model).transform(new)
    np.testing.assert_allclose(places(out), expected, rtol=1e-5, atol=1e-6)


def test_embedded_rows_return_to_their_places(saved):
    out = f"{saved}/same.csv"
    model = f"{saved}/umap.finsler"
    assert main(["transform", model, f"{saved}/old.csv", "--label", "species", "-o", out]) == 0
    np.testing.assert_array_equal(places(out), places(f"{saved}/umap.csv"))


def test_single_row(saved, tmp_path):
    np.save(tmp_path / "one.npy", IRIS.data[1:2])
    out = f"{tmp_path}/one.csv"
    assert main(["transform", f"{saved}/mds.finsler", f"{tmp_path}/one.npy", "-o", out]) == 0
    assert len(table(out)) == 1


def test_directed_distances_both_ways(tmp_path):
    rng = np.random.default_rng(0)
    points, height = rng.normal(size=(30, 2)), rng.normal(size=30)
    D = np.linalg.norm(points[:, None] - points, axis=2) * np.exp(0.2 * (height - height[:, None]))
    model = FinslerMDS(metric="precomputed", max_iter=10, random_state=0).fit(D[:25, :25])
    model.save(tmp_path / "model.finsler")
    np.save(tmp_path / "there.npy", D[25:, :25])
    np.save(tmp_path / "back.npy", D[:25, 25:].T)
    files = [f"{tmp_path}/{name}" for name in ("model.finsler", "there.npy", "back.npy", "o.npy")]
    assert main(["transform", *files[:2], "--incoming", files[2], "-o", files[3]]) == 0
    expected = model.transform(D[25:, :25], incoming=D[:25, 25:].T)
    np.testing.assert_array_equal(np.load(files[3]), expected)


@pytest.mark.parametrize(
    ("model", "arguments", "line"),
    [
        ("umap.finsler", ["short.csv", "--label", "species"], "has no column 'petal'"),
        ("umap.finsler", ["narrow.npy"], "has 3 columns of numbers, the model was fitted to 4"),
        ("umap.finsler", ["none.csv"], "there is no file"),
        ("none.finsler", ["new.npy"], "there is no file"),
        ("new.npy", ["new.npy"], "is not a model saved by finsler_ext"),
        ("half.finsler", ["new.npy"], "is damaged or truncated"),
    ],
)
def test_errors_are_one_line(model, arguments, line, saved, capsys):
    whole = (saved / "umap.finsler").read_bytes()
    (saved / "half.finsler").write_bytes(whole[: len(whole) // 2])
    out = saved / "never.csv"
    arguments = [f"{saved}/{arguments[0]}", *arguments[1:]]
    assert main(["transform", f"{saved}/{model}", *arguments, "-o", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert line in error
    assert not out.exists()


def test_save_refuses_other_endings_before_the_work(folder, capsys):
    code = main(["embed", f"{folder}/old.csv", "--label", "species", "--save", "model.pkl"])
    assert code == 2
    assert "unknown ending; use one of finsler" in capsys.readouterr().err
