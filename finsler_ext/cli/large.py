"""``--dask``: embed and transform files that are larger than memory, by blocks on a cluster."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import finsler_ext
from finsler_ext.cli.embed import parameters
from finsler_ext.cli.messages import (
    NAMES,
    Interrupts,
    UsageError,
    joined,
    listed,
    needs,
    one_line,
    rows_bar,
    shown,
    verdict,
    warnings_as_notes,
)
from finsler_ext.cli.output import (
    LARGE_TABLES,
    MODELS,
    check_file,
    coordinate_names,
    label_column,
    output_path,
)

# Options that need the whole file in memory.
WHOLE = (
    "directed", "standardize", "drop_missing", "header", "index", "array", "plot", "pin", "incoming"
)  # fmt: skip
# What Dask says of every connection that breaks is shown only then.
DEBUG = bool(os.environ.get("FINSLER_DEBUG"))


def embed_large(options, interrupts: Interrupts) -> int:
    source, output = _checked_files(options)
    if options.save is not None:
        check_file(Path(options.save), "--save", MODELS, source, output)
    name = NAMES[options.method or "umap"]
    model = getattr(finsler_ext, name)(**parameters(options))
    with warnings_as_notes(), _cluster(options) as runner:
        from finsler_ext.dask.estimators import fit_blocks

        blocks, label = _blocks(source, options, runner)
        started = time.perf_counter()
        sample = {None: "auto", "all": None}.get(options.sample, options.sample)
        fit_blocks(model, blocks, runner, sample)
        fitted = time.perf_counter() - started
        interrupts.check()
        n = _write(model, blocks, output, runner, label, known=model.sample_indices_ is None)
        interrupts.written.append(shown(output))
        if options.save is not None:
            from finsler_ext.io import save

            save(model, options.save, about={"columns": blocks.columns})
            interrupts.written.append(shown(options.save))
    rows = len(model.embedding_)
    of = f"{rows} of the {n} rows" if rows < n else f"{n} rows"
    print(
        f"Fitted {name} to {of} of {shown(source)} in "
        f"{fitted:.1f} s at omega_norm={model.omega_norm_:.3g}; {n} places written to "
        f"{joined(interrupts.written)} after {time.perf_counter() - started:.1f} s. "
        f"{verdict(model)}"
    )
    return 0


def transform_large(options, interrupts: Interrupts) -> int:
    source, output = _checked_files(options)
    if not Path(options.model).is_file():
        raise UsageError(f"there is no file {options.model}")
    from finsler_ext.io import read

    model, about = read(options.model)
    if "centre" in about:
        raise UsageError("the model was fitted with --standardize, which --dask does not know")
    with warnings_as_notes(), _cluster(options) as runner:
        blocks, label = _blocks(source, options, runner, about.get("columns"))
        started = time.perf_counter()
        n = _write(model, blocks, output, runner, label, known=False)
        interrupts.written.append(shown(output))
    print(
        f"Placed {n} rows among the {len(model.embedding_)} points of {shown(options.model)} "
        f"in {time.perf_counter() - started:.1f} s; written to {shown(output)}."
    )
    return 0


def _checked_files(options) -> tuple[Path, Path]:
    source, output = Path(options.file), output_path(options, "parquet")
    inputs = [source, Path(options.model)] if "model" in options else [source]
    check_file(output, "--output", LARGE_TABLES, *inputs)
    for name in WHOLE:
        if getattr(options, name, None):
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{option} needs the whole file in memory; leave out --dask, or it")
    return source, output


@contextmanager
def _cluster(options) -> Iterator[Any]:
    from finsler_ext.dask.cluster import ClusterError, Runner, local_cluster

    here = {"n_workers": options.workers, "memory": options.memory, "quiet": not DEBUG}
    try:
        with local_cluster(options.scheduler, **here) as client:
            yield Runner(client)
    except ModuleNotFoundError as error:
        if error.name in ("dask", "distributed", "zarr", "pyarrow"):
            raise needs(error.name, "dask", "--dask") from None
        raise
    except ClusterError as error:
        raise UsageError(one_line(error)) from None


def _blocks(source: Path, options, runner, columns=None):
    from finsler_ext.dask.cluster import blocks_of
    from finsler_ext.dask.files import open_collection, row_counts

    X = open_collection(source)
    if not hasattr(X, "columns"):
        if options.label or options.drop:
            raise UsageError(f"--label and --drop name columns of parquet; {source} is zarr")
        return blocks_of(X, runner), None
    for wanted in [*options.drop, *filter(None, [options.label]), *(columns or [])]:
        if wanted not in X.columns:
            raise UsageError(f"{source} has no column {wanted!r}; it has {listed(X.columns)}")
    if columns is None:
        columns = [c for c in X.columns if c != options.label and c not in options.drop]
    if not columns:
        raise UsageError(f"{source}: no column is left to embed")
    return blocks_of(X, runner, columns, row_counts(source)), options.label


def _write(model, blocks, output: Path, runner, label, known: bool) -> int:
    from finsler_ext.dask.files import write_embedding

    names = coordinate_names(np.asarray(model.embedding_).shape[1])
    words = {
        "names": names,
        "label": label,
        "label_name": None if label is None else label_column(label, names),
    }
    with rows_bar(blocks.n_rows) as bar:
        progress = bar.update
        return write_embedding(
            model, blocks, output, runner, known=known, progress=progress, **words
        )
