"""Planted drift fields are found, named, and drawn the right way round."""

import matplotlib
import numpy as np
import pytest
import scipy.sparse

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.quiver import Quiver

from benchmarks.data.digraphs import planted_digraph
from finsler_ext import FinslerMDS, FinslerUMAP, read_directed
from finsler_ext.drift_field import fit_drift_field
from finsler_ext.geometry.randers import randers_distances
from finsler_ext.plot import plot_drift
from tests.directed_data import CONTAINERS, package_of, towns

FIELDS = {
    "constant": lambda y: np.tile([0.2, 0.1], (len(y), 1)),
    "rotating": lambda y: 0.3 * np.column_stack([-y[:, 1], y[:, 0]]),
    "converging": lambda y: -0.3 * y,
    "bent": lambda y: 0.4 * np.column_stack([np.sin(2 * y[:, 1]), np.zeros(len(y))]),
}


def planted(kind, n=150, noise=0.0, seed=0):
    """Places on a disc, and d + ∫v·dy along straight lines, summed in many small steps."""
    rng = np.random.default_rng(seed)
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.uniform(size=n))
    Y = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    step = Y[None] - Y[:, None]
    along = np.zeros((n, n))
    for t in (np.arange(20) + 0.5) / 20:
        place = (Y[:, None] + t * step).reshape(-1, 2)
        along += (FIELDS[kind](place).reshape(n, n, 2) * step).sum(axis=2) / 20
    D = np.linalg.norm(step, axis=2) + along
    return Y, D + noise * rng.normal(size=(n, n))


@pytest.mark.parametrize("kind", FIELDS)
def test_planted_fields_are_found(kind):
    Y, D = planted(kind)
    field = fit_drift_field(Y, distances=D)
    assert field.share > 0.97
    assert field(Y) == pytest.approx(FIELDS[kind](Y), abs=0.08)
    assert field.n_numbers <= 60
    if kind == "constant":
        assert field.case == "one drift"
        assert field.one_drift == pytest.approx([0.2, 0.1], abs=1e-6)
        assert field.one_drift_share == pytest.approx(1.0)
    else:
        assert field.case == "field"
        assert field.one_drift_share < 0.6
    if kind == "bent":
        return
    assert field.turning == pytest.approx(0.6 if kind == "rotating" else 0.0, abs=0.1)
    assert field.converging == pytest.approx(-0.6 if kind == "converging" else 0.0, abs=0.1)
    words = {"rotating": "way turns clockwise", "converging": "way runs apart"}
    assert words.get(kind, "") in field.verdict


def test_the_shares_are_those_of_new_data():
    Y, D = planted("rotating", noise=0.1)
    field = fit_drift_field(Y, distances=D)
    again = planted("rotating")[1] + 0.1 * np.random.default_rng(5).normal(size=D.shape)
    i, j = np.triu_indices(len(Y), 1)
    skew = (again - again.T)[i, j]
    shown = 2 * ((field(Y[i]) + field((Y[i] + Y[j]) / 2) * 4 + field(Y[j])) / 6 * (Y[j] - Y[i]))
    share = 1 - ((skew - shown.sum(axis=1)) ** 2).sum() / (skew**2).sum()
    assert field.share == pytest.approx(share, abs=0.05)
    assert 0.3 < field.share < 0.95


def test_noise_is_neither():
    rng = np.random.default_rng(0)
    Y, D = rng.normal(size=(80, 2)), rng.uniform(size=(80, 80))
    field = fit_drift_field(Y, distances=D)
    assert field.case == "none"
    assert abs(field.share) < 0.1


