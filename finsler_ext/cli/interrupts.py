"""Ctrl-C: one line that says what was written, whatever the interrupted code made of it."""

from __future__ import annotations

import signal
import sys
import threading

__all__ = ["Interrupts"]


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
        return f"interrupted; {' and '.join(self.written)} had been written"
