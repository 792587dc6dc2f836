"""Images of torchvision, and features of its networks."""

import sys
from pathlib import Path
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


class Folders:
    """torchvision's ImageFolder over files whose text is the level of a picture."""

    def __init__(self, root, *, transform):
        self.classes = sorted(path for path in Path(root).iterdir() if path.is_dir())
        self.transform = transform

    def __iter__(self):
        for label, folder in enumerate(self.classes):
            for file in sorted(folder.iterdir()):
                yield self.transform(Picture(float(file.read_text()))), label


@pytest.fixture
def networks(monkeypatch):
    """Stand-ins of torch and torchvision; a feature is the level of the picture."""

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
    datasets = SimpleNamespace(DTD=Textures, ImageFolder=Folders)
    torchvision = SimpleNamespace(models=models, datasets=datasets)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torchvision", torchvision)


def test_features_of_every_split_are_written_and_found_by_name(networks, tmp_path, capsys):
    torchvision_features.main(["dtd10", str(tmp_path / "feat_dtd10.npz"), "--root", str(tmp_path)])
    assert "60 × 3" in capsys.readouterr().out
    written = files.read("feat_dtd10", str(tmp_path), ("X", "split", "backbone"), route="")
    assert written["split"].tolist() == [0] * 20 + [1] * 20 + [2] * 20
    assert written["backbone"] == "resnet50"
    textures = data.load("dtd10", data_dir=str(tmp_path))
    assert textures.X.shape == (60, 3)
    assert np.array_equal(textures.X[:, 0], textures.labels + 100.0 * written["split"])


def write_pictures(folder, levels):
    """A folder per class, with a picture of each of its levels."""
    for name, values in levels.items():
        (folder / name).mkdir(parents=True)
        for level in values:
            (folder / name / f"{level}.txt").write_text(str(level))


def test_folders_of_pictures_by_class(networks, tmp_path):
    write_pictures(tmp_path / "one", {"stop": [10, 11], "yield": [20]})
    found = torchvision_features.features("gtsrb", tmp_path, pictures=tmp_path / "one")
    assert found["X"][:, 0].tolist() == [10, 11, 20]
    assert found["y"].tolist() == [0, 0, 1]
    assert found["split"].tolist() == [0, 0, 0]
    write_pictures(tmp_path / "two" / "train", {"stop": [1], "yield": [2]})
    write_pictures(tmp_path / "two" / "val", {"stop": [3], "yield": [4]})
    found = torchvision_features.features("gtsrb", tmp_path, pictures=tmp_path / "two")
    assert found["X"][:, 0].tolist() == [1, 2, 3, 4]
    assert found["split"].tolist() == [0, 0, 1, 1]


def test_a_folder_without_classes_is_named(networks, tmp_path, capsys):
    with pytest.raises(FileNotFoundError, match="one folder per class, or CIFAR's batches"):
        torchvision_features.features("cifar10", tmp_path, "resnet50", pictures=tmp_path)
    with pytest.raises(SystemExit):
        torchvision_features.main(["gtsrb", "out.npz", "--pictures", str(tmp_path / "none")])
    assert "there is no folder" in capsys.readouterr().err


def clip(pictures_seen):
    """Stand-in of transformers: the features are the first two pixels of a picture."""

    class Vision:
        @staticmethod
        def from_pretrained(weights):
            assert weights == "openai/clip-vit-base-patch32"
            return Vision()

        def eval(self):
            return self

        def to(self, device):
            return self

        def __call__(self, pixel_values):
            pictures_seen.append(len(pixel_values))
            return SimpleNamespace(pooler_output=pixel_values[:, :, 0, :2].reshape(-1, 6))

    class Processor:
        @staticmethod
        def from_pretrained(weights):
            return Processor()

        def __call__(self, images, return_tensors):
            assert images.mode == "RGB"
            pixels = np.asarray(images, dtype=float).transpose(2, 0, 1)
            return {"pixel_values": pixels[None].view(Tensor)}

    return SimpleNamespace(CLIPVisionModel=Vision, CLIPImageProcessor=Processor)


def test_cifar_goes_through_clip_from_the_published_batches(networks, monkeypatch, tmp_path):
    pytest.importorskip("PIL")
    monkeypatch.setitem(sys.modules, "transformers", clip(seen := []))
    rows = np.random.default_rng(0).integers(256, size=(10, 1 + 1 + 3072)).astype(np.uint8)
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    (folder / "train.bin").write_bytes(rows.tobytes())
    out = tmp_path / "feat_cifar100.npz"
    torchvision_features.main(["cifar100", str(out), "--pictures", str(tmp_path)])
    assert seen == [10]
    pixels = rows[:, 2:].reshape(10, 3, 32, 32)
    written = files.read("feat_cifar100", str(tmp_path), ("X", "y", "backbone"), route="")
    assert np.array_equal(written["X"], pixels[:, :, 0, :2].reshape(10, 6))
    assert np.array_equal(written["y"], rows[:, 1])
    assert written["backbone"] == "clip_vit_b_32"


def test_without_transformers_the_message_says_what_to_do(networks, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"pip install transformers.*vit_b_32"):
        torchvision_features.features("cifar10", tmp_path)


def test_the_papers_other_images_have_a_loader():
    wanted = "CIFAR10 CIFAR100 Caltech256 OxfordIIITPet GTSRB DTD Imagenette Caltech101 Flowers102"
    known = {images.dataset for images in torchvision_images.TORCHVISION.values()}
    assert {*wanted.split(), "EMNIST", "ImageNet"} <= known
    assert set(torchvision_images.TORCHVISION) <= set(data.known_names())
