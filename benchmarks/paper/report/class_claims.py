"""Judges of what the paper says about labels, dimensions, size and other methods."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from benchmarks.ledger import FAILED
from benchmarks.markdown import with_interval
from benchmarks.paper.experiments import PAPER_DRIFTS
from benchmarks.paper.published import LABEL_SCORES
from benchmarks.paper.report.comparisons import (
    BEST,
    DOES_NOT,
    HOLDS,
    MIN_PAIRS,
    OTHER_SEEDS,
    SURE_PAIRS,
    Tally,
    best_of_four,
    choice_title,
    compare,
    finsler_name,
    rank,
    tally,
    verdict,
)
from benchmarks.paper.report.finding import (
    NOT_YET,
    ONLY_2D,
    PARTLY,
    Finding,
    Runs,
    joined,
    middle,
    middles,
    of_cases,
)
from benchmarks.paper.scores import SCORES
from benchmarks.summary import Difference, mean_difference

# What is added to a verdict that no single drift reaches.
CHOSEN = ", with ω chosen on the labels"
# A change of AMI, or of the share of pairs in order, that a reader would call little.
LITTLE = 0.05


def agreement(family: str, score: str = "ami"):
    """Judge of a score on data with classes, at fixed drifts and at the best of four."""

    def judge(all_runs: Runs) -> Finding:
        runs = all_runs[family]
        if runs.empty:
            return Finding("", NOT_YET)
        verdicts, tallies = {}, {}
        for choice in (0.0, *PAPER_DRIFTS, BEST, OTHER_SEEDS):
            pair = [tally(runs, family, choice, f"{family}_{d}d", score) for d in (2, 3)]
            verdicts[choice], tallies[choice] = verdict(*pair), pair
        parts = [
            f"{choice_title(choice)}: to 2-D {tallies[choice][0]}; to 3-D {tallies[choice][1]}"
            for choice in (0.5, BEST)
        ]
        to_no_drift = tally(runs, family, BEST, finsler_name(family, 0.0), score)
        parts.append(f"{BEST} to ω = 0: {to_no_drift}")
        if score == "ami":
            on_map = tally(runs, family, 0.5, f"{family}_2d", "ami_map", "ami")
            parts.append(f"Map columns alone, ω = 0.5, to 2-D: {on_map}")
        if verdicts[BEST] == NOT_YET:
            return Finding("", NOT_YET)
        words, qualified = _qualified(verdicts)
        caution = _few_runs([t for pair in tallies.values() for t in pair])
        return Finding(". ".join(parts) + ".", words, "; ".join([*qualified, *caution]))

    return judge


def _qualified(verdicts: dict[float | str, str]) -> tuple[str, list[str]]:
    """The verdict on the paper's rule; what it depends on, and what grants as much or more."""
    result = verdicts[BEST]
    granted, notes = rank(result), []
    if granted > max(rank(verdicts[w]) for w in PAPER_DRIFTS):
        result += CHOSEN
    if granted > rank(verdicts[OTHER_SEEDS]):
        notes.append("only on the seeds that ω was chosen on")
    for drift in PAPER_DRIFTS:
        if rank(verdicts[drift]) > granted:
            notes.append(f"at ω = {drift:g}: {verdicts[drift]}")
    no_drift = verdicts[0.0]
    if rank(no_drift) > granted:
        notes.append(f"without drift (ω = 0): {no_drift}")
    elif granted and rank(no_drift) == granted:
        notes.append("without drift (ω = 0) as well")
    return result, notes


def _few_runs(tallies: list[Tally]) -> list[str]:
    """A caution, where intervals are mere ranges of a few pairs."""
    return _few_pairs(min((t.least for t in tallies if t.total), default=SURE_PAIRS))


def _few_pairs(pairs: int) -> list[str]:
    return [] if pairs >= SURE_PAIRS else [f"weak: as few as {pairs} seeds"]


