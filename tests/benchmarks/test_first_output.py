"""What a command shows on a terminal, and when."""

import sys

import pytest

from benchmarks import first_output
from benchmarks.first_output import Shown, row, share_with_time_left, words

PROGRAM = """
import os, sys
assert sys.stderr.isatty() and os.get_terminal_size(2).columns == 100
sys.stderr.write("\\r\\x1b[Kfinsler-ext: reading")
sys.stderr.write("\\r\\x1b[Kfinsler-ext: neighbours: 40%, 2 s, 3 s left")
sys.stderr.flush()
sys.exit(3)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_a_process_is_watched_on_a_terminal_of_its_own():
    shown = first_output.watch([sys.executable, "-c", PROGRAM])
    assert shown.code == 3
    lines = [line for _, line in words(shown)]
    assert lines == ["finsler-ext: reading", "finsler-ext: neighbours: 40%, 2 s, 3 s left"]
    assert 0 < words(shown)[0][0] <= shown.seconds


def test_times_of_what_is_shown():
    pieces = [
        (0.2, "\r\x1b[Kfinsler-ext: reading … 0 s"),
        (2.0, "\r\x1b[Kfinsler-ext: neighbours: 40%, 2 s, 3 s left"),
        (5.0, "\r\x1b[Kembedding:  30% |███    | 00:01 elapsed, 00:04 left"),
        (6.0, "\r\x1b[Kwriting … 0 s"),
    ]
    found = row(Shown(pieces, 9.0, 0))
    assert found["first character"] == found["first stage"] == 0.2
    assert found["first time left"] == 2.0
    assert found["longest silence"] == 3.0
    assert found["time left shown, share"] == pytest.approx(4 / 8)
    assert found["end"] == 9.0


def test_nothing_shown():
    found = row(Shown([], 4.0, 0))
    assert found["longest silence"] == 4.0
    assert found["time left shown, share"] == 0.0
    assert str(found["first character"]) == "nan"
    assert share_with_time_left([(0.1, "1 s left")], 3.0) == 1.0
