"""The package as a whole: importing, the command line, compiled code on disk."""

import os
import subprocess
import sys

import pytest

from finsler_ext.cli import main


def python(code, **env):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | env
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_is_cheap():
    loaded = python(
        "import sys, finsler_ext; print([m for m in ('umap', 'openTSNE', 'numba', 'sklearn')"
        " if m in sys.modules], 'FinslerUMAP' in dir(finsler_ext), finsler_ext.__version__ > '0')"
    )
    assert loaded == "[] True True"


def test_unknown_names_are_attribute_errors():
    import finsler_ext

    with pytest.raises(AttributeError, match="nothing"):
        finsler_ext.nothing  # noqa: B018


def test_a_second_process_reuses_the_compiled_kernel(tmp_path):
    code = (
        "from finsler_ext.umap.kernels import step_kernel;"
        "from finsler_ext.umap.layout import UmapDescent;"
        "from finsler_ext.umap.kernels import LossShape;"
        "import numpy as np, scipy.sparse;"
        "graph, shape = scipy.sparse.csr_array(np.eye(3)), LossShape(1.0, 1.0);"
        "descent = UmapDescent(graph, shape, n_epochs=1, seed=0);"
        "descent.run(np.zeros((3, 2)), range(1), omega_norm=0.5);"
        "from finsler_ext.geometry import RANDERS;"
        "stats = step_kernel(RANDERS.forward, 2).stats; print(sum(stats.cache_hits.values()))"
    )
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path)) == "0"
    assert python(code, NUMBA_CACHE_DIR=str(tmp_path)) == "1"


def test_demo_draws_a_picture_and_says_what_the_height_carries(tmp_path, capsys):
    picture = tmp_path / "digits.png"
    assert main(["demo", "-o", str(picture)]) == 0
    printed = capsys.readouterr().out
    assert "orders 9" in printed
    assert picture.stat().st_size > 20_000


@pytest.mark.parametrize("bad", [["--omega-norm", "2"], ["-o", "no/such/folder/x.png"]])
def test_demo_errors_are_one_line(bad, capsys):
    assert main(["demo", *bad]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("finsler-ext: ")
