"""A tidy CSV of finished runs: one line per score of a run, appended as runs end."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

__all__ = ["FAILED", "FIELDS", "RESULTS", "Ledger", "read_runs"]

RESULTS = Path(__file__).parent / "results"
FIELDS = ("data", "method", "seed", "score", "value", "note")
# The score of a run that raised an error or ended in a degenerate layout; the note says why.
FAILED = "failed"


class Ledger:
    """Runs by data, method and seed; a run that is found here is not repeated."""

    def __init__(self, path: Path):
        self.path = path
        self._done: set[tuple[str, str, str]] = set()
        if path.is_file():
            with path.open(newline="") as lines:
                self._done = {(r["data"], r["method"], r["seed"]) for r in csv.DictReader(lines)}

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
            writer = csv.writer(out, lineterminator="\n")
            if new:
                writer.writerow(FIELDS)
            writer.writerows(
                (data, method, seed, score, f"{value:.5g}", note) for score, value in scores.items()
            )
        self._done.add((data, method, str(seed)))


def read_runs(paths: Iterable[Path]) -> pd.DataFrame:
    """All runs of some ledgers in one table; those that do not exist yet are left out."""
    frames = [pd.read_csv(path, dtype={"note": str}) for path in paths if path.is_file()]
    if not frames:
        return pd.DataFrame(columns=list(FIELDS))
    return pd.concat(frames, ignore_index=True)
