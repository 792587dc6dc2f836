"""What an embedding is worth: against labels, without them, for classifiers, and its height."""

from __future__ import annotations

import numpy as np
from scipy.spatial import procrustes
from scipy.stats import kendalltau, spearmanr
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.manifold import trustworthiness
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    calinski_harabasz_score,
    davies_bouldin_score,
    fowlkes_mallows_score,
    homogeneity_completeness_v_measure,
    normalized_mutual_info_score,
    silhouette_score,
)
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.paper.methods import Embedded
from benchmarks.paper.problem import Problem
from finsler_ext.metrics import neighborhood_preservation

__all__ = ["SCORES", "clusters", "degenerate", "drop_in_scores", "score"]

# Score: (title, +1 where more is better, −1 where less is, 0 where neither).
SCORES = {
    "ami": ("AMI", 1),
    "ari": ("ARI", 1),
    "nmi": ("NMI", 1),
    "homogeneity": ("homogeneity", 1),
    "completeness": ("completeness", 1),
    "v_measure": ("V-measure", 1),
    "fmi": ("FMI", 1),
    "ami_map": ("AMI, map columns", 1),
    "silhouette": ("silhouette", 1),
    "davies_bouldin": ("Davies–Bouldin", -1),
    "calinski_harabasz": ("Calinski–Harabasz", 1),
    "knn5": ("5-NN accuracy", 1),
    "linear": ("linear accuracy", 1),
    "trust": ("trustworthiness", 1),
    "knn15": ("15-NN preservation", 1),
    "knn15_map": ("15-NN preservation, map columns", 1),
    "sign": ("sign", 1),
    "rank": ("rank", 1),
    "explained": ("explained", 1),
    "density_height": ("height, local scale", 1),
    "density_axis": ("best axis, local scale", 0),
    "height_spread": ("spread of the height", 0),
    "procrustes": ("Procrustes", -1),
    "height_order": ("height, label order (τ)", 1),
    "stress": ("stress", -1),
    "kl": ("KL", -1),
    "loss": ("loss", -1),
    "loss_opposite": ("loss under the opposite drift", 0),
    "seconds": ("seconds", -1),
}

KMEANS_STARTS = 10
FOLDS, FOLD_REPEATS = 5, 2
CLASSIFIER_NEIGHBORS = 5
# Silhouette and trustworthiness compare all pairs; of more points a fixed sample is scored.
SILHOUETTE_SAMPLE = 5000
TRUST_SAMPLE = 2000
TRUST_NEIGHBORS = 15
# A layout whose middle 90 % fill less than this share of its extent is a few outliers.
COLLAPSED = 1e-3


def degenerate(embedding: np.ndarray) -> str:
    """Why an embedding is not one, or an empty string."""
    if not np.isfinite(embedding).all():
        return f"{int((~np.isfinite(embedding).all(axis=1)).sum())} rows are not finite"
    extent = np.ptp(embedding, axis=0)
    if not extent.any():
        return "all points coincide"
    low, high = np.percentile(embedding, [5, 95], axis=0)
    if np.max(high - low) < COLLAPSED * extent.max():
        return "nine tenths of the points share a thousandth of the extent"
    return ""


def score(embedded: Embedded, problem: Problem) -> dict[str, float]:
    """All scores that the data set allows."""
    Y = np.asarray(embedded.embedding, dtype=np.float64)
    labels, scores = problem.dataset.labels, dict(embedded.scores)
    places = Y.shape[1] > 1 or not embedded.has_height
    if labels is not None and places:
        found = clusters(Y, labels)
        scores |= agreement_scores(found, labels) | separation_scores(Y, found)
        if embedded.has_height and Y.shape[1] > 2:
            on_map = clusters(Y[:, :-1], labels)
            scores["ami_map"] = adjusted_mutual_info_score(labels, on_map)
        scores |= classifier_scores(Y, labels)
    if places:
        scores |= neighborhood_scores(Y, problem)
    if embedded.has_height and Y.shape[1] > 1 and problem.dataset.truth and not problem.directed:
        scores["height_spread"] = height_spread(Y)
    return scores | height_scores(embedded, Y, problem) | truth_scores(embedded, Y, problem)


def drop_in_scores(embedded: Embedded, problem: Problem) -> dict[str, float]:
    """The few scores by which a drop-in is compared with its parent: all columns, and the map."""
    Y = np.asarray(embedded.embedding, dtype=np.float64)
    labels, scores = problem.dataset.labels, dict(embedded.scores)
    scores |= neighborhood_scores(Y, problem)
    parts = {"": Y}
    if embedded.has_height and Y.shape[1] > 2:
        parts["_map"] = Y[:, :-1]
        scores["knn15_map"] = neighborhood_preservation(problem.near, Y[:, :-1])
    if labels is not None:
        for name, part in parts.items():
            scores[f"ami{name}"] = adjusted_mutual_info_score(labels, clusters(part, labels))
    return scores | height_scores(embedded, Y, problem) | truth_scores(embedded, Y, problem)


def clusters(Y, labels) -> np.ndarray:
    """k-means clusters of an embedding, as many as there are classes."""
    k = len(np.unique(labels))
    return KMeans(k, n_init=KMEANS_STARTS, random_state=0).fit_predict(Y)


