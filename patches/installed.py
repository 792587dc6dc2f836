"""Copies of an installed upstream package: compiled modules come from there."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
from pathlib import Path

from .catalogue import CheckError, Release

PACKAGES = {
    "umap-learn": "umap",
    "openTSNE": "openTSNE",
    "scikit-learn": "sklearn",
    "pynndescent": "pynndescent",
}
_COMPILED = (".so", ".pyd")


def location(release: Release) -> Path:
    """The folder of the installed package, which must be of the version of the release."""
    try:
        version = importlib.metadata.version(release.project)
    except importlib.metadata.PackageNotFoundError:
        version = "no version"
    if version != release.version:
        raise CheckError(
            f"the patches are for {release.project} {release.version}, and {version} is "
            f"installed. Install it: pip install {release.project}=={release.version}"
        )
    spec = importlib.util.find_spec(PACKAGES[release.project])
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def copy_into(release: Release, site: Path) -> Path:
    """Copy the installed package into a folder for PYTHONPATH; return that folder."""
    package = location(release)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, site / package.name, ignore=ignore)
    return site


def replace_sources(release: Release, site: Path, tree: Path) -> None:
    """Put the Python files of a source tree in place of those in a copied package."""
    package = site / PACKAGES[release.project]
    for old in package.rglob("*.py"):
        old.unlink()
    for new in (tree / package.name).rglob("*.py"):
        place = site / new.relative_to(tree)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(new, place)


def lend_compiled(release: Release, tree: Path) -> None:
    """Copy the compiled modules of the installed package into a source tree."""
    package = location(release)
    for built in package.rglob("*"):
        if built.suffix in _COMPILED:
            shutil.copy(built, tree / built.relative_to(package.parent))
