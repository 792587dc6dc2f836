"""python -m benchmarks.paper: an overview, clear words for what is missing, a report."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.ledger import Ledger
from benchmarks.paper.__main__ import main
from benchmarks.paper.experiments import EXPERIMENTS, cells
from benchmarks.paper.runner import ledger_path

ROOT = Path(__file__).parents[3]


def test_overview(tmp_path, capsys):
    Ledger(ledger_path("disk", tmp_path)).add("disk:300", "umap_2d", 0, {"ami": 0.5})
    assert main(["--results", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)
    assert f"1 of {len(list(cells('disk'))):5d} runs" in lines[0]
    assert EXPERIMENTS["disk"].question in lines[0]


@pytest.mark.parametrize("command", ["run", "figures", "recheck"])
def test_unknown_experiments(command, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--results", str(tmp_path), command, "nothing"])
    assert stop.value.code == 2
    assert "'nothing'" in capsys.readouterr().err


def test_without_names_all_experiments_are_meant(tmp_path, monkeypatch, capsys):
    drawn = []
    monkeypatch.setattr("benchmarks.paper.pictures.draw", lambda name, **_: drawn.append(name))
    assert main(["figures"]) == 0
    assert drawn == list(EXPERIMENTS)
    assert main(["--results", str(tmp_path), "recheck", "--runs", "3"]) == 2
    assert "holds no finished runs" in capsys.readouterr().err


def test_runs_can_be_narrowed_down(tmp_path, capsys):
    options = ["run", "disk", "--quick", "--data", "disk:300", "--methods", "no_such_method"]
    assert main(["--results", str(tmp_path), *options]) == 0
    assert capsys.readouterr().out.startswith("0 runs")


def test_missing_data_is_one_line_from_a_worker(tmp_path):
    """Through real processes: the error is raised in a worker."""
    environment = {k: v for k, v in os.environ.items() if k != "FINSLER_DATA"}
    command = [sys.executable, "-m", "benchmarks.paper", "--results", str(tmp_path)]
    done = subprocess.run(
        [*command, "run", "flights", "--quick", "--methods", "isomap_2d"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("flights_us_2015jan.npz not found: give the")
    words = [line for line in done.stderr.splitlines() if line and "left" not in line]
    assert len(words) == 1
    assert done.stdout.startswith("1 runs, about ")
    assert not list(tmp_path.iterdir())


def test_missing_data_of_a_figure(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("FINSLER_DATA", raising=False)
    assert main(["figures", "flights", "--figures", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_report(tmp_path):
    output = tmp_path / "RESULTS.md"
    assert main(["--results", str(tmp_path), "report", "--output", str(output)]) == 0
    assert output.read_text().startswith("# Results")
