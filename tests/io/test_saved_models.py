"""A model that was saved and loaded is the model: attributes, transform, another process."""

import json
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

import finsler_ext
from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP, load
from finsler_ext.geometry import Space, find_space
from finsler_ext.io import save
from finsler_ext.neighbors import KMEANS_GRAPH
from finsler_ext.tsne import neighbors as tsne_neighbors
from finsler_ext.tsne import opentsne

pytestmark = [
    pytest.mark.filterwarnings("ignore:With omega_norm:UserWarning"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning"),
    pytest.mark.filterwarnings("ignore:using precomputed metric:UserWarning"),
    pytest.mark.filterwarnings("ignore:gradient function is not yet implemented:UserWarning"),
]

IRIS, SPECIES = load_iris(return_X_y=True)
X, Y, NEW = IRIS[::2].astype(np.float32), SPECIES[::2], IRIS[1::10] + 0.03
SCALE = np.linspace(1, 2, len(X))


def directed(n=40, missing=False):
    rng = np.random.default_rng(0)
    points, height = rng.normal(size=(n, 2)), rng.normal(size=n)
    D = np.linalg.norm(points[:, None] - points, axis=2) * np.exp(
        0.3 * (height[None] - height[:, None])
    )
    if missing:
        D[rng.random(D.shape) < 0.2] = np.nan
    np.fill_diagonal(D, 0)
    return D


def named(D):
    names = [f"p{i}" for i in range(len(D))]
    return pd.DataFrame(D, index=names, columns=names)


def umap(**kwds):
    return FinslerUMAP(**({"n_epochs": 15, "random_state": 0} | kwds))


def tsne(**kwds):
    few = {"n_iter": 10, "early_exaggeration_iter": 10, "perplexity": 8, "random_state": 0}
    return FinslerTSNE(**(few | kwds))


def mds(**kwds):
    return FinslerMDS(**({"max_iter": 10, "random_state": 0} | kwds))


D = directed()
WAYS = {"incoming": D[:5].T[:, :5].T + 0.01}
SPARSE = scipy.sparse.csr_matrix(np.where(X > 1, X, 0))
# name: model, what it is fitted to, new rows, keywords of transform
CASES = {
    "umap": (umap(), (X,), NEW, {}),
    "umap auto": (umap(omega_norm="auto"), (X,), NEW, {}),
    "umap supervised": (umap(), (X, Y), NEW, {}),
    "umap unique": (umap(unique=True), (np.vstack([X, X[:9]]),), NEW, {}),
    "umap scale": (umap(local_scale=list(SCALE)), (X,), NEW, {"local_scale": SCALE[: len(NEW)]}),
    "umap geodesic": (umap(geodesic_neighbors=30), (X,), NEW, {}),
    "umap cosine": (umap(metric="cosine"), (X,), NEW, {}),
    "umap minkowski": (umap(metric="minkowski", metric_kwds={"p": 3}), (X,), NEW, {}),
    "umap sparse": (umap(), (SPARSE,), scipy.sparse.csr_matrix(NEW), {}),
    "umap far away": (umap(), (1e6 + X.astype(float),), 1e6 + NEW, {}),
    "umap directed": (umap(metric="precomputed"), (named(D),), D[:5] + 0.01, WAYS),
    "umap frame": (umap(), (pd.DataFrame(X, columns=list("abcd")),), NEW, {}),
    "umap random state": (umap(random_state=np.random.RandomState(3)), (X,), NEW, {}),
    "umap epochs": (umap(n_epochs=[5, 15]), (X,), NEW, {}),
    "umap free": (umap(n_components=2), (X,), NEW, {}),
    "umap matsumoto": (umap(space="matsumoto", omega_norm=0.3), (X,), NEW, {}),
    "umap space": (umap(space=find_space("matsumoto"), omega_norm=0.3), (X,), NEW, {}),
    "umap groups": (umap(force_approximation_algorithm=True), (X,), NEW, {}),
    "umap graph": (umap(transform_mode="graph"), (X,), NEW, {}),
    "tsne": (tsne(), (X,), NEW, {}),
    "tsne auto": (tsne(omega_norm="auto"), (X,), NEW, {}),
    "tsne scales": (tsne(perplexity=[5, 10], affinity="harmonic"), (X,), NEW, {}),
    "tsne given": (tsne(initialization=X[:, :2]), (X.astype(float),), NEW, {}),
    "tsne scale": (tsne(local_scale=SCALE), (X,), NEW, {"local_scale": SCALE[: len(NEW)]}),
    "tsne directed": (tsne(metric="precomputed"), (named(D),), D[:5] + 0.01, WAYS),
    "tsne sparse": (tsne(initialization="random"), (SPARSE,), scipy.sparse.csr_matrix(NEW), {}),
    "tsne annoy": (tsne(neighbors="annoy"), (X,), NEW, {}),
    "tsne matsumoto": (tsne(space="matsumoto", omega_norm=0.3), (X,), NEW, {}),
    "tsne tree": (tsne(neighbors="exact", negative_gradient_method="bh"), (X,), NEW, {}),
    "mds": (mds(), (X,), NEW, {}),
    "mds auto": (mds(omega_norm="auto", n_components="auto"), (X,), NEW, {}),
    "mds gradient": (mds(method="gd", source_scale="kth"), (X,), NEW, {}),
    "mds scale": (mds(local_scale=SCALE), (X,), NEW, {"local_scale": SCALE[: len(NEW)]}),
    "mds matsumoto": (mds(space="matsumoto", omega_norm=0.3), (X,), NEW, {}),
    "mds ordinal": (mds(scaling="ordinal", metric="precomputed"), (D,), D[:5] + 0.01, WAYS),
    "mds directed": (mds(metric="precomputed"), (directed(missing=True),), D[:5] + 0.01, WAYS),
    "mds named": (mds(metric="precomputed"), (named(D),), D[:5] + 0.01, WAYS),
}


@pytest.fixture(scope="module")
def fitted():
    """Every case is fitted once."""
    made = {}

    def get(name):
        if name not in made:
            model, data, _, _ = CASES[name]
            made[name] = clone(model).fit(*data)
        return made[name]

    return get


def alike(a, b):
    """Equal in type, shape and every bit, whatever it is; functions by their names."""
    if type(a) is not type(b):
        return False
    if scipy.sparse.issparse(a):
        parts = ("data", "indices", "indptr")
        return a.shape == b.shape and all(alike(getattr(a, p), getattr(b, p)) for p in parts)
    if isinstance(a, np.ndarray):
        same = a.dtype == b.dtype and a.shape == b.shape
        return same and (a.tolist() == b.tolist() if a.dtype == object else bits(a) == bits(b))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(alike(a[k], b[k]) for k in a)
    if isinstance(a, np.random.RandomState):
        return alike(a.get_state(), b.get_state())
    if isinstance(a, float):
        return a == b or (a != a and b != b)
    if isinstance(a, (int, str, frozenset, type(None), np.generic)):
        return a == b
    if (callable(a) and hasattr(a, "__name__")) or isinstance(a, Space):
        return a == b
    own = type(a).__module__.startswith("finsler_ext.")
    if own and "__getstate__" in vars(type(a)):  # the rest is a cache
        return alike(sorted(a.__getstate__().items()), sorted(b.__getstate__().items()))
    return attributes_alike(a, b)


def bits(array):
    return np.ascontiguousarray(array).tobytes()


def attributes_alike(a, b):
    """Indices that were built are compared by what transform gives."""
    left, right = vars(a), vars(b)
    unlike = {
        name
        for name in left.keys() | right.keys()
        if name != "index"
        and not (name in left and name in right and alike(left[name], right[name]))
    }
    assert not unlike
    return True


@pytest.mark.parametrize("name", CASES)
def test_loaded_model_is_the_model(name, fitted, tmp_path):
    model, path = fitted(name), tmp_path / "model.finsler"
    model.save(path)
    loaded = load(path)
    assert type(loaded) is type(model)
    assert attributes_alike(model, loaded)
    _, _, new, ways = CASES[name]
    expected, got = model.transform(new, **ways), loaded.transform(new, **ways)
    assert alike(expected, got)
    again = tmp_path / "again.finsler"
    load(path).save(again)
    assert again.read_bytes() == path.read_bytes()


def test_transform_in_a_fresh_process(fitted, tmp_path):
    names = ("umap", "umap cosine", "umap directed", "tsne", "mds", "mds directed")
    for place, name in enumerate(names):
        fitted(name).save(tmp_path / f"{place}.finsler")
        _, _, new, ways = CASES[name]
        np.savez(tmp_path / f"{place}.npz", X=new, **ways)
    script = (
        "import sys, numpy as np, finsler_ext\n"
        "for i in range(int(sys.argv[2])):\n"
        "    path = f'{sys.argv[1]}/{i}'\n"
        "    model = finsler_ext.load(f'{path}.finsler')\n"
        "    np.save(f'{path}.npy', model.transform(**np.load(f'{path}.npz')))"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path, str(len(names))], check=True)
    for place, name in enumerate(names):
        _, _, new, ways = CASES[name]
        expected = fitted(name).transform(new, **ways)
        assert bits(np.load(tmp_path / f"{place}.npy")) == bits(expected), name


