import os
from pathlib import Path

# The tests compare thread counts on purpose; two are enough, whatever the machine has.
os.environ.setdefault("NUMBA_NUM_THREADS", "2")

import numpy as np
import pytest
from sklearn.datasets import load_digits

# Files that take several seconds each. `pytest -m quick` runs the others, in one minute once
# everything is compiled.
LONG = (
    "benchmarks/", "cli/test_embed.py", "cli/test_embed_directed.py", "cli/test_errors.py",
    "cli/test_stages.py", "cli/test_transform.py", "cli/test_writing.py",
    "directed/test_containers_fuzz.py", "directed/test_directed.py",
    "evidence/test_direction.py", "geometry/test_space_parameter.py",
    "height/test_eigenvectors.py", "height/test_height_mode.py", "io/test_saved_models.py",
    "mds/test_mds.py", "mds/test_pivots.py", "mds/test_scaling.py", "mds/test_stress.py",
    "neighbors/test_exact.py", "neighbors/test_kmeans_graph.py", "on_dask/test_collections.py",
    "plot/test_pictures.py", "test_blas_threads.py", "test_explain.py", "test_interrupts.py",
    "test_package.py", "test_patches_upstream.py", "test_readme.py", "test_validation.py",
    "tsne/test_tsne.py", "tsne/test_tsne_grid.py", "umap/test_memberships.py",
    "umap/test_umap_composition.py", "umap/test_umap_fit.py", "umap/test_umap_height.py",
    "umap/test_umap_of_digits.py", "umap/test_umap_sklearn.py", "umap/test_umap_transform.py",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    """Long files first, so that no process is left with one in the end."""
    items.sort(key=lambda item: not _is_long(item))
    for item in items:
        if not _is_long(item) and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.quick)


def _is_long(item) -> bool:
    return os.path.relpath(item.path, Path(__file__).parent).startswith(LONG)


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
