"""Prepare a pull request in the sender's clone, and stop before anything leaves the machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from . import installed
from .catalogue import PROPOSALS, SOLVED, CheckError, Patch, Release
from .clone import Clone, Sender
from .manners import MANNERS, Manners
from .source import git

_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_FIXES = re.compile(r"^Fixes #\d+$", re.MULTILINE)
_ALONE = re.compile(r"```|    |#+ |\||---$")  # lines that are no part of a paragraph
_STARTS = re.compile(rf"{_ALONE.pattern}|[-*] |\d+\. ")  # the same, and list items
_SECTION = re.compile(r"^## (.*)\n((?:(?!## ).*\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class Letter:
    """What is to be sent, to whom, and from which clone."""

    release: Release
    patch: Patch
    origin: Path
    revision: str
    issue: int | None = None

    @property
    def manners(self) -> Manners:
        return MANNERS[self.release.project]

    @property
    def branch(self) -> str:
        return self.patch.name.partition("-")[2]

    @property
    def sections(self) -> dict[str, str]:
        found = _SECTION.findall(self.patch.text.read_text())
        return {title: body.strip() for title, body in found}

    @property
    def reference(self) -> str:
        """The line that links the issue, or nothing."""
        if self.issue is not None:
            return f"Fixes #{self.issue}"
        found = _FIXES.search(self.patch.path.read_text())
        return found[0] if found else ""


def send(letter: Letter, folder: Path, out: Path, dry_run: bool = False, say=print) -> Path:
    """Prepare one patch for sending; the file with what the sender needs next."""
    key = (letter.release.project, letter.patch.number)
    if key in SOLVED:
        raise CheckError(f"{letter.patch.name} is solved upstream ({SOLVED[key]}): nothing to send")
    sender = Sender.of(letter.origin)
    say(f"sender: {sender.name} <{sender.email}>; project: {letter.manners.repository}")
    if letter.issue is None and (letter.manners.own_words or key in PROPOSALS):
        return _write(_issue_first(letter), out, f"{letter.branch}-issue.md", say)
    clone = _branch(letter, sender, folder, say)
    _format(letter, clone, say)
    _test(letter, clone, say)
    if dry_run:
        say(f"dry run: {letter.origin.name} is left without the branch {letter.branch}")
    else:
        target = f"HEAD:refs/heads/{letter.branch}"
        git(letter.origin, "fetch", "--quiet", str(clone.folder), target)
        say(f"branch {letter.branch} is in {letter.origin.name}; nothing was pushed")
    return _write(_body(letter), out, f"{letter.branch}.md", say)


def _branch(letter: Letter, sender: Sender, folder: Path, say) -> Clone:
    """Commit the patch and what it needs, in the name of the sender."""
    parts = letter.release.with_needs(letter.patch)
    touched = [file for part in parts for file in part.touched]
    package = installed.PACKAGES[letter.release.project]
    paths = [f"{package}/", "tests/", *touched]
    clone = Clone(letter.origin, folder / "send", letter.revision, paths)
    git(clone.folder, "config", "user.name", sender.name)
    git(clone.folder, "config", "user.email", sender.email)
    clone.learn(parts)
    for part in parts:
        if not clone.mailed(part, sender):
            why = "rebase it first" if clone.knows(part) else letter.release.lacking
            raise CheckError(f"{part.name} does not apply to {clone.commit[:12]}: {why}")
        say(f"committed on {clone.commit[:12]}: {part.subject}")
    return clone


def _format(letter: Letter, clone: Clone, say) -> None:
    """Run the project's formatter on the changed lines; amend if it changes them."""
    tool, *options = letter.manners.formatter or ("",)
    if not tool:
        say("formatter: the project names none")
        return
    for part in letter.release.with_needs(letter.patch):
        for file in [file for file in part.touched if file.endswith(".py")]:
            lines = _changed_lines(clone, file)
            ranges = [f"--line-ranges={a}-{b}" for a, b in lines] if tool == "black" else []
            command = [sys.executable, "-m", tool, *options, *ranges, file]
            done = subprocess.run(command, cwd=clone.folder, capture_output=True, text=True)
            if done.returncode != 0:
                raise CheckError(f"{tool} failed (pip install {tool}?): {done.stderr.strip()}")
    changed = git(clone.folder, "diff", "--stat").stdout.strip()
    if changed:
        git(clone.folder, "commit", "--quiet", "--all", "--amend", "--no-edit")
    say(f"formatter: {tool} changed {changed.splitlines()[-1].strip() if changed else 'nothing'}")


def _changed_lines(clone: Clone, file: str) -> list[tuple[int, int]]:
    """First and last line of every part of a file that the branch changed."""
    difference = git(clone.folder, "diff", "-U0", clone.commit, "HEAD", "--", file).stdout
    spans = [(int(first), int(count or 1)) for first, count in _HUNK.findall(difference)]
    return [(first, first + count - 1) for first, count in spans if count]


