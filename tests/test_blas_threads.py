"""Seeded fits do not depend on the number of threads that BLAS uses, which no n_jobs reaches."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP

SHORT = {"n_iter": 30, "early_exaggeration_iter": 20}
MODELS = {
    "tsne, free": FinslerTSNE(2, omega_norm=0.3, random_state=0, **SHORT),
    "tsne, held": FinslerTSNE(3, omega_norm=0.3, random_state=0, **SHORT),
    "umap, free": FinslerUMAP(n_components=2, omega_norm=0.3, n_epochs=20, random_state=0),
    "umap, held": FinslerUMAP(omega_norm=0.3, n_epochs=20, random_state=0),
    "mds": FinslerMDS(omega_norm=0.3, max_iter=3, random_state=0),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_threads_of_blas_change_no_bit(name):
    # long enough for BLAS to divide a sum over the affinities
    X = load_digits().data
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            found.append(MODELS[name].fit_transform(X))
    assert np.array_equal(*found)
