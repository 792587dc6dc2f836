"""What an epoch of the layout touches, counted another way; and that the command prints it."""

import numpy as np
import pytest

from benchmarks import layout_bandwidth
from benchmarks.layout_bandwidth import Traffic, limit_seconds, nearest_graph, traffic
from finsler_ext.umap.kernels import is_due


def points(n):
    return np.random.default_rng(0).uniform(size=(n, 3))


def test_memberships_of_the_graph_are_as_umap_scales_them():
    graph = nearest_graph(points(300))
    assert graph.nnz == 15 * 300
    assert graph.sum(axis=1) == pytest.approx(np.full(300, np.log2(15)), rel=1e-3)
    assert graph.max() == 1.0
    assert not graph.diagonal().any()


def test_sampled_edges_are_those_that_the_kernel_samples():
    n, epochs = 40, 200
    graph = nearest_graph(points(n), k=5)
    due = graph.data > graph.data.max() / epochs
    share = graph.data[due].astype(np.float64) / graph.data.max()
    rate = (share * 0xFFFFFFFF).astype(np.uint32)
    phase = np.random.default_rng(1).integers(2**32, size=rate.size, dtype=np.uint32)
    sampled = sum(
        is_due(p, r, epoch)
        for p, r in zip(phase, rate, strict=True)
        for epoch in range(1, epochs + 1)
    )
    found = traffic(graph, epochs)
    assert found.edges == due.sum()
    # By both ends, and the partners of four steps.
    share_out = np.bincount(graph.tocoo().row[due], share)
    partners = 4 * np.ceil(5 * share_out / 4).sum()
    assert found.looked_up == pytest.approx(2 * sampled / epochs + partners, rel=0.01)


def test_streams_are_edges_pointers_and_positions():
    n = 100
    found = traffic(nearest_graph(points(n)))
    by_either_end = 2 * found.edges * 4 * 4
    pointers = (4 * n + 1) * 8
    rows = 4 * n * (4 + 4 + 4)
    snapshots = 4 * n * 3 * (4 + 4)
    assert found.streamed == by_either_end + pointers + rows + snapshots


def test_the_limit_adds_both():
    assert limit_seconds(Traffic(10, 300, 50.0), triad=100.0, gather=25.0) == pytest.approx(5.0)


def test_the_gather_reads_rows_of_the_table_evenly():
    n, drawn = 64, 64_000
    sums = np.zeros(drawn, dtype=np.float32)
    counts = []
    for row in range(0, n, 9):
        table = np.zeros((n, 3), dtype=np.float32)
        table[row] = 1.0
        layout_bandwidth._gather(0, drawn, table, sums, 7)
        counts.append(sums[0] / 3)
    assert counts == pytest.approx(np.full(len(counts), drawn / n), rel=0.15)


def test_the_command_prints_a_line_for_every_number_of_threads(monkeypatch, capsys):
    for name in ("TRIAD_ELEMENTS", "GATHERED_ROWS", "LEAST_EDGES"):
        monkeypatch.setattr(layout_bandwidth, name, 10_000)
    layout_bandwidth.main(["--rows", "500", "--repeats", "1"])
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split("|")[2].strip() for row in rows] == ["1", "2"]
    for row in rows:
        cells = row.strip("| ").split("|")
        assert len(cells) == len(header.strip("| ").split("|"))
        assert all(float(cell.replace(",", "")) > 0 for cell in cells[:9])


def test_epochs_that_do_less():
    arrays = tuple(np.zeros(10) for _ in range(3))
    bench = layout_bandwidth.Bench(200, arrays)
    moved = {
        kind: np.abs(descent.run(bench.table, range(2), omega_norm=0.5) - bench.table).sum()
        for kind, descent in bench.descents.items()
    }
    assert moved["scan"] == 0
    assert moved["pulls"] > 0
    assert moved["whole"] > 0
    assert moved["whole"] != moved["pulls"]
