"""A series laid out together: what stays the same stays in place, and heights compare."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.stats import spearmanr
from umap import UMAP

import finsler_ext
from benchmarks import aligned as benchmark
from benchmarks.aligned import planted_series, rewired, scores
from finsler_ext import FinslerUMAP
from finsler_ext.aligned import AlignedFinslerUMAP, _related

QUICK = {"random_state": 0, "n_epochs": 100}


@pytest.fixture(scope="module")
def planted():
    before = benchmark.N_SETS, benchmark.N_ROWS
    benchmark.N_SETS, benchmark.N_ROWS = 3, 300
    sets, same = planted_series(7)
    benchmark.N_SETS, benchmark.N_ROWS = before
    relations = [{int(i): int(i) for i in np.flatnonzero(stays)} for stays in same]
    return sets, same, relations


@pytest.fixture(scope="module")
def series(planted):
    sets, _, relations = planted
    return AlignedFinslerUMAP(FinslerUMAP(**QUICK)).fit(sets, relations=relations)


def test_rows_that_stay_the_same_stay_in_place(planted, series):
    sets, same, _ = planted
    move, flat, every = scores(series.embeddings_, sets, same)
    apart = [FinslerUMAP(**QUICK).fit(X).embedding_ for X in sets]
    separate = scores(apart, sets, same)
    assert move < 0.05 < separate[0]
    assert flat > separate[1] - 0.02
    assert every > separate[2] - 0.02


def test_rows_that_change_may_move(planted, series):
    stays = planted[1][0]
    step = np.linalg.norm(np.diff([Y[:, :2] for Y in series.embeddings_[:2]], axis=0)[0], axis=1)
    assert np.median(step[~stays]) > 5 * np.median(step[stays])


def test_heights_of_the_series_have_one_scale(planted, series):
    sets, same, _ = planted
    heights = [Y[:, -1] for Y in series.embeddings_]
    for t, stays in enumerate(same):
        gap = heights[t + 1][stays] - heights[t][stays]
        assert np.median(np.abs(gap)) < 0.3 * np.std(heights[0])
        assert abs(gap.mean()) < 0.1 * np.std(heights[0])
    wider = AlignedFinslerUMAP(FinslerUMAP(**QUICK, height="potential")).fit(
        [sets[0], 2.0 * sets[0]], names=[np.arange(300)] * 2
    )
    rise = wider.embeddings_[1][:, -1] - wider.embeddings_[0][:, -1]
    assert (rise > 0).all()  # twice the distances: all of it is sparser, and lies higher
    np.testing.assert_allclose(rise, rise.mean(), rtol=0.05)


def test_names_are_relations_and_threads_change_nothing(planted):
    sets, same, _ = planted
    names = [np.arange(300)]
    for t, stays in enumerate(same):
        names.append(np.where(stays, names[-1], 1000 * (t + 1) + np.arange(300)))
    frames = [pd.DataFrame(X, index=part) for X, part in zip(sets, names, strict=True)]
    one = AlignedFinslerUMAP(FinslerUMAP(**QUICK, n_jobs=1)).fit(sets, names=names)
    two = AlignedFinslerUMAP(FinslerUMAP(**QUICK, n_jobs=2)).fit(frames)
    for a, b in zip(one.embeddings_, two.embeddings_, strict=True):
        np.testing.assert_array_equal(a, b)


def test_update_adds_a_map_and_moves_none(planted):
    sets, same, relations = planted
    series = AlignedFinslerUMAP(FinslerUMAP(**QUICK)).fit(sets[:2], relations=relations[:1])
    before = [Y.copy() for Y in series.embeddings_]
    series.update(sets[2], relations=relations[1])
    assert len(series.models_) == len(series.identities_) == 3
    for old, now in zip(before, series.embeddings_, strict=False):
        np.testing.assert_array_equal(old, now)
    stays = same[1]
    assert (series.identities_[2][stays] == series.identities_[1][stays]).all()
    assert not set(series.identities_[2][~stays]) & set(series.identities_[1])
    move, flat, _ = scores(series.embeddings_[1:], sets[1:], same[1:])
    alone = FinslerUMAP(**QUICK).fit(sets[2]).embedding_
    assert move < 0.07
    assert flat > scores([before[1], alone], sets[1:], same[1:])[1] - 0.03
    gap = (series.embeddings_[2] - series.embeddings_[1])[stays, -1]
    assert abs(gap.mean()) < 0.15 * before[1][:, -1].std()


def test_models_are_fitted_and_can_be_saved(planted, series, tmp_path):
    model = series.models_[1]
    np.testing.assert_array_equal(model.embedding_, series.embeddings_[1])
    assert model.skew_fidelity_.sign > 0.6
    assert model.n_epochs == 100
    new = planted[0][1][:4] + 0.1
    np.testing.assert_array_equal(series.transform(new, stage=1), model.transform(new))
    model.save(tmp_path / "stage.finsler")
    loaded = finsler_ext.load(tmp_path / "stage.finsler")
    np.testing.assert_array_equal(loaded.transform(new), model.transform(new))


def digraphs(n=60):
    """Three digraphs of the same order; the nodes of the second are in another order of rows."""
    rng = np.random.default_rng(0)
    names = np.array([f"n{i:02}" for i in range(n)])
    stages = []
    for t in range(3):
        rows = rng.permutation(n)[: n - 5 * t]
        i, j = np.sort(rows[rng.integers(rows.size, size=(2, 500))], axis=0)
        edges = pd.DataFrame({"from": names[i], "to": names[j], "distance": 1.0})[i < j]
        stages.append(edges.drop_duplicates())
    return stages


@pytest.mark.parametrize("height", ["potential", "held"])
def test_digraphs_by_the_names_of_their_nodes(height):
    estimator = FinslerUMAP(metric="precomputed", omega_norm=0.9, height=height, **QUICK)
    series = AlignedFinslerUMAP(estimator).fit(digraphs())
    frames = [
        pd.Series(Y[:, -1], index=model.node_names_)
        for model, Y in zip(series.models_, series.embeddings_, strict=True)
    ]
    for frame in frames:
        order = [-int(name[1:]) for name in frame.index]
        assert spearmanr(frame, order)[0] > 0.7
    both = pd.concat(frames[:2], axis=1, join="inner").to_numpy()
    assert np.corrcoef(both.T)[0, 1] > 0.8
    assert abs(np.diff(both.mean(axis=0))[0]) < 0.2 * both.std()


def test_related_rows_have_one_number():
    one, two, three = _related([3, 2, 2], [{0: 1, 2: 0}, {1: 0}])
    assert one[0] == two[1] == three[0]
    assert one[2] == two[0]
    assert len(set(one) | set(two) | set(three)) == 4


def test_rewiring_keeps_degrees():
    rng = np.random.default_rng(0)
    A = np.where(rng.uniform(size=(30, 30)) < 0.2, rng.integers(1, 5, size=(30, 30)), 0)
    np.fill_diagonal(A, 0)
    B = rewired(A, rng)
    for axis in (0, 1):
        np.testing.assert_array_equal((A > 0).sum(axis=axis), (B > 0).sum(axis=axis))
    assert (A.sum(axis=1) == B.sum(axis=1)).all()
    assert ((A > 0) & (B > 0)).sum() < 0.5 * (A > 0).sum()
    assert np.diag(B).sum() == 0


@pytest.mark.parametrize(
    ("sets", "options", "given", "words"),
    [
        (1, {}, {"relations": []}, "at least two"),
        (2, {}, {}, "the rows have no names"),
        (2, {}, {"relations": []}, "2 data sets need 1 dicts"),
        (2, {}, {"relations": [{0: 1, 1: 1}]}, "different rows"),
        (2, {}, {"relations": [{0: 500}]}, "0 to 39"),
        (2, {}, {"relations": [[(0, 1)]]}, r"relations\[0\] must be a dict, got list"),
        (2, {"omega_norm": "auto"}, {"relations": [{}]}, "give a number"),
        (2, {"init": "pca"}, {"relations": [{}]}, "init must be"),
        (2, {"unique": True}, {"relations": [{}]}, "not for a series"),
    ],
)
def test_what_a_series_cannot_be_is_said(sets, options, given, words):
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(ValueError, match=words):
        AlignedFinslerUMAP(FinslerUMAP(**options)).fit([X] * sets, **given)


@pytest.mark.parametrize(
    ("series", "words"),
    [
        (AlignedFinslerUMAP(UMAP()), "estimator must be a FinslerUMAP"),
        (AlignedFinslerUMAP(FinslerUMAP), "estimator must be a FinslerUMAP"),
        (AlignedFinslerUMAP(alignment="strong"), "alignment must be"),
        (AlignedFinslerUMAP(alignment=-1), "alignment must be"),
    ],
)
def test_what_a_series_cannot_be_made_of_is_said(series, words):
    with pytest.raises(ValueError, match=words):
        series.fit([np.eye(5)] * 2, relations=[{}])


def test_a_series_of_maps_returns_map_columns():
    X = np.random.default_rng(0).normal(size=(40, 3))
    series = AlignedFinslerUMAP(FinslerUMAP(output="map", n_epochs=10, random_state=0))
    planes = series.fit_transform([X, X[:30]], relations=[{}])
    assert [plane.shape for plane in planes] == [(40, 2), (30, 2)]
    assert all(
        np.array_equal(plane, whole[:, :2])
        for plane, whole in zip(planes, series.embeddings_, strict=True)
    )


def test_nodes_without_edges_have_no_place():
    A = scipy.sparse.random_array((30, 30), density=0.3, rng=np.random.default_rng(0)).toarray()
    A[:, 4] = A[4] = 0
    np.fill_diagonal(A, 0)
    stages = [scipy.sparse.csr_array(A), scipy.sparse.csr_array(A.T.copy())]
    estimator = FinslerUMAP(metric="precomputed", omega_norm=0.9, **QUICK)
    with pytest.warns(UserWarning, match="disconnected"):
        series = AlignedFinslerUMAP(estimator).fit(stages, names=[np.arange(30)] * 2)
    for Y in series.embeddings_:
        assert np.isnan(Y[4]).all()
        assert np.isfinite(np.delete(Y, 4, axis=0)).all()


def test_a_series_is_saved_whole(planted, tmp_path):
    sets, _, relations = planted
    few = FinslerUMAP(random_state=0, n_epochs=10)
    series = AlignedFinslerUMAP(few, alignment=2.0).fit(sets[:2], relations=relations[:1])
    series.save(tmp_path / "a")
    loaded = finsler_ext.load(tmp_path / "a")
    assert type(loaded) is AlignedFinslerUMAP
    assert loaded.alignment == 2.0
    assert loaded.estimator.get_params() == few.get_params()
    new = sets[2][:5] + 0.01
    np.testing.assert_array_equal(loaded.transform(new), series.transform(new))
    for each in (series, loaded):
        each.update(sets[2], relations=relations[1])
    for ours, theirs in zip(series.embeddings_, loaded.embeddings_, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    series.save(tmp_path / "b")
    loaded.save(tmp_path / "c")
    pickle.loads(pickle.dumps(series)).save(tmp_path / "d")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
    assert (tmp_path / "b").read_bytes() == (tmp_path / "d").read_bytes()


def test_a_series_with_names_takes_relations_for_the_next(planted, tmp_path):
    sets, same, relations = planted
    few = FinslerUMAP(random_state=0, n_epochs=10)
    series = AlignedFinslerUMAP(few).fit(sets[:2], names=[np.arange(300)] * 2)
    for wrong in ({0: 300}, {-1: 0}, {0: 1, 1: 1}):
        with pytest.raises(ValueError, match="must go from rows to different rows"):
            series.update(sets[2], relations=wrong)
    series.update(sets[2], relations=relations[1])
    before, after = series.identities_[1:]
    np.testing.assert_array_equal(before == after, same[1])
    with pytest.raises(ValueError, match="update needs relations"):
        series.update(sets[2], names=np.arange(300))
    series.save(tmp_path / "series.finsler")
    finsler_ext.load(tmp_path / "series.finsler")
