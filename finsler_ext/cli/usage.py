"""Errors as one line that names the thing and the way out."""

from __future__ import annotations

import argparse
from typing import NoReturn

__all__ = ["NAMES", "OneLineParser", "UsageError", "listed", "needs", "one_line", "shown_path"]

# Names in a message; more are counted.
LISTED = 8
NAMES = {"umap": "FinslerUMAP", "tsne": "FinslerTSNE", "mds": "FinslerMDS"}


class UsageError(Exception):
    """What the user gave cannot be used; the message says what to do."""


class OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")


def one_line(error) -> str:
    """The message of an error; bytes of a file name that are no text are shown as \\xff."""
    text = " ".join(str(error).split()) or type(error).__name__
    return shown_path(text)


def shown_path(path) -> str:
    return str(path).encode("utf-8", "backslashreplace").decode()


def listed(names) -> str:
    """Names for a message, the first few if they are many."""
    names = [str(name) for name in names]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def needs(package: str, extra: str, what: str) -> UsageError:
    return UsageError(f"{what} needs {package}: pip install 'finsler_ext[{extra}]'")
