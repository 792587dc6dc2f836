"""Command line: embed a file, with a picture; place new rows; scikit-learn's digits as a demo."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from io import StringIO

from finsler_ext._messages import listening
from finsler_ext.cli.messages import Interrupts, StageLine, StageLog, UsageError, joined, one_line
from finsler_ext.cli.options import parser

__all__ = ["main"]

INTERRUPTED = 130  # what shells report after Ctrl-C


def main(argv: list[str] | None = None) -> int:
    _open_closed_streams()
    with Interrupts() as interrupts:
        try:
            options = parser().parse_args(argv)
            code = _run(options, interrupts)
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            return _on_broken_pipe()
        except KeyboardInterrupt:
            return _say(interrupts.report(), INTERRUPTED)
        except Exception as error:
            return _translate_error(error, interrupts)


def _open_closed_streams() -> None:
    """After ``>&-`` Python has no stdout, and the next file that is opened would take its place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _run(options, interrupts: Interrupts) -> int:
    """Errors are printed by `main`."""
    run = _command(options)
    with ExitStack() as around:
        if options.quiet:
            around.enter_context(redirect_stdout(StringIO()))
            around.enter_context(redirect_stderr(StringIO()))
        elif options.verbose:
            around.enter_context(listening(StageLog()))
        elif options.command == "embed" and not _on_dask(options):
            line = around.enter_context(StageLine(f"reading {options.file}"))
            around.enter_context(listening(line))
        return run(options, interrupts)


def _command(options) -> Callable[..., int]:
    """What runs a command; its modules are imported when they are needed."""
    if options.command == "demo":
        from finsler_ext.cli.embed import demo

        return demo
    if options.command == "imports":
        from finsler_ext.cli.imports import imports_command

        return imports_command
    if _on_dask(options):
        from finsler_ext.cli.large import embed_large, transform_large

        return embed_large if options.command == "embed" else transform_large
    for name in ("workers", "memory", "sample"):
        if getattr(options, name, None) is not None:
            raise UsageError(f"--{name} is for --dask; use it with --dask or --scheduler")
    from finsler_ext.cli import embed, transform

    return embed.embed if options.command == "embed" else transform.transform


def _on_dask(options) -> bool:
    return bool(options.dask or options.scheduler)


def _translate_error(error: Exception, interrupts: Interrupts) -> int:
    """One line, and the exit code."""
    if interrupts.seen:  # whatever the interrupted code made of it
        return _say(interrupts.report(), INTERRUPTED)
    written = interrupts.written
    done = f" ({joined(written)} had been written)" if written else ""
    if isinstance(error, MemoryError):
        return _say(f"not enough memory: {one_line(error)}{done}", 2)
    if isinstance(error, (UsageError, ValueError, OSError, ModuleNotFoundError)):
        return _say(one_line(error) + done, 2)
    if os.environ.get("FINSLER_DEBUG"):
        raise error
    what = f"unexpected {type(error).__name__}: {one_line(error)}"
    return _say(f"{what} (FINSLER_DEBUG=1 shows where){done}", 1)


def _say(message: str, code: int) -> int:
    with suppress(OSError):  # nobody reads, or the disk is full
        print(f"finsler-ext: {message}", file=sys.stderr)
    return code


def _on_broken_pipe() -> int:
    """The files are written, and the reader of the report has left: nothing has gone wrong."""
    # Python flushes stdout once more when it ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
