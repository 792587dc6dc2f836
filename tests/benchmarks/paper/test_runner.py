"""Runs are planned, kept and not repeated."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from benchmarks.ledger import FAILED, Ledger, read_runs
from benchmarks.paper import methods, runner
from benchmarks.paper.experiments import EXPERIMENTS, Cell, Experiment, cells
from benchmarks.paper.runner import expected_seconds, ledger_path, open_cells, run, run_cell

TINY = Experiment(
    "Does it run?",
    ("disk:100", "clusters:120"),
    ("spacing_1d", "finsler_umap_0.5_3d"),
    seeds=3,
    quick_seeds=2,
    slow_data=("disk:100",),
)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "tiny", TINY)
    # Processes take longer to start than all these runs.
    monkeypatch.setattr(
        runner, "ProcessPoolExecutor", lambda workers, mp_context: ThreadPoolExecutor(workers)
    )


def test_methods_that_do_not_depend_on_the_seed_run_once_on_fixed_data():
    planned = list(cells("tiny"))
    assert len(planned) == 2 * (1 + 3)
    assert [c.seed for c in planned if c.method == "spacing_1d"] == [0, 0]
    assert {c.data_seed for c in planned} == {0}


def test_on_data_drawn_anew_everything_runs_for_every_seed(monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "tiny", TINY._replace(redrawn=True))
    planned = list(cells("tiny"))
    assert len(planned) == 3 * 2 * 2
    assert all(c.data_seed == c.seed for c in planned)


def test_quick_runs_leave_out_slow_data(tmp_path):
    quick = open_cells(["tiny"], tmp_path, quick=True)
    assert {c.data for c in quick} == {"clusters:120"}
    assert {c.seed for c in quick} == {0, 1}
    five = open_cells(["tiny"], tmp_path, seeds=5)
    assert {c.seed for c in five} == set(range(5))
    assert {c.data for c in five} == {"disk:100", "clusters:120"}


def test_runs_are_kept_and_not_repeated(tmp_path, capsys):
    todo = open_cells(["tiny"], tmp_path, quick=True)
    assert len(todo) == 3
    run(todo, folder=tmp_path)
    printed = capsys.readouterr()
    assert printed.out == "3 runs, about 0 minutes on 1 core(s)\n"
    assert "clusters:120 finsler_umap_0.5_3d #1" in printed.err
    assert "100 %" in printed.err
    path = ledger_path("tiny", tmp_path)
    lines = path.read_text()
    runs = read_runs([path])
    assert len(runs.drop_duplicates(["method", "seed"])) == 3
    assert {"ami", "sign", "height_order", "seconds"} <= set(runs.score)
    assert FAILED not in set(runs.score)

    again = open_cells(["tiny"], tmp_path, quick=True)
    assert again == []
    run(again, folder=tmp_path)
    assert capsys.readouterr().out.startswith("0 runs")
    assert path.read_text() == lines
    assert len(open_cells(["tiny"], tmp_path)) == len(list(cells("tiny"))) - 3


def test_an_interrupted_run_goes_on(tmp_path):
    todo = open_cells(["tiny"], tmp_path, quick=True)
    run(todo[:1], folder=tmp_path, say=lambda text: None)
    assert open_cells(["tiny"], tmp_path, quick=True) == todo[1:]


def test_the_same_numbers_come_out_of_a_rerun(tmp_path):
    cell = Cell("tiny", "clusters:120", 0, "finsler_umap_0.5_3d", 1)
    first, second = (run_cell(cell, None)[0] for _ in range(2))
    first.pop("seconds"), second.pop("seconds")
    assert first == second


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_raises_is_noted_and_the_others_go_on(tmp_path, monkeypatch, workers, capsys):
    real = methods.embed

    def embed(name, problem, seed):
        if seed == 0 and name != "spacing_1d":
            raise ValueError("no\n  layout")
        return real(name, problem, seed)

    monkeypatch.setattr(methods, "embed", embed)
    todo = open_cells(["tiny"], tmp_path, quick=True)
    run(todo, folder=tmp_path, workers=workers)
    runs = read_runs([ledger_path("tiny", tmp_path)])
    (failed,) = runs[runs.score == FAILED].itertuples()
    assert (failed.method, failed.seed, failed.value) == ("finsler_umap_0.5_3d", 0, 1.0)
    assert failed.note == "ValueError: no layout"
    assert len(Ledger(ledger_path("tiny", tmp_path))) == 3
    assert open_cells(["tiny"], tmp_path, quick=True) == []


def test_a_degenerate_layout_is_noted(monkeypatch):
    flat = methods.Embedded(np.zeros((120, 2)))
    monkeypatch.setattr(methods, "embed", lambda *_: flat)
    scores, note = run_cell(Cell("tiny", "clusters:120", 0, "umap_2d", 0), None)
    assert scores == {FAILED: 1.0}
    assert note == "degenerate: all points coincide"


def test_costs_are_those_measured_before(tmp_path):
    cell = Cell("tiny", "clusters:1000", 0, "umap_2d", 0)
    (guess,) = expected_seconds([cell], tmp_path)
    assert guess == pytest.approx(methods.FAMILIES["umap"].seconds + runner.SCORING_SECONDS)
    ledger = Ledger(ledger_path("tiny", tmp_path))
    for seed, seconds in enumerate((10.0, 30.0, 500.0)):
        ledger.add(cell.data, cell.method, seed, {"seconds": seconds})
    (known,) = expected_seconds([cell], tmp_path)
    assert known == pytest.approx(30.0 + runner.SCORING_SECONDS)


def test_missing_data_stop_the_run(tmp_path, monkeypatch):
    monkeypatch.delenv("FINSLER_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"morse_rothkopf\.npz"):
        run([Cell("tiny", "morse", 0, "isomap_2d", 0)], data_dir=str(tmp_path), folder=tmp_path)
    assert not ledger_path("tiny", tmp_path).exists()


def test_every_data_set_has_a_known_size():
    names = {data for e in EXPERIMENTS.values() for data in e.data if ":" not in data}
    assert names <= set(runner.ROWS)
