"""Data as users have it, for hypothesis: values, dtypes, units, offsets, and what they come in."""

import io

import numpy as np
import pandas as pd
import scipy.sparse
from hypothesis import strategies as st

DTYPES = ("f8", "f4", "f2", ">f8", "i8", "i4", "i2", "u1", "?")
KINDS = ("scattered", "duplicates", "integers", "binary", "zeros", "constant column", "clusters")
OFFSETS = (0.0, 1.0, -100.0, 1e5, 1e8, -1.7e9)
DENSE = (
    "c order",
    "fortran",
    "strided",
    "negative strides",
    "read only",
    "frame",
    "frame of columns",
    "nullable frame",
    "masked without a mask",
    "memory map",
    "transposed view",
)
SPARSE = (
    "csr_matrix",
    "csr_array",
    "csc_matrix",
    "csc_array",
    "coo_matrix",
    "coo_array",
    "bsr_matrix",
    "lil_matrix",
    "dok_matrix",
    "stored zeros",
    "unsorted",
    "doubled entries",
    "long indices",
    "read-only parts",
    "spare room",
)
SPOILT = ["nan", "inf", "masked", "huge", "tiny", "denormal", "objects", "words", "complex", "none"]
SPOILT += ["three axes", "one axis", "no rows", "no columns", "one row", "two rows", "all equal"]
SPOILT += ["negative zero", "outlier", "nan in sparse", "broken sparse"]


