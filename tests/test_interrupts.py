"""Ctrl-C at any moment of fit, transform and embed: models and files are as before, or done."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.cli.commands import ENV, run

# Fits of each kind, then fits and transforms that are interrupted after random delays.
SCRIPT = """
import os, random, signal, sys, threading, time, warnings
import numpy as np
from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP

warnings.simplefilter("ignore")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
sys.unraisablehook = lambda lost: None  # an interrupt may fall into a callback, and be lost
seed, trials = map(int, sys.argv[1:3])
models = {
    "umap": lambda: FinslerUMAP(random_state=0, n_epochs=100),
    "tsne": lambda: FinslerTSNE(random_state=0, n_iter=40, early_exaggeration_iter=20),
    "mds": lambda: FinslerMDS(random_state=0, max_iter=60),
}
random.seed(seed)


def interrupted(kind, n):
    rng = np.random.default_rng(0)
    X, other, new = rng.normal(size=(200, 4)), rng.normal(size=(n, 3)), rng.normal(size=(20, 4))
    model = models[kind]().fit(X)
    models[kind]().fit(other).transform(other[:5] + 0.1)  # compile
    begun = time.perf_counter()
    models[kind]().fit(other)
    taken = {True: time.perf_counter() - begun}
    begun = time.perf_counter()
    embedding, placed = np.array(model.embedding_), model.transform(new)
    taken[False] = time.perf_counter() - begun
    threads, count = threading.active_count(), 0
    for trial in range(trials):
        refit = trial % 2 == 0
        delay = random.uniform(0.0, 0.8) * taken[refit]  # while it runs
        stop = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
        try:
            stop.start()
            try:
                model.fit(other) if refit else model.transform(new)
            finally:
                stop.cancel()
                stop.join()
        except KeyboardInterrupt:
            count += 1
        else:
            if refit:
                model = models[kind]().fit(X)
            continue
        assert model.n_features_in_ == 4
        assert np.array_equal(model.embedding_, embedding), (kind, trial)
        assert np.array_equal(model.transform(new), placed), (kind, trial)
        assert threading.active_count() == threads, threading.enumerate()
    return count


for given in sys.argv[3:]:
    kind, n = given.split(":")
    print(interrupted(kind, int(n)))
"""


@pytest.mark.parametrize(
    "fits",
    [
        ("umap:1000", "tsne:1000", "mds:600"),
        pytest.param(("umap:4200",), marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_fit_leaves_the_model(fits, tmp_path):
    done = run([sys.executable, "-c", SCRIPT, "0", "6", *fits], tmp_path, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    counts = [int(count) for count in done.stdout.split()]
    assert len(counts) == len(fits)
    assert sum(counts) > 0


FORK = """
import os, sys, warnings
import numpy as np
from finsler_ext import FinslerUMAP

warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(4100, 3))
short = {"metric": "manhattan", "n_epochs": 1}
model = FinslerUMAP(random_state=0, **short).fit(X)
for work in (lambda: FinslerUMAP(**short).fit(X), lambda: model.transform(X[:2] + 0.1)):
    child = os.fork()
    if child == 0:
        try:
            work()
        except RuntimeError as error:
            os._exit(7 if "OpenMP does not survive a fork" in str(error) else 8)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.slow  # NN-descent compiles in every process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_is_told_why(tmp_path):
    """It would be ended by OpenMP, with −SIGTERM; other layers of numba's stand a fork."""
    done = run([sys.executable, "-c", FORK], tmp_path, text=True)
    assert done.stderr == ""
    assert set(done.stdout.split()) <= {"7", "0"}


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3, 4, 5))]
)
def test_an_interrupted_command_says_what_was_written(seed, tmp_path):
    """Also while packages are imported, in NN-descent, and between table and picture."""
    rng, random_ = np.random.default_rng(0), random.Random(seed)
    np.save(tmp_path / "a.npy", rng.normal(size=(4200 if seed % 2 else 60, 4)))
    (tmp_path / "o.csv").write_text("old")
    command = [sys.executable, "-m", "finsler_ext", "embed", "a.npy", "-o", "o.csv"]
    process = subprocess.Popen(
        [*command, "--plot", "o.html"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENV,
    )
    time.sleep(random_.uniform(0.2, 3.0))
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=300)
    new = (tmp_path / "o.csv").read_text() != "old"
    page = (tmp_path / "o.html").exists()
    # 0 and −SIGINT: it was done before, and the signal met Python on its way out
    if process.returncode == 0 or (process.returncode == -signal.SIGINT and not errors):
        assert new
        assert page
    else:
        assert process.returncode in (130, -signal.SIGINT), errors
        (line,) = errors.splitlines()
        assert line.startswith("finsler-ext: interrupted")
        assert ("o.csv" in line) == new
        assert ("o.html" in line) == page
        assert ("nothing was written" in line) == (not new)
        assert said == ""
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".finsler")]
