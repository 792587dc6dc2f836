"""Finished runs are kept, one line for every score, and are not repeated."""

import numpy as np
import pytest

from benchmarks.ledger import FAILED, FIELDS, Ledger, read_runs


def test_a_line_for_every_score(tmp_path):
    path = tmp_path / "new_folder" / "runs.csv"
    ledger = Ledger(path)
    ledger.add("iris", "umap_2d", 3, {"ami": 0.123456789, "sign": np.nan})
    header, *lines = path.read_text().splitlines()
    assert header == ",".join(FIELDS)
    assert lines == ["iris,umap_2d,3,ami,0.12346,", "iris,umap_2d,3,sign,nan,"]


def test_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "runs.csv"
    Ledger(path).add("iris", "umap_2d", 0, {"ami": 0.5, "ari": 0.25})
    again = Ledger(path)
    assert len(again) == 1
    assert again.has("iris", "umap_2d", 0)
    assert not again.has("iris", "umap_2d", 1)
    assert not again.has("iris", "umap_3d", 0)
    again.add("iris", "umap_2d", 1, {"ami": 0.75})
    runs = read_runs([path])
    assert len(Ledger(path)) == 2
    assert list(runs[runs.score == "ami"].value) == [0.5, 0.75]


def test_a_failed_run_counts_as_done_and_says_why(tmp_path):
    path = tmp_path / "runs.csv"
    note = 'ValueError: "a", or b\nand c'
    Ledger(path).add("iris", "umap_2d", 0, {FAILED: 1.0}, note)
    assert Ledger(path).has("iris", "umap_2d", 0)
    (found,) = read_runs([path]).itertuples()
    assert (found.score, found.value, found.note) == (FAILED, 1.0, note)


def test_files_that_do_not_exist_yet(tmp_path):
    nothing = read_runs([tmp_path / "runs.csv"])
    assert nothing.empty
    assert list(nothing.columns) == list(FIELDS)
    assert not (tmp_path / "runs.csv").exists()
    Ledger(tmp_path / "a.csv").add("iris", "umap_2d", 0, {"ami": 0.5})
    assert len(read_runs([tmp_path / "a.csv", tmp_path / "runs.csv"])) == 1


@pytest.mark.parametrize("seed", [0, 12])
def test_seeds_are_numbers(tmp_path, seed):
    Ledger(tmp_path / "a.csv").add("iris", "umap_2d", seed, {"ami": 0.5})
    assert read_runs([tmp_path / "a.csv"]).seed.to_list() == [seed]


def test_a_file_without_notes_keeps_its_columns(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("data,method,seed,score,value\niris,umap_2d,0,ami,0.5\n")
    ledger = Ledger(path)
    assert ledger.has("iris", "umap_2d", 0)
    ledger.add("iris", "umap_2d", 1, {"ami": 0.75}, "a note")
    assert path.read_text().splitlines()[-1] == "iris,umap_2d,1,ami,0.75"
    runs = read_runs([path])
    assert list(runs.columns) == list(FIELDS)
    assert runs.value.to_list() == [0.5, 0.75]
