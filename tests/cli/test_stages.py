"""The line of stages, on a terminal made by the operating system."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from finsler_ext import _messages
from finsler_ext.cli.messages import StageLine

pty = pytest.importorskip("pty")


def test_listeners_hear_stages_and_shares_and_are_forgotten():
    heard = []
    with _messages.listening(lambda *said: heard.append(said)):
        _messages.stage("looking")
        _messages.step(1, 4)
    _messages.stage("unheard")
    assert heard == [("looking", 0.0), (None, 0.25)]


def test_time_left_follows_from_the_share(monkeypatch):
    line = StageLine("reading")
    assert line.text() == "reading … 0 s"
    line("looking", 0.0)
    line(None, 0.25)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 3.0)
    assert line.text() == "looking: 25%, 3 s, 9 s left"


def test_a_terminal_sees_the_stages_in_order(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "rows.npy", rng.normal(size=(1500, 8)))
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "finsler_ext", "embed", "rows.npy", "-o", "out.npy"]
    done = subprocess.Popen(command, cwd=tmp_path, stderr=slave, stdout=subprocess.PIPE)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    assert done.wait() == 0
    done.stdout.close()
    os.close(master)
    text = shown.decode()
    stages = [
        "reading rows.npy",
        "loading FinslerUMAP",
        "finding neighbours",
        "computing the start",
    ]
    places = [text.find(name) for name in stages]
    assert -1 not in places, text
    assert places == sorted(places)


def test_verbose_says_which_search_and_how_good(capsys):
    from finsler_ext import FinslerUMAP

    X = np.random.default_rng(0).normal(size=(600, 4)).astype(np.float32)
    settings = {"n_epochs": 2, "random_state": 0, "verbose": True, "tqdm_kwds": {"disable": True}}
    FinslerUMAP(**settings).fit(X)
    assert "Neighbours: exact, all pairs of 600 rows" in capsys.readouterr().out
    FinslerUMAP(force_approximation_algorithm=True, **settings).fit(X)
    assert "Neighbours: kmeans_graph, recall 1.000" in capsys.readouterr().out
