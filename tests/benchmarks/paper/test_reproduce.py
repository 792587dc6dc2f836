"""One command from nothing to the page, and its comparison with a stored one."""

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest

from benchmarks.ledger import Ledger, read_runs
from benchmarks.paper import __main__ as command
from benchmarks.paper import report, reproduce, runner
from benchmarks.paper.experiments import EXPERIMENTS, Cell
from benchmarks.paper.runner import ledger_path, run
from benchmarks.paper.verdict_lines import agreement, marked, verdicts

SMALL = {
    "disk": [Cell("disk", "disk:300", 0, method, 0) for method in ("isomap_2d", "spacing_1d")],
    "clusters": [Cell("clusters", "clusters", seed, "spacing_1d", seed) for seed in (0, 1)],
    "flights": [Cell("flights", "flights", 0, "isomap_2d", 0)],
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Four runs of a moment, and one whose data are missing."""
    monkeypatch.delenv("FINSLER_DATA", raising=False)
    monkeypatch.setattr(reproduce, "planned", lambda quick: SMALL)
    monkeypatch.setattr(
        runner, "ProcessPoolExecutor", lambda workers, mp_context: ThreadPoolExecutor(workers)
    )


@pytest.fixture
def said():
    return []


def reproduced(tmp_path, said, **options):
    places = {"stored": tmp_path / "stored", "stored_page": tmp_path / "stored.md"}
    return reproduce.reproduce(results=tmp_path / "mine", say=said.append, **(places | options))


# ------------------------------------------------------------------ what is run


def test_quick_runs_are_those_of_the_whole_that_need_no_files():
    for name in EXPERIMENTS:
        whole = {cell._replace(seed=0, data_seed=0) for cell in reproduce.cells(name)}
        for cell in reproduce.quick_cells(name):
            assert cell._replace(seed=0, data_seed=0) in whole
            assert cell.data in reproduce.QUICK_DATA
            assert cell.seed < 3
    assert not list(reproduce.quick_cells("drop_in"))
    assert {c.data for c in reproduce.quick_cells("umap")} == {"iris", "digits"}


def test_from_nothing_to_the_page(tmp_path, said):
    assert reproduced(tmp_path, said) == 0
    assert said[0].startswith("left out: flights (of flights): flights_us_2015jan.npz not found")
    assert said[1].startswith("4 runs to make, about 0 minutes on 1 core(s)")
    runs = read_runs([ledger_path(name, tmp_path / "mine") for name in SMALL])
    assert len(runs.drop_duplicates(["data", "method", "seed"])) == 4
    page = (tmp_path / "mine" / "RESULTS.md").read_text(encoding="utf-8")
    assert page.startswith("# ")
    assert verdicts(page)
    assert not any(v.endswith("(quick)") for v in verdicts(page).values())
    assert not (tmp_path / "stored").exists()


def test_other_rows_than_the_stored_ones_are_named(tmp_path, said, monkeypatch):
    monkeypatch.setitem(reproduce.ROWS, "clusters", 400)
    reproduced(tmp_path, said)
    assert "clusters has 500 rows here, 400 in the stored results" in said


def test_it_goes_on_where_it_stopped(tmp_path, said):
    run(SMALL["disk"], folder=tmp_path / "mine", say=said.append)
    before = ledger_path("disk", tmp_path / "mine").read_text()
    reproduced(tmp_path, said, page=tmp_path / "page.md")
    assert any(line.startswith("2 runs to make") for line in said)
    assert ledger_path("disk", tmp_path / "mine").read_text() == before
    assert (tmp_path / "page.md").is_file()


def test_a_worker_that_dies_leaves_the_others_running(tmp_path, said, monkeypatch):
    def broken(todo, **options):
        if todo[0].experiment == "disk":
            raise BrokenProcessPool("a worker was killed")
        run(todo, **options)

    monkeypatch.setattr(reproduce, "run", broken)
    assert reproduced(tmp_path, said) == 1
    assert "disk stopped, what is finished is kept: a worker was killed" in said
    assert len(Ledger(ledger_path("clusters", tmp_path / "mine"))) == 2
    assert (tmp_path / "mine" / "RESULTS.md").is_file()


def test_figures_are_drawn_if_asked_and_missing_data_named(tmp_path, said, monkeypatch):
    drawn = []

    def draw(name, *, data_dir, results, folder):
        if name == "flights":
            raise FileNotFoundError("no flights")
        drawn.append((name, folder))

    monkeypatch.setattr("benchmarks.paper.pictures.draw", draw)
    reproduced(tmp_path, said, figures=tmp_path / "figures")
    assert drawn == [("disk", tmp_path / "figures"), ("clusters", tmp_path / "figures")]
    assert "figures of flights left out: no flights" in said


# ------------------------------------------------------------------ the comparison


def test_the_same_runs_give_the_stored_numbers_and_verdicts(tmp_path, said):
    run(SMALL["disk"] + SMALL["clusters"], folder=tmp_path / "stored", say=said.append)
    report.write(tmp_path / "stored", tmp_path / "stored.md")
    total = len(verdicts((tmp_path / "stored.md").read_text(encoding="utf-8")))
    reproduced(tmp_path, said)
    assert f"of {total} stored verdicts: {total} same, 0 different, 0 not tested" in said
    assert said[-1].startswith("4 of 4 runs gave the stored numbers")
    assert sum(line.startswith("same: ") for line in said) == total


def test_other_numbers_are_named(tmp_path, said):
    run(SMALL["disk"] + SMALL["clusters"], folder=tmp_path / "stored", say=said.append)
    path = ledger_path("disk", tmp_path / "stored")
    lines = path.read_text().splitlines(keepends=True)
    changed = next(i for i, line in enumerate(lines) if "isomap_2d,0,procrustes" in line)
    lines[changed] = "disk:300,isomap_2d,0,procrustes,0.77,\n"
    path.write_text("".join(lines))
    reproduced(tmp_path, said)
    assert said[-1].startswith("3 of 4 runs gave the stored numbers")
    assert "disk disk:300 isomap_2d #0 (procrustes 0.77" in said[-1]


def test_quick_verdicts_are_marked_and_compared_without_their_mark(tmp_path, said):
    run(SMALL["disk"] + SMALL["clusters"], folder=tmp_path / "stored", say=said.append)
    report.write(tmp_path / "stored", tmp_path / "stored.md")
    reproduced(tmp_path, said, quick=True)
    page = (tmp_path / "mine" / "RESULTS.md").read_text(encoding="utf-8")
    found = verdicts(page)
    assert found
    assert all(verdict.endswith("(quick)") for verdict in found.values())
    assert "This page is of a quick run" in page
    assert page.startswith("# ")
    assert f"of {len(found)} stored verdicts: {len(found)} same, 0 different, 0 not tested" in said


PAGE = """# Page

Words.

| claim | here | verdict |
| --- | --- | --- |
| *abstract.* It is better. | 1 won | **holds** |
| *disk.* It shows density. | 0.5 | **does not hold; ω = 0: holds** |

| data | score |
| --- | --- |
| iris | 1 |
"""


def test_verdicts_of_a_page():
    assert verdicts(PAGE) == {
        "abstract. It is better.": "holds",
        "disk. It shows density.": "does not hold; ω = 0: holds",
    }
    quick = marked(PAGE, "quick", "**Quick.**\n\n")
    assert quick.splitlines()[2:4] == ["**Quick.**", ""]
    assert "| *abstract.* It is better. | 1 won | **holds** (quick) |" in quick.splitlines()
    assert "| iris | 1 |" in quick.splitlines()


def test_places_may_have_a_column_of_their_own():
    page = "| place | claim | verdict |\n|---|:-:|---|\n| Table 1 | Better. | holds |\n"
    assert verdicts(page) == {"Table 1 Better.": "holds"}


def test_agreement_of_two_pages():
    mine = {"a": "holds", "b": "does not hold", "d": "holds", "e": "not tested here yet"}
    mine = {claim: f"{verdict} (quick)" for claim, verdict in mine.items()}
    stored = {"a": "holds", "b": "holds", "c": "holds", "e": "holds in part"}
    assert list(agreement(mine, stored, " (quick)")) == [
        "same (quick): a: holds",
        "different (quick): b: does not hold; stored: holds",
        "new (quick): d: holds",
        "not tested (quick): e: not tested here yet; stored: holds in part",
        "only in the stored page (quick): c: holds",
        "of 4 stored verdicts: 1 same, 1 different, 1 not tested",
    ]


# ------------------------------------------------------------------ the command


def test_the_command_has_its_own_folder(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(reproduce, "reproduce", lambda **options: asked.append(options) or 0)
    assert command.main(["reproduce", "--data-dir", "d", "--workers", "2"]) == 0
    assert command.main(["reproduce", "--quick"]) == 0
    assert command.main(["reproduce", "--results", "r", "--page", "p.md"]) == 0
    assert command.main(["--results", "s", "reproduce", "--figures", "f"]) == 0
    assert [str(options["results"]) for options in asked] == [
        "reproduced", "reproduced_quick", "r", "s",
    ]  # fmt: skip
    assert asked[0]["workers"] == 2
    assert asked[0]["data_dir"] == "d"
    assert asked[1]["quick"]
    assert str(asked[2]["page"]) == "p.md"
    assert str(asked[3]["figures"]) == "f"
