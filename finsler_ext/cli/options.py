"""The options of all commands; importing this takes no time."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from finsler_ext import __version__
from finsler_ext.cli.messages import OneLineParser

DESCRIPTION = (
    "UMAP, t-SNE and MDS with a height that shows density or, for directed data, direction."
)
RULES = """\
With --directed, a csv file is an edge list if its header names a source and a target (from and to,
tail and head, u and v, origin and destination, pre and post; or --source and --target), or if it
has 2 or 3 columns and no header: source, target, length. Any other file must be a square matrix,
rows being sources. Its first line and first column are names if they hold text or if the first cell
is empty, as pandas writes it; a first line of numbers alone is a row unless --header says
otherwise. Columns are matched to rows by name. Empty cells, nan and inf are unknown.
"""
EMBED = f"""\
FILE has one row per point: csv or tsv (with or without a header), npy, npz, parquet or h5ad.
With --directed it holds the costs of getting from one point to another.

{RULES}
examples:
  finsler-ext embed flowers.csv --label species --plot flowers.png
  finsler-ext embed cells.h5ad --label cluster --plot cells.html
  finsler-ext embed travel_times.csv --directed --omega-norm auto --plot times.png
  finsler-ext embed connectome.csv --directed --values strength
"""
TRANSFORM = """\
Place the rows of FILE in a model written by `finsler-ext embed --save` or model.save. The training
points stay where they are, and the place of a row does not depend on the other rows. Columns are
matched by name; those that the model does not know are left out. If file or model has no names,
columns are matched by order. --standardize of embed is applied again.

examples:
  finsler-ext embed flowers.csv --label species --save flowers.finsler
  finsler-ext transform flowers.finsler more_flowers.csv --plot more.png
"""
IMPORTS = """\
Map and height of the modules of an installed package, by what imports what. A module that imports
many modules and is imported by few lies high. Imports that lead up are red in the picture and are
listed, and so are cycles. The package is read by grimp (extra imports) and is not run. Imports
within functions and under TYPE_CHECKING count.

examples:
  finsler-ext imports sklearn --without tests --plot sklearn.png
  finsler-ext imports finsler_ext --plot modules.html -o modules.csv
