"""Digits in UMAP and FinslerUMAP: layouts and new rows. What umap-learn compiles takes longer than
its fits, so no other file lays anything out with it.
"""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.neighbors import KNeighborsClassifier
from umap import UMAP

from finsler_ext import FinslerUMAP
from tests.models import SMALL_DRIFT_WARNING

pytestmark = pytest.mark.filterwarnings(SMALL_DRIFT_WARNING)


def test_digits_keep_their_clusters_and_get_a_meaningful_height(digits):
    X, y = digits
    model = FinslerUMAP(omega_norm=0.5, random_state=0).fit(X)
    assert model.skew_fidelity_.sign > 0.78
    assert model.density_height_ > 0.2
    assert cluster_score(model.embedding_, y) > 0.85


def cluster_score(embedding, y):
    labels = KMeans(10, n_init=5, random_state=0).fit_predict(embedding)
    return adjusted_mutual_info_score(y, labels)


@pytest.fixture(scope="module")
def umap_of_digits(digits):
    X, y = digits
    model = UMAP(n_components=3, random_state=0, n_jobs=1).fit(X)
    return model, cluster_score(model.embedding_, y)


@pytest.mark.parametrize("affinity", ["directed", "harmonic", "fuzzy_union"])
@pytest.mark.filterwarnings("ignore:n_jobs value")
def test_without_a_drift_it_is_umap(digits, umap_of_digits, affinity):
    X, y = digits
    theirs, their_score = umap_of_digits
    model = FinslerUMAP(omega_norm=0, affinity=affinity, height="free", random_state=0).fit(X)
    assert np.ptp(model.embedding_, axis=0).min() > 5  # three dimensions, really
    if affinity == "fuzzy_union":  # but for ties, which integer data has many of
        assert abs(model.graph_ - theirs.graph_).sum() < 1e-2 * theirs.graph_.sum()
    assert cluster_score(model.embedding_, y) > their_score - 0.03


def test_new_digits_are_classified_at_least_as_well_as_by_umap(digits):
    X, y = digits
    train, test = slice(0, 700), slice(700, 1200)

    def accuracy(model):
        model.fit(X[train])
        judge = KNeighborsClassifier(5).fit(model.embedding_, y[train])
        return judge.score(model.transform(X[test]), y[test])

    ours = accuracy(FinslerUMAP(random_state=0))
    theirs = accuracy(UMAP(n_components=3, random_state=0, n_jobs=1))
    assert ours > theirs - 0.01