def test_loaded_model_fits_again_as_the_saved_one(fitted, tmp_path):
    model = fitted("umap")
    model.save(tmp_path / "a")
    other = X[:50]
    assert alike(load(tmp_path / "a").fit(other).embedding_, clone(model).fit(other).embedding_)
    assert alike(load(tmp_path / "a").update(NEW).embedding_, umap().fit(X).update(NEW).embedding_)


def test_embedding_of_opentsne_goes_on_from_where_it_was(tmp_path):
    steps = {"n_iter": 10, "early_exaggeration_iter": 5}
    model = opentsne.OpenFinslerTSNE(perplexity=8, random_state=0, **steps)
    embedding = model.fit(X)
    positions = np.array(embedding)  # openTSNE's transform moves them to the centre
    save(embedding, tmp_path / "embedding")
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "embedding")
    assert attributes_alike(embedding, loaded)
    assert bits(embedding.optimize(5)) == bits(loaded.optimize(5))
    assert bits(embedding.transform(NEW)) == bits(loaded.transform(NEW))
    assert bits(load(tmp_path / "model").embedding_) == bits(positions)


def test_combined_model(fitted, tmp_path):
    both = fitted("umap") + fitted("umap cosine")
    both.save(tmp_path / "both")
    assert attributes_alike(both, load(tmp_path / "both"))