def free_height(all_runs: Runs) -> Finding:
    """The classification table of UMAP again, by a layout that never holds its height."""
    free = all_runs["held_height"].astype({"data": str, "method": str})
    free = free[free.method.str.startswith("free_umap")]
    if free.empty:
        return Finding("", NOT_YET)
    parents = all_runs["umap"]
    parents = parents[parents.data.isin(free.data.unique())]
    controls = ["umap_2d", "umap_3d", finsler_name("umap", 0.0)]
    named = free.assign(method=free.method.str.replace("free_umap", "finsler_umap"))
    runs = joined(named, parents[parents.method.isin(controls)])
    found = agreement("umap")(all_runs | {"umap": runs})
    signs = (_median_sign(layout, free.data.unique(), 0.5) for layout in (named, parents))
    words = "{:.2f} and, held, {:.2f}".format(*signs)
    return Finding(
        f"On {free.data.nunique()} data sets. {found.ours} Sign at ω = 0.5: {words}.",
        found.verdict,
        found.note,
    )


def written_runs(all_runs: Runs, family: str) -> pd.DataFrame:
    """The paper's own update rules under the names of ours, beside the parents of both."""
    written = all_runs.get(f"paper_{family}")
    if written is None or written.empty:
        return pd.DataFrame(columns=all_runs[family].columns)
    found = written.astype({"data": str, "method": str})
    found = found[found.method.str.fullmatch(rf"paper_{family}_[\d.]+_3d")]
    named = found.assign(method=found.method.str.replace("paper_", "finsler_"))
    parents = all_runs[family]
    parents = parents[parents.data.isin(found.data.unique())]
    controls = [f"{family}_2d", f"{family}_3d", finsler_name(family, 0.0)]
    return joined(named, parents[parents.method.isin(controls)])


def umap_as_written(all_runs: Runs) -> Finding:
    """The classification table of UMAP, by the paper's own update rules run here."""
    runs = written_runs(all_runs, "umap")
    if runs.empty:
        return Finding("", NOT_YET)
    return agreement("umap")(all_runs | {"umap": runs})


def tsne_as_written(all_runs: Runs) -> Finding:
    """The same of t-SNE, which has one run each and a parent of its own."""
    written = all_runs.get("paper_tsne")
    if written is None or written.empty:
        return Finding("", NOT_YET)
    both = joined(written, all_runs["tsne"])
    parts, gains = [], []
    for columns in (2, 3):
        gaps = [_written_gap(both, "tsne", data, columns) for data in dict.fromkeys(written.data)]
        found = [gap for gap in gaps if gap is not None]
        if not found:
            return Finding("", NOT_YET)
        gains.append([gap.median > 0 for gap in found])
        parts.append(
            f"to {columns}-D: higher on {sum(gains[-1])} of {len(found)} sets, mean "
            f"{with_interval(mean_difference(found))}"
        )
    two, three = (all(g) for g in gains)
    verdict = HOLDS if two and three else ONLY_2D if two else of_cases(gains[0])
    words = "AMI of the best of four drifts, " + "; ".join(parts)
    return Finding(words, verdict, "one run each")


def _written_gap(both: pd.DataFrame, family: str, data: str, columns: int) -> Difference | None:
    """Best of four of the paper's update rules against their parent."""
    best = best_of_four(both, family, data, layout="paper")
    parent = f"paper_{family}_parent_{columns}d"
    if parent not in set(both.method):
        parent = f"{family}_{columns}d"
    if best is None:
        return None
    gap = compare(both, data, best, parent, "ami")
    return gap if gap.pairs else None


def consistency(all_runs: Runs) -> Finding:
    """ "Consistently superior": agreement, separation and neighbours, both families."""
    parts, verdicts, tallies = [], [], []
    for family in ("umap", "tsne"):
        runs = all_runs[family]
        if runs.empty:
            return Finding("", NOT_YET)
        for score in ("ami", "silhouette", "knn5"):
            two, three = (tally(runs, family, BEST, f"{family}_{d}d", score) for d in (2, 3))
            parts.append(f"{family}, {SCORES[score][0]}: to 2-D {two}; to 3-D {three}")
            verdicts.append(verdict(two, three))
            tallies += [two, three]
    worst = min(verdicts, key=rank)
    return Finding(". ".join(parts) + ".", worst, "; ".join(_few_runs(tallies)))


