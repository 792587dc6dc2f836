"""Reading points: one row per point, from any of the file formats; and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from finsler_ext.cli.messages import UsageError, listed, needs
from finsler_ext.cli.text import has_header, is_number, numbers_of, read_cells
from finsler_ext.validation import checked_structure

FORMATS = ("csv", "tsv", "npy", "npz", "parquet", "h5ad")
# Rows an embedding needs, and rows of which all pairs fit into memory.
FEWEST, MOST_ROWS = 4, 20_000
# Squares of larger differences overflow in single precision, in which neighbours are searched for.
LARGEST = 1e18
# Rows of a text file that are turned into numbers together; more would only take memory.
CHUNK = 20_000
# Lines that are looked at to tell a header from a row.
LOOKED_AT = 1000
# Columns that a complaint offers to leave out.
MOST_DROPPED = 8
# float64 tells whole numbers up to this from their neighbours.
MOST_EXACT = 2**53


class Table(NamedTuple):
    """Points to embed, what names their rows, and what colours them.

    X : array or sparse matrix, or a `DirectedData`
    columns : their names; None where they have none and are numbered from 1
    rows : their names, or their numbers from 0
    label : one per row, or None
    source : its columns, or its points and distances, in words
    how : how a text file was read, in words
    header : whether a text file has one
    lines : of a text file, where each row is
    unused : columns of the file that a model does not know
    """

    X: Any
    columns: list[str] | None
    rows: list
    label: np.ndarray | None
    source: str
    how: str = ""
    header: bool | None = None
    lines: np.ndarray | None = None
    unused: tuple[str, ...] = ()

    def column(self, number: int) -> str:
        return str(number + 1) if self.columns is None else self.columns[number]

    def place(self, row: int) -> str:
        return f"row {self.rows[row]}" if self.lines is None else f"line {self.lines[row]}"


class Chosen(NamedTuple):
    """Numbers of the columns to embed, of the label, and of what names the rows."""

    used: list[int]
    label: int | None
    row_names: int | None
    unused: tuple[str, ...]


def _choose(
    path, names: list[str], options, known, *, header: bool = True, nameless: bool = False
) -> Chosen:
    """Which columns are what; a first one that is ``nameless`` names the rows, as pandas writes it.

    Without a ``header``, columns are numbered, and the ``known`` ones of a model do not count.
    """
    single = [name for name in (options.label, options.index) if name is not None]
    for name in [*options.drop, *single]:
        if name not in names:
            number = "" if header else " (the file has no header, columns are numbered from 1)"
            raise UsageError(f"{path} has no column {name!r}; it has {listed(names)}{number}")
    for name in single:
        if names.count(name) > 1:
            count = names.count(name)
            raise UsageError(f"{path} has {count} columns {name!r}; rename one of them")
    label, rows = (None if n is None else names.index(n) for n in (options.label, options.index))
    if rows is None and nameless and label != 0:
        rows = 0
    kept = [c for c, n in enumerate(names) if c not in (label, rows) and n not in options.drop]
    used = in_order_of(known, path, names, kept) if known is not None and header else kept
    if not used:
        raise UsageError(f"{path}: no column is left to embed")
    unused = tuple(names[c] for c in sorted(set(kept) - set(used)))
    return Chosen(used, label, rows, unused)


def in_order_of(known: list[str], path, names: list[str], used: list[int]) -> list[int]:
    """Numbers of the columns that a model was fitted to, in its order, by name."""
    given = [names[c] for c in used]
    if given == known:
        return used
    missing = [name for name in known if name not in given]
    if missing:
        raise UsageError(
            f"{path} has no column {missing[0]!r}, which the model was fitted to "
            f"({len(missing)} are missing; the file has {listed(given)})"
        )
    twice = [name for name in known if given.count(name) > 1 or known.count(name) > 1]
    if twice:
        raise UsageError(
            f"{path} and the model have several columns {twice[0]!r}, in different orders; rename "
            "them, so that names can tell which is which"
        )
    return [used[given.index(name)] for name in known]


def format_of(path: Path, options) -> str:
    """The kind of a file, by its ending; a complaint if options are not for files of that kind."""
    if not path.exists():
        raise UsageError(f"there is no file {path}")
    if path.is_dir():
        raise UsageError(f"{path} is a folder, not a file")
    suffix = path.suffix.lower().lstrip(".")
    kind = {"txt": "csv", "tab": "tsv", "pq": "parquet"}.get(suffix, suffix)
    if kind not in FORMATS:
        raise UsageError(
            f"{path}: unknown format {path.suffix!r}; FILE must be one of {', '.join(FORMATS)}"
        )
    if options.array and kind != "npz":
        raise UsageError(f"--array names an array of an npz file; {path} is {kind}")
    if options.header is not None and kind not in ("csv", "tsv"):
        raise UsageError(f"--header and --no-header are for csv and tsv files; {path} is {kind}")
    return kind


def read_table(path: Path, options, least: int = FEWEST, known: list[str] | None = None) -> Table:
    """Numbers without missing values, or a complaint that names the column and the way out.

    ``known`` names the columns of a model: they are taken in its order, others are left out.
    """
    kind = format_of(path, options)
    if options.index is not None and kind not in ("csv", "tsv", "parquet"):
        raise UsageError(f"--index names a column of csv, tsv or parquet; {path} is {kind}")
    readers = {"csv": _text, "tsv": _text, "npy": _npy, "npz": _npz, "parquet": _parquet}
    table = readers.get(kind, _h5ad)(path, options, known)
    return _complete(path, table, options.drop_missing, least)


def columns_of(X) -> str:
    return f"{X.shape[1]} column{'' if X.shape[1] == 1 else 's'}"


def _table(X, names, rows, label, source="", **more) -> Table:
    rows = list(range(X.shape[0])) if rows is None else list(rows)
    return Table(X, names, rows, label, source or columns_of(X), **more)


def _complete(path, table: Table, drop_missing: bool, least: int) -> Table:
    X = table.X
    _check_columns(path, X)
    values = np.asarray(X.data if scipy.sparse.issparse(X) else X)
    if not scipy.sparse.issparse(X) and X.dtype.kind in "iu" and X.size:
        for number, column in enumerate(X.T):
            _check_exact(path, table.column(number), (column.min(), column.max()))
    if np.isinf(values).any():
        raise UsageError(f"{path} has infinite values; replace them by numbers")
    if values.dtype.kind != "b" and np.nanmax(np.abs(values), initial=0) > LARGEST:
        raise UsageError(
            f"{path} has numbers beyond {LARGEST:.0e}, whose distances cannot be held; divide them"
        )
    if np.isnan(values).any():
        table = _without_missing(path, table, drop_missing)
    n = table.X.shape[0]
    if n < least:
        what = "an embedding needs" if least == FEWEST else "there must be"
        raise UsageError(f"{path} has {n} rows; {what} at least {least}")
    return table


def _without_missing(path, table: Table, drop_missing: bool) -> Table:
    if scipy.sparse.issparse(table.X):
        raise UsageError(f"{path} has missing values (nan); fill them in")
    missing = np.isnan(table.X)
    rows = missing.any(axis=1)
    row, column = np.argwhere(missing)[0]
    if not drop_missing:
        perhaps = not row and table.header is False
        raise UsageError(
            f"{path}: column {table.column(column)!r} has a missing value in {table.place(row)} "
            f"(rows with missing values: {rows.sum()}); fill them in, leave the rows out with "
            f"--drop-missing or the column with --drop {table.column(column)!r}"
            + (" (if line 1 is a header, say --header)" if perhaps else "")
        )
    kept = np.flatnonzero(~rows)
    return table._replace(
        X=table.X[kept],
        rows=[table.rows[k] for k in kept],
        label=None if table.label is None else table.label[kept],
        lines=None if table.lines is None else table.lines[kept],
        how=table.how and f"{table.how}, {rows.sum()} with missing values left out",
    )


# ------------------------------------------------------------------ text


def _text(path: Path, options, known: list[str] | None) -> Table:
    """A csv or tsv file. A first column without a name names the rows, as pandas writes it."""
    lines = read_cells(path)
    start = list(islice(lines, LOOKED_AT))
    if not start:
        raise UsageError(f"{path} is empty")
    first, header = start[0][1], options.header
    if header is None:
        header = has_header(path, first, [cells for _, cells in start[1:]])
    names = [(header and name) or str(c) for c, name in enumerate(first, 1)]
    nameless = header and first[0] == "" and len(first) > 1
    chosen = _choose(path, names, options, known, header=header, nameless=nameless)
    used, label, row_names, unused = chosen
    texts: dict[Any, list[str]] = {c: [] for c in (label, row_names) if c is not None}
    blocks, places = [], []
    rows = chain(start[1:] if header else start, lines)
    while chunk := list(islice(rows, CHUNK)):
        blocks.append(_numbers(path, names, used, chunk))
        places += [line for line, _ in chunk]
        for c, text in texts.items():
            text += [cells[c] for _, cells in chunk]
    if not blocks:
        raise UsageError(f"{path} has a header but no rows")
    X = np.concatenate(blocks)
    how = f"{len(X)} row{'' if len(X) == 1 else 's'}, {columns_of(X)}, {'no ' * (not header)}header"
    how += "" if row_names is None else f", rows named by column {names[row_names]}"
    return _table(
        X,
        [names[c] for c in used] if header else None,
        texts.get(row_names),
        None if label is None else np.array(texts[label], dtype=object),
        how=how,
        header=header,
        lines=np.array(places),
        unused=unused,
    )


def _numbers(path, names: list[str], used: list[int], chunk) -> np.ndarray:
    block = np.empty((len(chunk), len(used)))
    bad: list[tuple[str, str, int]] = []
    for place, c in enumerate(used):
        cells = [cells[c] for _, cells in chunk]
        wrong = numbers_of(cells, block[:, place])
        if wrong is not None:
            bad.append((names[c], cells[wrong], chunk[wrong][0]))
        elif np.nanmax(np.abs(block[:, place]), initial=0) > MOST_EXACT:
            whole = [int(cell) for cell in cells if cell.lstrip("+-").isdecimal()]
            _check_exact(path, names[c], whole)
    if bad:
        name, cell, line = bad[0]
        raise UsageError(
            f"{path}: column {name!r} is not numeric ({cell!r} in line {line})"
            + _ways_out([name for name, _, _ in bad])
        )
    return block


def _check_exact(path, name: str, whole: Sequence[int]) -> None:
    """Refuse whole numbers that floats would not tell from their neighbours."""
    largest = max((abs(int(value)) for value in whole), default=0)
    if largest > MOST_EXACT:
        raise UsageError(
            f"{path}: column {name!r} has whole numbers up to {largest}, beyond 2⁵³, which "
            "floats cannot hold exactly; subtract a constant from it, name the rows by it "
            f"with --index {name!r}, or leave it out with --drop {name!r}"
        )


def _ways_out(names: list[str]) -> str:
    """What to do with columns of text."""
    first, *others = map(repr, names)
    more, drop = "", f"it out with --drop {first}"
    if others:
        more = f" (nor {'is' if len(others) == 1 else 'are'} {listed(others)})"
        drop = "them out with " + " ".join(f"--drop {n}" for n in [first, *others][:MOST_DROPPED])
    return (
        f"{more}; colour by it with --label {first}, name the rows by it with --index {first}, or "
        f"leave {drop}"
    )


# ------------------------------------------------------------------ arrays


def load_npy(path: Path) -> np.ndarray:
    try:
        # mapped first: a header may promise more than the file holds
        array = np.load(path, allow_pickle=False, mmap_mode="r")
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
    _check_columns(path, array)
    return np.array(array)


def _check_columns(path, X) -> None:
    """A matrix without columns may have a row for every number; it takes long to name them."""
    if X.shape[1] == 0:
        raise UsageError(f"{path}: no column is left to embed")


def _npy(path: Path, options, known: list[str] | None) -> Table:
    """Columns by their number, counted from 1."""
    X = load_npy(path)
    named = [*options.drop, *([] if options.label is None else [options.label])]
    for name in named:
        if not name.isdecimal() or not 1 <= int(name) <= X.shape[1]:
            raise UsageError(f"{path} has no column {name!r}; they are numbered 1 to {X.shape[1]}")
    out = [int(name) - 1 for name in named]
    label = None if options.label is None else label_values(X[:, out[-1]])
    return _table(np.delete(X, out, axis=1) if out else X, None, None, label)


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
    if wanted is None:
        wanted = matrices[0] if len(matrices) == 1 else preferred
        if wanted not in matrices:
            raise UsageError(
                f"{path}: name the matrix with --array; the file has {listed(arrays) or 'none'}"
            )
    if wanted not in matrices:
        raise UsageError(f"{path} has no matrix {wanted!r}; it has {listed(arrays)}")
    _check_columns(path, arrays[wanted])
    return arrays[wanted], {name: a for name, a in arrays.items() if name != wanted}


def _sparse_npz(path: Path):
    try:
        stored = checked_structure(scipy.sparse.load_npz(path), "it")
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


def _npz(path: Path, options, known: list[str] | None) -> Table:
    X, others = load_npz(path, options.array, "X")
    if options.drop:
        raise UsageError("--drop needs a file whose columns have names; an npz file has none")
    label = None if options.label is None else npz_label(path, options.label, others, X.shape[0])
    return _table(X, None, None, label)


# ------------------------------------------------------------------ parquet and h5ad


def _parquet(path: Path, options, known: list[str] | None) -> Table:
    columns, row_names, stored = load_parquet(path)
    chosen = _choose(path, list(columns), options, known)
    taken = [list(columns)[c] for c in chosen.used]
    text = [name for name in taken if columns[name].dtype.kind not in "fiub"]
    if text:
        raise UsageError(f"{path}: column {text[0]!r} is not numeric{_ways_out(text)}")
    label = None if options.label is None else _stored_label(stored[options.label])
    if options.index is not None:
        row_names = _stored_label(stored[options.index])
    for name in taken:
        if columns[name].dtype.kind in "iu" and len(columns[name]):
            _check_exact(path, name, (columns[name].min(), columns[name].max()))
    X = np.column_stack([columns[name].astype(float) for name in taken])
    return _table(X, taken, row_names, label, unused=chosen.unused)


def _stored_label(column) -> np.ndarray:
    """Whole numbers with gaps as text: numpy would make floats of them."""
    return label_values(column.to_pylist() if column.null_count else column.to_numpy())


def load_parquet(path: Path):
    """Columns as arrays, the names of the rows if pandas stored any, and pyarrow's table."""
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
    columns = {n: stored[n].to_numpy() for n in stored.column_names}
    index = [n for n in columns if n.startswith("__index_level_")]
    row_names = columns[index[0]] if index else None
    return {n: c for n, c in columns.items() if n not in index}, row_names, stored


