"""Strengths and transitions stay what they are: in memberships, in the potential, in transform."""

import warnings

import numpy as np
import pytest
import scipy.sparse

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP, read_directed
from finsler_ext.directed.potential import graph_potential

RNG = np.random.default_rng(0)
# rows of 5 to 30 edges, strengths over four orders of magnitude
S = np.exp(3 * RNG.normal(size=(60, 60))) * (RNG.uniform(size=(60, 60)) < RNG.uniform(0.1, 0.5, 60))
np.fill_diagonal(S, 0.0)
DATA = read_directed(S, values="strength")


def fitted(estimator, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return estimator(metric="precomputed", random_state=0, **options).fit(data)


def test_memberships_are_strengths_relative_to_the_largest():
    """120 strengths from 1e-4 to 0.5 became nearly equal memberships."""
    model = fitted(FinslerUMAP, DATA, n_epochs=5)
    expected = S / np.maximum(S.max(axis=1, keepdims=True), 1e-300)
    assert model.graph_.toarray() == pytest.approx(expected, rel=1e-4, abs=1e-12)


def test_self_transitions_change_neither_memberships_nor_potential():
    T = S / S.sum(axis=1, keepdims=True)
    lazy = 0.3 * T + 0.7 * np.eye(60)
    models = [
        fitted(FinslerUMAP, read_directed(M, values="transitions"), n_epochs=5)
        for M in (T, lazy, lazy * ~np.eye(60, dtype=bool))
    ]
    for other in models[1:]:
        assert other.graph_.toarray() == pytest.approx(models[0].graph_.toarray(), rel=1e-3)
        assert other.potential_ == pytest.approx(models[0].potential_, abs=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        (FinslerUMAP, {"n_epochs": 5}),
        (FinslerTSNE, {"n_iter": 5, "early_exaggeration_iter": 5, "perplexity": 5}),
    ],
)
@pytest.mark.parametrize("omega_norm", [0.1, 0.9])
def test_the_potential_is_that_of_the_raw_strengths(settings, omega_norm):
    estimator, options = settings
    model = fitted(estimator, DATA, omega_norm=omega_norm, **options)
    assert model.potential_ == pytest.approx(graph_potential(S).values, abs=1e-7)


def test_every_container_gives_the_same():
    nx = pytest.importorskip("networkx")
    source, target = np.nonzero(S)
    columns = {"pre": source, "post": target, "synapses": S[source, target]}
    graph = nx.DiGraph()
    graph.add_nodes_from(range(60))
    graph.add_weighted_edges_from(zip(source, target, S[source, target], strict=True))
    for data in (
        read_directed(columns, values="strength"),
        read_directed(scipy.sparse.coo_array(S), values="strength"),
        read_directed(graph, values="strength"),
    ):
        assert np.array_equal(data.strengths.toarray(), S)
        assert data.distances.toarray() == pytest.approx(DATA.distances.toarray())


def test_the_number_of_neighbours_is_refused():
    with pytest.raises(ValueError, match="n_neighbors=8 has no meaning for strengths"):
        fitted(FinslerUMAP, DATA, n_neighbors=8)


def test_new_nodes_are_placed_by_their_strengths():
    """Memberships of a training node given again are those it was fitted with."""
    model = fitted(FinslerUMAP, DATA, n_epochs=5, transform_mode="graph")
    out, into = DATA.distances[:5], DATA.distances.T.tocsr()[:5]
    placed = model.transform(out, incoming=into).toarray()
    known = S[:5] > 0
    expected = S[:5] / S[:5].max(axis=1, keepdims=True)
    assert placed[:, :60][known] == pytest.approx(expected[known], rel=1e-3)


def flows(direction, seed=0):
    """Counts between places of very different size, more of them down a level; and the level."""
    rng = np.random.default_rng(seed)
    size, level = np.exp(1.5 * rng.normal(size=60)), rng.normal(size=60)
    rates = size[:, None] * size * np.exp(direction * (level[:, None] - level))
    counts = rng.poisson(rates * 20 / rates.mean()).astype(float)
    np.fill_diagonal(counts, 0.0)
    return read_directed(counts, values="strength"), level


@pytest.mark.parametrize(
    ("estimator", "options"),
    [(FinslerUMAP, {"n_epochs": 5}), (FinslerTSNE, {"n_iter": 5, "early_exaggeration_iter": 5})],
)
def test_heights_of_strengths_are_judged_by_strengths(estimator, options):
    """By shares of what leaves a source they were judged by its size: "does not show it"."""
    data, level = flows(0.3)
    model = fitted(estimator, data, **options)
    height = np.asarray(model.embedding_)[:, -1]
    assert np.corrcoef(height, level)[0, 1] > 0.9
    assert model.evidence_.summary == "there is a direction, and the height shows it"
    S = data.strengths.toarray()
    i, j = np.nonzero(np.triu(S + S.T, 1))
    skew, rise = S[j, i] - S[i, j], height[j] - height[i]
    assert model.skew_fidelity_.sign == pytest.approx(np.mean(skew * rise > 0) / np.mean(skew != 0))


def test_heights_that_show_sizes_are_not_said_to_show_the_direction():
    """The height of FinslerMDS is the size of a source; that of the strengths was tested."""
    data, level = flows(0.3)
    with pytest.warns(UserWarning, match="sizes"):
        model = FinslerMDS(metric="precomputed").fit(data)
    assert abs(np.corrcoef(model.embedding_[:, -1], level)[0, 1]) < 0.5
    assert model.evidence_.more_than_chance
    assert model.evidence_.summary == "there is a direction, but the height does not show it"
