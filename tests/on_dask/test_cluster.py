"""A real cluster of processes: the same bits for 1, 2, 4 workers; workers and clusters that die."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
pytest.importorskip("dask.dataframe")
pytest.importorskip("zarr")
pytest.importorskip("pyarrow")

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP  # noqa: E402
from finsler_ext.cli import main  # noqa: E402
from finsler_ext.dask import ClusterError, fit, transform  # noqa: E402
from finsler_ext.dask.cluster import (  # noqa: E402
    Runner,
    blocks_of,
    local_cluster,
)
from finsler_ext.dask.files import open_collection, write_embedding  # noqa: E402
from finsler_ext.dask.neighbors import nearest_by_parts  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:With omega_norm:UserWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(scale=3, size=(5, 6))[RNG.integers(5, size=700)] + RNG.normal(size=(700, 6))
NEW = X[:200] + 0.05
UMAP = FinslerUMAP(n_epochs=15, random_state=0)
TSNE = FinslerTSNE(
    n_iter=10, early_exaggeration_iter=10, perplexity=8, random_state=0, neighbors="exact"
)
MDS = FinslerMDS(max_iter=5, random_state=0)

# A cluster of its own, to be killed as a whole: scheduler, nannies and workers.
CLUSTER = """
import time
from distributed import LocalCluster
if __name__ == "__main__":
    options = {{"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}}
    with LocalCluster(n_workers={n}, **options) as cluster:
        print(cluster.scheduler_address, flush=True)
        time.sleep(600)
"""


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "rows.parquet"
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcdef"))
    frame["kind"] = np.arange(len(X)) % 3
    frame.to_parquet(path, row_group_size=50, index=False)
    return path


@pytest.fixture
def foreign(tmp_path):
    """A cluster in another process group: its address, and a function that kills it."""
    script = tmp_path / "cluster.py"
    script.write_text(CLUSTER.format(n=2))
    process = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    address = process.stdout.readline().strip()

    def kill():
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    yield address, kill
    kill()
    process.stdout.close()


def neighbors(collection, client, part):
    tasks = Runner(client)
    blocks = blocks_of(collection, tasks)
    found = nearest_by_parts(blocks, tasks, 15, rows_per_part=part, query_rows=90)
    return [np.concatenate(a) for a in zip(*found, strict=True)]


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_bits():
    models = [clone(m).fit(X) for m in (UMAP, TSNE, MDS)]
    found = []
    for n_workers, size, part in ((1, 700, 700), (2, 130, 90), (4, 64, 250)):
        with local_cluster(n_workers=n_workers) as client:
            collection = da.from_array(X, chunks=(size, 3))
            found.append(neighbors(collection, client, part))
            for expected in models:
                model = fit(clone(expected), collection, client=client, rows_per_part=part)
                assert np.array_equal(np.asarray(model.embedding_), np.asarray(expected.embedding_))
                lazy = transform(model, da.from_array(NEW, chunks=(size // 5, 6)))
                placed = client.compute(lazy).result()
                assert np.array_equal(placed, expected.transform(NEW))
    for indices, distances in found[1:]:
        assert np.array_equal(indices, found[0][0])
        assert np.array_equal(distances, found[0][1])


@pytest.mark.slow
def test_worker_killed_while_neighbours_are_searched():
    collection = da.from_array(X, chunks=(60, 6))
    with local_cluster(n_workers=2) as client:
        tasks = Runner(client)
        blocks, found = blocks_of(collection, tasks), []
        for block in nearest_by_parts(blocks, tasks, 15, rows_per_part=100, query_rows=50):
            found.append(block)
            if len(found) in (1, 6):  # twice
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    with local_cluster(n_workers=1) as client:
        expected = neighbors(collection, client, 700)
    for ours, theirs in zip(zip(*found, strict=True), expected, strict=True):
        assert np.array_equal(np.concatenate(ours), theirs)


@pytest.mark.slow
def test_worker_killed_while_places_are_written(parquet, tmp_path):
    model = clone(UMAP).fit(X[::3].astype(np.float32))
    with local_cluster(n_workers=2) as client:
        tasks = Runner(client)
        blocks = blocks_of(open_collection(parquet), tasks, list("abcdef"))
        victims = []

        def progress(n):
            if not victims:
                victims.append(next(iter(client.run(os.getpid).values())))
                os.kill(victims[0], signal.SIGKILL)

        path = tmp_path / "out.parquet"
        n = write_embedding(model, blocks, path, tasks, label="kind", progress=progress)
    assert n == len(X)
    written = pd.read_parquet(path)
    assert np.array_equal(written.iloc[:, 2:].to_numpy(), model.transform(X.astype(np.float32)))
    assert written["kind"].tolist() == (np.arange(len(X)) % 3).tolist()
    assert written["row"].tolist() == list(range(len(X)))


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "zarr", "npy"])
def test_dead_cluster_gives_one_error_and_no_file(ending, foreign, parquet, tmp_path):
    address, kill = foreign
    model = clone(UMAP).fit(X[::3].astype(np.float32))
    folder = tmp_path / "out"
    folder.mkdir()

    def run():
        with local_cluster(address) as client:
            tasks = Runner(client)
            blocks = blocks_of(open_collection(parquet), tasks, list("abcdef"))
            path = folder / f"out.{ending}"
            write_embedding(model, blocks, path, tasks, progress=lambda n: kill())

    with pytest.raises(ClusterError, match=r"the Dask cluster .*was lost") as caught:
        run()
    assert "\n" not in str(caught.value)
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_dead_cluster_on_the_command_line(foreign, parquet, tmp_path, capfd, monkeypatch):
    address, kill = foreign
    from finsler_ext.dask import files

    monkeypatch.setattr(files, "single_threaded", lambda model: (kill(), model)[1])
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / "o.parquet"
    options = ["--scheduler", address, "--drop", "kind", "--sample", "300"]
    assert main(["embed", str(parquet), *options, "-o", str(out)]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("finsler-ext: the Dask cluster")
    assert list(out.parent.iterdir()) == []


@pytest.mark.slow
def test_cluster_without_workers(monkeypatch):
    monkeypatch.setattr("finsler_ext.dask.cluster.WORKERLESS_SECONDS", 2.0)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(ClusterError, match="no workers left"),
    ):
        fit(clone(UMAP), da.from_array(X, chunks=(100, 6)), client=client)


@pytest.mark.slow
def test_command_from_parquet_to_parquet(parquet, tmp_path, capsys):
    out, model = tmp_path / "o.parquet", tmp_path / "m.finsler"
    options = ["--dask", "--workers", "2", "--memory", "1GB", "--label", "kind"]
    assert main(["embed", str(parquet), *options, "-o", str(out), "--save", str(model)]) == 0
    assert f"Fitted FinslerUMAP to {len(X)} rows" in capsys.readouterr().out
    places = pd.read_parquet(out)
    expected = FinslerUMAP(random_state=0).fit(X.astype(np.float32)).embedding_
    assert np.array_equal(places[["x", "y", "height"]].to_numpy(), expected)
    again = tmp_path / "again.zarr"
    assert main(["transform", str(model), str(parquet), *options, "-o", str(again)]) == 0
    import zarr

    assert np.array_equal(zarr.open(str(again), mode="r")[:], expected)


def test_no_scheduler_at_the_address(tmp_path, parquet, capsys, monkeypatch):
    monkeypatch.setattr("finsler_ext.dask.cluster.CONNECT_SECONDS", 0.5)
    started = time.monotonic()
    options = ["--scheduler", "tcp://127.0.0.1:9", "-o", str(tmp_path / "o.parquet")]
    assert main(["embed", str(parquet), "--drop", "kind", *options]) == 2
    assert time.monotonic() - started < 60
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in lines[0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--dask", "--plot", "a.png"], "--plot needs the whole file in memory"),
        (["--sample", "100"], "--sample is for --dask"),
        (["--dask", "-o", "o.csv"], "unknown ending; use one of parquet, zarr, npy"),
    ],
)
def test_options_that_do_not_go_together(options, line, parquet, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["embed", str(parquet), *options]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert line in error
