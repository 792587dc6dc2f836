"""How soon `finsler-ext embed` shows something, and whether it says how long it will take.

    python -m benchmarks.first_output
    python -m benchmarks.first_output --rows 30000 --columns 50 --repeats 5

Every run is a fresh process whose errors go to a terminal of its own, as a user's do; the file is a
table of numbers (npy). Printed are the seconds from starting the process to the first character, to
the first line that names a stage, to the first that says the time left, to the end; the longest
time in which nothing new was shown; and the share of the time after the first second in which the
last line shown had a time left. Needs a pseudo-terminal, which Windows has not.
"""

from __future__ import annotations

import argparse
import os
import re
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.data import blobs

__all__ = ["Shown", "watch", "words"]

# Lines and columns.
TERMINAL = (24, 100)
# "12 s left" of the line of stages, and "00:12 left" of a bar.
TIME_LEFT = re.compile(r"\d s left|\d:\d\d left")
STAGE = re.compile(r"finsler-ext: \w")
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Shown(NamedTuple):
    """What came out of a process, with the seconds since its start, and when it ended."""

    pieces: list[tuple[float, str]]
    seconds: float
    code: int


def watch(command: list[str]) -> Shown:
    """Run a command with stderr on a terminal of its own."""
    import fcntl
    import pty
    import termios

    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("4H", *TERMINAL, 0, 0))
    pieces: list[tuple[float, str]] = []
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=writer
    )
    os.close(writer)
    while True:
        ready, _, _ = select.select([reader], [], [], 0.02)
        if ready:
            try:
                piece = os.read(reader, 65536)
            except OSError:  # the last writer has closed it
                break
            if not piece:
                break
            pieces.append((time.perf_counter() - started, piece.decode(errors="replace")))
        elif process.poll() is not None:
            break
    process.wait()
    seconds = time.perf_counter() - started
    os.close(reader)
    return Shown(pieces, seconds, process.returncode)


def words(shown: Shown) -> list[tuple[float, str]]:
    """Lines as they are shown, each with its time, without the codes that move a cursor."""
    lines = []
    for when, piece in shown.pieces:
        for line in re.split(r"[\r\n]+", CODES.sub("", piece)):
            if line.strip():
                lines.append((when, line.strip()))
    return lines


def first(lines: list[tuple[float, str]], pattern: re.Pattern) -> float:
    return next((when for when, line in lines if pattern.search(line)), float("nan"))


def share_with_time_left(lines: list[tuple[float, str]], end: float, begin: float = 1.0) -> float:
    """Of the time between begin and end, the part in which the last line shown had a time left."""
    told, since, telling = 0.0, begin, False
    for when, line in [*lines, (end, "")]:
        if telling:
            told += max(0.0, min(when, end) - since)
        since, telling = max(when, begin), bool(TIME_LEFT.search(line))
    return told / (end - begin) if end > begin else float("nan")


def row(shown: Shown) -> dict[str, float]:
    lines = words(shown)
    times = [0.0, *(when for when, _ in shown.pieces), shown.seconds]
    return {
        "first character": shown.pieces[0][0] if shown.pieces else float("nan"),
        "first stage": first(lines, STAGE),
        "first time left": first(lines, TIME_LEFT),
        "longest silence": max(b - a for a, b in pairwise(times)),
        "time left shown, share": share_with_time_left(lines, shown.seconds),
        "end": shown.seconds,
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--lines", action="store_true", help="print what the last run showed")
    options = parser.parse_args(arguments)
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.npy"
        np.save(file, blobs(options.rows, options.columns))
        command = [sys.executable, "-m", "finsler_ext", "embed", str(file), "--seed", "0"]
        command += ["--output", str(Path(folder) / "map.npy")]
        for _ in range(options.repeats):
            shown = watch(command)
            if shown.code:
                print("".join(piece for _, piece in shown.pieces), file=sys.stderr)
                return 1
            runs.append(row(shown))
    if options.lines:
        last = ""
        for when, line in words(shown):
            if line != last:
                print(f"{when:7.2f}  {line[:110]}")
            last = line
    print("| what | median | least | most |\n| --- | --- | --- | --- |")
    for name in runs[0]:
        values = [found[name] for found in runs]
        print(
            f"| {name} | {statistics.median(values):.2f} | {min(values):.2f} | {max(values):.2f} |"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