def third_dimension(all_runs: Runs) -> Finding:
    """How much of the gain over two dimensions the Euclidean parent has in three, too."""
    parts, verdicts, pairs = [], [], []
    for family in ("umap", "tsne"):
        runs = all_runs[family]
        gains, control = [], []
        for data in dict.fromkeys(runs.data):
            ours = compare(runs, data, finsler_name(family, 0.5), f"{family}_2d", "ami")
            plain = compare(runs, data, f"{family}_3d", f"{family}_2d", "ami")
            if min(ours.pairs, plain.pairs) >= MIN_PAIRS:
                gains.append(ours)
                control.append(plain)
        if gains:
            gain, plain_gain = mean_difference(gains), mean_difference(control)
            parts.append(
                f"{family}: mean AMI gain over 2-D {with_interval(gain)} for Finsler at ω = 0.5, "
                f"{with_interval(plain_gain)} for the Euclidean parent in 3-D ({gain.pairs} sets)"
            )
            verdicts.append(tally(runs, family, 0.5, f"{family}_3d", "ami").holds)
            pairs += [gap.pairs for gap in (*gains, *control)]
    if not parts:
        return Finding("", NOT_YET)
    result = HOLDS if all(verdicts) else DOES_NOT
    return Finding(". ".join(parts), result, "; ".join(_few_pairs(min(pairs))))


def dimension(all_runs: Runs) -> Finding:
    return _columns(all_runs, (5, 10, 50), "AMI against UMAP with as many columns: ")


def plane(all_runs: Runs) -> Finding:
    """As it is, with a map that settles in one column, and without holding the height."""
    held = _columns(all_runs, (2,), "Finsler UMAP in R² against UMAP in R², AMI: ")
    free = _columns(all_runs, (2,), "height never held: ", "free_umap")
    if NOT_YET in (held.verdict, free.verdict):
        return held
    same = held.verdict == free.verdict
    return Finding(
        f"{held.ours}. While the height is held the map has one column only; {free.ours}",
        held.verdict if same else PARTLY,
        f"held: {held.verdict}, {held.note}; never held: {free.verdict}, {free.note}",
    )


def _columns(
    all_runs: Runs, dimensions: tuple[int, ...], words: str, layout: str = "finsler_umap"
) -> Finding:
    """Finsler UMAP against UMAP with as many columns; ω = 0 is given beside, for comparison."""
    runs = joined(all_runs["dimension"], all_runs["umap"])
    parts, won, lost, pairs = [], 0, 0, []
    for data in dict.fromkeys(all_runs["dimension"].data):
        for d in dimensions:
            for drift in (0.0, 0.01, 0.5):
                gap = compare(runs, data, f"{layout}_{drift:g}_{d}d", f"umap_{d}d", "ami")
                if gap.pairs < MIN_PAIRS:
                    continue
                parts.append(f"{data} {d}-D, ω = {drift:g}: {with_interval(gap)}")
                if drift > 0:
                    pairs.append(gap.pairs)
                    won += gap.low > 0
                    lost += gap.high < 0
    if not pairs:
        return Finding("", NOT_YET)
    result = HOLDS if lost == 0 and 2 * won > len(pairs) else DOES_NOT
    note = [f"{won} won, {lost} lost of {len(pairs)} cases", *_few_pairs(min(pairs))]
    return Finding(words + "; ".join(parts), result, "; ".join(note))


def emphasis(all_runs: Runs) -> Finding:
    """More drift, more of the asymmetry."""
    names = dict.fromkeys(all_runs["umap"].data)
    signs = {w: _median_sign(all_runs["umap"], names, w) for w in PAPER_DRIFTS}
    if not np.isfinite(list(signs.values())).all():
        return Finding("", NOT_YET)
    rising = [b > a for a, b in zip(signs.values(), list(signs.values())[1:], strict=False)]
    return Finding(
        "Share of neighbour pairs in the right order of height, median over sets: "
        + ", ".join(f"{v:.2f} at ω = {w:g}" for w, v in signs.items()),
        of_cases(rising),
    )


