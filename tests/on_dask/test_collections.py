"""Dask collections without a cluster: the bits of one machine, for any chunks and parts."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("distributed")

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP, load  # noqa: E402
from finsler_ext.dask import ClusterError, estimators, fit, transform  # noqa: E402
from finsler_ext.dask.cluster import Runner, blocks_of  # noqa: E402
from finsler_ext.dask.files import open_collection, row_counts  # noqa: E402
from finsler_ext.dask.neighbors import merged, nearest_by_parts  # noqa: E402
from finsler_ext.neighbors.exact import exact_neighbors  # noqa: E402
from finsler_ext.neighbors.search import SearchSettings  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:With omega_norm:UserWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(scale=3, size=(5, 6))[RNG.integers(5, size=260)] + RNG.normal(size=(260, 6))
X[40] = X[41] = X[7]  # copies in several parts
NEW = RNG.normal(scale=3, size=(50, 6))
COLUMNS = list("abcdef")
UMAP = FinslerUMAP(n_epochs=15, random_state=0)
TSNE = FinslerTSNE(
    n_iter=10, early_exaggeration_iter=10, perplexity=8, random_state=0, neighbors="exact"
)
MDS = FinslerMDS(max_iter=5, random_state=0)


def array(rows, size):
    return da.from_array(rows, chunks=(size, 4))


def frame(rows, n):
    return dd.from_pandas(pd.DataFrame(rows, columns=COLUMNS), npartitions=n)


def neighbors(rows, collection, k, rows_per_part, metric="euclidean", query_rows=20):
    runner = Runner()
    sizes = {"rows_per_part": rows_per_part, "query_rows": query_rows}
    blocks = blocks_of(collection, runner)
    found = nearest_by_parts(blocks, runner, k, SearchSettings(metric), **sizes)
    return [np.concatenate(part) for part in zip(*found, strict=True)]


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_neighbours_by_parts_are_those_of_all_pairs(metric):
    rows = X.astype(np.float32)
    expected = exact_neighbors(rows, 11, metric=metric)
    for size, part in ((260, 260), (37, 60), (100, 41)):
        indices, distances = neighbors(rows, array(rows, size), 10, part, metric)
        if metric == "euclidean":
            np.testing.assert_array_equal(indices, expected.indices[:, 1:])
        np.testing.assert_allclose(distances, expected.distances[:, 1:], rtol=1e-5, atol=1e-6)


def test_neighbours_of_few_rows():
    rows = X[:5].astype(np.float32)
    indices, distances = neighbors(rows, array(rows, 2), 10, 2)
    assert indices.shape == (5, 4)
    assert np.isfinite(distances).all()
    assert [sorted([i, *row]) for i, row in enumerate(indices.tolist())] == [[0, 1, 2, 3, 4]] * 5


def test_merging_goes_by_distance_then_by_row_number():
    left = np.array([[4, 9]]), np.array([[1.0, 2.0]])
    right = np.array([[3, 1, -1]]), np.array([[1.0, 2.0, 0.0]])
    for answers in ([left, right], [right, left]):
        indices, distances = merged(answers, 3)
        assert indices.tolist() == [[3, 4, 1]]
        assert distances.tolist() == [[1.0, 1.0, 2.0]]


@pytest.mark.parametrize("model", [UMAP, TSNE, MDS], ids=["umap", "tsne", "mds"])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_fit_and_transform_give_the_bits_of_memory(model, offset):
    expected = clone(model).fit(X + offset)
    places = expected.transform(NEW + offset)
    for collection, part in (
        (array(X + offset, 100), 80),
        (array(X + offset, 33), 300),
        (frame(X + offset, 3), 50),
    ):
        fitted = fit(clone(model), collection, rows_per_part=part)
        assert np.array_equal(np.asarray(fitted.embedding_), np.asarray(expected.embedding_))
        lazy = fitted.transform(array(NEW + offset, 7))
        assert lazy.chunks == ((7,) * 7 + (1,), (3,))
        assert np.array_equal(lazy.compute(), places)
        in_frame = transform(fitted, frame(NEW + offset, 4))
        assert list(in_frame.columns) == list(fitted.get_feature_names_out())
        assert np.array_equal(in_frame.compute().to_numpy(), places)


@pytest.mark.parametrize(
    ("metric", "kwds"), [("manhattan", {}), ("canberra", {}), ("minkowski", {"p": 3})]
)
def test_other_metrics_give_the_bits_of_memory_too(metric, kwds):
    """Dask took scikit-learn's metrics, and FinslerUMAP in memory takes umap-learn's."""
    models = (
        clone(UMAP).set_params(metric=metric, metric_kwds=kwds),
        clone(TSNE).set_params(metric=metric, metric_params=kwds),
    )
    for model in models:
        fitted = fit(clone(model), array(X, 64), rows_per_part=90)
        assert np.array_equal(fitted.embedding_, clone(model).fit(X).embedding_), model


def test_parameters_are_as_they_were():
    for model in (UMAP, TSNE):
        fitted = clone(model).fit(array(X, 90))
        assert str(fitted.get_params()) == str(model.get_params())
        assert fitted.sample_indices_ is None


def test_float32_and_whole_numbers():
    whole = np.round(X).astype(np.int16)
    for rows in (X.astype(np.float32), whole):
        expected = clone(UMAP).fit(rows)
        fitted = fit(clone(UMAP), array(rows, 64), rows_per_part=70)
        assert np.array_equal(fitted.embedding_, expected.embedding_)


def test_sample_is_drawn_by_row_number(tmp_path):
    fitted = [
        fit(clone(UMAP), collection, sample=120, rows_per_part=part)
        for collection, part in ((array(X, 50), 30), (array(X, 260), 500), (frame(X, 4), 77))
    ]
    rows = fitted[0].sample_indices_
    assert len(rows) == 120 == len(np.unique(rows))
    expected = clone(UMAP).fit(X[rows]).embedding_
    for model in fitted:
        assert np.array_equal(model.sample_indices_, rows)
        assert np.array_equal(model.embedding_, expected)
    # rows that were fitted return to their places
    everything = fitted[0].transform(array(X, 40)).compute()
    first = [int(np.flatnonzero((X[rows] == X[r]).all(axis=1))[0]) for r in rows]
    assert np.array_equal(everything[rows], expected[first])
    fitted[0].save(tmp_path / "model.finsler")
    loaded = load(tmp_path / "model.finsler")
    assert np.array_equal(loaded.transform(array(X, 99)).compute(), everything)


def test_a_sample_that_was_not_asked_for_is_said(monkeypatch):
    monkeypatch.setattr(estimators, "MOST_ROWS", 200)
    monkeypatch.setattr(estimators, "SAMPLE_ROWS", 100)
    said = "X has 260 rows. The model is fitted to 100 of them"
    for start in (lambda: clone(UMAP).fit(array(X, 100)), lambda: fit(clone(UMAP), array(X, 100))):
        with pytest.warns(UserWarning, match=said) as notes:
            model = start()
        assert len(model.embedding_) == 100
        assert [note.filename for note in notes if said in str(note.message)] == [__file__]
    monkeypatch.setattr(estimators, "MDS_ROWS", 60)
    with pytest.warns(UserWarning, match="fitted to 60 of them"):
        places = clone(MDS).fit_transform(array(X, 100))
    assert places.compute().shape == (260, 3)
    assert len(fit(clone(UMAP), array(X, 100), sample=None).embedding_) == 260


@pytest.mark.parametrize(
    ("model", "collection", "match"),
    [
        (FinslerUMAP(metric="precomputed"), array(X, 50), "metric: a Dask collection"),
        (FinslerUMAP(metric=lambda u, v: 0.0), array(X, 50), "metric: a Dask collection"),
        (UMAP, da.zeros((5, 5, 5)), "two dimensions"),
        (UMAP, frame(X, 2).assign(g="text"), "column 'g' is not numeric"),
    ],
)
def test_what_cannot_be_fitted_is_refused(model, collection, match):
    with pytest.raises(ValueError, match=match):
        clone(model).fit(collection)


def test_other_refusals():
    with pytest.raises(ValueError, match="y: fit of a Dask collection takes the rows alone"):
        clone(UMAP).fit(array(X, 50), np.zeros(len(X)))
    with pytest.raises(ValueError, match="sample must be a number of rows"):
        fit(clone(UMAP), array(X, 50), sample="half")
    with pytest.raises(ValueError, match="X must be a Dask array"):
        fit(clone(UMAP), X)
    model = clone(MDS).fit(X)
    with pytest.raises(ValueError, match="incoming: transform of a Dask collection"):
        model.transform(array(NEW, 9), incoming=NEW)


def test_an_error_leaves_the_model_as_it_was():
    model = clone(UMAP).fit(X)
    before = model.embedding_.copy()
    holes = X.copy()
    holes[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(array(holes, 50))
    assert np.array_equal(model.embedding_, before)


def test_unknown_chunks():
    lazy = frame(X, 3).to_dask_array()
    assert np.isnan(lazy.chunks[0]).all()
    fitted = clone(UMAP).fit(lazy)
    assert np.array_equal(fitted.embedding_, clone(UMAP).fit(X).embedding_)


@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")  # Dask on pandas 3.1
def test_rows_are_counted_without_reading(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    pd.DataFrame(X, columns=COLUMNS).to_parquet(path, row_group_size=70, index=False)
    assert row_counts(path) == [70, 70, 70, 50]
    assert row_counts(tmp_path) is None
    blocks = blocks_of(open_collection(path), Runner())
    assert blocks.sizes.tolist() == row_counts(path)


def test_worker_out_of_memory_is_said():
    def hungry():
        raise MemoryError

    class Client:
        status = "running"

        def compute(self, task):
            return self

        def scheduler_info(self, n_workers=-1):
            return {"workers": {"a": 1}}

        def result(self, timeout):
            return hungry()

        def release(self):
            pass

    with pytest.raises(ClusterError, match="a worker ran out of memory"):
        list(Runner(Client()).in_order([1]))


def test_options_of_transform_reach_every_block():
    model = clone(TSNE).fit(X)
    for options in ({"n_iter": 30, "learning_rate": 1.0}, {"perplexity": 4}):
        expected = model.transform(NEW, **options)
        assert not np.array_equal(expected, model.transform(NEW))
        placed = model.transform(array(NEW, 13), **options)
        assert np.array_equal(placed.compute(), expected)
        framed = model.transform(frame(NEW, 3), **options)
        assert np.array_equal(framed.compute().to_numpy(), expected)
