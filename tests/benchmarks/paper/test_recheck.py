"""A finished run that is run again is compared, score by score, with what was kept."""

import numpy as np
import pytest

from benchmarks.ledger import Ledger
from benchmarks.paper import FROZEN_AT
from benchmarks.paper.__main__ import main
from benchmarks.paper.experiments import Cell
from benchmarks.paper.recheck import differences, finished_cells, sample
from benchmarks.paper.runner import ledger_path, run_cell

CELL = Cell("disk", "disk:300", 1, "spacing_1d", 1)


def keep(folder, cell, scores):
    Ledger(ledger_path(cell.experiment, folder)).add(cell.data, cell.method, cell.seed, scores)


def test_only_finished_runs_are_drawn(tmp_path):
    keep(tmp_path, CELL, {"seconds": 1.0})
    assert finished_cells(["disk", "umap"], tmp_path) == [CELL]


def test_a_draw_follows_from_its_seed():
    many = [CELL._replace(seed=s) for s in range(100)]
    drawn = sample(many, 10, seed=1)
    assert drawn == sample(many, 10, seed=1) != sample(many, 10, seed=2)
    assert len(set(drawn)) == 10
    assert sample(many, 1000) == many


def test_differences_name_what_was_and_what_is(tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    keep(before, CELL, {"ami": 0.5, "sign": np.nan, "knn15": 0.25, "seconds": 1.0})
    keep(after, CELL, {"ami": 0.5, "sign": np.nan, "knn15": 0.25, "seconds": 9.0})
    assert differences([CELL], before, after).empty
    other = CELL._replace(seed=2)
    keep(before, other, {"ami": 0.5, "knn15": 0.25})
    keep(after, other, {"ami": 0.5001, "trust": 0.9})
    assert differences([CELL], before, after).empty
    found = differences([CELL, other], before, after).set_index("score")
    assert set(found.index) == {"ami", "knn15", "trust"}
    assert tuple(found.loc["ami", ["was", "is"]]) == (0.5, 0.5001)
    assert set(found.seed) == {2}


@pytest.mark.parametrize("wrong", [False, True])
def test_command(tmp_path, capsys, wrong):
    """Through a real process; a ledger that was changed by hand is found out."""
    scores, _ = run_cell(CELL, None)
    keep(tmp_path, CELL, scores | ({"density_height": 0.123} if wrong else {}))
    before = ledger_path("disk", tmp_path).read_text()
    code = main(["--results", str(tmp_path), "recheck", "disk", "--runs", "3"])
    printed = capsys.readouterr().out
    assert code == int(wrong)
    same = f"{1 - wrong} runs gave the stored numbers, which are those of commit {FROZEN_AT}"
    assert f"{int(wrong)} scores of 1 runs differ; {same}" in printed
    assert ("density_height" in printed) == wrong
    assert ledger_path("disk", tmp_path).read_text() == before
