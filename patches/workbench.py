"""A temporary virtual environment, and what is run in it: pytest and demonstrations."""

from __future__ import annotations

import json
import os
import re
import subprocess
import venv
from collections import Counter, defaultdict
from pathlib import Path

from .catalogue import CheckError

_OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR|XFAIL|XPASS) ([^\s:]+)(?:::(\S+))?", re.MULTILINE)
_SKIPPED = re.compile(r"^SKIPPED \[(\d+)\]", re.MULTILINE)

_RUN_DEMOS = """\
import contextlib, io, json, sys, traceback, warnings
results = []
for code in json.load(sys.stdin):
    output = io.StringIO()
    with contextlib.redirect_stdout(output), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(code, "demo", "exec"), {"__name__": "__main__"})
            results.append({"output": output.getvalue(), "error": None})
        except BaseException:
            results.append({"output": output.getvalue(), "error": traceback.format_exc()})
json.dump(results, sys.stdout)
"""


class Outcome:
    """What pytest reported, by test file."""

    def __init__(self, report: str):
        self.failed: set[str] = set()
        self.skipped = sum(map(int, _SKIPPED.findall(report)))
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)
        for word, file, test in _OUTCOME.findall(report):
            bad = word in ("FAILED", "ERROR")
            self._counts[file]["failed" if bad else "passed"] += 1
            if bad:
                self.failed.add(f"{file}::{test}" if test else file)

    def count(self, word: str, files: list[str] | None = None) -> int:
        """Number of "passed" or "failed" tests in ``files`` (default: in all)."""
        return sum(self._counts[file][word] for file in (files or list(self._counts)))

    def words(self, files: list[str]) -> str:
        """Both numbers, as they stand in a table."""
        return f"{self.count('failed', files)} fail, {self.count('passed', files)} pass"


class Workbench:
    """A virtual environment of its own, so that the user's stays untouched."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.environment = folder / "environment"
        try:
            venv.create(self.environment, with_pip=True)
        except (subprocess.CalledProcessError, OSError) as error:
            raise CheckError(
                f"could not create a virtual environment with pip (is the venv module "
                f"complete?): {error}"
            ) from error
        scripts = "Scripts" if os.name == "nt" else "bin"
        self.python = self.environment / scripts / "python"

    def install(self, *requirements: str) -> None:
        """Install requirements by pip."""
        done = self.run("-m", "pip", "install", "--quiet", *requirements)
        if done.returncode != 0:
            raise CheckError(
                f"pip could not install {' '.join(requirements)}. Is a package index within "
                f"reach? pip says: {done.stderr.strip().splitlines()[-1:]}"
            )

    def run(
        self,
        *arguments: str | Path,
        cwd: Path | None = None,
        path: Path | None = None,
        text: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run Python in the environment, with ``path`` first on the import path."""
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        environment["NUMBA_NUM_THREADS"] = "2"  # tests of thread counts need two
        if path is not None:
            environment["PYTHONPATH"] = str(path)
        command = [str(self.python), *map(str, arguments)]
        return subprocess.run(
            command,
            cwd=cwd or self.folder,
            env=environment,
            input=text,
            capture_output=True,
            text=True,
        )

    def pytest(self, tree: Path, files: list[str]) -> Outcome:
        """Run test files of a tree against the package in the same tree."""
        options = ("-q", "-rA", "--tb=no", "-p", "no:cacheprovider", "-W", "ignore")
        options += ("--continue-on-collection-errors",)
        done = self.run("-m", "pytest", *options, *files, cwd=tree, path=tree)
        outcome = Outcome(done.stdout)
        if not outcome.count("passed") + outcome.count("failed"):
            raise CheckError(f"pytest ran no test of {files}:\n{done.stdout}{done.stderr}")
        return outcome

    def demonstrate(self, tree: Path, demos: list[str]) -> list[dict[str, str | None]]:
        """Run demonstrations one after the other in one process; what each printed."""
        done = self.run("-c", _RUN_DEMOS, path=tree, text=json.dumps(demos))
        if done.returncode != 0:
            raise CheckError(f"the demonstrations could not be run:\n{done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])
