"""The sixteen data sets with classes of arXiv 2603.11396, and the names they have here."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PAPER_SETS", "PaperSet"]


class PaperSet(NamedTuple):
    """A set as the paper describes it.

    columns : of its features; pixels where they are the images themselves
    name : by which `load` knows exactly these rows
    stand_in : the name of what the experiments run instead, where that is another choice of rows
    """

    title: str
    rows: int
    classes: int
    columns: int
    name: str
    stand_in: str | None = None

    @property
    def run_as(self) -> str:
        return self.stand_in or self.name


PIXELS, CLIP_FEATURES, RESNET_FEATURES = 28 * 28, 768, 2048
PAPER_SETS = (
    PaperSet("Iris", 150, 3, 4, "iris"),
    PaperSet("MNIST", 60_000, 10, PIXELS, "mnist"),
    PaperSet("Fashion-MNIST", 60_000, 10, PIXELS, "fashion_mnist"),
    PaperSet("Kuzushiji-MNIST", 60_000, 10, PIXELS, "kmnist_train", "kmnist"),
    PaperSet("EMNIST", 60_000, 10, PIXELS, "emnist"),
    PaperSet(
        "EMNIST-Balanced", 112_800, 47, PIXELS, "emnist_balanced_train", "emnist_balanced"
    ),
    PaperSet("CIFAR10", 50_000, 10, CLIP_FEATURES, "cifar10"),
    PaperSet("CIFAR100", 50_000, 100, CLIP_FEATURES, "cifar100"),
    PaperSet("DTD", 1880, 47, RESNET_FEATURES, "dtd", "dtd10"),
    PaperSet("Caltech101", 8677, 101, RESNET_FEATURES, "caltech101_objects", "caltech101"),
    PaperSet("Caltech256", 30_607, 257, RESNET_FEATURES, "caltech256"),
    PaperSet("OxfordFlowers102", 1020, 102, RESNET_FEATURES, "flowers102_train", "flowers102"),
    PaperSet("Oxford-IIIT Pet", 3680, 37, RESNET_FEATURES, "oxford_pets"),
    PaperSet("GTSRB", 26_640, 43, RESNET_FEATURES, "gtsrb"),
    PaperSet("Imagenette", 9469, 10, RESNET_FEATURES, "imagenette"),
    PaperSet("ImageNet", 1_281_167, 1000, RESNET_FEATURES, "imagenet"),
)  # fmt: skip