def drift_effect(all_runs: Runs) -> Finding:
    runs, spreads = all_runs["umap"], []
    names = dict.fromkeys(runs.data)
    for data in names:
        scores = middles(runs, data, [finsler_name("umap", w) for w in PAPER_DRIFTS], "ami")
        if np.isfinite(scores).all():
            spreads.append(max(scores) - min(scores))
    if not spreads:
        return Finding("", NOT_YET)
    signs = {w: _median_sign(runs, names, w) for w in PAPER_DRIFTS}
    return Finding(
        f"AMI over the four drifts of the paper differs by {np.median(spreads):.3f} (median over "
        f"{len(spreads)} data sets, at most {max(spreads):.3f}); the share of neighbour pairs in "
        "the right order of height is "
        + ", ".join(f"{v:.2f} at {w:g}" for w, v in signs.items())
        + " (0.5 is chance).",
        of_cases([np.median(spreads) <= LITTLE, np.ptp(list(signs.values())) <= LITTLE]),
        f"labels: {HOLDS if np.median(spreads) <= LITTLE else DOES_NOT}; "
        f"height: {HOLDS if np.ptp(list(signs.values())) <= LITTLE else DOES_NOT}",
    )


def _median_sign(runs: pd.DataFrame, names: Iterable[str], drift: float) -> float:
    """How much the height means, over data sets; nan where it was not measured."""
    found = [middle(runs, data, finsler_name("umap", drift), "sign") for data in names]
    return float(np.nanmedian(found)) if np.isfinite(found).any() else float("nan")


def poincare(all_runs: Runs) -> Finding:
    runs = joined(all_runs["poincare"], all_runs["tsne"])
    ours, theirs = finsler_name("tsne", 0.5), "poincare_2d"
    gap = compare(runs, "imagenette", ours, theirs, "ami")
    if gap.pairs < MIN_PAIRS:
        return Finding("", NOT_YET)
    flat = compare(runs, "imagenette", "tsne_2d", theirs, "ami")
    gaps = [compare(runs, "imagenette", ours, theirs, score) for score in LABEL_SCORES]
    known = [g for g in gaps if g.pairs]
    return Finding(
        f"Imagenette, AMI (k-means in the plane of the disc), difference to the Poincaré map: "
        f"Finsler t-SNE {with_interval(gap)}, t-SNE in 2-D {with_interval(flat)}; higher by "
        f"{sum(g.median > 0 for g in known)} of {len(known)} scores that know the labels",
        HOLDS if gap.low > 0 else DOES_NOT,
        "; ".join(_few_pairs(gap.pairs)),
    )


def large(all_runs: Runs) -> Finding:
    """Runs that ended; times beside other work would say nothing (see the section on speed)."""
    parts, failed = [], 0
    for name, family, title in (("full_size", "umap", "UMAP"), ("full_size_tsne", "tsne", "t-SNE")):
        runs = all_runs[name]
        ours = runs[runs.method.str.startswith("finsler") & ~runs.method.str.contains("_0_")]
        failed += int((ours.score == FAILED).sum())
        for data, found in ours[ours.score == "ami"].groupby("data", sort=False, observed=True):
            gaps = {
                d: compare(runs, data, finsler_name(family, 0.5), f"{family}_{d}d", "ami")
                for d in (2, 3)
            }
            words = [f"to {d}-D {with_interval(gap)}" for d, gap in gaps.items() if gap.pairs]
            parts.append(
                f"{data}, {len(found)} runs of Finsler {title} "
                f"(AMI at ω = 0.5: {', '.join(words) or 'not run'})"
            )
    if not parts:
        return Finding("", NOT_YET)
    return Finding(
        f"All 60,000 rows on one core: {'; '.join(parts)}; {failed} failed. UMAP of "
        "1,000,000 × 50 rows is timed on the other page.",
        DOES_NOT if failed else HOLDS,
        "that they end; for how good they are see AMI",
    )
