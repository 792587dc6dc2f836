"""Every method of the experiments has a name that parses, and embeds small data."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from benchmarks.data import Dataset
from benchmarks.paper.experiments import EXPERIMENTS
from benchmarks.paper.methods import FAMILIES, Request, embed, family_of, parse
from benchmarks.paper.naming import title_of
from benchmarks.paper.problem import Problem
from finsler_ext.geometry.randers import randers_distances

NAMED = sorted({method for e in EXPERIMENTS.values() for method in e.methods})
ON_DISTANCES = sorted(
    {parse(m).family for name in ("flights", "directed") for m in EXPERIMENTS[name].methods}
)
# One name of each family: in three columns where it has a height beside a map.
SMALLEST = {
    name: f"{name}_0.5_3d" if family.has_drift else f"{name}_{1 if name == 'spacing' else 2}d"
    for name, family in FAMILIES.items()
}


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True)
    return Problem(Dataset("flowers", X[:100:2].astype(np.float32), y[:100:2]))


@pytest.fixture(scope="module")
def directed():
    places = np.random.default_rng(0).normal(size=(40, 3))
    return Problem(Dataset("directed", randers_distances(places, 0.4), metric="precomputed"))


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("umap_2d", Request("umap", 2)),
        ("finsler_umap_0.5_3d", Request("finsler_umap", 3, 0.5)),
        ("finsler_umap_0_50d", Request("finsler_umap", 50, 0.0)),
        ("finsler_umap_0.1_3d+k50", Request("finsler_umap", 3, 0.1, 50)),
        ("finsler_mds_auto_2d", Request("finsler_mds", 2, "auto")),
        ("finsler_mds_gd_0.5_3d", Request("finsler_mds_gd", 3, 0.5)),
        ("one_sided_umap_.9_2d", Request("one_sided_umap", 2, 0.9)),
    ],
)
def test_parts_of_a_name(name, request_):
    assert parse(name) == request_


@pytest.mark.parametrize("name", NAMED)
def test_names_of_the_experiments_can_be_read_and_written(name):
    asked = parse(name)
    drift = (
        ""
        if asked.omega is None
        else f"_{asked.omega if asked.omega == 'auto' else f'{asked.omega:g}'}"
    )
    extension = f"+k{asked.extension}" if asked.extension else ""
    assert f"{asked.family}{drift}_{asked.dimension}d{extension}" == name
    title = title_of(name)
    assert title.startswith(family_of(name).title)
    assert f"{asked.dimension}-D" in title


def test_titles_tell_all_methods_apart():
    assert len({title_of(name) for name in NAMED}) == len(NAMED)


@pytest.mark.parametrize(
    "name", ["", "umap", "nothing_2d", "umap_0.5_2d", "finsler_umap_3d", "umap_2d+50", "Umap_2d"]
)
def test_unknown_names_list_the_families(name):
    with pytest.raises(ValueError, match="unknown method") as error:
        parse(name)
    assert all(family in str(error.value) for family in FAMILIES)


# ------------------------------------------------------------------ embeddings


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_embeds_features(family, flowers):
    _check(SMALLEST[family], flowers)


@pytest.mark.parametrize("family", ON_DISTANCES)
def test_families_embed_directed_distances(family, directed):
    _check(SMALLEST[family], directed)


def _check(name, problem):
    found = embed(name, problem, 0)
    asked = parse(name)
    radius = asked.family == "radius_distance"
    assert found.embedding.shape == (problem.n, asked.dimension + radius)
    assert np.isfinite(found.embedding).all()
    assert np.ptp(found.embedding, axis=0).min() > 0
    assert found.has_height == (asked.omega is not None or radius or asked.family == "spacing")
    if found.distances is not None:
        assert found.distances().shape == (problem.n, problem.n)
    assert np.isfinite(list(found.scores.values())).all()
    again = embed(name, problem, 0)
    assert np.array_equal(found.embedding, again.embedding)
    assert found.scores == again.scores


@pytest.mark.parametrize("name", ["finsler_umap_0_3d", "finsler_tsne_0_3d", "finsler_mds_0_3d"])
def test_without_drift_there_is_no_height(name, flowers):
    assert not embed(name, flowers, 0).has_height


@pytest.mark.parametrize("name", ["finsler_umap_0.5_3d", "finsler_tsne_0.5_2d"])
def test_another_seed_gives_another_embedding(name, flowers):
    assert family_of(name).random
    first, second = (embed(name, flowers, seed).embedding for seed in (0, 1))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("name", ["finsler_mds_0.5_3d", "isomap_2d", "slide_vector_2d"])
def test_methods_that_run_once_do_not_depend_on_the_seed(name, flowers):
    assert not family_of(name).random
    first, second = (embed(name, flowers, seed).embedding for seed in (0, 1))
    assert np.array_equal(first, second)


def test_neighbours_can_be_extended(flowers):
    plain = embed("finsler_umap_0.5_3d", flowers, 0).embedding
    extended = embed("finsler_umap_0.5_3d+k30", flowers, 0).embedding
    assert extended.shape == plain.shape
    assert not np.allclose(plain, extended)
