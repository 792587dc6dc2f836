"""AnnData in scanpy's manner: what is read, what is written, and which way cells flow."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import spearmanr

import finsler_ext.scanpy as fsc
from finsler_ext import FinslerUMAP
from finsler_ext.directed.read import read_anndata, read_transitions

anndata = pytest.importorskip("anndata")

# scanpy announces its own future on import and in its plots
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
]


@pytest.fixture(scope="module")
def scanpy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("scanpy")


@pytest.fixture(scope="module")
def cells(scanpy):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return scanpy.datasets.pbmc68k_reduced()


@pytest.fixture(scope="module")
def developing():
    """Cells along a curve that move to neighbours ahead of them, and seldom back."""
    rng = np.random.default_rng(0)
    time = np.sort(rng.uniform(size=150))
    X = np.column_stack([np.cos(3 * time), np.sin(3 * time), time])
    X += 0.02 * rng.normal(size=X.shape)
    distance = np.linalg.norm(X[:, None] - X, axis=2)
    near = np.argsort(distance, axis=1)[:, 1:21]
    cosines = np.zeros((150, 150))
    ahead = np.sign(time[near] - time[:, None]) * rng.uniform(0.2, 0.9, size=near.shape)
    np.put_along_axis(cosines, near, ahead, axis=1)
    T = np.where(cosines != 0, np.exp(10 * cosines), 0)
    adata = anndata.AnnData(X.astype(np.float32))
    adata.obs["time"] = time
    return adata, cosines, T / T.sum(axis=1, keepdims=True)


def test_stored_neighbours_are_read_as_they_are(cells):
    indices, distances = fsc._stored_neighbors(cells, "neighbors")
    D = cells.obsp["distances"].toarray()
    for i in (0, 17, 699):
        assert indices[i, 0] == i
        assert set(indices[i, 1:]) == set(np.flatnonzero(D[i]))
        assert distances[i, 1:] == pytest.approx(np.sort(D[i][D[i] > 0]))


def test_umap_writes_what_scanpy_draws(cells, scanpy, tmp_path):
    adata = fsc.umap(cells, copy=True)
    assert "X_finsler_umap" not in cells.obsm
    embedding = adata.obsm["X_finsler_umap"]
    assert embedding.shape == (700, 3)
    assert np.array_equal(adata.obs["finsler_umap_height"], embedding[:, 2])
    stored = adata.uns["finsler_umap"]
    assert stored["params"]["omega_norm"] == 0.5
    assert stored["params"]["source"] == "neighbors"
    assert stored["skew_fidelity"]["sign"] > 0.8
    scale = np.log(np.array(cells.obsp["distances"].sum(axis=1)).ravel())
    assert spearmanr(embedding[:, 2], scale).statistic > 0.6
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = scanpy.pl.embedding(adata, "finsler_umap", color="finsler_umap_height", show=False)
    drawn = np.asarray(ax.collections[0].get_offsets())
    assert sorted(drawn[:, 0]) == pytest.approx(sorted(embedding[:, 0]))
    matplotlib.pyplot.close("all")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert again.uns["finsler_umap"]["skew_fidelity"]["sign"] == stored["skew_fidelity"]["sign"]


def test_without_stored_neighbours_x_pca_is_used(cells):
    adata = anndata.AnnData(cells.X[:300], obsm={"X_pca": cells.obsm["X_pca"][:300]})
    fsc.umap(adata, key_added="mine", n_epochs=50)
    expected = FinslerUMAP(random_state=0, min_dist=0.5, n_epochs=50)
    assert np.array_equal(adata.obsm["mine"], expected.fit_transform(adata.obsm["X_pca"]))
    assert "mine_height" in adata.obs
    assert adata.uns["mine"]["params"]["source"] == "X_pca"
    fsc.umap(adata, use_rep="X", n_epochs=20, omega_norm=0)
    assert adata.uns["finsler_umap"]["params"]["source"] == "X"


def test_tsne(cells):
    adata = anndata.AnnData(shape=(300, 0), obsm={"X_pca": cells.obsm["X_pca"][:300]})
    fsc.tsne(adata, n_pcs=20, early_exaggeration_iter=100, n_iter=100)
    assert adata.obsm["X_finsler_tsne"].shape == (300, 3)
    assert type(adata.obsm["X_finsler_tsne"]) is np.ndarray
    assert adata.uns["finsler_tsne"]["skew_fidelity"]["sign"] > 0.6


@pytest.mark.parametrize("method", ["umap", "mds"])
def test_cells_run_down(developing, method):
    adata, _, T = developing
    adata = adata.copy()
    adata.obsp["T_fwd"] = scipy.sparse.csr_matrix(T)
    fsc.velocity(adata, method=method)
    fall = spearmanr(adata.obs["finsler_velocity_height"], adata.obs["time"]).statistic
    assert fall < -0.9
    assert adata.uns["finsler_velocity"]["params"]["source"] == "T_fwd"


def test_a_velocity_graph_is_read_as_scvelo_does(developing):
    adata, cosines, T = developing
    adata = adata.copy()
    adata.uns["velocity_graph"] = scipy.sparse.csr_matrix(np.maximum(cosines, 0))
    adata.uns["velocity_graph_neg"] = scipy.sparse.csr_matrix(np.minimum(cosines, 0))
    found, source = read_transitions(adata, None)
    assert source == "velocity_graph"
    assert found.toarray() == pytest.approx(T)
    fsc.velocity(adata)
    by_graph = adata.obsm["X_finsler_velocity"]
    fsc.velocity(adata, T, key_added="given")
    # rounding aside, the same transitions
    assert spearmanr(by_graph[:, 2], adata.obsm["given"][:, 2]).statistic > 0.95


def test_staying_is_no_transition(developing):
    adata, _, T = developing
    lazy = 0.5 * T + 0.5 * np.eye(150)
    found, _ = read_anndata(adata, lazy)
    assert found.strengths.toarray() == pytest.approx(0.5 * T)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: fsc.umap(a, use_rep="X_scvi"), "X_scvi"),
        (fsc.umap, r"neither neighbours nor X_pca\. Run sc\.pp\.neighbors or sc\.pp\.pca first"),
        (lambda a: fsc.umap(a, neighbors_key="mine"), "sc.pp.neighbors"),
        (lambda a: fsc.tsne(a, use_rep="X_scvi"), "X_scvi"),
        (lambda a: fsc.velocity(a), "velocity_graph"),
        (lambda a: fsc.velocity(a, "T"), "not in obsp"),
        (lambda a: fsc.velocity(a, np.eye(3)), "shape"),
        (lambda a: fsc.velocity(a, np.full((150, 150), 0.5)), "sum to 1"),
        (lambda a: fsc.velocity(a, -np.eye(150)), "≥ 0"),
        (lambda a: fsc.velocity(a, np.full((150, 150), 1 / 150), method="tsne"), "'umap' or 'mds'"),
    ],
)
def test_errors_name_the_way_out(developing, call, message):
    with pytest.raises(ValueError, match=message):
        call(developing[0])


def test_stored_neighbours_keep_their_number(cells):
    with pytest.raises(ValueError, match="use_rep='X_pca'"):
        fsc.umap(cells, n_neighbors=5)


def test_a_cell_with_few_neighbours_does_not_cut_the_others(cells):
    want, lengths = fsc._stored_neighbors(cells, "neighbors")
    cells = cells.copy()
    stored = cells.obsp["distances"].tolil()
    lost = want[5, 4:]
    stored[5, lost] = 0.0
    cells.obsp["distances"] = stored.tocsr()
    cells.obsp["distances"].eliminate_zeros()
    indices, distances = fsc._stored_neighbors(cells, "neighbors")
    others = np.arange(len(want)) != 5
    assert np.array_equal(indices[others], want[others])
    assert np.array_equal(distances[others], lengths[others])
    assert (indices[5] >= 0).sum() == 4
    assert np.isinf(distances[5, 4:]).all()
    fsc.umap(cells, n_components=3)
    assert np.isfinite(cells.obsm["X_finsler_umap"]).all()


def test_a_broken_graph_is_refused(cells):
    cells = cells.copy()
    cells.obsp["distances"] = cells.obsp["distances"].copy()
    cells.obsp["distances"].indices[3] = 10**6
    with pytest.raises(ValueError, match="obsp\\['distances'\\] is a broken sparse matrix"):
        fsc.umap(cells)
