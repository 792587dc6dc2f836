"""Scratch clones of an upstream repository, in which patches become commits."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import format_datetime
from pathlib import Path

from .catalogue import CheckError, Patch
from .source import git


@dataclass(frozen=True)
class Sender:
    """Whose name the commits carry. The patches themselves have no author and no date."""

    name: str
    email: str

    @classmethod
    def of(cls, clone: Path) -> Sender:
        """The identity that git uses in a clone."""
        values = [
            git(clone, "config", f"user.{key}", must=False).stdout.strip()
            for key in ("name", "email")
        ]
        if not all(values):
            raise CheckError(
                f"git knows no user.name and user.email in {clone}. Set them: they become the "
                "author of the commits."
            )
        return cls(*values)

    def mail(self, patch: Patch) -> str:
        """The patch as a mail of this sender, written now."""
        mark, _, rest = patch.path.read_text().partition("\n")
        date = format_datetime(datetime.now(timezone.utc))
        return f"{mark}\nFrom: {self.name} <{self.email}>\nDate: {date}\n{rest}"


NOBODY = Sender("patches check", "check@example.org")


class Clone:
    """A clone of a clone at one revision, with the folders that matter checked out."""

    def __init__(self, origin: Path, folder: Path, revision: str, paths: list[str]):
        if git(origin, "rev-parse", "--git-dir", must=False).returncode != 0:
            raise CheckError(f"{origin} is not a clone of a git repository")
        found = git(origin, "rev-parse", "--verify", f"{revision}^{{commit}}", must=False)
        if found.returncode != 0:
            raise CheckError(f"{origin} has no revision {revision!r}; try --revision master")
        self.commit = found.stdout.strip()
        self.folder = folder
        git(origin, "clone", "--quiet", "--shared", "--no-checkout", str(origin), str(folder))
        # a partial clone may lack large files of folders that no patch touches
        git(folder, "config", "remote.origin.promisor", "true")
        git(folder, "config", "remote.origin.partialclonefilter", "blob:none")
        git(folder, "config", "user.name", NOBODY.name)
        git(folder, "config", "user.email", NOBODY.email)
        patterns = ["/*", "!/*/", *(f"/{path}" for path in paths)]
        git(folder, "sparse-checkout", "set", "--no-cone", *patterns)
        git(folder, "checkout", "--quiet", "--detach", self.commit)

    def mailed(self, patch: Patch, sender: Sender = NOBODY) -> bool:
        """Commit a patch by ``git am -3``; False if it conflicts."""
        mail = sender.mail(patch)
        done = git(self.folder, "am", "-3", "--quiet", must=False, text=mail)
        if done.returncode != 0:
            git(self.folder, "am", "--abort", must=False)
        return done.returncode == 0

    def merged(self, patch: Patch) -> bool:
        """Commit a patch by a three-way merge with the files it was made for.

        ``git am`` goes by the lines around a change and takes the first place where
        they match. The merge goes by the whole file. Where both agree, the place is right.
        """
        done = git(self.folder, "apply", "--3way", str(patch.path), must=False)
        if done.returncode != 0:
            git(self.folder, "reset", "--hard", "--quiet")
            return False
        git(self.folder, "commit", "--quiet", "--message", patch.subject)
        return True

    def with_files(self, patches: list[Patch], files: list[str]) -> None:
        """Apply some files of patches, without a commit."""
        for patch in patches:
            chosen = [f"--include={file}" for file in patch.touched if file in files]
            git(self.folder, "apply", "--3way", *chosen, str(patch.path))

    @property
    def tree(self) -> str:
        """The hash of all the files."""
        return git(self.folder, "rev-parse", "HEAD^{tree}").stdout.strip()

    @property
    def head(self) -> str:
        return git(self.folder, "rev-parse", "HEAD").stdout.strip()

    def learn(self, patches: list[Patch]) -> None:
        """Store the files of the release with these patches, which later ones build on.

        Without them git cannot merge a patch that was made on top of another one.
        """
        with tempfile.TemporaryDirectory(prefix="patches-") as name:
            tree = Path(name)
            for patch in patches:
                for file, blob in patch.bases.items():
                    if self._has(blob) and not (tree / file).exists():
                        (tree / file).parent.mkdir(parents=True, exist_ok=True)
                        (tree / file).write_text(git(self.folder, "cat-file", "blob", blob).stdout)
                if git(tree, "apply", str(patch.path), must=False).returncode == 0:
                    for file in patch.bases:
                        git(self.folder, "hash-object", "-w", str(tree / file))

    def knows(self, patch: Patch) -> bool:
        """Whether the files that a patch was made for are in this clone."""
        return all(self._has(blob) for blob in patch.bases.values())

    def _has(self, blob: str) -> bool:
        return git(self.folder, "cat-file", "-e", blob, must=False).returncode == 0
