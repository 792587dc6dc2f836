"""Our own tests on a patched upstream package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from . import installed, source
from .catalogue import SHELF, SOLVED, CheckError, Patch, Release
from .clone import Clone

ROOT = SHELF.parent

# Our test files that run code of each package, by name: they may move between folders.
# The others use it through the command line and the pictures, or not at all.
_UMAP_FILES = (
    "test_umap_*.py",
    "test_memberships.py",
    "test_neighbors_transform.py",
    "test_interrupts.py",
    "test_scanpy.py",
)
TEST_FILES = {
    "umap-learn": _UMAP_FILES,
    "openTSNE": ("test_tsne*.py", "test_affinity.py", "test_interrupts.py"),
    "pynndescent": (*_UMAP_FILES, "test_search.py", "test_tsne.py"),
}

# A test that must fail with a patch, and is left out: FinslerUMAP has every parameter of
# the umap-learn that is released, and takes over new ones when they are.
MUST_FAIL = {
    ("umap-learn", 1): (
        "tests/umap/test_umap_sklearn.py::"
        "test_every_parameter_and_method_of_umap_is_there_under_its_name"
    ),
}


def chosen(release: Release, numbers: list[int] | None) -> list[Patch]:
    """The patches of these numbers with what they need; by default all that can be sent."""
    if numbers is None:
        return [patch for patch in release.patches if (release.project, patch.number) not in SOLVED]
    parts = {}
    for number in numbers:
        parts |= {part.number: part for part in release.with_needs(release.patch(number))}
    return [parts[number] for number in sorted(parts)]


def our_tests(project: str, root: Path = ROOT) -> list[str]:
    """Our test files that run code of a project, relative to the root of the repository."""
    if project not in TEST_FILES:
        raise CheckError(
            f"the patch of {project} is compiled, and a copied package cannot be built again: "
            f"python -m patches check {project} builds and tests it"
        )
    found = {file for name in TEST_FILES[project] for file in (root / "tests").rglob(name)}
    return [str(file.relative_to(root)) for file in sorted(found)]


def patched_site(
    release: Release, patches: list[Patch], folder: Path, origin: Path | None, revision: str
) -> tuple[Path, str]:
    """A folder with the patched package, and in words what is in it."""
    package = installed.PACKAGES[release.project]
    site = installed.copy_into(release, folder / "site")
    if origin is None:
        for patch in patches:
            files = [file for file in patch.touched if file.startswith(f"{package}/")]
            if not source.applies(patch, site, only=_without_tests(files)):
                raise CheckError(f"{patch.name} does not apply to {release.folder.name}")
        base = release.version
    else:
        touched = [file for patch in patches for file in patch.touched]
        clone = Clone(origin, folder / "clone", revision, [f"{package}/", *touched])
        clone.learn(patches)
        for patch in patches:
            if not clone.mailed(patch):
                raise CheckError(f"{patch.name} does not apply to {clone.commit[:12]}")
        installed.replace_sources(release, site, clone.folder)
        base = clone.commit[:12]
    numbers = ", ".join(str(patch.number) for patch in patches) or "none"
    return site, f"{release.project} {base} with patches: {numbers}"


def run_suite(
    release: Release,
    patches: list[Patch],
    tests: list[str],
    folder: Path,
    origin: Path | None = None,
    revision: str = "HEAD",
    say=print,
) -> int:
    """Run our tests with the patched package in front; the exit status of pytest."""
    site, words = patched_site(release, patches, folder, origin, revision)
    package = installed.PACKAGES[release.project]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    where = f"import {package}; print({package}.__file__)"
    seen = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", where],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if not seen.stdout.startswith(str(site)):
        raise CheckError(f"another {package} is imported: {seen.stdout}{seen.stderr}")
    say(f"our tests on {words}")
    left_out = [
        test
        for patch in patches
        if (test := MUST_FAIL.get((release.project, patch.number))) is not None
    ]
    for test in left_out:
        say(f"left out: {test}")
    options = ("-p", "no:cacheprovider", *(f"--deselect={test}" for test in left_out))
    command = [sys.executable, "-m", "pytest", *options, *tests]
    return subprocess.run(command, env=environment, cwd=ROOT).returncode


def _without_tests(files: list[str]) -> list[str]:
    return [file for file in files if not Path(file).name.startswith("test_")]