def test_sparse_pairs_scales_and_columns_of_any_number():
    Y, D = planted("rotating")
    known = np.random.default_rng(0).uniform(size=D.shape) < 0.2
    known |= known.T
    some = scipy.sparse.csr_array(np.where(known, D, 0.0))
    assert fit_drift_field(Y, distances=some).turning == pytest.approx(0.6, abs=0.1)
    three = np.column_stack([Y, np.random.default_rng(1).normal(size=len(Y))])
    assert fit_drift_field(three, distances=D).share > 0.95
    scale = np.exp(Y[:, 0])
    field = fit_drift_field(Y, graph=some, local_scale=scale)
    assert field.case == "one drift"
    assert field.one_drift == pytest.approx([0.5, 0.0], abs=1e-6)
    lost = np.vstack([Y, [[np.nan, np.nan]]])
    D = np.pad(D, (0, 1), constant_values=1.0)
    assert fit_drift_field(lost, distances=D).share > 0.95


def test_what_cannot_be_fitted_is_refused():
    Y = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match="no asymmetry"):
        fit_drift_field(Y, distances=np.ones((30, 30)))
    few = np.full((30, 30), np.nan)
    few[:3, :3] = np.arange(9).reshape(3, 3)
    with pytest.raises(ValueError, match=r"at least 20 pairs .* got 3"):
        fit_drift_field(Y, distances=few)
    with pytest.raises(ValueError, match="two map columns"):
        fit_drift_field(Y[:, :1], distances=np.ones((30, 30)))
    with pytest.raises(ValueError, match="either distances"):
        fit_drift_field(Y)
    with pytest.raises(ValueError, match="style"):
        plot_drift(Y, distances=np.ones((30, 30)), style="hedgehog")


def test_arrows_point_the_cheaper_way():
    Y, D = planted("rotating")
    ax = plot_drift(Y, distances=D)
    (arrows,) = [c for c in ax.collections if isinstance(c, Quiver)]
    x, y = np.asarray(arrows.XY).T
    assert np.mean(arrows.U * y - arrows.V * x > 0) > 0.95  # clockwise: against the drift
    assert "way turns clockwise" in ax.get_title()
    assert plot_drift(Y, distances=D, style="streamlines").get_title()
    plt.close("all")


def test_a_fitted_model_has_its_own_data():
    rng = np.random.default_rng(0)
    D = randers_distances(rng.normal(size=(60, 2)), 0.4)
    model = FinslerMDS(2, metric="precomputed", omega_norm=0.4).fit(D)
    ax = plot_drift(model, color=np.arange(60) % 3)
    assert "one drift is enough" in ax.get_title()
    plt.close("all")


def test_the_same_seed_gives_the_same_field():
    Y, D = planted("bent", noise=0.05)
    one, two = (fit_drift_field(Y, distances=D, random_state=3) for _ in range(2))
    assert np.array_equal(one.coefficients, two.coefficients)


CONTAINERS_OF_EDGES = ("csr", "pandas, square", "pandas, edges", "dict, edges", "networkx")


@pytest.mark.parametrize("container", CONTAINERS_OF_EDGES)
def test_every_container_has_a_field(container):
    """fit_drift_field took arrays only, and failed raw on graphs and frames."""
    package = package_of(container)
    if package is not None:
        pytest.importorskip(package)
    D = towns()
    Y = np.random.default_rng(0).normal(size=(len(D), 2))
    expected = fit_drift_field(Y, distances=read_directed(CONTAINERS["csr"](D)).distances)
    found = fit_drift_field(Y, distances=CONTAINERS[container](D))
    assert found.coefficients == pytest.approx(expected.coefficients, abs=1e-8)


def test_one_way_edges_and_fitted_models_have_a_field():
    graph, _ = planted_digraph(80, 5, noise=0.0, seed=0)
    model = FinslerUMAP(metric="precomputed", random_state=0, n_epochs=20).fit(graph)
    fitted = fit_drift_field(model)
    given = fit_drift_field(model.embedding_, distances=graph)
    assert np.array_equal(fitted.coefficients, given.coefficients)
    with pytest.raises(ValueError, match="79 rows, the data has 80 points"):
        fit_drift_field(model.embedding_[:79], distances=graph)
    plot_drift(model)
    plot_drift(model.embedding_, distances=graph)
    plt.close("all")
