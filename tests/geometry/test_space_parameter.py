"""space="matsumoto" in the three estimators: what they minimise is what its formula says."""

import warnings

import numpy as np
import pytest

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP

ALPHA = 0.4


def matsumoto(Y, alpha=ALPHA):
    """F by its definition, pair by pair."""
    F = np.zeros((len(Y), len(Y)))
    for i in range(len(Y)):
        for j in range(len(Y)):
            step = np.asarray(Y[j], dtype=float) - Y[i]
            length = np.sqrt(step @ step)
            if length > 0:
                F[i, j] = length**2 / (length - alpha * step[-1])
    return F


@pytest.fixture(scope="module")
def planted():
    Y = np.random.default_rng(0).normal(size=(70, 3)) * [2, 2, 1]
    return Y, matsumoto(Y)


@pytest.fixture(scope="module")
def blobs():
    rng = np.random.default_rng(1)
    part = rng.integers(3, size=150)
    spread = np.array([0.3, 1.0, 2.0])[part]
    return 5 * np.eye(3)[part] + spread[:, None] * rng.normal(size=(150, 3))


def fit(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X)


def test_umap(blobs):
    model = fit(FinslerUMAP(space="matsumoto", omega_norm=ALPHA, random_state=0), blobs)
    P, K = model.graph_.toarray(), np.asarray(model.graph_.sum(axis=1)).ravel()
    F = matsumoto(model.embedding_) + np.eye(150)
    power = model._a * F ** (2 * model._b)
    assert model.loss_.attraction == pytest.approx((P * np.log1p(power)).sum(), rel=1e-3)
    np.fill_diagonal(F, np.inf)
    power = model._a * F ** (2 * model._b)
    pairs = 0.5 * (K[:, None] + K) * np.log1p(1 / power)
    assert model.loss_.repulsion == pytest.approx(5 / 300 * pairs.sum(), rel=0.05)
    assert model.skew_fidelity_.sign > 0.7
    placed = model.transform(blobs[:5] + 1e-3)
    assert np.linalg.norm(placed - model.embedding_[:5], axis=1).max() < 2.0
    assert np.isfinite(model.inverse_transform(model.embedding_[:3])).all()


def test_tsne(blobs):
    model = fit(FinslerTSNE(space="matsumoto", omega_norm=ALPHA, random_state=0, n_iter=200), blobs)
    P = model.affinities_.P.toarray()
    w = 1 / (1 + matsumoto(np.asarray(model.embedding_)) ** 2)
    np.fill_diagonal(w, 0.0)
    known = P > 0
    divergence = (P[known] * np.log(P[known] * w.sum() / w[known])).sum()
    assert model.kl_divergence_ == pytest.approx(divergence, rel=1e-8)
    assert model.skew_fidelity_.sign > 0.7
    placed = model.transform(blobs[:5] + 1e-3)
    width = np.ptp(np.asarray(model.embedding_)[:, 0])
    apart = np.linalg.norm(placed - np.asarray(model.embedding_)[:5], axis=1)
    assert apart.max() < 0.2 * width


def test_tsne_takes_all_pairs(blobs):
    with pytest.raises(ValueError, match=r"space='matsumoto'.*all pairs"):
        FinslerTSNE(space="matsumoto", omega_norm=0.2, negative_gradient_method="bh").fit(blobs)


def test_mds_finds_a_planted_layout_and_randers_does_not(planted):
    _, D = planted
    settings = {"metric": "precomputed", "omega_norm": ALPHA, "max_iter": 400}
    model = FinslerMDS(space="matsumoto", **settings).fit(D)
    assert model.stress_ == pytest.approx(((matsumoto(model.embedding_) - D) ** 2).sum(), rel=1e-6)
    assert model.normalized_stress_ < 1e-3
    assert FinslerMDS(**settings).fit(D).normalized_stress_ > 10 * model.normalized_stress_
    assert model.skew_fidelity_.explained > 0.99
    placed = model.transform(D[:4], incoming=D[:, :4].T)
    assert placed == pytest.approx(model.embedding_[:4], abs=0.05)


def test_mds_finds_the_planted_drift(planted):
    _, D = planted
    found = fit(
        FinslerMDS(space="matsumoto", omega_norm="auto", metric="precomputed", max_iter=200), D
    )
    assert found.omega_norm_ == pytest.approx(ALPHA, abs=0.03)


def test_majorisation_needs_a_majoriser(planted):
    with pytest.raises(ValueError, match="method='smacof' needs a majoriser"):
        FinslerMDS(
            space="matsumoto", omega_norm=0.3, method="smacof", metric="precomputed"
        ).fit(planted[1])  # fmt: skip


@pytest.mark.parametrize("estimator", [FinslerUMAP, FinslerTSNE])
def test_auto_stays_below_the_limit(estimator, blobs):
    length = {"n_epochs": 60} if estimator is FinslerUMAP else {"n_iter": 60}
    model = fit(estimator(space="matsumoto", omega_norm="auto", random_state=0, **length), blobs)
    tried = [trial.omega_norm for trial in model.drift_choice_.trials]
    assert tried[0] == 0
    assert set(tried[1:]) <= {0.15, 0.25, 0.35, 0.45}
