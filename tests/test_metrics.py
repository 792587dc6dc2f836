import numpy as np
import pytest
import scipy.sparse

from finsler_ext.geometry.randers import randers_distances
from finsler_ext.metrics import density_height, neighborhood_preservation, skew_fidelity

RNG = np.random.default_rng(0)
GRAPH = scipy.sparse.random_array((50, 50), density=0.2, rng=RNG, format="csr")
SCALE = np.exp(RNG.normal(size=50))


def test_a_height_equal_to_the_log_scale_is_perfect():
    embedding = np.column_stack([RNG.normal(size=(50, 2)), 3.0 * np.log(SCALE)])
    fidelity = skew_fidelity(embedding, graph=GRAPH, local_scale=SCALE)
    assert fidelity[:3] == pytest.approx((1.0, 1.0, 1.0))
    assert not fidelity.reason
    assert "1.00" in str(fidelity)


def test_a_random_height_is_chance():
    graph = scipy.sparse.random_array((2000, 2000), density=0.01, rng=RNG, format="csr")
    scale = np.exp(RNG.normal(size=2000))
    fidelity = skew_fidelity(RNG.normal(size=(2000, 3)), graph=graph, local_scale=scale)
    assert fidelity.sign == pytest.approx(0.5, abs=0.05)
    assert fidelity.rank == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.csr_array])
def test_directed_distances_of_a_randers_space_are_explained_fully(convert):
    Y = RNG.normal(size=(30, 3))
    D = convert(randers_distances(Y, 0.3))
    fidelity = skew_fidelity(Y, distances=D, omega_norm=0.3)
    assert fidelity[:3] == pytest.approx((1.0, 1.0, 1.0))
    # a wrong drift has the right signs and the wrong size
    half = skew_fidelity(Y, distances=D, omega_norm=0.15)
    assert half.sign == 1.0
    assert half.explained == pytest.approx(0.75)


def test_large_matrices_are_scored_on_a_selection_of_pairs(monkeypatch):
    Y = RNG.normal(size=(300, 3))
    D = randers_distances(Y, 0.3)
    noisy = Y + RNG.normal(size=Y.shape)
    whole = skew_fidelity(noisy, distances=D)
    monkeypatch.setattr("finsler_ext.asymmetry.MAX_PAIRS", 6000)
    monkeypatch.setattr("finsler_ext.asymmetry.MAX_RANKED_PAIRS", 3000)
    assert skew_fidelity(noisy, distances=D)[:3] == pytest.approx(whole[:3], abs=0.05)


def test_undefined_cases_give_a_reason_and_no_warning():
    flat = np.zeros((50, 3))
    assert "flat" in skew_fidelity(flat, graph=GRAPH, local_scale=SCALE).reason
    even = skew_fidelity(RNG.normal(size=(50, 3)), graph=GRAPH, local_scale=np.ones(50))
    assert "no asymmetry" in even.reason
    assert np.isnan(even.sign)
    assert np.isnan(density_height(flat, SCALE))
    with pytest.raises(ValueError, match="distances"):
        skew_fidelity(flat)


def test_density_height_is_a_rank_correlation_and_skips_nan():
    Y = np.column_stack([np.zeros(50), SCALE**2])
    Y[3] = np.nan
    assert density_height(Y, SCALE) == pytest.approx(1.0)


def test_neighborhood_preservation_against_a_plain_count():
    X, Y = RNG.normal(size=(2, 40, 3))

    def nearest(Z):
        return np.argsort(np.linalg.norm(Z[:, None] - Z[None], axis=2), axis=1)[:, 1:6]

    expected = np.mean(
        [len(set(a) & set(b)) / 5 for a, b in zip(nearest(X), nearest(Y), strict=True)]
    )
    assert neighborhood_preservation(nearest(X), Y) == pytest.approx(expected)
    assert neighborhood_preservation(nearest(X), X) == 1.0
