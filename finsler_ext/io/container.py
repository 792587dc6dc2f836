"""The file: a zip archive of npy files and one manifest, with a checksum of every part.

manifest.json  {"format", "version", "written_by", "arrays": {name: sha256}, "model": …, "about": …}
0.npy, 1.npy   the arrays the model refers to

Parts are stored without compression and without dates: the same model gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from typing import Any, BinaryIO

import numpy as np

from finsler_ext._files import replaced

__all__ = ["FutureFile", "NotAModel", "Reader", "Writer", "write"]

FORMAT = "finsler_ext model"
# Raised whenever older versions of this package could not read what is written.
VERSION = 1
MANIFEST = "manifest.json"
# Manifests hold names and numbers. Beyond this many bytes something is wrong.
LARGEST_MANIFEST = 2**30
CHUNK = 2**20


class Writer:
    """An archive that is being written."""

    def __init__(self, archive: zipfile.ZipFile):
        self._archive = archive
        self._checksums: dict[str, str] = {}

    def keep(self, array: np.ndarray) -> str:
        """Store an array and return the name it has in the file."""
        name = f"{len(self._checksums)}.npy"
        with self._archive.open(_part(name), "w", force_zip64=True) as file:
            watched = _Hashed(file)
            np.lib.format.write_array(watched, array, allow_pickle=False)
        self._checksums[name] = watched.checksum()
        return name

    def finish(self, model: Any, about: Any, written_by: dict[str, str]) -> None:
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "written_by": written_by,
            "arrays": self._checksums,
            "model": model,
            "about": about,
        }
        text = json.dumps(manifest, allow_nan=False, ensure_ascii=True)
        self._archive.writestr(_part(MANIFEST), text)


class Reader:
    """An archive that is being read. Whatever is wrong with it is a ValueError."""

    def __init__(self, archive: zipfile.ZipFile, this_version: str):
        self._archive = archive
        self.manifest = _manifest(archive, this_version)
        self._checksums = self.manifest["arrays"]

    def check(self) -> None:
        """The checksums of all parts, before anything is made of one of them."""
        for name, expected in self._checksums.items():
            if self._checksum(name) != expected:
                raise ValueError(f"the checksum of {name} is wrong")

    def fetch(self, name: str) -> np.ndarray:
        if name not in self._checksums:
            raise ValueError(f"its part {name!r} is missing")
        with self._archive.open(name) as file:
            return np.lib.format.read_array(file, allow_pickle=False)

    def _checksum(self, name: str) -> str:
        digest = hashlib.sha256()
        with self._archive.open(name) as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
        return digest.hexdigest()


def write(path, build, written_by: dict[str, str]) -> None:
    """Write a file that is whole or not there; ``build(keep)`` returns model and notes as JSON."""
    with replaced(path) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        writer = Writer(archive)
        model, about = build(writer.keep)
        writer.finish(model, about, written_by)


def _part(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name)  # of 1980: files do not depend on the hour


def _manifest(archive: zipfile.ZipFile, this_version: str) -> dict:
    try:
        entry = archive.getinfo(MANIFEST)
    except KeyError:
        raise NotAModel from None
    if entry.file_size > LARGEST_MANIFEST:
        raise ValueError("its manifest is too large")
    manifest = json.loads(archive.read(entry).decode("ascii"))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise NotAModel
    version = manifest.get("version")
    if not isinstance(version, int) or version < 1:
        raise ValueError(f"its format has the version {version!r}")
    if version > VERSION:
        by = manifest.get("written_by")
        newer = by.get("finsler_ext", "a later version") if isinstance(by, dict) else "?"
        raise FutureFile(
            f"it was written by finsler_ext {newer}, in version {version} of the format; "
            f"finsler_ext {this_version} reads up to version {VERSION}. Upgrade finsler_ext"
        )
    if not isinstance(manifest.get("arrays"), dict) or not {"model", "about"} <= set(manifest):
        raise ValueError("its manifest is incomplete")
    return manifest


class NotAModel(ValueError):
    """An archive, but none of ours."""


class FutureFile(ValueError):
    """The file is sound, but from a later version."""


class _Hashed:
    """A file that remembers the checksum of what was written."""

    def __init__(self, file: BinaryIO | Any):
        self._file, self._digest = file, hashlib.sha256()

    def write(self, data) -> int:
        self._digest.update(data)
        return self._file.write(data)

    def checksum(self) -> str:
        return self._digest.hexdigest()
