"""The proof on a release: apply, build and test every patch, and say how it went."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from . import source
from .catalogue import Patch, Release
from .recipes import RECIPES, Recipe
from .table import table
from .workbench import Outcome, Workbench


@dataclass
class Row:
    """What was found out about one patch."""

    patch: Patch
    alone: bool = False
    series: bool = False
    before: str = "-"
    after: str = "-"
    in_series: str = "-"
    demo: str = "-"
    failures: list[str] = field(default_factory=list)

    def cells(self) -> list[str]:
        yes = {True: "yes", False: "NO"}
        return [
            self.patch.name,
            yes[self.alone],
            yes[self.series],
            self.before,
            self.after,
            self.in_series,
            self.demo,
        ]


HEADER = [
    "patch",
    "applies alone",
    "in series",
    "new tests before",
    "after, alone",
    "after, in series",
    "demonstration",
]


@dataclass
class Report:
    """The rows of one release and what became of the upstream tests."""

    release: Release
    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def green(self) -> bool:
        return not self.failures and not any(row.failures for row in self.rows)

    def table(self) -> str:
        text = table(HEADER, [row.cells() for row in self.rows])
        problems = [*self.failures, *(line for row in self.rows for line in row.failures)]
        title = f"{self.release.project} {self.release.version}"
        return "\n".join(
            [title, "", text, "", *self.notes, *(f"PROBLEM: {line}" for line in problems)]
        )


def check(release: Release, folder: Path, full: bool = False, say=print) -> Report:
    """Prove the patches of one release in temporary folders below ``folder``."""
    report = Report(release, [Row(patch) for patch in release.patches])
    say(f"{release.folder.name}: fetching, installing and building the release")
    recipe = RECIPES[release.project](release, Workbench(folder), full)

    _apply(report, recipe)
    if not all(row.alone and row.series for row in report.rows):
        return report

    say(f"{release.folder.name}: new tests on the untouched release")
    patches = release.patches
    tests = [file for patch in patches for file in patch.tests]
    untouched = recipe.build("untouched", patches, tests_only=True)
    before = recipe.bench.pytest(untouched, tests)

    say(f"{release.folder.name}: new tests with the whole series")
    series = recipe.build("series", patches)
    together = recipe.bench.pytest(series, tests)
    for row in report.rows:
        say(f"{release.folder.name}: {row.patch.name}")
        tree = series
        if len(patches) > 1:
            tree = recipe.build(row.patch.name, release.with_needs(row.patch))
        alone = recipe.bench.pytest(tree, row.patch.tests)
        _judge(row, before, alone, together)

    say(f"{release.folder.name}: demonstrations")
    _demonstrate(report, recipe, untouched, series)
    say(f"{release.folder.name}: upstream tests")
    _upstream(report, recipe, series)
    return report


def _apply(report: Report, recipe: Recipe) -> None:
    """Every patch on the released source package: with what it needs, then in series."""
    series = source.copy(recipe.root, recipe.folder / "apply-series")
    for row in report.rows:
        alone = source.copy(recipe.root, recipe.folder / f"apply-{row.patch.name}")
        together = report.release.with_needs(row.patch)
        row.alone = all([source.applies(patch, alone) for patch in together])
        row.series = source.applies(row.patch, series)
        if not (row.alone and row.series):
            row.failures.append(f"{row.patch.name} does not apply")


def _judge(row: Row, before: Outcome, alone: Outcome, together: Outcome) -> None:
    """New tests must fail before and pass after."""
    tests = row.patch.tests
    row.before, row.after, row.in_series = (
        outcome.words(tests) for outcome in (before, alone, together)
    )
    if not before.count("failed", tests):
        row.failures.append(f"{row.patch.name}: its tests already pass without it")
    for outcome in (alone, together):
        if outcome.count("failed", tests) or not outcome.count("passed", tests):
            row.failures.append(f"{row.patch.name}: fails {sorted(outcome.failed)}")


def _demonstrate(report: Report, recipe: Recipe, untouched: Path, series: Path) -> None:
    """The demonstrations must run and must print something else with the patch."""
    demos = [row.patch.demo for row in report.rows]
    outputs = [recipe.bench.demonstrate(tree, demos) for tree in (untouched, series)]
    for row, *runs in zip(report.rows, *outputs, strict=True):
        errors = [run["error"] for run in runs if run["error"]]
        printed = tuple(run["output"] for run in runs)
        if errors:
            row.demo = "FAILS"
            row.failures.append(f"{row.patch.name}: demonstration fails\n{errors[0]}")
        elif printed[0] == printed[1]:
            row.demo = "NO DIFFERENCE"
            row.failures.append(f"{row.patch.name}: demonstration shows no difference")
        elif printed == row.patch.printed:
            row.demo = "prints as written"
        else:
            row.demo = "runs, other digits"
            report.notes.append(f"{row.patch.name} printed:\n{printed[0]}--\n{printed[1]}")


def _upstream(report: Report, recipe: Recipe, series: Path) -> None:
    """Upstream tests: nothing may fail that passed on the untouched release."""
    if not recipe.upstream_tests:
        report.notes.append("upstream tests: none in the source package")
    else:
        counts = []
        files = recipe.upstream_files()
        outcomes = [recipe.bench.pytest(tree, files) for tree in (recipe.base, series)]
        for name, outcome in zip(("untouched", "series"), outcomes, strict=True):
            passed, failed = outcome.count("passed"), outcome.count("failed")
            counts.append(f"{name} {passed} passed, {failed} failed, {outcome.skipped} skipped")
            if not passed:
                report.failures.append(f"no upstream test passes ({name})")
        report.notes.append(f"upstream tests: {'; '.join(counts)}")
        broken = sorted(outcomes[1].failed - outcomes[0].failed)
        report.failures += [f"upstream test fails with the series: {test}" for test in broken]
        old = sorted(outcomes[0].failed)
        if old:
            report.notes.append(f"failing on the untouched release too: {', '.join(old)}")
    seen = recipe.smoke(series)
    if seen:
        report.notes.append(seen)
