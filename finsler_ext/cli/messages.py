"""What the command says: errors as one line with the way out, and what the height shows."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

# Names in a message; more are counted.
LISTED = 8
NAMES = {"umap": "FinslerUMAP", "tsne": "FinslerTSNE", "mds": "FinslerMDS"}
# Ends a line that is being renewed on a terminal.
CLEAR = "\r\x1b[K"


class UsageError(Exception):
    """What the user gave cannot be used; the message says what to do."""


class OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {one_line(message)} (see {self.prog} --help)\n")


def one_line(error) -> str:
    """The message of an error, or another text, for a terminal."""
    return shown(" ".join(str(error).split()) or type(error).__name__)


def shown(text) -> str:
    """Text that does nothing to a terminal: control characters and half characters as \\x1b."""
    plain = str(text).encode("utf-8", "backslashreplace").decode()
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)


def listed(names: Iterable) -> str:
    """Names for a message, the first few if they are many."""
    names = [str(name) for name in names]
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


def joined(names: Iterable) -> str:
    """a, b and c."""
    *first, last = map(str, names)
    return f"{', '.join(first)} and {last}" if first else last


def needs(package: str, extra: str, what: str) -> UsageError:
    return UsageError(f"{what} needs {package}: pip install 'finsler_ext[{extra}]'")


def note(text) -> None:
    clear = CLEAR if sys.stderr.isatty() else ""
    print(f"{clear}finsler-ext: note: {one_line(text)}", file=sys.stderr)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Warnings for users are notes when the block has ended."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    note_warnings(caught)


def note_warnings(caught: Iterable, without: tuple[type[Warning], ...] = ()) -> None:
    """Warnings for users as notes, each once."""
    wanted = [w for w in caught if issubclass(w.category, UserWarning)]
    texts = [one_line(w.message) for w in wanted if not issubclass(w.category, without)]
    for text in dict.fromkeys(texts):
        note(text)


def verdict(model) -> str:
    """The evidence of a fitted model, and how well its height fits the data it was made from."""
    said, fidelity = model.evidence_.verdict, model.skew_fidelity_
    said = f"{said[:1].upper()}{said[1:]}."
    if not fidelity.defined:
        return f"{said} The height carries no asymmetry: {fidelity.reason}."
    return f"{said} The height orders {fidelity.sign:.0%} of the pairs that it was made from."


def columns_why(model) -> str:
    """Why there are so many columns, where that was chosen."""
    choice = getattr(model, "column_choice_", None)
    return "" if choice is None else f" Columns: {choice.reason}."