def agreement_scores(found, labels) -> dict[str, float]:
    """Agreement of k-means clusters, as many as there are classes, with the classes."""
    homogeneity, completeness, v_measure = homogeneity_completeness_v_measure(labels, found)
    return {
        "ami": adjusted_mutual_info_score(labels, found),
        "ari": adjusted_rand_score(labels, found),
        "nmi": normalized_mutual_info_score(labels, found),
        "homogeneity": homogeneity,
        "completeness": completeness,
        "v_measure": v_measure,
        "fmi": fowlkes_mallows_score(labels, found),
    }


def separation_scores(Y, found) -> dict[str, float]:
    """How separate the k-means clusters lie; labels only gave their number."""
    if len(np.unique(found)) < 2:
        return {}
    return {
        "silhouette": silhouette_score(
            Y, found, sample_size=min(len(Y), SILHOUETTE_SAMPLE), random_state=0
        ),
        "davies_bouldin": davies_bouldin_score(Y, found),
        "calinski_harabasz": calinski_harabasz_score(Y, found),
    }


def classifier_scores(Y, labels) -> dict[str, float]:
    """Accuracy of 5-NN and of linear discriminants on the embedding, 2 × 5 stratified folds.

    The linear classifier has a closed form: logistic regression takes 170 times as long on 102
    classes, and at scikit-learn's default penalty has the lower accuracy there.
    """
    smallest = np.unique(labels, return_counts=True)[1].min()
    if smallest < FOLDS:
        return {}
    folds = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=FOLD_REPEATS, random_state=0)
    neighbors = KNeighborsClassifier(CLASSIFIER_NEIGHBORS)
    return {
        "knn5": float(cross_val_score(neighbors, Y, labels, cv=folds).mean()),
        "linear": float(cross_val_score(LinearDiscriminantAnalysis(), Y, labels, cv=folds).mean()),
    }


def neighborhood_scores(Y, problem: Problem) -> dict[str, float]:
    scores = {"knn15": neighborhood_preservation(problem.near, Y)}
    if not problem.directed and problem.n > 2 * TRUST_NEIGHBORS + 1:
        sample = np.random.RandomState(1).permutation(problem.n)[:TRUST_SAMPLE]
        scores["trust"] = trustworthiness(problem.X[sample], Y[sample], n_neighbors=TRUST_NEIGHBORS)
    return scores


def height_scores(embedded: Embedded, Y, problem: Problem) -> dict[str, float]:
    """Whether the height shows the asymmetry, by the estimator's own word and by density."""
    scores = {}
    if embedded.distances is not None:
        a, b = problem.distances, embedded.distances()
        a, b = a - a.T, b - b.T
        total = float((a**2).sum())
        if total > 0:
            scores["explained"] = 1 - float(((a - b) ** 2).sum()) / total
            unequal = (a != 0) & (b != 0)
            if unequal.any():
                scores["sign"] = float(np.mean(np.sign(a[unequal]) == np.sign(b[unequal])))
    if embedded.skew is not None and embedded.has_height:
        fidelity = embedded.skew
        scores |= {"sign": fidelity.sign, "rank": fidelity.rank, "explained": fidelity.explained}
    if problem.directed:
        return scores
    name = "density_height" if embedded.has_height else "density_axis"
    return scores | {name: _likeness(embedded, Y, problem.spacing)}


def height_spread(Y) -> float:
    """Standard deviation of the height in units of that of a map column; near 0 is flat."""
    deviations = Y.std(axis=0)
    return float(deviations[-1] / np.sqrt(np.mean(deviations[:-1] ** 2)))


def truth_scores(embedded: Embedded, Y, problem: Problem) -> dict[str, float]:
    """Likeness to what is known and was not used.

    height_NAME: Spearman correlation of the height; axis_NAME, where there is no height: the
    largest one, in absolute value, of all principal axes, a choice made in hindsight.
    """
    scores = {}
    what = "height" if embedded.has_height else "axis"
    for name, values in problem.dataset.truth.items():
        if values.ndim == 1:
            scores[f"{what}_{name}"] = _likeness(embedded, Y, values)
        elif Y.shape[1] > 1:
            places = Y[:, :-1] if embedded.has_height and Y.shape[1] > values.shape[1] else Y
            columns = max(places.shape[1], values.shape[1])
            padded = (np.pad(a, ((0, 0), (0, columns - a.shape[1]))) for a in (values, places))
            scores["procrustes"] = float(procrustes(*padded)[2])
    if problem.dataset.name.startswith("clusters") and embedded.has_height:
        labels = problem.dataset.labels
        classes = np.unique(labels)
        level = [Y[labels == c, -1].mean() for c in classes]
        scores["height_order"] = float(kendalltau(classes, level).statistic)
    return scores


def _likeness(embedded: Embedded, Y, values) -> float:
    known = np.isfinite(values)
    values = np.asarray(values, dtype=np.float64)[known]
    if embedded.has_height:
        return float(spearmanr(Y[known, -1], values).statistic)
    axes = PCA(random_state=0).fit_transform(Y)[known]
    return float(max(abs(spearmanr(axis, values).statistic) for axis in axes.T))
