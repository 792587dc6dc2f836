"""The page as a whole: numbers in words, links, tables, the first screen."""

import re

from benchmarks.ledger import FAILED, Ledger
from benchmarks.markdown import interval, number
from benchmarks.paper.experiments import EXPERIMENTS
from benchmarks.paper.published import OURS
from benchmarks.paper.report import write
from benchmarks.paper.report.claims import CLAIMS
from benchmarks.paper.report.failed_tables import failed_in_the_paper
from benchmarks.paper.report.finding import (
    DOES_NOT,
    HOLDS,
    NOT_TESTED,
    NOT_YET,
    PARTLY,
    Finding,
)
from benchmarks.paper.report.first_screen import first_screen
from benchmarks.paper.runner import ledger_path
from benchmarks.summary import Difference
from tests.benchmarks.paper.report_runs import nothing, tables_are_whole


def test_numbers_in_words():
    assert number(-0.12345) == "−0.123"
    assert number(float("nan")) == ""
    assert interval(Difference(0.1, -0.05, 0.2, 3)) == "[−0.050, +0.200]"
    assert interval(Difference(-0.1, float("nan"), float("nan"), 1)) == "−0.100 (one pair)"
    assert interval(Difference(*[float("nan")] * 3, 0)) == ""


def test_a_report_of_nothing(tmp_path):
    write(tmp_path / "results", tmp_path / "RESULTS.md")
    text = (tmp_path / "RESULTS.md").read_text()
    assert text.startswith("# Results\n")
    assert NOT_YET in text
    assert "0 of 0 runs." in text
    assert "Not run yet." in text
    assert all(claim.statement in text for claim in CLAIMS)
    assert all(f"](#claim-{c.name})" in text and f"### Claim: {c.name}\n" in text for c in CLAIMS)
    assert not set("†‡") & set(text)
    assert all(f"python -m benchmarks.paper run {name}" in text for name in EXPERIMENTS)
    tables_are_whole(text)


def test_the_first_screen_counts_verdicts():
    words = [HOLDS, DOES_NOT, PARTLY, NOT_TESTED, NOT_YET]
    found = {c.name: Finding("", words[i % 5]) for i, c in enumerate(CLAIMS)}
    total = len(CLAIMS)
    text = first_screen(nothing(), found)
    counts = [int(n) for n in re.findall(r"(\d+) (?:hold|do not|are not)", text)]
    assert sum(counts) == total
    assert "from +0.077 to +0.010" in text
    assert len(OURS) == 9


def test_provoked_failures_are_printed_as_the_paper_would(tmp_path):
    ledger = Ledger(tmp_path / "provoked.csv")
    for data in ("iris", "digits:600"):
        for attempt, level in (("spectral", 0.9), ("other_order", 0.0)):
            for seed in range(10):
                scores = {"ami": level, "nmi": level, "fmi": level}
                ledger.add(data, attempt, seed, scores | {"silhouette": 0.8, "davies_bouldin": 0.3})
    text = failed_in_the_paper(nothing(), tmp_path)
    assert "AMI 0.720 ± 0.360, NMI 0.720 ± 0.360, silhouette 0.800 ± 0.000" in text
    assert "neighbours of the same rows in another order | 10 of 10 | 0.00" in text
    assert (
        "| Imagenette | 0.750 | 0.846 (0.001) | +0.096 | 2 | 1, 1, 1, 1 | 0.938 | 0.940 |" in text
    )
    tables_are_whole(text)
    assert "Not run yet." in failed_in_the_paper(nothing(), tmp_path / "nothing")


def test_claims_have_names_of_their_own():
    assert len({c.name for c in CLAIMS}) == len(CLAIMS)
    assert all(len(c.statement) < 110 and c.place for c in CLAIMS)


def test_links_within_the_page_lead_somewhere(tmp_path):
    write(tmp_path / "results", tmp_path / "RESULTS.md")
    text = (tmp_path / "RESULTS.md").read_text()
    anchors = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        kept = re.sub(r"[^\w\- ]", "", heading.lower())
        anchors.add(kept.replace(" ", "-"))
    missing = {link for link in re.findall(r"\]\(#([^)]+)\)", text) if link not in anchors}
    assert not missing


def test_a_report_of_every_experiment(tmp_path):
    for name, experiment in EXPERIMENTS.items():
        ledger = Ledger(ledger_path(name, tmp_path))
        for seed in range(2):
            for step, method in enumerate(experiment.methods):
                for data in experiment.data[:1]:
                    level = 0.5 + step / 64 + seed / 128
                    scores = ("ami", "knn5", "silhouette", "sign", "height_radius", "stress",
                              "height_order", "density_height", "procrustes", "seconds", "rises",
                              "axis_elevation", "height_elevation", "trust", "knn15")  # fmt: skip
                    ledger.add(data, method, seed, dict.fromkeys(scores, level))
    Ledger(ledger_path("umap", tmp_path)).add("iris", "umap_2d", 9, {FAILED: 1.0}, "a | b")
    write(tmp_path, tmp_path / "RESULTS.md")
    text = (tmp_path / "RESULTS.md").read_text()
    assert re.search(r"\| iris \| umap_2d \| 9 \| a / b \|", text)
    assert re.search(r"1 of \d+ runs\.", text)
    tables_are_whole(text)
