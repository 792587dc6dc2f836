"""Data by name: generated data against closed forms, files and downloads against small copies."""

import hashlib
import os
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit

from benchmarks import data
from benchmarks.data import (
    classified,
    downloads,
    files,
    synthetic,
)
from finsler_ext import read_directed
from finsler_ext.directed.data import complete_paths
from finsler_ext.geometry.randers import randers_distances

DATA_DIR = os.environ.get("FINSLER_DATA")
rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """No data folder but that of the test, and no network."""

    def unreachable(**query):
        raise URLError("no network in tests")

    monkeypatch.delenv("FINSLER_DATA", raising=False)
    monkeypatch.setattr(downloads, "fetch_openml", unreachable)


def images(n: int, n_classes: int):
    y = np.arange(n) % n_classes
    return rng.integers(256, size=(n, 784)).astype(np.uint8), y.astype(np.uint8)


# ------------------------------------------------------------------ generated


@pytest.mark.parametrize("n", [300, 1000, 3000])
def test_disk(n):
    disk = data.load(f"disk:{n}", seed=3)
    assert disk.name == f"disk:{n}"
    assert disk.X.shape == (n, 2)
    radius, times = np.unique(disk.truth["radius"], return_counts=True)
    assert radius == pytest.approx(np.arange(1, n // 20 + 1) / (n / 20))
    assert set(times) == {20}
    assert np.linalg.norm(disk.X, axis=1) == pytest.approx(disk.truth["radius"])
    steps = np.arctan2(disk.X[:, 1], disk.X[:, 0]) / (2 * np.pi / 20)
    assert steps == pytest.approx(np.round(steps), abs=1e-9)
    assert np.array_equal(disk.truth["plane"], disk.X)
    assert len(np.unique(disk.X.round(12), axis=0)) == n


@pytest.mark.parametrize("spec", ["disk:300", "swiss_roll"])
def test_shuffles_keep_the_points_and_follow_the_seed(spec):
    first, again, other = (data.load(spec, seed=s) for s in (0, 0, 1))
    assert np.array_equal(first.X, again.X)
    assert not np.array_equal(first.X, other.X)
    for values in ("X", *first.truth):
        a, b = (d.X if values == "X" else d.truth[values] for d in (first, other))
        assert np.array_equal(np.sort(a, axis=0), np.sort(b, axis=0))


def test_disk_is_shuffled_as_the_older_benchmarks_do():
    rows = np.random.RandomState(2).permutation(300)
    assert np.array_equal(data.load("disk:300", seed=2).X, data.disk(300)[0][rows])


def test_swiss_roll_lies_on_its_spiral_and_its_plane_is_isometric():
    roll = data.load("swiss_roll")
    assert roll.X.shape == (111 * 17, 3)
    assert roll.truth["plane"].shape == (1887, 2)
    angle = np.hypot(roll.X[:, 0], roll.X[:, 2])
    assert angle.min() == pytest.approx(1.5 * np.pi)
    assert angle.max() == pytest.approx(4.5 * np.pi)
    assert roll.X[:, 0] == pytest.approx(angle * np.cos(angle), abs=1e-12)
    assert roll.X[:, 2] == pytest.approx(angle * np.sin(angle), abs=1e-12)
    assert np.array_equal(roll.truth["plane"][:, 1], roll.X[:, 1])
    assert (roll.X[:, 1].min(), roll.X[:, 1].max()) == (0, 20)
    for row in range(0, 1887, 97):
        length, _ = quad(lambda t: np.hypot(1, t), 0, angle[row])
        assert roll.truth["plane"][row, 0] == pytest.approx(length)


def test_swiss_roll_grid_follows_the_size():
    assert len(data.load("swiss_roll:500").X) == int(2.5 * 500**0.5) * int(0.4 * 500**0.5)


def test_clusters_have_the_expected_sizes():
    counts = np.array(
        [np.bincount(data.load("clusters", seed=s).labels, minlength=5) for s in range(200)]
    )
    assert (counts.sum(axis=1) == 500).all()
    expected = np.array([301, 120, 48, 19, 13])
    # Rounded to integers, and four standard errors of a binomial mean.
    error = 0.6 + 4 * np.sqrt(expected * (1 - expected / 500) / 200)
    assert (np.abs(counts.mean(axis=0) - expected) < error).all()


def test_clusters_have_the_covariance_and_the_centres_of_their_definition():
    X, label = synthetic.clusters(200_000, seed=4)
    centres = np.array([X[label == c].mean(axis=0) for c in range(5)])
    assert centres.min() > -0.05
    assert centres.max() < 1.05
    variances = np.linalg.eigvalsh(np.cov((X - centres[label]).T))
    # sigmoid of eigenvalues ≥ 0 is in [½, 1)
    assert variances.min() > 0.05 * 0.98
    assert variances.max() < 0.1 * 1.02
    # A ~ U[0, 1] has a mean: one eigenvalue of AAᵀ is near (10/2)² = 25, where sigmoid is 1
    assert variances.max() == pytest.approx(0.1 * expit(25) + 1e-5, rel=0.02)


def test_clusters_are_drawn_by_the_seed():
    assert np.array_equal(data.load("clusters", seed=5).X, data.load("clusters", seed=5).X)
    assert not np.array_equal(data.load("clusters", seed=5).X, data.load("clusters", seed=6).X)
    assert data.load("clusters:50").X.shape == (50, 10)


def test_blobs_are_those_of_the_generator_and_know_their_classes():
    blobs = data.load("blobs:3000", seed=1)
    assert np.array_equal(blobs.X, data.blobs(3000, seed=1))
    assert len(np.unique(blobs.labels)) == 30
    centres = np.array([blobs.X[blobs.labels == c].mean(axis=0) for c in range(30)])
    spread = np.sqrt(((blobs.X - centres[blobs.labels]) ** 2).mean(axis=1))
    assert np.corrcoef(spread, blobs.truth["width"])[0, 1] > 0.9


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nothing", "known are iris, digits, disk"),
        ("disk:310", "multiple"),
        ("swiss_roll:20", "≥ 25"),
        ("clusters:many", "positive number"),
        ("clusters:", "positive number"),
        ("clusters:-3", "positive number"),
        ("flights:100", "one size only"),
        ("iris:149", "between 3 and 147"),
        ("iris:2", "between 3 and 147"),
        ("iris:151", "or all of them"),
    ],
)
def test_wrong_names_and_sizes(spec, message):
    with pytest.raises(ValueError, match=message):
        data.load(spec)


