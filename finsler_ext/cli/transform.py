"""``finsler-ext transform MODEL FILE``: places for new rows in a model that was saved."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import scipy.sparse

from finsler_ext._messages import stage, without_foreign
from finsler_ext.cli.messages import (
    Interrupts,
    UsageError,
    joined,
    listed,
    note,
    rows_bar,
    shown,
    warnings_as_notes,
)
from finsler_ext.cli.output import (
    check_output,
    check_plots,
    output_path,
    write_output,
    write_plot,
)
from finsler_ext.cli.tables import Table, read_table

# Rows placed at a time; between two batches the bar moves and Ctrl-C is heard.
BATCH = 2000


def transform(options, interrupts: Interrupts) -> int:
    source, output = Path(options.file), output_path(options)
    inputs = [source, Path(options.model)]
    inputs += [] if options.incoming is None else [Path(options.incoming)]
    check_output(output, *inputs)
    for file in inputs:
        if not file.exists():
            raise UsageError(f"there is no file {file}")
    from finsler_ext.io import read

    stage(f"reading {shown(options.model)}")
    model, about = read(options.model)
    if hasattr(model, "models_"):
        raise ValueError(
            "the file holds a series of maps: save one of its models_ for this command."
        )
    known = _column_names(model, about)
    stage(f"reading {shown(source)}")
    table = read_table(source, options, least=1, known=known)
    X, ways = _prepared(model, about, known, table, source), {}
    if options.incoming is not None:
        incoming = read_table(Path(options.incoming), options, least=1, known=known)
        ways["incoming"] = _prepared(model, about, known, incoming, Path(options.incoming))
        if incoming.rows != table.rows:
            raise UsageError(f"{options.incoming} and {source} must have the same rows")
    plots = check_plots(options.plot, len(model.embedding_) + X.shape[0], *inputs, output)
    model.set_params(n_jobs=options.threads, output="all")
    stage("placing rows")
    started = time.perf_counter()
    with warnings_as_notes():
        with without_foreign("feature names"):
            placed = _in_batches(model, X, ways, interrupts)
        seconds = time.perf_counter() - started
        write_output(output, placed, table.rows, table.label, options.label)
        interrupts.written.append(shown(output))
        for plot in plots:
            _draw(plot, model, placed, table, options)
            interrupts.written.append(shown(plot))
    how = f"Read {shown(source)}: {shown(table.how)}. " if table.how else ""
    print(
        f"{how}Placed {len(placed)} rows among the {len(model.embedding_)} points of "
        f"{shown(options.model)} ({type(model).__name__}, omega_norm={model.omega_norm_:.3g}) "
        f"in {seconds:.1f} s; written to {joined(interrupts.written)}."
    )
    return 0


def _column_names(model, about: dict) -> list[str] | None:
    """What the columns of the training data were called; None if they had no names."""
    own = (getattr(model, name, None) for name in ("feature_names_in_", "node_names_"))
    names = next((given for given in (about.get("columns"), *own) if given is not None), None)
    return None if names is None else [str(name) for name in names]


def _prepared(model, about: dict, known: list[str] | None, table: Table, source: Path):
    """The rows of a table as the model expects them, in its units."""
    X = table.X
    if X.shape[1] != model.n_features_in_:
        raise UsageError(
            f"{source} has {X.shape[1]} columns of numbers, the model was fitted to "
            f"{model.n_features_in_}"
        )
    if table.unused:
        note(f"{source}: left out what the model does not know, {listed(table.unused)}")
    if (known is None) != (table.columns is None):
        nameless = "the model" if known is None else "the file"
        note(f"{source}: columns are matched by their order, because {nameless} has no names")
    if "centre" not in about:
        return X
    if scipy.sparse.issparse(X):
        raise UsageError(f"{source} is sparse; the model was fitted with --standardize")
    return (X - about["centre"]) / about["spread"]


def _in_batches(model, X, ways: dict, interrupts: Interrupts) -> np.ndarray:
    n, blocks = X.shape[0], []
    with rows_bar(n) as bar:
        for start in range(0, n, BATCH):
            rows = slice(start, start + BATCH)
            both = {name: values[rows] for name, values in ways.items()}
            blocks.append(np.asarray(model.transform(X[rows], **both)))
            interrupts.check()
            bar.update(min(BATCH, n - start))
    return np.concatenate(blocks)


def _draw(plot: Path, model, placed: np.ndarray, table: Table, options) -> None:
    """The training points, and the new rows in other colours."""
    stage(f"drawing {shown(plot)}")
    old, new = np.asarray(model.embedding_), placed
    label = np.full(len(new), "new", dtype=object) if table.label is None else table.label
    kinds = np.concatenate([np.full(len(old), "training", dtype=object), label.astype(str)])
    rows = [*(f"training {row}" for row in range(len(old))), *map(str, table.rows)]
    title = f"{len(new)} new rows among {len(old)}"
    write_plot(plot, np.vstack([old, new]), kinds, options.label or "rows", rows, title)
