"""Files larger than memory, from parquet to parquet: time, and the peak memory of each process.

    python -m benchmarks.large --rows 1000000 --columns 50 --workers 2 [--sample N] [--limit MB]

Writes a parquet file of Gaussian clusters (once; named by its shape), runs ``finsler-ext embed
--dask`` on it, and watches the processes. ``--limit`` is a limit of the system (RLIMIT_DATA) on the
data that each process may hold. The places are compared with those of ``model.transform`` in memory
on some of the rows.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

GROUP_ROWS, N_CLUSTERS, CHECKED = 50_000, 20, 500


def data_file(folder: Path, rows: int, columns: int, group_rows: int) -> Path:
    """Rows in clusters of unequal spread, written group by group."""
    import pyarrow
    import pyarrow.parquet

    path = folder / f"rows_{rows}_{columns}.parquet"
    if path.exists():
        return path
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=3.0, size=(N_CLUSTERS, columns)).astype(np.float32)
    spread = np.exp(rng.normal(scale=0.5, size=N_CLUSTERS)).astype(np.float32)
    names = [f"c{c}" for c in range(columns)]
    writer = None
    for start in range(0, rows, group_rows):
        n = min(group_rows, rows - start)
        kind = rng.integers(N_CLUSTERS, size=n)
        block = rng.standard_normal((n, columns), dtype=np.float32) * spread[kind, None]
        block += centres[kind]
        table = pyarrow.table(dict(zip(names, block.T, strict=True)))
        if writer is None:
            writer = pyarrow.parquet.ParquetWriter(
                path, table.schema, compression="none", use_dictionary=False
            )
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return path


def watched(command: list[str], limit: int | None) -> tuple[int, dict[str, int], str]:
    """Exit code, peak resident bytes by process, and what the command printed."""
    import psutil

    def confine():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=confine
    )
    peak: dict[str, int] = {}
    main = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            for each in [main, *main.children(recursive=True)]:
                name = "command" if each.pid == main.pid else f"worker {each.pid}"
                peak[name] = max(peak.get(name, 0), each.memory_info().rss)
        except psutil.NoSuchProcess:
            pass
        time.sleep(0.2)
    assert process.stdout is not None
    return process.returncode, peak, process.stdout.read()


def check(path: Path, places: Path, model: Path) -> str:
    """Places of rows across the file against transform in memory."""
    import pyarrow.parquet

    from finsler_ext import load

    file = pyarrow.parquet.ParquetFile(path)
    group = file.num_row_groups // 2
    start = sum(file.metadata.row_group(g).num_rows for g in range(group))
    rows = file.read_row_group(group).slice(0, CHECKED).to_pandas().to_numpy()
    table = pyarrow.parquet.read_table(places)
    written = table.slice(start, CHECKED).to_pandas()[["x", "y", "height"]].to_numpy()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.asarray(load(model).transform(rows))
    equal = int((written == expected).all(axis=1).sum())
    return f"{table.num_rows} places; {equal} of {len(rows)} rows have the bits of transform"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--group-rows", type=int, default=GROUP_ROWS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sample", default=None)
    parser.add_argument("--memory", default=None, help="of each worker, as Dask counts it")
    parser.add_argument("--limit", type=int, default=None, help="of each process, in MB")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    path = data_file(options.folder, options.rows, options.columns, options.group_rows)
    places, model = options.folder / "places.parquet", options.folder / "model.finsler"
    command = [sys.executable, "-m", "finsler_ext", "embed", str(path), "--dask"]
    command += ["--workers", str(options.workers), "-o", str(places), "--save", str(model)]
    for name in ("sample", "memory"):
        if getattr(options, name) is not None:
            command += [f"--{name}", str(getattr(options, name))]
    limit = None if options.limit is None else options.limit * 10**6
    started = time.perf_counter()
    code, peak, said = watched(command, limit)
    seconds = time.perf_counter() - started
    print(f"{path.name}: {os.path.getsize(path) / 1e9:.2f} GB, {options.workers} workers")
    print(said.strip())
    print(f"exit code {code} after {seconds:.0f} s")
    for name, size in sorted(peak.items(), key=lambda item: -item[1]):
        print(f"  {name}: at most {size / 1e9:.2f} GB")
    if code == 0:
        print(check(path, places, model))
    return code


if __name__ == "__main__":
    sys.exit(main())
