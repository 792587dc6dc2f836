import numba
import numpy as np
import pytest
import scipy.sparse
from scipy.stats import spearmanr

from finsler_ext import FinslerUMAP
from finsler_ext.geometry.randers import randers_distances
from tests.models import SMALL_DRIFT_WARNING, quick

RNG = np.random.default_rng(0)
pytestmark = pytest.mark.filterwarnings(SMALL_DRIFT_WARNING)


def disk(n):
    angle = 2 * np.pi * np.arange(20) / 20
    radius = np.arange(1, n // 20 + 1) / (n / 20)
    r, a = (grid.ravel() for grid in np.meshgrid(radius, angle, indexing="ij"))
    return np.column_stack([r * np.cos(a), r * np.sin(a)]), r


@pytest.mark.parametrize(("omega", "least"), [(0.1, 0.95), (0.5, 0.95), (0.9, 0.9)])
def test_the_height_of_the_disk_rises_with_the_radius(omega, least):
    X, radius = disk(300)
    rows = RNG.permutation(300)
    heights = [
        FinslerUMAP(omega_norm=omega, random_state=s).fit_transform(X[rows])[:, -1]
        for s in range(3)
    ]
    assert np.median([spearmanr(h, radius[rows]).statistic for h in heights]) > least


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("columns", [2, 3])
def test_a_small_drift_is_a_choice_and_not_warned_of(digits, columns):
    height = "free" if columns == 2 else "auto"  # two columns of "auto" are warned of
    model = FinslerUMAP(
        omega_norm=0.01, n_components=columns, height=height, n_epochs=100, random_state=0
    )
    assert model.fit(digits[0]).skew_fidelity_.sign < 0.8  # a height that does not say much


def test_a_height_that_was_asked_for_and_is_at_chance_is_warned_of():
    noise = RNG.normal(size=(300, 3))
    D = np.linalg.norm(noise[:, None] - noise[None], axis=2)
    D += np.triu(RNG.uniform(0, 0.05, size=D.shape), 1)  # no order in which way is longer
    with pytest.warns(UserWarning, match="does not show"):
        FinslerUMAP(metric="precomputed", omega_norm=0.01, height="free", random_state=0).fit(D)


def test_directed_distances_of_a_randers_space_give_back_the_height():
    Y = RNG.normal(size=(200, 3)) * [3, 3, 1]
    D = randers_distances(Y, 0.6)
    for matrix in (D, scipy.sparse.csr_matrix(D)):
        model = FinslerUMAP(metric="precomputed", random_state=0).fit(matrix)
        assert model.skew_fidelity_.sign > 0.7
        assert spearmanr(model.embedding_[:, -1], Y[:, -1]).statistic > 0.5
        mirrored = FinslerUMAP(metric="precomputed", random_state=0).fit(matrix.T)
        assert spearmanr(mirrored.embedding_[:, -1], Y[:, -1]).statistic < -0.5


FEATURES = {
    "bump": lambda X: np.exp(3 * np.exp(-10 * ((X - 0.5) ** 2).sum(axis=1))),
    "ramp": lambda X: np.exp(2 * X[:, 0]),
    "steep ramp": lambda X: np.exp(5 * X[:, 0]),
}


@pytest.mark.parametrize("feature", FEATURES.values(), ids=FEATURES)
def test_asymmetry_can_come_from_a_feature(feature):
    shown = []
    for seed in range(3):  # one map in many is torn, and its heights with it
        X = np.random.default_rng(seed).uniform(size=(400, 2)).astype(np.float32)
        model = FinslerUMAP(local_scale=feature(X), random_state=seed).fit(X)
        shown.append(spearmanr(model.embedding_[:, -1], feature(X)).statistic)
    assert np.median(shown) > 0.6
    plain = FinslerUMAP(random_state=0).fit(X)  # density lifts the rim, whatever the feature
    assert spearmanr(plain.embedding_[:, -1], feature(X)).statistic < 0.3


# ------------------------------------------------------------------ reproducible


@pytest.mark.parametrize("n", [300, 4500])
def test_the_seed_decides_whatever_the_threads(n):
    X = RNG.normal(size=(n, 8)).astype(np.float32)
    X[: n // 10] = X[n // 2 : n // 2 + n // 10]  # duplicates
    runs = [quick(n_jobs=jobs, n_epochs=12).fit(X) for jobs in (1, 2, 2)]
    for other in runs[1:]:
        assert np.array_equal(runs[0].embedding_, other.embedding_)
        assert (runs[0].graph_ != other.graph_).nnz == 0
    assert not np.array_equal(runs[0].embedding_, quick(random_state=1).fit_transform(X))


def test_a_random_state_object_is_accepted():
    X = RNG.normal(size=(50, 4))
    one, two = (quick(random_state=np.random.RandomState(3)).fit_transform(X) for _ in range(2))
    assert np.array_equal(one, two)


def test_an_asymmetric_metric_is_scored_against_its_own_distances():
    @numba.njit
    def uphill(x, y):
        return np.sqrt(((x - y) ** 2).sum()) + 0.5 * (y[0] - x[0])

    X = RNG.normal(size=(150, 3)).astype(np.float32)
    model = FinslerUMAP(metric=uphill, n_neighbors=20, random_state=0).fit(X)
    assert model.skew_fidelity_.sign > 0.7  # against density it is at chance
    assert spearmanr(model.embedding_[:, -1], X[:, 0]).statistic > 0.5
