"""Reading points: one row per point, from any of the file formats."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

from finsler_ext.cli.labels import label_values
from finsler_ext.cli.text import read_text_table
from finsler_ext.cli.usage import UsageError, listed, needs

__all__ = ["FORMATS", "Table", "format_of", "load_npy", "load_npz", "read_table"]

FORMATS = ("csv", "tsv", "npy", "npz", "parquet", "h5ad")
# Rows an embedding needs.
FEWEST = 4
# Columns whose spreads differ more than this are probably in different units.
UNEQUAL = 100.0
# Squares of larger differences overflow in single precision, in which neighbours are searched for.
LARGEST = 1e18


class Table(NamedTuple):
    """Points to embed, what names their rows, and what colours them.

    ``columns`` is None where they are numbered from 1: a file of a few bytes may have 2⁴⁰ of them.
    ``how`` says how a text file was read.
    """

    X: np.ndarray
    columns: list[str] | None
    rows: list
    label: np.ndarray | None
    source: str
    how: str = ""

    def column(self, number: int) -> str:
        return str(number + 1) if self.columns is None else self.columns[number]


def format_of(path: Path) -> str:
    if not path.exists():
        raise UsageError(f"there is no file {path}")
    if path.is_dir():
        raise UsageError(f"{path} is a folder, not a file")
    suffix = path.suffix.lower().lstrip(".")
    suffix = {"txt": "csv", "tab": "tsv", "pq": "parquet"}.get(suffix, suffix)
    if suffix not in FORMATS:
        raise UsageError(
            f"{path}: unknown format {path.suffix!r}; FILE must be one of {', '.join(FORMATS)}"
        )
    return suffix


def read_table(path: Path, options, least: int = FEWEST) -> Table:
    """Numbers without missing values, or a complaint that names the column and the way out."""
    kind = format_of(path)
    if options.array and kind != "npz":
        raise UsageError(f"--array names an array of an npz file; {path} is {kind}")
    if options.header is not None and kind not in ("csv", "tsv"):
        raise UsageError(f"--header and --no-header are for csv and tsv files; {path} is {kind}")
    if options.index is not None and kind not in ("csv", "tsv", "parquet"):
        raise UsageError(f"--index names a column of csv, tsv or parquet; {path} is {kind}")
    if kind in ("csv", "tsv"):
        read = read_text_table(
            path, options.label, options.drop, header=options.header, index=options.index
        )
        label = None if read.label is None else np.array(read.label, dtype=object)
        table = _table(read.values, read.names, read.row_names, label)
        rows = len(read.values)
        table = table._replace(
            how=f"{rows} row{'' if rows == 1 else 's'}, {columns_of(read.values)}, {read.how}"
        )
    else:
        read_other = {"npy": _npy, "npz": _npz, "parquet": _parquet, "h5ad": _h5ad}[kind]
        table = read_other(path, options)
    return _complete(path, table, options, least)


def columns_of(X) -> str:
    return f"{X.shape[1]} column{'' if X.shape[1] == 1 else 's'}"


def _table(X, names, rows, label, source="") -> Table:
    rows = list(range(X.shape[0])) if rows is None else list(rows)
    names = None if names is None else list(names)
    return Table(X, names, rows, label, source or columns_of(X))


def _complete(path, table: Table, options, least: int) -> Table:
    X = table.X
    values = np.asarray(X.data if scipy.sparse.issparse(X) else X)
    if X.shape[1] == 0:
        raise UsageError(f"{path}: no column is left to embed")
    if np.isinf(values).any():
        raise UsageError(f"{path} has infinite values; replace them by numbers")
    if values.dtype.kind != "b" and np.nanmax(np.abs(values), initial=0) > LARGEST:
        raise UsageError(
            f"{path} has numbers beyond {LARGEST:.0e}, whose distances cannot be held; divide them"
        )
    if np.isnan(values).any():
        table = _without_missing(path, table, options)
        X = table.X
    if X.shape[0] < least:
        what = "an embedding needs" if least == FEWEST else "there must be"
        raise UsageError(f"{path} has {X.shape[0]} rows; {what} at least {least}")
    return table


def _without_missing(path, table: Table, options) -> Table:
    if scipy.sparse.issparse(table.X):
        raise UsageError(f"{path} has missing values (nan); fill them in")
    missing = np.isnan(table.X)
    rows = missing.any(axis=1)
    row, column = np.argwhere(missing)[0]
    if not options.drop_missing:
        raise UsageError(
            f"{path}: column {table.column(column)!r} has a missing value in row "
            f"{table.rows[row]} ({rows.sum()} rows in all have some); fill them in, leave the rows "
            f"out with --drop-missing or the column with --drop {table.column(column)!r}"
            + (" (if line 1 is a header, say --header)" if _first_line(table, row) else "")
        )
    known = np.flatnonzero(~rows)
    label = None if table.label is None else table.label[known]
    how = table.how and f"{table.how}, {rows.sum()} with missing values left out"
    rows_left = [table.rows[k] for k in known]
    return table._replace(X=table.X[known], rows=rows_left, label=label, how=how)


def _first_line(table: Table, row: int) -> bool:
    return row == 0 and "no header" in table.how


def load_npy(path: Path) -> np.ndarray:
    try:
        array = np.load(path, allow_pickle=False)
    except (MemoryError, OSError):
        raise
    except Exception as error:  # a broken file raises nearly anything
        raise UsageError(f"{path} is not an array of numbers: {error}") from None
    if not isinstance(array, np.ndarray):
        raise UsageError(f"{path} is an npz file; give it that ending")
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise UsageError(
            f"{path} must hold a matrix of numbers, got shape {array.shape} of {array.dtype}"
        )
    return array


def _npy(path: Path, options) -> Table:
    return _split(path, load_npy(path), options)


def _split(path: Path, X: np.ndarray, options) -> Table:
    """Columns by their number, counted from 1."""
    names = [str(c) for c in range(1, X.shape[1] + 1)]
    for wanted in [*options.drop, *([] if options.label is None else [options.label])]:
        if wanted not in names:
            raise UsageError(
                f"{path} has no column {wanted!r}; they are numbered 1 to {len(names)}"
            )
    used = [c for c, n in enumerate(names) if n != options.label and n not in options.drop]
    label = None if options.label is None else label_values(X[:, names.index(options.label)])
    return _table(X[:, used], [names[c] for c in used], None, label)


def load_npz(path: Path, wanted: str | None, preferred: str):
    """The matrix of an npz file, by name or because it is the only one; and the other arrays."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
            for name, array in arrays.items():
                if not isinstance(array, np.ndarray):
                    raise ValueError(f"{name} is no array")
    except (MemoryError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # a broken file raises nearly anything
        raise UsageError(f"{path} cannot be read: {error}") from None
    if {"data", "shape", "format"} <= set(arrays):
        return _sparse_npz(path), {}
    matrices = [n for n, a in arrays.items() if a.ndim == 2 and a.dtype.kind in "fiub"]
    if wanted is None and len(matrices) != 1:
        wanted = preferred if preferred in matrices else None
        if wanted is None:
            raise UsageError(
                f"{path}: name the matrix with --array; the file has {listed(arrays) or 'none'}"
            )
    wanted = matrices[0] if wanted is None else wanted
    if wanted not in matrices:
        raise UsageError(f"{path} has no matrix {wanted!r}; it has {listed(arrays)}")
    return arrays[wanted], {name: a for name, a in arrays.items() if name != wanted}


def _checked(matrix, name: str):
    from finsler_ext.construct.input import checked_structure  # its package takes seconds to load

    return checked_structure(matrix, name)


def _sparse_npz(path: Path):
    try:
        stored = _checked(scipy.sparse.load_npz(path), "it")
        if stored.dtype.kind not in "fiub":
            raise ValueError(f"it holds {stored.dtype}, not numbers")
        return scipy.sparse.csr_matrix(stored)
    except (ValueError, TypeError, IndexError, KeyError, NotImplementedError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def npz_label(path: Path, name: str, others: dict, n: int) -> np.ndarray:
    if name not in others or others[name].shape != (n,):
        fitting = [key for key, a in others.items() if a.shape == (n,)]
        raise UsageError(
            f"{path} has no array {name!r} with one entry per row; there is "
            f"{listed(fitting) or 'none'}"
        )
    return label_values(others[name])


def _npz(path: Path, options) -> Table:
    X, others = load_npz(path, options.array, "X")
    if options.drop:
        raise UsageError("--drop needs a file whose columns have names; an npz file has none")
    label = None if options.label is None else npz_label(path, options.label, others, X.shape[0])
    return _table(X, None, None, label)


def _parquet(path: Path, options) -> Table:
    columns, row_names = load_parquet(path)
    named = [name for name in (options.label, options.index) if name is not None]
    for wanted in [*options.drop, *named]:
        if wanted not in columns:
            raise UsageError(f"{path} has no column {wanted!r}; it has {listed(columns)}")
    used = [n for n in columns if n not in named and n not in options.drop]
    if not used:
        raise UsageError(f"{path}: no column is left to embed")
    text = [n for n in used if columns[n].dtype.kind not in "fiub"]
    if text:
        raise UsageError(
            f"{path}: column {text[0]!r} is not numeric ({len(text)} such columns: "
            f"{listed(text)}); colour by it with --label {text[0]!r} or leave it "
            f"out with --drop {text[0]!r}"
        )
    label = None if options.label is None else _parquet_label(path, options.label)
    if options.index is not None:
        row_names = _parquet_label(path, options.index)
    X = np.column_stack([columns[n].astype(float) for n in used])
    return _table(X, used, row_names, label)


def _parquet_label(path: Path, name: str) -> np.ndarray:
    """Whole numbers with gaps as text: numpy would make floats of them."""
    stored = _stored_parquet(path)[name]
    return label_values(stored.to_pylist() if stored.null_count else stored.to_numpy())


def _stored_parquet(path: Path):
    try:
        import pyarrow.parquet
        from pyarrow import ArrowException
    except ModuleNotFoundError:
        raise needs("pyarrow", "parquet", f"reading {path}") from None
    try:
        stored = pyarrow.parquet.read_table(path)
    except (ArrowException, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    twice = {n for n in stored.column_names if stored.column_names.count(n) > 1}
    if twice:
        raise UsageError(f"{path} has several columns {min(twice)!r}; rename one of them")
    return stored


def load_parquet(path: Path):
    """Columns as arrays, and the names of the rows if pandas stored any."""
    stored = _stored_parquet(path)
    columns = {n: stored[n].to_numpy() for n in stored.column_names}
    index = [n for n in columns if n.startswith("__index_level_")]
    row_names = columns[index[0]] if index else None
    return {n: c for n, c in columns.items() if n not in index}, row_names


def read_anndata(path: Path):
    """The AnnData of an h5ad file."""
    try:
        import anndata
    except ModuleNotFoundError:
        raise needs("anndata", "h5ad", f"reading {path}") from None
    try:
        return anndata.read_h5ad(path)
    except Exception as error:  # h5py, zarr and anndata raise many kinds
        raise UsageError(f"{path} cannot be read: {error}") from None


def _h5ad(path: Path, options) -> Table:
    adata = read_anndata(path)
    if options.drop:
        raise UsageError("--drop is for tables; choose genes before writing the h5ad file")
    label = None
    if options.label is not None:
        if options.label not in adata.obs:
            raise UsageError(f"{path} has no obs {options.label!r}; it has {listed(adata.obs)}")
        label = label_values(adata.obs[options.label])
    found = "X_pca" in adata.obsm
    X = adata.obsm["X_pca"] if found else adata.X
    if X is None:
        raise UsageError(f"{path} has neither X_pca nor X")
    name = "X_pca" if found else "X"
    if scipy.sparse.issparse(X):
        try:
            X = scipy.sparse.csr_matrix(_checked(X, f"{path}: {name}"))
        except ValueError as error:
            raise UsageError(str(error)) from None
    X = X if scipy.sparse.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise UsageError(
            f"{path}: {name} must be a matrix of numbers, got shape {X.shape} of {X.dtype}"
        )
    return _table(X, None, adata.obs_names, label, f"{columns_of(X)} of {name}")
