"""Images of torchvision that the benchmarks know by name."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["CLIP", "TORCHVISION", "TorchvisionImages"]


class TorchvisionImages(NamedTuple):
    """A class of torchvision.datasets and the arguments of its parts; part 0 trains."""

    dataset: str
    parts: tuple[dict[str, Any], ...] = ({},)
    # Only the first classes are used.
    n_classes: int | None = None
    download: bool = True
    # The network of the paper.
    backbone: str = "resnet50"


def _splits(*names: str) -> tuple[dict[str, Any], ...]:
    return tuple({"split": name} for name in names)


# CLIP's picture half, from transformers; every other backbone is one of torchvision's.
CLIP = "clip_vit_b_32"
_TRAIN_TEST: tuple[dict[str, Any], ...] = ({"train": True}, {"train": False})
TORCHVISION = {
    "imagenette": TorchvisionImages("Imagenette", _splits("train", "val")),
    "caltech101": TorchvisionImages("Caltech101"),
    "flowers102": TorchvisionImages("Flowers102", _splits("train", "val", "test")),
    "dtd10": TorchvisionImages("DTD", _splits("train", "val", "test"), n_classes=10),
    "dtd": TorchvisionImages("DTD", _splits("train", "val", "test")),
    "cifar10": TorchvisionImages("CIFAR10", _TRAIN_TEST, backbone=CLIP),
    "cifar100": TorchvisionImages("CIFAR100", _TRAIN_TEST, backbone=CLIP),
    "caltech256": TorchvisionImages("Caltech256"),
    "oxford_pets": TorchvisionImages("OxfordIIITPet", _splits("trainval", "test")),
    "gtsrb": TorchvisionImages("GTSRB", _splits("train", "test")),
    "emnist_digits": TorchvisionImages(
        "EMNIST", tuple({"split": "digits"} | part for part in _TRAIN_TEST)
    ),
    "imagenet": TorchvisionImages("ImageNet", _splits("train", "val"), download=False),
}
