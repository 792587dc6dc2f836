"""What a reader of RESULTS.md has to know first."""

OPENING = """# Results

What the paper claims (arXiv 2603.11396), what came out here, and a verdict for each. This page
is written by `python -m benchmarks report` from the runs in `benchmarks/results/runs_*.csv`, one
line for every score of every run. What each estimator of this project is worth by itself, with
speed and memory, is in [ESTIMATORS.md](ESTIMATORS.md).

**How to read it.** Medians over seeds. Brackets are 95 % bootstrap intervals of the median
paired difference, seed by seed. All methods of a data set share one neighbour graph, but for
Isomap, MDS and extended neighbours (k⁺), which make their own. A data set
is *won* if the interval lies above 0 and *lost* if it lies below; *mean* is the mean over data
sets of the median difference, its interval that of other draws of data sets. "Better" *holds* if
it is won on more than half of the data sets and lost on none; *holds only against 2-D* if so for
the parent in two dimensions but not for the parent in three, which has as many columns as a map
with a height. Failed and degenerate runs are counted and named at the end, not averaged in.
Methods that do not depend on the seed run once.

On data with classes the verdict is on the paper's own rule, the best of four drifts by AMI on the
labels, and says so where none of the four by itself reaches it or where one grants more, where it
fails on seeds other than those it was chosen on, and where ω = 0 grants as much or more. The lines
on equal dimension and on Poincaré maps are on ω = 0.5; those on the number of columns count
ω = 0.01 and 0.5 as cases of their own; that on the drift is on UMAP. Three pairs of
runs are the least that decide. With up to five an interval is their range, which covers the median
in 75, 87.5 and 94 % of cases for three, four and five pairs, not 95 %: such verdicts are marked
*weak*; with ten it covers it in 94 %. The interval of a mean covers about 90 % over ten data sets
and 87 % over six. Verdicts on heights (disk, roll, cities: three runs; clusters: ten) are on
medians alone. All these qualifications were made after first results were seen.

What an interval does not say: seeds are of the optimiser, on one sample of the data, so a
difference may be sure and yet too small to matter, or another on other rows; and if a method and
its parent were equal on all of ten data sets, one or more of them would still be lost by chance in
about one case of five.

Heights *follow* something, or order clusters, from a correlation (Spearman's, or Kendall's τ) of
0.8 on, relief from 0.5 on; a change of less than 0.05 is *little*, of time one of less than a
quarter. These limits are ours.

**Scores.** AMI and its kin: k-means (ten starts) with as many clusters as there are classes,
against the classes. Silhouette and Davies–Bouldin: of these clusters, not of the classes
(silhouette on 5,000 rows). 5-NN and linear (discriminant analysis) accuracy: 2 × 5 stratified
folds on the embedding. Trustworthiness: 15 neighbours among 2,000 rows. 15-NN preservation: share
of the 15 nearest neighbours that remain. *Sign*: share of neighbour pairs whose heights are in the
order of their local scales, 0.5 being chance. All columns are scored, the height among them, but
for *map columns*.

**What is judged.** The methods as this project builds them. Its UMAP pushes negatives in both
directions, and for ω > 0 it holds the height at zero for 60 % of the epochs, while the map settles
in one column less; the paper is not known to do either. *Height never held* is the same without
the second, and differs in label agreement (see *Holding the height*). ω = 0 has neither drift nor
a held height and starts from one eigenvector (t-SNE: principal component) more, so differences
to it are of all of these. The layout of FinslerUMAP was tuned on the disk at ω = 0.5 and on the
digits: there it is judged on the data it was made for.

**What of the paper was at hand.** Its abstract, the beginning of its introduction and part of
the caption of Figure 1 in its own words, and notes on its protocol, formulas and a few numbers.
Claims marked ‡ are known from such notes. Claims marked † are comparisons the paper makes whose
conclusion in its own words was not at
hand: the verdict is on the claim as worded here. Image features come from a smaller backbone
than the paper's, so methods are compared with each other, not scores with the paper's.
"""
