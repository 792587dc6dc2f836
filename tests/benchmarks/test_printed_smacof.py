"""The printed SMACOF update, against its definition and against the factored one."""

import numpy as np
import pytest

from benchmarks.peers.printed_smacof import printed_smacof
from finsler_ext.geometry.randers import randers_distances
from finsler_ext.mds.estimator import finsler_smacof


def directed(omega, n=60, noise=0.2, seed=0):
    rng = np.random.default_rng(seed)
    D = randers_distances(rng.normal(size=(n, 3)), omega)
    return D * rng.uniform(1 - noise, 1 + noise, size=D.shape)


def stress(Y, D, omega, W):
    return (W * (randers_distances(Y, omega) - D) ** 2).sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_a_step_is_the_printed_matrices(weighted):
    omega, D = 0.6, directed(0.6, n=30)
    n = len(D)
    rng = np.random.default_rng(1)
    W = rng.random((n, n)) if weighted else np.ones((n, n))
    W = W + W.T if weighted else W
    np.fill_diagonal(W, 0)
    Y = rng.normal(size=(n, 3))
    Y -= Y.mean(axis=0)
    result = printed_smacof(
        D, omega_norm=omega, weights=W if weighted else None, init=Y, max_iter=1
    )
    F = randers_distances(Y, omega) + np.eye(n)
    B = -W * D / F
    B -= np.diag(B.sum(axis=1))
    V = np.diag(W.sum(axis=1)) - W
    drift = np.array([0, 0, omega])
    C = np.outer((W * D).sum(axis=1) - (W * D).sum(axis=0), drift)
    # The system as printed, before its Kronecker factor is inverted.
    system = np.kron(np.eye(3) + np.outer(drift, drift), V)
    wanted = np.linalg.pinv(system) @ (B @ Y - C).T.ravel()
    assert result.embedding == pytest.approx(wanted.reshape(3, n).T, abs=1e-9)
    assert result.stress_history == pytest.approx(
        [stress(Y, D, omega, W), stress(result.embedding, D, omega, W)]
    )
    assert result.normalized_stress == pytest.approx(result.stress_history[-1] / (W * D**2).sum())


@pytest.mark.parametrize("omega", [0.1, 0.5, 0.9])
def test_its_stress_rises_where_the_factored_one_never_does(omega):
    D = directed(omega)
    printed = printed_smacof(D, omega_norm=omega)
    factored = finsler_smacof(D, omega_norm=omega, init=printed.start, accelerate=False)
    own_start = finsler_smacof(D, omega_norm=omega, accelerate=False)
    assert factored.embedding == pytest.approx(own_start.embedding, abs=1e-9)
    rises = np.diff(printed.stress_history)
    assert rises.max() > {0.1: 1e-6, 0.5: 1e-2, 0.9: 1e-2}[omega] * printed.stress_history[0]
    assert (np.diff([printed.stress_history[0], *factored.stress_history]) <= 0).all()
    assert printed.stress_history[-1] > factored.stress * {0.1: 1.02, 0.5: 2, 0.9: 10}[omega]


def test_it_leaves_the_exact_answer():
    Y = np.random.default_rng(0).normal(size=(40, 3))
    D = randers_distances(Y, 0.5)
    assert finsler_smacof(D, omega_norm=0.5, init=Y).normalized_stress < 1e-20
    assert printed_smacof(D, omega_norm=0.5, init=Y).normalized_stress > 1e-3


def test_without_drift_and_skew_both_are_smacof():
    D = directed(0.0)
    D = (D + D.T) / 2
    printed = printed_smacof(D, omega_norm=0.0, eps=0, max_iter=40)
    factored = finsler_smacof(D, omega_norm=0.0, eps=0, max_iter=40, accelerate=False)
    assert printed.stress_history[1:] == pytest.approx(factored.stress_history, rel=1e-9)
    assert printed.embedding == pytest.approx(factored.embedding, abs=1e-7)


def test_refusals_name_the_parameter():
    D = directed(0.5, n=10)
    with pytest.raises(ValueError, match="weights must be symmetric"):
        printed_smacof(D, weights=np.triu(np.ones((10, 10))))
    with pytest.raises(ValueError, match=r"init: an array must have shape \(10, 3\)"):
        printed_smacof(D, init=np.zeros((10, 2)))