# ------------------------------------------------------------------ with classes


@pytest.mark.parametrize(
    ("spec", "shape", "classes"), [("iris", (150, 4), 3), ("digits", (1797, 64), 10)]
)
def test_bundled_data(spec, shape, classes):
    bundled = data.load(spec)
    assert bundled.X.shape == shape
    assert np.array_equal(np.unique(bundled.labels), np.arange(classes))


def test_samples_are_stratified_and_the_same_for_every_seed(tmp_path):
    X, y = images(600, 3)
    y[:100] = 0  # so that classes differ in size
    np.savez(tmp_path / "mnist.npz", X=X, y=y)
    first, second = (data.load("mnist:120", data_dir=str(tmp_path), seed=s) for s in (0, 1))
    assert np.array_equal(first.X, second.X)
    assert first.X.dtype == np.float32
    assert first.X.max() == 255
    assert first.name == "mnist:120"
    assert np.abs(np.bincount(first.labels) - 120 * np.bincount(y) / 600).max() < 1
    stored = {row.tobytes(): label for row, label in zip(X, y, strict=True)}
    found = [stored[row.astype(np.uint8).tobytes()] for row in first.X]
    assert np.array_equal(found, first.labels)
    assert len({row.tobytes() for row in first.X}) == 120
    whole = data.load("mnist", data_dir=str(tmp_path))
    assert np.array_equal(whole.X, X)
    assert np.array_equal(data.load("mnist:600", data_dir=str(tmp_path)).X, X)


def test_the_folder_may_come_from_the_environment(tmp_path, monkeypatch):
    X, y = images(30, 3)
    np.savez(tmp_path / "kmnist_test10k.npz", X=X, y=y)
    monkeypatch.setenv("FINSLER_DATA", str(tmp_path))
    assert np.array_equal(data.load("kmnist").X, X)


def test_features_are_scaled_and_imagenette_is_its_training_part(tmp_path):
    X, y = images(40, 4)
    split = (np.arange(40) >= 24).astype(np.uint8)
    scale = np.float32(0.25)
    np.savez(tmp_path / "feat_imagenette.npz", X=X, y=y, scale=scale, split=split)
    np.savez(tmp_path / "feat_flowers102.npz", X=X, y=y, scale=scale, split=split)
    np.savez(tmp_path / "feat_cifar10.npz", X=X.astype(np.float32), y=y)
    folder = str(tmp_path)
    assert np.array_equal(data.load("imagenette", data_dir=folder).X, X[:24] / 4)
    assert np.array_equal(data.load("flowers102", data_dir=folder).X, X / 4)
    assert np.array_equal(data.load("cifar10", data_dir=folder).X, X)
    assert data.load("imagenette:12", data_dir=folder).X.dtype == np.float32


