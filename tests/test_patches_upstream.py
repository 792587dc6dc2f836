"""Patches on development branches, in pull requests, and under our own package."""

from __future__ import annotations

import inspect
import shutil
import subprocess
import sys
import warnings
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from umap import UMAP

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # patches is a tool of the repository, not an installed package

from finsler_ext import FinslerUMAP  # noqa: E402
from patches import __main__, against, installed, recipes, suite  # noqa: E402
from patches.catalogue import CheckError, Patch, Release, releases  # noqa: E402
from patches.clone import Clone, Sender  # noqa: E402
from patches.functions import changed_functions  # noqa: E402
from patches.manners import MANNERS, Manners  # noqa: E402
from patches.send import Letter, send, unwrapped  # noqa: E402

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

BLOCK = """\
def {name}(x):
    y = call(
        x,
    )

    return y
"""
FIXED = BLOCK.replace("    )\n\n", "    )\n    y = y + 1\n\n")
TEST = "from umap.code import second\n\n\ndef test_second():\n    assert second(1) == 2\n"


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout


def code(*blocks: tuple[str, str]) -> str:
    head = "def call(x):\n    return x\n\n\n"
    return head + "\n\n".join(block.format(name=name) for name, block in blocks)


@pytest.fixture
def upstream(tmp_path: Path) -> SimpleNamespace:
    """A repository with a release, a change after it, and a patch for the release.

    The patch mends ``second``. After the release a function went in before it that looks
    the same, so a patch with one line of context is taken for that one.
    """
    origin = tmp_path / "origin"
    (origin / "umap").mkdir(parents=True)
    git(origin, "init", "--quiet", "--initial-branch=main")
    (origin / "umap" / "__init__.py").touch()
    file = origin / "umap" / "code.py"

    def commit(text: str, message: str) -> None:
        file.write_text(text)
        git(origin, "add", "-A")
        git(origin, "commit", "--quiet", "-m", message)

    commit(code(("first", BLOCK), ("second", BLOCK)), "release")
    released = tmp_path / "released"
    shutil.copytree(origin / "umap", released / "umap")
    git(origin, "switch", "--quiet", "-c", "fix")
    (origin / "umap" / "test_second.py").write_text(TEST)
    commit(code(("first", BLOCK), ("second", FIXED)), "Add one\n\nFixes #7")
    git(origin, "switch", "--quiet", "main")
    return SimpleNamespace(origin=origin, released=released, commit=commit, folder=tmp_path)


def toy_release(upstream: SimpleNamespace, context: int) -> Release:
    folder = upstream.folder / "umap-learn-9.9"
    folder.mkdir()
    options = (f"-U{context}", "--full-index", "--zero-commit", "--no-signature", "--no-stat")
    mail = git(upstream.origin, "format-patch", "-1", *options, "--stdout", "fix")
    kept = [line for line in mail.splitlines(True) if not line.startswith(("From: ", "Date: "))]
    (folder / "0001-add-one.patch").write_text("".join(kept))
    (folder / "0001-add-one.md").write_text(
        "# Add one\n\n## The problem\nOne is missing.\n\n"
        "## Demonstration\n```python\nprint(1)\n```\n```text\n1\n```\n```text\n2\n```\n\n"
        "## The fix\nAdd it.\n\n## Related\n#7\n"
    )
    return Release(folder)


def placed(upstream: SimpleNamespace, context: int) -> against.Row:
    release = toy_release(upstream, context)
    recipe = SimpleNamespace(release=release, root=upstream.released, checkout=("umap/",))
    branch = against.Branch(recipe, upstream.origin, "main", upstream.folder / "clones")
    row = against.Row(release.patches[0])
    against._place(row, branch)
    return row


def test_patch_in_the_right_place(upstream):
    upstream.commit(code(("zeroth", BLOCK), ("first", BLOCK), ("second", BLOCK)), "later")
    row = placed(upstream, context=6)
    assert (row.alone, row.place, row.functions) == ("yes", "yes", "1 as on the release")
    assert not row.failures


