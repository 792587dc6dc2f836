"""One line on the terminal: what is being done, for how long, and how long it will take."""

from __future__ import annotations

import signal
import sys
import threading
import time

from finsler_ext import __version__
from finsler_ext._messages import LAYOUT
from finsler_ext.cli.messages import CLEAR, joined, shown

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
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._shown = sys.stderr.isatty()
        self._name, self._share, self._since = name, 0.0, time.monotonic()
        if self._shown:
            self._write()
            self._thread = threading.Thread(target=self._tick, daemon=True)
            self._thread.start()

    def __call__(self, name: str | None, share: float) -> None:
        """As `finsler_ext._messages.listening` calls it; the layout has a bar of its own."""
        if name == LAYOUT:
            self.end()
        with self._lock:
            if name is not None:
                self._name, self._since = name, time.monotonic()
            self._share = share
        if name is not None and self._shown and not self._over.is_set():
            self._write()

    def text(self) -> str:
        with self._lock:
            name, share, spent = self._name, self._share, time.monotonic() - self._since
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
