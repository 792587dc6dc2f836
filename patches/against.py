"""The proof on a development branch: do the patches still apply there, in the right place?"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from . import source
from .catalogue import Patch, Release
from .clone import Clone
from .functions import changed_in_trees
from .recipes import RECIPES, Recipe
from .table import table
from .workbench import Outcome, Workbench

HEADER = [
    "patch",
    "git am -3",
    "in series",
    "same place",
    "functions",
    "new tests before",
    "after, alone",
    "after, in series",
]


@dataclass
class Row:
    """What was found out about one patch."""

    patch: Patch
    alone: str = "-"
    series: str = "-"
    place: str = "-"
    functions: str = "-"
    before: str = "-"
    after: str = "-"
    in_series: str = "-"
    failures: list[str] = field(default_factory=list)

    def fail(self, why: str) -> None:
        self.failures.append(f"{self.patch.name}: {why}")


@dataclass
class Report:
    """The rows of one release on one commit."""

    release: Release
    commit: str
    rows: list[Row]

    @property
    def green(self) -> bool:
        return not any(row.failures for row in self.rows)

    def table(self) -> str:
        cells = [
            [
                row.patch.name,
                row.alone,
                row.series,
                row.place,
                row.functions,
                row.before,
                row.after,
                row.in_series,
            ]
            for row in self.rows
        ]
        problems = [f"PROBLEM: {line}" for row in self.rows for line in row.failures]
        title = f"{self.release.project}: patches for {self.release.version} on {self.commit[:12]}"
        return "\n".join([title, "", table(HEADER, cells), "", *problems])


def check_against(
    release: Release, origin: Path, revision: str, folder: Path, full: bool = False, say=print
) -> Report:
    """Apply the patches of a release to a revision of a clone and run their tests there."""
    say(f"{release.folder.name}: fetching, installing and building the release")
    recipe = RECIPES[release.project](release, Workbench(folder), full)
    branch = Branch(recipe, origin, revision, folder / "clones")
    untouched = branch.clone("untouched")
    report = Report(release, untouched.commit, [Row(patch) for patch in release.patches])

    for row in report.rows:
        say(f"{release.folder.name}: {row.patch.name} on {untouched.commit[:12]}")
        _place(row, branch)
    series = branch.clone("series")
    series.learn(release.patches)
    for row in report.rows:
        applied = series.mailed(row.patch)
        row.series = "yes" if applied else "NO"
        if not applied:
            row.fail("does not apply in series")
    if report.green:
        say(f"{release.folder.name}: new tests on {untouched.commit[:12]}")
        _test(report, branch, untouched, series)
    return report


class Branch:
    """Trees of a development branch: untouched, with one patch, with the series."""

    def __init__(self, recipe: Recipe, origin: Path, revision: str, folder: Path):
        self.recipe, self.origin, self.revision, self.folder = recipe, origin, revision, folder
        self.touched = sorted({file for patch in recipe.release.patches for file in patch.touched})

    def clone(self, name: str) -> Clone:
        paths = [*self.recipe.checkout, *self.touched]
        return Clone(self.origin, self.folder / name, self.revision, paths)


def _place(row: Row, branch: Branch) -> None:
    """Apply one patch in two ways; both must give the same files, in the same functions."""
    release, patch = branch.recipe.release, row.patch
    mailed, merged = (branch.clone(f"{way}-{patch.name}") for way in ("mailed", "merged"))
    before = branch.clone(f"before-{patch.name}")
    needs = release.needs(patch)
    for clone in (mailed, merged, before):
        clone.learn(needs)
    for needed in needs:
        if not all(way.mailed(needed) for way in (mailed, merged, before)):
            row.fail(f"{needed.name}, which it needs, does not apply")
            return
    row.alone = "yes" if mailed.mailed(patch) else "NO"
    known = merged.knows(patch)
    if row.alone == "NO":
        row.fail("does not apply" if known else f"does not apply, and {release.lacking}")
        return
    if not known:
        row.place = "unknown"
        row.fail(f"the place cannot be checked: {release.lacking}")
    else:
        same = merged.merged(patch) and merged.tree == mailed.tree
        row.place = "yes" if same else "NO"
        if not same:
            row.fail("git am puts it in another place than a merge does")
    _functions(row, branch, before.folder, mailed.folder)


def _functions(row: Row, branch: Branch, before: Path, after: Path) -> None:
    """The change must touch the same functions as on the release."""
    recipe, patch = branch.recipe, row.patch
    trees = []
    for name, patches in (
        ("before", recipe.release.needs(patch)),
        ("after", recipe.release.with_needs(patch)),
    ):
        tree = source.copy(recipe.root, branch.folder / f"released-{name}-{patch.name}")
        trees.append(tree)
        if not all([source.applies(part, tree) for part in patches]):
            row.fail("does not apply to the release")
            return
    code = [file for file in patch.touched if file not in patch.tests]
    expected = changed_in_trees(*trees, code)
    found = changed_in_trees(before, after, code)
    row.functions = f"{len(found)} as on the release" if found == expected else "OTHERS"
    if found != expected:
        row.fail(f"changes {sorted(found ^ expected)} on only one of release and clone")


def _test(report: Report, branch: Branch, untouched: Clone, series: Clone) -> None:
    """New tests must fail on the untouched branch and pass with the patch."""
    recipe, release = branch.recipe, report.release
    tests = [file for row in report.rows for file in row.patch.tests]
    untouched.with_files(release.patches, tests)
    bench = recipe.bench
    before = bench.pytest(recipe.tree_of(untouched.folder, []), tests)
    together = bench.pytest(recipe.tree_of(series.folder, branch.touched), tests)
    for row in report.rows:
        alone = together
        if len(report.rows) > 1:
            folder = branch.folder / f"mailed-{row.patch.name}"
            alone = bench.pytest(recipe.tree_of(folder, row.patch.touched), row.patch.tests)
        row.before, row.after, row.in_series = (
            outcome.words(row.patch.tests) for outcome in (before, alone, together)
        )
        _judge(row, before, alone, together)


def _judge(row: Row, before: Outcome, *after: Outcome) -> None:
    tests = row.patch.tests
    if not before.count("failed", tests):
        row.fail("its tests pass without it: solved there?")
    for outcome in after:
        if outcome.count("failed", tests) or not outcome.count("passed", tests):
            row.fail(f"fails {sorted(outcome.failed)}")
