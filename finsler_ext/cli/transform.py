"""``finsler-ext transform MODEL FILE``: places for new rows in a model that was saved."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse

from finsler_ext._progress import stage
from finsler_ext._warn import without_foreign
from finsler_ext.cli.interrupts import Interrupts
from finsler_ext.cli.output import check_output, write_output
from finsler_ext.cli.tables import Table, read_table
from finsler_ext.cli.usage import UsageError, listed, one_line, shown_path

__all__ = ["in_order_of", "prepared", "transform"]

# Rows placed at a time; between two batches the bar moves and Ctrl-C is heard.
BATCH = 2000
PATIENCE = 2.0
BAR = (
    "{desc}: {percentage:3.0f}% |{bar}| {n_fmt}/{total_fmt} rows, {elapsed} elapsed, "
    "{remaining} left"
)


def transform(options, interrupts: Interrupts) -> int:
    source = Path(options.file)
    output = Path(f"{source.stem}_finsler.csv" if options.output is None else options.output)
    check_output(output, source)
    if not Path(options.model).is_file():
        raise UsageError(f"there is no file {options.model}")
    stage(f"reading {shown_path(source)}")
    table = read_table(source, options, least=1)
    incoming = None
    if options.incoming is not None:
        incoming = read_table(Path(options.incoming), options, least=1)
    from finsler_ext.io import read

    stage(f"reading {shown_path(options.model)}")
    model, about = read(options.model)
    _use_threads(model, options.threads)
    X = prepared(model, about, table, source)
    ways = {}
    if incoming is not None:
        ways["incoming"] = prepared(model, about, incoming, Path(options.incoming))
    stage("placing rows")
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        with without_foreign("feature names"):
            placed = _in_batches(model, X, ways, interrupts)
    seconds = time.perf_counter() - started
    write_output(output, placed, table.rows, table.label, options.label)
    interrupts.written.append(shown_path(output))
    for line in dict.fromkeys(one_line(note.message) for note in caught):
        print(f"finsler-ext: note: {line}", file=sys.stderr)
    how = f"Read {shown_path(source)}: {table.how}. " if table.how else ""
    print(
        f"{how}Placed {len(placed)} rows among the {len(model.embedding_)} points of "
        f"{shown_path(options.model)} ({type(model).__name__}, omega_norm={model.omega_norm_:.3g}) "
        f"in {seconds:.1f} s; written to {shown_path(output)}."
    )
    return 0


def _use_threads(model, n_jobs: int) -> None:
    from finsler_ext._threads import resolve_n_jobs

    model.set_params(n_jobs=n_jobs)
    if hasattr(model, "_n_threads"):
        model._n_threads = resolve_n_jobs(n_jobs)


def prepared(model, about: dict, table: Table, source: Path):
    """The rows of a table as the model expects them: columns in its order, in its units."""
    X = in_order_of(about.get("columns"), table, source)
    if X.shape[1] != model.n_features_in_:
        raise UsageError(
            f"{source} has {X.shape[1]} columns of numbers, the model was fitted to "
            f"{model.n_features_in_}"
        )
    if "centre" not in about:
        return X
    if scipy.sparse.issparse(X):
        raise UsageError(f"{source} is sparse; the model was fitted with --standardize")
    return (X - about["centre"]) / about["spread"]


def in_order_of(columns, table: Table, source: Path):
    """The columns of a table by name, in the order the model has them."""
    if columns is None or table.columns is None or _numbered(columns) or _numbered(table.columns):
        return table.X
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise UsageError(
            f"{source} has no column {missing[0]!r}, which the model was fitted to "
            f"({len(missing)} are missing; the file has {listed(table.columns)})"
        )
    return table.X[:, [table.columns.index(name) for name in columns]]


def _numbered(names: list[str]) -> bool:
    """Columns of files without names are counted from 1."""
    return names == [str(c) for c in range(1, len(names) + 1)]


def _in_batches(model, X, ways: dict, interrupts: Interrupts) -> np.ndarray:
    from tqdm.auto import tqdm

    n = X.shape[0]
    settings = {"bar_format": BAR, "delay": PATIENCE, "leave": False, "disable": None}
    blocks = []
    with tqdm(total=n, desc="placing", **settings) as bar:
        for start in range(0, n, BATCH):
            rows = slice(start, start + BATCH)
            blocks.append(np.asarray(model.transform(X[rows], **_rows(ways, rows))))
            interrupts.check()
            bar.update(min(BATCH, n - start))
    return np.concatenate(blocks)


def _rows(ways: dict, rows: slice) -> dict:
    return {name: values[rows] for name, values in ways.items()}
