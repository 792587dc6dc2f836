"""Files that are damaged, truncated, something else or from the future are refused in one line."""

import json
import pickle
import zipfile

import numpy as np
import pytest

from finsler_ext import FinslerMDS, load

X = np.random.default_rng(0).normal(size=(12, 3))
NEW = X[:3] + 0.1


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.finsler"
    FinslerMDS(n_neighbors=4, max_iter=3, random_state=0).fit(X).save(path)
    return path


def refusal(path):
    """The message of the ValueError, one line; None if the file is read."""
    try:
        load(path).transform(NEW)
    except ValueError as error:
        line = str(error)
    else:
        return None
    assert "\n" not in line
    assert str(path) in line
    return line


def test_flipped_bits_are_refused_or_change_nothing(saved, tmp_path):
    whole, path = saved.read_bytes(), tmp_path / "flipped"
    expected = load(saved).transform(NEW)
    refused = 0
    rng = np.random.default_rng(1)
    for place in rng.choice(len(whole), 400, replace=False):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        if refusal(path) is None:  # dates and other fields that mean nothing here
            assert np.array_equal(load(path).transform(NEW), expected)
        else:
            refused += 1
    assert refused > 350


def test_truncated_files_are_refused(saved, tmp_path):
    whole, path = saved.read_bytes(), tmp_path / "short"
    for length in np.linspace(0, len(whole) - 1, 60, dtype=int):
        path.write_bytes(whole[:length])
        assert refusal(path) is not None
    path.write_bytes(whole[: len(whole) // 2])
    assert "damaged or truncated" in refusal(path)


def test_files_of_something_else(tmp_path):
    for name, content in (
        ("pickle", pickle.dumps({"a": 1})),
        ("text", b"a,b\n1,2\n"),
        ("empty", b""),
    ):
        (tmp_path / name).write_bytes(content)
        assert "is not a model saved by finsler_ext" in refusal(tmp_path / name)
    np.savez(tmp_path / "arrays.npz", X=X)
    assert "is not a model saved by finsler_ext" in refusal(tmp_path / "arrays.npz")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")


def rewritten(saved, path, change):
    """The file with another manifest, and sound otherwise."""
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "manifest.json":
                manifest = json.loads(content)
                change(manifest)
                content = json.dumps(manifest)
            new.writestr(name, content)


def test_file_from_the_future(saved, tmp_path):
    def later(manifest):
        manifest["version"] = 7
        manifest["written_by"]["finsler_ext"] = "3.1"
        manifest["model"] = {"is": "unheard of"}

    path = tmp_path / "future"
    rewritten(saved, path, later)
    message = refusal(path)
    assert "finsler_ext 3.1" in message
    assert "version 7" in message
    assert "Upgrade finsler_ext" in message


@pytest.mark.parametrize(
    "model",
    [
        {"is": "object", "class": "os.system", "number": 0, "state": {}},
        {"is": "named tuple", "class": "builtins.eval", "fields": {}},
        {"is": "unheard of"},
        {"is": "list", "items": []},
        {"is": "array", "file": "../../secret.npy"},
        {"is": "same", "number": 5},
        [1],
        5,
        None,
    ],
)
def test_manifests_that_no_version_writes(model, saved, tmp_path):
    path = tmp_path / "other"
    rewritten(saved, path, lambda manifest: manifest.update(model=model))
    assert refusal(path) is not None


def test_arrays_of_objects_are_not_unpickled(saved, tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("unpickled",)

    path, evil = tmp_path / "evil", tmp_path / "evil.npy"
    np.save(evil, np.array([Evil()], dtype=object), allow_pickle=True)
    import hashlib

    digest = hashlib.sha256(evil.read_bytes()).hexdigest()
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "0.npy":
                content = evil.read_bytes()
            if name == "manifest.json":
                manifest = json.loads(content)
                manifest["arrays"]["0.npy"] = digest
                content = json.dumps(manifest)
            new.writestr(name, content)
    assert "allow_pickle" in refusal(path)


def test_full_disk_leaves_the_old_file(saved, tmp_path, monkeypatch):
    path = tmp_path / "model.finsler"
    path.write_bytes(saved.read_bytes())
    model = load(path)

    def full(*args, **kwds):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("finsler_ext.io.models.np.lib.format.write_array", full)
    with pytest.raises(OSError, match="No space"):
        model.save(path)
    assert path.read_bytes() == saved.read_bytes()
    assert [p.name for p in tmp_path.iterdir()] == ["model.finsler"]
