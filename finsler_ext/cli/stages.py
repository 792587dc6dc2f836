"""One line on the terminal: what is being done, for how long, and how long it will take."""

from __future__ import annotations

import sys
import threading
import time

from finsler_ext import __version__
from finsler_ext._progress import LAYOUT

__all__ = ["StageLine", "StageLog"]

# Seconds between two looks at the clock.
TICK = 0.5
# Shares below this say little about the rest.
LEAST_SHARE = 0.02
CLEAR = "\r\x1b[K"


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
        """As `finsler_ext._progress.listening` calls it; the layout has a bar of its own."""
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
        sys.stderr.write(f"{CLEAR}finsler-ext: {self.text()}")
        sys.stderr.flush()


class StageLog:
    """A line on stderr for every stage, with the seconds since the start; for ``--verbose``."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        python = ".".join(map(str, sys.version_info[:3]))
        self._say(f"version {__version__}, Python {python} on {sys.platform}")

    def __call__(self, name: str | None, share: float) -> None:
        """As `finsler_ext._progress.listening` calls it."""
        if name is not None:
            self._say(name)

    def _say(self, what: str) -> None:
        spent = time.monotonic() - self._started
        print(f"finsler-ext: {spent:6.1f} s  {what}", file=sys.stderr, flush=True)
