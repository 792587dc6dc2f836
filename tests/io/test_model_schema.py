"""What a file holds is checked against the declaration of its class before anything sees it."""

import io
import json
import zipfile

import numpy as np
import pytest

from finsler_ext import FinslerMDS, FinslerTSNE, FinslerUMAP, load
from finsler_ext.cli import main
from finsler_ext.io.state import get_state
from finsler_ext.schema import schema_of
from tests.io import file_mutations
from tests.io.file_mutations import kinds, outcomes, rewritten, rows, save_kind

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
X = rows()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Files of models, each fitted once."""
    folder = tmp_path_factory.mktemp("saved")
    made = {}

    def get(name):
        if name not in made:
            made[name] = save_kind(name, folder)
        return made[name]

    return get


def parts_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def array_of(parts, *trail):
    """The file name and the array of an attribute."""
    place = json.loads(parts["manifest.json"])["model"]
    for key in trail:
        place = place["state"][key] if "state" in place else place["parts"][key]
    return place["file"], np.load(io.BytesIO(parts[place["file"]]))


def with_array(path, out, change, *trail):
    parts = parts_of(path)
    name, array = array_of(parts, *trail)
    out.write_bytes(rewritten(parts, {name: change(array)}))
    return out


def with_number(path, out, value, *trail):
    parts = parts_of(path)
    manifest = json.loads(parts["manifest.json"])
    place = manifest["model"]["state"]
    for key in trail[:-1]:
        place = place[key]["state"] if isinstance(key, str) else place["items"][key]
    assert trail[-1] in place or isinstance(place, list)
    place[trail[-1]] = value
    out.write_bytes(rewritten(parts, {}, manifest))
    return out


@pytest.mark.parametrize("estimator", [FinslerUMAP, FinslerTSNE, FinslerMDS])
@pytest.mark.parametrize("drift", [0.5, "auto"])
def test_every_attribute_has_a_line(estimator, drift):
    """A new attribute needs one, beside the class or in `finsler_ext.base.scores`."""
    few = {"n_epochs": 5} if estimator is FinslerUMAP else {}
    model = estimator(omega_norm=drift, random_state=0, **few).fit(X)
    schema_of(estimator).check_names(estimator.__name__, get_state(model))
    model.something_new_ = 1
    with pytest.raises(ValueError, match="something_new_ has no line"):
        model.save("never.finsler")


@pytest.mark.parametrize(
    ("kind", "trail", "change"),
    [
        ("umap", ["embedding_"], lambda a: a[:0]),
        ("umap", ["embedding_"], lambda a: a[:-1]),
        ("umap", ["embedding_"], lambda a: np.vstack([a, a[:1]])),
        ("umap", ["embedding_"], lambda a: a.T.copy()),
        ("umap", ["_raw_data"], lambda a: a[: len(a) // 2]),
        ("umap", ["_sigmas"], lambda a: a[:0]),
        ("umap", ["_sigmas"], lambda a: a.astype("i8").astype("M8[D]")),
        ("umap geodesic", ["_geodesic", "indices"], lambda a: np.full_like(a, 10**8)),
        ("umap kmeans graph", ["_knn_search_index", "links"], lambda a: np.full_like(a, 10**8)),
        ("umap kmeans graph", ["_knn_search_index", "starts"], lambda a: a[::-1].copy()),
        ("umap kmeans graph", ["_knn_search_index", "order"], lambda a: np.zeros_like(a)),
        ("umap digraph", ["_digraph", "target"], lambda a: np.full_like(a, -7)),
        ("umap", ["graph_", "indices"], lambda a: np.full_like(a, 10**8)),
        ("mds", ["embedding_"], lambda a: a[:0]),
        ("mds", ["_known", "neighbors", "indices"], lambda a: np.full_like(a, 10**8)),
        ("mds", ["_X"], lambda a: a[::2].copy()),
        ("tsne", ["affinities_", "neighbors"], lambda a: np.full_like(a, 10**8)),
        ("tsne", ["affinities_", "scales"], lambda a: -a),
        ("tsne", ["embedding_", "positions"], lambda a: a[:-1]),
        ("tsne scale", ["affinities_", "nearest2"], lambda a: np.full_like(a, np.inf)),
        ("tsne scale", ["affinities_", "density_scales"], lambda a: np.full_like(a, np.inf)),
        ("mds scale", ["local_scale"], lambda a: a.astype(bool)),
        ("mds scale", ["local_scale"], lambda a: a.astype(np.float16)),
        ("mds sparse", ["_X", "indptr"], lambda a: a.astype(bool)),
        ("umap digraph", ["potential_"], lambda a: np.full_like(a, np.nan)),
    ],
)
def test_arrays_that_no_model_has(kind, trail, change, saved, tmp_path):
    wrong = with_array(saved(kind), tmp_path / "wrong.finsler", change, *trail)
    with pytest.raises(ValueError, match=r"wrong\.finsler is damaged or truncated"):
        load(wrong)


@pytest.mark.parametrize("kind", ["umap", "tsne", "mds"])
@pytest.mark.parametrize("value", [2.0, -1, True, "much", None, {"is": "float", "value": "nan"}])
def test_drifts_that_no_model_has(kind, value, saved, tmp_path, capsys):
    wrong = with_number(saved(kind), tmp_path / "wrong.finsler", value, "omega_norm_")
    with pytest.raises(ValueError, match="omega_norm_"):
        load(wrong)
    np.save(tmp_path / "new.npy", X[:3])
    assert main(["transform", str(wrong), str(tmp_path / "new.npy")]) == 2
    assert "omega_norm_" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "value", "trail"),
    [
        ("umap", True, ["unique"]),
        ("umap", 9, ["_n_neighbors"]),
        ("umap", -1, ["islands_", "slope"]),
        ("umap", {"is": "float", "value": "nan"}, ["islands_", "slope"]),
        ("tsne", -1, ["islands_", "slope"]),
        ("mds interval", -1, ["transformation_", "constant"]),
        ("mds ordinal", 1.5, ["transformation_", "constant"]),
        ("mds scale", "mean", ["local_scale"]),
        ("mds", 2**63, ["n_neighbors"]),
        ("tsne", {"is": "dict", "items": [["x", 1]]}, ["embedding_", "gradient_descent_params"]),
        ("mds", {"is": "dict", "items": [["x", 1]]}, ["_fitted_params"]),
    ],
)
def test_values_that_no_model_has(kind, value, trail, saved, tmp_path):
    """A settled height rises with the scale, and the constant of intervals is never negative."""
    wrong = with_number(saved(kind), tmp_path / "wrong.finsler", value, *trail)
    with pytest.raises(ValueError, match=r"wrong\.finsler is damaged or truncated"):
        load(wrong)


def test_a_height_without_a_slope_is_saved(tmp_path):
    """The same scale everywhere: the potential is flat, and nothing for new heights to follow."""
    angle = 2 * np.pi * np.arange(64) / 64
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    model = FinslerUMAP(
        n_neighbors=5, n_epochs=5, random_state=0, height="potential", local_scale=np.ones(64)
    ).fit(ring)
    assert np.isnan(model.islands_.slope)
    model.save(tmp_path / "ring.finsler")
    new = {"X": ring[:3] * 1.01, "local_scale": np.ones(3)}
    np.testing.assert_array_equal(
        load(tmp_path / "ring.finsler").transform(**new), model.transform(**new)
    )


def test_a_series_is_the_same_bytes_again(saved, tmp_path):
    """Whatever the order in which its models got their attributes."""
    again = tmp_path / "again.finsler"
    load(saved("series")).save(again)
    assert again.read_bytes() == saved("series").read_bytes()


def test_compressed_parts_are_refused(saved, tmp_path):
    """Few bytes could become many; none is ever written."""
    bomb = tmp_path / "bomb.finsler"
    parts = parts_of(saved("mds"))
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match="is compressed"):
        load(bomb)


def test_parts_hold_what_they_declare(saved, tmp_path):
    parts = parts_of(saved("mds"))
    name, array = array_of(parts, "embedding_")
    longer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        longer, {"descr": array.dtype.str, "fortran_order": False, "shape": (10**12, 3)}
    )
    content = longer.getvalue() + array.tobytes()
    parts[name] = content
    manifest = json.loads(parts["manifest.json"])
    import hashlib

    manifest["arrays"][name] = hashlib.sha256(content).hexdigest()
    wrong = tmp_path / "wrong.finsler"
    wrong.write_bytes(rewritten(parts, {}, manifest))
    with pytest.raises(ValueError, match="does not hold the array it declares"):
        load(wrong)


def test_damage_of_the_archive_names_the_file(saved, tmp_path):
    """Offsets that point before the file: OSError 22 of zipfile, without a path."""
    whole = saved("mds").read_bytes()
    end = whole.rindex(b"PK\x05\x06")
    for offset in (0, 2**31, 2**32 - 1):
        path = tmp_path / "wrong.finsler"
        path.write_bytes(whole[: end + 16] + offset.to_bytes(4, "little") + whole[end + 20 :])
        with pytest.raises(ValueError, match=r"wrong\.finsler"):
            load(path)


def assert_nothing_silent(found):
    assert found
    for where, what, hostile, how in found:
        allowed = ("refused", "equal") if hostile else ("refused", "equal", "differs")
        assert how in allowed, (where, what, how)


@pytest.mark.parametrize(("kind", "stride"), [("umap kmeans graph", 30), ("series", 90)])
def test_some_mutations(kind, stride, saved):
    """A few of two kinds; `python -m tests.io.file_mutations` does all."""
    found = outcomes(kind, saved(kind), stride=stride)
    assert_nothing_silent(found)
    assert sum(how == "refused" for *_, how in found) > 15


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(kinds()))
def test_all_mutations(kind, saved):
    assert_nothing_silent(outcomes(kind, saved(kind)))


def test_mutations_are_of_every_array_number_and_word(saved):
    parts = parts_of(saved("mds"))
    manifest = json.loads(parts["manifest.json"])
    made = list(file_mutations.mutations(saved("mds")))
    assert len(made) > 500
    for name in manifest["arrays"]:
        assert any(m.where.startswith(f"{name} ") for m in made)
    for where in ("omega_norm_", "scaling"):
        assert any(m.where == where for m in made)