def test_patch_with_one_line_of_context_is_caught_in_the_wrong_place(upstream):
    # where second was at the release, there is now another function of the same shape
    upstream.commit(code(("first", BLOCK), ("between", BLOCK), ("second", BLOCK)), "later")
    row = placed(upstream, context=1)
    assert row.alone == "yes", "git am says that it applies"
    assert row.place == "NO"
    assert row.functions == "OTHERS"
    assert len(row.failures) == 2


def test_conflict_is_reported(upstream):
    other = BLOCK.replace("    )\n", "    ) + 0\n")
    upstream.commit(code(("first", other), ("second", other)), "another end")
    row = placed(upstream, context=3)
    assert row.alone == "NO"
    assert row.failures == ["0001-add-one: does not apply"]


def test_clone_without_the_release_cannot_tell_the_place(upstream):
    release = toy_release(upstream, 3)
    other = upstream.folder / "other"
    (other / "umap").mkdir(parents=True)
    git(other, "init", "--quiet", "--initial-branch=main")
    (other / "umap" / "code.py").write_text("# another header\n" + code(("second", BLOCK)))
    git(other, "add", "-A")
    git(other, "commit", "--quiet", "-m", "start")
    clone = Clone(other, upstream.folder / "scratch", "main", ["umap/"])
    assert not clone.knows(release.patches[0])


def test_clone_that_is_older_than_the_release_is_told_so(upstream):
    release = toy_release(upstream, 3)
    older = upstream.folder / "older"
    (older / "umap").mkdir(parents=True)
    git(older, "init", "--quiet", "--initial-branch=main")
    (older / "umap" / "code.py").write_text(code())
    git(older, "add", "-A")
    git(older, "commit", "--quiet", "-m", "before the release")
    recipe = SimpleNamespace(release=release, root=upstream.released, checkout=("umap/",))
    branch = against.Branch(recipe, older, "main", upstream.folder / "clones")
    row = against.Row(release.patches[0])
    against._place(row, branch)
    (failure,) = row.failures
    assert "the clone lacks the files of 9.9: it may be older" in failure


def test_wrong_clone_and_revision_are_clear_errors(upstream, tmp_path):
    with pytest.raises(CheckError, match="is not a clone"):
        Clone(tmp_path, tmp_path / "a", "main", [])
    with pytest.raises(CheckError, match="no revision 'nowhere'"):
        Clone(upstream.origin, tmp_path / "b", "nowhere", [])


def test_changed_functions_of_python():
    before = "x = 1\nclass A:\n    def f(self):\n        return 1\n\ndef g():\n    return 1\n"
    assert changed_functions(before, before.replace("return 1\n\n", "return 2\n\n"), ".py") == {
        "A.f"
    }
    assert changed_functions(before, before.replace("x = 1", "x = 2"), ".py") == {"<module>"}
    assert changed_functions(before, "# a comment\n" + before, ".py") == set()


def test_changed_functions_of_cython():
    before = "cdef float f(float[:] x,\n             int n) noexcept nogil:\n    return 1\n\n"
    before += "def g(x):\n    return 2\n"
    assert changed_functions(before, before.replace("return 2", "return 3"), ".pyx") == {"g"}
    assert changed_functions(before, before.replace("return 1", "return 3"), ".pyx") == {"f"}


def letter(upstream, release: Release, number: int, issue: int | None = None) -> Letter:
    git(upstream.origin, "config", "user.name", "Grace Example")
    git(upstream.origin, "config", "user.email", "grace@example.org")
    return Letter(release, release.patch(number), upstream.origin, "main", issue)


