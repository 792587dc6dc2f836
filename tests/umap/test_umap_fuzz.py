"""fit and transform on whatever hypothesis thinks of."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from finsler_ext import FinslerUMAP
from finsler_ext.umap.graph import isolated
from tests.models import global_state

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

FORMS = ("array", "fortran", "list", "csr", "csc", "coo", "csr_array")
METRICS = ("euclidean", "manhattan", "cosine", "chebyshev", "correlation")


@st.composite
def data(draw):
    """Rows of many kinds: scattered, repeated, constant, huge, tiny, integer, sparse."""
    n, d = draw(st.integers(1, 40)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    X = rng.normal(size=(n + 5, d)) * draw(st.sampled_from([1e-20, 1e-3, 1.0, 1e6]))
    X += draw(st.sampled_from([0.0, 1.0, -100.0]))
    kind = draw(st.sampled_from(["plain", "duplicates", "constant", "integers", "zeros"]))
    if kind == "duplicates":
        X = X[rng.integers(0, max(1, n // 3), size=n + 5)]
    elif kind == "constant":
        X[:] = X[0]
    elif kind == "integers":
        X = rng.integers(0, 3, size=X.shape)
    elif kind == "zeros":
        X[rng.uniform(size=X.shape) < 0.7] = 0
    return X.astype(draw(st.sampled_from([np.float32, np.float64]))), n


# Sparse rows of equal entries have no correlation.
NO_DISTANCE = "metric='correlation' divides by zero"
CLEAR = ("init='pca' cannot give", NO_DISTANCE)


def in_form(X, form):
    if form == "array":
        return X
    if form == "fortran":
        return np.asfortranarray(X)
    if form == "list":
        return X.tolist()
    return getattr(scipy.sparse, form if form.endswith("array") else f"{form}_matrix")(X)


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(
    data(),
    st.sampled_from(FORMS),
    st.fixed_dictionaries(
        {
            "n_neighbors": st.integers(2, 50),
            "n_components": st.integers(1, 4),
            "omega_norm": st.sampled_from([0, 0.01, 0.5, 0.99, "auto"]),
            "affinity": st.sampled_from(["directed", "harmonic", "fuzzy_union"]),
            "metric": st.sampled_from(METRICS),
            "init": st.sampled_from(["spectral", "random", "pca"]),
            "min_dist": st.sampled_from([0.0, 0.1, 0.99]),
            "local_connectivity": st.sampled_from([1.0, 1.5, 3.0]),
            "set_op_mix_ratio": st.sampled_from([0.0, 0.5, 1.0]),
            "n_epochs": st.sampled_from([0, 1, 7]),
            "unique": st.booleans(),
            "n_jobs": st.sampled_from([1, 2, -1]),
            "random_state": st.integers(0, 5),
        }
    ),
)
def test_a_right_answer_or_a_clear_error(rows, form, parameters):
    X, n = rows
    old, new = in_form(X[:n], form), in_form(X[n:], form)
    kept = np.array(X)
    before = global_state()
    model = FinslerUMAP(**parameters)
    try:
        embedding = model.fit_transform(old)
    except ValueError as error:
        if not any(text in str(error) for text in CLEAR):
            raise
        assert global_state() == before
        return
    assert embedding.shape == (n, parameters["n_components"])
    assert embedding.dtype == np.float32
    several = model.graph_.shape[0] > 1
    rows = model._unique_inverse_ if model.unique else slice(None)
    joined = ~isolated(model.graph_)[rows] | (not several)
    assert np.array_equal(np.isfinite(embedding).all(axis=1), joined)
    if several:
        try:
            placed = model.transform(new)
        except ValueError as error:
            if NO_DISTANCE not in str(error):
                raise
            return
        assert placed.shape == (5, parameters["n_components"])
        # Opposite directions are as far apart as these metrics know: no neighbours.
        opposite = parameters["metric"] in ("cosine", "correlation")
        assert np.isfinite(placed).all() or opposite or not joined.all()
        again = model.transform(in_form(X[n + 2 : n + 3], form))
        assert np.array_equal(again[0], placed[2], equal_nan=True)
    assert np.array_equal(X, kept)
    assert global_state() == before
