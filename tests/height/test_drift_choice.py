"""omega_norm="auto": planted asymmetry, planted symmetry, and the rule itself."""

import numpy as np
import pytest

from finsler_ext import FinslerUMAP
from finsler_ext.height.drift import DRIFTS, choose_drift
from finsler_ext.metrics import SkewFidelity
from tests.models import SMALL_DRIFT_WARNING


def disk(n):
    angle = 2 * np.pi * np.arange(20) / 20
    radius = np.arange(1, n // 20 + 1) / (n / 20)
    r, a = (grid.ravel() for grid in np.meshgrid(radius, angle, indexing="ij"))
    return np.column_stack([r * np.cos(a), r * np.sin(a)])


class Scored:
    """An asymmetry that every embedding shows as well."""

    def __init__(self, fidelity):
        self.found = fidelity

    def fidelity(self, embedding, omega_norm, space):
        return self.found


def planted(loss_per_drift, sign=0.9):
    """Points on a line; an embedding at drift w swaps a share of them that grows with w."""
    n, k = 200, 4
    line = np.arange(n, dtype=float)
    neighbors = np.array([np.argsort(np.abs(line - i), kind="stable")[1 : k + 1] for i in line])
    tried = []

    def embed(omega_norm):
        tried.append(omega_norm)
        wrong = line.copy()
        lost = int(loss_per_drift * omega_norm * n)
        wrong[:lost] = np.random.default_rng(0).permutation(lost) * 1.0
        return np.column_stack([wrong, np.zeros(n)])

    return embed, Scored(SkewFidelity(sign, 0.0, 0.0)), neighbors, tried


def test_the_largest_drift_within_the_tolerance_is_taken():
    embed, asymmetry, neighbors, tried = planted(loss_per_drift=0.0)
    choice = choose_drift(embed(0.0), embed, asymmetry, neighbors)
    assert choice.omega_norm == max(DRIFTS)
    assert tried == [0.0, max(DRIFTS)]
    embed, asymmetry, neighbors, tried = planted(loss_per_drift=0.18)
    choice = choose_drift(embed(0.0), embed, asymmetry, neighbors)
    kept = {trial.omega_norm: trial.preservation for trial in choice.trials}
    assert kept[choice.omega_norm] >= 0.9 * kept[0.0]
    assert all(kept[w] < 0.9 * kept[0.0] for w in kept if w > choice.omega_norm)
    assert 0 < choice.omega_norm < max(DRIFTS)


def test_reasons_not_to_drift_are_reported():
    embed, asymmetry, neighbors, _ = planted(loss_per_drift=1.0)
    choice = choose_drift(embed(0.0), embed, asymmetry, neighbors)
    assert choice.omega_norm == 0
    assert "loses more than 10%" in choice.reason
    embed, asymmetry, neighbors, _ = planted(loss_per_drift=0.0, sign=0.5)
    choice = choose_drift(embed(0.0), embed, asymmetry, neighbors)
    assert choice.omega_norm == 0
    assert "no asymmetry" in choice.reason
    unknown = SkewFidelity(np.nan, np.nan, np.nan, "the data has no asymmetry to show")
    choice = choose_drift(embed(0.0), embed, Scored(unknown), neighbors)
    assert (choice.omega_norm, choice.reason) == (0.0, unknown.reason)


def test_strong_asymmetry_gets_a_large_drift_and_the_embedding_of_that_drift():
    X = disk(300)
    model = FinslerUMAP(omega_norm="auto", random_state=0).fit(X)
    assert model.omega_norm_ >= 0.5
    assert model.drift_choice_.omega_norm == model.omega_norm_
    assert model.skew_fidelity_.sign > 0.9
    fixed = FinslerUMAP(omega_norm=model.omega_norm_, random_state=0).fit(X)
    assert np.array_equal(fixed.embedding_, model.embedding_)
    seen = []
    again = FinslerUMAP(omega_norm="auto", random_state=0)
    again.fit(X, callback=lambda epoch, _: seen.append(epoch))
    assert seen == list(range(1, 501))
    assert np.array_equal(again.embedding_, model.embedding_)
    assert np.isfinite(model.transform(X + 0.01)).all()


def ring():
    angle = np.linspace(0, 2 * np.pi, 300, endpoint=False)
    return np.column_stack([np.cos(angle), np.sin(angle)])


@pytest.mark.parametrize(
    ("X", "kwds"), [(ring(), {}), (disk(300), {"affinity": "harmonic"})], ids=["ring", "harmonic"]
)
def test_symmetric_data_is_reported_and_embedded_without_a_drift(X, kwds):
    with pytest.warns(UserWarning, match="no asymmetry"):
        model = FinslerUMAP(omega_norm="auto", random_state=0, **kwds).fit(X)
    assert model.omega_norm_ == 0
    assert "no asymmetry" in model.drift_choice_.reason


@pytest.mark.filterwarnings(SMALL_DRIFT_WARNING)
def test_other_words_are_refused():
    with pytest.raises(ValueError, match="'auto'"):
        FinslerUMAP(omega_norm="large").fit(np.eye(30))


def test_auto_with_a_list_of_epochs_keeps_those_of_the_first_act(few_digits):
    X, _ = few_digits
    model = FinslerUMAP(omega_norm="auto", n_epochs=[20, 60], random_state=0).fit(X[:120])
    given = FinslerUMAP(omega_norm=model.omega_norm_, n_epochs=[20, 60], random_state=0).fit(
        X[:120]
    )
    assert len(model.embedding_list_) == 2
    for found, expected in zip(model.embedding_list_, given.embedding_list_, strict=True):
        assert np.array_equal(found, expected)
