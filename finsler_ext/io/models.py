"""Save a fitted model to a file, and load it.

A file is a zip archive of npy files and one manifest, with a checksum of every part:

    manifest.json  {"format", "version", "written_by", "arrays": {name: sha256}, "model", "about"}
    0.npy, 1.npy   the arrays the model refers to

Parts are stored without compression and without dates: the same model gives the same bytes. What
is read never takes more memory than the file has bytes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from sklearn.utils.validation import check_is_fitted

from finsler_ext._files import replaced
from finsler_ext.io.codec import Decoder, Encoder
from finsler_ext.io.state import is_estimator

FORMAT = "finsler_ext model"
# Raised whenever older versions of this package could not read what is written.
VERSION = 1
MANIFEST = "manifest.json"
# Named in the file for whoever wonders what it was made with.
PACKAGES = ("finsler_ext", "numpy", "scipy", "scikit-learn", "numba", "umap-learn", "openTSNE")
# How zip archives start.
ARCHIVE = b"PK"
CHUNK = 2**20
# What zipfile raises where offsets make no sense; other numbers are the machine's.
DAMAGE = (None, errno.EINVAL)


class SaveMixin:
    """``save`` for estimators."""

    def save(self, path) -> None:
        """Write this model to a file that `finsler_ext.load` reads.

        The file holds arrays and JSON, and no code. It is written whole or not at all. Models
        with functions among their parameters (a callable metric, callbacks) cannot be saved.

        Parameters
        ----------
        path : str or path-like
            By custom it ends in ".finsler".
        """
        save(self, path)


def save(model, path, about: dict | None = None) -> None:
    """Write a fitted model, or an openTSNE embedding of ours, to a file.

    Parameters
    ----------
    model : FinslerUMAP, FinslerTSNE, FinslerMDS, AlignedFinslerUMAP or openTSNE.TSNEEmbedding
    path : str or path-like
    about : dict, optional
        What else is to be kept with the model: text, numbers, arrays. `read` returns it.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from finsler_ext import FinslerMDS, load
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> model = FinslerMDS(random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.finsler")
    ...     loaded = load(f"{folder}/model.finsler")
    >>> bool(np.array_equal(loaded.transform(X[:3] + 0.1), model.transform(X[:3] + 0.1)))
    True
    """
    if not is_estimator(type(model)):
        raise ValueError(
            f"model: a {type(model).__name__} cannot be saved. A file is for FinslerUMAP, "
            "FinslerTSNE, FinslerMDS and AlignedFinslerUMAP themselves, not for classes derived "
            "from them."
        )
    if hasattr(model, "fit"):
        kept = (name for name in ("graph_", "models_") if hasattr(model, name))
        check_is_fitted(model, next(kept, "embedding_"))
    with replaced(path) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        checksums: dict[str, str] = {}

        def keep(array: np.ndarray) -> str:
            name = f"{len(checksums)}.npy"
            with archive.open(_part(name), "w", force_zip64=True) as file:
                watched = _Hashed(file)
                np.lib.format.write_array(watched, array, allow_pickle=False)
            checksums[name] = watched.checksum()
            return name

        encoder = Encoder(keep)
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "written_by": _versions(),
            "arrays": checksums,
            "model": encoder.encode(model, ""),
            "about": encoder.encode(about or {}, "about"),
        }
        archive.writestr(_part(MANIFEST), json.dumps(manifest, allow_nan=False))


def load(path) -> Any:
    """Read a model that was written by ``model.save(path)``.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    The model, fitted as it was. Under the same versions of all packages it transforms to the same
    bits as the one that was saved; under other versions to the same places within rounding. The
    search of NN-descent is built again: without a ``random_state`` it may find other neighbours
    now and then.

    Raises
    ------
    ValueError
        If the file is damaged, truncated, something else, or from a later version, or holds what
        no model holds. Files are checked as a whole before anything is made of them, and no code
        in them is run.
    """
    return read(path)[0]


def read(path) -> tuple[Any, dict]:
    """A model as `load` returns it, and what was kept with it."""
    path = Path(path)
    with open(path, "rb") as file:
        try:
            reader = _Reader(file)
            decoder = Decoder(reader.fetch)
            model = decoder.decode(reader.manifest["model"])
            about = decoder.decode(reader.manifest["about"])
            if not is_estimator(type(model)) or not isinstance(about, dict):
                raise ValueError("it holds no model")
        except _FutureFile as error:
            raise ValueError(f"{path} cannot be read: {error}.") from None
        except (MemoryError, ModuleNotFoundError):
            raise
        except Exception as error:  # a broken archive raises nearly anything
            if isinstance(error, OSError) and error.errno not in DAMAGE:
                raise
            raise _unreadable(path, error) from None
    return model, about


class _NotAModel(ValueError):
    """An archive, but none of ours."""


class _FutureFile(ValueError):
    """The file is sound, but from a later version."""


class _Reader:
    """The parts of a file, whose checksums are right and which take no more room than it has."""

    def __init__(self, file: BinaryIO):
        self._archive = zipfile.ZipFile(file)
        self._sizes = self._checked_sizes(file.seek(0, 2))
        self.manifest = self._read_manifest()
        self._checksums = self.manifest["arrays"]
        for name, expected in self._checksums.items():
            if self._checksum(name) != expected:
                raise ValueError(f"the checksum of {name} is wrong")

    def _checked_sizes(self, most: int) -> dict[str, int]:
        parts = self._archive.infolist()
        for part in parts:
            if part.compress_type != zipfile.ZIP_STORED or part.compress_size != part.file_size:
                raise ValueError(f"its part {part.filename!r} is compressed")
        if sum(part.file_size for part in parts) > most:
            raise ValueError("its parts overlap")
        if len({part.filename for part in parts}) < len(parts):
            raise ValueError("it has several parts of the same name")
        return {part.filename: part.file_size for part in parts}

    def _read_manifest(self) -> dict:
        if MANIFEST not in self._sizes:
            raise _NotAModel
        manifest = json.loads(self._archive.read(MANIFEST).decode("ascii"))
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise _NotAModel
        found = manifest.get("version")
        if type(found) is not int or found < 1:
            raise ValueError(f"its format has the version {found!r}")
        if found > VERSION:
            by = manifest.get("written_by")
            newer = by.get("finsler_ext", "a later version") if isinstance(by, dict) else "?"
            raise _FutureFile(
                f"it was written by finsler_ext {newer}, in version {found} of the format; "
                f"finsler_ext {_versions()['finsler_ext']} reads up to version {VERSION}. Upgrade "
                "finsler_ext"
            )
        if not isinstance(manifest.get("arrays"), dict) or not {"model", "about"} <= set(manifest):
            raise ValueError("its manifest is incomplete")
        return manifest

    def fetch(self, name: str) -> np.ndarray:
        """An array, once it is clear that the part holds as many bytes as it declares."""
        if name not in self._checksums:
            raise ValueError(f"its part {name!r} is missing")
        with self._archive.open(name) as file:
            major = np.lib.format.read_magic(file)
            if major == (1, 0):
                shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            else:
                shape, _, dtype = np.lib.format.read_array_header_2_0(file)
            if dtype.hasobject:
                raise ValueError(f"its part {name!r} holds Python objects, and allow_pickle=False")
            if math.prod(shape) * dtype.itemsize != self._sizes[name] - file.tell():
                raise ValueError(f"its part {name!r} does not hold the array it declares")
            file.seek(0)
            return np.lib.format.read_array(file, allow_pickle=False)

    def _checksum(self, name: str) -> str:
        digest = hashlib.sha256()
        with self._archive.open(name) as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
        return digest.hexdigest()


class _Hashed:
    """A file whose checksum is taken as it is written."""

    def __init__(self, file):
        self._file = file
        self._digest = hashlib.sha256()

    def write(self, data) -> int:
        self._digest.update(data)
        return self._file.write(data)

    def checksum(self) -> str:
        return self._digest.hexdigest()


def _part(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name)  # of 1980: files do not depend on the hour


def _unreadable(path: Path, why: Exception) -> ValueError:
    with open(path, "rb") as file:
        start = file.read(2)
    if start != ARCHIVE or isinstance(why, _NotAModel):
        return ValueError(
            f"{path} is not a model saved by finsler_ext. Give a file written by model.save."
        )
    reason = " ".join(str(why).split()).rstrip(".") or type(why).__name__
    return ValueError(
        f"{path} is damaged or truncated ({reason}). Copy it again, or save the model again."
    )


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