def test_classes_become_numbers_without_gaps(tmp_path):
    np.savez(
        tmp_path / "sc_pbmc68k_reduced.npz", X_pca=rng.normal(size=(6, 3)), y=[7, 2, 2, 7, 9, 9]
    )
    assert data.load("pbmc68k", data_dir=str(tmp_path)).labels.tolist() == [1, 0, 0, 1, 2, 2]


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in data.known_names()
        if n not in ("iris", "digits", "disk", "swiss_roll", "clusters", "blobs")
    ],
)
def test_what_is_missing_is_named_with_a_way_to_get_it(name, tmp_path):
    for folder in (None, str(tmp_path)):
        with pytest.raises(
            FileNotFoundError, match=r"\w+\.npz not found.*--data-dir or FINSLER_DATA"
        ) as caught:
            data.load(name, data_dir=folder)
    route = str(caught.value).split("FINSLER_DATA")[1]
    if name in downloads.OPENML:
        assert "fetch_openml" in route
        assert "no network in tests" in route
    elif name in classified.IMAGES:
        assert "images-idx3-ubyte" in route or "cifar-10" in route
    elif name in classified.FEATURES:
        made_of = {"caltech101_objects": "caltech101", "flowers102_train": "flowers102"}
        of = made_of.get(name, name)
        assert f"torchvision_features {of} feat_{of}.npz" in route
    else:
        assert len(route) > 30


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": None}, "no array 'y'; it holds 'X'"),
        ({"y": np.zeros(7)}, r"y has shape \(7,\), expected 30 rows"),
        ({"X": np.zeros(30)}, "expected rows of features"),
        ({"X": np.full((30, 2), np.nan)}, "X has entries that are nan"),
        ({"X": np.full((30, 2), "a")}, "expected numbers"),
    ],
)
def test_files_are_checked(changed, message, tmp_path):
    X, y = images(30, 3)
    arrays = {"X": X, "y": y} | changed
    np.savez(tmp_path / "mnist.npz", **{k: v for k, v in arrays.items() if v is not None})
    with pytest.raises(ValueError, match=message):
        data.load("mnist", data_dir=str(tmp_path))


# ------------------------------------------------------------------ downloads


@pytest.fixture
def openml(monkeypatch):
    """An OpenML that has 50 images of which rows 40 to 50 are used; returns what it sends."""
    X, y = images(50, 5)
    sent = SimpleNamespace(data=X.astype(np.float64), target=y.astype(str).astype(object))
    digest = hashlib.sha256(X[40:].tobytes() + y[40:].tobytes()).hexdigest()
    entry = downloads.OpenMLImages(
        {"name": "Kuzushiji-MNIST", "version": 1}, 50, 5, slice(40, 50), digest
    )
    monkeypatch.setitem(downloads.OPENML, "kmnist", entry)

    def fetch(*, name, version, as_frame):
        assert (name, version, as_frame) == ("Kuzushiji-MNIST", 1, False)
        return sent

    monkeypatch.setattr(downloads, "fetch_openml", fetch)
    return sent


def test_images_are_fetched_and_checked(openml, tmp_path):
    fetched = data.load("kmnist", data_dir=str(tmp_path))
    assert np.array_equal(fetched.X, openml.data[40:])
    assert fetched.X.dtype == np.float32
    assert np.array_equal(fetched.labels, openml.target[40:].astype(int))
    assert "sha256" in fetched.source


def test_of_a_larger_set_as_many_rows_are_taken_as_the_local_part_has(openml, monkeypatch):
    whole = downloads.OPENML["kmnist"]._replace(rows=slice(0, 50), sha256=None)
    monkeypatch.setitem(downloads.OPENML, "kmnist", whole)
    monkeypatch.setitem(classified.PART_ROWS, "kmnist", 20)
    assert np.bincount(data.load("kmnist").labels).tolist() == [4] * 5
    assert len(data.load("kmnist:40").X) == 40
    monkeypatch.setitem(classified.PART_ROWS, "kmnist", 50)
    assert len(data.load("kmnist").X) == 50


def test_a_local_file_comes_before_the_download(openml, tmp_path):
    X, y = images(20, 5)
    np.savez(tmp_path / "kmnist_test10k.npz", X=X, y=y)
    assert np.array_equal(data.load("kmnist", data_dir=str(tmp_path)).X, X)


