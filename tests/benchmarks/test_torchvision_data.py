"""Images of torchvision, and features of its networks."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import data
from benchmarks.data import (
    files,
    torchvision_features,
    torchvision_images,
)


def test_without_torch_the_message_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch torchvision"):
        torchvision_features.features("dtd", tmp_path)
    with pytest.raises(SystemExit):
        torchvision_features.main(["dtd", str(tmp_path / "feat_dtd.npz")])
    assert "pip install torch torchvision" in capsys.readouterr().err


class Tensor(np.ndarray):
    """As much of a torch tensor as the loader uses."""

    def to(self, device):
        return self

    def flatten(self, start):
        return self.reshape(len(self), -1)

    def float(self):
        return self.astype(np.float32)

    def cpu(self):
        return self

    def numpy(self):
        return np.asarray(self)


class Model:
    """A network whose features are the means of the channels."""

    fc = "classes"

    def eval(self):
        return self

    def to(self, device):
        return self

    def __call__(self, pictures):
        assert self.fc == "identity"
        return pictures.mean(axis=(2, 3), keepdims=True)


class Picture:
    def __init__(self, level):
        self.level = level

    def convert(self, mode):
        assert mode == "RGB"
        return self.level


class Textures:
    """47 classes, two pictures each in every split; absent until downloaded once."""

    there = False

    def __init__(self, root, *, split, transform, download=False):
        Textures.there |= download
        if not Textures.there:
            raise RuntimeError("Dataset not found. You can use download=True to download it")
        self.shift = {"train": 0, "val": 100, "test": 200}[split]
        self.transform = transform

    def __iter__(self):
        for label in np.repeat(np.arange(47), 2):
            yield self.transform(Picture(label + self.shift)), label


def batches(images, batch_size):
    pictures, labels = zip(*images, strict=True)
    for start in range(0, len(labels), batch_size):
        part = slice(start, start + batch_size)
        yield np.stack(pictures[part]).view(Tensor), np.array(labels[part]).view(Tensor)


def test_features_of_every_split_are_written_and_found_by_name(monkeypatch, tmp_path, capsys):
    def prepare(level):
        return np.full((3, 4, 4), float(level))

    weights = SimpleNamespace(transforms=lambda: prepare)
    torch = SimpleNamespace(
        nn=SimpleNamespace(Identity=lambda: "identity"),
        cuda=SimpleNamespace(is_available=lambda: False),
        inference_mode=lambda: np.errstate(),
        utils=SimpleNamespace(data=SimpleNamespace(DataLoader=batches)),
    )
    models = SimpleNamespace(
        get_model_weights=lambda name: SimpleNamespace(DEFAULT=weights),
        get_model=lambda name, weights: Model(),
    )
    torchvision = SimpleNamespace(models=models, datasets=SimpleNamespace(DTD=Textures))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torchvision", torchvision)
    torchvision_features.main(["dtd10", str(tmp_path / "feat_dtd10.npz"), "--root", str(tmp_path)])
    assert "60 × 3" in capsys.readouterr().out
    written = files.read("feat_dtd10", str(tmp_path), ("X", "split", "backbone"), route="")
    assert written["split"].tolist() == [0] * 20 + [1] * 20 + [2] * 20
    assert written["backbone"] == "resnet50"
    textures = data.load("dtd10", data_dir=str(tmp_path))
    assert textures.X.shape == (60, 3)
    assert np.array_equal(textures.X[:, 0], textures.labels + 100.0 * written["split"])


def test_the_papers_other_images_have_a_loader():
    wanted = "CIFAR10 CIFAR100 Caltech256 OxfordIIITPet GTSRB DTD Imagenette Caltech101 Flowers102"
    known = {images.dataset for images in torchvision_images.TORCHVISION.values()}
    assert {*wanted.split(), "EMNIST", "ImageNet"} <= known
    assert set(torchvision_images.TORCHVISION) <= set(data.known_names())
