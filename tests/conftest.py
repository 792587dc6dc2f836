import os

# The tests compare thread counts on purpose; two are enough, whatever the machine has.
os.environ.setdefault("NUMBA_NUM_THREADS", "2")

import numpy as np
import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="session")
def few_digits(digits):
    return digits[0][:200].astype(np.float32), digits[1][:200]
