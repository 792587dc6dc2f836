"""A tidy CSV of finished runs: one line per score of a run, appended as runs end."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

__all__ = ["FAILED", "FIELDS", "RESULTS", "Ledger", "read_runs"]

RESULTS = Path(__file__).parent / "results"
FIELDS = ("data", "method", "seed", "score", "value", "note")
# The score of a run that raised an error or ended in a degenerate layout; the note says why.
FAILED = "failed"


class Ledger:
    """Runs by data, method and seed; a run that is found here is not repeated.

    A file that has other columns, such as no note, keeps them.
    """

    def __init__(self, path: Path):
        self.path = path
        self._done: set[tuple[str, str, str]] = set()
        self._fields: Sequence[str] = FIELDS
        if path.is_file():
            with path.open(newline="") as lines:
                rows = csv.DictReader(lines)
                self._fields = rows.fieldnames or FIELDS
                self._done = {(r["data"], r["method"], r["seed"]) for r in rows}

    def __len__(self) -> int:
        return len(self._done)

    def has(self, data: str, method: str, seed: int) -> bool:
        return (data, method, str(seed)) in self._done

    def add(
        self, data: str, method: str, seed: int, scores: dict[str, float], note: str = ""
    ) -> None:
        """Append a finished run; all its lines are written at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = not self.path.is_file()
        with self.path.open("a", newline="") as out:
            writer = csv.DictWriter(out, self._fields, extrasaction="ignore", lineterminator="\n")
            if new:
                writer.writeheader()
            for score, value in scores.items():
                row = (data, method, seed, score, f"{value:.5g}", note)
                writer.writerow(dict(zip(FIELDS, row, strict=True)))
        self._done.add((data, method, str(seed)))


def read_runs(paths: Iterable[Path]) -> pd.DataFrame:
    """All runs of some ledgers in one table; those that do not exist yet are left out."""
    frames = [pd.read_csv(path, dtype={"note": str}) for path in paths if path.is_file()]
    if not frames:
        return pd.DataFrame(columns=list(FIELDS))
    return pd.concat(frames, ignore_index=True).reindex(columns=list(FIELDS))
