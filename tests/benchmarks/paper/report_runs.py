"""Made-up runs for the tests of the report."""

import re

import pandas as pd

from benchmarks.ledger import FIELDS, read_runs
from benchmarks.paper.experiments import EXPERIMENTS

DATA = ("iris", "digits", "dtd10")


def runs_of(scores, data=DATA, score="ami", seeds=4):
    """Runs whose score is the given number (or that of each data set), and a little by seed."""
    rows = []
    for method, level in scores.items():
        levels = level if isinstance(level, tuple) else (level,) * len(data)
        for name, value in zip(data, levels, strict=True):
            rows += [(name, method, s, score, value + s / 128, "") for s in range(seeds)]
    return pd.DataFrame(rows, columns=list(FIELDS))


def nothing():
    return {name: read_runs([]) for name in EXPERIMENTS}


def of_four(level):
    return {f"finsler_umap_{w}_3d": level for w in ("0.001", "0.01", "0.1", "0.5")}


def tables_are_whole(text):
    """Every row of a table has as many cells as its header."""
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({line.count("|") for line in block.splitlines()}) == 1, block
