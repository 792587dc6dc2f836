"""Running the parents' tests with our classes: a checkout of one test, and the list of reasons."""

import pytest

from benchmarks.upstream import NO_REASON, project_of, reason_for, run_suite


def checkout(folder, text):
    tests = folder / "umap" / "tests"
    tests.mkdir(parents=True)
    (tests / "test_one.py").write_text(text)
    return folder


def test_our_class_stands_in_for_umaps_with_its_defaults(tmp_path):
    source = checkout(
        tmp_path,
        "from umap import UMAP\n"
        "from ..umap_ import UMAP as same\n"
        "from finsler_ext import FinslerUMAP\n"
        "def test_class():\n"
        "    assert UMAP is same and issubclass(UMAP, FinslerUMAP)\n"
        "    assert UMAP().n_components == 2 and UMAP(n_components=5).n_components == 5\n"
        "    assert UMAP().omega_norm == 0.01 and UMAP(7).n_neighbors == 7\n"
        "def test_bad():\n"
        "    assert False, 'as it should'\n",
    )
    outcomes = {o.name: o for o in run_suite(source, columns=2, drift=0.01)}
    assert outcomes["test_one::test_class"].state == "passed"
    assert outcomes["test_one::test_bad"].state == "failed"
    assert "as it should" in outcomes["test_one::test_bad"].message


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="neither umap-learn nor openTSNE"):
        project_of(tmp_path)


def test_reasons_are_found_by_name():
    assert "n_jobs" in reason_for("umap-learn", "test_x::test_umap_bad_n_jobs")
    assert reason_for("umap-learn", "test_x::test_y") == NO_REASON
