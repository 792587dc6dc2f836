"""What the command says: one-line errors and notes, the verdict, stages, bars, and after Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from finsler_ext import __version__
from finsler_ext._messages import LAYOUT

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
def warnings_as_notes(without: tuple[type[Warning], ...] = ()) -> Iterator[None]:
    """Warnings for users are notes when the block has ended, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
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


# How far it is: one line on the terminal, or a line for every stage.

# Seconds between two looks at the clock.
TICK = 0.5
# Shares below this say little about the rest.
LEAST_SHARE = 0.02
BAR = (
    "{desc}: {percentage:3.0f}% |{bar}| {n_fmt}/{total_fmt} rows, {elapsed} elapsed, "
    "{remaining} left"
)


class StageLine:
    """A line on stderr, if that is a terminal, renewed twice a second until it is ended."""

    def __init__(self, name: str):
        self._over = threading.Event()
        self._shown = sys.stderr.isatty()
        self._stage = name, 0.0, time.monotonic()  # and the share that is done, and its beginning
        if self._shown:
            self._write()
            self._thread = threading.Thread(target=self._tick, daemon=True)
            self._thread.start()

    def __call__(self, name: str | None, share: float) -> None:
        """As `finsler_ext._messages.listening` calls it; the layout has a bar of its own."""
        if name == LAYOUT:
            self.end()
        before, _, since = self._stage
        if name is None:
            self._stage = before, share, since
            return
        self._stage = name, share, time.monotonic()
        if self._shown and not self._over.is_set():
            self._write()

    def text(self) -> str:
        name, share, since = self._stage
        spent = time.monotonic() - since
        if share < LEAST_SHARE:
            return f"{name} … {spent:.0f} s"
        left = spent * (1.0 - share) / share
        return f"{name}: {share:.0%}, {spent:.0f} s, {left:.0f} s left"

    def __enter__(self) -> StageLine:
        return self

    def __exit__(self, *error) -> None:
        self.end()

    def end(self) -> None:
        """Leave the line to others."""
        if self._over.is_set():
            return
        self._over.set()
        if self._shown:
            self._thread.join()
            sys.stderr.write(CLEAR)
            sys.stderr.flush()

    def _tick(self) -> None:
        while not self._over.wait(TICK):
            self._write()

    def _write(self) -> None:
        sys.stderr.write(f"{CLEAR}finsler-ext: {shown(self.text())}")
        sys.stderr.flush()


def rows_bar(n: int):
    """A bar for n rows that are placed, after two seconds."""
    from tqdm.auto import tqdm

    return tqdm(total=n, desc="placing", bar_format=BAR, delay=2.0, leave=False, disable=None)


class StageLog:
    """A line on stderr for every stage, with the seconds since the start; for ``--verbose``."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        python = ".".join(map(str, sys.version_info[:3]))
        self._say(f"version {__version__}, Python {python} on {sys.platform}")

    def __call__(self, name: str | None, share: float) -> None:
        """As `finsler_ext._messages.listening` calls it."""
        if name is not None:
            self._say(name)

    def _say(self, what: str) -> None:
        spent = time.monotonic() - self._started
        print(f"finsler-ext: {spent:6.1f} s  {shown(what)}", file=sys.stderr, flush=True)


# Ctrl-C: one line that says what was written, whatever the interrupted code made of it.


class Interrupts:
    """Remembers that Ctrl-C was pressed: compiled code and imports may lose the exception, or
    raise another one in its place.
    """

    def __init__(self):
        self.seen = False
        self.written: list[str] = []
        self._before = None

    def __enter__(self) -> Interrupts:
        self._hook = sys.unraisablehook
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            if self._before is not signal.SIG_IGN:  # as under nohup
                signal.signal(signal.SIGINT, self._interrupt)
                sys.unraisablehook = self._unraisable
        return self

    def __exit__(self, *error) -> None:
        sys.unraisablehook = self._hook
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, number, frame):
        self.seen = True
        raise KeyboardInterrupt

    def _unraisable(self, lost):
        if not self.seen:
            self._hook(lost)

    def check(self) -> None:
        """Raise the KeyboardInterrupt that somebody has swallowed."""
        if self.seen:
            raise KeyboardInterrupt

    def report(self) -> str:
        if not self.written:
            return "interrupted, nothing was written"
        return f"interrupted; {joined(self.written)} had been written"
