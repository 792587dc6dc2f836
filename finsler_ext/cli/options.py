"""Options of ``finsler-ext transform``; read before anything that takes long to import."""

from __future__ import annotations

import argparse

__all__ = ["add_transform"]

TRANSFORM = """\
Places for the rows of FILE in a model written by `finsler-ext embed --save` or model.save. The
training points stay where they are, and a row's place does not depend on the other rows. Columns
are matched by their names where both have names; --standardize of embed is applied again.

examples:
  finsler-ext embed flowers.csv --label species --save flowers.finsler
  finsler-ext transform flowers.finsler more_flowers.csv --label species
"""


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
