"""The patches are well formed, and (slow) do what their texts say."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # patches is a tool of the repository, not an installed package

from patches import __main__, source  # noqa: E402
from patches.catalogue import PROJECTS, SHELF, CheckError, Patch, releases  # noqa: E402
from patches.check import Report, Row  # noqa: E402
from patches.workbench import Outcome  # noqa: E402

PATCHES = [
    pytest.param(patch, id=f"{release.project}-{patch.name}")
    for release in releases()
    for patch in release.patches
]
each_patch = pytest.mark.parametrize("patch", PATCHES)


def test_every_project_has_patches_numbered_from_one():
    assert tuple(release.project for release in releases()) == PROJECTS
    for release in releases():
        numbers = [int(patch.name[:4]) for patch in release.patches]
        assert numbers == list(range(1, len(numbers) + 1))


@each_patch
def test_patch_is_in_git_format_without_author_and_date(patch: Patch):
    text = patch.path.read_text()
    assert re.match(r"From 0{40} ", text)
    assert "\nSubject: [PATCH] " in text
    head, _, _ = text.partition("\ndiff --git a/")
    assert not re.search(r"^(From|Date):", head, re.MULTILINE)
    message = head.splitlines()[2:]
    assert any(message), "the commit message says nothing"
    assert max(map(len, message)) <= 80


@each_patch
def test_every_change_has_three_lines_of_context(patch: Patch):
    for start, hunk in re.findall(r"^@@ -(\d+).*\n((?:[ +-].*\n)+)", patch.path.read_text(), re.M):
        before = re.match(r"(?: .*\n)*", hunk)[0].count("\n")
        assert before >= min(3, max(int(start) - 1, 0))


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@each_patch
def test_git_can_parse_the_patch(patch: Patch, tmp_path: Path):
    done = subprocess.run(
        ["git", "apply", "--numstat", patch.path], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    files = [line.split("\t")[2] for line in done.stdout.splitlines()]
    assert sorted(files) == sorted(patch.touched)


@each_patch
def test_patch_carries_code_and_its_test(patch: Patch):
    assert patch.tests
    assert set(patch.touched) - set(patch.tests)


@each_patch
def test_new_test_files_compile(patch: Patch):
    added = re.findall(
        r"^\+\+\+ b/(\S+)\n@@ -0,0 .*\n((?:\+.*\n)+)", patch.path.read_text(), re.MULTILINE
    )
    for name, body in [(name, body) for name, body in added if name.endswith(".py")]:
        compile(re.sub(r"^\+", "", body, flags=re.MULTILINE), name, "exec")


@each_patch
def test_text_has_the_parts_of_a_pull_request(patch: Patch):
    text = patch.text.read_text()
    assert text.splitlines()[0] == "# " + patch.subject
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings == ["The problem", "Demonstration", "The fix", "Existing users", "Related"]
    compile(patch.demo, patch.text.name, "exec")
    before, after = patch.printed
    assert before.strip()
    assert after.strip()
    assert before != after


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=str(file.relative_to(SHELF)))
        for file in sorted(SHELF.rglob("*.*"))
        if file.suffix in (".py", ".md", ".patch")
    ],
)
def test_files_name_no_machine(file: Path):
    assert not re.search(r"(?<!\w)/(tmp|root|home|opt|Users)/", file.read_text())


@pytest.mark.parametrize("project", PROJECTS)
def test_readme_lists_every_patch(project: str):
    readme = (SHELF / "README.md").read_text()
    for release in releases((project,)):
        for patch in release.patches:
            assert f"{release.folder.name}/{patch.text.name}" in readme


def test_patches_come_after_what_they_need():
    for release in releases():
        for patch in release.patches:
            assert all(needed.number < patch.number for needed in release.needs(patch))


def test_unknown_patch_is_a_clear_error():
    with pytest.raises(CheckError, match=r"scikit-learn has no patch 7; there are \[1\]"):
        releases(("scikit-learn",))[0].patch(7)


def test_outcome_counts_by_file():
    outcome = Outcome(
        "PASSED a/test_one.py::test_x[1]\nFAILED a/test_one.py::test_y - assert 0\n"
        "ERROR a/test_two.py - ImportError\nPASSED a/test_two.py::Case::test_z\n"
    )
    assert outcome.count("passed") == 2
    assert Outcome("SKIPPED [3] a/test_one.py:5: why\n").skipped == 3
    assert outcome.count("failed", ["a/test_one.py"]) == 1
    assert outcome.failed == {"a/test_one.py::test_y", "a/test_two.py"}


def test_table_shows_problems():
    release = releases()[0]
    row = Row(release.patches[0], alone=True)
    report = Report(release, [row])
    assert report.green
    row.failures.append("does not apply")
    assert not report.green
    assert "NO" in report.table()
    assert "PROBLEM: does not apply" in report.table()


@pytest.mark.skipif(shutil.which("false") is None, reason="needs a command that fails")
def test_missing_network_is_one_clear_message(tmp_path):
    with pytest.raises(CheckError, match="pip could not fetch the source package umap"):
        source.fetch(releases()[0], Path(shutil.which("false")), tmp_path)


def test_patch_that_does_not_apply_is_reported(tmp_path):
    assert not source.applies(releases()[0].patches[0], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("project", PROJECTS)
def test_check_is_green(project: str):
    assert __main__.main(["check", project]) == 0
