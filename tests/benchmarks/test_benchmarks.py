"""The benchmark scripts run from end to end on small data."""

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import data, last_column, row_order, speed, umap_new_rows, umap_quality
from benchmarks.ledger import Ledger, read_runs
from benchmarks.paper import speed_all


def test_disk_has_no_point_at_the_centre_and_twenty_rays():
    X, radius = data.disk(300)
    assert X.shape == (300, 2)
    assert radius.min() == pytest.approx(1 / 15)
    assert np.linalg.norm(X, axis=1) == pytest.approx(radius)


def test_missing_data_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"mnist\.npz"):
        data.load_local("mnist", str(tmp_path))


def test_quality_runs_are_kept_and_not_repeated(tmp_path, monkeypatch, capsys):
    X = np.random.default_rng(0).normal(size=(150, 4)).astype(np.float32)
    np.savez(tmp_path / "small.npz", X=X, y=(X[:, 0] > 0).astype(int))
    monkeypatch.setattr(umap_quality, "METHODS", ("umap_2d", "finsler_0.5"))
    options = ["small", "--seeds", "2", "--data-dir", str(tmp_path)]
    options += ["--results", str(tmp_path / "runs.csv")]
    umap_quality.main(options)
    lines = (tmp_path / "runs.csv").read_text()
    assert "finsler_0.5" in capsys.readouterr().out
    umap_quality.main(options)
    assert (tmp_path / "runs.csv").read_text() == lines


def test_speed_prints_its_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(speed, "RESULTS", tmp_path / "results" / "speed.csv")
    speed.main(["--data", "500", "--methods", "finsler_one", "--repeats", "1", "--n-epochs", "3"])
    assert "peak_mib" in capsys.readouterr().out
    assert len((tmp_path / "results" / "speed.csv").read_text().splitlines()) == 2


def test_speed_of_all_compares_with_parents(tmp_path, capsys):
    results = tmp_path / "speed_all.csv"
    methods = ["--methods", "sklearn_mds", "finsler_mds"]
    speed_all.main(["--data", "iris", "--repeats", "1", "--results", str(results), *methods])
    assert "of sklearn_mds" in capsys.readouterr().out
    assert len(results.read_text().splitlines()) == 3


def test_every_parent_of_the_speed_table_is_timed_on_as_many_rows():
    for timed in speed_all.METHODS.values():
        if timed.parent:
            assert speed_all.METHODS[timed.parent].rows == timed.rows


def test_row_order_compares_the_layouts(capsys):
    row_order.main(["--sizes", "100", "--seeds", "1"])
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("sequential sweep", "finsler_ext", "one-sided"))


def test_scores_over_the_drift_are_drawn_and_compared(tmp_path, capsys):
    ledger = Ledger(tmp_path / "runs.csv")
    scores = {
        f"{of}{name}": 0.5 for of in ("", "map_") for name in ("nn15", "trust", "knn5", "ami")
    }
    for seed in range(3):
        for method in (*last_column.UMAPS, *last_column.OURS):
            ledger.add("digits", method, seed, scores | {"sign": 0.7, "radius": 0.9})
        ledger.add("digits", "free_0.5", seed, {"ami": 0.6})
        ledger.add("digits", "paper_0.5", seed, {"ami": 0.4})
    last_column.main(["plot", "--ledger", str(ledger.path)])
    assert (tmp_path / "runs.png").stat().st_size > 10_000
    last_column.main(["drifts", "--print", "--ledger", str(ledger.path)])
    assert "default_0.5: behind umap_3d on no set; map behind umap_2d on no set" in (
        capsys.readouterr().out
    )
    runs = read_runs([ledger.path])
    gap = last_column.gap_of_means(runs, ["digits"], "free_0.5", "paper_0.5", "ami")
    assert gap == "+0.2000 [+0.2000, +0.2000]"


def test_new_rows_are_scored(tmp_path, monkeypatch, capsys):
    X = np.random.default_rng(0).normal(size=(150, 4)).astype(np.float32)
    np.savez(tmp_path / "small.npz", X=X, y=(X[:, 0] > 0).astype(int))
    monkeypatch.setattr(umap_new_rows, "METHODS", ("finsler_0.3",))
    options = ["small", "--seeds", "1", "--data-dir", str(tmp_path)]
    umap_new_rows.main([*options, "--results", str(tmp_path / "runs.csv")])
    printed = capsys.readouterr().out
    assert all(score in printed for score in ("accuracy", "shift", "height_shift", "back"))


def test_every_script_is_listed_with_its_question(capsys):
    assert command.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = {line.split()[2]: line.split(maxsplit=3)[3] for line in lines}
    question = "Does the height depend on the order of the rows? It must not."
    assert listed["benchmarks.row_order"] == question
    assert {"benchmarks.stored_fits", "benchmarks.directed", "benchmarks.paper"} <= set(listed)
    assert "benchmarks.ledger" not in listed
