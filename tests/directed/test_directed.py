"""Directed data in all three estimators: every container, names, missing pairs, planted drifts."""

import numpy as np
import pytest
import scipy.sparse

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP
from finsler_ext.mds.estimator import finsler_smacof
from finsler_ext.tsne import opentsne
from tests.directed_data import CONTAINERS, NAMED, NAMES, package_of, planted, towns, twice

pytestmark = [
    pytest.mark.filterwarnings("ignore:With omega_norm:UserWarning"),
    pytest.mark.filterwarnings("ignore:perplexity=:UserWarning"),
]
ESTIMATORS = {
    "umap": lambda: FinslerUMAP(metric="precomputed", n_epochs=20, random_state=0),
    "tsne": lambda: FinslerTSNE(
        metric="precomputed",
        perplexity=8,
        n_iter=20,
        early_exaggeration_iter=20,
        random_state=0,
    ),
    "mds": lambda: FinslerMDS(metric="precomputed", max_iter=20, random_state=0),
}
by_estimator = pytest.mark.parametrize("name", ESTIMATORS)


@pytest.fixture(scope="module")
def wanted():
    return {name: np.array(make().fit(towns()).embedding_) for name, make in ESTIMATORS.items()}


@by_estimator
@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_bits(name, container, wanted):
    package = package_of(container)
    if package:
        pytest.importorskip(package)
    data = CONTAINERS[container](towns())
    model = ESTIMATORS[name]().fit(data)
    assert np.array_equal(np.asarray(model.embedding_), wanted[name])
    if container.startswith(NAMED):
        assert list(model.node_names_) == NAMES
    else:
        assert model.node_names_ is None
    again = ESTIMATORS[name]().fit_transform(data)
    assert np.array_equal(np.asarray(again), wanted[name])


@by_estimator
def test_transform_takes_the_same_containers_of_rows(name):
    _, D = planted("height", 0.4, n=60, missing=0.2)
    new, back = D[50:, :50], D[:50, 50:].T
    model = ESTIMATORS[name]().fit(D[:50, :50])
    wanted = np.asarray(model.transform(new, incoming=back))
    for form in (
        lambda rows: np.where(np.isnan(rows), np.inf, rows),
        np.ma.masked_invalid,
    ):
        assert np.array_equal(np.asarray(model.transform(form(new), incoming=form(back))), wanted)
    sparse = [
        scipy.sparse.coo_array(
            (rows[np.isfinite(rows)], np.nonzero(np.isfinite(rows))), shape=rows.shape
        )
        for rows in (new, back)
    ]
    model = ESTIMATORS[name]().fit(twice(D[:50, :50]))
    placed = np.asarray(model.transform(twice_rows(sparse[0]), incoming=sparse[1].tocsr()))
    assert np.array_equal(placed, wanted)


def twice_rows(matrix):
    rows = scipy.sparse.csr_array(matrix)
    return scipy.sparse.csr_array(
        (np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), 2 * rows.indptr), rows.shape
    )


@by_estimator
def test_graphs_and_edge_lists_without_precomputed_are_refused(name):
    pytest.importorskip("networkx")
    pytest.importorskip("pandas")
    model = ESTIMATORS[name]().set_params(metric="euclidean")
    for container in ("networkx", "pandas, edges", "read_directed"):
        with pytest.raises(ValueError, match="needs metric='precomputed'"):
            model.fit(CONTAINERS[container](towns()))


@by_estimator
def test_names_survive_in_frames(name):
    pytest.importorskip("pandas")
    for container in ("pandas, square", "pandas, edges", "dict, edges"):
        model = ESTIMATORS[name]().set_output(transform="pandas")
        table = model.fit_transform(CONTAINERS[container](towns()))
        assert list(table.index) == NAMES
        assert table.shape == (len(NAMES), 3)
        assert list(table.columns) == list(model.get_feature_names_out())


def test_names_are_in_the_page(tmp_path):
    pytest.importorskip("plotly")
    from finsler_ext.plot import explore

    model = ESTIMATORS["mds"]().fit(CONTAINERS["dict, edges"](towns()))
    page = explore(model, tmp_path / "page.html").read_text()
    assert all(name in page for name in NAMES)


@by_estimator
def test_new_rows_of_a_frame_are_checked_by_name(name):
    pytest.importorskip("pandas")
    frame = CONTAINERS["pandas, square"](towns())
    model = ESTIMATORS[name]().fit(frame)
    assert list(model.feature_names_in_) == NAMES
    rows, back = frame.iloc[:3][NAMES] + 1, frame.T.loc[NAMES[:3], NAMES] + 1
    assert model.transform(rows, incoming=back).shape == (3, 3)
    with pytest.raises(ValueError, match="eature names"):
        model.transform(frame.iloc[:3], incoming=back)


@by_estimator
def test_frames_that_do_not_match_are_refused(name):
    pytest.importorskip("pandas")
    frame = CONTAINERS["pandas, square"](towns())
    with pytest.raises(ValueError, match="'town03' is a row and not a column"):
        ESTIMATORS[name]().fit(frame.rename(columns={"town03": "elsewhere"}))


@by_estimator
def test_finite_distances_that_overflow_are_refused(name):
    D = towns()
    with pytest.raises(ValueError, match="use another unit"):
        ESTIMATORS[name]().fit(D * 1e200)
    if name == "umap":  # its float32 holds them in another unit
        want = ESTIMATORS[name]().fit(D).embedding_
        for data in (D * 2.0**130, (D * 2.0**130).tolist()):
            assert np.array_equal(ESTIMATORS[name]().fit(data).embedding_, want)


