"""Tests, lint, types and packages in environments of their own: `nox`, or `nox -s NAME`."""

from __future__ import annotations

import nox

PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
# The lower bounds of pyproject.toml, those of the extras that the tests use among them. numba sets
# the bound of numpy on each Python.
LOWEST = (
    "numpy==1.24.*",
    "scipy==1.15.*",
    "scikit-learn==1.6.*",
    "numba==0.58.*",
    "pynndescent==0.5.11",
    "umap-learn==0.5.9.post2",
    "openTSNE==1.0.3",
    "threadpoolctl==3.1.*",
    "tqdm==4.60.*",
    "matplotlib==3.7.*",
    "plotly==6.0.*",
    "datashader==0.16.*",
    "pandas==2.0.*",
    "networkx==3.0.*",
    "pytest==7.4.*",
    "pytest-xdist==3.5.*",
    "hypothesis==6.100.*",
    "pyparsing<3.2",  # a later one warns of what matplotlib 3.7 does
)

# Two processes, each with whole files: tests of a file share models.
ON_TWO = ("-n", "2", "--dist", "loadfile")

nox.options.sessions = ["lint", "tests", "benchmarks"]


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The default test run on each supported Python."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", *ON_TWO, *session.posargs)


@nox.session
def benchmarks(session: nox.Session) -> None:
    """The tests of the benchmarks."""
    session.install("-e", ".[test,benchmarks]")
    session.run("python", "-m", "pytest", *ON_TWO, "tests/benchmarks")


@nox.session
def slow(session: nox.Session) -> None:
    """Tests of minutes, with all the packages that tests know of."""
    session.install("-e", ".[test-all]")
    folders = ("tests", "tests/benchmarks")
    session.run("python", "-m", "pytest", "-m", "slow", *folders, *session.posargs)


@nox.session(python="3.10")
def lowest(session: nox.Session) -> None:
    """The default test run with the lowest versions of the packages this one needs."""
    session.install("-e", ".[test]", *LOWEST)
    session.run("python", "-m", "pytest", *ON_TWO, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and types."""
    session.install("-e", ".[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation, warnings being errors."""
    _build_pages(session, "html")


@nox.session
def linkcheck(session: nox.Session) -> None:
    """Every link of the documentation; needs the network."""
    _build_pages(session, "linkcheck")


def _build_pages(session: nox.Session, builder: str) -> None:
    session.install("-e", ".[docs]")
    session.run("python", "-m", "sphinx", "-W", "-b", builder, "docs", f"docs/_build/{builder}")


@nox.session
def package(session: nox.Session) -> None:
    """Build, check what would be uploaded, and test the source package where it is unpacked."""
    session.install("build", "twine")
    folder = session.create_tmp()
    session.run("python", "-m", "build", "--outdir", folder)
    session.run("python", "-m", "twine", "check", "--strict", f"{folder}/*")
    session.chdir(folder)
    session.run("bash", "-c", "tar xf *.tar.gz --strip-components 1", external=True)
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", *ON_TWO, *session.posargs)
