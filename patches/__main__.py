"""Command line: ``python -m patches check | suite | send``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .against import check_against
from .catalogue import PROJECTS, CheckError, releases
from .check import check
from .send import Letter, send
from .suite import chosen, our_tests, run_suite


def main(arguments: list[str] | None = None) -> int:
    """Prove the patches, run our tests on patched packages, prepare pull requests."""
    options = _parser().parse_args(arguments)
    run = {"check": _check, "suite": _suite, "send": _send}[options.command]
    try:
        return run(options)
    except CheckError as error:
        print(f"patches: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m patches", description=main.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    clone = {"type": Path, "metavar": "CLONE", "help": "a clone of the upstream repository"}

    checking = commands.add_parser("check", help="apply, build and test in temporary folders")
    checking.add_argument("project", nargs="?", choices=PROJECTS, help="default: all of them")
    checking.add_argument(
        "--full", action="store_true", help="build scikit-learn as a whole, not one extension"
    )
    checking.add_argument("--against", **clone)

    suite = commands.add_parser("suite", help="run our own tests on a patched package")
    suite.add_argument("project", choices=PROJECTS)
    suite.add_argument("tests", nargs="*", help="default: those that run code of the project")
    suite.add_argument("--all", action="store_true", help="all our tests (minutes)")
    suite.add_argument("--against", **clone)
    suite.add_argument("--only", type=int, nargs="*", metavar="N", help="these patches, or none")

    sending = commands.add_parser("send", help="prepare a pull request; nothing is pushed")
    sending.add_argument("project", choices=PROJECTS)
    sending.add_argument("number", type=int)
    sending.add_argument("--clone", required=True, **clone)
    sending.add_argument("--issue", type=int, help="number of the issue that asks for the code")
    sending.add_argument("--out", type=Path, default=Path("outbox"), help="folder for the drafts")
    sending.add_argument("--dry-run", action="store_true", help="leave the clone as it is")
    for command in (checking, suite, sending):
        command.add_argument("--revision", default="HEAD", help="of the clone (default: HEAD)")
    return parser


def _check(options: argparse.Namespace) -> int:
    if options.against is not None and options.project is None:
        raise CheckError("--against needs a project: a clone is of one of them")
    reports = []
    for release in releases((options.project,) if options.project else PROJECTS):
        with tempfile.TemporaryDirectory(prefix="patches-") as folder:
            if options.against is None:
                report = check(release, Path(folder), options.full, say=_say)
            else:
                report = check_against(
                    release,
                    options.against.resolve(),
                    options.revision,
                    Path(folder),
                    options.full,
                    say=_say,
                )
        reports.append(report)
        print(f"\n{report.table()}\n", flush=True)
    green = all(report.green for report in reports)
    print("everything is green" if green else "not everything is green: see PROBLEM above")
    return 0 if green else 1


def _suite(options: argparse.Namespace) -> int:
    (release,) = releases((options.project,))
    if options.all and options.tests:
        raise CheckError("either test files or --all")
    tests = our_tests(options.project)
    if options.all or options.tests:
        tests = options.tests
    origin = options.against.resolve() if options.against else None
    with tempfile.TemporaryDirectory(prefix="patches-") as folder:
        patches = chosen(release, options.only)
        return run_suite(release, patches, tests, Path(folder), origin, options.revision, say=_say)


def _send(options: argparse.Namespace) -> int:
    (release,) = releases((options.project,))
    letter = Letter(
        release,
        release.patch(options.number),
        options.clone.resolve(),
        options.revision,
        options.issue,
    )
    with tempfile.TemporaryDirectory(prefix="patches-") as folder:
        send(letter, Path(folder), options.out, options.dry_run, say=_say)
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
