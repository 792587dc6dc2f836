"""Judges of the paper's formulas, by numbers that are computed here and now."""

from __future__ import annotations

from benchmarks.paper.published import formulas
from benchmarks.paper.report.finding import DOES_NOT, HOLDS, PARTLY, Finding, Runs

EXACT = 1e-5


def tsne_theorem(all_runs: Runs) -> Finding:
    errors = {w: formulas.tsne_gradient(w) for w in (0.1, 0.5, 0.9)}
    words = ", ".join(f"{100 * e.first:.0f} % at ω = {w:g}" for w, e in errors.items())
    proof = max(e.second for e in errors.values())
    return Finding(
        f"Error against central differences: {words} as the theorem prints it (t_ij F_ij in the "
        f"terms of the reverse direction, too); {proof:.0e} as its proof and Table 1 end "
        "(t_ji F_ji).",
        DOES_NOT,
        "the proof's formula is right",
    )


def umap_theorem(all_runs: Runs) -> Finding:
    theorem, table = formulas.umap_gradient()
    return Finding(
        f"Error against central differences {theorem:.0e}. Table 1 repeats it without y_i − y_j in "
        f"the repulsion.",
        HOLDS if theorem < EXACT < table else DOES_NOT,
    )


def sklearn_bug(all_runs: Runs) -> Finding:
    errors = {dof: formulas.sklearn_gradient(dof) for dof in (1, 2, 3)}
    words = "; ".join(
        f"ν = {dof}: {100 * e.first:.0f} %, after the best constant factor {100 * e.second:.0f} %"
        for dof, e in errors.items()
    )
    wrong = errors[2].second > 0.1 and errors[1].first < EXACT
    return Finding(
        f"Error of scikit-learn's exact gradient against differences of its own divergence: "
        f"{words}. So it is not a constant factor. openTSNE has another kernel and the right "
        "gradient up to the factor ¼.",
        HOLDS if wrong else DOES_NOT,
        "scikit-learn: yes; openTSNE: no",
    )


def harmonic_mean(all_runs: Runs) -> Finding:
    tensor, factor = formulas.interpolated_length(1.0, 4.0)
    return Finding(
        f"A segment between scales 1 and 4: for M = c I as stated the length is ∫√c, and "
        f"(c_i + c_j)/2 is {100 * tensor:.0f} % off; for F = c ‖u‖ it is exact "
        f"({100 * abs(factor):.0f} %). With c = 1/σ that is M = I/σ², which is what the corollary "
        "needs.",
        PARTLY,
        "for F = c ‖u‖, not for M = c I as written",
    )


def antisymmetry(all_runs: Runs) -> Finding:
    return Finding(
        "True, and true of every distance that depends on y − x alone, so it does not single out "
        "this one.",
        HOLDS,
    )


def collapse(all_runs: Runs) -> Finding:
    plane, solid = formulas.collapse(0.1)
    strong = formulas.collapse(0.5).second
    return Finding(
        f"Best Finsler MDS at ω = 0.1, height in units of the widest column: {plane:.2f} for a "
        f"square, {solid:.2f} for a tetrahedron, whose distances are symmetric but do not fit into "
        f"the plane; at ω = 0.5 {strong:.2f}.",
        PARTLY,
        "if the data fit into one column less, or the drift is large",
    )


def recipe(all_runs: Runs) -> Finding:
    printed, corrected = formulas.clusters_as_printed()
    return Finding(
        f"As printed: {', '.join(map(str, printed))} points. ⌊5c̃/q⌋ gives "
        f"{', '.join(map(str, corrected))} in one draw and expects 301, 120, 48, 19, 13.",
        HOLDS if min(printed) > 0 else DOES_NOT,
    )
