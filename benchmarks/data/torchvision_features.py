"""Features of torchvision's images from a frozen network, written to an npz file.

    python -m benchmarks.data.torchvision_features imagenette feat_imagenette.npz

The file goes into the folder of --data-dir and is then known to the benchmarks by its name. Needs
torch and torchvision, which nothing else here does. Images are downloaded by torchvision, which
checks their md5 (not ImageNet's, whose files must be there already).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.data.torchvision_images import TORCHVISION, TorchvisionImages

__all__ = ["features"]

# Where a torchvision model keeps the layers that turn features into classes.
HEADS = ("fc", "classifier", "heads", "head")
BATCH = 64


def _torch():
    try:
        import torch
        import torchvision
    except ImportError as error:
        raise ImportError(
            "Features of images need torch and torchvision: pip install torch torchvision. "
            "Without them, put a file that holds X and y into the folder of --data-dir."
        ) from error
    return torch, torchvision


def _frozen(backbone: str):
    """A pretrained network without its classifier, and the transform of its images."""
    torch, torchvision = _torch()
    weights = torchvision.models.get_model_weights(backbone).DEFAULT
    model = torchvision.models.get_model(backbone, weights=weights)
    heads = [head for head in HEADS if hasattr(model, head)]
    if not heads:
        raise ValueError(f"{backbone} has none of the heads {', '.join(HEADS)} to take off.")
    for head in heads:
        setattr(model, head, torch.nn.Identity())
    prepare = weights.transforms()
    return model.eval(), lambda image: prepare(image.convert("RGB"))


def _part(images: TorchvisionImages, part: dict, root: Path, transform):
    _, torchvision = _torch()
    dataset = getattr(torchvision.datasets, images.dataset)
    try:
        return dataset(str(root), transform=transform, **part)
    except RuntimeError:  # the images are not there
        if not images.download:
            raise
    return dataset(str(root), transform=transform, download=True, **part)


def _batches(images, model) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    torch, _ = _torch()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model.to(device)
    with torch.inference_mode():
        for pictures, labels in torch.utils.data.DataLoader(images, batch_size=BATCH):
            yield model(pictures.to(device)).flatten(1).float().cpu().numpy(), labels.numpy()


def features(name: str, root: Path, backbone: str = "resnet50") -> dict[str, np.ndarray]:
    """X (features), y (classes) and split (the part of each row, 0 trains) of images by name."""
    images = TORCHVISION[name]
    model, transform = _frozen(backbone)
    X, y, split = [], [], []
    for number, part in enumerate(images.parts):
        for rows, labels in _batches(_part(images, part, root, transform), model):
            kept = labels < (images.n_classes or np.inf)
            X.append(rows[kept])
            y.append(labels[kept])
            split.append(np.full(kept.sum(), number, dtype=np.uint8))
    return {"X": np.concatenate(X), "y": np.concatenate(y), "split": np.concatenate(split)}


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.data.torchvision_features",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=sorted(TORCHVISION))
    parser.add_argument("out", type=Path, help="the npz file, feat_NAME.npz to be found later")
    parser.add_argument("--backbone", default="resnet50", help="a model of torchvision.models")
    parser.add_argument("--root", type=Path, default=Path("images"), help="folder of the images")
    options = parser.parse_args(argv)
    try:
        arrays = features(options.name, options.root, options.backbone)
    except ImportError as error:
        parser.exit(1, f"{error}\n")
    np.savez_compressed(options.out, **arrays, backbone=np.array(options.backbone))
    print(f"{options.out}: {arrays['X'].shape[0]} × {arrays['X'].shape[1]}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
