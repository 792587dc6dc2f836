"""Times of whole fits, beside the paper's, and what they say about its running times."""

from __future__ import annotations

import pandas as pd

from benchmarks.report.finding import NOT_YET, Finding, Runs
from benchmarks.report.markdown import NOT_RUN, number, table
from benchmarks.speed_all import METHODS

__all__ = ["share", "speed", "tsne_time", "umap_time"]

DATA = "imagenette"


def speed(runs: Runs) -> str:
    """All methods against their parents in one run, and the paper's seconds."""
    found = _times(runs)
    text = (
        "## Speed\n\n    python -m benchmarks.speed all --data imagenette --data-dir DIR\n\n"
        "Whole fits on Imagenette, from features to embedding (MDS: from distances), interleaved "
        "in one run, each in a process of its own after a warm-up, with random_state=0 and two "
        "cores; umap-learn uses one when seeded. *Of the parent*: median over repeats of the "
        "ratio of times. The paper's seconds are from another processor and other features: "
        "context, not a ratio. Its t-SNE is exact, over all pairs; scikit-learn's exact t-SNE was "
        "not timed.\n\n"
    )
    if found.empty:
        return text + NOT_RUN
    rows = []
    for method, timed in METHODS.items():
        ours = found[found.method == method].sort_values("repeat")
        if ours.empty:
            continue
        ratio = share(found, method, timed.parent) if timed.parent else float("nan")
        rows.append(
            (
                timed.title,
                str(int(ours.rows.iloc[0])),
                "" if timed.paper is None else str(timed.paper),
                number(ours.seconds.median(), 1),
                ", ".join(number(s, 1) for s in ours.seconds),
                "" if timed.parent is None else f"{number(ratio, 2)} ({timed.parent})",
                number(ours.peak_mib.median(), 0),
            )
        )
    header = ("method", "rows", "paper, s", "here, s", "every repeat", "of the parent", "peak, MiB")
    return text + table(header, rows)


def share(found: pd.DataFrame, method: str, parent: str) -> float:
    """Median over repeats of a method's time in units of another's; nan where one is missing."""
    by_repeat = found.pivot_table(index="repeat", columns="method", values="seconds")
    if not {method, parent} <= set(by_repeat):
        return float("nan")
    return float((by_repeat[method] / by_repeat[parent]).median())


def umap_time(runs: Runs) -> Finding:
    return _judge(runs, "finsler_umap", ("umap_2d", "umap_3d"), 1.0)


def tsne_time(runs: Runs) -> Finding:
    """The paper's ratio is of exact methods."""
    exact = _judge(runs, "exact_finsler_tsne", ("exact_tsne",), 9700 / 2500)
    tree = _judge(runs, "finsler_tsne", ("opentsne_2d", "opentsne_3d"), 1.0)
    if NOT_YET in (exact.verdict, tree.verdict):
        return Finding("", NOT_YET)
    return Finding(
        f"all pairs: {exact.ours}; by a tree: {tree.ours}",
        f"all pairs: {exact.verdict}; by a tree: {tree.verdict} than the parent",
    )


def _judge(runs: Runs, ours: str, parents: tuple[str, ...], expected: float) -> Finding:
    """Whether a method takes less time than expected, in units of the first parent's."""
    found = _times(runs)
    if found.empty:
        return Finding("", NOT_YET)
    shares = {name: share(found, ours, name) for name in parents}
    if pd.isna(shares[parents[0]]):
        return Finding("", NOT_YET)
    words = ", ".join(
        f"{value:.2f} of the time of {METHODS[name].title}"
        for name, value in shares.items()
        if not pd.isna(value)
    )
    return Finding(words, "costs less" if shares[parents[0]] < expected else "costs more")


def _times(runs: Runs) -> pd.DataFrame:
    found = runs.get("speed_all", pd.DataFrame())
    if not len(found):
        return pd.DataFrame()
    return found[found.data.astype(str) == DATA].drop_duplicates(["method", "repeat"], keep="last")
