"""The paper's sixteen data sets: which of them are at hand, and with which rows.

    python -m benchmarks.data --data-dir DIR

One line for each set: rows × columns and classes in the paper, what `load` finds by the name of
the paper's rows and, where the experiments run other rows, by that name. Nothing is downloaded.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.data import load
from benchmarks.data.paper_sets import PAPER_SETS, PaperSet

__all__ = ["at_hand", "lines"]


def at_hand(name: str, data_dir: str | None) -> str:
    """Rows × columns and classes of a set in the data folder, or that it is not there."""
    try:
        found = load(name, data_dir=data_dir, download=False)
    except FileNotFoundError:
        return f"{name}: not at hand"
    except ValueError as error:
        return f"{name}: not as in the paper ({error})"
    rows, columns = found.X.shape
    return f"{name}: {rows} × {columns}, {len(np.unique(found.labels))} classes"


def lines(data_dir: str | None, sets: tuple[PaperSet, ...] = PAPER_SETS) -> list[str]:
    texts = []
    for wanted in sets:
        here = [at_hand(name, data_dir) for name in dict.fromkeys((wanted.name, wanted.run_as))]
        paper = f"{wanted.rows} × {wanted.columns}, {wanted.classes} classes"
        texts.append(f"{wanted.title:18s} paper {paper:33s} here " + "; ".join(here))
    return texts


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.data",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data-dir", help="folder of npz files and of the publishers' files")
    for line in lines(parser.parse_args(argv).data_dir):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
