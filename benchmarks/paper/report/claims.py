"""Every claim of the paper in our words, with its place, what it prints, and who judges it.

The paper is arXiv 2603.11396, version 1. Sections, figures, tables and theorems are numbered as
they appear in it; A to F are its appendices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from benchmarks.paper.report import published_claims as tables
from benchmarks.paper.report import shape_claims as shapes
from benchmarks.paper.report.class_claims import (
    agreement,
    consistency,
    dimension,
    drift_effect,
    emphasis,
    free_height,
    large,
    plane,
    poincare,
    third_dimension,
    tsne_as_written,
    umap_as_written,
)
from benchmarks.paper.report.finding import DOES_NOT, HOLDS, NOT_TESTED, PARTLY, Finding, Runs
from benchmarks.paper.report.height_claims import (
    cities,
    clusters,
    disk,
    disk_dimension,
    disk_small_drift,
    extension,
    printed_update,
    roll,
)
from benchmarks.paper.report.math_claims import (
    antisymmetry,
    collapse,
    harmonic_mean,
    recipe,
    sklearn_bug,
    tsne_theorem,
    umap_theorem,
)
from benchmarks.paper.report.speed_tables import tsne_slower, tsne_time, umap_time

__all__ = ["CLAIMS", "Claim", "claim"]

LABELS, HEIGHTS, COST, THEORY = "labels", "heights", "cost", "theory"


class Claim(NamedTuple):
    """A claim, what the paper prints for it, how to judge it from all runs, and where to look."""

    name: str
    group: str
    statement: str
    place: str
    paper: str
    judge: Callable[[Runs], Finding]
    look: str = ""


def stated(ours: str, verdict: str, note: str = ""):
    return lambda all_runs: Finding(ours, verdict, note)


def claim(name: str) -> Claim:
    """A claim by its name."""
    return next(c for c in CLAIMS if c.name == name)


WRITTEN = "[update rules](#the-papers-update-rules-beside-ours)"
SIDE = "[tables](#the-papers-tables-beside-ours)"
UMAP_CLASSES = "[classes, UMAP](#classes-the-umap-family)"
TSNE_CLASSES = "[classes, t-SNE](#classes-the-t-sne-family)"
SYNTHETIC, CITIES = "[synthetic data](#synthetic-data)", "[cities](#us-cities)"
FORMULAS = "`tests/benchmarks/paper/test_formulas.py`"

_LABELS = (
    Claim("consistent", LABELS, "Finsler embeddings are consistently better than their parents'.",
          "abstract, §1 (d), §7", "no number", consistency, f"{UMAP_CLASSES}, {TSNE_CLASSES}"),
    Claim("every-umap", LABELS,
          "Finsler UMAP beats UMAP on every data set and by every score that knows the labels.",
          "§6.2, Fig. 9, Table 2", "16 sets × 7 scores, all higher",
          tables.every_cell("umap"), SIDE),
    Claim("every-tsne", LABELS,
          "Finsler t-SNE beats t-SNE likewise, Flowers on par for some scores.",
          "§6.2 and footnote, Table 3", "6 sets × 7 scores, 39 of 42 higher",
          tables.every_cell("tsne"), SIDE),
    Claim("umap-labels", LABELS, "Finsler UMAP agrees better with labels than UMAP (AMI).",
          "§6.2, Table 2", "+0.077 on average, best of four ω", agreement("umap"), UMAP_CLASSES),
    Claim("umap-written", LABELS, "So does the paper's own Finsler UMAP, run here.",
          "§6.2, Table 2, E.3", "as above", umap_as_written, WRITTEN),
    Claim("umap-free", LABELS, "So does our Finsler UMAP with a height that is never held.",
          "§6.2, E.3", "as above", free_height, "[ablations](#ablations)"),
    Claim("tsne-labels", LABELS, "Finsler t-SNE agrees better with labels than t-SNE (AMI).",
          "§6.2, Table 3", "+0.011 on average, best of four ω", agreement("tsne"), TSNE_CLASSES),
    Claim("tsne-written", LABELS, "So does the paper's own Finsler t-SNE, run here.",
          "§6.2, Table 3, E.3", "as above", tsne_as_written, WRITTEN),
    Claim("failed-runs", LABELS, "UMAP sometimes gives clusters unrelated to the labels, Finsler "
          "UMAP does not.", "§6.2 (Caltech256), Fig. 8", "means with deviations up to 0.375",
          tables.decorrelated, "[failed runs](#failed-runs-in-the-papers-tables)"),
    Claim("supervised-umap", LABELS, "Classifiers do better on Finsler UMAP, or on par.",
          "F.3, Table 4", "5 sets, two decimals", tables.classifiers("umap"), SIDE),
    Claim("supervised-tsne", LABELS, "Classifiers do better on Finsler t-SNE, or on par.",
          "F.3, Table 4", "5 sets, two decimals", tables.classifiers("tsne"), SIDE),
    *(
        Claim(f"{short}-{family}", LABELS, f"{words} accuracy is higher on Finsler {title}, set by "
              "set.", "F.3, Table 4", "best of four ω", agreement(family, score), link)
        for family, title, link in (("umap", "UMAP", UMAP_CLASSES), ("tsne", "t-SNE", TSNE_CLASSES))
        for score, short, words in (("knn5", "nn", "5-NN"), ("linear", "linear", "Linear"))
    ),
    Claim("shape", LABELS, "By scores without labels (silhouette and kin) either may be better.",
          "F.3, Tables 2, 3", "silhouette higher on 8 of 16 (one misprinted) and 5 of 6",
          tables.shape_scores, SIDE),
    Claim("nice-wrong", LABELS,
          "Finsler methods never have nicer clusters with worse label agreement.",
          "captions of Figs. 13, 15", "never", tables.nice_and_wrong, SIDE),
    Claim("nice-euclid", LABELS,
          "Where Euclidean clusters look nicer, they agree less with the labels.",
          "F.3", "systematically", tables.better_by_label_scores, SIDE),
    Claim("robust", LABELS, "At most drifts, on almost all sets, the AMI is above UMAP's.",
          "§6.2, F.3, Table 6", "0.001, 0.01, 0.1, 0.5", tables.robust, SIDE),
    Claim("drift-effect", LABELS, "Results change little with ω.", "§6.2, F.3",
          "0.001, 0.01, 0.1, 0.5", drift_effect, UMAP_CLASSES),
    Claim("tuning", LABELS, "Tuning ω for each task pays.", "F.3", "best of four, on the labels",
          tables.tuned_drift, UMAP_CLASSES),
    Claim("third-column", LABELS, "The gain is not that of the third column.",
          "F.1, F.3, Figs. 10, 17", "pictures only; no table of UMAP in R³", third_dimension,
          UMAP_CLASSES),
    Claim("plane", LABELS, "Finsler methods in R² succeed, too.", "F.3, Fig. 17", "pictures only",
          plane, "[ablations](#ablations)"),
    Claim("dimensions", LABELS, "The advantage holds in 5, 10 and 50 dimensions.",
          "F.3, Table 5", "Finsler UMAP has one column more", dimension, "[ablations](#ablations)"),
    Claim("gap-vanishes", LABELS, "The gap to UMAP vanishes in high dimensions.", "F.3, Table 5",
          "AMI gap up to 0.163 at d = 2, 0.019 at d = 5", tables.dimension_gap,
          "[failed runs](#failed-runs-in-the-papers-tables)"),
    Claim("poincare", LABELS, "Finsler t-SNE beats Poincaré maps on Imagenette by all scores.",
          "F.3, Fig. 12", "a figure of percentages", poincare, "[ablations](#ablations)"),
)  # fmt: skip

_HEIGHTS = (
    Claim("disk", HEIGHTS, "On a disk that is dense at its centre, height shows density, the map "
          "the disk.", "§6.1, Fig. 5", "pictures, 300 points", disk, SYNTHETIC),
    Claim("dense-low", HEIGHTS, "Dense regions lie lower than sparse ones.",
          "§6.1, Figs. 5 to 7", "pictures", shapes.dense_is_low, SYNTHETIC),
    Claim("disk-parents", HEIGHTS, "UMAP and t-SNE represent the disk poorly, Isomap well.",
          "§6.1, Fig. 5", "pictures", shapes.poor_parents, SYNTHETIC),
    Claim("disk-large", HEIGHTS, "At 1,000 and 3,000 points heights still show density, locally.",
          "F.1, Fig. 10", "pictures", shapes.locally, SYNTHETIC),
    Claim("disk-small", HEIGHTS, "Small drifts show the density of the disk as well.",
          "F.3, robustness to ω", "pictures", disk_small_drift, SYNTHETIC),
    Claim("emphasis", HEIGHTS, "A larger ω puts more emphasis on the asymmetry.", "F.3",
          "no number", emphasis, UMAP_CLASSES),
    Claim("explicit", HEIGHTS, "Embeddings of data with classes make the asymmetry explicit.",
          "§6.2", "at the reported ω, mostly 0.001 to 0.1", tables.explicit, UMAP_CLASSES),
    Claim("disk-tsne", HEIGHTS, "t-SNE keeps the disk better than UMAP.", "§6.1, F.1", "pictures",
          shapes.tsne_above_umap, SYNTHETIC),
    Claim("disk-plane", HEIGHTS, "Finsler methods in R² show the density of the disk, too.",
          "F.1, Fig. 10", "pictures", disk_dimension, SYNTHETIC),
    Claim("disk-space", HEIGHTS, "Euclidean methods do not show it, not even in R³.",
          "§6.1, F.1, Fig. 10", "pictures", shapes.parents_in_space, SYNTHETIC),
    Claim("isomap-bends", HEIGHTS, "Isomap in R³ bends the flat disk.", "F.1", "pictures",
          shapes.isomap_in_space, SYNTHETIC),
    Claim("roll", HEIGHTS, "The Swiss roll is unrolled and its density shown.",
          "§6.1, Fig. 6", "pictures, k⁺ = 50 for UMAP", roll, SYNTHETIC),
    Claim("near-flat", HEIGHTS,
          "On the roll Finsler UMAP rises more than MDS and t-SNE, which are near-flat.",
          "§6.1, Fig. 6", "pictures", shapes.near_flat, SYNTHETIC),
    Claim("extended-roll", HEIGHTS, "Extending neighbours to k⁺ = 50 keeps the roll better.",
          "§6.1, E.3", "no comparison", shapes.preserved_manifold, SYNTHETIC),
    Claim("clusters", HEIGHTS, "Heights order clusters by density: a hierarchy.",
          "abstract, §6.1, F.2, Figs. 7, 11", "pictures; sizes 294, 121, 48, 28, 9", clusters,
          SYNTHETIC),
    Claim("found-clusters", HEIGHTS, "The clusters are found as well as by the parents, or better.",
          "F.2, Figs. 7, 11", "pictures", shapes.found_clusters, SYNTHETIC),
    Claim("branches", HEIGHTS, "At 3,000 points t-SNE falls into four branches, UMAP into three.",
          "F.1, Fig. 10", "pictures", stated("", NOT_TESTED)),
    Claim("no-hierarchy", HEIGHTS, "Euclidean maps show no such hierarchy.", "F.2, Figs. 7, 11",
          "pictures", shapes.no_hierarchy, SYNTHETIC),
    Claim("extended-clusters", HEIGHTS, "k⁺ = 300 makes the order of clusters global.",
          "F.2, Fig. 11", "pictures", extension, SYNTHETIC),
    Claim("cities", HEIGHTS, "US cities: the height reveals the terrain that biased the sampling.",
          "§1, §6.2, Fig. 1", "pictures", cities, CITIES),
    Claim("cities-others", HEIGHTS,
          "There symmetric methods miss it; radius-distance, slide-vector and Finsler show it.",
          "§6.2, Fig. 1", "pictures", shapes.cities_by_others, CITIES),
    Claim("peers", HEIGHTS, "Finsler MDS is the better model of asymmetry than slide-vector and "
          "radius-distance.", "§2, Fig. 1", "a metric against heuristics", shapes.peers,
          "[directed data](#directed-data), [more of it](../results/directed.md)"),
)  # fmt: skip

_COST = (
    Claim("umap-time", COST, "Finsler UMAP costs about as much as UMAP.", "E.4",
          "UMAP 10 s (random start), 16 s (spectral), Finsler UMAP 12 s", umap_time,
          "[speed](#speed)"),
    Claim("tsne-time", COST, "Finsler t-SNE costs about four times as much as t-SNE.", "E.4",
          "2500 s and 9700 s, both over all pairs", tsne_time, "[speed](#speed)"),
    Claim("tsne-slower", COST, "t-SNE is slower than UMAP, Euclidean and Finsler.", "§6.1, F.1",
          "no number", tsne_slower, "[speed](#speed)"),
    Claim("large", COST, "The methods scale to large data.", "abstract, §6.2", "ImageNet, 1.28 "
          "million rows", large, "[60,000 rows](#all-60000-rows)"),
    Claim("no-gpu", COST, "Ordinary processors are enough.", "E.4", "no GPU",
          stated("All runs here are on two cores without a GPU.", HOLDS), "[speed](#speed)"),
    Claim("mds-3000", COST, "Finsler MDS is unstable at 3,000 points and cannot go beyond.",
          "F.1", "no result beyond 3,000", shapes.mds_size, "[the other page](../RESULTS.md)"),
    Claim("descent", COST, "Gradient descent on the stress is the stable way to larger N.",
          "§6.1, E.3", "pictures", shapes.descent, SYNTHETIC),
    Claim("kronecker", COST, "Finsler SMACOF needs the pseudo-inverse of an N² × N² matrix.",
          "§5, F.1", "N² × N²",
          stated("K = (I + ωωᵀ) ⊗ V has Nm rows, and its pseudo-inverse is that of both factors: "
                 "nothing beyond N × N is inverted.", DOES_NOT),
          "`tests/mds/test_stress.py`"),
)  # fmt: skip

_THEORY = (
    Claim("asymmetry", THEORY, "Neighbour graphs with local scales are asymmetric, and averaging "
          "discards that.", "§3, §4, Fig. 3", "by construction",
          stated("True of UMAP's memberships and t-SNE's affinities before they are averaged.",
                 HOLDS), "`tests/umap/test_memberships.py`"),
    Claim("harmonic", THEORY, "Interpolating the metric gives the harmonic mean of both scales.",
          "§4, Theorem 4, Corollary 1", "(c_i + c_j)/2 for M = c I", harmonic_mean, FORMULAS),
    Claim("tsne-gradient", THEORY, "Gradient of Finsler t-SNE, as the theorem states it.",
          "§5, Theorem 1", "t_ij F_ij in all four places", tsne_theorem, FORMULAS),
    Claim("umap-gradient", THEORY, "Gradient of Finsler UMAP.", "§5, Theorem 2, Table 1",
          "attraction and repulsion", umap_theorem, FORMULAS),
    Claim("antisymmetry", THEORY, "The gradient of the Randers distance is antisymmetric, "
          "remarkably.", "§5, Theorem 5", "∂/∂x = −∂/∂y", antisymmetry, FORMULAS),
    Claim("collapse", THEORY, "Symmetric data collapse to the hyperplane without height.", "§5",
          "from arXiv 2503.18010", collapse, FORMULAS),
    Claim("sklearn", THEORY, "The published t-SNE gradient, and scikit-learn's, are wrong for "
          "ν ≠ 1.", "§3 footnote, A.2, Theorem 3", "exponent −1, not −(ν + 1)/2", sklearn_bug,
          f"{FORMULAS}, `patches/scikit-learn-1.9.1`"),
    Claim("smacof", THEORY, "The printed Finsler SMACOF update lowers the stress at every step.",
          "Table 1, inherited from arXiv 2503.18010",
          "a guarantee; C there multiplies N × N by m ones, which must be N", printed_update,
          "`tests/benchmarks/test_printed_smacof.py`"),
    Claim("orientation", THEORY, "The direction of ω does not matter.", "F.3", "a rotation",
          stated("Exact: distances depend on ω·(y − x) alone, so turning both changes nothing. "
                 "A start in coordinates must be turned along.", HOLDS), FORMULAS),
    Claim("euclidean-limit", THEORY, "At ω → 0 the space is Euclidean.", "F.3", "a limit",
          stated("At ω = 0 every layout here is that of its parent on the same affinities.", HOLDS),
          "`tests/mds/test_stress.py`, `tests/tsne/test_tsne_gradient.py`"),
    Claim("spectral", THEORY, "Spectral methods generalise, but lose their closed form.",
          "D", "objectives, not implemented",
          stated("Built here as gradient descents; at ω = 0 they span their parents' subspaces. "
                 "That no closed form exists was not tested.", PARTLY),
          "`tests/test_spectral.py`"),
    Claim("recipe", THEORY, "⌊c̃/(5q)⌋ gives the five clusters of Figs. 7 and 11.", "E.1",
          "294, 121, 48, 28, 9", recipe, FORMULAS),
    Claim("deterministic", THEORY, "t-SNE from PCA is deterministic, so one run is enough.",
          "§6.2", "one run per set",
          tables.one_run, TSNE_CLASSES),
    Claim("perplexity", THEORY, "t-SNE runs at perplexity 30 on the 15 neighbours that all methods "
          "share.", "E.3", "k = 15, perplexity 30",
          stated("15 neighbours reach a perplexity of at most 15: the search for a scale has no "
                 "solution, and all affinities of a point are equal.", DOES_NOT),
          "`benchmarks/paper/methods/paper_family.py`"),
    Claim("first", THEORY, "No earlier work extends t-SNE and UMAP to asymmetric data.", "§2, §5",
          "to the authors' knowledge", stated("", NOT_TESTED)),
)  # fmt: skip

CLAIMS = (*_LABELS, *_HEIGHTS, *_COST, *_THEORY)
