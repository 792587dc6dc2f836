"""The published signature of failed runs: labels of other rows, or a layout without clusters."""

import numpy as np
import pytest

from benchmarks.ledger import read_runs
from benchmarks.paper.published import provoke
from benchmarks.paper.published.failed_runs import count_failed
from benchmarks.paper.scores import agreement_scores, clusters, separation_scores


def test_neighbours_are_led_by_the_point_itself():
    X, _ = provoke.islands()
    found, distances = provoke.neighbors(X)
    assert (found[:, 0] == np.arange(len(X))).all()
    assert (np.diff(distances, axis=1) >= 0).all()


def test_islands_are_islands():
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    X, labels = provoke.islands()
    found, _ = provoke.neighbors(X)
    rows = np.repeat(np.arange(len(X)), found.shape[1])
    graph = csr_array((np.ones(found.size), (rows, found.ravel())), (len(X), len(X)))
    count, part = connected_components(graph, directed=False)
    assert count == 10
    assert all(len(np.unique(part[labels == c])) == 1 for c in range(10))


def test_rows_in_another_order_have_the_published_signature():
    """Two of ten runs scored with the labels of other rows: AMI falls, silhouette does not."""
    X, labels = (part[::4] for part in provoke.islands())
    rng = np.random.default_rng(0)
    ami, silhouette = [], []
    for run in range(10):
        Y = X[:, :2] + 0.01 * rng.normal(size=(len(X), 2))
        found = clusters(Y, labels)
        scored = rng.permutation(labels) if run < 2 else labels
        ami.append(agreement_scores(found, scored)["ami"])
        silhouette.append(separation_scores(Y, found)["silhouette"])
    assert count_failed(np.mean(ami), np.std(ami)) == 2
    assert np.std(silhouette) < 0.01


@pytest.mark.slow
def test_attempts_on_iris(tmp_path, capsys):
    provoke.main(tmp_path / "provoked.csv", seeds=1, data=("iris",))
    runs = read_runs([tmp_path / "provoked.csv"])
    ami = runs[runs.score == "ami"].set_index("method").value
    assert ami["spectral"] > 0.5
    assert abs(ami["other_order"]) < 0.1
    assert abs(ami["random_graph"]) < 0.1
    assert "failed" in capsys.readouterr().out
