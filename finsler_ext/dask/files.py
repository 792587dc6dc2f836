"""Parquet and zarr, in and out. Places are written as they come, by this machine.

An embedding is small beside its data. So workers only read, nothing but this process writes, and
a file takes its place when it is whole.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from finsler_ext._files import replaced
from finsler_ext.dask.cluster import Blocks, Runner
from finsler_ext.dask.estimators import output_dtype, single_threaded, transform_block

INPUTS = ("parquet", "zarr")
OUTPUTS = ("parquet", "zarr", "npy")
# Rows of a chunk of a zarr array that is written.
ZARR_ROWS = 2**16


def ending_of(path, allowed: tuple[str, ...]) -> str:
    suffix = Path(path).suffix.lower().lstrip(".")
    kind = "parquet" if suffix == "pq" else suffix
    if kind not in allowed:
        raise ValueError(f"{path}: unknown ending; with Dask use one of {', '.join(allowed)}.")
    return kind


def open_collection(path) -> Any:
    """The Dask data frame of a parquet file or folder, or the Dask array of a zarr folder."""
    kind = ending_of(path, INPUTS)
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no file {path}")
    path = os.path.abspath(path)  # workers may be elsewhere on this machine
    if kind == "parquet":
        import dask.dataframe

        return dask.dataframe.read_parquet(path, split_row_groups=True)
    import dask.array

    return dask.array.from_zarr(path)


def row_counts(path) -> list[int] | None:
    """Rows of the row groups of a parquet file, from what it says of itself; None for folders."""
    if not os.path.isfile(path):
        return None
    import pyarrow.parquet

    about = pyarrow.parquet.read_metadata(path)
    return [about.row_group(g).num_rows for g in range(about.num_row_groups)]


def write_embedding(
    model,
    blocks: Blocks,
    path,
    runner: Runner,
    *,
    names=None,
    label=None,
    label_name=None,
    known=False,
    progress=None,
) -> int:
    """Write the places of all rows to a file, whole or not at all; the number of rows.

    ``names`` are those of the columns, ``label`` is a column of a data frame that is written beside
    them, as ``label_name``. ``known`` says that the model was fitted to all of these rows, so that
    ``embedding_`` holds their places. ``progress`` is called with the number of rows of each block.
    """
    kind = ending_of(path, OUTPUTS)
    names = list(model.get_feature_names_out()) if names is None else list(names)
    shape = (blocks.n_rows, len(names))
    found = _known(model, blocks, label, runner) if known else _found(model, blocks, label, runner)
    at = 0
    with _WRITERS[kind](path, shape, output_dtype(model), names, label_name or label) as write:
        for places, labels in found:
            if len(places):
                write(at, places, labels)
            at += len(places)
            if progress is not None:
                progress(len(places))
    return at


def _found(model, blocks: Blocks, label, runner: Runner) -> Iterator[tuple]:
    """Places and labels, block by block."""
    import dask

    held = runner.held(single_threaded(model))
    task = dask.delayed(_placed)
    return runner.in_order(task(b, held, blocks.columns, label) for b in blocks.tasks)


def _known(model, blocks: Blocks, label, runner: Runner) -> Iterator[tuple]:
    """The same of the rows a model was fitted to; only their labels have to be read."""
    import dask

    embedding, at = np.asarray(model._returned(model.embedding_)), blocks.starts
    if label is None:
        labels: Any = iter([None] * len(blocks.tasks))
    else:
        labels = runner.in_order(dask.delayed(_labels)(b, label) for b in blocks.tasks)
    for number, values in enumerate(labels):
        yield embedding[at[number] : at[number + 1]], values


def _placed(block, model, columns, label):
    return transform_block(block, model, columns), None if label is None else _labels(block, label)


def _labels(block, label):
    return block[label].to_numpy()


@contextmanager
def _parquet(path, shape, dtype, names, label) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    writer = None
    with replaced(path) as file:

        def write(at, places, labels):
            nonlocal writer
            columns = {"row": np.arange(at, at + len(places))}
            if labels is not None:
                columns[label] = labels
            columns |= dict(zip(names, places.T, strict=True))
            table = pyarrow.table({n: pyarrow.array(c) for n, c in columns.items()})
            if writer is None:
                writer = pyarrow.parquet.ParquetWriter(file, table.schema)
            writer.write_table(table.cast(writer.schema))

        try:
            yield write
        finally:
            if writer is not None:
                writer.close()


@contextmanager
def _npy(path, shape, dtype, names, label) -> Iterator[Any]:
    with replaced(path) as file:
        array = np.lib.format.open_memmap(file, mode="w+", dtype=dtype, shape=shape)
        yield _into(array)
        array.flush()


@contextmanager
def _zarr(path, shape, dtype, names, label) -> Iterator[Any]:
    import zarr

    with replaced_folder(path) as folder:
        chunks = (min(ZARR_ROWS, max(shape[0], 1)), shape[1])
        yield _into(zarr.open(str(folder), mode="w", shape=shape, chunks=chunks, dtype=dtype))


def _into(array):
    def write(at, places, labels):
        array[at : at + len(places)] = places

    return write


@contextmanager
def replaced_folder(path) -> Iterator[Path]:
    """A folder to write to, which takes the place of ``path`` after the block."""
    target = Path(os.path.realpath(path))
    token = secrets.token_hex(8)
    beside = target.with_name(f".finsler_{token}{target.suffix}")
    before = target.with_name(f".finsler_old_{token}{target.suffix}")
    beside.mkdir()
    try:
        yield beside
        if target.exists():
            os.replace(target, before)
        os.replace(beside, target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        if before.exists() and not target.exists():  # interrupted between the two steps
            os.replace(before, target)
        shutil.rmtree(before, ignore_errors=True)


_WRITERS = {"parquet": _parquet, "npy": _npy, "zarr": _zarr}