def test_send_prepares_a_branch_and_a_draft(upstream, monkeypatch, tmp_path):
    plain = Manners("umap/toy", "{issue}\n\n{text}\n", "CONTRIBUTING.md")
    monkeypatch.setitem(MANNERS, "umap-learn", plain)
    said: list[str] = []
    release = toy_release(upstream, 3)
    draft = send(letter(upstream, release, 1), tmp_path / "work", tmp_path / "out", say=said.append)
    author = git(upstream.origin, "log", "-1", "--format=%an <%ae> %s", "add-one")
    assert author.strip() == "Grace Example <grace@example.org> Add one"
    assert "y + 1" in git(upstream.origin, "show", "add-one:umap/code.py")
    assert "Fixes #7" in draft.read_text()
    assert any(line.startswith("tests: 1 passed") for line in said)
    assert git(upstream.origin, "branch", "--show-current").strip() == "main"


def test_dry_run_leaves_the_clone_alone(upstream, monkeypatch, tmp_path):
    monkeypatch.setitem(MANNERS, "umap-learn", Manners("umap/toy", "{issue}{text}", "guide"))
    before = git(upstream.origin, "for-each-ref")
    release = toy_release(upstream, 3)
    send(letter(upstream, release, 1), tmp_path / "work", tmp_path / "out", True, say=len)
    assert git(upstream.origin, "for-each-ref") == before


def test_scikit_learn_gets_no_text_to_paste(upstream, tmp_path):
    (release,) = releases(("scikit-learn",))
    draft = send(letter(upstream, release, 1), tmp_path / "work", tmp_path / "out", say=len)
    text = draft.read_text()
    assert "own words" in text
    assert "--issue NUMBER" in text
    assert "sklearn/manifold/_t_sne.py" in text
    problem = release.patch(1).text.read_text().partition("## The problem\n")[2].splitlines()[0]
    assert problem not in text


def test_proposal_starts_as_an_issue(upstream, tmp_path):
    (release,) = releases(("umap-learn",))
    draft = send(letter(upstream, release, 3), tmp_path / "work", tmp_path / "out", say=len)
    assert draft.name.endswith("-issue.md")
    proposal = (release.folder / "proposal.md").read_text()
    assert proposal.split() == draft.read_text().partition("\n---\n")[2].split()


def test_paragraphs_of_a_draft_are_one_line():
    fixed = "```python\na = 1\nb = 2\n```\n", "    y = x\n    z = y\n\n| a |\n| - |\n"
    wrapped = "# Title\nOne\n#2, three.\n\n- item\n  goes on\n- next\n\n", "and\nso on\n\n"
    lines = "# Title\nOne #2, three.\n\n- item goes on\n- next\n\n", "and so on\n\n"
    text, expected = (a + fixed[0] + b + fixed[1] for a, b in (wrapped, lines))
    assert unwrapped(text + "1. first\n   of all\n2. second\n") == (
        expected + "1. first of all\n2. second\n"
    )


def test_solved_patches_and_nameless_senders_are_refused(upstream, tmp_path, monkeypatch):
    (release,) = releases(("umap-learn",))
    with pytest.raises(CheckError, match="solved upstream"):
        send(letter(upstream, release, 10), tmp_path / "work", tmp_path / "out", say=len)
    git(upstream.origin, "config", "user.email", "")
    with pytest.raises(CheckError, match=r"user\.email"):
        Sender.of(upstream.origin)


def test_suite_takes_patches_with_what_they_need():
    (release,) = releases(("umap-learn",))
    assert [patch.number for patch in suite.chosen(release, [3, 9])] == [1, 2, 3, 9]
    assert 10 not in [patch.number for patch in suite.chosen(release, None)]
    assert suite.chosen(release, []) == []


def test_tests_that_must_fail_exist():
    for test in suite.MUST_FAIL.values():
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text()


