"""results/directed.md: what the runs of `benchmarks.directed` say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import markdown
from finsler_ext.mds.scaling import SCALINGS

__all__ = ["PAGE", "write"]

# An order that is this much below another is as good.
NEAR = 0.01
PAGE = Path(__file__).parent / "results" / "directed.md"
# Models with one more number per point than the others.
ONE_MORE = ("radius distance, 3 + 1", "Randers, plain, and potential")
ANY_HEIGHT = "any height at most"
# A share of the asymmetry that is this much below another is as good.
EXPLAINED_NEAR = 0.02
# Between these two lines the page is written by `write`.
BEGIN, END = "<!-- directed: begin -->", "<!-- directed: end -->"

OPENING = """## Directed data

`python -m benchmarks.directed stress limits order truth field speed --data-dir DIR` runs all of
this; `benchmarks/data/digraphs.py` says where the data come from. Medians over seeds.
"""
STRESS = """### Stress on pairs held out

Σ (D − prediction)²/Σ D² over a tenth of the pairs, at most 200 points per set, three numbers per
point (radius distance: two columns and a radius); the last two models have one more. "Randers" is
`FinslerMDS(skew_weight="auto")` with two noise levels, which ordinal scaling does not have,
"Randers, plain" the stress of the paper. Each model has the scaling that predicts another tenth of
the pairs best over all seeds; its first letter is given. In bold the lowest of those with three
numbers; what is within 10 % of it is marked by +. The printed SMACOF has the drift and the constant
of plain Randers. The scaling was first chosen seed by seed; it was pooled over seeds after Morse
(36 points, some sixty pairs to choose by) had come out above the best that way. Both are given
below.
"""
LIMITS = """\
"Any height at most" is the gradient share of the distances themselves: but for chance, no height
shows more. A slide vector can, because it also shows asymmetry that is no difference of heights
(velocity). Where a third map column fits distances much better than two (Winnipeg, Austin), the
last column is either that one or shows the asymmetry. Layouts of interval scaling were made there
at {n_drifts} drifts and {n_weights} weights of the skew part each. Of those whose share is within
{near} of the highest, the lowest stress in units of that of all is {cost}.
`potential_` beside plain stress shows both, at one more number per point.
"""
ORDER = """### Direction of edges held out

A fifth of the one-way edges of each graph is held out. AUC of "edges lead downhill"; 0.5 is chance.
"potential" is `potential_` of every fit, "ridge auto" `finsler_ext.metrics.potential(data,
ridge="auto")`: the ridge, relative to the mean degree, that best predicts a fifth of the edges that
are left. The rule was tried on planted graphs first; that it goes on to an infinite ridge (the
difference of degrees) and repeats its rounds on small graphs was decided after a look at these
sets. Of the routes of airlines 2 % are one-way, and the rest predicts their reverse: A → B → C → A
is a round trip. pbs-client has 40 edges, of which 8 are held out.
"""
TRUTH = """### Orders known from elsewhere

Chance that two nodes of different stages, layers or classes are in the right order; of citations,
Spearman's correlation with the month. SpringRank has the raw strengths. "ridge auto" is the ridge
that best tells the direction of single edges; it draws the ends of long chains together.
"""
FIELD = """
### One drift or a field

Share of Σ (D_ij − D_ji)² on pairs held out that one drift and a drift field explain, and the case
that `fit_drift_field` reports.
"""
SPEED = """
### Time and memory

