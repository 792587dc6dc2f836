"""Times of whole fits, beside the paper's, and what they say about its running times."""

from __future__ import annotations

import pandas as pd

from benchmarks.markdown import NOT_RUN, number, table
from benchmarks.paper.report.finding import HOLDS, NOT_YET, Finding, Runs, of_cases
from benchmarks.paper.speed_all import METHODS

__all__ = ["fit_ratio", "share", "speed", "tsne_slower", "tsne_time", "umap_time"]

DATA = "imagenette"
# A difference of time that a reader would call "about as much".
LITTLE_TIME = 0.25


def speed(runs: Runs) -> str:
    """All methods against their parents in one run, and the paper's seconds."""
    found = _times(runs)
    text = (
        "## Speed\n\n    python -m benchmarks.paper.speed_all --data imagenette --data-dir DIR\n\n"
        "Whole fits on Imagenette, from features to embedding (MDS: from distances), interleaved "
        "in one run, each in a process of its own after a warm-up, with random_state=0 and all "
        "cores (umap-learn uses one when seeded). *Of the parent*: median over repeats of the "
        "ratio of times. The paper's seconds are from another processor and other features: "
        "context, not a ratio. Its t-SNE is exact, over all pairs; scikit-learn's exact t-SNE was "
        "not timed.\n\n"
    )
    if found.empty:
        return text + NOT_RUN
    text += f"{found.cores.iloc[0]} cores, run of {found.run.iloc[0][:10]}.\n\n"
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


def share(found: pd.DataFrame, method: str, parent: str, time: str = "seconds") -> float:
    """Median over repeats of a method's time in units of another's; nan where one is missing."""
    by_repeat = found.pivot_table(index="repeat", columns="method", values=time)
    if not {method, parent} <= set(by_repeat):
        return float("nan")
    return float((by_repeat[method] / by_repeat[parent]).median())


def fit_ratio(runs: Runs, method: str, parent: str) -> float:
    """A method's time of a whole fit in units of its parent's; nan where one is missing."""
    found = _times(runs)
    return float("nan") if found.empty else share(found, method, parent)


def tsne_slower(runs: Runs) -> Finding:
    """t-SNE takes longer than UMAP, Euclidean and Finsler alike."""
    pairs = (("opentsne_2d", "umap_2d"), ("finsler_tsne", "finsler_umap"))
    ratios = [fit_ratio(runs, *pair) for pair in pairs]
    if any(pd.isna(ratios)):
        return Finding("", NOT_YET)
    return Finding(
        f"Whole fits: t-SNE takes {ratios[0]:.1f} times as long as UMAP, Finsler t-SNE "
        f"{ratios[1]:.1f} times as long as Finsler UMAP",
        of_cases([ratio > 1 for ratio in ratios]),
    )


def umap_time(runs: Runs) -> Finding:
    """The paper's Finsler UMAP takes 12 s, and its UMAP 10 or 16."""
    return _judge(runs, "finsler_umap", ("umap_2d", "umap_3d"), 1.0)


def tsne_time(runs: Runs) -> Finding:
    """The paper's ratio is of exact methods; ours beside openTSNE is added."""
    paper = METHODS["exact_finsler_tsne"].paper / METHODS["exact_tsne"].paper
    exact = _judge(runs, "exact_finsler_tsne", ("exact_tsne",), paper)
    tree = _judge(runs, "finsler_tsne", ("opentsne_2d", "opentsne_3d"), 1.0)
    if NOT_YET in (exact.verdict, tree.verdict):
        return Finding("", NOT_YET)
    return Finding(
        f"Over all pairs: {exact.ours}. By a tree: {tree.ours}",
        exact.verdict,
        f"all pairs: {exact.note or exact.verdict}; by a tree: {tree.note or tree.verdict}",
    )


def _judge(runs: Runs, ours: str, parents: tuple[str, ...], expected: float) -> Finding:
    """Whether a method takes the expected share of the first parent's time."""
    found = _times(runs)
    shares = {} if found.empty else {name: share(found, ours, name) for name in parents}
    known = {name: value for name, value in shares.items() if not pd.isna(value)}
    if parents[0] not in known:
        return Finding("", NOT_YET)
    words = ", ".join(
        f"{value:.2f} of the time of {METHODS[name].title} "
        f"({share(found, ours, name, 'cpu'):.2f} of its processor time)"
        for name, value in known.items()
    )
    first = known[parents[0]]
    if abs(first / expected - 1) <= LITTLE_TIME:
        return Finding(words, HOLDS)
    how = "less" if first < expected else "more"
    return Finding(
        words, f"costs {how}", f"{first:.2f} times the parent's time, not {expected:.1f}"
    )


def _times(runs: Runs) -> pd.DataFrame:
    """The fits of the latest run on the data set: only these were interleaved."""
    found = runs.get("speed_all", pd.DataFrame())
    if not len(found):
        return pd.DataFrame()
    found = found[found.data.astype(str) == DATA]
    return found[found.run == found.run.max()]
