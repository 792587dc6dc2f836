"""Runs are held to one set of instructions, in the processes that make them and nowhere else."""

import os
import platform
import subprocess
import sys

import pytest

from benchmarks.ledger import Ledger
from benchmarks.paper.experiments import Cell
from benchmarks.paper.processor import AVX512, worker_environment
from benchmarks.paper.recheck import with_avx512
from benchmarks.paper.runner import ledger_path

SEEN = """
from numba import config
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
beyond = [name for name in __cpu_dispatch__ if name.startswith(("AVX512", "X86_V4"))]
print(config.CPU_NAME, any(__cpu_features__[name] for name in beyond))
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of another processor")
def test_workers_have_no_avx512():
    before = dict(os.environ)
    with worker_environment():
        seen = subprocess.run([sys.executable, "-c", SEEN], capture_output=True, text=True)
    assert seen.stdout.split() == ["znver3", "False"], seen.stderr
    assert dict(os.environ) == before


def test_the_environment_is_restored_after_an_error():
    before = dict(os.environ)
    inside = {}

    def fails():
        with worker_environment(avx512=True):
            inside.update(os.environ)
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert inside["OMP_NUM_THREADS"] == "1"
    assert inside.get("NUMBA_CPU_NAME") == before.get("NUMBA_CPU_NAME")
    assert dict(os.environ) == before


def test_runs_with_avx512_are_told_from_others(tmp_path):
    one, two = (Cell("disk", "disk:300", s, "spacing_1d", s) for s in (0, 1))
    ledger = Ledger(ledger_path("disk", tmp_path))
    ledger.add(one.data, one.method, one.seed, {"ami": 0.5})
    ledger.add(two.data, two.method, two.seed, {"ami": 0.5}, AVX512)
    assert with_avx512([one, two], tmp_path) == {two}
