"""Features of images from a frozen network, written to an npz file.

    python -m benchmarks.data.torchvision_features imagenette feat_imagenette.npz
    python -m benchmarks.data.torchvision_features gtsrb feat_gtsrb.npz --pictures FOLDER

The file goes into the folder of --data-dir and is then known to the benchmarks by its name. Needs
torch and torchvision, which nothing else here does. Images are downloaded by torchvision, which
checks their md5 (not ImageNet's, whose files must be there already). With --pictures they are read
from a folder instead: one folder per class, or folders train, val and test of such folders, or
the published batches of CIFAR.

The network is the paper's: ResNet50 (2048 pooled features), and for CIFAR the ViT-B/32 of CLIP
(768, before the projection), which needs transformers as well. The paper calls the latter
pretrained on ImageNet, which CLIP is not; torchvision's vit_b_32 is, and has 768 features, too.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.data.official import BATCHES, find_batches, read_batches
from benchmarks.data.torchvision_images import CLIP, TORCHVISION, TorchvisionImages

__all__ = ["features"]

# Where a torchvision model keeps the layers that turn features into classes.
HEADS = ("fc", "classifier", "heads", "head")
BATCH = 64
CLIP_WEIGHTS = "openai/clip-vit-base-patch32"
PARTS = ("train", "val", "test")


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
    if backbone == CLIP:
        return _clip()
    weights = torchvision.models.get_model_weights(backbone).DEFAULT
    model = torchvision.models.get_model(backbone, weights=weights)
    heads = [head for head in HEADS if hasattr(model, head)]
    if not heads:
        raise ValueError(f"{backbone} has none of the heads {', '.join(HEADS)} to take off.")
    for head in heads:
        setattr(model, head, torch.nn.Identity())
    prepare = weights.transforms()
    return model.eval(), lambda image: prepare(image.convert("RGB"))


class _Clip:
    """The picture half of CLIP as a network of features."""

    def __init__(self, model):
        self.model = model

    def to(self, device):
        return _Clip(self.model.to(device))

    def __call__(self, pictures):
        return self.model(pixel_values=pictures).pooler_output


def _clip():
    try:
        from transformers import CLIPImageProcessor, CLIPVisionModel
    except ImportError as error:
        raise ImportError(
            "CLIP needs transformers: pip install transformers. Without it, name a network of "
            "torchvision with --backbone, such as vit_b_32."
        ) from error
    model = CLIPVisionModel.from_pretrained(CLIP_WEIGHTS).eval()
    processor = CLIPImageProcessor.from_pretrained(CLIP_WEIGHTS)

    def prepare(image):
        return processor(images=image.convert("RGB"), return_tensors="pt")["pixel_values"][0]

    return _Clip(model), prepare


class _Batches:
    """Pictures of CIFAR from the published batches."""

    def __init__(self, name: str, paths: tuple[Path, ...], transform):
        self.pixels, self.classes = read_batches(name, paths)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, row: int):
        from PIL import Image

        picture = Image.fromarray(np.ascontiguousarray(self.pixels[row].transpose(1, 2, 0)))
        return self.transform(picture), int(self.classes[row])


def _from_folder(name: str, folder: Path, transform) -> Iterator:
    """The parts of a set that a folder holds, the training part first."""
    paths = find_batches(name, str(folder)) if name in BATCHES else None
    if paths is not None:
        yield _Batches(name, paths, transform)
        return
    _, torchvision = _torch()
    parts = [folder / part for part in PARTS if (folder / part).is_dir()]
    for part in parts if (folder / PARTS[0]).is_dir() else [folder]:
        if not any(path.is_dir() for path in part.iterdir()):
            raise FileNotFoundError(
                f"--pictures: {part} has no folders of classes; expected one folder per class"
                + (", or CIFAR's batches." if name in BATCHES else ".")
            )
        yield torchvision.datasets.ImageFolder(str(part), transform=transform)


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


def features(
    name: str, root: Path, backbone: str | None = None, pictures: Path | None = None
) -> dict[str, np.ndarray]:
    """X (features), y (classes) and split (the part of each row, 0 trains) of images by name.

    ``pictures`` is a folder of the user's own; without it torchvision keeps them in ``root``.
    """
    images = TORCHVISION[name]
    if pictures is not None and not pictures.is_dir():
        raise FileNotFoundError(f"--pictures: there is no folder {pictures}.")
    model, transform = _frozen(backbone or images.backbone)
    if pictures is not None:
        parts = _from_folder(name, pictures, transform)
    else:
        parts = (_part(images, part, root, transform) for part in images.parts)
    X, y, split = [], [], []
    for number, part in enumerate(parts):
        for rows, labels in _batches(part, model):
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
    parser.add_argument(
        "--backbone", help=f"a model of torchvision.models, or {CLIP}; the paper's unless given"
    )
    parser.add_argument("--root", type=Path, default=Path("images"), help="torchvision's folder")
    parser.add_argument("--pictures", type=Path, help="a folder of pictures, instead")
    options = parser.parse_args(argv)
    try:
        arrays = features(options.name, options.root, options.backbone, options.pictures)
    except (ImportError, FileNotFoundError) as error:
        parser.exit(1, f"{error}\n")
    backbone = options.backbone or TORCHVISION[options.name].backbone
    np.savez_compressed(options.out, **arrays, backbone=np.array(backbone))
    print(f"{options.out}: {arrays['X'].shape[0]} × {arrays['X'].shape[1]}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
