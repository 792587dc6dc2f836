"""The command as a user runs it, and the tables it writes."""

import csv
import os
import subprocess
import sys
from pathlib import Path

ENV = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
WITHOUT = (
    "import sys\n"
    "for name in {missing!r}: sys.modules[name] = None\n"
    "from finsler_ext.cli import main\n"
    "sys.exit(main(sys.argv[1:]))"
)


def run(arguments, folder, **how):
    """What a process prints, and its code."""
    return subprocess.run(
        arguments, cwd=folder, capture_output=True, timeout=300, env=ENV, check=False, **how
    )


def command(arguments, folder, without=()):
    """Run the command as a user does; with packages hidden that the user may not have."""
    start = ["-m", "finsler_ext"] if not without else ["-c", WITHOUT.format(missing=without)]
    return run([sys.executable, *start, *arguments], folder, text=True)


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