def open_h5ad(path: Path):
    """The AnnData of an h5ad file."""
    try:
        import anndata
    except ModuleNotFoundError:
        raise needs("anndata", "h5ad", f"reading {path}") from None
    try:
        return anndata.read_h5ad(path)
    except Exception as error:  # h5py, zarr and anndata raise many kinds
        raise UsageError(f"{path} cannot be read: {error}") from None


def _h5ad(path: Path, options, known: list[str] | None) -> Table:
    adata = open_h5ad(path)
    if options.drop:
        raise UsageError("--drop is for tables; choose genes before writing the h5ad file")
    label = None
    if options.label is not None:
        if options.label not in adata.obs:
            raise UsageError(f"{path} has no obs {options.label!r}; it has {listed(adata.obs)}")
        label = label_values(adata.obs[options.label])
    name = "X_pca" if "X_pca" in adata.obsm else "X"
    X = adata.obsm["X_pca"] if name == "X_pca" else adata.X
    if X is None:
        raise UsageError(f"{path} has neither X_pca nor X")
    if scipy.sparse.issparse(X):
        X = scipy.sparse.csr_matrix(checked_structure(X, f"{path}: {name}"))
    else:
        X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise UsageError(
            f"{path}: {name} must be a matrix of numbers, got shape {X.shape} of {X.dtype}"
        )
    genes = [str(gene) for gene in adata.var_names] if name == "X" else None
    if genes is not None and known is not None:
        used = in_order_of(known, path, genes, list(range(len(genes))))
        X, genes = X[:, used], [genes[c] for c in used]
    return _table(X, genes, adata.obs_names, label, f"{columns_of(X)} of {name}")


