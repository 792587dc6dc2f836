"""Tables of held and free heights beside their parents: is the drop-in never worse?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.markdown import NOT_RUN, command, folded, interval, number, table
from benchmarks.paper.report.comparisons import compare
from benchmarks.paper.report.finding import Runs, joined, middle

DRIFTS = (0.001, 0.01, 0.1, 0.3, 0.5, 0.9)
FAMILIES = {"umap": "drop_in", "tsne": "drop_in_tsne"}
RUN = ["data", "method", "seed"]
PARENTS = {"umap": "UMAP", "tsne": "openTSNE"}
# (height, columns), and whether "auto" takes it.
LAYOUTS = ((("free", 2), True), (("held", 3), True), (("free", 3), False), (("held", 2), False))


def drop_in(runs: Runs) -> str:
    parts = [
        "## In place of the parent\n",
        "Median paired differences to the parent in two dimensions with the same seed and the "
        "same neighbours, with their intervals; sign is the share of neighbour pairs that the "
        "height orders rightly, ρ is Spearman(height, log local scale). Heights across islands "
        "are settled by log local scale, so ρ is partly by construction; sign is not. "
        '`height="auto"` is free with two columns and held with three.\n',
    ]
    for family, name in FAMILIES.items():
        found = runs[name]
        parts += [f"### {PARENTS[family]}\n", command(name)]
        if found.empty:
            parts.append(NOT_RUN)
            continue
        for (height, columns), is_auto in LAYOUTS:
            rows = _rows(found, family, height, columns)
            if rows:
                title = f"{height}, {columns} columns{' (auto)' if is_auto else ''}"
                parts.append(folded(title, table(HEADER, rows)) + "\n")
        parts.append(_negative(found))
    return "\n".join(parts)


HEADER = ("data", "ω", "seeds", "AMI", "AMI, map", "15-NN", "15-NN, map", "sign", "ρ", "loss")


def _rows(found: pd.DataFrame, family: str, height: str, columns: int) -> list[tuple]:
    rows = []
    parent = f"{family}_2d"
    for data in dict.fromkeys(found.data):
        for drift in DRIFTS:
            method = f"{family}_{height}_{drift:g}_{columns}d"
            mine = found[(found.data == data) & (found.method == method)]
            if mine.empty:
                continue
            gaps = [
                interval(_against(found, data, method, parent, score))
                for score in ("ami", "ami_map", "knn15", "knn15_map")
            ]
            cost = "loss" if family == "umap" else "kl"
            shown = [number(middle(found, data, method, s)) for s in ("sign", "density_height")]
            total = middle(found, data, method, cost)
            rows.append(
                (data, f"{drift:g}", str(mine.seed.nunique()), *gaps, *shown, f"{total:.4g}")
            )
    return rows


def _against(found, data, method, parent, score):
    """A score of the map alone is compared with the parent's score of all its columns."""
    theirs = score.removesuffix("_map")
    if theirs == score:
        return compare(found, data, method, parent, score)
    renamed = found[found.method == parent].assign(
        score=lambda runs: runs.score.astype(str).replace({theirs: score})
    )
    own = found[found.method == method]
    both = joined(own.astype({"score": str}), renamed)
    return compare(both, data, method, parent, score)


def _negative(found: pd.DataFrame) -> str:
    heights = found[(found.score == "density_height") & ~found.method.str.match(r"(umap|tsne)_\dd")]
    if heights.empty:
        return ""
    below = heights[heights.value < 0]
    text = (
        f"ρ ≥ 0 in {len(heights) - len(below)} of {len(heights)} runs "
        f"({1 - len(below) / len(heights):.0%})."
    )
    cost = {
        score: found[found.score == score].set_index(RUN).value.to_dict()
        for score in ("loss", "kl", "loss_opposite")
    }
    rows = []
    for run in below.sort_values(RUN).itertuples():
        key = (run.data, run.method, run.seed)
        here = cost["loss"].get(key, cost["kl"].get(key, np.nan))
        opposite = cost["loss_opposite"].get(key, np.nan)
        rows.append((*map(str, key), number(run.value), f"{here:.6g}", f"{opposite:.6g}"))
    if not rows:
        return text
    share = {
        kind: np.mean(heights[heights.method.str.contains(kind)].value >= 0)
        for kind in ("held", "free")
        if heights.method.str.contains(kind).any()
    }
    shares = ", ".join(f"{kind} {value:.0%}" for kind, value in share.items())
    header = ("data", "method", "seed", "ρ", "loss", "loss under the opposite drift")
    return f"{text} By kind: {shares}.\n\n" + folded("Runs with ρ < 0", table(header, rows)) + "\n"