@by_estimator
def test_what_a_height_can_show_is_said_with_the_fit(name):
    ring = np.kron(5 + np.array([[0, 1, -1], [-1, 0, 1], [1, -1, 0.0]]), np.ones((8, 8)))
    ring += 0.1 * np.abs(np.subtract.outer(np.arange(24), np.arange(24)))
    np.fill_diagonal(ring, 0)
    with pytest.warns(UserWarning, match="cyclic or noise.*express 0% of it"):
        model = ESTIMATORS[name]().fit(ring)
    assert model.gradient_share_ == pytest.approx(0, abs=1e-6)
    model = ESTIMATORS[name]().fit(towns())
    assert model.gradient_share_ == pytest.approx(1, abs=1e-4)
    symmetric = np.nan_to_num(towns(), nan=30.0)
    model = ESTIMATORS[name]().fit(symmetric + symmetric.T)
    assert np.isnan(model.gradient_share_)


def test_opentsne_s_manner_reads_the_same():
    settings = {"perplexity": 8, "n_iter": 20, "early_exaggeration_iter": 20, "random_state": 0}
    model = opentsne.OpenFinslerTSNE(metric="precomputed", **settings)
    embedding = model.fit(CONTAINERS["dict, edges"](towns()))
    assert list(model.node_names_) == NAMES
    assert np.array_equal(embedding, ESTIMATORS["tsne"]().fit(towns()).embedding_)


def test_duplicates_in_the_solvers_are_summed():
    once, doubled = (finsler_smacof(data, max_iter=20) for data in (towns(), twice(towns())))
    assert np.array_equal(once.embedding, doubled.embedding)


# ------------------------------------------------------------------ drift and columns


@pytest.mark.filterwarnings("ignore:Much of the asymmetry:UserWarning")  # noise against 0.05
@pytest.mark.parametrize("omega", [0.05, 0.15, 0.3, 0.6])
@pytest.mark.parametrize("kind", ["planar", "height"])
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_planted_drifts_are_found_with_the_right_number_of_columns(kind, omega, noise):
    Y, D = planted(kind, omega, noise=noise)
    model = FinslerMDS("auto", omega_norm="auto", metric="precomputed", random_state=0)
    embedding = model.fit_transform(D)
    assert embedding.shape == Y.shape
    assert model.omega_norm_ == pytest.approx(omega, rel=0.1)
    assert np.corrcoef(embedding[:, -1], Y[:, -1])[0, 1] > 0.99
    assert len(model.column_choice_.trials) == 2
    assert "2 columns" in model.column_choice_.reason


@pytest.mark.parametrize("omega", [0.15, 0.6])
def test_a_column_to_spare_is_announced(omega):
    _, D = planted("planar", omega, noise=0.02)
    with pytest.warns(UserWarning, match="2 columns fit as well as 3.*n_components=2"):
        model = FinslerMDS(3, omega_norm="auto", metric="precomputed").fit(D)
    assert model.drift_choice_.ambiguous
    # of the drifts that fit as well it takes the smallest
    assert model.omega_norm_ == pytest.approx(omega, rel=0.1)
    same = {}
    for other in (model.omega_norm_, 0.5 * (1 + model.omega_norm_)):
        same[other] = finsler_smacof(D, omega_norm=other, max_iter=3000, eps=1e-9)
    low, high = (fit.normalized_stress for fit in same.values())
    assert high < 2 * low


def test_the_search_costs_less_than_five_fits(monkeypatch):
    _, D = planted("height", 0.3, noise=0.02)
    counted = []

    def counting(*args, **kwds):
        counted.append(args[3].max_iter)
        return run_at(*args, **kwds)

    from finsler_ext.mds.descent import run_at

    monkeypatch.setattr("finsler_ext.mds.drift.run_at", counting)
    FinslerMDS(3, omega_norm="auto", metric="precomputed", max_iter=300).fit(D)
    assert sum(counted) <= 5 * 300


def test_an_edge_list_of_the_nearest_keeps_its_drift():
    """Shortest paths run round against the drift; distances themselves do not."""
    Y, D = planted("planar", 0.3, n=150, missing=0)
    near = np.argsort(D, axis=1)[:, 1:9]
    edges = {"from": np.repeat(np.arange(150), 8), "to": near.ravel()}
    edges["minutes"] = D[edges["from"], edges["to"]]
    model = FinslerMDS("auto", omega_norm="auto", metric="precomputed").fit(edges)
    assert model.omega_norm_ == pytest.approx(0.3, rel=0.1)
    assert np.corrcoef(model.embedding_[:, -1], Y[:, -1])[0, 1] > 0.99


def test_a_graph_without_lengths_is_completed_along_paths():
    nx = pytest.importorskip("networkx")
    ladder = nx.DiGraph(nx.cycle_graph(12))
    model = FinslerMDS(2, metric="precomputed", omega_norm=0.0).fit(ladder)
    hops = [nx.shortest_path_length(ladder, 0, j) for j in ladder]
    assert model.dissimilarity_matrix_[0].tolist() == hops
    radius = np.linalg.norm(model.embedding_, axis=1)
    assert np.ptp(radius) < 0.05 * radius.mean()


@pytest.mark.filterwarnings("ignore:Much of the asymmetry:UserWarning")
def test_parts_without_a_distance_between_them_are_named():
    edges = {"source": [0, 1, 2, 3, 4, 5], "target": [1, 2, 0, 4, 5, 3]}
    with pytest.warns(UserWarning, match="fall apart into 2 groups"):
        FinslerMDS(metric="precomputed").fit(edges)