def test_output_of_the_loaded_model_has_the_names_it_had(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = mds().set_output(transform="pandas").fit(frame)
    model.save(tmp_path / "a")
    new = pd.DataFrame(NEW, columns=list("abcd"))
    pd.testing.assert_frame_equal(load(tmp_path / "a").transform(new), model.transform(new))


def test_search_by_groups(tmp_path, monkeypatch):
    """What large data are searched by, for t-SNE."""
    monkeypatch.setattr(tsne_neighbors, "cheapest_search", lambda *args, **kwds: KMEANS_GRAPH)
    monkeypatch.setattr(tsne_neighbors, "EXACT_UP_TO", 0)
    model = tsne().fit(X)
    assert isinstance(model.affinities_.knn_index, tsne_neighbors.GroupedIndex)
    model.save(tmp_path / "a")
    assert bits(load(tmp_path / "a").transform(NEW)) == bits(model.transform(NEW))


@pytest.mark.slow
def test_model_with_an_index_of_pynndescent(tmp_path):
    rows = np.random.default_rng(0).normal(size=(4200, 6)).astype(np.float32)
    for seed in (0, None):
        model = umap(random_state=seed, n_epochs=5, metric="manhattan").fit(rows)
        assert model._knn_search_index is not None
        model.save(tmp_path / "a")
        assert bits(load(tmp_path / "a").transform(rows[:50] + 0.1)) == bits(
            model.transform(rows[:50] + 0.1)
        )


def test_file_is_arrays_and_json(fitted, tmp_path):
    path = tmp_path / "model.finsler"
    fitted("tsne").save(path)
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name != "manifest.json":
                np.load(archive.open(name), allow_pickle=False)
        manifest = json.loads(archive.read("manifest.json"))
    assert manifest["version"] == 1
    assert manifest["written_by"]["finsler_ext"] == finsler_ext.__version__


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (umap(metric=lambda u, v: float(abs(u - v).sum())), "metric"),
        (mds(metric=lambda u, v: float(abs(u - v).sum())), "metric"),
        (tsne(callbacks=[print]), r"callbacks\[0\]"),
        (umap(tqdm_kwds={"file": sys.stderr}), r"tqdm_kwds\['file'\]"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*inverse_transform will be unavailable:UserWarning")
@pytest.mark.filterwarnings("ignore:n_jobs value:UserWarning")
def test_what_is_no_data_is_refused_by_name(model, name, tmp_path):
    path = tmp_path / "model.finsler"
    path.write_text("as before")
    if not (callable(model.metric) and isinstance(model, FinslerUMAP)):
        model.fit(X)
    else:
        model.fit(X[:20])
    with pytest.raises(ValueError, match=rf"^{name}: "):
        model.save(path)
    assert path.read_text() == "as before"


def test_unfitted_and_derived_models_are_refused(tmp_path):
    class Derived(FinslerMDS):
        pass

    with pytest.raises(NotFittedError):
        FinslerUMAP().save(tmp_path / "a")
    with pytest.raises(ValueError, match="a Derived cannot be saved"):
        Derived(max_iter=2).fit(X).save(tmp_path / "a")
    assert not list(tmp_path.iterdir())
