"""Print what the paper's tables imply; see ``benchmarks.paper.published``."""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from benchmarks.paper import published
from benchmarks.paper.published import SHAPE_SCORES, SIZES, failed_runs


def summary() -> None:
    """Failed runs by row, and the paper's gain with and without them."""
    table = failed_runs.gains()
    digits = {name: 3 for name in table.select_dtypes(float)}
    print(table.round(digits).to_string(index=False))
    drifts = failed_runs.rows()
    drifts = drifts[drifts.table == "drift_umap"]
    for method, found in drifts.groupby("method"):
        print(f"{method}: {int(found.failed.sum())} of {len(found) * failed_runs.RUNS} runs failed")
    for name, words in (
        ("printed", "as printed"),
        ("same_drift", "without failed runs"),
        ("best_drift", "without failed runs, drift chosen anew"),
    ):
        gap = table[name]
        print(f"{words}: mean gain in AMI {gap.mean():+.4f}, {int((gap > 0).sum())} of {len(gap)}")
    hit = table[(table.failed_umap > 0)]
    print(f"the {len(hit)} sets with failed runs of UMAP: {hit.printed.mean():+.4f} as printed, "
          f"{hit.same_drift.mean():+.4f} without")  # fmt: skip
    for ddof in (0, 1):
        chance = failed_runs.read_as(ddof)
        print(f"ddof = {ddof}: AMI of failed runs {chance.min():+.4f} to {chance.max():+.4f}, "
              f"median {np.median(chance):+.4f}")  # fmt: skip


def every_row() -> None:
    """Good and failed value of every score."""
    found = failed_runs.solved()
    columns = ["table", "data", "method", "drift", "score", "mean", "sd", "failed", "good", "bad"]
    print(found[columns].round(3).to_string(index=False))


def by_chance() -> None:
    """Failed values beside those of unrelated labels and of layouts without clusters."""
    from benchmarks.paper.published.chance import blob, unrelated

    found = failed_runs.solved()
    found = found[found.table == "drift_umap"]
    lines = []
    for (data, method), rows in found.groupby(["data", "method"], sort=False):
        failed = rows.groupby("score").bad.mean()
        nmi, fmi = unrelated(*SIZES[data])
        lines.append((data, method, failed["nmi"], nmi, failed["fmi"], fmi))
    header = ["data", "method", "NMI, failed", "unrelated", "FMI, failed", "unrelated, equal sizes"]
    print(pd.DataFrame(lines, columns=header).round(3).to_string(index=False))
    for data in ("CIFAR10", "CIFAR100"):
        points, classes = SIZES[data]
        for method, columns in (("umap", 2), ("finsler_umap", 3)):
            rows = found[(found.data == data) & (found.method == method)]
            failed = rows.groupby("score").bad.mean()
            per_point = failed["calinski_harabasz"] / points
            print(f"{data}, {method}, failed: "
                  + ", ".join(f"{s} {failed[s]:.3f}" for s in SHAPE_SCORES[:2])
                  + f", calinski_harabasz per point {per_point:.3f}")  # fmt: skip
            for shape in ("ball", "normal"):
                print(f"    k-means on a {shape} in {columns}-D:",
                      ", ".join(f"{v:.3f}" for v in blob(columns, classes, shape)))  # fmt: skip


def provoke() -> None:
    from benchmarks.paper.published.provoke import main

    main()


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper.published",
        description=published.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = {"summary": summary, "rows": every_row, "chance": by_chance, "provoke": provoke}
    parser.add_argument("part", nargs="?", choices=list(parts), default="summary")
    parts[parser.parse_args(argv).part]()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
