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
# What the options mean, by their names.
HELP = {
    "file": "csv, tsv, npy, npz, parquet or h5ad",
    "method": "FinslerUMAP (default), FinslerTSNE, or FinslerMDS (default of --directed, unless "
    "the data are strengths or a graph that is large or mostly one-way)",
    "omega-norm": "how much more it costs to go up than down, in [0, 1): the larger, the more the "
    "height shows (default: 0.5); or auto, which is best for travel times",
    "label": "colour by this column, do not embed it",
    "drop": "leave out this column; may be given several times",
    "drop-missing": "leave out rows with missing values",
    "header": "the first line of a csv file names the columns, or is a row (default: it is a "
    "header if it has text above numbers, and a row if it has no text)",
    "index": "column that names the rows",
    "array": "array of an npz file",
    "standardize": "divide each column by its spread first",
    "metric": "distance between rows (default: euclidean)",
    "directed": "FILE holds directed distances",
    "values": "what the numbers of directed data mean: costs (default; the larger, the further), "
    "strengths (the larger, the closer) or transition probabilities",
    "source": "of an edge list: where edges start",
    "target": "of an edge list: where edges end",
    "weight": "of an edge list: length or strength",
    "components": "columns, the height among them (default: 3), or auto: mds chooses 2 or 3",
    "pin": "csv as embed writes it: rows in it keep their places",
    "save": "write the model to a .finsler file",
    "seed": "random seed (default: 0); the number of threads does not change the result",
    "sample": "with --dask: number of rows to fit to, or all; transform places the others "
    "(default: all up to a million, 200000 beyond)",
    "incoming": "for a model of directed distances: FILE holds the distances from new to training "
    "points, FILE2 those from training to new points, both with a row per new point",
    "without": "leave out modules with this word in their dotted name, such as tests; may be given "
    "several times",
    "output": "csv, parquet or npy (default: FILE_finsler.csv)",
    "plot": "picture (png, pdf, svg) or page to explore (html); may be given several times",
    "threads": "number of threads (default: all)",
    "dask": "by blocks, on a cluster of processes started here",
    "scheduler": "on the cluster of this scheduler",
    "workers": "number of processes to start here",
    "memory": "of memory for each of them, such as 2GB",
    "quiet": "print errors only",
    "verbose": "print every step and when it began",
}


def parser() -> argparse.ArgumentParser:
    made = OneLineParser(prog="finsler-ext", description=DESCRIPTION)
    made.add_argument("--version", action="version", version=f"finsler-ext {__version__}")
    commands = made.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="embed scikit-learn's digits and draw them")
    _add_demo(demo)
    for name, what, description, add in (
        ("embed", "embed a file", EMBED, _add_embed),
        ("transform", "place the rows of a file in a saved model", TRANSFORM, _add_transform),
        ("imports", "draw the modules of a package as a landscape", IMPORTS, _add_imports),
    ):
        raw = argparse.RawDescriptionHelpFormatter
        add(commands.add_parser(name, help=what, description=description, formatter_class=raw))
    return made


def _option(command, name: str, metavar: str | None = None, **settings) -> None:
    """An option with its line of HELP; one without a metavar is on or off, or has choices."""
    if metavar is not None:
        settings["metavar"] = metavar
    elif not {"choices", "action"} & set(settings):
        settings["action"] = "store_true"
    short = ("-o",) if name == "output" else ()
    command.add_argument(*short, f"--{name}", **{"help": HELP[name], **settings})


def _add_demo(demo) -> None:
    drift, picture = HELP["omega-norm"].partition("; or auto")[0], "finsler_digits.png"
    _option(demo, "omega-norm", "DRIFT", type=float, default=0.5, help=drift)
    _option(demo, "seed", "N", type=int, default=0)
    written = f"file to write (default: {picture})"
    _option(demo, "output", "PICTURE", default=picture, help=written)
    _add_verbosity(demo)


def _add_embed(embed) -> None:
    embed.add_argument("file", metavar="FILE", help=HELP["file"])
    _option(embed, "method", choices=("umap", "tsne", "mds"))
    _option(embed, "omega-norm", "DRIFT", type=_drift)
    _option(embed, "label", "COLUMN")
    _add_columns(embed)
    _option(embed, "standardize")
    _option(embed, "metric", "METRIC")
    _option(embed, "directed")
    _option(embed, "values", choices=("cost", "strength", "transitions"))
    for name in ("source", "target", "weight"):
        _option(embed, name, "COLUMN")
    columns = _whole_or("auto", 1, "a whole number of columns ≥ 1, or auto")
    _option(embed, "components", "N", type=columns)
    _option(embed, "pin", "PLACES")
    _option(embed, "save", "MODEL")
    _option(embed, "seed", "N", type=int, default=0)
    _option(embed, "sample", "N", type=_whole_or("all", 2, "a number of rows, or all"))
    _add_output(embed)
    _add_dask(embed)


def _add_transform(transform) -> None:
    transform.add_argument("model", metavar="MODEL", help="file written by embed --save")
    transform.add_argument("file", metavar="FILE", help=HELP["file"])
    _option(transform, "label", "COLUMN", help="copy this column to the output")
    _add_columns(transform)
    _option(transform, "incoming", "FILE2")
    _add_output(transform)
    _add_dask(transform)


def _add_imports(imports) -> None:
    imports.add_argument("package", metavar="PACKAGE", help="the name that is imported")
    _option(imports, "without", "WORD", action="append", default=[])
    _add_output(imports, help="file to write (default: PACKAGE_imports.csv)")
    _option(imports, "seed", "N", type=int, default=0)


def _add_columns(command) -> None:
    """What is taken of a table."""
    _option(command, "drop", "COLUMN", action="append", default=[])
    _option(command, "drop-missing")
    _option(command, "header", action=argparse.BooleanOptionalAction)
    _option(command, "index", "COLUMN")
    _option(command, "array", "NAME")


def _add_output(command, **table) -> None:
    _option(command, "output", "TABLE", **table)
    _option(command, "plot", "FILE", action="append", default=[])
    _option(command, "threads", "N", type=int, default=-1)
    _add_verbosity(command)


def _add_dask(command) -> None:
    group = command.add_argument_group(
        "data larger than memory, several machines (needs the extra dask)",
        "FILE is parquet or zarr, the output parquet, zarr or npy",
    )
    _option(group, "dask")
    _option(group, "scheduler", "ADDRESS")
    _option(group, "workers", "N", type=int)
    _option(group, "memory", "LIMIT")


def _add_verbosity(command) -> None:
    either = command.add_mutually_exclusive_group()
    _option(either, "quiet")
    _option(either, "verbose")


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
