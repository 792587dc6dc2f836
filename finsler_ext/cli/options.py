"""Options of ``finsler-ext transform`` and ``--dask``; importing this takes no time."""

from __future__ import annotations

import argparse

__all__ = ["add_dask", "add_sample", "add_talk", "add_transform"]

TRANSFORM = """\
Places for the rows of FILE in a model written by `finsler-ext embed --save` or model.save. The
training points stay where they are, and a row's place does not depend on the other rows. Columns
are matched by their names where both have names; --standardize of embed is applied again.

examples:
  finsler-ext embed flowers.csv --label species --save flowers.finsler
  finsler-ext transform flowers.finsler more_flowers.csv --label species
"""


def add_talk(parser) -> None:
    """How much is said."""
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--quiet", action="store_true", help="say nothing but errors")
    either.add_argument("--verbose", action="store_true", help="say every step and when it began")


def add_transform(commands) -> None:
    parser = commands.add_parser(
        "transform",
        help="place the rows of a file in a saved model",
        description=TRANSFORM,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("file", metavar="FILE", help="csv, tsv, npy, npz, parquet or h5ad")
    parser.add_argument("--label", metavar="COLUMN", help="written as it is")
    parser.add_argument(
        "--drop", metavar="COLUMN", action="append", default=[], help="leave this column out"
    )
    parser.add_argument(
        "--drop-missing", action="store_true", help="leave rows with missing values out"
    )
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line of a csv file names the columns",
    )
    parser.add_argument("--index", metavar="COLUMN", help="column that names the rows")
    parser.add_argument("--array", metavar="NAME", help="array of an npz file")
    parser.add_argument(
        "--incoming",
        metavar="FILE2",
        help="for a model of directed distances: FILE holds the distances from new to training "
        "points, FILE2 those from training to new points, both with a row per new point",
    )
    parser.add_argument(
        "-o", "--output", help="csv, parquet or npy to write (default FILE_finsler.csv)"
    )
    parser.add_argument("--threads", type=int, default=-1, help="default: all")
    add_dask(parser)
    add_talk(parser)


def add_dask(parser) -> None:
    """Options for files that are larger than memory."""
    group = parser.add_argument_group(
        "more than memory, more than one machine (needs the extra dask)",
        "FILE is parquet or zarr, the output parquet, zarr or npy",
    )
    group.add_argument(
        "--dask", action="store_true", help="by blocks, on a cluster of processes started here"
    )
    group.add_argument("--scheduler", metavar="ADDRESS", help="on the cluster of this scheduler")
    group.add_argument("--workers", type=int, metavar="N", help="processes started here")
    group.add_argument("--memory", metavar="LIMIT", help="of each of them, such as 2GB")
    group.set_defaults(sample=None)


def add_sample(parser) -> None:
    parser.add_argument(
        "--sample",
        metavar="N",
        type=_rows,
        help="with --dask: fit to so many rows, or all, and place the others by transform "
        "(default: all up to a million, 200000 beyond)",
    )


def _rows(text: str) -> int | str:
    if text == "all":
        return text
    if text.strip().isdigit() and int(text) >= 2:
        return int(text)
    raise argparse.ArgumentTypeError(f"a number of rows, or all; got {text!r}")