@st.composite
def tables(draw, min_rows=8, max_rows=40, dtypes=DTYPES, offsets=OFFSETS):
    """A matrix of one dtype: rows of many kinds, at any place."""
    n, d = draw(st.integers(min_rows, max_rows)), draw(st.integers(1, 6))
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    kind = draw(st.sampled_from(KINDS))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, d)) * 3.0
    if kind == "duplicates":
        X = X[rng.integers(0, max(2, n // 2), size=n)]
    elif kind == "integers":
        X = rng.integers(-3, 4, size=X.shape).astype(float)
    elif kind == "binary":
        X = (X > 0).astype(float)
    elif kind == "zeros":
        X[rng.uniform(size=X.shape) < 0.6] = 0.0
    elif kind == "constant column":
        X[:, -1] = 2.5
    elif kind == "clusters":
        X += 50.0 * rng.integers(0, 3, size=(n, 1))
    if dtype.kind == "f" and dtype.itemsize == 8:
        X += draw(st.sampled_from(offsets))
    elif dtype.kind in "iub":
        X = np.abs(X) if dtype.kind in "ub" else X
        X = X.astype(int) % 2 if dtype.kind == "b" else X.astype(int)
    return X.astype(dtype)


def in_dense(X, form: str):
    """The same numbers of the same dtype, held otherwise."""
    native = X.astype(X.dtype.newbyteorder("="))
    if form == "fortran":
        return np.asfortranarray(X)
    if form == "strided":
        wide = np.zeros((2 * len(X), 3 * X.shape[1]), dtype=X.dtype)
        wide[::2, 1::3] = X
        return wide[::2, 1::3]
    if form == "negative strides":
        return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    if form == "transposed view":
        return np.ascontiguousarray(X.T).T
    if form == "read only":
        X = X.copy()
        X.setflags(write=False)
        return X
    if form in ("frame", "frame of columns", "nullable frame"):
        frame = pd.DataFrame(native, columns=[f"c {i}" for i in range(X.shape[1])])
        if form == "frame of columns":  # one block of memory each
            return pd.DataFrame({name: frame[name].to_numpy().copy() for name in frame})
        # of other dtypes scikit-learn makes float64, which t-SNE and MDS then compute in
        nullable = form == "nullable frame" and native.dtype == np.float64
        return frame.convert_dtypes(convert_integer=False) if nullable else frame
    if form == "masked without a mask":
        return np.ma.array(X)
    if form == "memory map":
        stored = io.BytesIO()
        np.save(stored, X)
        stored.seek(0)
        return np.load(stored).view(np.memmap)
    return np.ascontiguousarray(X)


def in_sparse(X, form: str, rng=None):
    """The same numbers as a sparse matrix, canonical or not."""
    rng = np.random.default_rng(0) if rng is None else rng
    X = X.astype(X.dtype.newbyteorder("="))
    if form.split("_")[0] in ("csr", "csc", "coo", "bsr", "lil", "dok"):
        return getattr(scipy.sparse, form)(X)
    full = scipy.sparse.csr_matrix(X)
    if form == "stored zeros":
        full = scipy.sparse.csr_matrix(np.ones(X.shape, dtype=X.dtype))
        full.data = X.ravel().copy()
    elif form == "unsorted":
        for row in range(full.shape[0]):
            part = slice(full.indptr[row], full.indptr[row + 1])
            order = rng.permutation(part.stop - part.start)
            full.indices[part] = full.indices[part][order]
            full.data[part] = full.data[part][order]
        full.has_sorted_indices = False
        full.has_canonical_format = False
    elif form == "doubled entries":  # x as x − x/2 + x/2 is exact, as (2x) + (−x) is
        entries = full.tocoo()
        twice = [np.concatenate([a, a]) for a in (entries.row, entries.col)]
        halves = np.concatenate([2 * entries.data, -entries.data])
        return scipy.sparse.coo_matrix((halves, tuple(twice)), shape=X.shape)
    elif form == "long indices":
        full.indices, full.indptr = full.indices.astype(np.int64), full.indptr.astype(np.int64)
    elif form == "read-only parts":
        for part in (full.data, full.indices, full.indptr):
            part.setflags(write=False)
    elif form == "spare room":
        full.data = np.append(full.data, np.ones(7, dtype=X.dtype))
        full.indices = np.append(full.indices, np.full(7, 10**6, dtype=full.indices.dtype))
    return full


@st.composite
def spoilt(draw):
    """A table with something in it that no distance can be computed from, or that is unusual."""
    X = draw(tables(dtypes=("f8", "f4"), offsets=(0.0, 1e8)))
    X = X.astype(X.dtype.newbyteorder("="))
    row, column = draw(st.integers(0, len(X) - 1)), draw(st.integers(0, X.shape[1] - 1))
    kind = draw(st.sampled_from(SPOILT))
    if kind in ("nan", "inf"):
        X[row, column] = {"nan": np.nan, "inf": np.inf}[kind]
    elif kind == "masked":
        X = np.ma.array(X)
        X[row, column] = np.ma.masked
    elif kind in ("huge", "tiny", "denormal"):
        unit = {"huge": 1e290, "tiny": 1e-290, "denormal": 1e-320}[kind]
        X = X.astype(np.float64) * unit
    elif kind == "outlier":
        X[row, column] = 3e37
    elif kind in ("objects", "words", "none"):
        X = X.astype(object)
        if kind != "objects":
            X[row, column] = {"words": "word", "none": None}[kind]
    elif kind == "complex":
        X = X + 1j
    elif kind == "three axes":
        X = X[:, :, None]
    elif kind == "one axis":
        X = X[:, 0]
    elif kind in ("no rows", "one row", "two rows"):
        X = X[: {"no rows": 0, "one row": 1, "two rows": 2}[kind]]
    elif kind == "no columns":
        X = X[:, :0]
    elif kind == "all equal":
        X[:] = X[0]
    elif kind == "negative zero":
        X[X < 0] = -0.0
    elif kind.endswith("sparse"):
        X = scipy.sparse.csr_matrix(X)
        if X.nnz and kind == "nan in sparse":
            X.data[0] = np.nan
        elif X.nnz:
            X.indices[-1] = draw(st.sampled_from([-1, -(2**31), X.shape[1], 2**31 - 1]))
    return X, kind
