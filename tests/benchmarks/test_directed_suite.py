"""The directed suite runs from end to end on small data, and its parts are what they say."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from benchmarks import directed, directed_page, orders
from benchmarks.data.digraphs import planted_digraph
from finsler_ext.directed.potential import direction_auc
from finsler_ext.geometry.randers import randers_distances


@pytest.fixture
def folder(tmp_path):
    """Stand-ins for two of the sets."""
    D = randers_distances(np.random.default_rng(0).normal(size=(30, 3)), 0.3)
    np.savez(tmp_path / "flights_us_2015jan.npz", D=D + 1.0, latlon=np.zeros((30, 2)))
    graph, _ = planted_digraph(120, 6, noise=1.0)
    edges = np.column_stack(graph.tocoo().coords)
    np.savez(tmp_path / "polblogs.npz", edges=edges, n=120)
    cited, month = planted_digraph(60, 6, noise=0.1)
    source, target = cited.tocoo().coords
    np.savez(tmp_path / "citations.npz", src=source, dst=target, month=month)
    return tmp_path


def test_it_runs_and_reports(folder, monkeypatch):
    timed = ("streets:100", "hops:60", "one-way path:40", "path:90")
    monkeypatch.setitem(directed.RUNS, "speed", (directed.run_speed, timed))
    monkeypatch.setattr(directed, "WIDE", ("flights",))
    monkeypatch.setattr(directed, "WIDE_WEIGHTS", (1.0, 10.0))
    options = ["--data-dir", str(folder), "--seeds", "1", "--output", str(folder / "out.md")]
    options += ["--results", str(folder / "runs"), "--data", "flights", "polblogs", *timed]
    options += ["citations"]
    parts = ["stress", "limits", "order", "truth", "field", "speed"]
    assert directed.main([*parts, *options]) == 0
    text = (folder / "out.md").read_text()
    assert text.startswith(directed_page.BEGIN)
    assert text.endswith(directed_page.END + "\n")
    for word in (
        "Randers is lowest on",
        "SpringRank",
        "flights",
        "one drift",
        "peak memory",
        "any height at most",
        "4 drifts and 2 weights",
        "| citations |",
    ):
        assert word in text
    before = (folder / "runs" / "directed_stress.csv").read_text()
    directed.main(["stress", *options])
    assert (folder / "runs" / "directed_stress.csv").read_text() == before
    assert (folder / "out.md").read_text() == text


def test_the_rest_of_a_page_stays(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{directed_page.BEGIN}\nold\n{directed_page.END}\nafter\n")
    empty = pd.DataFrame()
    directed_page.write(dict.fromkeys(directed.PARTS, empty), page)
    text = page.read_text()
    assert text.startswith(f"before\n{directed_page.BEGIN}\n## Directed data\n")
    assert text.endswith(f"{directed_page.END}\nafter\n")
    assert "old" not in text


def test_missing_data_are_named_and_the_others_run(folder):
    names = ["morse", "flights"]
    found = directed.run(["field"], str(folder), folder / "runs", 1, names)
    assert len(found) == 1
    assert "morse" in found[0]
    assert "flights" in (folder / "runs" / "directed_field.csv").read_text()


def test_held_out_edges_are_one_way_and_gone():
    graph, level = planted_digraph(100, 6, noise=1.0)
    rest, source, target = orders.held_out_edges(graph, 0)
    assert rest.nnz + source.size == graph.nnz
    dense = graph.toarray() > 0
    assert (dense[source, target] & ~dense[target, source]).all()
    assert not (rest.toarray() > 0)[source, target].any()
    planted, level = planted_digraph(100, 6, noise=0.0)
    _, source, target = orders.held_out_edges(planted, 0)
    assert direction_auc(level[source] - level[target]) == 1.0
    assert direction_auc(level[target] - level[source]) == 0.0


def test_the_true_model_predicts_pairs_it_has_not_seen():
    D = randers_distances(np.random.default_rng(0).normal(size=(40, 3)), 0.4) + 1.5
    np.fill_diagonal(D, 0.0)
    ours = directed.stress_scores(directed.MODELS["Randers"], D, 0)
    other = directed.stress_scores(directed.MODELS["symmetric"], D, 0)
    assert ours["stress interval"] < 1e-4 < 0.1 * other["stress interval"]
    assert ours["choice interval"] < 1e-4 < ours["choice ratio"]
    assert ours["explained interval"] > 0.99


def test_streets_lead_everywhere():
    graph = directed.street_grid(200)
    assert 150 < graph.shape[0] <= 225
    n_parts, _ = scipy.sparse.csgraph.connected_components(graph, connection="strong")
    assert n_parts == 1


def test_pairs_in_the_right_order():
    rng = np.random.default_rng(0)
    height, rank = rng.normal(size=40).round(1), rng.integers(3, size=40).astype(float)
    rank[:3] = np.nan
    higher = rank[:, None] > rank
    right = (height[:, None] > height)[higher].sum() + 0.5 * (height[:, None] == height)[
        higher
    ].sum()
    assert orders.right_pairs(height, rank) == pytest.approx(right / higher.sum())
