"""Which releases and patches there are, and what each patch says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

SHELF = Path(__file__).parent
PROJECTS = ("umap-learn", "openTSNE", "scikit-learn", "pynndescent")

# Patches that build on others, by number: they are applied and sent together.
NEEDS = {
    ("umap-learn", 2): (1,),
    ("umap-learn", 3): (1, 2),
    ("umap-learn", 8): (7,),  # removes lines beside those that 7 changes
}
# Patches that upstream has solved in another way; kept for the release they were made for.
SOLVED = {("umap-learn", 10): "lmcinnes/umap#1287"}
# Patches whose last number is a proposal: its issue comes before the code.
PROPOSALS = {("umap-learn", 3): "proposal.md"}

_SUBJECT = re.compile(r"^Subject: \[PATCH\] (.*(?:\n .*)*)", re.MULTILINE)
_NEW = re.compile(r"^diff --git a/(\S+) b/\S+\nnew file", re.MULTILINE)
_BASE = re.compile(r"^diff --git a/(\S+) b/\S+\n(?:.*mode .*\n)?index (\w+)\.\.", re.MULTILINE)
_TOUCHED = re.compile(r"^diff --git a/(\S+) b/(\S+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class CheckError(RuntimeError):
    """A command cannot go on; the message says what is missing."""


@dataclass(frozen=True)
class Patch:
    """One numbered patch and the pull-request text beside it."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def number(self) -> int:
        return int(self.name[:4])

    @property
    def subject(self) -> str:
        """The first line of the commit message, which is the title of the pull request."""
        found = _SUBJECT.search(self.path.read_text())
        assert found is not None, f"{self.path.name} has no subject"
        return found[1].replace("\n", "")

    @property
    def text(self) -> Path:
        """The pull-request text."""
        return self.path.with_suffix(".md")

    @property
    def touched(self) -> list[str]:
        """Files the patch changes or adds, relative to the upstream root."""
        return [new for _, new in _TOUCHED.findall(self.path.read_text())]

    @property
    def bases(self) -> dict[str, str]:
        """The files that the patch changes, and git's hashes of what it was made for."""
        found = _BASE.findall(self.path.read_text())
        return {file: blob for file, blob in found if set(blob) != {"0"}}

    @property
    def added(self) -> list[str]:
        """Files among the touched ones that are new."""
        return _NEW.findall(self.path.read_text())

    @property
    def tests(self) -> list[str]:
        """Test files among the touched ones."""
        return [file for file in self.touched if Path(file).name.startswith("test_")]

    @property
    def demo(self) -> str:
        """The demonstration: the one Python block of the text."""
        (code,) = self._blocks("python")
        return code

    @property
    def printed(self) -> tuple[str, str]:
        """What the text says the demonstration prints: before and after."""
        before, after = self._blocks("text")
        return before, after

    def _blocks(self, language: str) -> list[str]:
        return [body for name, body in _BLOCK.findall(self.text.read_text()) if name == language]


@dataclass(frozen=True)
class Release:
    """One upstream release and its patches in numeric order."""

    folder: Path

    @property
    def project(self) -> str:
        return self.folder.name.rpartition("-")[0]

    @property
    def version(self) -> str:
        return self.folder.name.rpartition("-")[2]

    @property
    def patches(self) -> list[Patch]:
        return [Patch(path) for path in sorted(self.folder.glob("[0-9]*.patch"))]

    @property
    def lacking(self) -> str:
        """What to say of a clone without the files that the patches were made for."""
        return f"the clone lacks the files of {self.version}: it may be older, so fetch first"

    def patch(self, number: int) -> Patch:
        """One patch by its number."""
        for patch in self.patches:
            if patch.number == number:
                return patch
        numbers = [patch.number for patch in self.patches]
        raise CheckError(f"{self.project} has no patch {number}; there are {numbers}")

    def needs(self, patch: Patch) -> list[Patch]:
        """The patches that this one builds on."""
        return [self.patch(number) for number in NEEDS.get((self.project, patch.number), ())]

    def with_needs(self, patch: Patch) -> list[Patch]:
        """The patches that this one builds on, and itself."""
        return [*self.needs(patch), patch]


def releases(projects: tuple[str, ...] = PROJECTS) -> list[Release]:
    """The releases on the shelf, in the order of ``projects``."""
    folders = [folder for folder in sorted(SHELF.iterdir()) if any(folder.glob("*.patch"))]
    found = [Release(folder) for folder in folders]
    return sorted(
        (release for release in found if release.project in projects),
        key=lambda release: projects.index(release.project),
    )
