"""What is published says the same everywhere: lower bounds, versions, links, references."""

import re
import runpy
from importlib.metadata import metadata, requires
from pathlib import Path

import pytest

import finsler_ext

ROOT = Path(__file__).parent.parent
LINKS = runpy.run_path(str(ROOT / "release" / "links.py"))


def lower_bounds(*extras) -> dict[str, str]:
    """Packages that an installation needs, in lower case, with their lowest versions."""
    found = {}
    for line in requires("finsler_ext") or []:
        needed, _, when = line.partition(";")
        extra = re.search(r"extra == .(\w+)", when)
        if extra is None or extra[1] in extras:
            bound = re.fullmatch(r"([\w.-]+)(?:\[.*\])?>=([\d.]+)", needed.replace(" ", ""))
            if bound:  # the linters have an upper bound, too, and no part in the tests
                found[bound[1].lower()] = bound[2]
    return found


def test_the_lowest_versions_are_those_that_are_tested():
    bounds = lower_bounds("plot", "large", "test")
    del bounds["mypy"]
    pinned = re.findall(
        r'"([\w-]+)==([\d.]+\d)(?:\.\*|\.post\d+)?"', (ROOT / "noxfile.py").read_text()
    )
    assert {name.lower(): version for name, version in pinned} == bounds


def test_the_conda_recipe_asks_for_the_same():
    recipe = (ROOT / "release" / "conda-forge" / "recipe.yaml").read_text()
    run = recipe.partition("  run:\n")[2].partition("  run_constraints:")[0]
    asked = dict(re.findall(r"- ([\w-]+) >=([\d.]+)\n", run))
    assert asked == lower_bounds()
    others = recipe.partition("  run_constraints:\n")[2].partition("\ntests:")[0]
    bounds = lower_bounds("dask")  # Dask needs a later pyarrow than a parquet file
    bounds |= lower_bounds("plot", "large", "parquet", "h5ad", "scanpy", "imports")
    conda_names = {"matplotlib": "matplotlib-base", "dask": "dask-core"}
    extras = {conda_names.get(n, n): b for n, b in bounds.items() if n not in asked}
    assert dict(re.findall(r"- ([\w-]+) >=([\d.]+)\n", others)) == extras
    assert f'version: "{finsler_ext.__version__}"' in recipe
    lowest = metadata("finsler_ext")["Requires-Python"].removeprefix(">=")
    assert f'python_min: "{lowest}"' in recipe


def test_one_version_everywhere():
    version = finsler_ext.__version__
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{version}}}" in (ROOT / "docs" / "cite.md").read_text()
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_licence_is_named_for_machines():
    about = metadata("finsler_ext")
    assert about["License-Expression"] == "BSD-3-Clause"
    assert about.get_all("License-File") == ["LICENSE"]


def test_every_reference_of_the_paper_is_there_and_used():
    text = (ROOT / "paper" / "paper.md").read_text()
    books = (ROOT / "paper" / "paper.bib").read_text()
    assert set(re.findall(r"@([a-z]+)\b", text)) == set(re.findall(r"^@\w+\{(\w+),", books, re.M))
    (picture,) = re.findall(r"\]\((\S+\.png)\)", text)
    assert (ROOT / "paper" / picture).exists()
    assert 250 <= len(text.split()) <= 1750  # what the journal takes


def test_links_of_a_release_are_absolute():
    readme = (ROOT / "README.md").read_text()
    made = LINKS["absolute"](readme, "someone/finsler_ext", "v0.2.0")
    targets = re.findall(r"\]\(([^)\s]+)\)", made)
    assert len(targets) == len(re.findall(r"\]\(([^)\s]+)\)", readme)) > 10
    assert all(target.startswith("https://") for target in targets)
    raw = "https://raw.githubusercontent.com/someone/finsler_ext/v0.2.0/docs/flights.png"
    assert raw in targets
    # nothing but targets changed
    assert re.sub(r"\]\([^)]*\)", "", made) == re.sub(r"\]\([^)]*\)", "", readme)


def test_urls_of_a_release():
    settings = (ROOT / "pyproject.toml").read_text()
    made = LINKS["with_urls"](settings, "Someone/finsler_ext")
    urls = made.partition("[project.urls]\n")[2].partition("\n[")[0]
    named = dict(re.findall(r'^(\w+) = "(https://[^"]+)"$', urls, re.M))
    assert set(named) == {"Source", "Documentation", "Issues", "Changelog", "Paper"}
    with pytest.raises(ValueError, match="one section"):
        LINKS["with_urls"]("", "a/b")
