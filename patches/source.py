"""Released source packages: fetch them by pip, unpack them, patch copies of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from .catalogue import CheckError, Patch, Release

# pip wants the metadata of a source package before it hands it over, and for
# scikit-learn that means minutes of configuring. Every sdist already carries its
# metadata in PKG-INFO, so a build backend that copies this file will do.
_BACKEND = """\
import email, os, shutil
def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    with open("PKG-INFO", encoding="utf-8") as file:
        fields = email.message_from_file(file)
    name = "{}-{}.dist-info".format(fields["Name"].replace("-", "_"), fields["Version"])
    os.makedirs(os.path.join(metadata_directory, name))
    shutil.copy("PKG-INFO", os.path.join(metadata_directory, name, "METADATA"))
    return name
def build_wheel(*args, **kwargs):
    raise RuntimeError("only good for metadata")
"""


def fetch(release: Release, python: Path, folder: Path) -> Path:
    """Download and unpack the source package of a release; return its root."""
    stub = folder / "metadata-only"
    (stub / "setuptools").mkdir(parents=True)
    (stub / "setuptools" / "__init__.py").touch()
    (stub / "setuptools" / "build_meta.py").write_text(_BACKEND)
    (stub / "mesonpy.py").write_text(_BACKEND)

    target = folder / "download"
    download = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", target]
    download += ["--no-binary", release.project, f"{release.project}=={release.version}"]
    quick = subprocess.run(
        [*download, "--no-build-isolation", "--use-pep517"],
        env={**os.environ, "PYTHONPATH": str(stub)},
        capture_output=True,
        text=True,
    )
    if quick.returncode != 0:
        slow = subprocess.run(download, capture_output=True, text=True)
        if slow.returncode != 0:
            raise CheckError(
                f"pip could not fetch the source package {release.project}=={release.version}. "
                f"Is a package index within reach? pip says: {_last_line(slow.stderr)}"
            )
    (archive,) = target.glob("*.tar.gz")
    with tarfile.open(archive) as package:
        package.extractall(folder / "released", filter="data")
    (root,) = (folder / "released").iterdir()
    return root


def copy(root: Path, target: Path) -> Path:
    """Copy a source tree."""
    return Path(shutil.copytree(root, target, symlinks=True))


def applies(patch: Patch, root: Path, only: Iterable[str] | None = None) -> bool:
    """Apply a patch (or only some of its files) to a tree; False if it does not apply.

    The tree becomes a repository of the touched files, so that a later patch can be
    merged with an earlier one that changed a line nearby.
    """
    if not (root / ".git").exists():
        git(root, "init", "--quiet")
    given = [file for file in patch.touched if (root / file).exists()]
    if given:
        git(root, "add", "--force", *given)
    # source packages have no documentation
    lost = [file for file in patch.touched if file.startswith("doc/") and file not in given]
    choice = [f"--include={file}" for file in only or ()]
    choice = choice or [f"--exclude={file}" for file in lost if file not in patch.added]
    return git(root, "apply", "--3way", *choice, str(patch.path), must=False).returncode == 0


def git(
    root: Path, *arguments: str, must: bool = True, text: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run git in a folder; a failure is an error if it ``must`` succeed."""
    if shutil.which("git") is None:
        raise CheckError("git is needed to apply patches, and was not found")
    # the line endings and attributes of whoever runs this must not matter
    command = ["git", "-c", "core.autocrlf=false", *arguments]
    done = subprocess.run(command, cwd=root, input=text, capture_output=True, text=True)
    if must and done.returncode != 0:
        raise CheckError(f"git {arguments[0]} failed in {root}: {_last_line(done.stderr)}")
    return done


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "nothing"
