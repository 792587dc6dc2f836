"""Command line: embed a file, with a picture; place new rows; scikit-learn's digits as a demo."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO

from finsler_ext import __version__
from finsler_ext._progress import listening
from finsler_ext.cli.interrupts import Interrupts
from finsler_ext.cli.options import add_dask, add_sample, add_talk, add_transform
from finsler_ext.cli.stages import StageLine, StageLog
from finsler_ext.cli.usage import OneLineParser, UsageError, one_line

__all__ = ["main"]

INTERRUPTED = 130  # what shells report after Ctrl-C

EMBED = """\
FILE holds one row per point: csv or tsv (with or without a header), npy, npz, parquet or h5ad.
With --directed it holds what it costs to get from one point to another: a square matrix (rows
are sources, empty cells, nan and inf are unknown; columns are matched to rows by their names), or
an edge list whose columns are known by their names, in any order: source and target (or from and
to, tail and head, origin and destination, pre and post, ...), and a length if there is one.

examples:
  finsler-ext embed flowers.csv --label species --plot flowers.png
  finsler-ext embed cells.h5ad --label cluster --plot cells.html
  finsler-ext embed travel_times.csv --directed --plot times.png
  finsler-ext embed connectome.csv --directed --weights strength --weight synapses
"""


def main(argv: list[str] | None = None) -> int:
    with Interrupts() as interrupts:
        try:
            options = _parser().parse_args(argv)
            code = _heard(options, interrupts)
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            return _nobody_reads()
        except KeyboardInterrupt:
            return _say(interrupts.report(), INTERRUPTED)
        except Exception as error:
            return _failed(error, interrupts)


def _heard(options, interrupts: Interrupts) -> int:
    """Run with as many words as were asked for; errors are said by `main`."""
    if options.quiet:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            return _run(options, interrupts)
    if options.verbose:
        with listening(StageLog()):
            return _run(options, interrupts)
    return _run(options, interrupts)


def _run(options, interrupts: Interrupts) -> int:
    if options.command == "demo":
        from finsler_ext.cli.demo import demo

        return demo(options, interrupts)
    if options.dask or options.scheduler:
        from finsler_ext.cli import large

        run = large.embed_large if options.command == "embed" else large.transform_large
        return run(options, interrupts)
    for name in ("workers", "memory", "sample"):
        if getattr(options, name) is not None:
            raise UsageError(f"--{name} is for --dask; use it with --dask or --scheduler")
    if options.command == "transform":
        from finsler_ext.cli.transform import transform

        return transform(options, interrupts)
    if options.verbose:
        from finsler_ext.cli.embed import embed

        return embed(options, interrupts)
    with StageLine(f"reading {options.file}") as line, listening(line):
        from finsler_ext.cli.embed import embed

        return embed(options, interrupts)


def _failed(error: Exception, interrupts: Interrupts) -> int:
    if interrupts.seen:  # whatever the interrupted code made of it
        return _say(interrupts.report(), INTERRUPTED)
    written = interrupts.written
    done = f" ({' and '.join(written)} had been written)" if written else ""
    if isinstance(error, (UsageError, ValueError, OSError, ModuleNotFoundError, MemoryError)):
        return _say(one_line(error) + done, 2)
    if os.environ.get("FINSLER_DEBUG"):
        raise error
    what = f"unexpected {type(error).__name__}: {one_line(error)}"
    return _say(f"{what} (FINSLER_DEBUG=1 shows where){done}", 1)


def _say(message: str, code: int) -> int:
    with suppress(BrokenPipeError):
        print(f"finsler-ext: {message}", file=sys.stderr)
    return code


def _nobody_reads() -> int:
    """The files are written, and the reader of the report has left: nothing has gone wrong."""
    # Python flushes stdout once more when it ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(prog="finsler-ext", description=__doc__)
    parser.add_argument("--version", action="version", version=f"finsler-ext {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="embed scikit-learn's digits, with a picture")
    demo.add_argument("--omega-norm", type=float, default=0.5, help="drift in [0, 1)")
    demo.add_argument("--seed", type=int, default=0)
    demo.add_argument("-o", "--output", default="finsler_digits.png", help="picture to write")
    add_talk(demo)
    _add_embed(commands)
    add_transform(commands)
    return parser


def _add_embed(commands) -> None:
    embed = commands.add_parser(
        "embed",
        help="embed a file",
        description=EMBED,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    embed.add_argument("file", metavar="FILE")
    embed.add_argument(
        "--method",
        choices=("umap", "tsne", "mds"),
        help="FinslerUMAP (default), FinslerTSNE, or FinslerMDS (default with --directed)",
    )
    embed.add_argument(
        "--omega-norm",
        type=_drift,
        help="drift in [0, 1), or auto (default: 0.5; auto for mds with --directed)",
    )
    _add_columns(embed)
    _add_directed(embed)
    embed.add_argument(
        "--components",
        type=_components,
        help="columns, the height among them (default 3; mds with --directed chooses 2 or 3)",
    )
    embed.add_argument(
        "-o", "--output", help="csv, parquet or npy to write (default FILE_finsler.csv)"
    )
    embed.add_argument("--save", metavar="MODEL", help="write the model, to a .finsler file")
    embed.add_argument(
        "--plot",
        action="append",
        default=[],
        metavar="FILE",
        help="picture (png, pdf, svg) or page to explore (html); may be given several times",
    )
    embed.add_argument("--seed", type=int, default=0)
    embed.add_argument("--threads", type=int, default=-1, help="default: all")
    add_dask(embed)
    add_sample(embed)
    add_talk(embed)


def _add_columns(embed) -> None:
    """What is embedded of a table."""
    embed.add_argument(
        "--label", metavar="COLUMN", help="colour by this, do not embed it; written as it is"
    )
    embed.add_argument(
        "--drop", metavar="COLUMN", action="append", default=[], help="leave this column out"
    )
    embed.add_argument(
        "--drop-missing", action="store_true", help="leave rows with missing values out"
    )
    embed.add_argument(
        "--standardize", action="store_true", help="divide each column by its spread first"
    )
    embed.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="the first line of a csv file names the columns, or is a row (default: it is a header "
        "if it has text above numbers, and a row if it has no text)",
    )
    embed.add_argument("--index", metavar="COLUMN", help="column that names the rows")
    embed.add_argument("--metric", help="distance between rows (default euclidean)")
    embed.add_argument("--array", metavar="NAME", help="array of an npz file to embed")


def _add_directed(embed) -> None:
    embed.add_argument("--directed", action="store_true", help="FILE holds directed distances")
    embed.add_argument(
        "--weights",
        choices=("cost", "strength", "transitions"),
        help="what the numbers of directed data are (default cost: the more, the further)",
    )
    embed.add_argument("--source", metavar="COLUMN", help="of an edge list: where edges start")
    embed.add_argument("--target", metavar="COLUMN", help="of an edge list: where edges end")
    embed.add_argument("--weight", metavar="COLUMN", help="of an edge list: length or strength")


def _components(text: str) -> int:
    if text.strip().isdigit() and int(text) >= 1:
        return int(text)
    raise argparse.ArgumentTypeError(f"a whole number of columns ≥ 1, got {text!r}")


def _drift(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # "auto"; other words are refused with an explanation
