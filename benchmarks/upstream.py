"""The tests of umap-learn and openTSNE, run with this project's classes in place of theirs.

    python -m benchmarks.upstream --source DIR            a checkout of umap-learn or of openTSNE
    python -m benchmarks.upstream --source DIR --columns 3

Prints how many passed and failed, and for every failure the reason from the list below. A failure
without a reason there is a defect.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from shutil import copytree
from typing import NamedTuple

__all__ = ["Outcome", "reason_for", "run_suite"]

# Folder of the tests in a checkout, and files that test other classes than UMAP or TSNE.
FOLDERS = {"umap-learn": "umap/tests", "openTSNE": "tests"}
OTHER_CLASSES = {
    "umap-learn": ("test_aligned_umap.py", "test_parametric_umap.py", "test_densmap.py"),
    "openTSNE": (),
}
# Why a test of the parent cannot pass: the first pattern that is found in its name.
REASONS: dict[str, tuple[tuple[str, str], ...]] = {
    "umap-learn": (
        ("test_get_feature_names_out", "the last column is named after the height"),
        (
            "test_umap_custom_distance_w_grad",
            "counts warnings, and two columns of features have one of their own: one is the height",
        ),
        (
            "test_umap_trustworthiness_on_sphere_iris",
            "output_metric other than Euclidean is refused: the embedding is a Randers space",
        ),
        (
            "test_precomputed_knn_on_iris",
            "squares a sparse difference as a matrix product, whose mean can be negative for "
            "directed graphs; and expects transform to need a search index, which ours does not",
        ),
        ("test_umap_bad_n_jobs", "n_jobs=-2 is accepted, as in scikit-learn: all but one"),
        (
            "test_umap_inverse_transform_fails_expectedly",
            "inverse_transform works for sparse data and any metric on numbers",
        ),
        (
            "test_plot_runs_at_all",
            "umap.plot draws two columns (use map_plane()), and needs dask and scikit-image",
        ),
        (
            "test_check_input_data",
            "passes places of two columns to the inverse_transform of a model with three",
        ),
        (
            "test_umap_trustworthiness_random_init",
            "a random start of 50 points: with three columns this seed gives 0.794 where 0.80 is "
            "asked, others 0.89 to 0.91",
        ),
    ),
    "openTSNE": (
        (
            "test_call_with_custom_metric_with_unsupported_knn",
            "of openTSNE's own affinities, which are not replaced: it fails without us, too",
        ),
        (
            "n_components_gt|fft_transform|fft_optimized",
            "the repulsion has a grid in up to two columns and a tree in up to three; beyond "
            "that a ValueError says what to use, where openTSNE raises a RuntimeError",
        ),
        (
            "test_error_exaggeration_correction",
            "its callback knows openTSNE's two Euclidean gradients only",
        ),
        (
            "TestTSNEParameterFlow::test_(constructor|embedding_optimize)",
            "passes the names of Euclidean gradients to an embedding, which is refused: they would "
            "undo the drift",
        ),
        (
            "test_knn_kwargs|test_random_state_parameter_is_propagated",
            "waits for a call of openTSNE's own neighbour search or PCA, which is not made",
        ),
        (
            "UsingPrecomputedDistanceMatrix::test_iris",
            "compares affinities to sixteen digits; distances are computed in blocks here",
        ),
        (
            "Correctness(UsingNonStandardDof)?::test_iris(_with_precomputed_distance_matrices)?$",
            "asks less than 0.5 of ten neighbours at a random start: with a flat height that is "
            "one column, where this seed gives 0.54 (openTSNE itself 0.53), others 0.38 to 0.58",
        ),
        (
            "test_explicit_optimize_calls|_init_with_only_affinities|uses_spectral_init",
            "compares bit for bit with openTSNE's own start or descent",
        ),
        (
            "test_parameter_init_takes|test_precomputed_initialization_is_passed",
            "gives a start of two columns to three, where it is the map",
        ),
        (
            "test_mismatching_embedding_dimensions_simple_api",
            "parameters are checked by fit, as scikit-learn asks, not by the constructor",
        ),
        ("test_default_params_simple_vs_complex_flow", "n_jobs is -1 by default"),
    ),
}
NO_REASON = "no reason is known"


class Outcome(NamedTuple):
    """What became of one test: "passed", "failed" or "skipped", and what it said."""

    name: str
    state: str
    message: str = ""


def project_of(source: Path) -> str:
    for project, folder in FOLDERS.items():
        if (source / folder).is_dir() and (source / _package(project)).is_dir():
            return project
    raise FileNotFoundError(
        f"{source} is a checkout of neither umap-learn nor openTSNE: it has neither umap/tests nor "
        "openTSNE beside tests. Source packages of umap-learn have no tests; clone the repository."
    )


def _package(project: str) -> str:
    return {"umap-learn": "umap", "openTSNE": "openTSNE"}[project]


def reason_for(project: str, name: str) -> str:
    return next((why for part, why in REASONS[project] if re.search(part, name)), NO_REASON)


def run_suite(source: Path, columns: int = 2, drift: float = 0.01) -> list[Outcome]:
    """Copy the tests away from the sources they belong to, and run them on what is installed."""
    project = project_of(source)
    with tempfile.TemporaryDirectory() as folder:
        tests = Path(folder) / "upstream_tests"
        copytree(source / FOLDERS[project], tests)
        for name in OTHER_CLASSES[project]:
            (tests / name).unlink(missing_ok=True)
        for path in tests.glob("*.py"):  # as modules of a package that is not around them here
            text = re.sub(r"from \.\.(?=\w)", f"from {_package(project)}.", path.read_text())
            path.write_text(re.sub(r"from tests(?=[. ])", "from upstream_tests", text))
        report = Path(folder) / "report.xml"
        root = Path(__file__).parents[1]
        environment = os.environ | {
            "FINSLER_UPSTREAM": f"{project}:{columns}:{drift}",
            "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]),
        }
        command = [
            sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.upstream_plugin",
            "-p", "no:cacheprovider", f"--rootdir={folder}", "-c", os.devnull,
            f"--junitxml={report}", str(tests),
        ]  # fmt: skip
        finished = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if not report.exists():
            raise RuntimeError(f"pytest did not run:\n{finished.stdout}\n{finished.stderr}")
        return _outcomes(report)


def _outcomes(report: Path) -> list[Outcome]:
    outcomes = []
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').split('.')[-1]}::{case.get('name')}"
        bad = [e for kind in ("failure", "error") for e in case.findall(kind)]
        if bad:
            outcomes.append(Outcome(name, "failed", (bad[0].get("message") or "").split("\n")[0]))
        elif case.find("skipped") is not None:
            outcomes.append(Outcome(name, "skipped"))
        else:
            outcomes.append(Outcome(name, "passed"))
    return outcomes


def report(source: Path, columns: int, drift: float) -> int:
    """Print the outcome; 1 if a test fails for no known reason."""
    project = project_of(source)
    outcomes = run_suite(source, columns, drift)
    count = {s: sum(o.state == s for o in outcomes) for s in ("passed", "failed", "skipped")}
    print(
        f"{project}, {columns} columns, omega_norm={drift:g}: {count['passed']} passed, "
        f"{count['failed']} failed, {count['skipped']} skipped"
    )
    unknown = 0
    for outcome in outcomes:
        if outcome.state == "failed":
            reason = reason_for(project, outcome.name)
            unknown += reason == NO_REASON
            print(f"  {outcome.name}\n    {reason}\n    it said: {outcome.message[:200]}")
    return int(unknown > 0)


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.upstream",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--source", type=Path, required=True, help="a checkout of the project")
    parser.add_argument("--columns", type=int, nargs="+", default=[2, 3], help="n_components")
    parser.add_argument("--omega-norm", type=float, default=0.01, help="the drift")
    options = parser.parse_args(argv)
    return max(report(options.source, columns, options.omega_norm) for columns in options.columns)


if __name__ == "__main__":
    raise SystemExit(main())