def _test(letter: Letter, clone: Clone, say) -> None:
    """Run the new tests in the branch."""
    if any(file.endswith(".pyx") for file in letter.patch.touched):
        project = letter.release.project
        say(f"tests: the patch is compiled; run: python -m patches check {project} --against CLONE")
        return
    if letter.release.project == "openTSNE":
        installed.lend_compiled(letter.release, clone.folder)
    tests = [file for part in letter.release.with_needs(letter.patch) for file in part.tests]
    options = ("-q", "-W", "ignore", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=clone.folder,
        env={**os.environ, "PYTHONPATH": str(clone.folder)},
        capture_output=True,
        text=True,
    )
    last = (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1]
    if done.returncode != 0:
        raise CheckError(f"the new tests fail on the branch: {last}\n{done.stdout[-2000:]}")
    say(f"tests: {last}")


def _body(letter: Letter) -> str:
    """The description of the pull request in the form of the project, and what is next."""
    sections = letter.sections
    text = "\n\n".join(f"**{title}**\n\n{body}" for title, body in sections.items())
    documented = any(file.startswith("doc/") for file in letter.patch.touched)
    form = letter.manners.form.format(
        issue=letter.reference or letter.manners.no_issue,
        text=unwrapped(text),
        documentation="X" if documented else " ",
    )
    words = "" if not letter.manners.own_words else f"\nFacts to write from:\n\n{_facts(letter)}"
    return f"{_checklist(letter)}\nTitle: {letter.patch.subject}\n\n---\n\n{form.lstrip()}{words}"


def _issue_first(letter: Letter) -> str:
    """What the sender needs to open an issue: a text, or facts for a text of their own."""
    checklist = _checklist(letter)
    key = (letter.release.project, letter.patch.number)
    if key in PROPOSALS and not letter.manners.own_words:
        text = (letter.release.folder / PROPOSALS[key]).read_text()
        return f"{checklist}\nThe issue comes first:\n\n---\n\n{unwrapped(text)}"
    return f"{checklist}\nThe issue comes first, in your own words. Facts:\n\n{_facts(letter)}"


def unwrapped(text: str) -> str:
    """Markdown with one line per paragraph: GitHub shows line breaks in comments as such."""
    lines: list[str] = []
    verbatim = False  # inside a block of code
    for line in text.splitlines():
        last = lines[-1] if lines else ""
        fence = line.startswith("```")
        goes_on = last and not verbatim and not _ALONE.match(last)
        if goes_on and not fence and line.strip() and not _STARTS.match(line):
            lines[-1] = f"{last} {line.strip()}"
        else:
            lines.append(line)
        verbatim ^= fence
    return "\n".join(lines) + "\n"


def _facts(letter: Letter) -> str:
    """Notes rather than sentences: nobody should want to paste them."""
    patch = letter.patch
    before, after = (
        "".join(f"  - {line}\n" for line in printed.strip().splitlines())
        for printed in patch.printed
    )
    files = "".join(f"  - {file}\n" for file in patch.touched)
    return (
        f"- what is wrong, with formula and demonstration: {patch.text.name}\n"
        f"- printed on {letter.release.version}:\n{before}- printed with the change:\n{after}"
        f"- files:\n{files}- related: {' '.join(letter.sections['Related'].split())}\n"
    )


def _checklist(letter: Letter) -> str:
    manners = letter.manners
    steps = [
        f"Read {manners.guide} of {manners.repository}: it may have changed.",
        "Look up the issues and pull requests under Related: they may have moved on.",
        "Say how the change and its text came about, if the project asks.",
        *manners.rules,
    ]
    if letter.issue is None and manners.own_words:
        steps.append("Come back with --issue NUMBER when the issue is triaged.")
    elif letter.issue is None and letter.patch.number in _proposals(letter.release):
        steps.append("Come back with --issue NUMBER when the maintainers want the code.")
    else:
        steps.append(f"Read the branch: git diff {letter.revision}...{letter.branch}")
        steps.append("Run all tests of the project on it.")
        steps.append(f"Push it to your fork and open a draft: git push <fork> {letter.branch}")
        steps.append("Write the link into patches/README.md.")
    return "Before sending:\n\n" + "".join(f"- [ ] {step}\n" for step in steps)


def _proposals(release: Release) -> set[int]:
    """Numbers of the patches of a release that start as a proposal."""
    return {number for project, number in PROPOSALS if project == release.project}


def _write(text: str, out: Path, name: str, say) -> Path:
    out.mkdir(parents=True, exist_ok=True)
    file = out / name
    file.write_text(text)
    say(f"written: {name}. This is a draft: read it, change it, send it yourself.")
    return file