FinslerMDS has `omega_norm="auto"`. It embeds hops of a planted digraph of eight links per node, and
the streets of a generated town with one-way streets and a slope, shortest paths included; graphs of
more than 5000 nodes have 100 pivots. FinslerUMAP fits a path of one-way edges, and `gradient_share`
a path with lengths of its own in both directions, where conjugate gradients stall. Times are of the
second call; the peak is that of the whole process, so far.
"""


def write(runs: dict[str, pd.DataFrame], output: Path) -> None:
    """Write that part of the page from the tables of runs; a page without the marks gets them."""
    parts = [OPENING]
    makers = {"order": _order, "truth": _truth, "field": _field, "speed": _speed}
    if len(runs["stress"]):
        parts.append(_stress(runs["stress"], runs["limits"]))
    parts += [make(runs[part]) for part, make in makers.items() if len(runs[part])]
    text = output.read_text(encoding="utf-8") if output.is_file() else ""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    made = "\n".join([BEGIN, *parts, END])
    output.write_text(f"{before}{made}{after or chr(10)}", encoding="utf-8")


def _medians(runs: pd.DataFrame, score: str, how: str = "median") -> pd.DataFrame:
    """Sets as rows and methods as columns, in the order of the runs."""
    found = runs[runs.score == score]
    table = found.pivot_table(
        index="data", columns="method", values="value", aggfunc=how, sort=False
    )
    return table[list(dict.fromkeys(found.method))]


def _chosen(runs: pd.DataFrame) -> pd.DataFrame:
    """The scaling of every set (rows) and model (columns): the lowest error, over all seeds."""
    errors = {kind: _medians(runs, f"choice {kind}", "mean") for kind in SCALINGS}
    first = errors[SCALINGS[0]]
    stacked = np.stack(
        [
            errors[k].reindex(index=first.index, columns=first.columns).fillna(np.inf)
            for k in SCALINGS
        ]
    )
    return pd.DataFrame(stacked.argmin(axis=0), index=first.index, columns=first.columns)


def _of_chosen(runs: pd.DataFrame, chosen: pd.DataFrame, score: str) -> pd.DataFrame:
    tables = [_medians(runs, f"{score} {kind}") for kind in SCALINGS]
    found = chosen.astype(float)
    for name in chosen.index:
        for method in chosen.columns:
            found.loc[name, method] = tables[chosen.loc[name, method]].loc[name, method]
    return found


def _chosen_by_seed(runs: pd.DataFrame) -> pd.DataFrame:
    """Median stress where every seed chooses its own scaling."""
    wide = runs.pivot_table(index=["data", "method", "seed"], columns="score", values="value")
    errors = np.column_stack([wide[f"choice {kind}"].fillna(np.inf) for kind in SCALINGS])
    judged = np.column_stack([wide[f"stress {kind}"] for kind in SCALINGS])
    own = np.take_along_axis(judged, errors.argmin(axis=1)[:, None], axis=1)[:, 0]
    return pd.Series(own, wide.index).groupby(["data", "method"]).median().unstack()


def _stress(runs: pd.DataFrame, limits: pd.DataFrame) -> str:
    chosen = _chosen(runs)
    table = _of_chosen(runs, chosen, "stress")
    rows, lowest, near = [], 0, 0
    fair = [m for m in table.columns if m not in ONE_MORE]
    for name, values in table.iterrows():
        best = values[fair].min()
        cells = [str(name)]
        for method, value in values.items():
            mark = "**" if value == best else ""
            close = "+" if best < value <= 1.1 * best else ""
            cells.append(f"{mark}{value:.4f}{mark}{close} {SCALINGS[chosen.loc[name, method]][0]}")
        rows.append(cells)
        lowest += values["Randers"] == best
        near += values["Randers"] <= 1.1 * best
    words = (
        f"Randers is lowest on {lowest} of {len(rows)} sets and within 10 % of the lowest on "
        f"{near}.\n"
    )
    single = _chosen_by_seed(runs)[fair]
    ratio = single["Randers"] / single.min(axis=1)
    worst = ", ".join(f"{name} {value - 1:.0%}" for name, value in ratio.items() if value > 1.1)
    words += (
        "Where every seed chooses its own scaling, which is noisy on few pairs, it is lowest on "
        f"{(ratio == 1).sum()} and within 10 % on {(ratio <= 1.1).sum()}"
        + (f" (above: {worst}).\n" if worst else ".\n")
    )
    over = [m for m in table.columns if _rose(runs, m)]
    words += "The stress rose at some steps of: " + (", ".join(over) or "none") + "."
    explained, sign = (_of_chosen(runs, chosen, score) for score in ("explained", "sign"))
    near_both = (table[fair].le(1.1 * table[fair].min(axis=1), axis=0)) & (
        explained[fair].ge(explained[fair].max(axis=1) - EXPLAINED_NEAR, axis=0)
    )
    words += (
        f"\nStress within 10 % of the lowest and, of the table below, the share explained within "
        f"{EXPLAINED_NEAR:g} of the highest at once: "
        + ", ".join(f"{method} on {count}" for method, count in near_both.sum().items())
        + "; not Randers on "
        + (", ".join(str(name) for name in near_both.index[~near_both["Randers"]]) or "none")
        + "."
    )
    both = [
        [str(name)]
        + [f"{explained.loc[name, m]:.2f}, {sign.loc[name, m]:.2f}" for m in table.columns]
        for name in table.index
    ]
    head = ["", *table.columns]
    shown = (
        "Share of the asymmetry of the same pairs that is explained, and share of pairs ordered "
        "rightly:"
    )
    parts = [STRESS, markdown.table(head, rows), words, shown]
    if not len(limits):
        return "\n\n".join([*parts, markdown.table(head, both), ""])
    most = _medians(limits[limits.method == ANY_HEIGHT], "explained")[ANY_HEIGHT]
    both = [[*row, f"{most[row[0]]:.2f}" if row[0] in most else ""] for row in both]
    return "\n\n".join([*parts, markdown.table([*head, ANY_HEIGHT], both), _cost(limits), ""])


def _cost(limits: pd.DataFrame) -> str:
    """What it costs the distances that one column shows the asymmetry."""
    tried = limits[limits.method != ANY_HEIGHT]
    if not len(tried):
        return ""
    wide = tried.pivot_table(index=["data", "seed", "method"], columns="score", values="value")
    cost = {}
    for name, one in wide.groupby("data"):
        ratios = []
        for _, layouts in one.groupby("seed"):
            stress, shown = layouts["stress interval"], layouts["explained interval"]
            ratios.append(stress[shown >= shown.max() - EXPLAINED_NEAR].min() / stress.min())
        cost[name] = f"{np.median(ratios):.2f} ({name})"
    weights, drifts = zip(*(method.split(", ") for method in tried.method.unique()), strict=True)
    return LIMITS.format(
        n_drifts=len(set(drifts)),
        n_weights=len(set(weights)),
        near=EXPLAINED_NEAR,
        cost=" and ".join(cost.values()),
    )


def _rose(runs: pd.DataFrame, method: str) -> bool:
    rises = runs[(runs.method == method) & runs.score.str.startswith("rises")]
    return bool((rises.value > 0).any())


def _order(runs: pd.DataFrame) -> str:
    table = _medians(runs, "auc")
    rivals = table[[m for m in table if m.startswith(("SpringRank", "out"))]].max(axis=1)
    words = []
    for method in ("potential, ridge auto", "FinslerUMAP", "FinslerUMAP, ridge auto"):
        gap = (rivals - table[method]).dropna()
        above = [f"{name} {value:.3f}" for name, value in gap.items() if value > NEAR]
        words.append(
            f"{method}: within {NEAR:g} of the best of SpringRank and degree on "
            f"{len(gap) - len(above)} of {len(gap)} sets"
            + (f" (below it by more: {', '.join(above)})." if above else ".")
        )
    shown = markdown.table(["", *table.columns], _cells(table))
    return "\n\n".join([ORDER, shown, "\n".join(words) + "\n"])


def _truth(runs: pd.DataFrame) -> str:
    table = _medians(runs, "right")
    gap = table.filter(like="Finsler").sub(table["SpringRank, α = 0"], axis=0)
    words = (
        f"Heights of FinslerUMAP are at most {max(0, -gap.min().min()):.3f} below SpringRank with "
        f"α = 0, and differ by at most {np.ptp(gap.to_numpy(), axis=1).max():.3f} between drifts.\n"
    )
    return "\n\n".join([TRUTH, markdown.table(["", *table.columns], _cells(table)), words])


def _cells(table: pd.DataFrame) -> list[list[str]]:
    return [
        [str(name), *("" if np.isnan(v) else f"{v:.3f}" for v in values)]
        for name, values in table.iterrows()
    ]


def _field(runs: pd.DataFrame) -> str:
    one, field = _medians(runs, "one drift"), _medians(runs, "field")
    notes = runs.drop_duplicates(["data", "method"]).set_index(["data", "method"]).note
    rows = [
        [str(name)]
        + [f"{one.loc[name, m]:.2f} → {field.loc[name, m]:.2f}: {notes[name, m]}" for m in one]
        for name in one.index
    ]
    return "\n\n".join([FIELD, markdown.table(["", *one.columns], rows)])


def _speed(runs: pd.DataFrame) -> str:
    table = runs.pivot_table(index=["data", "method"], columns="score", values="value", sort=False)
    rows = [
        [
            method,
            name.partition(":")[0],
            f"{row['nodes']:.0f}",
            f"{row['seconds']:.1f} s",
            f"{row['processor']:.1f} s",
            f"{row['peak GB']:.1f} GB",
            ", ".join(
                f"{score} {row[score]:.3g}"
                for score in ("stress", "drift", "downhill", "share")
                if score in row and np.isfinite(row[score])
            ),
        ]
        for (name, method), row in table.iterrows()
    ]
    head = ["what", "of", "nodes", "time", "processor time", "peak memory", "found"]
    return "\n\n".join([SPEED, markdown.table(head, rows)])