"""
SEED = "random seed (default: 0); the number of threads does not change the result"
PLOT = "picture (png, pdf, svg) or page to explore (html); may be given several times"


def parser() -> argparse.ArgumentParser:
    made = OneLineParser(prog="finsler-ext", description=DESCRIPTION)
    made.add_argument("--version", action="version", version=f"finsler-ext {__version__}")
    commands = made.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="embed scikit-learn's digits and draw them")
    demo.add_argument(
        "--omega-norm",
        type=float,
        default=0.5,
        metavar="DRIFT",
        help="how much more it costs to go up than down, in [0, 1): the larger, the more the "
        "height shows (default: 0.5)",
    )
    demo.add_argument("--seed", type=int, default=0, metavar="N", help=SEED)
    demo.add_argument(
        "-o",
        "--output",
        default="finsler_digits.png",
        metavar="PICTURE",
        help="file to write (default: finsler_digits.png)",
    )
    _add_verbosity(demo)
    _add_embed(_command(commands, "embed", "embed a file", EMBED))
    _add_transform(
        _command(commands, "transform", "place the rows of a file in a saved model", TRANSFORM)
    )
    _add_imports(
        _command(commands, "imports", "draw the modules of a package as a landscape", IMPORTS)
    )
    return made


def _command(commands, name: str, what: str, description: str) -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    return commands.add_parser(name, help=what, description=description, formatter_class=raw)


def _add_embed(embed) -> None:
    embed.add_argument("file", metavar="FILE", help="csv, tsv, npy, npz, parquet or h5ad")
    embed.add_argument(
        "--method",
        choices=("umap", "tsne", "mds"),
        help="FinslerUMAP (default), FinslerTSNE, or FinslerMDS (default of --directed, unless the "
        "data are strengths or a graph that is large or mostly one-way)",
    )
    embed.add_argument(
        "--omega-norm",
        type=_drift,
        metavar="DRIFT",
        help="how much more it costs to go up than down, in [0, 1): the larger, the more the "
        "height shows (default: 0.5); or auto, which is best for travel times",
    )
    embed.add_argument("--label", metavar="COLUMN", help="colour by this column, do not embed it")
    _add_columns(embed)
    embed.add_argument(
        "--standardize", action="store_true", help="divide each column by its spread first"
    )
    embed.add_argument("--metric", help="distance between rows (default: euclidean)")
    embed.add_argument("--directed", action="store_true", help="FILE holds directed distances")
    embed.add_argument(
        "--values",
        choices=("cost", "strength", "transitions"),
        help="what the numbers of directed data mean: costs (default; the larger, the further), "
        "strengths (the larger, the closer) or transition probabilities",
    )
    embed.add_argument("--source", metavar="COLUMN", help="of an edge list: where edges start")
    embed.add_argument("--target", metavar="COLUMN", help="of an edge list: where edges end")
    embed.add_argument("--weight", metavar="COLUMN", help="of an edge list: length or strength")
    embed.add_argument(
        "--components",
        type=_whole_or("auto", 1, "a whole number of columns ≥ 1, or auto"),
        metavar="N",
        help="columns, the height among them (default: 3), or auto: mds chooses 2 or 3",
    )
    embed.add_argument(
        "--pin", metavar="PLACES", help="csv as embed writes it: rows in it keep their places"
    )
    embed.add_argument("--save", metavar="MODEL", help="write the model to a .finsler file")
    embed.add_argument("--seed", type=int, default=0, metavar="N", help=SEED)
    embed.add_argument(
        "--sample",
        metavar="N",
        type=_whole_or("all", 2, "a number of rows, or all"),
        help="with --dask: number of rows to fit to, or all; transform places the others "
        "(default: all up to a million, 200000 beyond)",
    )
    _add_output(embed)


def _add_transform(transform) -> None:
    transform.add_argument("model", metavar="MODEL", help="file written by embed --save")
    transform.add_argument("file", metavar="FILE", help="csv, tsv, npy, npz, parquet or h5ad")
    transform.add_argument("--label", metavar="COLUMN", help="copy this column to the output")
    _add_columns(transform)
    transform.add_argument(
        "--incoming",
        metavar="FILE2",
        help="for a model of directed distances: FILE holds the distances from new to training "
        "points, FILE2 those from training to new points, both with a row per new point",
    )
    transform.set_defaults(sample=None)
    _add_output(transform)


def _add_imports(imports) -> None:
    imports.add_argument("package", metavar="PACKAGE", help="the name that is imported")
    imports.add_argument(
        "--without",
        metavar="WORD",
        action="append",
        default=[],
        help="leave out modules with this word in their dotted name, such as tests; may be given "
        "several times",
    )
    imports.add_argument(
        "-o", "--output", metavar="TABLE", help="file to write (default: PACKAGE_imports.csv)"
    )
    imports.add_argument("--plot", action="append", default=[], metavar="FILE", help=PLOT)
    imports.add_argument("--seed", type=int, default=0, metavar="N", help=SEED)
    imports.add_argument(
        "--threads", type=int, default=-1, metavar="N", help="number of threads (default: all)"
    )
    _add_verbosity(imports)


def _add_columns(command) -> None:
    """What is taken of a table."""
    command.add_argument(
        "--drop",
        metavar="COLUMN",
        action="append",
        default=[],
        help="leave out this column; may be given several times",
    )
    command.add_argument(
        "--drop-missing", action="store_true", help="leave out rows with missing values"
    )
    command.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="the first line of a csv file names the columns, or is a row (default: it is a header "
        "if it has text above numbers, and a row if it has no text)",
    )
    command.add_argument("--index", metavar="COLUMN", help="column that names the rows")
    command.add_argument("--array", metavar="NAME", help="array of an npz file")


def _add_output(command) -> None:
    command.add_argument(
        "-o", "--output", metavar="TABLE", help="csv, parquet or npy (default: FILE_finsler.csv)"
    )
    command.add_argument("--plot", action="append", default=[], metavar="FILE", help=PLOT)
    command.add_argument(
        "--threads", type=int, default=-1, metavar="N", help="number of threads (default: all)"
    )
    group = command.add_argument_group(
        "data larger than memory, several machines (needs the extra dask)",
        "FILE is parquet or zarr, the output parquet, zarr or npy",
    )
    group.add_argument(
        "--dask", action="store_true", help="by blocks, on a cluster of processes started here"
    )
    group.add_argument("--scheduler", metavar="ADDRESS", help="on the cluster of this scheduler")
    group.add_argument("--workers", type=int, metavar="N", help="number of processes to start here")
    group.add_argument("--memory", metavar="LIMIT", help="of memory for each of them, such as 2GB")
    _add_verbosity(command)


def _add_verbosity(command) -> None:
    either = command.add_mutually_exclusive_group()
    either.add_argument("--quiet", action="store_true", help="print errors only")
    either.add_argument("--verbose", action="store_true", help="print every step and when it began")


def _whole_or(word: str, least: int, expected: str) -> Callable[[str], int | str]:
    """A type of argument: a whole number, or one word."""

    def read(text: str) -> int | str:
        if text == word:
            return text
        if text.strip().isdigit() and int(text) >= least:
            return int(text)
        raise argparse.ArgumentTypeError(f"{expected}; got {text!r}")

    return read


def _drift(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # "auto"; other words are refused with an explanation