@pytest.mark.parametrize("project", ["umap-learn", "openTSNE", "pynndescent"])
def test_suite_runs_test_files_of_the_project_by_default(project, monkeypatch):
    asked = []
    monkeypatch.setattr(__main__, "run_suite", lambda release, patches, tests, *_, **__: tests)
    for arguments in ([], ["--all"], ["tests/test_randers.py"]):
        asked.append(__main__.main(["suite", project, *arguments]))
    chosen, everything, given = asked
    for name in suite.TEST_FILES[project]:
        assert any(fnmatch(Path(file).name, name) for file in chosen)
    assert all((ROOT / file).is_file() for file in chosen)
    assert everything == []
    assert given == ["tests/test_randers.py"]


def test_suite_says_what_it_cannot_do(capsys):
    assert __main__.main(["suite", "scikit-learn"]) == 2
    assert "python -m patches check scikit-learn" in capsys.readouterr().err
    assert __main__.main(["suite", "openTSNE", "tests/test_tsne.py", "--all"]) == 2
    assert "either test files or --all" in capsys.readouterr().err


def test_upstream_tests_may_be_folders_and_files(tmp_path):
    for name in ("a/test_one.py", "a/test_two.py", "a/helper.py", "b/test_three.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    recipe = SimpleNamespace(base=tmp_path, upstream_tests=("a", "b/test_three.py"))
    files = recipes.Recipe.upstream_files(recipe)
    assert files == ["a/test_one.py", "a/test_two.py", "b/test_three.py"]


@pytest.mark.parametrize("project", ["umap-learn", "openTSNE", "pynndescent"])
def test_patches_apply_to_the_installed_package(project, tmp_path):
    (release,) = releases((project,))
    try:
        installed.location(release)
    except CheckError as error:
        pytest.skip(str(error))
    patches: list[Patch] = suite.chosen(release, None)
    site, words = suite.patched_site(release, patches, tmp_path, None, "HEAD")
    assert words.endswith(", ".join(str(patch.number) for patch in patches))
    for file in site.rglob("*.py"):
        compile(file.read_text(), file.name, "exec")


def test_another_version_is_a_clear_error(tmp_path):
    with pytest.raises(CheckError, match=r"pip install umap-learn==0\.0\.1"):
        installed.location(Release(tmp_path / "umap-learn-0.0.1"))


def test_finsler_umap_does_not_need_what_umap_writes_into_parameters(monkeypatch, capsys):
    validate = UMAP._validate_parameters

    def leave_alone(model):  # as umap does with our patch 7
        given = None if model.tqdm_kwds is None else dict(model.tqdm_kwds)
        validate(model)
        model.tqdm_kwds = given

    monkeypatch.setattr(UMAP, "_validate_parameters", leave_alone)
    X = np.random.RandomState(0).normal(size=(60, 4))
    FinslerUMAP(random_state=0, n_epochs=11).fit(X)
    assert capsys.readouterr().err == ""
    FinslerUMAP(random_state=0, n_epochs=11, verbose=True).fit(X)
    assert "Epochs completed: 100%" in capsys.readouterr().err


def test_finsler_umap_takes_the_default_of_parameters_it_does_not_know(monkeypatch):
    init, validate = UMAP.__init__, UMAP._validate_parameters

    def longer(self, *args, new_parameter=True, **kwargs):
        init(self, *args, **kwargs)
        self.new_parameter = new_parameter

    longer.__signature__ = inspect.signature(init).replace(
        parameters=[
            *inspect.signature(init).parameters.values(),
            inspect.Parameter("new_parameter", inspect.Parameter.KEYWORD_ONLY, default=True),
        ]
    )

    def read(model):
        assert model.new_parameter is True
        validate(model)

    monkeypatch.setattr(UMAP, "__init__", longer)
    monkeypatch.setattr(UMAP, "_validate_parameters", read)
    X = np.random.RandomState(0).normal(size=(60, 4))
    model = FinslerUMAP(random_state=0, n_epochs=11)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X)
    assert not hasattr(model, "new_parameter")
