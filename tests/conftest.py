import os
from pathlib import Path

# The tests compare thread counts on purpose; two are enough, whatever the machine has.
os.environ.setdefault("NUMBA_NUM_THREADS", "2")

import numpy as np
import pytest
from sklearn.datasets import load_digits

# Tests of what is not in the package: they run by their path, after the others in .ci/run.
APART = [Path(__file__).parent / name for name in ("benchmarks", "test_readme_figures.py")]


def pytest_ignore_collect(collection_path, config):
    """A run without paths is of the package."""
    if config.args_source is config.ArgsSource.TESTPATHS and collection_path in APART:
        return True
    return None


@pytest.fixture(scope="session")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="session")
def few_digits(digits):
    return digits[0][:200].astype(np.float32), digits[1][:200]


@pytest.fixture(scope="session")
def tsne_of_digits(digits):
    """500 digits, and a model of them that no test changes."""
    from finsler_ext import FinslerTSNE

    X = digits[0][:500]
    return X, FinslerTSNE(omega_norm=0.5, perplexity=20, random_state=0).fit(X)
