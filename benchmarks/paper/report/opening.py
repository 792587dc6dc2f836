"""How to read RESULTS.md."""

from benchmarks.paper import FROZEN_AT

OPENING = f"""## How to read this page

`python -m benchmarks.paper report` writes it from the runs in
`benchmarks/paper/results/runs_*.csv`, one line per score of every run, and from the
paper's numbers in `benchmarks/paper/published/tables.csv`. What each estimator of this
project is worth by itself, as it changes, is on [another page](../RESULTS.md).

**Runs.** Version 0.2.0; the page is frozen at commit {FROZEN_AT}, and later versions are not judged
here. UMAP and t-SNE families five seeds (t-SNE in 2-D and at ω = 0 three on
Imagenette, Caltech101 and Flowers102), clusters ten, disk, roll, cities and flights three, the
paper's own UMAP three (four on the smallest sets), ablations three; the paper's t-SNE
does not depend on a seed. Cut for time: drifts of 0.3, 0.7 and 0.9, seeds six to ten, t-SNE on the
sets that the paper's own table of t-SNE does not have, t-SNE with a drift on 60,000 rows, UMAP with
a drift there but for one seed. Runs of UMAP itself and of t-SNE in 3-D on Imagenette, Caltech101
and Flowers102 were kept from version 0.1.0. Neighbours at equal distance come in another order
since, so not all of them repeat bit for bit; the same is true of "In place of the parent" on the
disks, and of free t-SNE layouts there.

**Numbers.** Medians over seeds; in brackets 95 % bootstrap intervals of the median paired
difference, seed by seed. All methods of a data set share one neighbour graph, but for Isomap, MDS
and extended neighbours (k⁺). A set is *won* if the interval lies above 0, *lost* if below; *mean*
is the mean over sets of the median difference. Failed and degenerate runs are counted and named at
the end, not averaged in.

**Verdicts.** "Better" *holds* if it is won on more than half of the sets and lost on none; *only
against 2-D* if so for the parent in two columns but not in three, which is as many as a map with a
height has. On data with classes the verdict is on the paper's rule, the best of four drifts by AMI
on the labels; the details say where that choice is what makes it hold. A height *follows*
something from a correlation of 0.8 on, relief from 0.5; less than 0.05 is *little*, of time less
than a quarter. Three pairs of runs are the least that decide; up to five, an interval is their
range (*weak*). These limits are ours, and were set after first results were seen.

**What an interval does not say.** Seeds are of the optimiser, on one sample of the data. A sure
difference may be too small to matter; and of ten sets on which two methods are equal, one or more
would be lost by chance in one case of five.

**Scores.** AMI and kin: k-means (ten starts) with as many clusters as classes. Silhouette and
Davies–Bouldin: of these clusters (silhouette on 5,000 rows). 5-NN and linear (discriminant
analysis) accuracy: 2 × 5 stratified folds. 15-NN: share of the 15 nearest neighbours kept.
Trustworthiness: 15 neighbours among 2,000 rows. *Sign*: share of neighbour pairs whose heights are
in the order of their local scales, 0.5 being chance. All columns are scored, the height among them,
but for *map columns*.

**What is judged.** The methods as this project builds them: negatives push in both directions, and
with three columns UMAP's map settles before the height rises. The paper's own update rules stand
[beside ours](#the-papers-update-rules-beside-ours). ω = 0 is the directed graph without drift,
from a start in all columns. The layout of FinslerUMAP was tuned on the disk at ω = 0.5 and on the
digits: there it is judged on the data it was made for. Image features come from a smaller network
than the paper's.
"""
