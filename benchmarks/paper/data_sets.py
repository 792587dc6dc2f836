"""The paper's sixteen data sets: which of them are at hand, and with which rows.

    python -m benchmarks.paper.data_sets --data-dir DIR

One line for each set: rows × columns and classes in the paper, what `load` finds by the name of
the paper's rows and, where the experiments run other rows, by that name. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

from benchmarks.data import load

__all__ = ["PAPER_SETS", "PaperSet", "at_hand", "lines"]


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


def at_hand(name: str, data_dir: str | None) -> str:
    """Rows × columns and classes of a set in the data folder, or that it is not there."""
    try:
        found = load(name, data_dir=data_dir, download=False)
    except FileNotFoundError:
        return f"{name}: not at hand"
    except ValueError as error:
        return f"{name}: not as in the paper ({error})"
    rows, columns = found.X.shape
    return f"{name}: {rows} × {columns}, {len(np.unique(found.labels))} classes"


def lines(data_dir: str | None, sets: tuple[PaperSet, ...] = PAPER_SETS) -> list[str]:
    texts = []
    for wanted in sets:
        here = [at_hand(name, data_dir) for name in dict.fromkeys((wanted.name, wanted.run_as))]
        paper = f"{wanted.rows} × {wanted.columns}, {wanted.classes} classes"
        texts.append(f"{wanted.title:18s} paper {paper:33s} here " + "; ".join(here))
    return texts


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper.data_sets",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data-dir", help="folder of npz files and of the publishers' files")
    for line in lines(parser.parse_args(argv).data_dir):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