def test_other_rows_than_expected_are_refused(openml):
    openml.data[45, 300] = (openml.data[45, 300] + 1) % 256
    with pytest.raises(ValueError, match="sha256"):
        data.load("kmnist")
    openml.data[3, 3] = 0.5
    with pytest.raises(ValueError, match="not integers"):
        data.load("kmnist")
    openml.target[44] = "7"
    openml.data[3, 3] = 0
    with pytest.raises(ValueError, match="classes"):
        data.load("kmnist")
    openml.data = openml.data[:49]
    with pytest.raises(ValueError, match=r"gave \(49, 784\)"):
        data.load("kmnist")


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "kmnist"])
def test_checksums_are_those_of_the_original_rows(name):
    entry = downloads.OPENML[name]
    if files.find(classified.IMAGES[name], DATA_DIR) is None:
        pytest.skip(f"{classified.IMAGES[name]}.npz is not in FINSLER_DATA")
    X, y = data.load_local(classified.IMAGES[name], DATA_DIR)
    assert len(X) == entry.rows.stop - entry.rows.start
    pixels, classes = (values.astype(np.uint8).tobytes() for values in (X, y))
    assert hashlib.sha256(pixels + classes).hexdigest() == entry.sha256


# ------------------------------------------------------------------ directed distances, places


def test_directed_distances(tmp_path):
    points = rng.normal(size=(12, 2))
    D = randers_distances(points, 0.3)
    W = np.where(rng.random((12, 12)) < 0.5, D, np.nan)
    T = np.exp(-D) / np.exp(-D).sum(axis=1, keepdims=True)
    time = np.r_[np.nan, np.arange(11.0)]
    scc = np.arange(1, 13)
    np.savez(tmp_path / "flights_us_2015jan.npz", D=D, W_direct=W, latlon=points)
    np.savez(tmp_path / "morse_rothkopf.npz", D=D + 0.1)
    np.savez(
        tmp_path / "polblogs.npz", D_scc=np.ceil(D).astype(np.uint8), scc=scc, y=np.arange(14) % 2
    )
    np.savez(tmp_path / "sc_velocity_cellrank200.npz", T=T, latent_time=time, y=np.arange(12) // 4)

    def load(name):
        loaded = data.load(name, data_dir=str(tmp_path))
        assert loaded.metric == "precomputed"
        assert (np.diag(loaded.X) == 0).all()
        return loaded

    flights = load("flights")
    assert np.array_equal(flights.X, D)
    assert np.array_equal(flights.truth["latitude"], points[:, 0])
    assert np.array_equal(flights.truth["longitude"], points[:, 1])
    direct = load("flights_direct").X
    off = ~np.eye(12, dtype=bool)
    assert np.array_equal(direct[off], W[off], equal_nan=True)
    assert np.array_equal(load("morse").X[off], D[off] + 0.1)
    blogs = load("polblogs")
    assert np.array_equal(blogs.X, np.ceil(D))
    assert np.array_equal(blogs.labels, scc % 2)
    velocity = load("velocity")
    assert np.array_equal(
        velocity.X, complete_paths(read_directed(T, values="transitions").distances)
    )
    assert np.array_equal(velocity.truth["latent_time"], time, equal_nan=True)
    assert np.array_equal(velocity.labels, np.arange(12) // 4)


@pytest.mark.parametrize(
    ("D", "message"),
    [
        (np.zeros((3, 4)), "square"),
        (-np.ones((3, 3)), "negative"),
        (np.full((3, 3), np.inf), "nan"),
    ],
)
def test_directed_distances_are_checked(D, message, tmp_path):
    np.savez(tmp_path / "morse_rothkopf.npz", D=D)
    with pytest.raises(ValueError, match=message):
        data.load("morse", data_dir=str(tmp_path))


def test_places(tmp_path):
    latlon = np.column_stack([rng.uniform(30, 45, 2100), rng.uniform(-120, -70, 2100)])
    elevation = rng.random(2100)
    np.savez(tmp_path / "us_cities_geonames.npz", X=latlon, elevation_m=elevation)
    rows = rng.permutation(2100)[:2000]
    np.savez(tmp_path / "us_zip_cities.npz", X=latlon, elevation_m_proxy=elevation, sample2000=rows)
    folder = str(tmp_path)
    cities = data.load("us_cities", data_dir=folder)
    assert np.array_equal(cities.truth["elevation"], elevation[:2000])
    assert np.array_equal(cities.X[:, 1], latlon[:2000, 0])
    assert cities.X[:, 0] == pytest.approx(latlon[:2000, 1] * np.cos(np.radians(38)))
    assert np.array_equal(cities.truth["plane"], cities.X)
    assert len(data.load("us_cities:2100", data_dir=folder).X) == 2100
    assert np.array_equal(data.load("us_zip", data_dir=folder).truth["elevation"], elevation[rows])
    fixed = [data.load("us_zip:50", data_dir=folder, seed=s).X for s in (0, 1)]
    assert np.array_equal(*fixed)
    assert fixed[0].shape == (50, 2)
    with pytest.raises(ValueError, match="2100 places"):
        data.load("us_cities:2101", data_dir=folder)