# ------------------------------------------------------------------ labels


def label_values(cells) -> np.ndarray:
    """Numbers of an array of numbers, and otherwise text as it is.

    Whole numbers that an array holds as floats become integers, as far as floats are exact.
    """
    array = np.asarray(cells)
    if array.dtype.kind in "iub":
        return array
    if array.dtype.kind == "f":
        exact = np.isfinite(array).all() and (np.abs(array) <= MOST_EXACT).all()
        return array.astype(np.int64) if exact and (array == np.round(array)).all() else array
    texts = [_label_text(cell) for cell in (cells if array.dtype.kind in "OT" else array.tolist())]
    return np.array(texts, dtype=object)


def _label_text(cell) -> str:
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return ""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    return "" if type(cell).__name__ in ("NAType", "NaTType") else str(cell)


def colors_of(label: np.ndarray) -> np.ndarray:
    """Numbers if every label is written as one, names otherwise.

    007 and a number of 19 digits are names: as numbers they would not be told from 7 and from
    their neighbours.
    """
    if label.dtype.kind != "O":
        return label
    if all(_is_amount(text) for text in label):
        return label_values(label.astype(float))
    return np.array([text or "(none)" for text in label])


def _is_amount(text: str) -> bool:
    digits = text.lstrip("+-")
    padded = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    return is_number(text) and not padded and abs(float(text)) <= MOST_EXACT
